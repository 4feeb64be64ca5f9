"""Compile clusters, and print the outcome of each.

Clusters are independent: a refused one does not keep the others from being written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ipamc.cli.command import BUG, DONE, REFUSED
from ipamc.cli.findings import print_findings, problem_of, tell, tell_bugs
from ipamc.cli.terminal import progress
from ipamc.law.change import UNLAWFUL
from ipamc.model.diagnostics import Diagnostic, Refused, Severity, count, names
from ipamc.model.limits import OUTDATED_SHOWN
from ipamc.model.lock import Consent, State
from ipamc.model.wording import typed
from ipamc.report.findings import Failure
from ipamc.workspace import disk, output
from ipamc.workspace.clusters import name_of
from ipamc.workspace.committed import committed_lock
from ipamc.workspace.locked_folder import LockedFolder, lock_folder
from ipamc.workspace.output import Changes
from ipamc.workspace.source import Disk, fleet
from ipamc.workspace.spaces import is_space, write_indexes
from ipamc.workspace.workers import run_all

if TYPE_CHECKING:
    from ipamc.lock.line_changes import LockChange
    from ipamc.model.cluster import Version
    from ipamc.model.lock import Line
    from ipamc.model.plan import Plan
    from ipamc.read.space_index import IndexLine


class ClusterRun(Struct, frozen=True, kw_only=True):
    """What to compile, and what to write."""

    folder: str
    today: str
    consent: Consent = Consent()
    render: bool = True  # write `rendered/` too; else only the lock
    locked: bool = False  # the lock is read-only
    check: bool = False  # write nothing
    onto: str = ""  # a revision whose lock is merged in first
    assume: Version | None = None  # the known minor to assume for a newer Cilium
    disk: Disk = Disk()  # that of `fleet`, if there are more
    dumped: frozenset[str] = frozenset()  # see `Inputs.dumped`


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of a run."""

    name: str
    folder: str
    findings: tuple[Diagnostic, ...] = ()
    done: bool = False  # it was not refused, and the disk is as it should be
    line: str  # what was done, for people
    failed: bool = False  # the environment failed, or ipamc itself; `line` says how
    bug: str = ""  # the traceback, where ipamc itself failed
    index: tuple[tuple[str, tuple[IndexLine, ...]], ...] = ()
    """The cluster's new lines in the indexes of address spaces, by path of the index, where they change."""


def run(task: ClusterRun) -> Outcome:
    """Compile one cluster. A refusal is an outcome, too; `failed` makes an outcome of other exceptions."""
    try:
        with nullcontext() if task.check else lock_folder(task.folder) as held:
            return _run(task, name_of(task.folder), held)
    except Refused as problem:
        return refused(task.folder, problem.diagnostics)


def refused(folder: str, findings: tuple[Diagnostic, ...]) -> Outcome:
    """Return the outcome of a run that was refused."""
    return Outcome(name=name_of(folder), folder=folder, findings=findings, line="refused, nothing written")


def failed(task: ClusterRun, exception: BaseException) -> Outcome:
    """Return the outcome of a run that raised."""
    name, problem = name_of(task.folder), problem_of(exception)
    return Outcome(name=name, folder=task.folder, line=problem.line, failed=True, bug=problem.trace)


