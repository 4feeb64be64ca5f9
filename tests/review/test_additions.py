"""When a request may merge by itself: every field of a plan either only adds, or makes a person decide."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import fields, replace

from ipamc.law.change import ROWS, Gate, Verdict
from ipamc.lock.line_changes import LineChange
from ipamc.model.cidr import parse_block
from ipamc.model.lock import Line
from ipamc.model.plan import Origin
from ipamc.review.diff import Difference
from ipamc.review.diff.documents import PoolChange, PoolStatus, Setting
from ipamc.review.diff.lock_lines import AddedBlock, Counts, LineChanges
from ipamc.review.diff.plan_report import ClusterReport, PlanStatus, beyond_additions
from ipamc.review.diff.rendered import Files, Flag, Leaving, Restart, Stays

LINE = Line(block=parse_block("10.0.0.0/27"), pool="default", node="n1")
ADDED = AddedBlock(line=LINE, origin=Origin.FIRST_FIT)
PLAN = Difference(
    lines=LineChanges(added=(ADDED,), counts=Counts(added=1)),
    misplaced=(),
    steps=(),
    restarts=(),
    leaving=(),
    settings=(),
    weaker=(),
    flags=(),
    pools=(),
    pools_known=True,
    capacity=(),
    prefixes=(),
    files=Files(written=("ciliumnodes/000/ciliumnodes.yaml",), removed=()),
)
"""A node joined."""

BY_GATE = {
    Gate.RENUMBER: "1 node renumbered: n1",
    Gate.RENAME: "1 node renamed: n1",
    Gate.RELEASE: "1 block released early: 10.0.0.0/27",
    Gate.FOLLOW: "1 node moved by its address, or by Cilium's operator: n1",
    Gate.LEAVE: "1 node left: n1",
}
BY_VERDICT = {
    Verdict.CANCELLED: "1 block with a cancelled move: n1 (10.0.0.0/27)",
    Verdict.GIVEN_BACK: "1 block returned because unused",
    Verdict.DATED: "1 block changed in a way that no verb allows",
    Verdict.TAKEN: "1 block changed in a way that no verb allows",
}
OTHERS: dict[str, tuple[Any, str]] = {
    "settings": ((Setting(name="mode", old="a", new="b"),), "it changes mode of the lock"),
    "disputed": ((("n1", "10.0.0.0/27"),), "1 node disputed: n1"),
    "weaker": (
        (Setting(name="budget.leave", old="5 %", new="50 %"),),
        "it makes the cluster less safe: budget.leave",
    ),
    "flags": ((Flag(name="ipam", old="a", new="b", why=""),), "it changes 1 flag: ipam"),
    "pools": ((PoolChange(name="a", change=PoolStatus("changed"), fields=()),), "it changes pools: a"),
    "pools_known": (False, "its effect on pools is unknown"),
    "steps": (("first",), "in steps"),
    "restarts": ((Restart(who="the operator", why="", how=""),), "it needs a restart of the operator"),
    "leaving": (
        (Leaving(kind="CiliumNode", names=("n1",), stays=Stays.CILIUM_NODE),),
        "objects leave the tree: CiliumNode n1",
    ),
}
HARMLESS = {
    "unit",
    "prefixes",
    "announced",
    "counts",
    "added",
    "pending",
    "still_pending",
    "completed",
    "changes_hands",
    "misplaced",
    "capacity",
    "files",
    "lines",
}
"""Sums and parts of others; what was there before; what is rendered follows from the rest."""


def reasons(difference: Difference) -> list[str]:
    return list(beyond_additions(ClusterReport(name="lab", difference=difference)))


def test_a_node_that_joined_needs_nobody() -> None:
    assert reasons(PLAN) == []


def test_a_block_that_was_of_another_node_is_for_a_person() -> None:
    (reason,) = reasons(replace(PLAN, lines=replace(PLAN.lines, added=(replace(ADDED, of="n0"),))))
    assert reason == "1 block given again: n1 (10.0.0.0/27, of n0)"


@pytest.mark.parametrize(("verdict", "gate"), sorted({(row.verdict, row.gate or "") for row in ROWS}))
def test_each_verdict_is_for_a_person_or_harmless(verdict: Verdict, gate: str) -> None:
    change = LineChange(
        before=LINE, after=LINE, verdict=verdict, gates=frozenset([Gate(gate)] if gate else [])
    )
    found = reasons(replace(PLAN, lines=replace(PLAN.lines, lines=(change,))))
    said = BY_GATE[Gate(gate)] if gate else BY_VERDICT.get(verdict, "")
    assert bool(found) == bool(said)
    assert not found or said in found[0]


def test_another_part_of_a_block_is_for_a_person() -> None:
    other = replace(LINE, addresses=8)
    change = LineChange(before=LINE, after=other, verdict=Verdict.KEPT)
    (reason,) = reasons(replace(PLAN, lines=replace(PLAN.lines, lines=(change,))))
    assert reason == "1 block with other single addresses: n1 (10.0.0.0/27)"


def test_a_renamed_pool_is_for_a_person() -> None:
    change = LineChange(before=LINE, after=replace(LINE, pool="other"), verdict=Verdict.KEPT)
    assert reasons(replace(PLAN, lines=replace(PLAN.lines, lines=(change,)))) == [
        "ranges belong to other pools now"
    ]


@pytest.mark.parametrize("field", OTHERS)
def test_what_happens_to_flags_pools_and_programs_is_for_a_person(field: str) -> None:
    value, said = OTHERS[field]
    changed: Any = replace(PLAN, **{field: value})
    (reason,) = reasons(changed)
    assert said in reason


def test_no_field_of_a_plan_is_passed_over() -> None:
    """Who adds a field to a plan says here whether a person must see it."""
    known = {field.name for kind in (LineChanges, Difference) for field in fields(kind)}
    assert known == OTHERS.keys() | HARMLESS


@pytest.mark.parametrize("status", [status for status in PlanStatus if status is not PlanStatus.PLANNED])
def test_what_is_no_plan_of_a_known_cluster_is_for_a_person(status: PlanStatus) -> None:
    assert list(beyond_additions(ClusterReport(name="lab", status=status, difference=PLAN)))
