"""The merge of two locks: a table of what becomes of lines, and laws over histories that compiles could have made."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ipamc.lock.file import dumps, parse
from ipamc.lock.merge import Merged, merge
from ipamc.model.cidr import Block, parse_block
from ipamc.model.cluster import Mode
from ipamc.model.lock import Line, Lock, State

DAYS = tuple(f"2026-11-{day:02}" for day in range(1, 29))


def line(text: str) -> Line:
    """Read `10.0.0.0/26 a`, with `pending`, `released`, or `quarantined DAY` (also `moved` or `was_pending`), and `pool=NAME`."""
    cidr, node, *rest = text.split()
    words = {word for word in rest if word in {"pending", "released", "moved", "was_pending"}}
    since = next((f"2026-11-{word.zfill(2)}" for word in rest if word.isdigit()), "")
    pool = next((word.removeprefix("pool=") for word in rest if word.startswith("pool=")), "p")
    return Line(
        block=parse_block(f"10.0.0.{cidr}"),
        node=node,
        pool=pool,
        state=State.QUARANTINED if since else next((state for state in State if state in words), State.HELD),
        since=since,
        moved="moved" in words,
        was_pending="was_pending" in words,
    )


def lock(
    lines: str | Iterable[Line], *, mode: str = "cluster-pool", shards: int = 1, cluster: str = "lab"
) -> bytes:
    every = [line(each) for each in lines.split(",") if each.strip()] if isinstance(lines, str) else lines
    return dumps(Lock(cluster=cluster, mode=Mode(mode), shards=shards, lines=tuple(every))).encode()


def lines_of(text: bytes) -> dict[Block, Line]:
    found, problems = parse(text, "merged")
    assert found is not None
    assert not problems, problems
    return {each.block: each for each in found.lines}


def dropped(result: Merged) -> str:
    return ", ".join(
        f"{each.line.block} {each.line.node} for {each.holder.block} {each.holder.node} {each.trunk}"
        for each in result.dropped
    )


# base | ours | theirs | result; every row is also run with the sides swapped.
PLAIN = """
same on both sides         | 0/26 a            | 0/26 a 5                | 0/26 a 5                | 0/26 a 5
changed beats unchanged    | 0/26 a            | 0/26 a 5                | 0/26 a                  | 0/26 a 5
new on one side            |                   | 0/26 a                  |                         | 0/26 a
new on both sides          |                   | 0/26 a                  | 64/26 b                 | 0/26 a, 64/26 b
held beats quarantined     | 0/26 a 5          | 0/26 a                  | 0/26 a released         | 0/26 a
quarantined beats released | 0/26 a            | 0/26 a released         | 0/26 a 5                | 0/26 a 5
the later day              | 0/26 a            | 0/26 a 5                | 0/26 a 9                | 0/26 a 9
moved stays moved          | 0/26 a            | 0/26 a 5 moved, 64/26 a | 0/26 a 9                | 0/26 a 9 moved, 64/26 a
held beats pending         | 0/26 a            | 0/26 a, 64/26 a pending    | 0/26 a 5 moved, 64/26 a | 0/26 a 5 moved, 64/26 a
completed beats cancelled  | 0/26 a, 64/26 a pending | 0/26 a, 64/26 a released | 0/26 a 5 moved, 64/26 a | 0/26 a 5 moved, 64/26 a
pending beats quarantined  | 0/26 a 5, 64/26 a 5 was_pending | 0/26 a, 64/26 a pending | 0/26 a released, 64/26 a released | 0/26 a, 64/26 a pending
used again on one side     | 0/26 a 5          | 0/26 b                  | 0/26 a 5                | 0/26 b
used again as larger       | 0/26 a 5, 64/26 b 5 | 0/25 c                | 0/26 a 5, 64/26 b 5     | 0/25 c
used again as smaller      | 0/25 a 5          | 0/26 b                  | 0/25 a 5                | 0/26 b
changed beats removed      | 0/26 a 5, 64/26 b 5 | 0/25 c                | 0/26 a, 64/26 b 5       | 0/26 a, 64/26 b 5
a reverted newcomer stays  | 0/26 a, 64/26 b   | 0/26 a                  | 0/26 a, 64/26 b, 128/26 c | 0/26 a, 64/26 b, 128/26 c
a reverted re-use stays    | 0/26 b            | 0/26 a 5                | 0/26 b, 64/26 c         | 0/26 b, 64/26 c
a rename stands            | 0/26 a            | 0/26 b                  | 0/26 a, 64/26 c         | 0/26 b, 64/26 c
the pool follows           | 0/26 a            | 0/26 a pool=q           | 0/26 a 5                | 0/26 a 5 pool=q
no line vanishes           | 96/28 d           | 64/28 a, 96/27 c        | 64/26 b, 0/28 c         | 0/28 c, 64/28 a, 96/28 d released
the base knew the block    | 0/26 a 5          | 0/26 a                  | 0/25 0                  | 0/26 a
"""


def rows(table: str) -> list[tuple[str, ...]]:
    return [tuple(cell.strip() for cell in row.split("|")) for row in table.strip().splitlines()]


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "result"),
    [row[1:] for row in rows(PLAIN)],
    ids=[row[0] for row in rows(PLAIN)],
)
def test_lines(base: str, ours: str, theirs: str, result: str) -> None:
    for one, two in ((ours, theirs), (theirs, ours)):
        merged = merge(lock(base), lock(one), lock(two))
        assert merged.text.decode() == lock(result).decode()
        assert not merged.conflicts


# ours | theirs | trunk | result | dropped
CLASHES = """
the smaller name     | 0/26 b           | 0/26 a           |                  | 0/26 a           | 10.0.0.0/26 b for 10.0.0.0/26 a None
the trunk's          | 0/26 b           | 0/26 a           | 0/26 b           | 0/26 b           | 10.0.0.0/26 a for 10.0.0.0/26 b 0
any size             | 0/25 b           | 0/26 c, 64/26 a  |                  | 0/26 c, 64/26 a  | 10.0.0.0/25 b for 10.0.0.64/26 a None
the trunk's smaller  | 0/25 a           | 64/26 b          | 64/26 b          | 64/26 b          | 10.0.0.0/25 a for 10.0.0.64/26 b 0
the trunk's leaver   | 0/26 a           | 0/26 b 5         | 0/26 b 5         | 0/26 b 5         | 10.0.0.0/26 a for 10.0.0.0/26 b 0
no trunk's leaver    | 0/26 a           | 0/26 b 5         | 64/26 z          | 0/26 a           |
a trunk not known    | 0/26 a           | 0/26 b 5         |                  | 0/26 b 5         | 10.0.0.0/26 a for 10.0.0.0/26 b None
one node, lower      | 64/26 a          | 0/26 a           |                  | 0/26 a           | 10.0.0.64/26 a for 10.0.0.0/26 a None
one node, trunk's    | 64/26 a          | 0/26 a           | 64/26 a          | 64/26 a          | 10.0.0.0/26 a for 10.0.0.64/26 a 0
what is left of two  | 0/26 a, 64/26 b  | 0/26 b           | 0/26 b           | 0/26 b           | 10.0.0.0/26 a for 10.0.0.0/26 b 0, 10.0.0.64/26 b for 10.0.0.0/26 b 0
the other is taken   | 0/26 a, 64/26 b  | 0/26 b           |                  | 0/26 a, 64/26 b  | 10.0.0.0/26 b for 10.0.0.0/26 a None
held, then pending   | 0/26 a pending, 64/26 a | 0/26 b           |                  | 0/26 b, 64/26 a  | 10.0.0.0/26 a for 10.0.0.0/26 b None
the trunk's pair     | 0/26 a           | 0/26 a pending, 64/26 a | 0/26 a pending, 64/26 a | 0/26 a pending, 64/26 a |
two left, later day  | 0/26 b 5         | 0/25 a 6         |                  | 0/25 a 6         |
"""


@pytest.mark.parametrize(
    ("ours", "theirs", "trunk", "result", "names"),
    [row[1:] for row in rows(CLASHES)],
    ids=[row[0] for row in rows(CLASHES)],
)
def test_newcomers_that_clash(ours: str, theirs: str, trunk: str, result: str, names: str) -> None:
    for one, two in ((ours, theirs), (theirs, ours)):
        merged = merge(b"", lock(one), lock(two), lock(trunk) if trunk else None)
        assert merged.text.decode() == lock(result).decode()
        assert dropped(merged) == names
        assert not merged.conflicts


def test_a_set_of_blocks_is_taken_whole() -> None:
    ours, theirs = "0/28 a, 96/28 a, 32/28 b", "48/28 a, 64/28 a, 80/28 c"
    merged = merge(None, lock(ours, mode="multi-pool"), lock(theirs, mode="multi-pool"))
    assert merged.text == lock("0/28 a, 96/28 a, 32/28 b, 80/28 c", mode="multi-pool")
    assert [str(each.line.block) for each in merged.dropped] == ["10.0.0.48/28", "10.0.0.64/28"]
    trunk = lock("64/28 a", mode="multi-pool")
    merged = merge(None, lock(ours, mode="multi-pool"), lock(theirs, mode="multi-pool"), trunk)
    assert merged.text == lock("48/28 a, 64/28 a, 80/28 c, 32/28 b", mode="multi-pool")


def test_more_blocks_on_one_side_are_no_disagreement() -> None:
    both = (lock("0/28 a", mode="crd"), lock("0/28 a, 16/28 a", mode="crd"))
    assert merge(None, *both).text == both[1]


def test_a_move_is_taken_back_where_its_block_is_lost() -> None:
    base, moved, clash = lock("0/26 b"), lock("0/26 b 5 moved, 64/26 b"), lock("0/26 b, 64/26 a")
    for sides in ((moved, clash), (clash, moved)):
        merged = merge(base, *sides)
        assert merged.text == clash
        assert dropped(merged) == "10.0.0.64/26 b for 10.0.0.64/26 a None"


def test_a_block_that_a_node_moved_away_from_never_returns_under_another_name() -> None:
    """Both sides completed a renumber, one renamed the node: its new block gives way, and it moved all the same."""
    base = lock("64/26 n2, 192/26 n2 pending")
    trunk, renamed = lock("64/26 n2 21 moved, 192/26 n2"), lock("64/26 a-n2 21 moved, 192/26 a-n2")
    for ours, theirs in ((trunk, renamed), (renamed, trunk)):
        merged = merge(base, ours, theirs, trunk)
        assert merged.text == lock("64/26 a-n2 21 moved, 192/26 n2")
        assert [str(drop.line.block) for drop in merged.dropped] == ["10.0.0.192/26"]


def test_the_first_trunk_weighs_most() -> None:
    sides = lock("0/26 a"), lock("0/26 b")
    assert merge(None, *sides, lock("0/26 b"), lock("0/26 a")).text == sides[1]
    assert merge(None, *sides, lock("64/26 b"), lock("0/26 b")).text == sides[1]
    assert merge(None, *sides, b"rubbish", lock("0/26 b", cluster="other")).text == sides[0]
    assert merge(None, *sides, None, lock("0/26 b")).dropped[0].trunk == 1


# base | ours | theirs | trunk | result; today is the 20th.
DATED = """
new on a branch         | 0/26 a            | 0/26 a 5        | 0/26 a, 64/26 b    | 0/26 a, 64/26 b   | 0/26 a 20, 64/26 b
new on both             | 0/26 a            | 0/26 a 5        | 0/26 a 9, 64/26 b  | 0/26 a            | 0/26 a 20, 64/26 b
the same on both        | 0/26 a            | 0/26 a 5        | 0/26 a 5, 64/26 b  | 0/26 a            | 0/26 a 20, 64/26 b
the base has it alone   | 0/26 a 5          | 0/26 a 5, 64/26 b | 0/26 a 5, 64/26 c | 0/26 a           | 0/26 a 20, 64/26 b
the trunk's             | 0/26 a            | 0/26 a 5        | 64/26 b            | 0/26 a 5          | 0/26 a 5, 64/26 b
the trunk's, later here | 0/26 a            | 0/26 a 5        | 0/26 a 9           | 0/26 a 5          | 0/26 a 9
another node's there    | 0/26 a 5          | 0/26 b 5        | 0/26 a 5, 64/26 c  | 0/26 a 5, 64/26 c | 0/26 b 20, 64/26 c
another size there      | 0/25 a 5          | 0/26 a 5        | 0/25 a 5, 128/26 c | 0/25 a 5          | 0/26 a 20, 128/26 c
released there          | 0/26 a            | 0/26 a 5        | 0/26 a released    | 0/26 a released   | 0/26 a 20
moved                   | 0/26 a            | 0/26 a 5 moved, 64/26 a | 0/26 a, 128/26 b | 0/26 a      | 0/26 a 20 moved, 64/26 a, 128/26 b
pending when it left    | 0/26 a pending    | 0/26 a 5 was_pending | 0/26 a pending, 64/26 b | 64/26 b  | 0/26 a 20 was_pending, 64/26 b
of the future           | 0/26 a            | 0/26 a 25       | 0/26 a, 64/26 b    | 0/26 a            | 0/26 a 20, 64/26 b
no trunk, on one side   | 0/26 a            | 0/26 a 5        | 0/26 a, 64/26 b    |                   | 0/26 a 20, 64/26 b
no trunk, on both       | 0/26 a            | 0/26 a 5        | 0/26 a 9           |                   | 0/26 a 9
no trunk, of the future | 0/26 a            | 0/26 a 25       | 0/26 a, 64/26 b    |                   | 0/26 a 25, 64/26 b
no trunk, not held      | 0/26 a            | 0/26 a released | 0/26 a, 64/26 b    |                   | 0/26 a released, 64/26 b
"""


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "trunk", "result"),
    [row[1:] for row in rows(DATED)],
    ids=[row[0] for row in rows(DATED)],
)
def test_a_quarantine_that_the_trunk_does_not_have_begins_today(
    base: str, ours: str, theirs: str, trunk: str, result: str
) -> None:
    for one, two in ((ours, theirs), (theirs, ours)):
        merged = merge(lock(base), lock(one), lock(two), lock(trunk) if trunk else None, today="2026-11-20")
        assert merged.text.decode() == lock(result).decode()
        assert not merged.conflicts


def test_the_first_trunk_that_is_known_tells_the_days() -> None:
    sides = lock("0/26 a"), lock("0/26 a 5"), lock("0/26 a, 64/26 b")
    has, lacks = lock("0/26 a 5"), lock("0/26 a")
    for trunks, day in (((has, lacks), 5), ((lacks, has), 20), ((None, b"rubbish", has), 5)):
        merged = merge(*sides, *trunks, today="2026-11-20")
        assert merged.text == lock(f"0/26 a {day}, 64/26 b")


APART = """
two pending       | 0/26 a               | 0/26 a, 64/26 a pending    | 0/26 a, 128/26 a pending    | 64/26, 128/26
two completed  | 0/26 a               | 0/26 a 5 moved, 64/26 a | 0/26 a 5 moved, 128/26 a | 64/26, 128/26
pending, completed | 0/26 a               | 0/26 a, 64/26 a pending    | 0/26 a 5 moved, 128/26 a | 64/26, 128/26
again, completed | 0/26 a, 64/26 a pending | 0/26 a, 64/26 a released, 128/26 a pending | 0/26 a 5 moved, 64/26 a | 128/26, 64/26
"""


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "places"),
    [row[1:] for row in rows(APART)],
    ids=[row[0] for row in rows(APART)],
)
def test_renumbered_to_two_places_is_for_people(base: str, ours: str, theirs: str, places: str) -> None:
    for one, two, where in ((ours, theirs, places.split(", ")), (theirs, ours, places.split(", ")[::-1])):
        merged = merge(
            lock(f"{base}, 192/28 k"),
            lock(f"{one}, 192/28 k, 208/28 x"),
            lock(f"{two}, 192/28 k 7, 224/28 y"),
        )
        assert merged.conflicts == (
            f"node a is renumbered to two places: 10.0.0.{where[0]} and 10.0.0.{where[1]}",
        )
        for side, picked in ((one, "ours"), (two, "theirs")):
            assert resolved(merged.text, picked) == lock(f"{side}, 192/28 k 7, 208/28 x, 224/28 y").decode()


def test_both_parts_of_a_conflict_begin_today() -> None:
    base, ours, theirs = "0/26 a", "0/26 a 5 moved, 64/26 a", "0/26 a 9 moved, 128/26 a"
    merged = merge(lock(base), lock(ours), lock(theirs), lock(base), today="2026-11-20")
    assert merged.conflicts
    assert resolved(merged.text, "ours") == lock("0/26 a 20 moved, 64/26 a").decode()
    assert resolved(merged.text, "theirs") == lock("0/26 a 20 moved, 128/26 a").decode()


def resolved(text: bytes, side: str) -> str:
    """Take one side of every conflict, as an editor's button does."""
    kept, at = [], ""
    for row in text.decode().splitlines(keepends=True):
        if row.startswith(("<<<<<<<", "=======", ">>>>>>>")):
            at = {"<": "ours", "=": "theirs", ">": ""}[row[0]]
        elif at in {"", side}:
            kept.append(row)
    return "".join(kept)


