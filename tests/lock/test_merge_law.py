"""The law of every merge, of any three texts: a conflict is seen, and no line is lost without a word."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ipamc.lock.file import parse
from ipamc.lock.merge import Merged, merge
from ipamc.lock.record import decode
from ipamc.model.cidr import Block
from ipamc.model.lock import Line
from tests.lock.test_merge import line, lock

MARKS = (b"<<<<<<< ours", b"=======", b">>>>>>> theirs")
CIDRS = ("0/26", "64/26", "128/26", "0/25", "128/25", "0/27", "32/27", "64/28")
STATES = ("", "pending", "released", "5", "9", "5 moved", "9 moved", "5 was_pending")
ROWS = st.builds(
    "{} {} {} pool={}".format,
    st.sampled_from(CIDRS),
    st.sampled_from("abc"),
    st.sampled_from(STATES),
    st.sampled_from("pq"),
)


def sound(rows: Iterable[str], *, one_block: bool) -> list[Line]:
    """Return the lines of rows without those that a lock cannot have beside the ones before."""
    lines: list[Line] = []
    for each in map(line, rows):
        beside = any(each.block.overlaps(other.block) for other in lines)
        second = one_block and any((each.node, each.state) == (other.node, other.state) for other in lines)
        if not beside and not (second and each.in_use):
            lines.append(each)
    return lines


@st.composite
def texts(draw: st.DrawFn) -> tuple[bytes, ...]:
    """Return a base and two sides that share lines with it; now and then one is damaged, or the other one."""
    mode = draw(st.sampled_from(("cluster-pool", "multi-pool")))
    base = draw(st.lists(ROWS, max_size=4))
    sides = [draw(st.permutations(base + draw(st.lists(ROWS, max_size=3)))) for _ in range(2)]
    sides = [draw(st.lists(st.sampled_from(side), unique=True)) if side else [] for side in sides]
    made = [
        lock(sound(rows, one_block=mode == "cluster-pool"), mode=mode, shards=draw(st.sampled_from((1, 2))))
        for rows in (base, *sides)
    ]
    if draw(st.integers(0, 4)) == 0:
        damaged = draw(st.integers(0, 2))
        made[damaged] = draw(DAMAGE)(made[damaged])
    if draw(st.integers(0, 9)) == 0:
        made[2] = made[1]
    return tuple(made)


DAMAGE = st.sampled_from(
    (
        lambda text: text[:0],
        lambda text: text[:-1],
        lambda text: text + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.replace(b"p", b"\r", 2),
        lambda text: text.replace(b"p", b"\xff", 1),
        lambda text: text.replace(b"p", b"\0", 1),
        lambda text: text.replace(b"lab", b"bal"),
        lambda text: b"\n".join((MARKS[0], text, MARKS[1], text, MARKS[2], b"")),
    )
)


def lines_in(text: bytes) -> dict[Block, set[str]]:
    """Return the nodes of every block, in all readable rows of a text."""
    found: dict[Block, set[str]] = {}
    for row in text.split(b"\n"):
        try:
            each = decode(row)
        except ValueError:
            continue
        found.setdefault(each.block, set()).add(each.node)
    return found


def check_seen(merged: Merged) -> None:
    """A conflict has markers, and no compile takes the text; without one the text is a sound lock."""
    rows = merged.text.split(b"\n")
    marked = all(mark in rows for mark in MARKS)
    read, problems = parse(merged.text, "merged")
    is_sound = read is not None and not problems
    assert (bool(merged.conflicts), not is_sound) == (marked, marked)


def check_kept(merged: Merged, sides: Iterable[bytes]) -> None:
    """A line of a side is there, or was named, or another one lies over its addresses; one that is unreadable is there."""
    there = lines_in(merged.text)
    named = {(drop.line.block, drop.line.node) for drop in merged.dropped}
    for side in sides:
        for row in filter(None, side.split(b"\n")):
            try:
                was = decode(row)
            except ValueError:
                assert not merged.conflicts or row.startswith(b'{"lock"') or row in merged.text
                continue
            kept = was.node in there.get(was.block, ()) or (was.block, was.node) in named
            assert kept or any(block.overlaps(was.block) for block in there)


TWICE = lock("0/26 a, 0/27 b")
"""Not sound: one block lies inside the other."""
BROKEN_ROW = lock("0/26 a").replace(b"node", b"no\rde")


@given(texts(), st.none() | texts().map(lambda made: made[0]), st.sampled_from(("", "2026-11-07")))
@example((lock(""), TWICE, TWICE), None, "")  # the same on both sides was a conflict without markers
@example((lock(""), BROKEN_ROW, lock("0/26 b")), None, "")  # a row was cut in two at its carriage return
def test_a_conflict_is_seen_and_no_line_is_lost(
    made: tuple[bytes, ...], trunk: bytes | None, today: str
) -> None:
    base, ours, theirs = made
    merged = merge(base, ours, theirs, trunk, today=today)
    check_seen(merged)
    if base not in {ours, theirs}:  # else one side alone changed something: git asks no driver
        check_kept(merged, (ours, theirs))


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60))
@example(b"", b"", b"")
@example(b"\n", b"<<<<<<< ours\n", b"=======\n>>>>>>> theirs")
def test_any_bytes_at_all(base: bytes, ours: bytes, theirs: bytes) -> None:
    merged = merge(base, ours, theirs)
    check_seen(merged)
    for side in (ours, theirs):
        assert side.removesuffix(b"\n") in merged.text


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_both_sides_stand_between_the_markers_byte_by_byte(end: bytes) -> None:
    merged = merge(None, b"x\r" + end, b"")
    assert merged.text == b"<<<<<<< ours\nx\r" + end.removesuffix(b"\n") + b"\n=======\n>>>>>>> theirs\n"
