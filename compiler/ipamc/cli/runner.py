"""Compile clusters, and print what became of each.

Clusters stand alone: a refused one does not keep the others from being written. Only clusters of one address
space that share an address are refused together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ipamc.cli.bugs import problem_of, tell_bugs
from ipamc.cli.command import BUG, DONE, REFUSED
from ipamc.cli.findings import print_findings, tell
from ipamc.cli.interrupted import Account, accounted, of_compile, of_outcomes
from ipamc.cli.terminal import progress
from ipamc.model.diagnostics import Diagnostic, Refused, count, names
from ipamc.model.lock import Consent
from ipamc.model.wording import typed
from ipamc.workspace import disk, output
from ipamc.workspace.cluster_lock import Held, alone
from ipamc.workspace.clusters import name_of
from ipamc.workspace.neighbours import neighbours, refuse_overlaps
from ipamc.workspace.signals import ENDS
from ipamc.workspace.source import Disk
from ipamc.workspace.unfinished import Left, begin, left
from ipamc.workspace.workers import run_all

if TYPE_CHECKING:
    from ipamc.address_space import Neighbours
    from ipamc.model.cluster import Version
    from ipamc.model.plan import Plan
    from ipamc.pipeline import Inputs
    from ipamc.workspace.output import Changes


LISTED = 5
"""How many files are named that are out of date on the disk."""


class ClusterRun(Struct, frozen=True, kw_only=True):
    """What to compile, and what to write."""

    folder: str
    today: str
    consent: Consent = Consent()
    render: bool = True
    """Write `rendered/` too; else only the lock."""
    locked: bool = False
    """The lock is read-only."""
    check: bool = False
    """Write nothing."""
    onto: str = ""
    """A revision whose lock is merged in first."""
    neighbours: Neighbours | None = None
    """The other clusters, where this one may be of an address space."""
    alone: bool = False
    """No other cluster is compiled in this run: neighbours are looked for once the cluster names a space."""
    assume: Version | None = None
    """What a newer Cilium than the known ones is taken for."""


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of a run."""

    name: str
    folder: str
    findings: tuple[Diagnostic, ...] = ()
    done: bool = False
    """It was not refused, and the disk is as it should be."""
    line: str
    """What was done, for people."""
    trouble: bool = False
    """The environment failed, or ipamc itself; `line` says how."""
    bug: str = ""
    """The traceback, where ipamc itself failed."""
    left: Left | None = None
    """What is on the disk, where a signal ended the run."""


def run(task: ClusterRun) -> Outcome:
    """Compile one cluster. A refusal ends in the outcome; of other exceptions `failed` makes one."""
    name = name_of(task.folder)
    begin()
    try:
        with nullcontext() if task.check else alone(task.folder) as held:
            return _run(task, name, held)
    except Refused as refused:
        return Outcome(
            name=name, folder=task.folder, findings=refused.diagnostics, line="refused, nothing written"
        )


def failed(task: ClusterRun, exception: BaseException) -> Outcome:
    """Return the outcome of a run that raised, or that a signal ended."""
    if isinstance(exception, ENDS):
        return Outcome(name=name_of(task.folder), folder=task.folder, line="", left=left(task.folder))
    problem = problem_of(exception)
    return Outcome(
        name=name_of(task.folder), folder=task.folder, line=problem.line, trouble=True, bug=problem.trace
    )


def _run(task: ClusterRun, name: str, held: Held | None) -> Outcome:
    from ipamc.model.plan import StaleReason
    from ipamc.pipeline import compile_cluster

    read = Disk(assume=task.assume).inputs(task.folder)
    inputs = replace(read, today=task.today, consent=task.consent, locked=task.locked)
    merged = None
    if task.onto:
        from ipamc.workspace.lock_onto import onto

        merged = onto(task.folder, task.onto)
        inputs = replace(inputs, lock=merged.lock)
    try:
        compilation = compile_cluster(inputs)
    except Refused:
        if merged and "all" not in task.consent.leave:  # too many leavers, where the inputs were not merged
            merged.refuse_unmerged(_absent(inputs) - task.consent.leave)
        raise
    if merged and "all" not in task.consent.leave:
        leavers = {stale.node for stale in compilation.plan.stale if stale.reason is StaleReason.LEAVER}
        merged.refuse_unmerged(leavers - task.consent.leave)
    if others := _others(task, compilation.plan.cluster.address_space):
        refuse_overlaps(inputs, compilation, others)
    lock = None if task.locked and not task.check else compilation.lock
    files = compilation.files if task.render else None
    changes = output.write(held, lock, files, read) if held else output.compare(task.folder, lock, files)
    if task.check:
        line = outdated(changes, task.folder, name) if changes else "up to date"
    else:
        line = f"{placed(compilation.plan)}; {written(changes)}"
    steps: tuple[str, ...] = ()
    if task.consent.settle:
        from ipamc.review.runbook.sentences import after_settle

        steps = after_settle(compilation.plan, sorted(task.consent.settle), disk.assets("templates/runbooks"))
    if task.consent.renumber and not task.check:
        from ipamc.review.runbook.sentences import after_renumber

        steps += after_renumber(compilation.plan, disk.assets("templates/runbooks"))
    return Outcome(
        name=name,
        folder=task.folder,
        findings=compilation.diagnostics,
        done=not (task.check and changes),
        line="\n".join((*(merged.lines if merged else ()), line, *(f"  {step}" for step in steps))),
    )


