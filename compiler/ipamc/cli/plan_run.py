"""One cluster of a plan: compiled, compared with its base, judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ipamc.cli.bugs import problem_of
from ipamc.model.diagnostics import Refused, Severity, count
from ipamc.model.progress import phase
from ipamc.workspace import disk
from ipamc.workspace.clusters import name_of

if TYPE_CHECKING:
    from ipamc.address_space import Neighbours
    from ipamc.model.cluster import Version
    from ipamc.review.diff.plan_report import ClusterReport
    from ipamc.workspace.neighbours import Folders
    from ipamc.workspace.source import Source


class PlanRun(Struct, frozen=True, kw_only=True):
    """A cluster to plan."""

    folder: str
    today: str
    revision: str
    """Of the base, as the user named it; "" for the disk."""
    source: Source
    """Where the base is read."""
    folders: Folders
    """What of it is where, and of its neighbours."""
    neighbours: Neighbours | None = None
    """The other clusters, where this one may be of an address space."""
    assume: Version | None = None
    """What a newer Cilium than the known ones is taken for."""
    picture: bool = False
    """The result has a map of the cluster, too."""
    released: bool = False
    """A quarantine may have ended early."""


def run(task: PlanRun) -> ClusterReport:
    """Plan one cluster. A refusal ends in the result; of other exceptions `failed` makes one."""
    from ipamc.review.diff.plan_report import ClusterReport, Status

    name = name_of(task.folder)
    try:
        return _run(task, name)
    except Refused as refused:
        errors = sum(finding.severity is Severity.ERROR for finding in refused.diagnostics)
        return ClusterReport(
            name=name,
            status=Status.REFUSED,
            said=f"{count(errors, 'error')}, so there is nothing to compare",
            findings=refused.diagnostics,
        )


def failed(task: PlanRun, exception: BaseException) -> ClusterReport:
    """Return the plan of a cluster whose run raised."""
    from ipamc.review.diff.plan_report import ClusterReport, Status

    problem = problem_of(exception)
    return ClusterReport(
        name=name_of(task.folder), status=Status.FAILED, said=problem.line, bug=problem.trace
    )


def _run(task: PlanRun, name: str) -> ClusterReport:
    from ipamc.lock.transitions import Reason
    from ipamc.pipeline import compile_cluster
    from ipamc.read.locate import locate
    from ipamc.review.diff import compare, empty_base
    from ipamc.review.diff.plan_report import ClusterReport, Status, picture
    from ipamc.review.lock_law import line_changed, taken_back
    from ipamc.workspace.neighbours import refuse_overlaps, refuse_takeovers
    from ipamc.workspace.plan_base import cluster_base, way_back
    from ipamc.workspace.source import Commit, Disk

    inputs = replace(Disk(assume=task.assume).inputs(task.folder), today=task.today)
    compilation = compile_cluster(inputs)
    if task.neighbours:
        refuse_overlaps(inputs, compilation, task.neighbours)
    phase("reading the base")
    was = task.folders.was
    before = cluster_base(task.source, was, inputs, compilation)
    status, said = Status.PLANNED, ""
    if before is None:
        status, said = Status.NEW, f"{task.revision} has no such cluster"
    elif was != task.folder:
        status = Status.RENAMED
        said = f"it is {name_of(was)} in {task.revision}, and is compared with that"
    phase("comparing")
    plan = compilation.plan
    base = before or empty_base(name, plan.lock.mode)
    if isinstance(task.source, Commit):
        refuse_takeovers(inputs, compilation, base.cluster, task.source, task.folders)
    allowed = {Reason.ENDED_EARLY} if task.released else ()
    difference = compare(base, compilation, task.today, disk.assets("templates/runbooks"), allowed)
    restore = way_back(task.revision, plan.lock.path, name) if difference.unlawful else ""
    lost = (
        *line_changed(base.lock, plan, difference.unlawful, restore),
        *(taken_back(base, plan, f"{task.folder}/{disk.RENDERED}") if task.revision else ()),
    )
    return ClusterReport(
        name=name,
        status=status,
        said=said,
        difference=difference,
        findings=(*compilation.diagnostics, *locate(lost, inputs.sources)),
        picture=picture(plan, base.lock, inputs.lock_path, task.today) if task.picture else None,
    )
