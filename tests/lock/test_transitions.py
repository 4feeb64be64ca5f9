"""Laws of what becomes of a line: what verbs do is never refused (tests/support/history), and each edit that no verb makes is."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ipamc.lock.transitions import REFUSED, Days, Known, Reason, Transition, transitions
from ipamc.model.cidr import Block
from ipamc.model.lock import Line, State

DAYS = Days(today="2026-11-21", over="2026-11-14", base="2026-11-20")


def line(number: int, node: str, since: str = "", *, state: State = State.HELD, moved: bool = False) -> Line:
    state = State.QUARANTINED if since else state
    block = Block(4, (10 << 24) + number * 4, 30)
    return Line(block=block, pool="p", node=node, state=state, since=since, moved=moved)


@st.composite
def locks(draw: st.DrawFn) -> tuple[Line, ...]:
    """Draw a sound lock: a to d hold a block each, others left it on some day, or moved away from it."""
    lines = [line(number, node) for number, node in enumerate("abcd")]
    for number in range(4, 10):
        since = draw(st.sampled_from(["", "2026-11-15", "2026-11-20", "2026-11-21"]))
        if since:
            lines.append(line(number, draw(st.sampled_from("efg")), since, moved=draw(st.booleans())))
    return tuple(lines)


def reasons(before: tuple[Line, ...], after: tuple[Line, ...], inventory: str = "") -> list[Transition]:
    present = {each.node for each in after if each.state is State.HELD}
    known = Known(one_block=True, present=present, inventory=inventory, days=DAYS)
    return [each for each in transitions(before, after, known) if each.reason in REFUSED]


def changed(lines: tuple[Line, ...], *edited: Line) -> tuple[Line, ...]:
    blocks = {each.block: each for each in (*lines, *edited)}
    return tuple(sorted(blocks.values(), key=lambda each: each.block))


def one(lines: tuple[Line, ...], which: int, state: State) -> Line:
    some = [each for each in lines if each.state is state]
    assume(some)
    return some[which % len(some)]


@given(locks(), st.integers(0, 9))
def test_a_line_that_is_deleted(lines: tuple[Line, ...], which: int) -> None:
    gone = lines[which % len(lines)]
    (found,) = reasons(lines, tuple(each for each in lines if each is not gone), gone.node)
    assert (found.reason, found.before) == (Reason.VANISHED, gone)


@given(locks(), st.integers(0, 9), st.sampled_from("xefg"))
def test_a_quarantine_that_ends_early(lines: tuple[Line, ...], which: int, heir: str) -> None:
    """In the name of another node: held, as by a rebase, or still in quarantine, as by an edit."""
    waits = one(lines, which, State.QUARANTINED)
    assume(heir != waits.node)
    for now in (line(0, heir), replace(waits, node=heir), line(0, heir, state=State.PENDING)):
        found = reasons(lines, changed(lines, replace(now, block=waits.block)))
        assert [each.reason for each in found] == [Reason.ENDED_EARLY]
    assert reasons(lines, changed(lines, replace(waits, state=State.RELEASED, since="", moved=False))) == []


@given(locks(), st.integers(0, 9), st.integers(0, 3), st.sampled_from(["", "x"]))
def test_no_part_of_a_quarantine_becomes_free(
    lines: tuple[Line, ...], which: int, part: int, heir: str
) -> None:
    """A piece of it stays in the name of its node, and the rest is free, or another node's."""
    waits = one(lines, which, State.QUARANTINED)
    single = replace(waits, block=Block(4, waits.block.first + part, 32))
    rest = [replace(line(0, heir), block=Block(4, waits.block.first + (part ^ 1), 32))] if heir else []
    others = tuple(each for each in lines if each is not waits)
    (found,) = reasons(lines, changed(others, single, *rest))
    assert (found.reason, found.before) == (Reason.ENDED_EARLY, waits)


@given(locks(), st.integers(0, 9), st.integers(0, 9), st.sampled_from(["node", "since", "moved"]))
def test_two_edits_that_cancel_out(lines: tuple[Line, ...], which: int, second: int, what: str) -> None:
    """Two lines in quarantine swap a field: the lock has the same nodes and days as before."""
    here, there = one(lines, which, State.QUARANTINED), one(lines, second, State.QUARANTINED)
    assume(getattr(here, what) != getattr(there, what))
    swapped = [
        replace(mine, **{what: getattr(theirs, what)}) for mine, theirs in ((here, there), (there, here))
    ]
    assert reasons(lines, changed(lines, *swapped))


