"""Tests about renumbers: each was agreed on, with a ticket."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from ipamc.assertions.assertion_rules import SHOWN, Wrong, cancel_of, fails, has, line_place, said
from ipamc.assertions.blocks import Judgement
from ipamc.assertions.subjects import Subjects
from ipamc.model.assertion import Agreed, Assertion, Renumber
from ipamc.model.diagnostics import Diagnostic, Place, Related, count, names, warning
from ipamc.model.lock import Line, State
from ipamc.model.plan import Plan
from ipamc.model.wording import shown
from ipamc.place.allocate.occupancy import last_day


def check_renumbers(test: Assertion, asserts: Renumber, subjects: Subjects, today: str) -> Judgement:
    """Test that every renumber is in `agreed`. O(lines + entries)."""
    plan = subjects.plan
    subjects.count(len(plan.lock.lines))
    under_way = [line for line in plan.lock.lines if _is_renumber(line, plan, today)]
    agreed = {entry.node for entry in asserts.agreed}
    missing = [line for line in under_way if line.node not in agreed]
    findings = [
        ticket_misspelt(test, entry, asserts.ticket)
        for entry in asserts.agreed
        if not fnmatch.fnmatchcase(entry.ticket, asserts.ticket)
    ]
    if missing:
        wrong = []
        for line in sorted(missing, key=lambda line: (line.node, line.block)):
            moved = f"node {line.node} moved away from {line.block} on {line.since}"
            why = has(plan, line) if line.state is State.PENDING else moved
            wrong.append(Wrong(line, subjects.want(line.node), why, test.at / "renumber"))
        findings.append(renumber_not_agreed(plan, test, test.at / "renumber" / "agreed", wrong))
    nodes = {line.node for line in under_way}
    if idle := [entry for entry in asserts.agreed if entry.node not in nodes]:
        findings.append(agreed_for_nothing(test, idle))
    return Judgement(len(nodes), "renumber", "renumbers", tuple(findings))


def _is_renumber(line: Line, plan: Plan, today: str) -> bool:
    """Tell whether a line is of a renumber that is under way, or whose old block is still in quarantine.
    Moved lines of nodes with several blocks do not count: `ipamc resize` leaves them behind as well.
    """
    if line.state is State.PENDING:
        return True
    if not line.is_former or not plan.cluster.mode.one_block:
        return False
    over = last_day(today, plan.cluster.quarantine_days)
    return not (over and line.since <= over)


def renumber_not_agreed(plan: Plan, test: Assertion, at: Place, wrong: Sequence[Wrong]) -> Diagnostic:
    """IPC1006: every renumber has a ticket."""
    nodes = list(dict.fromkeys(found.line.node for found in wrong))
    entries = ", ".join(f"{{node: {node}, ticket: …}}" for node in nodes[:SHOWN])
    cancel = cancel_of(plan, [found.line for found in wrong])
    message = f"{count(len(nodes), 'node')} renumbered without one: {names(nodes)}"
    also = [Related(line_place(plan, found.line, found.want), found.why) for found in wrong[:SHOWN]]
    fix = f"first add to agreed: {entries}{' …' if len(nodes) > SHOWN else ''}"
    return fails("IPC1006", test, at, message, also, f"{fix}, or {cancel}" if cancel else fix)


def agreed_for_nothing(test: Assertion, idle: Sequence[Agreed]) -> Diagnostic:
    """IPC1010: every renumber in `agreed` is under way."""
    entries = f"{count(len(idle), 'entry', 'entries')} of agreed for nodes that are not renumbered"
    message = f"{said(test)}: {entries}: {names(entry.node for entry in idle)}"
    return warning("IPC1010", idle[0].at, message, help="remove it, or renumber the node")


def ticket_misspelt(test: Assertion, entry: Agreed, pattern: str) -> Diagnostic:
    """IPC1012: every ticket in `agreed` matches the pattern `ticket`."""
    message = f"{shown(entry.ticket)} for node {entry.node} is not like {shown(pattern)}"
    also = [Related(test.at / "renumber" / "ticket", "tickets are described here")]
    return fails("IPC1012", test, entry.at / "ticket", message, also, "correct the ticket")