def _others(task: ClusterRun, space: str) -> Neighbours | None:
    """Return the other clusters of the address space. A cluster alone is not searched for its name before."""
    if not task.alone:
        return task.neighbours
    return neighbours([task.folder], lambda _: nullcontext()).get(task.folder) if space else None


def _absent(inputs: Inputs) -> set[str]:
    """Return the nodes of the lock that are not in the inventory. Raises Refused."""
    from ipamc.pipeline import load_cluster

    cluster, lock = load_cluster(inputs)
    return {line.node for line in lock.lines if line.in_use} - {node.name for node in cluster.nodes}


def compile_all(tasks: Sequence[ClusterRun], processes: int | None) -> list[Outcome]:
    """Do `run` for every task, each with the other clusters of its address space.

    Outcomes are in the order of the tasks.
    """
    outcomes: dict[int, Outcome] = {}
    with accounted(lambda: of_compile(tasks, outcomes)):
        if len(tasks) == 1:
            tasks = [replace(tasks[0], alone=True)]
        else:
            beside = neighbours([task.folder for task in tasks], progress)
            tasks = [replace(task, neighbours=beside.get(task.folder)) for task in tasks]
        with progress(compiling([task.folder for task in tasks])):
            return run_all(tasks, processes, run, failed, prepare, outcomes)


def prepare() -> None:
    """Import what a compile imports when it comes to it: a copy of this process has nothing else to do yet."""
    import jinja2  # noqa: F401 - used by the pipeline
    import jsonschema_rs  # noqa: F401 - as above

    import ipamc.pipeline  # noqa: F401 - used by `run`


def compiling(folders: Sequence[str]) -> str:
    """Return what is being done, before anything more is known."""
    return f"compiling {name_of(folders[0])}" if len(folders) == 1 else "compiling"


def conclude(outcomes: Sequence[Outcome], style: str) -> int:
    """Print the findings of all clusters, then a line for each; return the exit code.

    A bug of ipamc in one cluster is told at the end, and decides on the exit code. Beside a document nothing
    else is printed.
    """
    from ipamc.report.findings.content import Failure

    with accounted(lambda: Account("; ".join(of_outcomes(outcomes)))):
        failures = [Failure(outcome.folder, outcome.line) for outcome in outcomes if outcome.trouble]
        print_findings([finding for outcome in outcomes for finding in outcome.findings], style, failures)
        for outcome in outcomes:
            if not outcome.trouble:
                tell(style, f"{outcome.name}: {outcome.line}")
        if tell_bugs([(outcome.name, outcome.bug) for outcome in outcomes], style):
            return BUG
        return DONE if all(outcome.done for outcome in outcomes) else REFUSED


def placed(plan: Plan) -> str:
    """Count the nodes, the blocks added (and why) or returned, and the nodes that left or are renumbered."""
    from ipamc.model.plan import Origin, StaleReason

    origins = Counter(plan.origins.values())
    returned = origins.pop(Origin.RETURNED, 0)
    origins.pop(Origin.RENUMBER, 0)  # `renumbered` counts their nodes
    why = ", ".join(f"{number:,} {origin}" for origin, number in sorted(origins.items()))
    leavers = {stale.node for stale in plan.stale if stale.reason is StaleReason.LEAVER}
    return ", ".join(
        (
            count(len(plan.cluster.nodes), "node"),
            f"{count(origins.total(), 'block')} added{f' ({why})' if why else ''}",
            f"{returned:,} returned",
            f"{len(leavers):,} left",
            f"{_renumbered(plan):,} renumbered",
        )
    )


def _renumbered(plan: Plan) -> int:
    """Count the nodes that the run renumbers. Where it cannot, the comparison of locks is not even imported."""
    from ipamc.model.lock import State

    before, now = plan.lock.written, plan.lock.lines
    if before == now or (not before and all(line.state is not State.PENDING for line in now)):
        return 0
    from ipamc.lock.transitions import renumbered
    from ipamc.review.diff.lock_lines import changes_of

    return len(renumbered(changes_of(before, plan), plan.held))


def written(changes: Changes) -> str:
    """Say what was written to the disk."""
    if not changes:
        return "unchanged"
    parts = (
        "lock written" if changes.lock else "",
        f"{count(len(changes.written), 'file')} written" if changes.written else "",
        f"{len(changes.removed):,} removed" if changes.removed else "",
    )
    return ", ".join(filter(None, parts))


def outdated(changes: Changes, folder: str, name: str) -> str:
    """Say which files of a cluster are out of date on the disk, and what to run."""
    paths = [
        *(["ipam.lock"] if changes.lock else []),
        *(f"rendered/{path}" for path in (*changes.written, *changes.removed)),
    ]
    cluster = name if folder == f"clusters/{name}" else typed(folder)
    return f"out of date: {names(paths, LISTED)}\n  next: ipamc compile {cluster} && git add {typed(folder)}"
