"""The plans of several clusters as one report: why it is refused, and its changes other than additions."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from ipamc.check.published import check_mode_change
from ipamc.check.published_ranges import check_published_ranges
from ipamc.lock.file import dumps, line_at
from ipamc.lock.transitions import REFUSED, Reason, Transition
from ipamc.model.diagnostics import Diagnostic, Related, Severity, Span, count, error, names, several
from ipamc.model.lock import Line, Lock, State
from ipamc.model.plan import Plan
from ipamc.review.address_map import ClusterMap, Versions, map_of, versions_of
from ipamc.review.diff import ClusterBase, Difference
from ipamc.review.diff.lock_lines import changes_of


class Picture(Struct, frozen=True, kw_only=True):
    """Address maps of a cluster before and after a plan."""

    map: ClusterMap  # after it
    before: Lock
    changes: tuple[Transition, ...]
    lock_path: str

    @property
    def versions(self) -> Versions:
        """The two locks as versions; a single one if they are equal."""
        versions = versions_of(self.map.lock)
        versions.add(dumps(self.before).encode(), subject="before")
        versions.add_current(self.map.lock, subject="planned")
        return versions


def picture(plan: Plan, before: Lock, lock_path: str, today: str) -> Picture:
    """Return the address maps before and after a plan."""
    mapped = map_of(plan.cluster, plan.lock, plan.wants, today)
    return Picture(map=mapped, before=before, changes=changes_of(before.lines, plan), lock_path=lock_path)


class PlanStatus(enum.StrEnum):
    """The kind of change of a cluster since the base."""

    PLANNED = "planned"
    NEW = "new"
    RENAMED = "renamed"
    DELETED = "deleted"
    REFUSED = "refused"  # the compile was refused: there is no head
    FAILED = "failed"  # an I/O or environment error, a bug of ipamc, or the base cannot be read


class ClusterReport(Struct, frozen=True, kw_only=True):
    """The plan of one cluster."""

    name: str
    status: PlanStatus = PlanStatus.PLANNED
    difference: Difference | None = None  # None if nothing can be compared: deleted, refused or failed
    said: str = ""  # one line about the status, and what to do about it
    findings: tuple[Diagnostic, ...] = ()  # of the head's compile
    nodes: int = 0  # of a deleted cluster: how many nodes held a block at the base
    agreed: bool = False  # of a deleted cluster: the user allows it (`--allow-deleted`)
    picture: Picture | None = None  # only on request
    bug: str = ""  # the traceback of a bug of ipamc

    @property
    def failed(self) -> bool:
        """Return whether the plan is refused without any `--fail-on`."""
        if self.difference is not None and self.difference.unlawful:
            return True
        gone = self.status is PlanStatus.DELETED and not self.agreed
        return gone or self.status in {PlanStatus.REFUSED, PlanStatus.FAILED}

    @property
    def changed(self) -> bool:
        """Return whether the report shows more than "no changes"."""
        return self.status is not PlanStatus.PLANNED or self.difference is None or self.difference.changed


class PlanReport(Struct, frozen=True, kw_only=True):
    """The plans of all clusters."""

    base: str  # the revision as the user named it; "" if the base is the disk
    clusters: tuple[ClusterReport, ...]  # deleted ones first, then by name
    scope: tuple[str, ...] = ()
    """The clusters that the user named; empty for all. A pull request has a comment for each scope."""


_WAYS_OUT = {
    Reason.VANISHED: "a line goes only when its addresses are given out again",
    Reason.TAKEN: "a node moves by consent: ipamc lock {cluster} --renumber NODE, and --settle NODE once it "
    "is drained",
    Reason.ENDED_EARLY: "if nothing uses it any more, and it was released or renamed by ipamc lock: ipamc "
    "plan --allow-released",
    Reason.DAY_CHANGED: "the day on which a line goes into quarantine is the compile's to write",
}


def line_changed(base: Lock, plan: Plan, changes: Iterable[Transition], restore: str) -> Iterator[Diagnostic]:
    """IPC0441: a line of the lock changes only as a verb changes it."""
    for each in changes:
        was, now = each.before, each.after or each.other
        # The text includes the quarantine in the base: some formats print only one place of a finding.
        since = f" ({stated(was)})" if was and was.since else ""
        text = f"{each.line.block} of {(was or each.line).node}{since}: {_what_changed(each, was, now)}"
        also = [Related(line_at(base, was), f"the base has it {stated(was)}")] if was else []
        way_out = f"{_WAYS_OUT[each.reason].format(cluster=plan.cluster.name)}; {restore}"
        at = line_at(plan.lock, now) if now else Span(plan.lock.path)
        yield error("IPC0441", at, text, also=also, help=way_out)


def _what_changed(each: Transition, was: Line | None, now: Line | None) -> str:
    if each.reason is Reason.DAY_CHANGED and now:
        if was and was.since == now.since:
            return f"{stated(now)}, which no verb says of that day"
        return f"{stated(now)}, a day on which no compile can have put it there"
    if now is None:
        return "the line vanished, and none has its addresses"
    if now.state is State.PENDING and was and now.node == was.node:
        return "it was held, and is pending"
    return f"{now.node} has {now.block} {stated(now)}, and no line records a consent"


def stated(line: Line) -> str:
    """Return the state of a line as text; for quarantine, with its day and node."""
    marks = f"{', moved' if line.moved else ''}{', pending' if line.was_pending else ''}"
    return f"{line.state} since {line.since}{marks}" if line.since else f"{line.state}"


def revoked(base: ClusterBase, plan: Plan, folder: str) -> Iterator[Diagnostic]:
    """Yield findings about files that the base rendered below `folder`, may have applied, and a plan revokes.
    A revert of a commit reverts `rendered/` as well. A compile compares only with the `rendered/` of its own
    commit, so it finds nothing wrong. IPC0538 is for CIDRs of CiliumPodIPPools that would vanish. IPC0543 is
    for a mode that nodes cannot leave: a warning, because a revert is right if the mode was not applied yet.
    """
    rendered = replace(base.rendered, shown=folder)
    for found in check_mode_change(plan.cluster, base.lock, None, rendered):
        if found.code == "IPC0543":
            yield replace(found, severity=Severity.WARNING)
    for found in check_published_ranges(plan, rendered) if rendered.pools else ():
        if found.code == "IPC0538" and found.severity is Severity.ERROR:
            yield found


_UNLAWFUL = {
    Reason.VANISHED: ("line", "vanished from the lock"),
    Reason.TAKEN: ("held block", "changed hands, and no line records a consent"),
    Reason.ENDED_EARLY: ("quarantine", "ended early; if it was by consent: --allow-released"),
    Reason.DAY_CHANGED: ("line", "in quarantine since a day that cannot be"),
}


def _line_text(each: Transition) -> str:
    was, now = each.before or each.line, each.other or each.after
    if each.reason is Reason.DAY_CHANGED and now:
        return f"{was.block} of {was.node} ({f'{stated(was)}, now ' if was is not now else ''}{stated(now)})"
    if now is None:
        return f"{was.node} ({was.block})"
    since = f", {stated(was)}" if was.since else ""
    return f"{was.block} of {was.node}{since} ({now.node} has {now.block})"


def published_lost(cluster: ClusterReport) -> int:
    """Count the errors about published ranges that would vanish, of a compiled cluster."""
    return sum(found.severity is Severity.ERROR and found.code != "IPC0441" for found in cluster.findings)


def refusals(report: PlanReport, fail_on: Collection[str]) -> Iterator[str]:
    """Yield the reasons why the plan is refused, a line each.
    Reasons are deleted clusters, changes of lines that no verb makes, published CIDRs that would vanish, and
    the changes in `fail_on`.
    """
    for cluster in report.clusters:
        if cluster.status is PlanStatus.DELETED and not cluster.agreed:
            gone = "the cluster was deleted, and its lock with it"
            yield f"{cluster.name}: {gone}; if it may go: --allow-deleted"
        if cluster.status is PlanStatus.DELETED and "leave" in fail_on:
            left_nodes = count(cluster.nodes, "node")
            yield f"{cluster.name}: {left_nodes} left with the whole cluster (--fail-on leave)"
        if cluster.difference is None:
            continue
        lines = cluster.difference.lines
        if lost := published_lost(cluster):
            yield f"{cluster.name}: {count(lost, 'error')}: the base published what would not stay here"
        for reason in REFUSED:
            if which := [_line_text(each) for each in cluster.difference.unlawful if each.reason is reason]:
                yield f"{cluster.name}: {several(which, *_UNLAWFUL[reason])}"
        renumbered = {renumber.node for renumber in (*lines.pending, *lines.completed)}
        left = {
            each.line.node
            for each in (*lines.of(Reason.LEFT), *lines.released)
            if each.before is None or each.before.state is State.HELD
        }
        released = {str(each.line.block) for each in lines.released}
        short = {f"{room.pool} (IPv{room.family})" for room in cluster.difference.capacity if room.short}
        for gate, found, said in (
            ("renumber", renumbered, f"{count(len(renumbered), 'node')} renumbered"),
            ("release", released, f"{count(len(released), 'block')} released"),
            ("leave", left, f"{count(len(left), 'node')} left"),
            ("capacity", short, f"{count(len(short), 'pool')} with little room left"),
        ):
            if found and gate in fail_on:
                yield f"{cluster.name}: {said} (--fail-on {gate}): {names(found)}"


def beyond_additions(report: ClusterReport) -> Iterator[str]:
    """Yield a line for each change of a plan other than added nodes and uids; nothing if there is none.
    A line that was pending and still is, is no change. A re-created node keeps its block: only its uid
    changes, which the plan does not list.
    """
    if report.status is not PlanStatus.PLANNED or report.difference is None:
        yield f"the cluster is {report.status}: {report.said}"
        return
    difference = report.difference
    if moved := {move.node for move in (*difference.lines.pending, *difference.lines.completed)}:
        yield f"it renumbers {several(moved, 'node')}"
    for what, changes in (
        ("quarantined", difference.lines.of(Reason.LEFT)),
        ("released", difference.lines.released),
        ("no longer shown by the operator", difference.lines.of(Reason.TAKEN_BACK)),
        ("given back by use", difference.lines.of(Reason.GIVEN_BACK)),
        ("with other single addresses", difference.lines.of(Reason.RESIZED)),
        ("changed as no verb changes them", difference.lines.of(*REFUSED)),
    ):
        if changes:
            yield several([f"{each.line.node} ({each.line.block})" for each in changes], "block", what)
    if again := [
        f"{each.line.node} ({each.line.block}, of {each.of})" for each in difference.lines.added if each.of
    ]:
        yield several(again, "block", "given again")
    if difference.lines.pool_transfers:
        yield "ranges belong to other pools now"
    if difference.settings:
        yield f"it changes {names(setting.name for setting in difference.settings)} of the lock"
    if difference.flags:
        yield f"it changes {several([flag.name for flag in difference.flags], 'flag')}"
    if difference.pools or not difference.pools_known:
        changed = names(pool.name for pool in difference.pools)
        yield f"it changes pools: {changed}" if difference.pools else "what it does to pools is not known"
    if difference.steps:
        yield "it must be brought to the cluster in steps"
    if difference.restarts:
        yield f"it needs a restart of {names(restart.who for restart in difference.restarts)}"
    if difference.leaving:
        left = names(f"{group.kind} {name}" for group in difference.leaving for name in group.names)
        yield f"objects leave the tree: {left}"
