"""Laws of pools whose blocks follow the addresses of nodes: the arithmetic, and lives of nodes that join by it."""

from __future__ import annotations

import json
from typing import NamedTuple

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ipamc.law.change import UNLAWFUL, Days, changes
from ipamc.lock.file import parse
from ipamc.model.cidr import BITS, Block, Range, address_text
from ipamc.model.cluster import PoolFamily
from ipamc.model.follows import address_of, area_of, block_of, room_for
from ipamc.model.limits import FOLLOWED_IPV6
from ipamc.model.lock import Consent, State
from ipamc.pipeline import Compilation, Inputs, compile_cluster
from ipamc.workspace.disk import assets
from tests.support import depth
from tests.support.builders import AT

TODAY = "2026-11-22"
SCHEMAS, TEMPLATES = assets("schemas"), assets("templates")
NETWORKS = {4: 172 << 24 | 16 << 16, 6: 0xFD01 << 112}
"""What a network begins with; a range begins with a 10, or with fd00."""
RANGES = {4: 10 << 24, 6: 0xFD00 << 112}


@st.composite
def parts(draw: st.DrawFn, family: int) -> PoolFamily:
    """Draw a network of a family, and a pool with room for it, at any place."""
    bits = BITS[family]
    host = draw(st.integers(0, 10 if family == 4 else bits - FOLLOWED_IPV6))
    size = draw(st.integers(host + 12, 30) if family == 4 else st.integers(60, 120))
    network = Block(family, NETWORKS[family] + (draw(st.integers(0, 500)) << host), bits - host)
    prefix = draw(st.integers(max(size - host - 2, 9 if family == 4 else size - 16), size - host))
    first = RANGES[family] + (draw(st.integers(0, 3)) << (bits - prefix))
    ranges = (Range(Block(family, first, prefix), AT),)
    return PoolFamily(family=family, ranges=ranges, block_size=size, follows=Range(network, AT), at=AT)


@given(st.sampled_from((4, 6)).flatmap(parts), st.data())
def test_each_address_has_a_block_of_its_own(part: PoolFamily, data: st.DataObject) -> None:
    assert part.follows
    network, (family, bits) = part.follows.block, (part.family, BITS[part.family])
    numbers = st.integers(network.first, network.last)
    addresses = {network.first, network.last, data.draw(numbers), data.draw(numbers), data.draw(numbers)}
    blocks = {number: block_of(part, (family, number)) for number in addresses}
    assert len(set(blocks.values())) == len(addresses)
    area, size = area_of(part), 1 << (bits - part.block_size)
    assert area
    assert area.prefix == room_for(part, network)
    assert part.ranges[0].block.contains(area)
    for number, block in blocks.items():
        assert block
        assert (block.prefix, block.first % size) == (part.block_size, 0)
        assert area.contains(block)
        assert address_of(part, block) == (family, number)
        inside = data.draw(st.integers(block.first, block.last))
        assert address_of(part, Block(family, inside, bits)) == (family, number)
    assert blocks[network.first] == Block(family, part.ranges[0].block.first, part.block_size)
    for outside in (network.first - 1, network.last + 1):
        assert block_of(part, (family, outside)) is None
    whole = part.ranges[0].block
    after = Block(family, area.last + 1, bits)
    assert address_of(part, whole.widened(part.block_size - 1)) is None
    assert not whole.contains(after) or address_of(part, after) is None


class Step(NamedTuple):
    """What is in the cluster: the address of each node by family, and whether the dump has its blocks."""

    nodes: dict[str, dict[int, int]]
    shown: bool = True


@st.composite
def lives(draw: st.DrawFn) -> tuple[dict[int, PoolFamily], list[Step]]:
    """Draw a pool, and a history: nodes join, leave, and join again with other addresses; each address is one's."""
    families = draw(st.sampled_from(((4,), (6,), (4, 6))))
    pool = {family: draw(parts(family)) for family in families}
    room = min(part.follows.block.size for part in pool.values() if part.follows)
    steps = []
    for _ in range(draw(st.integers(1, 4))):
        names = draw(st.lists(st.sampled_from("abcdefg"), unique=True, max_size=min(room, 5)))
        nodes: dict[str, dict[int, int]] = {name: {} for name in names}
        for family, part in pool.items():
            assert part.follows
            last = min(part.follows.block.size, 6) - 1  # few, so that addresses are used again
            of = draw(st.permutations(range(last + 1)))
            for name, number in zip(names, of, strict=False):
                nodes[name][family] = part.follows.block.first + number
        steps.append(Step({name: of for name, of in nodes.items() if len(of) == len(families)}))
    return pool, steps


