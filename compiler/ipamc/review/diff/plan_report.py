"""The plans of several clusters as one report: why it is refused, and its changes other than additions."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator
from math import inf
from shlex import quote

from msgspec import Struct
from msgspec.structs import replace

from ipamc.check.published import check_mode_change
from ipamc.check.published_ranges import check_published_ranges
from ipamc.law.change import Gate, Verdict
from ipamc.lock.file import dumps, first_shards, line_at
from ipamc.lock.file_rules import row_at
from ipamc.lock.line_changes import VANISHED, LineChange
from ipamc.model.diagnostics import Diagnostic, Related, Severity, Span, count, error, names, several
from ipamc.model.lock import Line, Lock, State
from ipamc.model.plan import Plan
from ipamc.model.pool_words import terms
from ipamc.review.address_map import ClusterMap, Versions, map_of, versions_of
from ipamc.review.diff import ClusterBase, Difference
from ipamc.review.diff.lock_lines import LineChanges


class Picture(Struct, frozen=True, kw_only=True):
    """Address maps of a cluster before and after a plan."""

    map: ClusterMap  # after it
    before: Lock
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
    mapped = map_of(plan.scheme, plan.lock, plan.wants, today)
    return Picture(map=mapped, before=before, lock_path=lock_path)


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
    unlawful: tuple[LineChange, ...] = ()  # changes of lines for which the plan is refused
    said: str = ""  # one line about the status, and what to do about it
    findings: tuple[Diagnostic, ...] = ()  # of the head's compile
    nodes: int = 0  # of a deleted cluster: how many nodes held a block at the base
    agreed: bool = False  # of a deleted cluster: the user allows it (`--allow ipamc/delete-cluster`)
    picture: Picture | None = None  # only on request
    bug: str = ""  # the traceback of a bug of ipamc

    @property
    def failed(self) -> bool:
        """Return whether the plan is refused without any `--fail-on`."""
        gone = self.status is PlanStatus.DELETED and not self.agreed
        return gone or bool(self.unlawful) or self.status in {PlanStatus.REFUSED, PlanStatus.FAILED}

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


def line_changed(
    base: Lock, plan: Plan, changes: Iterable[LineChange], today: str, revision: str, restore: str
) -> Iterator[Diagnostic]:
    """IPC0441: only commands of ipamc change lines of the lock."""
    for each in changes:
        was, now, name = each.before or each.line, each.now, plan.scheme.name
        text = _what_changed(each, was, now, today)
        way_out = _WAYS_OUT[each.fault].format(name=name, node=was.node)
        if each.verdict is Verdict.DATED and revision and now and now.since <= today:
            way_out = f"on an old branch, to set it to today: ipamc lock {name} --onto {quote(revision)}"
        elif now and now.state is State.RELEASED and was.state is State.HELD and not each.to:
            way_out = "first remove the node, then release its block in another change"
        # The text includes the quarantine in the base: some formats print only one place of a finding.
        since = f" ({stated(was)})" if was.since else ""
        also = [Related(line_at(base, was), f"{stated(was)} in the base")]
        at = line_at(plan.lock, now) if now else Span(plan.lock.path)
        message = f"{was.block} of {was.node}{since}: {text}"
        yield error("IPC0441", at, message, also=also, help=f"{way_out}; {restore}")


def shards_grown(base: Lock, plan: Plan, restore: str) -> Iterator[Diagnostic]:
    """IPC0442: the lock gets at most twice as many shards as the nodes need."""
    cluster, shards = plan.scheme, plan.lock.shards
    needs = first_shards(len(cluster.nodes), cluster.shard_size)
    if shards > max(base.shards, 2 * needs):
        of = f"the base has {base.shards:,}" if base.shards else "the base has no shards"
        nodes = count(len(cluster.nodes), terms(cluster).unit)
        need = f"{nodes} need {needs:,} (shardSize {cluster.shard_size:,})"
        at = row_at(plan.lock.path, 1, plan.lock.text.partition(b"\n")[0], shards)
        message = f"{shards:,} shards, but {need}; {of}"
        yield error("IPC0442", at, message, help=restore or f'write "shards":{needs} in the first line')


def fewer_addresses(
    base: Lock, plan: Plan, changes: Iterable[LineChange], restore: str
) -> Iterator[Diagnostic]:
    """IPC0443: a node that keeps a block keeps all its single addresses in it."""
    for each in changes:
        was, now = each.before, each.after
        if was and now and (now.addresses or inf) < (was.addresses or inf):
            old = f"{was.addresses:,}" if was.addresses else "all of them"
            message = f"{now.block} of {now.node} has {now.addresses:,} addresses, but {old} in the base"
            also = [Related(line_at(base, was), "the base has more")]
            whole = f"to return a whole block: ipamc resize {plan.scheme.name} dump.json"
            fix = f"{whole}; {restore}"
            yield error("IPC0443", line_at(plan.lock, now), message, also=also, help=fix)


def agree(gate: str) -> str:
    """Return how a person agrees to a change."""
    return f"to agree, set the label ipamc/{gate}, or use --allow ipamc/{gate}"


_WAYS_OUT = {
    VANISHED: "a line may disappear only when its addresses are given out again",
    Verdict.TAKEN: "to agree: ipamc lock {name} --renumber {node}, then --settle once it is drained",
    Verdict.ENDED_EARLY: "if nothing uses it, set the label ipamc/release, or use --allow ipamc/release",
    Verdict.DATED: "do not edit the day: the compile sets it when a line goes into quarantine",
}


def _what_changed(each: LineChange, was: Line, now: Line | None, today: str) -> str:
    if now is None:
        return "the line vanished, and no other line has its addresses"
    if each.verdict is Verdict.DATED:
        why = "a day in the future" if now.since > today else "a day before the one in the base"
        held = was.state is State.HELD and now.since <= today
        return f"{stated(now)}, {'too long ago for a block that is held in the base' if held else why}"
    if now.state is State.PENDING and now.node == was.node and not was.since:
        return "it was held, but is now pending"
    return f"{now.node} now has {now.block} ({stated(now)}), but no line records a consent"


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
    for found in check_mode_change(plan.scheme, base.lock, None, rendered):
        if found.code == "IPC0543":
            yield replace(found, severity=Severity.WARNING)
    for found in check_published_ranges(plan, rendered) if rendered.pools else ():
        if found.code == "IPC0538" and found.severity is Severity.ERROR:
            yield found


def published_lost(cluster: ClusterReport) -> int:
    """Count the errors about published ranges that would vanish, of a compiled cluster."""
    return sum(found.severity is Severity.ERROR and found.code == "IPC0538" for found in cluster.findings)


def _line_text(each: LineChange) -> str:
    was, now = each.before or each.line, each.now
    if now is None:
        return f"{was.node} ({was.block})"
    if each.verdict is Verdict.DATED:
        return f"{was.block} of {was.node} ({f'{stated(was)}, now ' if was.since else ''}{stated(now)})"
    since = f", {stated(was)}" if was.since else ""
    has = f"{now.node} has {now.block}{'' if each.to else f' {stated(now)}'}"
    return f"{was.block} of {was.node}{since} ({has})"


_FAULTS = {
    VANISHED: ("line", "vanished from the lock"),
    Verdict.TAKEN: ("held block", "changed without a recorded consent"),
    Verdict.ENDED_EARLY: ("quarantine", f"ended early; {agree(Gate.RELEASE)}"),
    Verdict.DATED: ("line", "in quarantine since an impossible day"),
}
_GATED = {
    Gate.RENUMBER: ("node", "renumbered"),
    Gate.RENAME: ("node", "renamed"),
    Gate.RELEASE: ("block", "released early"),
    Gate.FOLLOW: ("node", "moved by its address, or by Cilium's operator"),
    Gate.LEAVE: ("node", "left"),
}


def refusals(report: PlanReport, fail_on: Collection[str]) -> Iterator[str]:
    """Yield the reasons why the plan is refused, a line each.
    Reasons are deleted clusters, changes of lines that no verb makes, published CIDRs that would vanish, and
    the changes in `fail_on`.
    """
    for cluster in report.clusters:
        if cluster.status is PlanStatus.DELETED and not cluster.agreed:
            gone = f"the cluster was deleted with its lock; {agree(Gate.DELETE_CLUSTER)}"
            yield f"{cluster.name}: {gone}"
        if cluster.status is PlanStatus.DELETED and Gate.LEAVE in fail_on:
            left_nodes = count(cluster.nodes, "node")
            yield f"{cluster.name}: {left_nodes} left with the whole cluster (--fail-on leave)"
        if cluster.difference is None:
            continue
        if lost := published_lost(cluster):
            yield f"{cluster.name}: {count(lost, 'error')}: published CIDRs would vanish"
        if any(found.code == "IPC0442" for found in cluster.findings):
            yield f"{cluster.name}: the lock has more shards than its nodes need"
        if fewer := sum(found.code == "IPC0443" for found in cluster.findings):
            yield f"{cluster.name}: {count(fewer, 'block')} with fewer single addresses"
        for fault, words in _FAULTS.items():
            if which := [_line_text(each) for each in cluster.unlawful if each.fault == fault]:
                yield f"{cluster.name}: {several(which, *words)}"
        for gate, said, found in _fired(cluster.difference.lines):
            if gate in fail_on:
                yield f"{cluster.name}: {said} (--fail-on {gate}): {found}; {agree(gate)}"
        if (weaker := cluster.difference.weaker) and Gate.WEAKER in fail_on:
            said = f"less safe than before (--fail-on {Gate.WEAKER})"
            what = names(setting.name for setting in weaker)
            yield f"{cluster.name}: {said}: {what}; {agree(Gate.WEAKER)}"
        if (disputed := cluster.difference.disputed) and "disputed" in fail_on:
            said = f"{count(len(disputed), 'disputed node')} (--fail-on disputed)"
            yield f"{cluster.name}: {said}: {names(node for node, _ in disputed)}; {agree('disputed')}"
        short = {f"{room.pool} (IPv{room.family})" for room in cluster.difference.capacity if room.short}
        if short and "capacity" in fail_on:
            said = f"{count(len(short), 'pool')} with little room left (--fail-on capacity)"
            yield f"{cluster.name}: {said}: {names(short)}"


def _fired(lines: LineChanges) -> Iterator[tuple[Gate, str, str]]:
    """Yield the gates that changes are about, with how many there are and of which nodes or blocks."""
    for gate, (unit, what) in _GATED.items():
        changes = lines.gated(gate)
        if found := {_whose(each, gate) if unit == "node" else str(each.line.block) for each in changes}:
            yield gate, f"{count(len(found), unit)} {what}", names(found)


def _whose(change: LineChange, gate: Gate) -> str:
    """Return the node that a gate is about: the one that moves to a block, or had it."""
    if change.begins or change.before is None:
        return change.line.node
    return change.before.node + (f" (now {change.to})" if gate is Gate.RENAME else "")


def beyond_additions(report: ClusterReport) -> Iterator[str]:
    """Yield a line for each change of a plan other than added nodes and uids; nothing if there is none.
    A line that was pending and still is, is no change. A re-created node keeps its block: only its uid
    changes, which the plan does not list.
    """
    if report.status is not PlanStatus.PLANNED or report.difference is None:
        yield f"the cluster is {report.status}: {report.said}"
        return
    difference = report.difference
    lines = difference.lines
    yield from (f"{said}: {found}" for _, said, found in _fired(lines))
    for what, changes in (
        ("with a cancelled move", lines.of(Verdict.CANCELLED)),
        ("returned because unused", lines.of(Verdict.GIVEN_BACK)),
        ("with other single addresses", lines.resized),
        ("changed in a way that no verb allows", lines.refused),
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
    if difference.disputed:
        yield several([node for node, _ in difference.disputed], "node", "disputed")
    if difference.weaker:
        yield f"it makes the cluster less safe: {names(setting.name for setting in difference.weaker)}"
    if difference.flags:
        yield f"it changes {several([flag.name for flag in difference.flags], 'flag')}"
    if difference.pools or not difference.pools_known:
        changed = names(pool.name for pool in difference.pools)
        yield f"it changes pools: {changed}" if difference.pools else "its effect on pools is unknown"
    if difference.steps:
        yield "it must be applied in steps"
    if difference.restarts:
        yield f"it needs a restart of {names(restart.who for restart in difference.restarts)}"
    if difference.leaving:
        left = names(f"{group.kind} {name}" for group in difference.leaving for name in group.names)
        yield f"objects leave the tree: {left}"