def test_what_a_person_has_to_settle_does_not_push_out_the_trunks() -> None:
    base, ours, theirs = (
        lock("0/26 b"),
        lock("0/26 b, 64/26 b pending"),
        lock("0/26 b, 128/26 b pending, 64/26 a"),
    )
    merged = merge(base, ours, theirs, theirs)
    assert merged.conflicts
    assert resolved(merged.text, "theirs") == theirs.decode()
    assert dropped(merged) == "10.0.0.64/26 b for 10.0.0.64/26 a 0"


HEADERS = [
    (1, 2, 1, 2),
    (1, 2, 4, 4),
    (4, 2, 4, 2),
    (None, 2, 4, 4),
]


@pytest.mark.parametrize(("base", "ours", "theirs", "shards"), HEADERS)
def test_shards(base: int | None, ours: int, theirs: int, shards: int) -> None:
    before = lock("", shards=base) if base else None
    merged = merge(before, lock("0/26 a", shards=ours), lock("64/26 b", shards=theirs))
    assert merged.text == lock("0/26 a, 64/26 b", shards=shards)


def test_a_mode_changes_on_one_side() -> None:
    merged = merge(lock(""), lock("0/26 a", mode="multi-pool"), lock("64/26 b"))
    assert merged.text == lock("0/26 a, 64/26 b", mode="multi-pool")


