"""For how many weeks there is room, on made histories of a lock: what is said, and when nothing is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.lock.file import parse
from ipamc.model.cidr import Block, parse_block
from ipamc.model.cluster import Cluster, Mode, Pool
from ipamc.report.runway import explanation, lasts, verdict
from ipamc.review.runway import WEEK, PoolRunway, Runway, edges, last_second, runway, to_read
from tests.support.builders import AT, pool

TODAY = "2026-11-22"
Holding = tuple[str, str, int]
"""Node, pool in the line, and number of the block: of 10.0.0.0/8, each of /27."""


def cluster(*pools: Pool, mode: Mode = Mode.CLUSTER_POOL) -> Cluster:
    return Cluster(name="lab", at=AT, cilium=(1, 18), managed_by="helm", mode=mode, pools=pools)


def rack(name: str, *cidrs: str, each: int = 1) -> Pool:
    return pool(name, *cidrs, size=27, blocks_per_node=each)


def lock(held: Sequence[Holding], others: Mapping[int, str] = {}, mode: str = "cluster-pool") -> bytes:
    """Return the text of a lock; `others` has further fields of lines by block."""
    rows = [json.dumps({"lock": 1, "cluster": "lab", "mode": mode, "shards": 1}, separators=(",", ":"))]
    for node, name, block in sorted(held, key=lambda line: line[2]):
        line = {"block": str(Block(4, (10 << 24) + 32 * block, 27)), "pool": name, "node": node}
        more = json.loads(f"{{{others[block]}}}") if block in others else {}
        rows.append(json.dumps(line | more, separators=(",", ":")))
    return "".join(f"{row}\n" for row in rows).encode()


def nodes(count: int, name: str = "a", begin: int = 0) -> list[Holding]:
    return [(f"{name}{number}", name, begin + number) for number in range(count)]


def told(now: Cluster, weekly: Sequence[bytes], mode: str = "cluster-pool") -> Runway:
    """Return what a history says that has a commit at noon of each week's last day, up to today."""
    noon = last_second(TODAY) - WEEK // 14
    seconds = [noon - WEEK * back for back in range(len(weekly) - 1, -1, -1)]
    last, _ = parse(weekly[-1], "ipam.lock")
    assert last is not None
    assert last.mode == mode
    return runway(now, last, seconds, [weekly[number] for number in to_read(seconds, TODAY)], TODAY)


def said(found: PoolRunway) -> str:
    return f"{verdict(found)}: {lasts(found)}"


A = cluster(rack("a", "10.0.0.0/20"))  # 128 blocks
WEEKS = range(41)

