"""What a plan may not do to its base: lines of the lock that no verb changes so, and what was published."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ipamc.check.published import check_mode_change
from ipamc.check.published_ranges import check_published_ranges
from ipamc.lock.file import line_at
from ipamc.lock.transitions import Reason, Transition
from ipamc.model.diagnostics import Diagnostic, Related, Severity, Span, error
from ipamc.model.lock import Line, Lock, State
from ipamc.model.plan import Plan

if TYPE_CHECKING:
    from ipamc.review.diff import ClusterBase

_WAYS_OUT = {
    Reason.VANISHED: "a line goes only when its addresses are given out again",
    Reason.TAKEN: "a node moves by consent: ipamc lock {cluster} --renumber NODE, and --settle NODE once it is drained",
    Reason.ENDED_EARLY: "if nothing uses it any more, and it was released or renamed by ipamc lock: ipamc plan --allow-released",
    Reason.DAY_CHANGED: "the day on which a line goes into quarantine is the compile's to write",
}


def line_changed(base: Lock, plan: Plan, changes: Iterable[Transition], restore: str) -> Iterator[Diagnostic]:
    """IPC0441: a line of the lock changes only as a verb changes it."""
    for each in changes:
        was, now = each.before, each.after or each.other
        yield error(
            "IPC0441",
            line_at(plan.lock, now) if now else Span(plan.lock.path),
            f"{_named(was, each.line)}: {_said(each, was, now)}",
            also=[Related(line_at(base, was), f"the base has it {stated(was)}")] if was else (),
            help=f"{_WAYS_OUT[each.reason].format(cluster=plan.cluster.name)}; {restore}",
        )


def _said(each: Transition, was: Line | None, now: Line | None) -> str:
    if each.reason is Reason.DAY_CHANGED and now:
        if was and was.since == now.since:
            return f"{stated(now)}, which no verb says of that day"
        return f"{stated(now)}, a day on which no compile can have put it there"
    if now is None:
        return "the line vanished, and none has its addresses"
    if now.state is State.PENDING and was and now.node == was.node:
        return "it was held, and is pending"
    return f"{now.node} has {now.block} {stated(now)}, and no line records a consent"


def _named(was: Line | None, line: Line) -> str:
    """Return a block with its node, and its quarantine in the base: some formats show one end of a finding alone."""
    since = f" ({stated(was)})" if was and was.since else ""
    return f"{line.block} of {(was or line).node}{since}"


def stated(line: Line) -> str:
    """Return the state of a line, of a quarantined one with all that it says."""
    marks = f"{', moved' if line.is_former else ''}{', pending' if line.was_pending else ''}"
    return f"{line.state} since {line.since}{marks}" if line.since else f"{line.state}"


def taken_back(base: ClusterBase, plan: Plan, folder: str) -> Iterator[Diagnostic]:
    """Yield what cannot be taken back of that which the base rendered below `folder`.

    A revert of a commit reverts `rendered/` as well, and a compile compares with the `rendered/` of its own commit: it
    sees nothing wrong. The base is what may have been applied.
    IPC0538 for CIDRs of CiliumPodIPPools that would not stay. IPC0543 for a mode that nodes cannot leave: a warning, because
    the revert is the way out where it was not applied yet.
    """
    rendered = replace(base.rendered, shown=folder)
    for found in check_mode_change(plan.cluster, base.lock, None, rendered):
        if found.code == "IPC0543":
            yield replace(found, severity=Severity.WARNING)
    for found in check_published_ranges(plan, rendered) if rendered.pools else ():
        if found.code == "IPC0538" and found.severity is Severity.ERROR:
            yield found
