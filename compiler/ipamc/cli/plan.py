"""`ipamc plan`: what changes, against a git revision or the disk."""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from ipamc.cli.command import CHANGED, DONE, REFUSED, Verb
from ipamc.cli.findings import print_findings, report_option
from ipamc.cli.terminal import colour, say, today, trouble
from ipamc.model.diagnostics import Refused, Severity, count
from ipamc.model.lock import State
from ipamc.model.plan import GATES
from ipamc.workspace import disk
from ipamc.workspace.clusters import clusters_argument, find, inputs_of, name_of

if TYPE_CHECKING:
    from ipamc.address_space import Neighbours
    from ipamc.review.diff.document import Document, Planned

FORMATS = ("text", "markdown", "json")


def _gates(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> frozenset[str]:  # noqa: ARG001 - click's signature
    found = [word for text in value for word in text.split(",")]
    if unknown := [word for word in found if word not in GATES]:
        raise click.BadParameter(f"{unknown[0]!r} is none of {', '.join(GATES)}")
    return frozenset(found)


@click.command(
    cls=Verb,
    examples=(
        ("ipamc plan", "what 'ipamc compile' would do to every cluster below clusters/"),
        ("ipamc plan --base origin/main", "what this branch changes"),
        ("ipamc plan --base origin/main --format markdown", "the same as a comment for a pull request"),
        ("ipamc plan lab --base HEAD~1 --format json", "the same for programs"),
        (
            "ipamc plan --base origin/main --fail-on renumber,leave",
            "exit 1 if a node is renumbered or leaves, agreed or not",
        ),
    ),
    done="done; with --detailed-exitcode: nothing changes",
    refused="refused: a line vanished from a lock, an input was refused, --fail-on; or the surroundings failed. The plan is printed first",
    changed="only with --detailed-exitcode: something changes",
)
@clusters_argument
@click.option(
    "--base",
    metavar="REV",
    default="",
    help="Compare with the lock and the rendered tree of this revision, instead of the disk's.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="What goes to stdout.",
)
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 if something changes.")
@click.option(
    "--fail-on",
    multiple=True,
    callback=_gates,
    metavar="WORD,…",
    help=f"Exit 1 if this happens, whoever agreed: {', '.join(GATES)}. Repeatable.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes for several clusters.  [default: one a processor]",
)
@report_option
def command(
    *,
    clusters: tuple[str, ...],
    base: str,
    style: str,
    detailed_exitcode: bool,
    fail_on: frozenset[str],
    jobs: int | None,
) -> int:
    """Say what changes: blocks added, left, released, renumbered, and flags, pools and room.

    CLUSTER is a folder, or a name below clusters/; without one, all of them, and those that the base alone has. The base is what was committed, or what
    lies on the disk; it is not compiled again. What it is compared with is what a compile gives now. Writes nothing.
    """
    from ipamc.cli.runner import run_all
    from ipamc.report.findings import Failure
    from ipamc.review.diff.document import Document, Status, refusals
    from ipamc.workspace.neighbours import neighbours

    folders, then = _clusters(clusters, base)
    day = today()
    todo = [
        Job(folder=folder, today=day, base=base, was=then.renamed.get(folder, "") if then else "")
        for folder in folders
    ]
    beside = neighbours(folders)
    todo = [replace(each, neighbours=beside.get(each.folder)) for each in todo]
    planned = [*run_all(todo, jobs, run)] if todo else []
    if then:
        planned += [_deleted(folder, base) for folder in then.deleted]
    planned.sort(key=lambda each: each.name)
    document = Document(
        base=base, clusters=tuple(planned), scope=tuple(sorted({name_of(each) for each in clusters}))
    )
    click.echo(_rendered(document, style), nl=False, color=True)
    paths = {name_of(folder): folder for folder in folders}
    failures = [
        Failure(paths[each.name], f"{each.name}: {each.status}: {each.said}")
        for each in planned
        if each.status is Status.FAILED
    ]
    print_findings([finding for each in planned for finding in each.findings], "full", failures)
    for each in planned:
        if each.difference is None and each.status is not Status.FAILED:
            say(f"{'error: ' if each.failed else ''}{each.name}: {each.status}: {each.said}")
    reasons = list(refusals(document, fail_on))
    for reason in reasons:
        say(f"refused: {reason}")
    for each in planned if then else ():
        if each.difference and each.difference.lines.vanished:
            _way_back(base, each.name)
    if reasons or any(each.failed for each in planned):
        return REFUSED
    return CHANGED if detailed_exitcode and any(each.changed for each in planned) else DONE


def _clusters(given: tuple[str, ...], base: str) -> tuple[list[str], Any]:
    """Give the folders to plan, and what became of those of the base."""
    if not base:
        return find(given), None
    from ipamc.workspace.plan_base import look

    missing = [
        each for each in given if not disk.is_folder(each) and not disk.is_folder(f"{disk.CLUSTERS}/{each}")
    ]
    there = [each for each in given if each not in missing]
    folders = find(there) if there else [] if given else _all()
    then = look(base, folders, [f"{disk.CLUSTERS}/{name_of(each)}" for each in missing] if given else None)
    if unknown := [each for each in missing if f"{disk.CLUSTERS}/{name_of(each)}" not in then.deleted]:
        find(unknown)  # says what there is
    if not folders and not then.deleted:
        disk.clusters()  # says that there is none
    return folders, then


def _all() -> list[str]:
    try:
        return find(())
    except disk.Trouble:  # the last cluster may be what was deleted
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A cluster to plan."""

    folder: str
    today: str
    base: str
    was: str
    """Its folder in the base, where it was another one."""
    neighbours: Neighbours | None = None
    """The other clusters, where this one may be of an address space."""


def run(job: Job) -> Planned:
    """Plan one cluster. Everything that is not a bug of ours ends in the result."""
    from ipamc.review.diff.document import Planned, Status

    name = name_of(job.folder)
    gc.disable()  # as for a compile: many objects, no cycles
    try:
        return _run(job, name)
    except Refused as refused:
        errors = sum(each.severity is Severity.ERROR for each in refused.diagnostics)
        return Planned(
            name=name,
            status=Status.REFUSED,
            said=f"{count(errors, 'error')}, and so there is nothing to compare",
            findings=refused.diagnostics,
        )
    except Exception as problem:
        if text := trouble(problem):
            return Planned(name=name, status=Status.FAILED, said=text)
        raise
    finally:
        gc.enable()


def _run(job: Job, name: str) -> Planned:
    from ipamc.model.lock import Consent
    from ipamc.pipeline import compile_cluster
    from ipamc.review.diff import compare, nothing
    from ipamc.review.diff.document import Planned, Status
    from ipamc.workspace.neighbours import refuse_overlaps
    from ipamc.workspace.plan_base import side_at, side_on_disk

    inputs = inputs_of(job.folder, today=job.today, consent=Consent())
    compilation = compile_cluster(inputs)
    if job.neighbours:
        refuse_overlaps(inputs, compilation, job.neighbours)
    side = (
        side_at(job.was or job.folder, job.base, inputs, compilation)
        if job.base
        else side_on_disk(job.folder, inputs, compilation)
    )
    status, said = Status.PLANNED, ""
    if side is None:
        status, said = Status.NEW, f"{job.base} has no such cluster"
    elif job.was:
        status, said = Status.RENAMED, f"it is {name_of(job.was)} in {job.base}, and is compared with that"
    difference = compare(side or nothing(name, compilation.plan.lock.mode), compilation, job.today)
    return Planned(
        name=name, status=status, said=said, difference=difference, findings=compilation.diagnostics
    )


def _deleted(folder: str, base: str) -> Planned:
    from ipamc.review.diff.document import Planned, Status
    from ipamc.workspace.plan_base import was_held

    lock = was_held(folder, base)
    live = [line for line in lock.lines if line.state is State.HELD] if lock else []
    nodes = len({line.node for line in live})
    held = (
        f"with {count(nodes, 'node')} and {count(len(live), 'block')}; what was applied stays in the cluster"
    )
    said = f"{base} has it, {held}. To have it back: git checkout {base} -- {folder}"
    return Planned(name=name_of(folder), status=Status.DELETED, said=said, nodes=nodes)


def _rendered(document: Document, style: str) -> str:
    import sys

    from ipamc.report.plan import json as plan_json
    from ipamc.report.plan import markdown as plan_markdown
    from ipamc.report.plan import text as plan_text

    if style == "json":
        return plan_json.render(document)
    return (
        plan_markdown.render(document)
        if style == "markdown"
        else plan_text.render(document, colour=colour(sys.stdout))
    )


def _way_back(base: str, name: str) -> None:
    """Say how lines that vanished come back."""
    from ipamc.workspace.plan_base import behind

    if behind(base):
        say(
            f"note: {base} has commits that are not merged here, and what they added looks vanished: git merge {base}, and plan again;"
        )
        say(
            f"note: or compare with where this branch began: ipamc plan {name} --base $(git merge-base HEAD {base})"
        )
    else:
        lock = f"{disk.CLUSTERS}/{name}/{disk.LOCK}"
        say(
            f"note: a line goes only when its addresses are given out again; to have it back: git checkout {base} -- {lock}, then: ipamc compile {name}"
        )
