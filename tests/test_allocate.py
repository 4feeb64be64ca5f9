"""Newcomers are placed as the plainest reading of the rules places them, and nobody else is touched."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipamc.allocate import allocate
from ipamc.cidr import BITS, Block
from ipamc.diagnostics import Severity
from ipamc.model import Cluster, Lacking, Line, Mode, Node, Offer, Pool, PoolFamily, Range, Standing, Want
from tests.brute_force import brute_force
from tests.pools import AT, TODAY, block, cluster, line, offer, pool, standing, want

# Two windows of 256 addresses, 10.0.0.0/24 and fd00::/120, in which everything overlaps everything else soon enough.
BASE = {4: 10 << 24, 6: 0xFD << 120}
NODES = ("a", "b", "c", "d", "e")
DAYS = ("2026-11-10", "2026-11-17", "2026-11-18", "2026-11-20", TODAY)


def blocks(family: int, shortest: int = 24, longest: int = 32, slots: tuple[int, int] = (0, 256)) -> st.SearchStrategy[Block]:
    """Draw blocks of a window; prefix lengths are said as for IPv4."""

    def make(prefix: int, at: int) -> Block:
        size = 1 << (32 - prefix)
        return Block(family, BASE[family] + (slots[0] + at % (slots[1] - slots[0])) // size * size, prefix + BITS[family] - 32)

    return st.builds(make, st.integers(shortest, longest), st.integers(0, 255))


def disjoint(some: list[Block]) -> list[Block]:
    chosen: list[Block] = []
    for each in some:
        if not any(each.overlaps(other) for other in chosen):
            chosen.append(each)
    return chosen


@dataclass
class World:
    cluster: Cluster
    standing: Standing


@st.composite
def worlds(draw: st.DrawFn) -> World:
    families = draw(st.sampled_from([(4,), (6,), (4, 6), (6, 4)]))
    mode = draw(st.sampled_from([Mode.CLUSTER_POOL, Mode.CLUSTER_POOL, Mode.MULTI_POOL]))
    pools = [draw(a_pool(f"pool-{index}", families, (index * 64, index * 64 + 64))) for index in range(draw(st.integers(1, 3)))]
    lines = []
    for family in families:
        for each in disjoint(draw(st.lists(blocks(family, 25), max_size=12))):
            state = draw(st.sampled_from(["", "next", "released", "released", "released", *DAYS]))
            moved = state in DAYS and draw(st.booleans())
            lines.append(
                Line(
                    block=each,
                    node=draw(st.sampled_from((*NODES, "gone"))),
                    left=state if state in DAYS else "",
                    moved=moved,
                    next=state == "next",
                    released=state == "released",
                )
            )
    taken = [each for family in families for each in draw(st.lists(blocks(family, 29), max_size=1))]
    excluded = tuple(Range(each, AT) for family in families for each in draw(st.lists(blocks(family, 28), max_size=1)))
    made = replace(
        cluster(*pools, nodes=NODES, mode=mode, families=families, days=draw(st.sampled_from([None, 0, 3, 7]))), excluded=excluded
    )
    lacking = [each for node in NODES for each in draw(wants(node, pools, families, mode))]
    return World(made, replace(standing(lines, draw(st.permutations(lacking))), taken=tuple(Range(each, AT) for each in taken)))


@st.composite
def a_pool(draw: st.DrawFn, name: str, families: tuple[int, ...], slots: tuple[int, int]) -> Pool:
    has = draw(st.lists(st.sampled_from(families), min_size=1, unique=True))
    parts, pins, reserved = {}, {}, []
    for family in sorted(has):
        some = disjoint(draw(st.lists(blocks(family, 26, 30, slots), min_size=1, max_size=3)))
        size = draw(st.integers(27, 32)) + BITS[family] - 32
        parts[family] = PoolFamily(family=family, ranges=tuple(Range(each, AT) for each in some), block_size=size, at=AT)
        reserved += draw(st.lists(blocks(family, 29, 32, slots), max_size=1))
        for node in draw(st.lists(st.sampled_from((*NODES, "gone")), max_size=2)):
            pins.setdefault(node, []).append(Range(draw(blocks(family, 29, 32, slots)), AT))
    return replace(
        pool(name, disabled=draw(st.integers(0, 9)) == 0, unlisted=draw(st.integers(0, 9)) == 0),
        families=parts,
        reserved=tuple(Range(each, AT) for each in reserved),
        pins={node: tuple(some) for node, some in pins.items()},
    )


@st.composite
def wants(draw: st.DrawFn, node: str, pools: list[Pool], families: tuple[int, ...], mode: Mode) -> list[Lacking]:
    def some_offer(of: Pool, instead: tuple[Offer, ...] = ()) -> Offer:
        other = draw(st.integers(-2, 2))
        return Offer(of, {family: min(part.block_size + other, BITS[family]) for family, part in of.families.items()}, instead)

    offers = []
    for each in draw(st.lists(st.sampled_from(pools), unique_by=lambda each: each.name)):
        others = draw(st.lists(st.sampled_from(pools), max_size=2, unique_by=lambda each: each.name))
        offers.append(some_offer(each, tuple(some_offer(other) for other in others if other.name != each.name)))
    made = want(node, *offers)
    if not mode.one_block:
        counts = [{family: draw(st.integers(1, 3)) for family in families if family in each.sizes} for each in offers]
        return [Lacking(made, tuple(count), each, count) for each, count in zip(offers, counts, strict=True)]
    missing = draw(st.lists(st.sampled_from(families), unique=True))
    return [Lacking(made, tuple(family for family in families if family in missing))] if missing else []


@settings(max_examples=400, deadline=None)
@given(worlds())
def test_equals_the_plainest_model(world: World) -> None:
    plan, found = allocate(world.cluster, (), world.standing, TODAY)
    model = brute_force(world.cluster, world.standing, TODAY)
    assert list(plan.lock.lines) == sorted(model.lines, key=lambda each: each.block)
    assert plan.origins == model.new
    assert {each.code for each in found} == {code for code, _ in model.refused}
    assert all(each.severity is Severity.ERROR for each in found)
    for code, node in model.refused:
        assert any(each.code == code and node in each.message for each in found)


@settings(max_examples=200, deadline=None)
@given(worlds(), st.randoms(use_true_random=False))
def test_laws(world: World, random: object) -> None:
    before = world.standing.lock.lines
    plan, _ = allocate(world.cluster, (), world.standing, TODAY)
    lines = plan.lock.lines
    assert all(not one.block.overlaps(other.block) for one, other in zip(lines, lines[1:], strict=False))

    new = [each for each in lines if each not in before]
    ranges = {(each.name, part.block) for each in world.cluster.pools for some in each.families.values() for part in some.ranges}
    assert {each.block for each in new} == set(plan.origins)
