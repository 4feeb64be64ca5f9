"""Laws of the comparison of two locks, against brute force: it mentions every line that differs and every renumber."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ipamc.law.change import UNLAWFUL, Days, Gate, Verdict, changes
from ipamc.lock.line_changes import line_changes
from ipamc.model.cidr import Block
from ipamc.model.lock import Line, State
from ipamc.model.plan import Plan
from ipamc.review.diff.lock_lines import LineChanges, compare_lines
from tests.support import builders

POOLS = (builders.pool("a", "10.0.0.0/28", size=30), builders.pool("b", "10.0.0.16/28", size=30))
STATES: tuple[dict[str, Any], ...] = (
    {},
    {},
    {},
    {"state": State.PENDING},
    {"state": State.QUARANTINED, "since": "2026-11-20"},
    {"state": State.QUARANTINED, "since": "2026-11-20", "moved": True},
    {"state": State.RELEASED},
)

TODAY = Days("2026-11-22", 1, 1)
"""Every quarantine is over."""


@st.composite
def locks(draw: st.DrawFn) -> tuple[Line, ...]:
    """Draw disjoint lines of few nodes in few places, each node with at most one held and one pending line, and that only beside a held one."""
    lines: list[Line] = []
    at = 0
    while at < 32:
        prefix = 31 if at % 4 else draw(st.sampled_from([30, 30, 31]))
        block = Block(4, (10 << 24) + at, prefix)
        at += block.size
        node, state = draw(st.sampled_from("abcde")), draw(st.sampled_from(STATES))
        line = Line(block=block, pool=builders.owner(POOLS, block), node=node, **state)
        rivals = [each for each in lines if each.node == node and each.state is line.state]
        if draw(st.booleans()) and not (rivals and (line.in_use)):
            lines.append(line)
    holders = {line.node for line in lines if line.state is State.HELD}
    return tuple(line for line in lines if line.state is not State.PENDING or line.node in holders)


def plan_with(lines: tuple[Line, ...]) -> Plan:
    held = {line.node: (line,) for line in lines if line.state is State.HELD}
    plan = builders.plan("cluster-pool", POOLS, {}, nodes=map(builders.node, held))
    return replace(plan, lock=replace(plan.lock, lines=lines), held=held)


def compared(before: tuple[Line, ...], after: tuple[Line, ...]) -> LineChanges:
    return compare_lines(before, plan_with(after), {}, TODAY)


def held(lines: tuple[Line, ...]) -> dict[str, Block]:
    return {line.node: line.block for line in lines if line.state is State.HELD}


@given(locks())
def test_what_is_the_same_is_no_change(lines: tuple[Line, ...]) -> None:
    changes = compared(lines, lines)
    assert changes.lines == ()
    assert changes.counts.unchanged == len(held(lines))
    assert {each.node for each in changes.still_pending} == {
        line.node for line in lines if line.state is State.PENDING
    }


@given(locks(), locks())
def test_every_line_that_differs_is_listed_once(before: tuple[Line, ...], after: tuple[Line, ...]) -> None:
    changes = compared(before, after).lines
    assert Counter(each.before for each in changes if each.before) == Counter(set(before) - set(after))
    assert Counter(each.after for each in changes if each.after) == Counter(set(after) - set(before))
    assert all(each.before.block == each.after.block for each in changes if each.before and each.after)


@given(locks(), locks())
def test_a_node_that_held_a_block_and_holds_another_is_renumbered(
    before: tuple[Line, ...], after: tuple[Line, ...]
) -> None:
    """Whose block is only cut, or only grows, keeps addresses."""
    old, new = held(before), held(after)
    changes = compared(before, after)
    assert {each.node for each in changes.completed} == {
        node
        for node in old.keys() & new.keys()
        if old[node] != new[node] and not old[node].contains(new[node]) and not new[node].contains(old[node])
    }
    assert all([line.block for line in each.new] == [new[each.node]] for each in changes.completed)


@given(locks(), locks())
def test_a_line_vanished_if_no_line_has_an_address_of_it(
    before: tuple[Line, ...], after: tuple[Line, ...]
) -> None:
    """What is released, waits for its node, or is out of quarantine may go."""
    held = [line for line in before if line.state is State.HELD]
    gone = [line for line in held if not any(line.block.overlaps(each.block) for each in after)]
    assert [each.before for each in compared(before, after).vanished] == gone


@given(locks(), locks())
def test_nodes_are_counted_once(before: tuple[Line, ...], after: tuple[Line, ...]) -> None:
    """But one that was renamed and begins to move is both."""
    changes, old, new = compared(before, after), held(before), held(after)
    counts = changes.counts
    begin = {each.node for each in changes.pending}
    both = {each.to for each in changes.of(Verdict.RENAMED)} & begin & new.keys()
    total = counts.renumbered + counts.renamed + counts.added + counts.unchanged
    assert total - len(both) == len(new)
    assert counts.left <= len(old.keys() - new.keys())


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("10.0.0.0/30", "10.0.0.16/30", "from pool a to b, by consent"),
        ("10.0.0.0/30", "10.0.0.4/31", "from a /30 to a /31, by consent"),
        ("10.0.0.0/30", "10.0.0.4/30", "by consent"),
        ("10.0.0.0/30", "10.0.0.8/30", "to its pin, by consent"),
    ],
)
def test_why_a_node_is_to_move(before: str, after: str, why: str) -> None:
    pools = (builders.pool("a", "10.0.0.0/28", size=30, pins={"n": builders.ranges("10.0.0.8/30")}), POOLS[1])
    was, now = (
        builders.plan("cluster-pool", pools, {"n": blocks})
        for blocks in ([before], [before, f"pending {after}"])
    )
    (move,) = compare_lines(was.lock.lines, now, {}, TODAY).pending
    assert move.why == why


@pytest.mark.parametrize(("days", "wanted"), [(3, ["gone"]), (2, [])])
def test_what_was_given_out_in_its_quarantine_ended_early(days: int, wanted: list[str]) -> None:
    """Only the new line shows that there was a `--release`; the day on which the old node left proves it."""
    block = Block(4, 10 << 24, 30)
    changes = compare_lines(
        [Line(block=block, pool="a", node="gone", state=State.QUARANTINED, since="2026-11-20")],
        plan_with((Line(block=block, pool="a", node="new"),)),
        {},
        Days("2026-11-22", days, days),
    )
    assert [(each.before and each.before.node, each.to) for each in changes.early] == [
        (node, "new") for node in wanted
    ]
    assert [(each.origin, each.of) for each in changes.added] == [("re-used", "gone")]


def test_a_part_of_a_block_changes_hands() -> None:
    """The headline is about addresses, and not about lines: n left, and there is no quarantine."""
    whole, first, second = (Block(4, (10 << 24) + at, prefix) for at, prefix in ((0, 30), (0, 31), (2, 31)))
    was = [Line(block=whole, pool="a", node="n")]
    left = Line(block=first, pool="a", node="n", state=State.QUARANTINED, since="2026-11-22")
    for other, wanted in (
        (Line(block=second, pool="a", node="m"), True),
        (replace(left, block=second), False),
    ):
        found = compare_lines(was, plan_with((left, other)), {}, Days("2026-11-22", 0, 0))
        assert found.changes_hands == wanted


@given(locks(), locks(), st.sampled_from([0, 7]), st.sampled_from([[], ["a"]]))
def test_a_line_hides_no_gate_of_a_part_of_it(
    before: tuple[Line, ...], after: tuple[Line, ...], days: int, elsewhere: list[str]
) -> None:
    """A label is asked for, and a change is refused, if the law says so of any address of a line."""
    law = before, after, Days("2026-11-22", days, days), elsewhere
    found, lines = changes(*law), line_changes(*law).lines
    assert {gate for each in lines for gate in each.gates} == {each.gate for each in found if each.gate}
    refused = {each.before for each in found if each.verdict in UNLAWFUL}
    assert {each.before for each in lines if each.verdict in UNLAWFUL} == refused


@pytest.mark.parametrize("days", [0, 7])
def test_a_move_to_a_part_of_a_block_has_its_gate(days: int) -> None:
    """Node n waited for the block, or held it where there is no quarantine; m begins to move to its second half."""
    whole, half, own, of_n = (
        Block(4, (10 << 24) + at, prefix) for at, prefix in ((0, 30), (2, 31), (4, 30), (8, 30))
    )
    m = Line(block=own, pool="a", node="m")
    n = Line(block=whole, pool="a", node="n", state=State.PENDING if days else State.HELD)
    rest = [Line(block=of_n, pool="a", node="n")] if days else []
    moves = Line(block=half, pool="a", node="m", state=State.PENDING)
    change = line_changes([n, m, *rest], [moves, m, *rest], Days("2026-11-22", days, days))
    assert [each.line for each in change.lines if Gate.RENUMBER in each.gates] == [moves]
    assert change.moving == {"m"}
