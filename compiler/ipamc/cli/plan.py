"""`ipamc plan`: what a compile changes, against a git revision or the disk."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from shlex import quote
from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from ipamc.cli import options
from ipamc.cli.command import BUG, CHANGED, DONE, REFUSED, Verb
from ipamc.cli.findings import files_option, format_option, print_findings, problem_of, tell, tell_bugs
from ipamc.cli.terminal import colour, progress, show, show_json
from ipamc.law.change import Gate
from ipamc.model.diagnostics import Refused, Severity, count
from ipamc.model.lock import Lock, State
from ipamc.model.progress import phase
from ipamc.report.findings import FORMATS as FINDING_FORMATS
from ipamc.report.findings import Failure
from ipamc.review import GATES
from ipamc.workspace import disk
from ipamc.workspace.clusters import clusters_folder, find, folder_of, name_of
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.safe_read import refuse_links
from ipamc.workspace.source import Commit, Disk, fleet

if TYPE_CHECKING:
    from ipamc.review.diff.plan_report import ClusterReport, PlanReport
    from ipamc.workspace.plan_base import Base
    from ipamc.workspace.source import Source

FORMATS = ("text", "markdown", "json", "html", "svg")
MAPPED = frozenset({"html", "svg"})  # the formats that show maps


class PlanRun(Struct, frozen=True, kw_only=True):
    """A cluster to plan."""

    folder: str
    today: str
    revision: str  # the base, as the user named it; "" for the disk
    source: Source  # the source of the base
    was: str = ""  # its folder in the base, if that was another one
    gone: tuple[str, ...] = ()  # clusters whose deletion the user allows
    assume: options.Minor | None = None  # the known minor that a newer Cilium is taken for
    mapped: bool = False  # the result has a map of the cluster, too
    allow: frozenset[str] = frozenset()  # the gates that labels open
    hiding: Mapping[str, str] = {}  # files that hide others, and how
    disk: Disk = Disk()  # that of `fleet`, if there are more
    filters: bool = False  # what changes of routers' filters is shown in any case


_words = options.checked(options.gates)


def allowed(value: tuple[str, ...]) -> frozenset[str]:
    """Return the gates that labels open: ipamc/GATE. A label `release` may be of another tool."""
    found = [label for text in value for label in text.split(",")]
    return frozenset(label.removeprefix("ipamc/") for label in found if label.startswith("ipamc/"))


_WRITE = "Also write the plan to this file, in this format. Repeatable, with one compile for all."
_FAIL_ON = f"Exit 1 on these changes, unless --allow permits them: {', '.join(GATES)}."


FORMER = {"--allow-deleted": "--allow=ipamc/delete-cluster", "--allow-released": "--allow=ipamc/release"}
"""Former options: pipelines of users have them, help does not show them."""


@click.command(cls=Verb, former=FORMER)
@options.clusters_argument
@options.clusters_from_option
@click.option("--base", type=options.Revision(), metavar="REV")
@options.output_option(*FORMATS)
@files_option("--write", "files", FORMATS, _WRITE)
@click.option("--detailed-exitcode", is_flag=True)
@click.option(
    "--fail-on", multiple=True, callback=options.checked(options.gates), metavar="WORD,…", help=_FAIL_ON
)
@click.option("--allow", multiple=True, callback=options.checked(allowed), metavar="LABEL,…")
@click.option("--filters", is_flag=True)
@options.jobs_option
@options.assume_option
@format_option
def command(  # noqa: PLR0913 - an argument for each option
    *,
    clusters: tuple[str, ...],
    listed: str | None,
    base: str | None,
    output: str,
    files: tuple[tuple[str, str], ...],
    detailed_exitcode: bool,
    fail_on: frozenset[str],
    allow: frozenset[str],
    filters: bool,
    jobs: int | None,
    assume: options.Minor | None,
    style: str,
) -> int:
    """Show what a compile changes, and what that does to the running cluster. Writes nothing.

    Lists the blocks that are added, quarantined, released or renumbered, changed flags and pools, free room,
    steps of a mode change, restarts, and objects that leave.

    Compares a compile of the working tree with the base: the lock and the rendered files at --base, or on the
    disk. CLUSTER is a name below clusters/ or a folder; by default all clusters, also those that only the
    base has.

    Options:
        --base: Compare with the lock and the rendered files of this revision, not with those on the disk.
        --detailed-exitcode: Exit 2 if something changes.
        --allow: Labels of the request: ipamc/rename allows what --fail-on rename refuses. Other labels are
            ignored. Even without --fail-on, a deleted cluster needs ipamc/delete-cluster (applied objects
            stay), and a quarantine that ends early without --release needs ipamc/release.
        --filters: Show which lines of router filters to add before the apply and to remove after it, even if
            `bgp` of the Cluster is none.
    Examples:
        ipamc plan  # what 'ipamc compile' would change in all clusters below clusters/
        ipamc plan --base origin/main  # what this branch changes
        ipamc plan --base origin/main --output markdown  # the same, as a comment for a pull request
        ipamc plan lab --base HEAD~1 --output json  # the same, for programs
        ipamc plan --base origin/main --output html > plan.html  # maps before and after, with search
        ipamc plan --base origin/main --output svg > plan.svg  # a picture of the changed parts of the maps
        ipamc plan --base origin/main --fail-on renumber,leave  # exit 1 if a node is renumbered or leaves
        ipamc plan --base origin/main --fail-on renumber,rename --allow "$LABELS"
            # the same in a pipeline, unless the request has the label ipamc/renumber or ipamc/rename
    Exit codes:
        0: done; with --detailed-exitcode: nothing changes
        1: refused: a deleted cluster, a lock line edited by hand, a published CIDR that would go, a refused
            input, or --fail-on; or an I/O or environment error. The plan is printed first
        2: only with --detailed-exitcode: something changes
    """
    from ipamc.cli.runner import compiling, prepare
    from ipamc.review.diff.plan_report import PlanReport, PlanStatus, refusals
    from ipamc.workspace.environment import today
    from ipamc.workspace.hiding import about, hiding
    from ipamc.workspace.workers import run_all

    clusters = options.clusters_of(clusters, listed)
    folders, before = _clusters(clusters, base)
    known = fleet(folders)
    base, day = base or "", today()
    reports: list[ClusterReport] = []
    gone = tuple(map(name_of, before.deleted)) if Gate.DELETE_CLUSTER in allow else ()
    at = before.source
    top, hides = (at.top, hiding(at.top, at.commit)) if isinstance(at, Commit) else ("", {})
    tasks = [
        PlanRun(
            folder=folder,
            today=day,
            revision=base,
            source=at if isinstance(at, Commit) else known.only(folder),
            was=before.renamed.get(folder, ""),
            gone=gone,
            assume=assume,
            allow=allow,
            hiding={path: hides[path] for path in about(top, folder, hides)},
            disk=known.only(folder),
            filters=filters,
            mapped=not MAPPED.isdisjoint({output, *(name for name, _ in files)}),
        )
        for folder in folders
    ]
    if tasks:
        with progress(compiling(folders)):
            reports += run_all(tasks, jobs, run, failed, prepare)
    reports += [_deleted(folder, lock, base, allow) for folder, lock in before.deleted.items()]
    reports.sort(key=lambda cluster: (cluster.status is not PlanStatus.DELETED, cluster.name))
    scope = tuple(sorted({name_of(text) for text in clusters}))
    report = PlanReport(base=base, clusters=tuple(reports), scope=scope)
    (show_json if output == "json" else show)(rendered(report, output, day, coloured=colour(sys.stdout)))
    for name, path in files:
        disk.replace(path, rendered(report, name, day))
    paths = {name_of(folder): folder for folder in folders}
    failures, notes = [], []
    for cluster in reports:
        text = f"{cluster.name}: {cluster.status}: {cluster.said}"
        if cluster.status is PlanStatus.FAILED:
            failures.append(Failure(paths[cluster.name], text))
        elif cluster.difference is None:
            notes.append((cluster.failed, text))
    reasons = [f"refused: {reason}" for reason in refusals(report, fail_on - allow)]
    document = FINDING_FORMATS[style].document
    if document:  # it is all that stderr has, and without these it would pass for that of a clean plan
        failures += [Failure("", text) for wrong, text in notes if wrong]
        failures += [Failure("", reason) for reason in reasons]
    print_findings([finding for cluster in reports for finding in cluster.findings], style, failures)
    tell(style, *(f"error: {text}" if wrong else text for wrong, text in notes), *reasons)
    for cluster in reports if base and not document else ():
        tell(style, *(f"note: {way}" for way in _ways_back(base, cluster)))
    if tell_bugs([(cluster.name, cluster.bug) for cluster in reports], style):
        return BUG
    if reasons or any(cluster.failed for cluster in reports):
        return REFUSED
    return CHANGED if detailed_exitcode and any(cluster.changed for cluster in reports) else DONE


def _clusters(given: tuple[str, ...], base: str | None) -> tuple[list[str], Base]:
    from ipamc.workspace.plan_base import Base, find_base

    if base is None:
        return find(given), Base(source=Disk())
    missing = [text for text in given if not disk.is_folder(text) and not disk.is_folder(folder_of(text))]
    there = [text for text in given if text not in missing]
    folders = find(there) if there else []
    if not given:
        refuse_links(clusters_folder())
        try:
            folders = find(())
        except EnvironmentFailure:  # the last cluster may have been deleted
            folders = []
    before = find_base(base, folders, [folder_of(name_of(text)) for text in missing] if given else None)
    known = {*before.deleted, *before.renamed.values()}
    if unknown := [text for text in missing if folder_of(name_of(text)) not in known]:
        find(unknown)  # raises, with the names that exist
    if not folders and not before.deleted:
        find()  # raises: there is none
    return folders, before


def run(task: PlanRun) -> ClusterReport:
    """Compile one cluster, and compare it with its base. Refused is a result, too."""
    try:
        return _run(task)
    except Refused as refused:
        return failed(task, refused)


def failed(task: PlanRun, exception: BaseException) -> ClusterReport:
    """Return the report of a cluster that was refused or whose run failed."""
    from ipamc.review.diff.plan_report import ClusterReport, PlanStatus

    name = name_of(task.folder)
    if isinstance(exception, Refused):
        findings = exception.diagnostics
        errors = count(sum(finding.severity is Severity.ERROR for finding in findings), "error")
        said = f"{errors}, nothing to compare"
        return ClusterReport(name=name, status=PlanStatus.REFUSED, said=said, findings=findings)
    problem = problem_of(exception)
    return ClusterReport(name=name, status=PlanStatus.FAILED, said=problem.line, bug=problem.trace)


def _run(task: PlanRun) -> ClusterReport:
    from ipamc.model.cluster import AddressSpace, SpaceMode
    from ipamc.pipeline import compile_cluster
    from ipamc.read.locate import locate
    from ipamc.review.diff import compare, empty_base
    from ipamc.review.diff.documents import Setting
    from ipamc.review.diff.plan_report import (
        ClusterReport,
        PlanStatus,
        fewer_addresses,
        line_changed,
        picture,
        revoked,
        shards_grown,
    )
    from ipamc.workspace.plan_base import cluster_base, taken_over, way_back

    name, was = name_of(task.folder), task.was or task.folder
    read = replace(task.disk, assume=task.assume).inputs(task.folder)
    inputs = replace(read, today=task.today)
    compilation = compile_cluster(inputs)
    phase("reading the base")
    before = cluster_base(task.source, was, inputs, compilation)
    status, said = PlanStatus.PLANNED, ""
    if before is None:
        status, said = PlanStatus.NEW, f"{task.revision} has no such cluster"
    elif was != task.folder:
        status = PlanStatus.RENAMED
        said = f"compared with {name_of(was)}, its name in {task.revision}"
    phase("comparing")
    plan = compilation.plan
    base = before or empty_base(name, plan.lock.mode)
    taken = taken_over(task.source, inputs, base, plan, task.gone)
    if taken:
        texts = {**inputs.sources, **task.source.inputs(was).sources}
        raise Refused((*compilation.diagnostics, *locate(taken, texts)))
    if (base.lock.mode is SpaceMode.SPACE) is not isinstance(plan.scheme, AddressSpace):
        return _deleted(task.folder, base.lock, task.revision, task.allow)
    difference = compare(
        base, compilation, task.today, disk.assets("templates/runbooks"), filters=task.filters
    )
    hides = [Setting(name=path, old="(none)", new=how) for path, how in task.hiding.items()]
    difference = replace(difference, weaker=(*difference.weaker, *hides))
    refused = difference.lines.refused if Gate.RELEASE in task.allow else difference.lines.unlawful
    # It starts processes of git, and only a finding about the lock says it.
    suspect = before and (refused or difference.lines.resized or plan.lock.shards > base.lock.shards)
    restore = way_back(task.revision, plan.lock.path, name) if suspect else ""
    lost = [*line_changed(base.lock, plan, refused, task.today, task.revision, restore)]
    lost += shards_grown(base.lock, plan, restore)
    lost += fewer_addresses(base.lock, plan, difference.lines.resized, restore)
    if task.revision:
        lost += revoked(base, plan, f"{task.folder}/{disk.RENDERED}")
    return ClusterReport(
        name=name,
        status=status,
        said=said,
        difference=difference,
        unlawful=refused,
        findings=(*compilation.diagnostics, *locate(lost, inputs.sources)),
        picture=picture(plan, base.lock, inputs.lock_path, task.today) if task.mapped else None,
    )


def _deleted(folder: str, lock: Lock | None, base: str, allow: frozenset[str]) -> ClusterReport:
    """Return the report of a cluster that only the base has, or has as a cluster, and not as a space."""
    from ipamc.review.diff.plan_report import ClusterReport, PlanStatus

    lines = [line for line in lock.lines if line.state is State.HELD] if lock else []
    nodes, agreed = len({line.node for line in lines}), Gate.DELETE_CLUSTER in allow
    held = f"with {count(nodes, 'node')} and {count(len(lines), 'block')}"
    said = f"{base or 'the disk'} has it, {held}; applied objects stay in the cluster. To restore it:"
    said = f"{said} git checkout {base or 'HEAD'} -- {quote(folder)}"
    name, status = name_of(folder), PlanStatus.DELETED
    return ClusterReport(name=name, status=status, said=said, nodes=nodes, agreed=agreed)


def _ways_back(base: str, cluster: ClusterReport) -> list[str]:
    """Return advice: how to merge or compare with a base that is ahead, or how to restore lost CIDRs."""
    from ipamc.review.diff.plan_report import published_lost
    from ipamc.workspace.plan_base import behind

    name, difference = cluster.name, cluster.difference
    if not difference or not (cluster.unlawful or published_lost(cluster)):
        return []
    if behind(base):
        lost = "are not merged here, so their additions look like deletions"
        here = f"ipamc plan {name} --base $(git merge-base HEAD {base})"
        return [
            f"{base} has commits that {lost}: run git merge {base}, and plan again",
            f"or compare with the start of this branch: {here}",
        ]
    if not published_lost(cluster):
        return []
    stays = "published CIDRs stay, because nodes may have blocks from them"
    back = f"git checkout {base} -- {quote(folder_of(name))}/{disk.RENDERED}"
    return [f"{stays}: run {back} && ipamc compile {name}, which shows what to write"]


def rendered(report: PlanReport, style: str, day: str, *, coloured: bool = False) -> str:
    """Return the plan in one of FORMATS. `day` is today, ISO 8601; `coloured` is for text."""
    if style == "html":
        from ipamc.report.page import render_plan

        return render_plan(report, disk.assets("templates/page"), day)
    render: Callable[..., str] = import_module(f"ipamc.report.plan_{style}").render
    return render(report, colour=coloured) if style == "text" else render(report)