def _run(task: ClusterRun, name: str, held: LockedFolder | None) -> Outcome:
    from ipamc.model.plan import StaleReason
    from ipamc.pipeline import compile_cluster, load_folder

    read = replace(task.disk, assume=task.assume).inputs(task.folder)
    inputs = replace(read, today=task.today, consent=task.consent, locked=task.locked, dumped=task.dumped)
    merged = None
    if task.onto:
        from ipamc.workspace.lock_onto import onto

        # No lock is out of date because a day passed.
        merged = onto(task.folder, task.onto, "" if task.check else task.today)
        inputs = replace(inputs, lock=merged.lock)
        from ipamc.workspace.survey import survey_members

        if inputs.surveyed:  # with the ranges of the lock on the disk, or none if that has conflict markers
            inputs = replace(inputs, surveyed=survey_members(task.folder, merged.lock))
    limited = merged if "all" not in task.consent.leave else None
    try:
        compilation = compile_cluster(inputs)
    except Refused:
        if limited and not inputs.surveyed:  # too many leavers, where the inputs were not merged
            cluster, lock = load_folder(inputs)
            absent = {line.node for line in lock.lines if line.in_use} - {node.name for node in cluster.nodes}
            limited.refuse_unmerged(absent - task.consent.leave)
        raise
    if limited:
        leavers = {stale.node for stale in compilation.plan.stale if stale.reason is StaleReason.LEAVER}
        limited.refuse_unmerged(leavers - task.consent.leave)
    plan = compilation.plan
    if task.consent.adopt and (lost := tuple(_unlawful(task, plan))):
        raise Refused((*compilation.diagnostics, *lost))
    lock_text = None if task.locked and not task.check else compilation.lock
    files = compilation.files if task.render else None
    if held:
        changes = output.write(held, lock_text, files, read)
    else:
        changes = output.compare(task.folder, lock_text, files)
    stale = tuple(compilation.index)
    if task.check:
        line = outdated(changes, task.folder, name, stale) if changes or stale else "up to date"
    else:
        line = f"{placed(plan, task.today)}; {summary(changes)}"
    steps = _next_steps(task, plan)
    renamed = None if task.check or not inputs.lock else _may_be_renamed(plan)
    if renamed and committed_lock(task.folder) == inputs.lock:
        before = f"git checkout HEAD -- {typed(inputs.lock_path)}"
        old, new = renamed
        if seen := plan.scheme.cilium_nodes_by_name.get(old):
            before = f"remove CiliumNode {old} from {typed(seen.at.path)}, then {before}"
        steps += (f"if {new} is {old} under a new name: {before} && ipamc lock {name} --rename {old}={new}",)
    against = _judged(merged.before, plan, task.today).lines if merged else ()
    if merged and (
        unlawful := [str(each.line.block) for each in against if each.before and each.verdict in UNLAWFUL]
    ):
        steps += (f"ipamc plan {name} --base {merged.rev} refuses the change of {names(unlawful)}",)
    return Outcome(
        name=name,
        folder=task.folder,
        findings=compilation.diagnostics,
        done=not (task.check and (changes or stale)),
        index=tuple(compilation.index.items()),
        line="\n".join((*(merged.lines if merged else ()), line, *(f"  {step}" for step in steps))),
    )


def _unlawful(task: ClusterRun, plan: Plan) -> Iterator[Diagnostic]:
    """Yield what a plan would refuse of the change since the last commit, which nodes may adopt in two."""
    from ipamc.lock.file import parse
    from ipamc.review.diff.plan_report import line_changed

    path = plan.lock.path
    base = parse(committed_lock(task.folder) or b"", path)[0] if plan.lock.written else None
    if base:
        lines = _judged(base.lines, plan, task.today).lines
        found = [each for each in lines if each.before and each.verdict in UNLAWFUL]
        first = f"commit and merge the present {typed(path)} first; adopt in a separate change"
        for each in line_changed(base, plan, found, task.today, "", ""):
            yield replace(each, help=first)


def _may_be_renamed(plan: Plan) -> tuple[str, str] | None:
    """Return the one node that left and the one that got a new block of the same pool, else None."""
    from ipamc.model.plan import Origin, StaleReason

    by_reason = {
        reason: [stale.node for stale in plan.stale if stale.reason is reason]
        for reason in (StaleReason.LEAVER, StaleReason.NEWCOMER)
    }
    if any(len(nodes) != 1 for nodes in by_reason.values()):
        return None
    (old,), (new,) = by_reason.values()
    left = {line.pool for line in plan.lock.lines if line.node == old and line.state is State.QUARANTINED}
    given = plan.held.get(new, ())
    shown = any(plan.origins.get(line.block) is Origin.ADOPTED for line in given)
    return None if shown or not left & {line.pool for line in given} else (old, new)


def _next_steps(task: ClusterRun, plan: Plan) -> tuple[str, ...]:
    from ipamc.model.cluster import AddressSpace

    consent, steps = task.consent, tuple[str, ...]()
    if isinstance(plan.scheme, AddressSpace):
        move = "reserve the old range in its pool, move its nodes (ipamc lock CLUSTER --renumber CIDR)"
        moved = f"then: ipamc lock {plan.scheme.name} --settle CLUSTER/POOL"
        return (f"next: ipamc compile; {move}, {moved}",) if consent.renumber else ()
    if consent.settle:
        from ipamc.review.runbook.sentences import after_settle

        steps = after_settle(plan, sorted(consent.settle), disk.assets("templates/runbooks"))
    if consent.renumber and not task.check:
        from ipamc.review.runbook.sentences import after_renumber

        steps += after_renumber(plan, consent, disk.assets("templates/runbooks"))
    return steps


