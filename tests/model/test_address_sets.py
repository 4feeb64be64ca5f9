"""Sets of addresses, against the plainest reading of each contract: every address, or every pair, is looked at."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netaddr import IPNetwork, IPSet  # type: ignore[import-untyped] # it has no types

from ipamc.model.address_sets import (
    addresses_taken,
    blocks_over,
    covers,
    gaps,
    index_around,
    largest_aligned,
    lines_over,
    nested,
    outermost,
    overlaps,
    shared,
    subtract,
)
from ipamc.model.cidr import BITS, Block
from ipamc.model.lock import Line

# Windows of 64 addresses: at the first and last addresses of both families, and in the middle.
WINDOWS = [(family, first) for family in (4, 6) for first in (0, 10 << 24, (1 << BITS[family]) - 64)]
Named = tuple[Block, int]


def in_window(family: int, first: int) -> st.SearchStrategy[Block]:
    def make(bits: int, at: int) -> Block:
        return Block(family, first + (at >> bits << bits), BITS[family] - bits)

    return st.builds(make, st.integers(0, 6), st.integers(0, 63))


blocks = st.sampled_from(WINDOWS).flatmap(lambda window: in_window(*window))
one_window = st.sampled_from(WINDOWS).flatmap(
    lambda window: st.tuples(in_window(*window), st.lists(in_window(*window), max_size=8))
)
"""A block, and some that lie about it."""


def numbers(*some: Block) -> set[tuple[int, int]]:
    return {(one.family, number) for one in some for number in range(one.first, one.last + 1)}


def block_of(named: Named) -> Block:
    return named[0]


def disjoint(some: list[Block]) -> list[Block]:
    chosen: list[Block] = []
    for one in some:
        if not any(one.overlaps(other) for other in chosen):
            chosen.append(one)
    return sorted(chosen)


@given(st.lists(blocks, max_size=12))
def test_an_overlap_is_yielded_once_for_each_inner_block_with_the_largest_around_it(
    some: list[Block],
) -> None:
    named = list(zip(some, range(len(some)), strict=True))
    ordered = sorted(named, key=block_of)
    expected = []
    for index, inner in enumerate(ordered):
        around = [other for other in ordered[:index] if other[0].overlaps(inner[0])]
        expected += [(outer, inner) for outer in around[:1]]
    assert list(overlaps(named, block_of)) == expected


@given(st.lists(blocks, max_size=12))
def test_nested_yields_every_block_around_each(some: list[Block]) -> None:
    named = list(zip(some, range(len(some)), strict=True))
    ordered = sorted(named, key=block_of)
    assert [(item, list(around)) for item, around in nested(named, block_of)] == [
        (item, [other for other in ordered[:index] if other[0].contains(item[0])])
        for index, item in enumerate(ordered)
    ]


@given(st.lists(blocks, max_size=12))
def test_outermost_blocks_are_disjoint_and_cover_the_same(some: list[Block]) -> None:
    found = outermost(some)
    assert found == sorted(found)
    assert not any(one.overlaps(other) for one, other in pairwise(found))
    assert set(found) <= set(some)
    assert numbers(*found) == numbers(*some)


@given(st.lists(blocks, max_size=12), blocks)
def test_what_lies_over_a_block(some: list[Block], block: Block) -> None:
    ordered = disjoint(some)
    lines = [Line(block=one, node="n") for one in ordered]
    assert blocks_over(ordered, block) == [one for one in ordered if one.overlaps(block)]
    assert lines_over(lines, block) == [line for line in lines if line.block.overlaps(block)]
    around = [index for index, one in enumerate(ordered) if one.contains(block)]
    assert index_around(ordered, block) == (around[0] if around else None)


@given(one_window)
def test_gaps_are_the_runs_that_are_not_taken(given: tuple[Block, list[Block]]) -> None:
    block, some = given
    taken = sorted(one for one in some if one.overlaps(block))
    found = list(gaps(block, taken))
    free = {(block.family, number) for first, end in found for number in range(first, end)}
    assert free == numbers(block) - numbers(*taken)
    assert all(first < end for first, end in found)
    assert all(end < first for (_, end), (first, _) in pairwise(found))
    assert addresses_taken(block, taken) == block.size - len(free)


@given(blocks, st.lists(blocks, max_size=8))
def test_subtract_leaves_what_a_set_of_addresses_leaves_in_the_fewest_blocks(
    block: Block, without: list[Block]
) -> None:
    def of(some: list[Block]) -> IPSet:
        return IPSet([IPNetwork((one.first, one.prefix), version=one.family) for one in some])

    found = list(subtract(block, without))
    rest = of([block]) - of(without)
    assert found == [Block(block.family, one.first, one.prefixlen) for one in rest.iter_cidrs()]
    assert numbers(*found) == numbers(block) - numbers(*without)
    assert covers(without, block) == (not found)


@given(blocks, blocks)
def test_what_two_blocks_share(one: Block, other: Block) -> None:
    if one.overlaps(other):
        assert numbers(shared(one, other)) == numbers(one) & numbers(other)


@given(st.integers(0, 255), st.integers(1, 256))
def test_the_largest_aligned_block(first: int, length: int) -> None:
    sizes = [1 << bits for bits in range(9)]
    assert largest_aligned(first, first + length) == max(
        size for size in sizes if size <= length and first % size == 0
    )


@pytest.mark.parametrize(
    ("outer", "without", "expected"),
    [
        ("10.0.0.0/30", [], ["10.0.0.0/30"]),
        ("10.0.0.0/30", ["10.0.0.0/24"], []),
        ("10.0.0.0/29", ["10.0.0.3/32"], ["10.0.0.0/31", "10.0.0.2/32", "10.0.0.4/30"]),
        ("10.0.0.0/29", ["10.0.0.0/30", "10.0.0.0/31", "10.0.0.6/31"], ["10.0.0.4/31"]),
        (
            "0.0.0.0/0",
            ["0.0.0.0/32"],
            [
                f"{1 << bit >> 24}.{1 << bit >> 16 & 255}.{1 << bit >> 8 & 255}.{1 << bit & 255}/{32 - bit}"
                for bit in range(32)
            ],
        ),
        ("0.0.0.0/0", ["128.0.0.0/1"], ["0.0.0.0/1"]),
    ],
)
def test_pieces_are_the_largest_that_fit(outer: str, without: list[str], expected: list[str]) -> None:
    def plain(text: str) -> Block:
        address, _, prefix = text.partition("/")
        a, b, c, d = map(int, address.split("."))
        return Block(4, a << 24 | b << 16 | c << 8 | d, int(prefix))

    assert [str(one) for one in subtract(plain(outer), map(plain, without))] == expected
