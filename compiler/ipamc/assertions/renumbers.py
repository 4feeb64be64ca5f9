"""Tests about renumbers: each was agreed on, with a ticket."""

from __future__ import annotations

import fnmatch

from ipamc.assertions import rules
from ipamc.assertions.blocks import Verdict
from ipamc.assertions.rules import Wrong
from ipamc.assertions.subjects import Subjects
from ipamc.model.assertion import Assertion, Renumber
from ipamc.model.lock import Line, State
from ipamc.model.plan import Plan
from ipamc.place.allocate.reuse import last_day


def check_renumbers(test: Assertion, demands: Renumber, subjects: Subjects, today: str) -> Verdict:
    """Test that every renumber is in `agreed`. O(lines + entries)."""
    plan = subjects.plan
    under_way = [line for line in plan.lock.lines if _is_renumber(line, plan, today)]
    agreed = {entry.node for entry in demands.agreed}
    missing = [line for line in under_way if line.node not in agreed]
    findings = [
        rules.ticket_misspelt(test, entry, demands.ticket)
        for entry in demands.agreed
        if not fnmatch.fnmatchcase(entry.ticket, demands.ticket)
    ]
    if missing:
        wrong = [
            Wrong(line, subjects.want(line.node), _said(line), test.at / "renumber")
            for line in sorted(missing, key=lambda line: (line.node, line.block))
        ]
        at = test.at / "renumber" / "agreed"
        findings.append(rules.renumber_not_agreed(plan, test, at, wrong))
    nodes = {line.node for line in under_way}
    if idle := [entry for entry in demands.agreed if entry.node not in nodes]:
        findings.append(rules.agreed_for_nothing(test, idle))
    return Verdict(len(nodes), "renumber", "renumbers", tuple(findings))


def _is_renumber(line: Line, plan: Plan, today: str) -> bool:
    """Tell whether a line is of a renumber that is under way, or whose old block is still in quarantine.

    Where a node has several blocks, `ipamc resize` leaves moved lines behind as well: there, they do not count.
    """
    if line.state is State.PENDING:
        return True
    if not line.moved or not plan.cluster.mode.one_block:
        return False
    over = last_day(today, plan.cluster.quarantine_days)
    return not (over and line.since <= over)


def _said(line: Line) -> str:
    if line.state is State.PENDING:
        return f"node {line.node} is to move to {line.block}"
    return f"node {line.node} moved away from {line.block} on {line.since}"