GOOD = lock("0/26 a")
BROKEN = {
    "two clusters": (lock("64/26 b", cluster="prod"), "these are locks of two clusters, lab and prod"),
    "two modes": (lock("64/26 b", mode="crd"), "these are locks of two modes, cluster-pool and crd"),
    "a newer format": (
        GOOD.replace(b'"lock":1', b'"lock":2'),
        "theirs: lock format 2 is unknown: this version of ipamc reads format 1",
    ),
    "markers": (GOOD + b"<<<<<<< HEAD\n", "theirs: line 3 is a conflict marker"),
    "an overlap": (
        GOOD + b'{"block":"10.0.0.0/28","pool":"p","node":"b"}\n',
        "theirs: 10.0.0.0/28 of node b overlaps 10.0.0.0/26 of node a",
    ),
    "nothing": (b"", "theirs: the lock is empty: the record of which node holds which block is lost"),
    "no lock": (b"\xff\x00", "theirs: line 1: not the header line of a lock"),
    "edited": (GOOD.replace(b":1}", b": 1}"), "theirs: line 1 is not as ipamc writes it"),
}


@pytest.mark.parametrize(("theirs", "why"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_merged_is_left_with_markers(theirs: bytes, why: str) -> None:
    merged = merge(None, GOOD, theirs)
    assert len(merged.conflicts) == 1
    assert merged.conflicts[0].startswith(why)
    assert b"<<<<<<< ours\n" in merged.text
    assert b">>>>>>> theirs\n" in merged.text
    assert resolved(merged.text.replace(b"\xff", b""), "ours") == GOOD.decode()
    swapped = merge(None, theirs, GOOD)
    assert swapped.conflicts[0].replace("ours", "theirs") == merged.conflicts[0]


def test_a_base_is_asked_what_it_knows() -> None:
    """A merge that slipped through and was repaired since is no reason to refuse those that come after."""
    clash = GOOD + b'{"block":"10.0.0.0/28","pool":"p","node":"b"}\n'
    assert merge(clash, GOOD, lock("0/26 a, 64/26 b")).text == lock("0/26 a, 64/26 b")
    assert (
        merge(b"<<<<<<<\n", GOOD, lock("0/26 a, 64/26 b"))
        .conflicts[0]
        .startswith("base: line 1 is a conflict marker")
    )


# Laws, over histories that compiles could have made.

NODES = "abcdef"
PLACES = [
    Block(4, 0x0A000000 + offset, prefix)
    for prefix in (26, 27, 28)
    for offset in range(0, 128, 1 << (32 - prefix))
]
Step = tuple[str, str, str, Block]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("place", "place", "leave", "back", "release", "renumber", "settle", "rename")),
        st.sampled_from(NODES),
        st.sampled_from(NODES),
        st.sampled_from(PLACES),
    ),
    min_size=4,
    max_size=24,
)


