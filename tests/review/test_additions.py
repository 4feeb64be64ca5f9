"""When a request may merge by itself: every field of a plan either only adds, or makes a person decide."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import fields, replace

from ipamc.model.cidr import parse_block
from ipamc.model.lock import Line
from ipamc.model.plan import Origin
from ipamc.review.additions import beyond_additions
from ipamc.review.diff import Difference, Setting
from ipamc.review.diff.leaving import Leaving, Stays
from ipamc.review.diff.line_changes import (
    AddedBlock,
    Counts,
    FormerBlock,
    LineChanges,
    PoolTransfer,
    Renumber,
    ResizedBlock,
    TakenBlock,
)
from ipamc.review.diff.plan_report import ClusterReport, Status
from ipamc.review.diff.pools import Change, PoolChange
from ipamc.review.diff.rendered import Files, Flag
from ipamc.review.diff.restarts import Restart

LINE = Line(block=parse_block("10.0.0.0/27"), pool="default", node="n1")
MOVE = Renumber(node="n1", old=(LINE,), new=(LINE,), why="consent")
ADDED = AddedBlock(line=LINE, origin=Origin.FIRST_FIT)
PLAN = Difference(
    lines=LineChanges(added=(ADDED,), counts=Counts(renumbered=0, added=1, left=0, vanished=0, unchanged=0)),
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
    "left": ((FormerBlock(line=LINE, before=LINE),), "1 block quarantined: n1 (10.0.0.0/27)"),
    "released": ((FormerBlock(line=LINE, before=LINE),), "1 block released: n1 (10.0.0.0/27)"),
    "pending": ((MOVE,), "it renumbers 1 node: n1"),
    "completed": ((MOVE,), "it renumbers 1 node: n1"),
    "vanished": ((LINE,), "1 line vanished from the lock"),
    "taken": ((TakenBlock(line=LINE, by=LINE),), "1 held block changed hands"),
    "pool_transfers": ((PoolTransfer(before="a", after="b", lines=(LINE,)),), "other pools"),
    "taken_back": ((FormerBlock(line=LINE, before=LINE),), "1 block no longer shown by the operator"),
    "given_back": ((FormerBlock(line=LINE, before=LINE),), "1 block given back by use: n1 (10.0.0.0/27)"),
    "resized": (
        (ResizedBlock(line=LINE, before=20),),
        "1 block with other single addresses: n1 (10.0.0.0/27)",
    ),
    "added": ((replace(ADDED, of="n0"),), "1 block given again: n1 (10.0.0.0/27, of n0)"),
}
OTHERS: dict[str, tuple[Any, str]] = {
    "settings": ((Setting(name="mode", old="a", new="b"),), "it changes mode of the lock"),
    "flags": ((Flag(name="ipam", old="a", new="b"),), "it changes 1 flag: ipam"),
    "pools": ((PoolChange(name="a", change=Change("changed"), fields=()),), "it changes pools: a"),
    "pools_known": (False, "what it does to pools is not known"),
    "steps": (("first",), "in steps"),
    "restarts": ((Restart(who="the operator", why="", how=""),), "it needs a restart of the operator"),
    "leaving": (
        (Leaving(kind="CiliumNode", names=("n1",), stays=Stays.CILIUM_NODE),),
        "objects leave the tree: CiliumNode n1",
    ),
}
HARMLESS = {"aggregates", "counts", "still_pending", "misplaced", "capacity", "files", "lines"}
"""Sums of others; what was there before; what is rendered follows from the rest."""


def reasons(difference: Difference) -> list[str]:
    return list(beyond_additions(ClusterReport(name="lab", difference=difference)))


def test_a_node_that_joined_needs_nobody() -> None:
    assert reasons(PLAN) == []


@pytest.mark.parametrize("field", LINES)
def test_what_happens_to_lines_is_for_a_person(field: str) -> None:
    value, said = LINES[field]
    (reason,) = reasons(replace(PLAN, lines=replace(PLAN.lines, **{field: value})))
    assert said in reason


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


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PLANNED])
def test_what_is_no_plan_of_a_known_cluster_is_for_a_person(status: Status) -> None:
    assert list(beyond_additions(ClusterReport(name="lab", status=status, difference=PLAN)))