HISTORIES = {
    "linear": ([nodes(10 + 2 * week) for week in WEEKS], "filling: 19 weeks"),
    "in batches": ([nodes(10 + 2 * (week - week % 4)) for week in WEEKS], "filling: 15 to 26 weeks"),
    "a jump among growth": (
        [nodes(10 + week // 2 + (50 if week > 20 else 0)) for week in WEEKS],
        "filling: over 78 weeks",
    ),
    "one import": ([nodes(10 if week < 20 else 90) for week in WEEKS], "not filling: not filling"),
    "three commits only": (
        [nodes(10 + (week > 10) + (week > 20) + (week > 30)) for week in WEEKS],
        "nothing: unknown",
    ),
    "eleven weeks": ([nodes(10 + week) for week in range(12)], "nothing: unknown"),
    "shrinking": ([nodes(100 - 2 * week) for week in WEEKS], "not filling: not filling"),
    "no change": ([nodes(100) for week in WEEKS], "not filling: not filling"),
    "seasons": (
        [nodes(10 + sum((3, 4, 3, 0, -1, 0, -1, 2)[day % 40 // 5] for day in range(week))) for week in WEEKS],
        "filling: 19 weeks or more",
    ),
    "slow": ([nodes(10 + week // 4) for week in WEEKS], "filling: over 80 weeks"),
    "full": ([nodes(88 + week) for week in WEEKS], "full: full"),
}


@pytest.mark.parametrize(("weekly", "expected"), HISTORIES.values(), ids=HISTORIES)
def test_made_histories(weekly: Sequence[Sequence[Holding]], expected: str) -> None:
    found = told(A, [lock(held) for held in weekly])
    assert said(found.pools[0]) == expected


def test_every_number_comes_with_how_it_was_found() -> None:
    weekly = [nodes(10 + week + (60 if week > 20 else 0) + week % 2) for week in WEEKS]
    found = told(A, [lock(held) for held in weekly])
    assert (
        "\n".join(explanation(found.pools[0], TODAY))
        == """\
a /27: +62 in the week to 2026-07-12 is 62 % of the growth: no trend
a /27: fastest stretch, 1.09 a week: 18 / 1.09 = 16 weeks, until 2027-03-14
       middle stretch, 0.96 a week: 18 / 0.96 = 18 weeks, until 2027-03-28
       slowest stretch, 0.8 a week: 18 / 0.8 = 22 weeks, until 2027-04-25
       of 465 stretches of 10 to 39 weeks; 19 of 39 weeks had changes"""
    )


def test_nodes_that_move_are_no_growth() -> None:
    """Thirty nodes are renumbered from a to b, one a week, while one node more a week joins b."""
    both = cluster(rack("a", "10.0.0.0/22"), rack("b", "10.0.16.0/20"))
    weekly = []
    for week in range(31):
        moved = [(f"a{number}", "b", 512 + number) for number in range(week)]
        new = [(f"new{number}", "b", 560 + number) for number in range(week)]
        weekly.append(lock([*nodes(32)[week:], *moved, *new]))
    a, b = told(both, weekly).pools
    assert (a.growth.changed, int(a.switched), said(a)) == (0, -30, "not filling: not filling")
    assert (set(map(str, b.rates)), int(b.switched), said(b)) == ({"1"}, 29, "filling: over 58 weeks")


def test_a_move_takes_some_weeks() -> None:
    """A pending block is no growth, nor is it when it is held and the old one is in quarantine."""
    both = cluster(rack("a", "10.0.0.0/22"), rack("b", "10.0.4.0/22"))
    before = lock(nodes(5))
    pending = lock([*nodes(5), ("a0", "b", 32)], {32: '"pending":true'})
    settled = lock([*nodes(5), ("a0", "b", 32)], {0: '"quarantined":"2026-11-01","moved":true'})
    weekly = [before] * 10 + [pending] * 3 + [settled] * 3
    for found in told(both, weekly).pools:
        assert found.growth.changed == 0
        assert abs(found.switched) in {0, 1}


def test_nodes_that_leave_and_come_back_are_none_in_the_end() -> None:
    weekly = [
        lock(nodes(20), dict.fromkeys(range(20 - week % 2 * 3, 20), '"quarantined":"2026-11-01"'))
        for week in range(41)
    ]
    (found,) = told(A, weekly).pools
    assert found.rates[1] == 0
    assert said(found) == "filling: over 80 weeks"


def test_a_pool_that_is_enlarged_renamed_or_divided_keeps_its_history() -> None:
    """Blocks count for the pool of today in whose range they are; where none has them, by the name in the line."""
    weekly = [lock(nodes(10 + 2 * week)) for week in WEEKS]
    larger = told(cluster(rack("a", "10.0.0.0/20", "10.1.0.0/20")), weekly)
    assert larger.pools[0].rates[1] == 2
    assert said(larger.pools[0]) == "filling: over 80 weeks"
    renamed = told(cluster(rack("other", "10.0.0.0/20")), weekly)
    assert said(renamed.pools[0]) == "filling: 19 weeks"
    low, high = told(cluster(rack("low", "10.0.0.0/21"), rack("high", "10.0.8.0/21")), weekly).pools
    assert (low.weeks[-1].held + high.weeks[-1].held) == 90 * 32
    # The range was exchanged for another one: the lines still have the name.
    moved = [(node, name, block + 4096) for node, name, block in nodes(92)]
    exchanged = told(cluster(rack("a", "10.2.0.0/19")), [*weekly, lock(moved)])
    assert exchanged.pools[0].rates[1] == 2
    assert exchanged.pools[0].switched == 0


def test_a_pool_begins_with_its_first_nodes() -> None:
    """A pool that came last month has a history of a month, in which its first nodes are no growth."""
    both = cluster(rack("a", "10.0.0.0/22"), rack("b", "10.0.4.0/22"))
    weekly = [lock([*nodes(5), *(nodes(week - 10, "b", 32) if week > 30 else [])]) for week in WEEKS]
    b = told(both, weekly).pools[1]
    assert (len(b.weeks), said(b)) == (10, "nothing: unknown")
    assert list(explanation(b, TODAY)) == ["b /27: unknown: the history has 9 weeks, but a forecast needs 12"]


def test_several_blocks_a_node_and_both_families() -> None:
    """In multi-pool mode a node that gets a block more of a pool is growth; of another pool, it moved there."""
    pools = rack("a", "10.0.0.0/20", each=2), rack("b", "10.0.16.0/20")
    weekly = [
        lock(
            [*nodes(20), *((f"a{n}", "a", 40 + n) for n in range(week)), ("a0", "b", 128)][
                : 20 + week + (week > 15)
            ],
            mode="multi-pool",
        )
        for week in range(20)
    ]
    a, b = told(cluster(*pools, mode=Mode.MULTI_POOL), weekly, "multi-pool").pools
    assert a.rates[1] == 1
    assert (int(a.switched), a.nodes, a.blocks) == (0, (128 - 39) // 2, 88)
    assert (b.growth.changed, len(b.weeks)) == (0, 4)


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"<<<<<<< HEAD\n",
        b'{"lock":1,"cluster":"lab","mode":"cluster-pool","shards":1}\n{"block":"10.0.0.0/99","node":"x"}\n',
        b'{"lock":1,"cluster":"lab","mode":"cluster-pool","shards":1}\n{"block":[],"node":7}\n',
        b'{"lock":1,"cluster":"lab","mode":"cluster-pool","shards":1}\n{"node":"x"},{"node":"x"}\n',
        b'{"lock":1,"cluster":"lab","mode":"cluster-pool","shards":1}\n\xff\n',
    ],
)
@pytest.mark.parametrize("place", [0, 7, 20])
def test_a_version_that_cannot_be_read_is_passed_over(broken: bytes, place: int) -> None:
    weekly = [lock(nodes(10 + 2 * week)) for week in WEEKS]
    weekly[place] = broken
    found = told(A, weekly)
    assert found.unread == (place,)
    assert found.read == len(weekly) - 1
    assert found.pools[0].rates[1] == 2
    assert found.pools[0].weeks[-1].held == 90 * 32


DAY = 86_400


@pytest.mark.parametrize(
    ("days", "end", "versions"),
    [
        ([], 100, []),
        ([98], 100, [0]),
        ([79, 92, 99], 100, [0, 0, 1, 2]),
        ([0, 99], 1000, [1] * 53),
        ([50, 60, 70, 200], 100, [0, 0, 1, 2, 2, 2, 2, 2]),  # committed tomorrow, by its clock
        ([50, 60, 0, 70], 100, [0, 0, 1, 3, 3, 3, 3, 3]),  # a clock that began at 1970
        ([200], 100, []),
    ],
)
def test_the_ends_of_weeks(days: list[int], end: int, versions: list[int]) -> None:
    found = edges([DAY * day for day in days], DAY * end)
    assert [edge.version for edge in found] == versions
    assert [edge.second for edge in found] == [
        DAY * end - WEEK * back for back in range(len(versions) - 1, -1, -1)
    ]


def test_few_versions_are_read() -> None:
    """A commit a minute for three years: at most one a week of the last year is read."""
    end = last_second(TODAY)
    seconds = range(end - 3 * 365 * DAY, end, 3600)
    assert len(to_read(seconds, TODAY)) == 53


HOLDING = st.dictionaries(
    st.integers(0, 15), st.tuples(st.sampled_from("pqrst"), st.sampled_from("ab")), max_size=10
)


@given(st.lists(HOLDING, min_size=2, max_size=8))
def test_all_that_changes_is_growth_or_a_move(weekly: list[dict[int, tuple[str, str]]]) -> None:
    """Whatever happens between versions: growth and moves add up to what is held then."""
    now = cluster(rack("a", "10.0.0.0/24"), rack("b", "10.0.1.0/24"))
    texts = [lock([(node, name, block) for block, (node, name) in held.items()]) for held in weekly]
    for found in told(now, texts).pools:
        for before, after in zip(found.weeks, found.weeks[1:], strict=False):
            assert after.held - before.held == after.own + after.switched
        if found.weeks:
            inside = parse_block(str(found.use.ranges[0].range.block))
            held = [block for block in weekly[-1] if inside.contains(Block(4, (10 << 24) + 32 * block, 27))]
            assert found.weeks[-1].held == 32 * len(held)
