"""The law of a change: a row of it at a time, and laws over random locks. What verbs do is in tests/support/history."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ipamc.law.change import ROWS, UNLAWFUL, Change, Days, Gate, Verdict, changes
from ipamc.lock.line_changes import renumbered
from ipamc.model.cidr import Block
from ipamc.model.lock import Line, State

TODAY = "2026-11-21"
DAYS = Days(TODAY, 7, 7)
V, G = Verdict, Gate


def line(text: str, at: int = 0, *, prefix: int = 30) -> Line:
    """Return a line for what a table says of it, as `n`, `n pending`, `n released`, `n 2026-11-20 moved`; at the n-th /30."""
    node, *words = text.split()
    state = next((State(word) for word in words if word in set(State)), State.HELD)
    since = next((word for word in words if word.startswith("2")), "")
    block = Block(4, (10 << 24) + 4 * at, prefix)
    state = State.QUARANTINED if since else state
    return Line(block=block, pool="p", node=node, state=state, since=since, moved="moved" in words)


def lock(*texts: str) -> list[Line]:
    """Return lines, each at the next /30; "" leaves one out."""
    return [line(text, at) for at, text in enumerate(texts) if text]


def judged(
    before: Sequence[str], after: Sequence[str], days: Days = DAYS, elsewhere: Sequence[str] = ()
) -> Change[Line]:
    """Return what became of the first /30."""
    found = changes(lock(*before), lock(*after), days, elsewhere)
    return next(each for each in found if each.first == 10 << 24)


NOW, HALF, OLD, LONG = "2026-11-21", "2026-11-18", "2026-11-17", "2026-11-14"
"""Today, half a quarantine ago, a day more, and the last day whose quarantine is over."""


@pytest.mark.parametrize(
    ("before", "after", "verdict", "gate"),
    [
        # Free, released, and out of quarantine.
        ([""], ["n"], V.GIVEN, None),
        (["o released"], ["n"], V.GIVEN, None),
        ([f"o {LONG}"], ["n"], V.GIVEN, None),
        ([f"o {LONG} moved"], ["o"], V.GIVEN, None),
        ([f"o {LONG}"], [""], V.FREE, None),
        (["o released"], [""], V.FREE, None),
        ([f"o {LONG}"], ["m 2020-01-01"], V.FREE, None),
        (["", "n"], ["n pending", "n"], V.GIVEN, G.RENUMBER),
        ([""], ["n pending", "n"], V.GIVEN, G.RENUMBER),
        # A node keeps, leaves, moves away.
        (["n"], [f"n {NOW}"], V.LEFT, G.LEAVE),
        (["n"], [f"n {HALF}"], V.LEFT, G.LEAVE),
        (["n"], [f"n {OLD}"], V.DATED, None),
        (["n"], ["n 2026-11-22"], V.DATED, None),
        (["n"], [f"n {NOW} moved", "n"], V.MOVED, G.RENUMBER),
        (["n"], [f"n {HALF} moved", "n"], V.MOVED, G.RENUMBER),
        (["n"], ["n 2026-11-15 moved", "n"], V.DATED, None),
        (["n", "n pending"], [f"n {NOW} moved", "n"], V.MOVED, None),
        (["n", "n pending"], [f"n {NOW} moved", "n pending", "n"], V.MOVED, G.RENUMBER),
        (["n", "n pending"], [f"n {NOW} moved", "n", "n"], V.MOVED, G.RENUMBER),
        (["n", "n"], [f"n {NOW} moved", "n"], V.GIVEN_BACK, None),
        (["n", "n"], [f"n {OLD} moved", "n"], V.DATED, None),
        # Another node has it.
        (["n", "m"], ["m", "n"], V.TAKEN, None),
        (["n"], ["m", "n"], V.TAKEN, None),
        (["n"], ["m"], V.RENAMED, G.RENAME),
        (["n", "m"], ["m"], V.TAKEN, None),
        (["n", f"m {NOW}"], ["m", f"m {NOW}"], V.RENAMED, G.RENAME),
        (["n"], [f"m {NOW}"], V.RENAMED, G.RENAME),
        (["n"], [f"m {OLD}"], V.TAKEN, None),
        (["n pending", "n"], ["m pending", "m"], V.RENAMED, G.RENAME),
        (["n", "m"], ["m", f"m {NOW} moved", "n"], V.ADOPTED, G.RENUMBER),
        (["n", "m"], ["m", f"m {NOW}", "n"], V.TAKEN, None),
        (["n", "m"], ["m", f"m {NOW} moved"], V.TAKEN, None),
        # Anything else of a held block.
        (["n"], [""], V.TAKEN, None),
        (["n"], ["n released"], V.TAKEN, None),
        (["n"], ["n pending", "n"], V.TAKEN, None),
        (["n"], ["m pending", "n"], V.TAKEN, None),
        # A quarantine that is not over.
        ([f"n {HALF}"], [f"n {NOW}"], V.KEPT, None),
        ([f"n {HALF}"], [f"n {HALF} moved"], V.KEPT, None),
        ([f"n {HALF}"], [f"n {OLD}"], V.DATED, None),
        ([f"n {HALF}"], ["n 2026-11-22"], V.DATED, None),
        ([f"n {HALF}"], ["n"], V.RETURNED, None),
        ([f"n {HALF}", f"n {HALF}"], ["n pending", "n"], V.RETURNED, None),
        ([f"n {HALF}", "n"], ["n pending", "n"], V.RETURNED, G.RENUMBER),
        ([f"n {HALF} moved", "n"], ["n pending", "n"], V.ENDED_EARLY, G.RELEASE),
        ([f"n {HALF} moved"], ["n"], V.ENDED_EARLY, G.RELEASE),
        ([f"n {HALF} moved"], [f"n {HALF}"], V.ENDED_EARLY, G.RELEASE),
        ([f"n {HALF}"], ["n released"], V.ENDED_EARLY, G.RELEASE),
        ([f"n {HALF}"], ["m"], V.ENDED_EARLY, G.RELEASE),
        ([f"n {HALF}"], [""], V.ENDED_EARLY, G.RELEASE),
        ([f"n {HALF}"], [f"m {HALF}"], V.RENAMED, G.RENAME),
        ([f"n {HALF}"], [f"m {OLD}"], V.ENDED_EARLY, G.RELEASE),
        ([f"n {HALF} moved"], [f"m {HALF}"], V.ENDED_EARLY, G.RELEASE),
        # A block that waits for its node.
        (["n pending", "n"], ["n", "n"], V.SETTLED, None),
        (["n pending", "n"], ["m", "n"], V.CANCELLED, None),
        (["n pending", "n", "m"], ["m pending", "n", "m"], V.CANCELLED, G.RENUMBER),
        (["n pending", "n"], ["", "n"], V.CANCELLED, None),
    ],
)
def test_a_row(before: list[str], after: list[str], verdict: Verdict, gate: Gate | None) -> None:
    found = judged(before, after)
    assert (found.verdict, found.gate) == (verdict, gate)


@pytest.mark.parametrize(
    ("before", "after", "verdict", "gate"),
    [
        (["n", "m"], ["m", "n"], V.FOLLOWED, G.FOLLOW),
        (["n"], ["m"], V.FOLLOWED, None),
        (["n"], [""], V.FOLLOWED, None),
        (["n"], ["n released", "n"], V.FOLLOWED, G.FOLLOW),
        (["n"], ["m pending", "m"], V.FOLLOWED, G.FOLLOW),
        (["n"], [f"n {NOW}"], V.LEFT, G.LEAVE),
        ([f"n {HALF}"], ["m"], V.FOLLOWED, None),
        ([f"n {HALF}", "n"], ["m", "n"], V.FOLLOWED, G.FOLLOW),
        ([f"n {HALF} moved", "n"], ["n"], V.ENDED_EARLY, G.RELEASE),
        ([f"n {HALF} moved", "n"], ["n released", "n"], V.FOLLOWED, G.FOLLOW),
    ],
)
def test_a_pool_that_is_decided_elsewhere(
    before: list[str], after: list[str], verdict: Verdict, gate: Gate | None
) -> None:
    found = judged(before, after, elsewhere=["p"])
    assert (found.verdict, found.gate) == (verdict, gate)
    assert judged(before, after, elsewhere=["another"]).verdict is not V.FOLLOWED


@pytest.mark.parametrize(
    ("before", "after", "verdict", "gate"),
    [
        (["n"], ["m"], V.LEFT, G.LEAVE),
        (["n", "m"], ["m", "m"], V.LEFT, G.LEAVE),
        (["n"], [""], V.LEFT, G.LEAVE),
        (["n", "m"], ["m pending", "m"], V.LEFT, G.RENUMBER),
        (["n"], ["m", "n"], V.TAKEN, None),
        (["n"], [f"n {HALF} moved", "n"], V.DATED, None),
        ([f"n {NOW} moved", "n"], ["m", "n"], V.ENDED_EARLY, G.RELEASE),
        ([f"n {NOW}"], ["m"], V.GIVEN, None),
    ],
)
def test_no_quarantine(before: list[str], after: list[str], verdict: Verdict, gate: Gate | None) -> None:
    found = judged(before, after, Days(TODAY, 0, 0))
    assert (found.verdict, found.gate) == (verdict, gate)


@pytest.mark.parametrize(
    ("base", "head", "since", "verdict"),
    [
        (7, 0, LONG, V.GIVEN),
        (7, 0, "2026-11-15", V.ENDED_EARLY),
        (0, 7, "2026-11-15", V.ENDED_EARLY),
        (None, 7, "2020-01-01", V.ENDED_EARLY),
        (7, None, "2020-01-01", V.ENDED_EARLY),
        (10**9, 10**9, "2020-01-01", V.ENDED_EARLY),
    ],
)
def test_the_longer_quarantine_counts(
    base: int | None, head: int | None, since: str, verdict: Verdict
) -> None:
    assert judged([f"n {since}"], ["m"], Days(TODAY, base, head)).verdict is verdict


@pytest.mark.parametrize(
    ("base", "head", "since", "verdict"),
    [
        (None, None, "2020-01-01", V.LEFT),
        (7, 60, HALF, V.LEFT),
        (7, 60, OLD, V.DATED),
        (60, 7, OLD, V.DATED),
        (None, 7, OLD, V.DATED),
        (7, 0, "2026-11-20", V.DATED),
        (1, 1, "2026-11-20", V.DATED),
    ],
)
def test_a_quarantine_may_have_begun_half_of_the_shorter_one_ago(
    base: int | None, head: int | None, since: str, verdict: Verdict
) -> None:
    """A change that makes the quarantine longer does not open its own window."""
    assert judged(["n"], [f"n {since}"], Days(TODAY, base, head)).verdict is verdict


def test_addresses_are_compared_and_not_lines() -> None:
    """A line that is split, and in another pool, is kept; of a narrowed one, what is left out is taken."""
    whole, first, second = (
        line("n"),
        line("n", prefix=31),
        replace(line("n"), block=Block(4, (10 << 24) + 2, 31)),
    )
    split = changes([whole], [replace(first, pool="q"), second], DAYS)
    assert [(each.first & 3, each.last & 3, each.verdict) for each in split] == [
        (0, 1, V.KEPT),
        (2, 3, V.KEPT),
    ]
    assert [each.verdict for each in changes([whole], [first], DAYS)] == [V.KEPT, V.TAKEN]
    assert [each.verdict for each in changes([whole], [replace(first, node="m")], DAYS)] == [V.TAKEN, V.TAKEN]
    assert changes([whole], [replace(whole)], DAYS) == []


def test_families_are_apart() -> None:
    """A node that gets a block of one family has not moved in the other."""
    six = replace(line("n"), block=Block(6, 1 << 64, 64))
    lost, given = changes([line("n")], [line(f"n {NOW} moved"), six], DAYS)
    assert (lost.verdict, lost.gate, given.verdict) == (V.MOVED, G.RENUMBER, V.GIVEN)
    assert renumbered([lost, given]) == set()


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        (["n"], [f"n {NOW} moved", "n"], {"n"}),
        (["n", "n pending"], [f"n {NOW} moved", "n"], {"n"}),
        (["n", "n"], [f"n {NOW} moved", "n"], set()),
        (["n"], ["n", "n"], set()),
        (["n"], ["m"], set()),
        (["n", "m"], ["m", "n"], {"n", "m"}),
        (["n"], ["n", "n pending"], set()),
    ],
)
def test_who_is_renumbered(before: list[str], after: list[str], moved: set[str]) -> None:
    found = changes(lock(*before), lock(*after), DAYS)
    assert {node for node, _ in renumbered(found)} == moved


TEXTS = st.sampled_from(
    [
        "",
        *(
            f"{node}{state}"
            for node in "nmo"
            for state in (
                "",
                " pending",
                " released",
                *(
                    f" {day}{moved}"
                    for day in (NOW, HALF, OLD, LONG, "2026-11-22")
                    for moved in ("", " moved")
                ),
            )
        ),
    ]
)
LOCKS = st.lists(TEXTS, min_size=4, max_size=4)


@given(LOCKS, LOCKS, st.sampled_from([DAYS, Days(TODAY, 0, 0), Days(TODAY, None, 7)]), st.booleans())
def test_each_range_that_differs_has_one_verdict(
    before: list[str],
    after: list[str],
    days: Days,
    elsewhere: bool,  # noqa: FBT001 - drawn
) -> None:
    was, now = lock(*before), lock(*after)
    found = changes(was, now, days, ["p"] if elsewhere else [])
    places = {each.block for each in (*was, *now)}
    there = {side: {each.block: each for each in lines} for side, lines in enumerate((was, now))}
    differs = [block for block in sorted(places) if there[0].get(block) != there[1].get(block)]
    assert [(each.first, each.last) for each in found] == [(block.first, block.last) for block in differs]
    for each in found:
        assert each.gate is None or each.verdict not in UNLAWFUL


@given(LOCKS, LOCKS)
def test_what_passes_without_a_label_moves_no_address(before: list[str], after: list[str]) -> None:
    """What one node held, or had in quarantine, is in use for another only by a gate."""
    for each in changes(lock(*before), lock(*after), DAYS):
        was, now = each.before, each.after
        others = bool(was and now and now.in_use and now.node != was.node)
        if was and others and (was.state is State.HELD or was.since > LONG):
            assert each.gate or each.verdict in UNLAWFUL


def test_every_verdict_and_gate_of_the_law_is_reached() -> None:
    texts = ["", "n", "m", "n pending", "m pending", f"n {HALF}", f"n {HALF} moved", f"n {OLD}", "n released"]
    locks = [lock(*some) for some in product(texts, repeat=2)]
    reached = {
        (each.verdict, each.gate)
        for before, after in product(locks, repeat=2)
        for days, elsewhere in ((DAYS, ""), (DAYS, "p"), (Days(TODAY, 0, 0), ""))
        for each in changes(before, after, days, elsewhere)
    }
    # It takes a third line: what the node that moved there had before.
    assert {(row.verdict, row.gate) for row in ROWS} - reached == {(V.ADOPTED, G.RENUMBER)}