IPAM = {
    "cluster-pool": "{mode: cluster-pool}",
    "kubernetes": "{mode: kubernetes}",
    "multi-pool": "{mode: multi-pool, pinning: node}",
}


def documents(mode: str, pool: dict[int, PoolFamily], step: Step) -> str:
    """Return the files of a cluster in which the policy gave each node that is shown the blocks of its addresses."""
    fields = {
        family: f'{{cidrs: ["{part.ranges[0].block}"], blockSize: {part.block_size}, '
        f'follows: "{part.follows.block if part.follows else ""}"}}'
        for family, part in pool.items()
    }
    rows: list[dict[str, object]] = []
    items: list[dict[str, object]] = []
    for name, of in step.nodes.items():
        blocks = [str(block_of(pool[family], (family, number))) for family, number in of.items()]
        row: dict[str, object] = {
            "name": name,
            "uid": f"of-{name}",
            "internalIPs": [address_text(*each) for each in of.items()],
        }
        rows.append(row | ({"podCIDRs": blocks} if step.shown and mode == "kubernetes" else {}))
        pools = {"allocated": [{"pool": f"auto.{name}", "cidrs": blocks}]}
        ipam = {"pools": pools} if mode == "multi-pool" else {"podCIDRs": blocks}
        items.append({"metadata": {"name": name}, "spec": {"ipam": ipam}})
    lines = [
        "apiVersion: ipamc/v1alpha1",
        "kind: Cluster",
        "metadata: {name: lab}",
        "spec:",
        '  cilium: {version: "1.18", managedBy: helm}',
        f"  ipam: {IPAM[mode]}",
        f"  ipFamilies: [{', '.join(f'IPv{family}' for family in pool)}]",
        "---",
        "apiVersion: ipamc/v1alpha1",
        "kind: IPPool",
        "metadata: {name: auto}",
        "spec:",
        *(f"  ipv{family}: {text}" for family, text in fields.items()),
        "---",
        json.dumps({"apiVersion": "ipamc/v1alpha1", "kind": "NodeInventory", "nodes": rows}),
        "---",
        json.dumps(
            {"apiVersion": "cilium.io/v2", "kind": "CiliumNodeList", "items": items if step.shown else []}
        ),
    ]
    return "\n".join(lines) + "\n"


def compiled(text: str, lock: str | None, today: str = TODAY) -> Compilation:
    return compile_cluster(
        Inputs(
            name="lab",
            folder="clusters/lab",
            sources={"clusters/lab/all.yaml": text.encode()},
            lock_path="clusters/lab/ipam.lock",
            lock=lock.encode() if lock is not None else None,
            schemas=SCHEMAS,
            templates=TEMPLATES,
            consent=Consent(leave=frozenset({"all"})),
            today=today,
        )
    )


@settings(max_examples=depth.examples(300, at_least=40))
@given(mode=st.sampled_from(sorted(IPAM)), life=lives(), listed_first=st.booleans())
def test_a_compile_says_what_the_policy_gives(
    *, mode: str, life: tuple[dict[int, PoolFamily], list[Step]], listed_first: bool
) -> None:
    pool, steps = life
    # IPC0527: a pinned node needs more than four addresses.
    assume(mode != "multi-pool" or all(BITS[family] - part.block_size > 2 for family, part in pool.items()))
    lock = None
    for number, step in enumerate(steps):
        # At first nodes may be listed before they join; later the dump has what the policy gave them.
        text = documents(mode, pool, step._replace(shown=bool(number) or not listed_first))
        done = compiled(text, lock)
        held = {
            (line.node, line.block.family): line.block
            for line in done.plan.lock.lines
            if line.state is State.HELD
        }
        assert held == {
            (name, family): block_of(pool[family], (family, address))
            for name, of in step.nodes.items()
            for family, address in of.items()
        }
        assert {line.state for line in done.plan.lock.lines} <= {State.HELD, State.RELEASED}
        assert {finding.code for finding in done.diagnostics} <= {"IPC0504"}
        if lock is not None:
            before, _ = parse(lock.encode(), "ipam.lock")
            assert before
            found = changes(before.lines, done.plan.lock.lines, Days(TODAY, 7, 7), {"auto"})
            assert not [each for each in found if each.verdict in UNLAWFUL]
        again = compiled(text, done.lock, "2026-12-24")
        assert again.lock == done.lock
        assert not again.plan.stale
        lock = done.lock
