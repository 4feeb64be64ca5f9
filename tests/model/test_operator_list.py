"""The operator's list, against an operator in few lines: whatever is in use or reserved, it gives out nothing of it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ipamc.model.address_sets import outermost
from ipamc.model.cidr import BITS, Block
from ipamc.model.cilium.operator_list import given_by_operator, operator_lists
from ipamc.model.cluster import Cluster
from ipamc.model.lock import Line, State
from ipamc.model.node import CiliumNode
from tests.support.builders import AT, pool
from tests.support.pools import block
from tests.support.pools import cluster as made

MASKS = {4: 26, 6: 122}


def cluster(*pools: object, seen: dict[str, list[str]] | None = None, **fields: object) -> Cluster:
    """Make a cluster whose operator adopts, with CiliumNodes."""
    found = tuple(
        CiliumNode(name, AT, tuple(map(block, cidrs))) for name, cidrs in sorted((seen or {}).items())
    )
    return replace(made(*pools, **fields), operator="adopt", cilium_nodes=found)  # type: ignore[arg-type]


def lists(of: Cluster, *lines: Line) -> dict[int, str]:
    """Return the lists as the operator reads them."""
    return {family: " ".join(map(str, blocks)) for family, blocks in operator_lists(of, lines, MASKS).items()}


def line(cidr: str, node: str, pool: str, state: State = State.HELD) -> Line:
    return Line(block=block(cidr), node=node, pool=pool, state=state)


def test_unlisted_pools_by_name_and_ranges_in_their_order() -> None:
    pools = [
        pool("b", "10.2.0.0/24", "10.1.0.0/24", unlisted=True),
        pool("a", "10.3.0.0/24", unlisted=True),
        pool("c", "10.4.0.0/24"),
        pool("d", "10.5.0.0/24", unlisted=True, disabled=True),
    ]
    assert lists(cluster(*pools)) == {4: "10.3.0.0/24 10.2.0.0/24 10.1.0.0/24"}


@pytest.mark.parametrize(
    ("reserved", "wanted"),
    [
        (["10.0.0.0/25"], "10.0.0.128/25 10.0.1.0/24"),
        (["10.0.1.0/32"], "10.0.0.0/24 10.0.1.64/26 10.0.1.128/25"),  # what is left of a block is of no use
        (["10.0.0.0/24", "10.0.0.64/26"], "10.0.1.0/24"),
        (["10.0.0.0/23"], "10.0.0.0/32"),
        (["10.0.0.0/26", "10.0.0.64/32"], "10.0.0.128/25 10.0.1.0/24"),
    ],
)
def test_what_is_reserved_is_not_in_the_list(reserved: list[str], wanted: str) -> None:
    assert lists(cluster(pool("a", "10.0.0.0/23", unlisted=True, reserved=reserved))) == {4: wanted}
    excluded = cluster(pool("a", "10.0.0.0/23", unlisted=True), excluded=reserved)
    assert lists(excluded) == {4: wanted}


def test_without_anything_to_give_there_is_one_address_of_each_family() -> None:
    off = pool("a", "10.0.0.0/24", "fd00::/120", unlisted=True, disabled=True)
    assert lists(cluster(off, families=(4, 6))) == {4: "10.0.0.0/32", 6: "fd00::/128"}


def test_held_blocks_of_other_pools_are_not_in_the_list() -> None:
    of = cluster(pool("a", "10.0.0.0/24", unlisted=True), pool("b", "10.1.0.0/24"), pool("c", "10.2.0.0/24"))
    assert lists(of, line("10.1.0.0/26", "n1", "b"), line("10.2.0.0/26", "n2", "c", State.PENDING)) == {
        4: "10.0.0.0/24"
    }


def test_a_pending_block_waits_for_its_node() -> None:
    of = cluster(pool("a", "10.0.0.0/25", unlisted=True))
    assert lists(of, line("10.0.0.0/26", "n1", "a", State.PENDING)) == {4: "10.0.0.64/26"}
    assert lists(of, line("10.0.0.0/26", "n1", "a", State.QUARANTINED)) == {4: "10.0.0.0/25"}


def test_a_node_that_the_operator_does_not_book_as_a_whole_keeps_its_blocks_out_of_the_list() -> None:
    pools = [
        pool("a", "10.0.0.0/25", "fd00::/120", unlisted=True),
        pool("b", "10.1.0.0/24"),
    ]
    out = {4: "10.0.0.64/26", 6: "fd00::40/122 fd00::80/121"}
    seen = {"s1": ["10.0.0.0/26", "fd00:1::/122"], "s2": ["10.1.0.0/26", "fd00::/122"]}
    assert lists(cluster(*pools, seen=seen, families=(4, 6))) == out
    lines = [
        line("10.0.0.0/26", "n1", "a"),
        line("10.1.0.0/26", "n2", "b"),
        line("fd00:1::/122", "n1", ""),
        line("fd00::/122", "n2", "a"),
    ]
    assert lists(cluster(*pools, families=(4, 6)), *lines) == out
    whole = {"s1": ["10.0.0.0/26", "fd00::/122"]}
    assert lists(cluster(*pools, seen=whole, families=(4, 6))) == {4: "10.0.0.0/25", 6: "fd00::/120"}


@pytest.mark.parametrize(
    ("block", "wanted"),
    [
        ("10.0.0.0/24", "10.0.1.0/24"),  # in two CIDRs of the list
        ("10.0.0.0/28", "10.0.0.128/25 10.0.1.0/24"),  # smaller than the mask
        ("10.0.0.0/16", "10.0.0.0/32"),
        ("10.0.0.128/25", "10.0.0.0/26 10.0.0.128/25 10.0.1.0/24"),
    ],
)
def test_nor_does_it_book_a_block_that_it_would_book_in_part_or_with_others(block: str, wanted: str) -> None:
    of = pool("a", "10.0.0.0/23", unlisted=True, reserved=["10.0.0.64/26"])
    assert lists(cluster(of, seen={"s1": [block]})) == {4: wanted}


def test_the_operator_decides_about_nodes_whose_blocks_are_all_of_unlisted_pools() -> None:
    of = cluster(pool("a", "10.0.0.0/24", "fd00::/120", unlisted=True), pool("b", "10.1.0.0/24"))
    lines = [
        line("10.0.0.0/26", "n1", "a"),
        line("10.0.0.64/26", "n2", "a"),
        line("10.1.0.0/26", "n3", "b"),
        line("10.1.0.64/26", "n1", "b", State.PENDING),
        line("10.1.0.128/26", "n4", "b", State.QUARANTINED),
        line("fd00::/122", "n3", "a"),
    ]
    assert given_by_operator(of, lines) == {"n1", "n2"}
    assert not given_by_operator(replace(of, operator="bystander"), lines)


# The operator's book, as `cidr_set.go` and `podcidr.go` of 1.12 to 1.19 keep it.


class Operator:
    """An operator that starts beside CiliumNodes and then gives out all that it has."""

    def __init__(self, lists: dict[int, tuple[Block, ...]], nodes: list[list[Block]]) -> None:
        self.lists = lists
        self.used: set[Block] = set()
        for blocks in nodes:
            self.book(blocks)

    def units(self, cidr: Block) -> list[Block]:
        """Return the blocks of the mask in a CIDR; none of a CIDR that is smaller."""
        mask, bits = MASKS[cidr.family], BITS[cidr.family]
        return [
            Block(cidr.family, cidr.first + (index << (bits - mask)), mask)
            for index in range(1 << (mask - cidr.prefix) if mask >= cidr.prefix else 0)
        ]

    def book(self, blocks: list[Block]) -> None:
        """Book a node's blocks, each in the first CIDR that has a part of it; or none of them."""
        taken: set[Block] = set()
        for each in blocks:
            around = next((cidr for cidr in self.lists.get(each.family, ()) if cidr.overlaps(each)), None)
            units = [unit for unit in self.units(around) if unit.overlaps(each)] if around else []
            full = around and all(unit in self.used for unit in self.units(around))
            if full or not units or all(unit in self.used for unit in units):
                return
            taken.update(units)
        self.used |= taken

    def gives(self) -> list[Block]:
        """Return all that it gives out until it is full."""
        return [
            unit
            for cidrs in self.lists.values()
            for cidr in cidrs
            for unit in self.units(cidr)
            if unit not in self.used
        ]