@dataclass
class History:
    """A lock as it grows: each step does what a compile may do, or nothing."""

    lines: dict[Block, Line]
    mode: Mode
    day: int = 0

    def step(self, verb: str, node: str, other: str, place: Block) -> None:
        mine = [
            each for each in self.lines.values() if each.node == node and each.state is not State.RELEASED
        ]
        held, pending = (
            [each for each in mine if each.state is State.HELD],
            [each for each in mine if each.state is State.PENDING],
        )
        today = DAYS[self.day]
        if verb == "place" and not (held and self.mode.one_block):
            self.put(Line(block=place, node=node, pool="p"))
        elif verb == "leave":
            self.change(
                *(
                    replaced(
                        each, state=State.QUARANTINED, since=today, was_pending=each.state is State.PENDING
                    )
                    for each in held + pending
                )
            )
        elif verb == "back" and not held:
            gone = sorted(
                (
                    each
                    for each in mine
                    if each.since and not each.moved and not (each.was_pending and pending)
                ),
                key=lambda each: each.since,
            )
            last = {each.was_pending: each for each in gone}.values()
            self.change(
                *(
                    replaced(
                        each,
                        state=State.PENDING if each.was_pending else State.HELD,
                        since="",
                        was_pending=False,
                    )
                    for each in (last if self.mode.one_block else gone)
                )
            )
        elif verb == "release":
            self.change(
                *(
                    Line(block=each.block, node=node, pool="p", state=State.RELEASED)
                    for each in mine
                    if each.state is not State.HELD
                )
            )
        elif verb == "renumber" and held and not pending:
            self.put(Line(block=place, node=node, pool="p", state=State.PENDING))
        elif verb == "settle" and pending and held:
            self.change(
                *(replaced(each, state=State.QUARANTINED, since=today, moved=True) for each in held),
                *(replaced(each, state=State.HELD) for each in pending),
            )
        elif verb == "rename" and not any(each.node == other and each.in_use for each in self.lines.values()):
            self.change(*(replaced(each, node=other) for each in mine))

    def change(self, *lines: Line) -> None:
        self.lines.update({each.block: each for each in lines})

    def put(self, new: Line) -> None:
        below = [each for each in self.lines.values() if each.block.overlaps(new.block)]
        if all(
            each.state is State.RELEASED or (each.since and each.since < DAYS[self.day]) for each in below
        ):
            for each in below:
                del self.lines[each.block]
            self.change(new)

    def text(self) -> bytes:
        return lock(self.lines.values(), mode=self.mode.value)