@given(locks(), st.integers(0, 9))
def test_a_block_of_who_left_in_another_size(lines: tuple[Line, ...], which: int) -> None:
    """A rename keeps the block as it is; and whoever is released was its node."""
    held = one(lines, which, State.HELD)
    others = tuple(each for each in lines if each is not held)
    for now in (
        replace(held, node="x", block=Block(4, held.block.first, 31)),
        replace(held, node="x", state=State.RELEASED),
    ):
        assert [each.reason for each in reasons(lines, changed(others, now))] == [Reason.TAKEN]


@given(locks(), st.integers(0, 9))
def test_a_block_that_never_returns(lines: tuple[Line, ...], which: int) -> None:
    moved = replace(one(lines, which, State.QUARANTINED), moved=True)
    before = changed(lines, moved)
    for now in (
        replace(moved, state=State.HELD, since="", moved=False),
        replace(moved, state=State.PENDING, since="", moved=False),
        replace(moved, moved=False),
    ):
        assert reasons(before, changed(before, now))
    assert reasons(before, changed(before, replace(moved, since="2026-11-21"))) == []


def test_a_quarantine_that_the_head_shortens_and_dates_back() -> None:
    """By the days of the head the block would be free at once, by those of the base not."""
    held = line(0, "a")
    days = Days(today="2026-11-21", over="2026-10-22", shortened="2026-11-14", base="2026-11-20")
    known = Known(one_block=True, days=days)
    (found,) = transitions([held], [line(0, "a", "2026-11-01")], known)
    assert found.reason is Reason.DAY_CHANGED


@given(locks(), st.integers(0, 9), st.sampled_from(["2026-11-14", "2026-11-22", "2027-01-01"]))
def test_the_day_of_a_quarantine_that_is_edited(lines: tuple[Line, ...], which: int, day: str) -> None:
    waits = one(lines, which, State.QUARANTINED)
    (found,) = reasons(lines, changed(lines, replace(waits, since=day)))
    assert found.reason is Reason.DAY_CHANGED


@given(locks(), st.integers(0, 9), st.sampled_from(["2026-11-14", "2020-01-01", "2026-11-22"]), st.booleans())
def test_a_held_block_that_was_in_quarantine_long_ago(
    lines: tuple[Line, ...],
    which: int,
    day: str,
    moved: bool,  # noqa: FBT001 - drawn
) -> None:
    held = one(lines, which, State.HELD)
    former = replace(held, state=State.QUARANTINED, since=day, moved=moved)
    new = (line(20, held.node),) if moved else ()
    (found,) = reasons(lines, changed(lines, former, *new))
    assert found.reason is Reason.DAY_CHANGED
    fine = replace(former, since="2026-11-19")
    assert reasons(lines, changed(lines, fine, *new)) == [], "it left on a branch"


@given(locks(), st.integers(0, 9), st.sampled_from("abcdx"))
def test_a_held_block_whose_node_is_edited(lines: tuple[Line, ...], which: int, heir: str) -> None:
    """Where its node is still there, or the other one held another block, or not all its lines went along."""
    held = one(lines, which, State.HELD)
    assume(heir != held.node)
    after = changed(lines, replace(held, node=heir))
    (found, *_) = reasons(lines, after, inventory=held.node)
    assert found.reason is Reason.TAKEN
    if heir != "x":
        assert [each.reason for each in reasons(lines, after)] == [Reason.TAKEN]
    other = line(21, held.node, "2026-11-21")
    assert [each.reason for each in reasons((*lines, other), (*after, other))] == [Reason.TAKEN]


@given(locks(), st.integers(0, 9))
def test_a_node_that_was_renamed(lines: tuple[Line, ...], which: int) -> None:
    """All its lines have another name, of a node that had none: `lock --rename` does that."""
    old = one(lines, which, State.HELD)
    before = changed(lines, line(22, old.node, state=State.PENDING))
    after = tuple(replace(each, node="x") if each.node == old.node else each for each in before)
    assert reasons(before, after) == []
