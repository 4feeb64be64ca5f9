"""Newcomers are placed as the plainest reading of the rules places them, and nobody else is touched."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ipamc.check import check
from ipamc.check.pools import check_pins
from ipamc.model.cidr import BITS, Block, Range
from ipamc.model.cluster import Cluster, Mode, Pool, PoolFamily
from ipamc.model.diagnostics import Severity, Span
from ipamc.model.lock import Line, State
from ipamc.model.plan import Demand, Offer, Origin, Reconciled, ShownBlock, Stale, StaleReason
from ipamc.place.allocate.allocate import allocate
from tests.support import depth
from tests.support.brute_force import brute_force
from tests.support.pools import AT, TODAY, block, cluster, offer, pool, reconciled, want

# Two windows of 256 addresses, 10.0.0.0/24 and fd00::/120, in which everything overlaps everything else soon enough.
BASE = {4: 10 << 24, 6: 0xFD << 120}
NODES = ("a", "b", "c", "d", "e")
DAYS = ("2026-11-10", "2026-11-17", "2026-11-18", "2026-11-20", TODAY)


@cache  # hypothesis takes longer to make a strategy than to draw from it
def blocks(
    family: int, shortest: int = 24, longest: int = 32, slots: tuple[int, int] = (0, 256)
) -> st.SearchStrategy[Block]:
    """Draw blocks of a window; prefix lengths are said as for IPv4."""

    def make(prefix: int, at: int) -> Block:
        size = 1 << (32 - prefix)
        return Block(
            family,
            BASE[family] + (slots[0] + at % (slots[1] - slots[0])) // size * size,
            prefix + BITS[family] - 32,
        )

    return st.builds(make, st.integers(shortest, longest), st.integers(0, 255))


def disjoint(some: list[Block]) -> list[Block]:
    chosen: list[Block] = []
    for each in some:
        if not any(each.overlaps(other) for other in chosen):
            chosen.append(each)
    return chosen


@dataclass
class World:
    """What an allocation is given."""

    cluster: Cluster
    reconciled: Reconciled


@st.composite
def worlds(draw: st.DrawFn) -> World:
    families = draw(st.sampled_from([(4,), (6,), (4, 6), (6, 4)]))
    mode = draw(st.sampled_from([Mode.CLUSTER_POOL, Mode.CLUSTER_POOL, Mode.MULTI_POOL]))
    pools = [
        draw(a_pool(f"pool-{index}", families, (index * 64, index * 64 + 64)))
        for index in range(draw(st.integers(1, 3)))
    ]
    lines = []
    for family in families:
        for each in disjoint(draw(st.lists(blocks(family, 25), max_size=12))):
            state = draw(
                st.sampled_from(
                    [State.HELD, State.PENDING, State.RELEASED, State.RELEASED, State.RELEASED, *DAYS]
                )
            )
            moved = state in DAYS and draw(st.booleans())
            lines.append(
                Line(
                    block=each,
                    node=draw(st.sampled_from((*NODES, "gone"))),
                    state=State.QUARANTINED if state in DAYS else State(state),
                    since=state if state in DAYS else "",
                    moved=moved,
                )
            )
    taken = [each for family in families for each in draw(st.lists(blocks(family, 29), max_size=1))]
    excluded = tuple(
        Range(each, AT) for family in families for each in draw(st.lists(blocks(family, 28), max_size=1))
    )
    made = replace(
        cluster(
            *pools, nodes=NODES, mode=mode, families=families, days=draw(st.sampled_from([None, 0, 3, 7]))
        ),
        excluded=excluded,
    )
    demands = [each for node in NODES for each in draw(wants(node, pools, families, mode))]
    return World(
        made,
        replace(
            reconciled(lines, draw(st.permutations(demands))),
            taken=tuple(ShownBlock(each, "gone", AT) for each in taken),
        ),
    )


@cache
@st.composite
def a_pool(draw: st.DrawFn, name: str, families: tuple[int, ...], slots: tuple[int, int]) -> Pool:
    has = draw(st.lists(st.sampled_from(families), min_size=1, unique=True))
    parts: dict[int, PoolFamily] = {}
    pins: dict[str, list[Range]] = {}
    reserved: list[Block] = []
    for family in sorted(has):
        some = disjoint(draw(st.lists(blocks(family, 26, 30, slots), min_size=1, max_size=3)))
        size = draw(st.integers(27, 32)) + BITS[family] - 32
        parts[family] = PoolFamily(
            family=family, ranges=tuple(Range(each, AT) for each in some), block_size=size, at=AT
        )
        reserved += draw(st.lists(blocks(family, 29, 32, slots), max_size=1))
        nodes = draw(st.lists(st.sampled_from((*NODES, "gone")), max_size=2))
        for node, pin in zip(
            nodes, disjoint([draw(blocks(family, 29, 32, slots)) for _ in nodes]), strict=False
        ):
            pins.setdefault(node, []).append(Range(pin, AT))
    return replace(
        pool(name, disabled=draw(st.integers(0, 9)) == 0, unlisted=draw(st.integers(0, 9)) == 0),
        families=parts,
        reserved=tuple(Range(each, AT) for each in reserved),
        pins={node: tuple(some) for node, some in pins.items()},
    )


@st.composite
def wants(
    draw: st.DrawFn, node: str, pools: list[Pool], families: tuple[int, ...], mode: Mode
) -> list[Demand]:
    def some_offer(of: Pool, instead: tuple[Offer, ...] = ()) -> Offer:
        other = draw(st.integers(-2, 2))
        return Offer(
            of,
            {family: min(part.block_size + other, BITS[family]) for family, part in of.families.items()},
            instead,
        )

    offers = []
    number = st.sampled_from(range(len(pools)))
    for each in draw(st.lists(number, unique=True)):
        others = draw(st.lists(number, max_size=2, unique=True))
        offers.append(
            some_offer(pools[each], tuple(some_offer(pools[other]) for other in others if other != each))
        )
    made = want(node, *offers)
    if not mode.one_block:
        counts = [
            {family: draw(st.integers(1, 3)) for family in families if family in each.sizes}
            for each in offers
        ]
        return [Demand(made, tuple(count), each, count) for each, count in zip(offers, counts, strict=True)]
    missing = draw(st.lists(st.sampled_from(families), unique=True))
    return [Demand(made, tuple(family for family in families if family in missing))] if missing else []


@settings(max_examples=depth.examples(400), deadline=None)
@given(worlds())
def test_equals_the_plainest_model(world: World) -> None:
    plan, found = allocate(world.cluster, (), world.reconciled, TODAY)
    model = brute_force(world.cluster, world.reconciled, TODAY)
    assert list(plan.lock.lines) == sorted(model.lines, key=lambda each: each.block)
    assert plan.origins == model.new
    assert {each.code for each in found} == {code for code, _ in model.refused}
    assert all(each.severity is Severity.ERROR for each in found)
    for code, node in model.refused:
        assert any(each.code == code and node in each.message for each in found)


@settings(max_examples=depth.examples(200), deadline=None)
@given(worlds())
def test_no_address_has_two_owners_and_nothing_vanishes_too_soon(world: World) -> None:
    given = world.reconciled
    plan, _ = allocate(world.cluster, (), given, TODAY)
    lines = plan.lock.lines
    assert all(not one.block.overlaps(other.block) for one, other in pairwise(lines))

    new = {each.block: each for each in lines if each.block in plan.origins}
    pinned = {each for each, origin in plan.origins.items() if origin == "pin"}
    kept = [each.block for each in world.cluster.excluded] + [each.block for each in given.taken]
    kept += [each.block for each_pool in world.cluster.pools for each in each_pool.reserved]
    assert not any(each.overlaps(other) for each in new for other in kept)

    offers = {
        each.want.node.name: [other.pool.name for one in each.want.offers for other in (one, *one.instead)]
        for each in given.demands
    }
    ranges = {
        each.name: [one.block for part in each.families.values() for one in part.ranges]
        for each in world.cluster.pools
    }
    for each in new.values():
        assert each.pool in offers[each.node]
        assert each.block in pinned or any(one.contains(each.block) for one in ranges[each.pool])

    days = world.cluster.quarantine_days
    for each in set(given.lock.lines) - set(lines):
        over = [one for one in new if one.overlaps(each.block)]
        own = any(one in pinned and new[one].node == each.node for one in over)
        waited = (
            days is not None
            and each.since
            and date.fromisoformat(each.since) + timedelta(days) <= date.fromisoformat(TODAY)
        )
        assert over
        assert each.state is State.RELEASED or waited or (each.since and own)
    assert all(each.state is not State.HELD or each in plan.held[each.node] for each in lines)


@settings(max_examples=depth.examples(100), deadline=None)
@given(worlds(), st.randoms(use_true_random=False))
def test_order_of_input_does_not_matter_and_a_second_run_changes_nothing(
    world: World, chance: Random
) -> None:
    plan, found = allocate(world.cluster, (), world.reconciled, TODAY)
    demands = list(world.reconciled.demands)
    chance.shuffle(demands)
    again, same = allocate(world.cluster, (), replace(world.reconciled, demands=tuple(demands)), TODAY)
    assert (again, sorted(same, key=repr)) == (plan, sorted(found, key=repr))

    again_given = replace(world.reconciled, lock=plan.lock, held=plan.held, demands=())
    after, nothing = allocate(world.cluster, (), again_given, TODAY)
    assert (after.lock, after.held, nothing) == (plan.lock, plan.held, [])


def placed(made: Cluster, given: Reconciled) -> dict[str, list[str]]:
    """Return the new blocks by node, with their origins."""
    plan, found = allocate(made, (), given, TODAY)
    assert found == []
    result: dict[str, list[str]] = {}
    for each in plan.lock.lines:
        if each.block in plan.origins:
            result.setdefault(each.node, []).append(f"{each.block} {plan.origins[each.block]}")
    return result


def refusal(made: Cluster, given: Reconciled) -> list[str]:
    return [f"{each.code} {each.message}" for each in allocate(made, (), given, TODAY)[1]]


def demand(name: str, *offers: Offer, families: tuple[int, ...] = (4,)) -> Demand:
    return Demand(want(name, *offers), families)


def test_names_decide_the_order() -> None:
    rack = pool("rack", "10.0.1.0/28", "10.0.0.0/27")
    made = placed(cluster(rack), reconciled(demands=[demand(name, offer(rack)) for name in ("c", "a", "b")]))
    assert made == {
        "a": ["10.0.1.0/28 first fit"],
        "b": ["10.0.0.0/28 first fit"],
        "c": ["10.0.0.16/28 first fit"],
    }


def test_a_full_pool_is_replaced_by_those_that_may_and_by_no_other() -> None:
    full, twin, stranger = (
        pool("full", "10.0.0.0/28"),
        pool("twin", "10.0.1.0/28"),
        pool("stranger", "10.0.2.0/28"),
    )
    offers = (offer(full, instead=[offer(twin)]), offer(stranger))
    lines = ["10.0.0.0/28 x"]
    assert placed(cluster(full, twin, stranger), reconciled(lines, [demand("a", *offers)])) == {
        "a": ["10.0.1.0/28 first fit"]
    }
    assert refusal(
        cluster(full, twin, stranger),
        reconciled([*lines, "10.0.1.0/29 y"], [demand(name, *offers) for name in "ab"]),
    ) == [
        "IPC0303 pool full has no room for 2 nodes: a, b; IPv4 /28: 1 block, 1 held; 2 more are needed (32 addresses); skipped: pool twin is full, pool stranger may not replace it"
    ]


def test_a_family_comes_from_the_next_candidate_that_has_it() -> None:
    four, six = pool("four", "10.0.0.0/24"), pool("six", "fd00::/120")
    made = placed(
        cluster(four, six, families=(4, 6)),
        reconciled(demands=[demand("a", offer(four), offer(six), families=(4, 6))]),
    )
    assert made == {"a": ["10.0.0.0/28 first fit", "fd00::/124 first fit"]}
    assert refusal(
        cluster(four, families=(4, 6)),
        reconciled(demands=[demand(name, offer(four), families=(4, 6)) for name in "ab"]),
    ) == ["IPC0307 no candidate pool gives IPv6 to 2 nodes: a, b; pool four has no IPv6"]


def test_a_full_pool_is_replaced_for_what_it_was_asked_and_no_more() -> None:
    full, twin, dual, six = (
        pool("full", "10.0.0.0/28"),
        pool("twin", "10.1.0.0/28"),
        pool("dual", "10.2.0.0/28", "fd02::/120"),
        pool("six", "fd03::/120"),
    )
    offers = (offer(full, instead=[offer(twin), offer(dual)]), offer(six))
    made = placed(
        cluster(full, twin, dual, six, families=(4, 6)),
        reconciled(["10.0.0.0/28 x"], [demand("a", *offers, families=(4, 6))]),
    )
    assert made == {"a": ["10.1.0.0/28 first fit", "fd03::/124 first fit"]}


def test_a_dual_stack_pool_gives_both_or_none() -> None:
    dual, spare = pool("dual", "10.0.0.0/24", "fd00::/124"), pool("spare", "10.1.0.0/24", "fd01::/120")
    lines = ["fd00::/128 x"]
    made = placed(
        cluster(dual, spare, families=(4, 6)),
        reconciled(lines, [demand("a", offer(dual, instead=[offer(spare)]), families=(4, 6))]),
    )
    assert made == {"a": ["10.1.0.0/28 first fit", "fd01::/124 first fit"]}
    assert refusal(
        cluster(dual, families=(4, 6)), reconciled(lines, [demand("a", offer(dual), families=(4, 6))])
    ) == [
        "IPC0305 pool dual has room in IPv4 but not in IPv6 for 1 node: a; IPv6 /124: 1 block, less than 0.1 held, 0.9 free in pieces too small; 1 more is needed (16 addresses)"
    ]


def test_multi_pool_gives_every_block_that_is_missing() -> None:
    rack = pool("rack", "10.0.0.0/26", pins={"a": ["10.0.0.32/28"]})
    needs = offer(rack)
    made = cluster(rack, mode=Mode.MULTI_POOL)
    given = reconciled(["10.0.0.0/28 x"], [Demand(want("a", needs), (4,), needs, {4: 3})])
    assert placed(made, given) == {
        "a": ["10.0.0.16/28 first fit", "10.0.0.32/28 pin", "10.0.0.48/28 first fit"]
    }
    given = reconciled(["10.0.0.0/28 x"], [Demand(want("a", needs), (4,), needs, {4: 4})])
    assert refusal(made, given) == [
        "IPC0303 pool rack has no room for 1 node: a; IPv4 /28: 4 blocks, 4 held; 1 more is needed (16 addresses)"
    ]


@pytest.mark.parametrize("closed", ["disabled", "unlisted"])
def test_a_closed_pool_gives_pins_and_nothing_else(closed: str) -> None:
    shut = pool(
        "shut",
        "10.0.0.0/24",
        "fd00::/120",
        pins={"a": ["10.0.0.64/27"]},
        disabled=closed == "disabled",
        unlisted=closed == "unlisted",
    )
    rack = pool("rack", "10.1.0.0/24", "fd01::/120")
    made = cluster(shut, rack, families=(4, 6))
    assert placed(made, reconciled(demands=[demand("a", offer(shut), offer(rack), families=(4, 6))])) == {
        "a": ["10.0.0.64/27 pin", "fd01::/124 first fit"]
    }
    needs = offer(shut)
    multi = replace(made, mode=Mode.MULTI_POOL)
    assert placed(multi, reconciled(demands=[Demand(want("a", needs), (4,), needs, {4: 1})])) == {
        "a": ["10.0.0.64/27 pin"]
    }
    on_its_way = reconciled(["10.0.0.64/27 a pending"], [Demand(want("a", needs), (4,), needs, {4: 1})])
    assert placed(multi, on_its_way) == {}


def test_a_pin_is_kept_free_for_a_node_that_is_not_there() -> None:
    rack = pool("rack", "10.0.0.0/26", pins={"later": ["10.0.0.0/28"]})
    assert placed(cluster(rack), reconciled(demands=[demand("a", offer(rack))])) == {
        "a": ["10.0.0.16/28 first fit"]
    }


def test_a_pin_takes_released_lines_and_what_it_leaves_is_free() -> None:
    rack = pool("rack", "10.0.0.0/26", pins={"b": ["10.0.0.16/28"]})
    given = reconciled(
        ["10.0.0.0/27 gone released", "10.0.0.32/27 x"], [demand("a", offer(rack)), demand("b", offer(rack))]
    )
    assert placed(cluster(rack), given) == {"a": ["10.0.0.0/28 first fit"], "b": ["10.0.0.16/28 pin"]}


def test_a_pin_takes_what_its_own_node_left() -> None:
    rack = pool("rack", "10.0.0.0/24", pins={"a": ["10.0.0.0/28"], "b": ["10.0.0.16/28"]})
    given = reconciled(["10.0.0.0/27 a 2026-11-20*"], [demand("a", offer(rack)), demand("b", offer(rack))])
    assert placed(cluster(rack), given) == {"a": ["10.0.0.0/28 pin"], "b": ["10.0.0.16/28 pin"]}


@pytest.mark.parametrize(
    ("lines", "why", "way_out"),
    [
        (["10.0.0.0/27 b"], "10.0.0.0/27, which node b holds", "pin another block for node a"),
        (["10.0.0.0/28 b pending"], "which is pending for node b", "ipamc lock lab --release 10.0.0.0/28"),
        (
            ["10.0.0.0/29 b 2020-01-01"],
            "10.0.0.0/29, which has been in quarantine since 2020-01-01 (node b)",
            "ipamc lock lab --release 10.0.0.0/29",
        ),
    ],
)
def test_a_pin_takes_no_line_of_another_node(lines: list[str], why: str, way_out: str) -> None:
    rack = pool("rack", "10.0.0.0/24", pins={"a": ["10.0.0.0/28"]})
    _, (found,) = allocate(
        cluster(rack, nodes=["a"]), (), reconciled(lines, [demand("a", offer(rack))]), TODAY
    )
    assert found.code == "IPC0306"
    assert why in found.message
    assert way_out in found.help
    assert [each.at for each in found.also] == [Span("clusters/lab/ipam.lock")]


def test_two_pins_over_each_other_are_reported_with_both_ends() -> None:
    rack = pool("rack", "10.0.0.0/24", pins={"a": ["10.0.0.0/28"], "b": ["10.0.0.0/27"]})
    assert [(one.code, one.severity, one.at, one.also[0].at) for one in check(cluster(rack))] == [
        ("IPC0217", Severity.ERROR, AT / "10.0.0.0/28", AT / "10.0.0.0/27"),
    ]


@given(st.lists(st.tuples(st.sampled_from(NODES), st.integers(0, 2), blocks(4, 29)), max_size=6))
def test_pins_that_overlap_never_reach_the_allocator(drawn: list[tuple[str, int, Block]]) -> None:
    """Both who call `place`, the compile and `ipamc why`, stop at an error of `check`."""
    pools = [pool(f"pool-{index}", f"10.{index}.0.0/24") for index in range(3)]
    for node, index, pin in drawn:
        pins = pools[index].pins
        pools[index] = replace(pools[index], pins={**pins, node: (*pins.get(node, ()), Range(pin, AT))})
    found = [one for one in check_pins(cluster(*pools)) if one.code == "IPC0217"]
    assert bool(found) == (len(disjoint([pin for _, _, pin in drawn])) < len(drawn))
    assert all(one.severity is Severity.ERROR for one in found)


@pytest.mark.parametrize(
    ("reserved", "excluded", "taken"),
    [(["10.0.0.0/24"], [], []), ([], ["10.0.0.0/30"], []), ([], [], ["10.0.0.4/32"])],
)
def test_a_pin_takes_nothing_that_is_kept_from_everybody(
    reserved: list[str], excluded: list[str], taken: list[str]
) -> None:
    rack = pool("rack", "10.0.0.0/24", pins={"a": ["10.0.0.0/28"]}, reserved=reserved)
    (found,) = refusal(
        cluster(rack, excluded=excluded), reconciled(demands=[demand("a", offer(rack))], taken=taken)
    )
    assert found.startswith("IPC0306 pin 10.0.0.0/28 of node a overlaps 10.0.0.")


def test_five_hundred_nodes_without_room_are_one_finding() -> None:
    rack = pool("rack", "10.0.0.0/24", reserved=["10.0.0.192/26"])
    lines = [
        "10.0.0.0/25 x",
        "10.0.0.128/28 y 2026-11-20",
        "10.0.0.144/28 z 2026-11-18",
        "10.0.0.160/29 w",
        "10.0.0.176/29 w",
    ]
    _, (found,) = allocate(
        cluster(rack),
        (),
        reconciled(lines, [demand(f"n{index}", offer(rack)) for index in range(500)]),
        TODAY,
    )
    assert found.message == (
        "pool rack has no room for 500 nodes: n0, n1, n10, n100, n101 and 495 more; IPv4 /28: 16 blocks, 9 held, "
        "2 in quarantine (the next is free on 2026-11-25), 4 reserved, excluded or pinned, 1 free in pieces too small; "
        "500 more are needed (8,000 addresses)"
    )
    assert found.help == (
        "append a free /19 to cidrs of pool rack: ipamc suggest pool lab --pool rack --size 19; "
        "or if nothing uses 10.0.0.144/28: ipamc lock lab --release 10.0.0.144/28"
    )
    assert found.at == AT / "10.0.0.0/24"


def test_quarantine_without_end_is_told() -> None:
    rack = pool("rack", "10.0.0.0/28")
    (found,) = refusal(
        cluster(rack, days=None), reconciled(["10.0.0.0/27 x 2020-01-01"], [demand("a", offer(rack))])
    )
    assert "IPv4 /28: 1 block, 1 in quarantine for ever; 1 more is needed" in found


def test_what_is_reconciled_stays_in_the_plan() -> None:
    rack = pool("rack", "10.0.0.0/24", "fd00::/120")
    given = replace(
        reconciled(
            ["fd00::/124 a", "10.0.0.0/28 a", "10.0.0.16/28 b pending", "10.0.0.32/28 c"],
            [demand("d", offer(rack))],
        ),
        origins={block("10.0.0.32/28"): Origin.RETURNED},
        stale=(Stale(StaleReason.NEWCOMER, "d"),),
    )
    plan, _ = allocate(cluster(rack), (want("d", offer(rack)),), given, TODAY)
    assert {node: [str(each.block) for each in some] for node, some in plan.held.items()} == {
        "a": ["10.0.0.0/28", "fd00::/124"],
        "c": ["10.0.0.32/28"],
        "d": ["10.0.0.48/28"],
    }
    assert plan.origins == {block("10.0.0.32/28"): "returned", block("10.0.0.48/28"): "first fit"}
    assert plan.stale == given.stale
    assert [each.node.name for each in plan.wants] == ["d"]
