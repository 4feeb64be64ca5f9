"""Histories after an import, where the operator goes on by itself: each refresh and compile follows it, and nobody else's block moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from ipamc.importing.refresh import Past, refresh
from ipamc.model.cidr import Block
from ipamc.pipeline import Compilation
from ipamc.read.read import read
from tests.support import depth, dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, compiled, dump_of, held, imported

Steps = list[tuple[str, int]]

ON = {"enable_ipv4": "true", "enable_ipv6": "false"}
SIZE = 26
RANGE = Block(4, 0x0A000000, 20)
STEPS = st.lists(
    st.tuples(st.sampled_from(["join", "leave", "re-create", "more", "beat"]), st.integers(0, 20)),
    min_size=1,
    max_size=12,
)


class Live:
    """A running cluster whose operator gives out blocks: the next free one behind the last, as Cilium does."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.uids: dict[str, str] = {}
        self.blocks: dict[str, list[Block]] = {}
        self.cursor = 0
        self.born = 0

    def give(self, name: str) -> None:
        """Give a node one more block."""
        used = {block for some in self.blocks.values() for block in some}
        step = 1 << (32 - SIZE)
        number = RANGE.size // step
        for place in (*range(self.cursor, number), *range(self.cursor)):
            block = Block(4, RANGE.first + place * step, SIZE)
            if block not in used:
                self.cursor = (place + 1) % number
                self.blocks.setdefault(name, []).append(block)
                return

    def do(self, what: str, chosen: int) -> None:
        """Let something happen to a node."""
        names = sorted(self.uids)
        name = names[chosen % len(names)]
        self.born += 1
        if what == "join":
            name = f"n{self.born:03}"
            self.uids[name] = f"u{self.born}"
            self.give(name)
        elif what == "leave" and len(names) > 2:
            del self.uids[name], self.blocks[name]
        elif what == "re-create":
            self.uids[name] = f"u{self.born}"
            del self.blocks[name]
            self.give(name)
        elif what == "more" and self.mode == "multi-pool":
            self.give(name)

    def objects(self) -> Iterator[dumps.Object]:
        """Yield what kubectl prints now."""
        for name, uid in self.uids.items():
            yield dumps.node(name, uid=uid, heartbeat=f"2026-11-22T12:00:{self.born % 60:02}Z")
            cidrs = [str(block) for block in self.blocks[name]]
            if self.mode == "multi-pool":
                yield dumps.cilium_node(name, allocated={"default": cidrs}, owner=uid)
            else:
                yield dumps.cilium_node(name, *cidrs, owner=uid)
        if self.mode == "multi-pool":
            yield dumps.pool("default", mask=SIZE, cidrs=[str(RANGE)])
            yield dumps.config_map(ipam="multi-pool", **ON)
        else:
            yield dumps.config_map(
                ipam="cluster-pool",
                **ON,
                cluster_pool_ipv4_cidr=str(RANGE),
                cluster_pool_ipv4_mask_size=str(SIZE),
            )


def texts(blocks: dict[str, list[Block]]) -> dict[str, list[str]]:
    return {name: sorted(map(str, some)) for name, some in blocks.items()}


def in_use(compilation: Compilation, names: set[str]) -> dict[str, list[str]]:
    """Return the held blocks of nodes that exist."""
    lines = [line for line in compilation.plan.lock.lines if line.in_use and line.node in names]
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(line.node, []).append(str(line.block))
    return {name: sorted(some) for name, some in found.items()}


@pytest.mark.parametrize("mode", ["cluster-pool", "multi-pool"])
@given(steps=STEPS)
@settings(max_examples=depth.examples(20))
def test_what_the_operator_does_is_followed(mode: str, steps: Steps) -> None:
    live = Live(mode)
    for number in range(5):
        live.uids[f"a{number}"] = f"a{number}"
        live.give(f"a{number}")
    files = dict(imported(live.objects(), operator="adopt").files)
    # A history has its leavers one by one; how many may leave at once is another matter.
    files["cluster.yaml"] = f"{files['cluster.yaml']}  budget: {{leave: 100}}\n"
    last = compiled(files)
    assert held(last) == texts(live.blocks)
    for what, chosen in steps:
        note(f"{what} {chosen}")
        live.do(what, chosen)
        sources = {f"{FOLDER}/{name}": text.encode() for name, text in files.items()}
        cluster, _ = read(NAME, FOLDER, sources, SCHEMAS)
        files |= refresh(cluster, FOLDER, dump_of(live.objects()), Past())
        last = compiled(files, last)
        assert in_use(last, set(live.uids)) == texts(live.blocks)
        again = compiled(files, last)
        assert (again.lock, again.files) == (last.lock, last.files)