def replaced(old: Line, **fields: object) -> Line:
    return msgspec.structs.replace(old, **fields)


def grown(history: History, steps: Iterable[Step]) -> History:
    result = History(dict(history.lines), history.mode, history.day)
    for index, step in enumerate(steps):
        result.day = min(history.day + index // 3, len(DAYS) - 1)
        result.step(*step)
    return result


@dataclass(frozen=True)
class Fork:
    """A base, two sides that grew out of it, and a trunk, which may be neither."""

    base: bytes
    ours: bytes
    theirs: bytes
    trunk: bytes | None
    today: str
    """Of quarantines that the trunk does not have; "": they keep their days."""

    def merged(self) -> Merged:
        return merge(self.base, self.ours, self.theirs, self.trunk, today=self.today)


@st.composite
def forks(draw: st.DrawFn) -> Fork:
    mode = draw(st.sampled_from((Mode.CLUSTER_POOL, Mode.MULTI_POOL)))
    base = grown(History({}, mode), draw(STEPS))
    ours, theirs, third = (grown(base, draw(STEPS)) for _ in range(3))
    trunk = draw(st.sampled_from((None, ours, theirs, base, third)))
    today = draw(st.sampled_from(("", DAYS[4], DAYS[-1])))
    return Fork(base.text(), ours.text(), theirs.text(), trunk.text() if trunk else None, today)


@given(forks())
def test_the_sides_may_change_places(fork: Fork) -> None:
    one = fork.merged()
    two = merge(fork.base, fork.theirs, fork.ours, fork.trunk, today=fork.today)
    assert one.dropped == two.dropped
    assert len(one.conflicts) == len(two.conflicts)
    assert one.text == two.text or one.conflicts
    assert resolved(one.text, "ours") == resolved(two.text, "theirs")


@given(forks())
def test_a_side_with_itself_or_with_the_base_is_that_side(fork: Fork) -> None:
    assert merge(fork.base, fork.ours, fork.ours, fork.trunk, today=fork.today) == Merged(text=fork.ours)
    assert merge(fork.base, fork.ours, fork.base, fork.trunk, today=fork.today) == Merged(text=fork.ours)
    assert merge(fork.base, fork.base, fork.ours, fork.trunk, today=fork.today) == Merged(text=fork.ours)


@given(forks())
def test_what_has_nothing_to_do_with_it_changes_nothing(fork: Fork) -> None:
    """Git merges one changed side by itself; one line more on the other must not make another lock of it."""
    far = Line(block=parse_block("10.0.0.128/26"), node="z", pool="p")
    before, after = lines_of(fork.base), lines_of(fork.ours)
    # What a side used again and gave up again is the exception: what the other side has there comes back.
    gone = [old for block, old in before.items() if block not in after or after[block].node != old.node]
    assume(all(any(new.block.overlaps(old.block) and (new.in_use) for new in after.values()) for old in gone))
    head = json.loads(fork.base.splitlines()[0])
    merged = merge(fork.base, fork.ours, lock([*before.values(), far], mode=head["mode"]), fork.trunk)
    assert not merged.conflicts
    assert merged.text == lock([*after.values(), far], mode=head["mode"])


@given(forks())
def test_a_merge_is_sound_and_loses_nothing_in_silence(fork: Fork) -> None:
    merged = fork.merged()
    assume(not merged.conflicts and fork.base not in {fork.ours, fork.theirs})
    result = lines_of(merged.text)  # parses strictly: no overlap, no second held line
    named = {(each.line.block, each.line.node) for each in merged.dropped}
    for side in (fork.ours, fork.theirs):
        for block, was in lines_of(side).items():
            kept = block in result and result[block].node == was.node
            used_again = any(each.block.overlaps(block) for each in result.values())
            assert kept or used_again or (block, was.node) in named


@given(forks())
def test_what_both_sides_hold_from_the_base_stays(fork: Fork) -> None:
    merged = fork.merged()
    assume(not merged.conflicts)
    result, base, ours, theirs = map(lines_of, (merged.text, fork.base, fork.ours, fork.theirs))
    for block, was in base.items():
        if was.state is State.HELD and all(
            block in side and side[block].state is State.HELD and side[block].node == was.node
            for side in (ours, theirs)
        ):
            assert result[block] == was


@given(forks())
def test_a_node_that_both_sides_hold_is_never_without(fork: Fork) -> None:
    """With several blocks a node, each side may give up the one that the other keeps; the next compile sees what is missing."""
    merged = fork.merged()
    assume(not merged.conflicts and b"multi-pool" not in fork.base)
    named = {each.line.node for each in merged.dropped}
    base, ours, theirs, result = (
        {each.node for each in lines_of(text).values() if each.state is State.HELD}
        for text in (fork.base, fork.ours, fork.theirs, merged.text)
    )
    assert (base & ours & theirs) - named <= result


@given(forks())
def test_what_the_trunk_has_stays(fork: Fork) -> None:
    """Every newcomer of a side that the trunk has as well keeps its block."""
    for trunk in (fork.ours, fork.theirs):
        merged = merge(fork.base, fork.ours, fork.theirs, trunk, today=fork.today)
        assume(not merged.conflicts)
        base, result = lines_of(fork.base), lines_of(merged.text)
        for block, line in lines_of(trunk).items():
            if line.state is State.HELD and not (block in base and base[block].node == line.node):
                assert result[block].node == line.node
                assert result[block].state is State.HELD


@given(forks())
def test_today_changes_days_alone_and_only_of_new_quarantines(fork: Fork) -> None:
    merged, plain = fork.merged(), merge(fork.base, fork.ours, fork.theirs, fork.trunk)
    assert (merged.dropped, merged.conflicts) == (plain.dropped, plain.conflicts)
    assume(not merged.conflicts)
    sides = [lines_of(fork.trunk)] if fork.trunk else [lines_of(fork.ours), lines_of(fork.theirs)]
    now, was = lines_of(merged.text), lines_of(plain.text)
    assert list(now) == list(was)
    for block, old in was.items():
        assert now[block] in {old, replaced(old, since=fork.today)}
        there = [side[block] for side in sides if block in side]
        known = all(each.since and each.node == old.node for each in there) and len(there) == len(sides)
        assert now[block] == old or not known
        assert now[block].since >= old.since or fork.trunk


@given(forks())
def test_merging_again_changes_nothing(fork: Fork) -> None:
    merged = fork.merged()
    # Of several blocks a node, what gave way the first time may have made room for something else of the node.
    assume(
        not merged.conflicts
        and b"multi-pool" not in fork.base
        and fork.base not in {fork.ours, fork.theirs, merged.text}
    )
    for side in (fork.ours, fork.theirs):
        assert merge(fork.base, merged.text, side, fork.trunk, today=fork.today).text == merged.text


@given(STEPS, STEPS, STEPS, st.sampled_from(list(permutations(PLACES, 2))))
def test_a_conflict_is_settled_by_taking_either_side(
    before: list[Step], one: list[Step], two: list[Step], places: tuple[Block, Block]
) -> None:
    here, there = places
    held = Line(block=parse_block("10.0.0.128/26"), node="z", pool="p")
    base = grown(History({held.block: held}, Mode.CLUSTER_POOL), before)
    ours, theirs = (
        grown(base, [*steps, ("renumber", "z", "z", place)]) for steps, place in ((one, here), (two, there))
    )
    merged = merge(base.text(), ours.text(), theirs.text())
    assume(any("node z" in each for each in merged.conflicts))
    for side, history in (("ours", ours), ("theirs", theirs)):
        found, problems = parse(resolved(merged.text, side).encode(), "resolved")
        assert found is not None
        lost = {each.line.block for each in merged.dropped if each.line.node == "z"}
        assert {each for each in found.lines if each.node == "z"} == {
            each for each in history.lines.values() if each.node == "z" and each.block not in lost
        }
        # IPC0407: the other side's newcomer took the place.
        assert {each.code for each in problems} <= {"IPC0407"}


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [(20, 25, 30, 30), (20, 25, 20, 25), (20, 20, 30, 30), (20, 25, 0, 0), (20, 0, 25, 0)],
)
def test_of_two_resizes_the_larger_one_counts(base: int, ours: int, theirs: int, merged: int) -> None:
    """So many single addresses of a block are rendered (crd mode); 0: all."""

    def lock(addresses: int) -> bytes:
        part = f',"addresses":{addresses}' if addresses else ""
        head = '{"lock":1,"cluster":"lab","mode":"crd","shards":1}'
        return f'{head}\n{{"block":"10.0.0.0/26","pool":"a","node":"n1"{part}}}\n'.encode()

    done = merge(lock(base), lock(ours), lock(theirs))
    assert (done.text, done.dropped, done.conflicts) == (lock(merged), (), ())
