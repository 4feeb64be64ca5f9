"""`ipamc plan`: what a compile changes, against a git revision or the disk."""

from __future__ import annotations

import sys
from shlex import quote
from typing import TYPE_CHECKING

import click

from ipamc.cli.bugs import tell_bugs
from ipamc.cli.command import BUG, CHANGED, DONE, REFUSED, Verb
from ipamc.cli.findings import format_option, named_files, print_findings, tell
from ipamc.cli.interrupted import NOTHING, accounted
from ipamc.cli.options import (
    Revision,
    assume_option,
    clusters_argument,
    clusters_from_option,
    clusters_of,
    jobs_option,
    output_option,
)
from ipamc.cli.plan_formats import FORMATS, PICTURES, rendered
from ipamc.cli.plan_run import PlanRun, failed, run
from ipamc.cli.terminal import colour, progress, show, show_json
from ipamc.model.diagnostics import count
from ipamc.model.lock import Lock, State
from ipamc.review import GATES
from ipamc.workspace import disk
from ipamc.workspace.clusters import find, name_of
from ipamc.workspace.clusters_folder import clusters_folder, folder_of
from ipamc.workspace.links import refuse_links
from ipamc.workspace.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ipamc.model.cluster import Version
    from ipamc.review.diff.plan_report import ClusterReport
    from ipamc.workspace.plan_base import Base


def _gates(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> frozenset[str]:  # noqa: ARG001 - click's signature
    found = [word for text in value for word in text.split(",")]
    if unknown := [word for word in found if word not in GATES]:
        raise click.BadParameter(f"{unknown[0]!r} is none of {', '.join(GATES)}")
    return frozenset(found)


@click.command(
    cls=Verb,
    examples=(
        ("ipamc plan", "what 'ipamc compile' would change in all clusters below clusters/"),
        ("ipamc plan --base origin/main", "what this branch changes"),
        ("ipamc plan --base origin/main --output markdown", "the same, as a comment for a pull request"),
        ("ipamc plan lab --base HEAD~1 --output json", "the same, for programs"),
        (
            "ipamc plan --base origin/main --output html > plan.html",
            "maps before and after, to look at and to search",
        ),
        (
            "ipamc plan --base origin/main --output svg > plan.svg",
            "the parts of the maps that change, as a picture",
        ),
        (
            "ipamc plan --base origin/main --fail-on renumber,leave",
            "exit 1 if a node is renumbered or leaves, with or without consent",
        ),
    ),
    done="done; with --detailed-exitcode: nothing changes",
    refused="refused: a cluster was deleted, a line of a lock changed as no verb changes it, a published CIDR would not stay, an input was refused, or --fail-on; or an I/O or environment error. The plan is printed first",
    changed="only with --detailed-exitcode: something changes",
)
@clusters_argument
@clusters_from_option
@click.option(
    "--base",
    type=Revision(),
    metavar="REV",
    help="Compare with the lock and the rendered files of this revision, instead of those on the disk.",
)
@output_option(*FORMATS)
@click.option(
    "--write",
    "files",
    multiple=True,
    callback=lambda _, __, given: named_files(given, FORMATS),
    metavar="FORMAT=FILE",
    help="Write the plan in this format to a file, too. Repeatable: one compile serves them all.",
)
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 if something changes.")
@click.option(
    "--fail-on",
    multiple=True,
    callback=_gates,
    metavar="WORD,…",
    help=f"Exit 1 if this happens, with or without consent: {', '.join(GATES)}. Repeatable.",
)
@click.option(
    "--allow-deleted",
    is_flag=True,
    help="Clusters that only the base has may go; what was applied there stays.",
)
@click.option(
    "--allow-released",
    is_flag=True,
    help="Blocks may be given out before their quarantine is over: --release and --rename leave no line of it.",
)
@jobs_option
@assume_option
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
    allow_deleted: bool,
    allow_released: bool,
    jobs: int | None,
    assume: Version | None,
    style: str,
) -> int:
    """Show what changes: added, quarantined, released and renumbered blocks, flags, pools and free room.

    And what the running cluster does with it: steps of a change of mode, restarts, objects that leave.

    CLUSTER is a folder, or a name below clusters/; without one, all of them, and those that only the base
    has. The base is read as it was committed, or as it lies on the disk; it is not compiled again. It is
    compared with the result of a compile now. Writes nothing.
    """
    from ipamc.cli.runner import compiling, prepare
    from ipamc.report.findings import format_of
    from ipamc.report.findings.content import Failure
    from ipamc.review.diff.plan_report import PlanReport, Status, refusals
    from ipamc.workspace.environment import today
    from ipamc.workspace.neighbours import Folders, neighbours
    from ipamc.workspace.workers import run_all

    clusters = clusters_of(clusters, listed)
    folders, before = _clusters(clusters, base)
    base = base or ""
    day = today()
    planned: list[ClusterReport] = []
    with accounted(lambda: NOTHING):
        beside = neighbours(folders, progress)
        tasks = [
            PlanRun(
                folder=folder,
                today=day,
                revision=base,
                source=before.source,
                folders=Folders(
                    now=folder,
                    was=before.renamed.get(folder, folder),
                    renamed=before.renamed,
                    agreed=tuple(before.deleted) if allow_deleted else (),
                ),
                neighbours=beside.get(folder),
                assume=assume,
                released=allow_released,
                picture=not PICTURES.isdisjoint({output, *(name for name, _ in files)}),
            )
            for folder in folders
        ]
        if tasks:
            with progress(compiling(folders)):
                planned += run_all(tasks, jobs, run, failed, prepare)
    planned += [_deleted(folder, lock, base, agreed=allow_deleted) for folder, lock in before.deleted.items()]
    planned.sort(key=lambda cluster: (cluster.status is not Status.DELETED, cluster.name))
    report = PlanReport(
        base=base, clusters=tuple(planned), scope=tuple(sorted({name_of(text) for text in clusters}))
    )
    (show_json if output == "json" else show)(rendered(report, output, day, coloured=colour(sys.stdout)))
    for name, path in files:
        disk.replace(path, rendered(report, name, day))
    paths = {name_of(folder): folder for folder in folders}
    failures = [
        Failure(paths[cluster.name], f"{cluster.name}: {cluster.status}: {cluster.said}")
        for cluster in planned
        if cluster.status is Status.FAILED
    ]
    notes = [
        (cluster.failed, f"{cluster.name}: {cluster.status}: {cluster.said}")
        for cluster in planned
        if cluster.difference is None and cluster.status is not Status.FAILED
    ]
    reasons = list(refusals(report, fail_on))
    document = format_of(style).document
    if document:  # it is all that stderr has, and without these it would pass for that of a clean plan
        failures += [Failure("", note) for wrong, note in notes if wrong]
        failures += [Failure("", f"refused: {reason}") for reason in reasons]
    print_findings([finding for cluster in planned for finding in cluster.findings], style, failures)
    tell(style, *(f"{'error: ' if wrong else ''}{note}" for wrong, note in notes))
    tell(style, *(f"refused: {reason}" for reason in reasons))
    for cluster in planned if base and not document else ():
        tell(style, *(f"note: {way}" for way in _ways_back(base, cluster)))
    if tell_bugs([(cluster.name, cluster.bug) for cluster in planned], style):
        return BUG
    if reasons or any(cluster.failed for cluster in planned):
        return REFUSED
    return CHANGED if detailed_exitcode and any(cluster.changed for cluster in planned) else DONE


