"""From Calico to Cilium node by node, played: at no step do two nodes have an address, as long as Calico is frozen.

Calico's part is played as its sources have it (libcalico-go, lib/ipam; kube-controllers, pkg/controllers/node): a
node takes addresses of its own blocks; without the freeze it claims blocks and borrows addresses, too; empty
blocks of nodes with several are released at any time. Cilium's part: a node that has moved may use every address
of its blocks in the lock.
"""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, note, settings
from hypothesis import strategies as st

from ipamc.importing.refresh import Past, refresh
from ipamc.model.cidr import Block
from ipamc.pipeline import Compilation
from ipamc.read.read import read
from tests.support import calico, depth, dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, compiled, dump_of, imported

POOL = Block(4, 0x0A000000, 24)
SIZE = 28
BLOCKS = [Block(4, POOL.first + (number << 4), SIZE) for number in range(16)]
STEPS = st.lists(
    st.tuples(st.sampled_from(["start", "stop", "release", "move", "join", "again"]), st.integers(0, 50)),
    min_size=6,
    max_size=25,
)


class Live:
    """A cluster of which some nodes run Calico, and some have moved to Cilium."""

    def __init__(self, nodes: int) -> None:
        self.nodes = [f"n{number}" for number in range(nodes)]
        self.blocks: dict[Block, str] = {}
        """Calico's: the node by block."""
        self.used: dict[int, str] = {}
        """Calico's: the node by address."""
        self.moved: dict[str, list[Block]] = {}
        self.frozen = False

    def start(self, node: str, chosen: int) -> None:
        """Start a pod on a node that runs Calico."""
        if node in self.moved:
            return
        own = [block for block, owner in sorted(self.blocks.items()) if owner == node]
        free = [self.free(block) for block in own if self.free(block)]
        if not free and not self.frozen:
            unclaimed = [block for block in BLOCKS if block not in self.blocks]
            if unclaimed:
                block = unclaimed[chosen % len(unclaimed)]
                self.blocks[block] = node
                free = [self.free(block)]
            else:  # borrow
                free = [found for block in sorted(self.blocks) if (found := self.free(block))]
        if free:
            self.used[free[0][chosen % len(free[0])]] = node

    def borrow(self, node: str, chosen: int) -> None:
        """Start a pod with an address of another node's block."""
        others = [block for block, owner in sorted(self.blocks.items()) if owner != node and self.free(block)]
        if others:
            self.used[self.free(others[chosen % len(others)])[0]] = node

    def free(self, block: Block) -> list[int]:
        return [address for address in range(block.first, block.last + 1) if address not in self.used]

    def stop(self, chosen: int) -> None:
        if self.used:
            del self.used[sorted(self.used)[chosen % len(self.used)]]

    def release(self, chosen: int) -> None:
        """Release an empty block of a node with several."""
        owners = list(self.blocks.values())
        empty = [
            block
            for block, owner in sorted(self.blocks.items())
            if owners.count(owner) > 1 and len(self.free(block)) == block.size
        ]
        if empty:
            del self.blocks[empty[chosen % len(empty)]]

    def move(self, node: str, blocks: list[Block]) -> None:
        """Drain a node, apply its seed, and start Cilium on it."""
        self.used = {address: user for address, user in self.used.items() if user != node}
        self.moved[node] = blocks

    def objects(self) -> Iterator[dumps.Object]:
        yield calico.pool("pods", str(POOL), blockSize=SIZE)
        yield calico.config(strict=self.frozen, auto=not self.frozen)
        for node in self.nodes:
            yield dumps.node(node)
            if node in self.moved:
                own = list(map(str, self.moved[node]))
                yield dumps.cilium_node(node, allocated={f"pods.{node}": own})
        for block, owner in self.blocks.items():
            uses = [
                (address - block.first, user, f"default/pod-{address}")
                for address, user in self.used.items()
                if block.first <= address <= block.last
            ]
            yield from calico.affine(str(block), owner, uses)

    def check(self) -> None:
        """Check that no address is of two nodes."""
        of_cilium = {
            address: node
            for node, blocks in self.moved.items()
            for block in blocks
            for address in range(block.first, block.last + 1)
        }
        assert sum(block.size for blocks in self.moved.values() for block in blocks) == len(of_cilium)
        assert not of_cilium.keys() & self.used.keys()


def follow(files: dict[str, str], live: Live, last: Compilation | None) -> Compilation:
    """Refresh and compile, as CI does."""
    sources = {f"{FOLDER}/{name}": text.encode() for name, text in files.items()}
    cluster, _ = read(NAME, FOLDER, sources, SCHEMAS)
    files |= refresh(cluster, FOLDER, dump_of(live.objects()), Past())
    return compiled(files, last)


def held(compilation: Compilation) -> dict[str, list[Block]]:
    found: dict[str, list[Block]] = {}
    for line in compilation.plan.lock.lines:
        found.setdefault(line.node, []).append(line.block)
    return found


def begun(before: list[tuple[str, int]]) -> tuple[Live, dict[str, str]]:
    """Return a cluster with pods, and its import of before the freeze."""
    live = Live(4)
    for number, node in enumerate(live.nodes):
        live.start(node, number * 5)
    for what, chosen in before:
        node = live.nodes[chosen % 4]
        live.borrow(node, chosen) if what == "stop" else live.start(node, chosen)
    return live, dict(imported(live.objects()).files)


@given(before=STEPS, steps=STEPS)
@settings(max_examples=depth.examples(25))
def test_no_address_is_of_two_nodes(before: list[tuple[str, int]], steps: list[tuple[str, int]]) -> None:
    live, files = begun(before)
    live.start("n0", 7)
    live.frozen = True
    last = follow(files, live, None)
    blocks = held(last)
    assert {node: sorted(some) for node, some in blocks.items()} == {
        node: sorted(block for block, owner in live.blocks.items() if owner == node) for node in live.nodes
    }
    # The pods that borrow start anew, as the finding says.
    live.used = {
        address: node
        for address, node in live.used.items()
        if any(block.first <= address <= block.last for block in blocks[node])
    }
    for what, chosen in [*steps, *(("move", number) for number in range(len(live.nodes)))]:
        note(f"{what} {chosen}")
        node = live.nodes[chosen % len(live.nodes)]
        if what == "start":
            live.start(node, chosen)
        elif what == "stop":
            live.stop(chosen)
        elif what == "release":
            live.release(chosen)
        elif what == "move" and node in blocks:
            live.move(node, blocks[node])
        elif what == "join":
            live.nodes.append(f"new-{len(live.nodes)}")
        elif what == "again" and len(live.nodes) < 9:
            last = follow(files, live, last)
            assert {name: held(last)[name] for name in blocks} == blocks
            blocks = held(last)
        live.check()
    assert set(blocks) <= live.moved.keys() | set(live.nodes)


def test_without_the_freeze_a_block_is_given_twice_and_that_is_said() -> None:
    """A newcomer gets a block from the lock, and Calico gives the same one to a node of its own."""
    live, files = begun([])
    live.nodes.append("new")
    last = follow(files, live, None)
    (given_out,) = held(last)["new"]
    live.blocks[given_out] = "n0"
    again = follow(files, live, last)
    assert "IPC0513" in {finding.code for finding in again.diagnostics}
    assert again.plan.disputed == {"n0", "new"}
