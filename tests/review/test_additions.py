"""When a request may merge by itself: every field of a plan either only adds, or makes a person decide."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import fields, replace

from ipamc.lock.transitions import Reason, Transition
from ipamc.model.cidr import parse_block
from ipamc.model.lock import Line
from ipamc.model.plan import Origin
from ipamc.review.diff import Difference, Setting
from ipamc.review.diff.lock_lines import AddedBlock, Counts, LineChanges, Renumber
from ipamc.review.diff.plan_report import ClusterReport, PlanStatus, beyond_additions
from ipamc.review.diff.pools import PoolChange, PoolStatus
from ipamc.review.diff.rendered import Files, Flag, Leaving, Restart, Stays

LINE = Line(block=parse_block("10.0.0.0/27"), pool="default", node="n1")
MOVE = Renumber(node="n1", old=(LINE,), new=(LINE,), why="consent")
ADDED = AddedBlock(line=LINE, origin=Origin.FIRST_FIT)
PLAN = Difference(
    lines=LineChanges(added=(ADDED,), counts=Counts(renumbered=0, added=1, left=0, vanished=0, unchanged=0)),
    unlawful=(),
    misplaced=(),
    steps=(),
    restarts=(),
    leaving=(),
    settings=(),
    flags=(),
    pools=(),
    pools_known=True,
    capacity=(),
    aggregates=(),
    files=Files(written=("ciliumnodes/000/ciliumnodes.yaml",), removed=()),
)
"""A node joined."""

LINES: dict[str, tuple[Any, str]] = {
    "pending": ((MOVE,), "it renumbers 1 node: n1"),
    "completed": ((MOVE,), "it renumbers 1 node: n1"),
    "added": ((replace(ADDED, of="n0"),), "1 block given again: n1 (10.0.0.0/27, of n0)"),
}
REASONS = {
    Reason.LEFT: "1 block quarantined: n1 (10.0.0.0/27)",
    Reason.RELEASED: "1 block released: n1 (10.0.0.0/27)",
    Reason.CANCELLED: "1 block released: n1 (10.0.0.0/27)",
    Reason.ENDED_EARLY: "1 block released: n1 (10.0.0.0/27)",
    Reason.VANISHED: "1 block changed as no verb changes them: n1 (10.0.0.0/27)",
    Reason.TAKEN: "1 block changed as no verb changes them: n1 (10.0.0.0/27)",
    Reason.DAY_CHANGED: "1 block changed as no verb changes them: n1 (10.0.0.0/27)",
    Reason.TAKEN_BACK: "1 block no longer shown by the operator",
    Reason.GIVEN_BACK: "1 block given back by use: n1 (10.0.0.0/27)",
    Reason.RESIZED: "1 block with other single addresses: n1 (10.0.0.0/27)",
    Reason.REPOOLED: "other pools",
}
HARMLESS_REASONS = set(Reason) - REASONS.keys()
"""Blocks that nodes get or move to are in the fields; what was re-used is in `of` of what was added."""
OTHERS: dict[str, tuple[Any, str]] = {
    "settings": ((Setting(name="mode", old="a", new="b"),), "it changes mode of the lock"),
    "flags": ((Flag(name="ipam", old="a", new="b", why=""),), "it changes 1 flag: ipam"),
    "pools": ((PoolChange(name="a", change=PoolStatus("changed"), fields=()),), "it changes pools: a"),
    "pools_known": (False, "what it does to pools is not known"),
    "steps": (("first",), "in steps"),
    "restarts": ((Restart(who="the operator", why="", how=""),), "it needs a restart of the operator"),
    "leaving": (
        (Leaving(kind="CiliumNode", names=("n1",), stays=Stays.CILIUM_NODE),),
        "objects leave the tree: CiliumNode n1",
    ),
}
HARMLESS = {
    "unit",
    "aggregates",
    "filters",
    "counts",
    "still_pending",
    "misplaced",
    "capacity",
    "files",
    "lines",
    "transitions",
    "unlawful",
}
"""Sums and parts of others; what was there before; what is rendered follows from the rest."""


def reasons(difference: Difference) -> list[str]:
    return list(beyond_additions(ClusterReport(name="lab", difference=difference)))


def test_a_node_that_joined_needs_nobody() -> None:
    assert reasons(PLAN) == []


@pytest.mark.parametrize("field", LINES)
def test_what_happens_to_lines_is_for_a_person(field: str) -> None:
    value, said = LINES[field]
    (reason,) = reasons(replace(PLAN, lines=replace(PLAN.lines, **{field: value})))
    assert said in reason


@pytest.mark.parametrize("reason", Reason)
def test_each_transition_is_for_a_person_or_harmless(reason: Reason) -> None:
    change = Transition(before=replace(LINE, pool="before"), after=LINE, reason=reason)
    found = reasons(replace(PLAN, lines=replace(PLAN.lines, transitions=(change,))))
    assert bool(found) != (reason in HARMLESS_REASONS)
    assert reason in HARMLESS_REASONS or REASONS[reason] in found[0]


@pytest.mark.parametrize("field", OTHERS)
def test_what_happens_to_flags_pools_and_programs_is_for_a_person(field: str) -> None:
    value, said = OTHERS[field]
    changed: Any = replace(PLAN, **{field: value})
    (reason,) = reasons(changed)
    assert said in reason


def test_no_field_of_a_plan_is_passed_over() -> None:
    """Who adds a field to a plan says here whether a person must see it."""
    known = {field.name for kind in (LineChanges, Difference) for field in fields(kind)}
    assert known == LINES.keys() | OTHERS.keys() | HARMLESS


@pytest.mark.parametrize("status", [status for status in PlanStatus if status is not PlanStatus.PLANNED])
def test_what_is_no_plan_of_a_known_cluster_is_for_a_person(status: PlanStatus) -> None:
    assert list(beyond_additions(ClusterReport(name="lab", status=status, difference=PLAN)))