def within(family: int, first: int, bits: int) -> st.SearchStrategy[Block]:
    """Make blocks of up to 2^bits addresses, of addresses from `first` on."""
    return st.builds(
        lambda size, at: Block(family, first + (at >> size << size), BITS[family] - size),
        st.integers(4, bits),
        st.integers(0, (1 << bits) - 1),
    )


FOUR, SIX = within(4, 10 << 24, 10), within(6, 0xFD << 120, 10)
NODE = st.one_of(st.tuples(FOUR, SIX), st.tuples(FOUR), st.tuples(SIX)).map(list)


@given(
    ranges_of=st.lists(st.one_of(FOUR, SIX), min_size=1, max_size=6),
    reserved=st.lists(st.one_of(FOUR, SIX), max_size=4),
    nodes=st.lists(st.tuples(NODE, NODE), max_size=6),
    order=st.randoms(use_true_random=False),
)
def test_what_a_node_shows_or_will_show_or_is_reserved_is_never_given_out(
    ranges_of: list[Block],
    reserved: list[Block],
    nodes: list[tuple[list[Block], list[Block]]],
    order: random.Random,
) -> None:
    """Nodes show the blocks of the lock, or those of their CiliumNodes in the input, when the operator starts."""
    cidrs = [str(each) for each in outermost(ranges_of)]
    in_use: list[tuple[list[Block], list[Block]]] = []
    for shown, held in nodes:
        both, others = [*shown, *held], [each for pair in in_use for some in pair for each in some]
        if not any(each.overlaps(other) for each in both for other in others):
            in_use.append((shown, order.choice((shown, held, []))))
    of = cluster(
        pool("a", *cidrs, unlisted=True, reserved=[str(each) for each in reserved]),
        seen={f"s{index}": [str(each) for each in shown] for index, (shown, _) in enumerate(in_use)},
        families=tuple(sorted({each.family for each in ranges_of})),
    )
    lines = [line(str(each), f"s{index}", "a") for index, (_, held) in enumerate(in_use) for each in held]
    started = [order.choice((shown, held or shown)) for shown, held in in_use]
    operator = Operator(operator_lists(of, lines, MASKS), order.sample(started, len(started)))
    kept = [*reserved, *(each for blocks in started for each in blocks)]
    assert [unit for unit in operator.gives() if any(unit.overlaps(each) for each in kept)] == []


def test_the_block_of_a_node_that_moves_away_stays_in_the_list() -> None:
    of = cluster(
        pool("a", "10.0.0.0/25", unlisted=True), pool("b", "10.1.0.0/24"), seen={"n": ["10.0.0.0/26"]}
    )
    assert lists(of, line("10.0.0.0/26", "n", "a", State.QUARANTINED), line("10.1.0.0/26", "n", "b")) == {
        4: "10.0.0.0/25"
    }