def _clusters(given: tuple[str, ...], base: str | None) -> tuple[list[str], Base]:
    """Return the folders to plan, and what they are compared with."""
    from ipamc.workspace.plan_base import Base, look
    from ipamc.workspace.source import Disk

    if base is None:
        return find(given), Base(source=Disk())
    missing = [text for text in given if not disk.is_folder(text) and not disk.is_folder(folder_of(text))]
    there = [text for text in given if text not in missing]
    folders = find(there) if there else [] if given else _all()
    before = look(base, folders, [folder_of(name_of(text)) for text in missing] if given else None)
    known = {*before.deleted, *before.renamed.values()}
    if unknown := [text for text in missing if folder_of(name_of(text)) not in known]:
        find(unknown)  # raises, with the names that exist
    if not folders and not before.deleted:
        disk.clusters()  # raises: there is none
    return folders, before


def _all() -> list[str]:
    refuse_links(clusters_folder())
    try:
        return find(())
    except Trouble:  # the last cluster may have been deleted
        return []


def _deleted(folder: str, lock: Lock | None, base: str, *, agreed: bool) -> ClusterReport:
    from ipamc.review.diff.plan_report import ClusterReport, Status

    lines = [line for line in lock.lines if line.state is State.HELD] if lock else []
    nodes = len({line.node for line in lines})
    held = (
        f"with {count(nodes, 'node')} and {count(len(lines), 'block')}; what was applied stays in the cluster"
    )
    said = f"{base} has it, {held}. To restore it: git checkout {base} -- {quote(folder)}"
    return ClusterReport(name=name_of(folder), status=Status.DELETED, said=said, nodes=nodes, agreed=agreed)


def _ways_back(base: str, cluster: ClusterReport) -> Iterator[str]:
    """Yield why lines and published CIDRs seem to be lost where the branch is behind; else how CIDRs come back."""
    from ipamc.review.diff.plan_report import published_lost
    from ipamc.workspace.plan_base import behind

    name, difference = cluster.name, cluster.difference
    if not difference or not (difference.unlawful or published_lost(cluster)):
        return
    if behind(base):
        yield f"{base} has commits that are not merged here, and what they added looks as if it had vanished: git merge {base}, and plan again;"
        yield f"or compare with where this branch began: ipamc plan {name} --base $(git merge-base HEAD {base})"
    elif published_lost(cluster):
        folder = quote(folder_of(name))
        yield f"what is published stays, as nodes may have blocks of it; a compile that sees it says what to write: git checkout {base} -- {folder}/{disk.RENDERED}, then: ipamc compile {name}"
