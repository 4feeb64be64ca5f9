"""`ipamc ci refresh`: one request that brings a cluster's inventory up to date, and merges by itself if it only adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipamc.cli.ci.apply import is_old
from ipamc.cli.ci.comment import LONGEST
from ipamc.cli.ci.dump import folder_there
from ipamc.cli.command import DONE, Verb
from ipamc.cli.interrupted import Account, accounted
from ipamc.cli.terminal import progress, say
from ipamc.workspace import disk, git
from ipamc.workspace.trouble import Trouble

if TYPE_CHECKING:
    from ipamc.review.diff.plan_report import ClusterReport
    from ipamc.workspace.forge_request import Requests
    from ipamc.workspace.git_remote import Remote

BRANCHES = "ipamc/refresh/"
"""A branch is this and the name of a cluster: it is ours, and pushed by force."""


@click.command(
    cls=Verb,
    examples=(
        (
            'ipamc ci dump lab --for refresh --write lab.json && ipamc ci refresh lab lab.json --remote "$CI_PROJECT_URL.git" --target main',
            "what the scheduled job does",
        ),
    ),
    done="the request is as it should be; or there is nothing to request, or no token for it, and a line says so",
    refused="the dump or the compile was refused, or an I/O or environment error; the request stays as it was",
)
@click.argument("cluster")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option(
    "--remote",
    "url",
    required=True,
    metavar="URL",
    help="The repository to push to: a URL of https without a user, or the absolute path of a folder.",
)
@click.option(
    "--target", required=True, metavar="NAME", help="The branch to merge into; HEAD is its last commit."
)
def refresh(*, cluster: str, files: tuple[str, ...], url: str, target: str) -> int:
    """Bring the inventory of CLUSTER up to date from dumps, and open or update one request for it.

    Does what 'ipamc import CLUSTER --refresh FILE...' and 'ipamc compile CLUSTER' do, commits that on the
    branch ipamc/refresh/CLUSTER, and opens a request with the plan. The work tree is afterwards as it was.
    Where nothing changed, an open request is closed. A cluster without nodes.yaml is skipped.

    If the plan only adds nodes or uids, the request merges by itself, once its checks have passed. If it
    renumbers, quarantines, releases, or changes pools, flags or anything else, a person decides. Where it may
    not merge by itself here, it has the label ipamc/only-adds, and its text says why.

    GitHub needs IPAMC_TOKEN, which may write contents and pull requests; with the job's own GITHUB_TOKEN a
    request is opened, but no workflow runs for it. GitLab needs IPAMC_TOKEN with the scopes api and
    write_repository, and a role that may merge into the branch. Without a token, a line says so.
    """
    from ipamc.importing.files import NODES
    from ipamc.workspace.forge import Nowhere, push_credentials
    from ipamc.workspace.forge_request import requests_of_this_job
    from ipamc.workspace.git_remote import remote
    from ipamc.workspace.revision import require_top

    require_top()
    folder, branch = folder_there(cluster), f"{BRANCHES}{cluster}"
    if disk.read_bytes(f"{folder}/{NODES}") is None:
        say(f"{cluster}: skipped, because it has no {NODES}: its inventory is not one of ipamc import")
        return DONE
    trunk = f"refs/remotes/origin/{target}"
    if git.commit(".", trunk) and is_old(cluster, trunk):
        say(f"{cluster}: skipped, because {target} has a newer state: the next scheduled job does it")
        return DONE
    try:
        requests = requests_of_this_job(branch, target)
        credentials = push_credentials(url)
    except Nowhere as problem:
        say(f"{cluster}: no request: {problem}")
        return DONE
    if not git.is_clean(".", disk.CLUSTERS):
        raise Trouble(f"there are uncommitted changes below {disk.CLUSTERS}/: commit or stash them first")
    try:
        with accounted(lambda: Account("the work tree is as it was, and nothing was pushed")):
            code, report = _refreshed(cluster, folder, files)
        if code:
            return code
        commit = (
            git.commit_beside(".", folder, f"{cluster}: refresh the inventory\n\nBy ipamc ci refresh.")
            if report
            else ""
        )
    finally:
        git.take_back(".", folder)
    with remote(".", url, credentials) as there:
        if report is None:
            return _close(there, requests, cluster)
        return _propose(there, requests, report, commit)


def _refreshed(cluster: str, folder: str, files: tuple[str, ...]) -> tuple[int, ClusterReport | None]:
    """Refresh and compile in the work tree; return the exit code, and the plan, None where nothing changed."""
    from ipamc.cli import main
    from ipamc.cli.plan_run import PlanRun, run
    from ipamc.cli.runner import ClusterRun, compile_all, conclude
    from ipamc.workspace.environment import today
    from ipamc.workspace.neighbours import Folders, neighbours
    from ipamc.workspace.plan_base import look

    if code := main(["import", "--refresh", "--", cluster, *files]):
        return code, None
    if git.is_clean(".", folder):
        return DONE, None
    day = today()
    if code := conclude(compile_all([ClusterRun(folder=folder, today=day)], 1), "full"):
        say(
            f"{cluster}: a compile of the new inventory is refused: refresh it by hand, and decide what it asks"
        )
        return code, None
    base = look("HEAD", [folder], [])
    beside = neighbours([folder], progress).get(folder)
    task = PlanRun(
        folder=folder,
        today=day,
        revision="HEAD",
        source=base.source,
        folders=Folders(now=folder, was=folder),
        neighbours=beside,
    )
    report = run(task)
    if report.difference is None:
        raise Trouble(f"{cluster} cannot be planned: {report.said}")
    return DONE, report


def _close(there: Remote, requests: Requests, cluster: str) -> int:
    """Close a request that has nothing to say any more, and delete its branch."""
    from ipamc.workspace.git_remote import Move

    ref = f"refs/heads/{BRANCHES}{cluster}"
    request = requests.find()
    if request:
        requests.close(request)
    if old := there.refs(ref).get(ref):
        there.push([Move(ref=ref, old=old, new="")])
    closed = f": request {request.number} is closed" if request else ""
    say(f"{cluster}: the inventory is up to date{closed}")
    return DONE


def _propose(there: Remote, requests: Requests, report: ClusterReport, commit: str) -> int:
    """Push the branch, and bring its request up to date."""
    from ipamc.review.diff.plan_report import beyond_additions
    from ipamc.workspace.git_remote import Move

    cluster, ref = report.name, f"refs/heads/{BRANCHES}{report.name}"
    reasons = list(beyond_additions(report))
    old = there.refs(ref).get(ref, "")
    same = bool(old) and there.changes_the_same(ref, old, commit, f"{disk.CLUSTERS}/{cluster}")
    request = requests.find()
    if request is None and same and requests.was_closed(old):
        say(
            f"{cluster}: its request was closed by somebody; another one is opened when the nodes change again"
        )
        return DONE
    if request and request.waits and (reasons or not same):
        requests.stop(request)  # before the push: GitHub goes on to merge what is pushed later
    pushed = request is None or not same
    if not same and (stayed := there.push([Move(ref=ref, old=old, new=commit)])):
        raise Trouble(f"{ref}: {stayed.get(ref)}")
    title, plan = f"{cluster}: refresh the inventory", _plan(report)
    if request is None:
        request = requests.create(title, _body(plan, reasons, ""))
        say(f"{cluster}: request {request.number} opened")
    problem = ""
    if not reasons and not (request.waits and same):
        try:
            requests.merge_when_checked(request, old if same else commit, pushed=pushed)
        except Trouble as refusal:
            problem = str(refusal)
    requests.update(request, title, _body(plan, reasons, problem), only_adds=not reasons)
    for reason in reasons:
        say(f"{cluster}: request {request.number} is for a person to decide: {reason}")
    if not reasons:
        how = f"cannot merge by itself: {problem}" if problem else "merges by itself, once its checks pass"
        say(f"{cluster}: request {request.number} only adds nodes or uids; it {how}")
    return DONE


def _plan(report: ClusterReport) -> str:
    from ipamc.report.plan import markdown
    from ipamc.review.diff.plan_report import PlanReport

    return markdown.render(PlanReport(base="HEAD", clusters=(report,), scope=(report.name,)))


def _body(plan: str, reasons: list[str], problem: str) -> str:
    """Return the text of a request: what becomes of it, and the plan."""
    from ipamc.report.plan.markdown import code

    if reasons:
        listed = "".join(f"\n- {code(reason)}" for reason in reasons)
        said = f"**A person decides**, because this is more than new nodes:\n{listed}"
    elif problem:
        said = (
            f"This only adds nodes or uids: it can be merged. It cannot merge by itself here: {code(problem)}"
        )
    else:
        said = "This only adds nodes or uids: it merges by itself, once its checks pass."
    about = "The scheduled job writes this branch again by force, and closes this when nothing is left."
    return f"{said}\n\n{plan}\n<sub>{about}</sub>\n"[:LONGEST]