def compile_all(tasks: Sequence[ClusterRun], processes: int | None) -> list[Outcome]:
    """Compile every task, address spaces first; keep the order."""
    spaces = [task for task in tasks if len(tasks) > 1 and is_space(task.folder)]
    if spaces and len(spaces) < len(tasks):
        # Clusters have the ranges that spaces give them; what a space refuses of them is not written.
        done = {found.folder: found for found in compile_all(spaces, 1)}
        errors = [each for one in done.values() for each in one.findings if each.severity is Severity.ERROR]
        for folder in (task.folder for task in tasks if task.folder not in done):
            if mine := tuple(each for each in errors if each.at.path.startswith(f"{folder}/")):
                done[folder] = refused(folder, mine)
        rest = [task for task in tasks if task.folder not in done]
        done |= {found.folder: found for found in compile_all(rest, processes)}
        return [done[task.folder] for task in tasks]
    folders = [task.folder for task in tasks]
    known = fleet(folders)
    tasks = [replace(task, disk=known.only(task.folder)) for task in tasks]
    with progress(compiling(folders)):
        found = run_all(tasks, processes, run, failed, prepare)
    if tasks and not tasks[0].check:
        write_indexes((path, each.name, lines) for each in found for path, lines in each.index)
    return found


def prepare() -> None:
    """Import the modules of a compile before this process forks."""
    import jinja2  # noqa: F401 - used by the pipeline
    import jsonschema_rs  # noqa: F401 - as above

    import ipamc.pipeline  # noqa: F401 - used by `run`


def compiling(folders: Sequence[str]) -> str:
    """Return the first text of the progress line."""
    return f"compiling {name_of(folders[0])}" if len(folders) == 1 else "compiling"


def conclude(outcomes: Sequence[Outcome], style: str) -> int:
    """Print the findings of all clusters, then a line for each; return the exit code.
    A bug of ipamc in one cluster is printed at the end, and decides on the exit code.
    """
    failures = [Failure(outcome.folder, outcome.line) for outcome in outcomes if outcome.failed]
    # A space finds what its clusters find.
    found = dict.fromkeys(finding for outcome in outcomes for finding in outcome.findings)
    print_findings(list(found), style, failures)
    tell(style, *(f"{outcome.name}: {outcome.line}" for outcome in outcomes if not outcome.failed))
    if tell_bugs([(outcome.name, outcome.bug) for outcome in outcomes], style):
        return BUG
    return DONE if all(outcome.done for outcome in outcomes) else REFUSED


def placed(plan: Plan, today: str) -> str:
    """Count nodes, added blocks (and why), returned blocks, and nodes that left or are renumbered."""
    from ipamc.model.cluster import AddressSpace
    from ipamc.model.plan import Origin, StaleReason

    origins = Counter(plan.origins.values())
    returned = origins.pop(Origin.RETURNED, 0)
    origins.pop(Origin.RENUMBER, 0)  # `moved` counts their nodes
    why = ", ".join(f"{number:,} {origin}" for origin, number in sorted(origins.items()))
    leavers = {stale.node for stale in plan.stale if stale.reason is StaleReason.LEAVER}
    before, now, moved = plan.lock.written, plan.lock.lines, 0
    if before != now and (before or any(line.state is State.PENDING for line in now)):
        moved = len(_judged(before, plan, today).moving)  # only here can a run renumber
    space = isinstance(plan.scheme, AddressSpace)
    nodes, blocks = ("requested range", "range") if space else ("node", "block")
    return (
        f"{count(len(plan.scheme.nodes), nodes)}, {count(origins.total(), blocks)} added"
        f"{f' ({why})' if why else ''}, {returned:,} returned, {len(leavers):,} left, {moved:,} renumbered"
    )


def _judged(before: Sequence[Line], plan: Plan, today: str) -> LockChange:
    """Return the change from these lines to a plan's, as if the base had the head's Cluster and pools."""
    from ipamc.law.change import Days
    from ipamc.lock.line_changes import line_changes

    days = plan.scheme.quarantine_days
    return line_changes(before, plan.lock.lines, Days(today, days, days), plan.decided_elsewhere)


def summary(changes: Changes) -> str:
    """Return the text about the files that were written to the disk."""
    parts = (
        "lock written" if changes.lock else "",
        f"{count(len(changes.written), 'file')} written" if changes.written else "",
        f"{len(changes.removed):,} removed" if changes.removed else "",
    )
    return ", ".join(filter(None, parts)) or "unchanged"


def outdated(changes: Changes, folder: str, name: str, beside: Sequence[str]) -> str:
    """Return the message with a cluster's outdated files, those `beside` it, and the command to run."""
    paths = ["ipam.lock"] if changes.lock else []
    paths += [f"rendered/{path}" for path in (*changes.written, *changes.removed)]
    cluster = name if folder == f"clusters/{name}" else typed(folder)
    add = " ".join(map(typed, (folder, *beside)))
    stale = names([*paths, *beside], OUTDATED_SHOWN)
    return f"out of date: {stale}\n  next: ipamc compile {cluster} && git add {add}"
