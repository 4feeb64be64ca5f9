"""`ipamc dump`, `audit` and `refresh`: what scheduled jobs do with a cluster's dump."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ipamc.cli.ci.apply import is_old
from ipamc.cli.ci.jobs import is_name
from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.findings import Problems, print_findings
from ipamc.cli.options import FORMER, context_option, files_argument, write_option
from ipamc.cli.terminal import progress, say
from ipamc.model.diagnostics import Located, count
from ipamc.model.limits import LONGEST_COMMENT
from ipamc.review.live.rights import dumped
from ipamc.workspace import disk, git
from ipamc.workspace.clusters import folder_of
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.forge import Nowhere, issues_of_this_job, last_applied, push_credentials
from ipamc.workspace.forge_request import Requests, requests_of_this_job
from ipamc.workspace.kubectl import Kube
from ipamc.workspace.remote import Move, Remote, remote
from ipamc.workspace.rendered import context_of, manifests
from ipamc.workspace.revision import require_top

if TYPE_CHECKING:
    from ipamc.review.diff.plan_report import ClusterReport

MARK = "<!-- ipamc ci audit {} -->\n"
"""The first line of our issue about a cluster: one that starts with it and that we wrote is replaced."""
BRANCHES = "ipamc/refresh/"  # a branch is this and the name of a cluster: it is ours, and pushed by force


def _folder(cluster: str) -> str:
    """Return the folder of a cluster that a job names. Raises UsageError where there is none."""
    folder = folder_of(cluster)
    if not is_name(cluster) or not disk.is_folder(folder):
        raise click.UsageError(f"no cluster {cluster!r} below clusters/")
    return folder


@click.command(cls=Verb, former=FORMER)
@click.argument("cluster")
@click.option("--for", "job", type=click.Choice(["refresh", "audit"]), default="audit", show_default=True)
@context_option
@write_option("Write this file.  [default: -, which is stdout]", default="-")
def dump(*, cluster: str, job: str, context: str, path: str) -> int:
    """Read a cluster with kubectl, and write one List in JSON.

    Uses the kubeconfig context that spec.context of the Cluster names, by default the cluster's name, and
    never the current context. Reads only the ConfigMaps and Deployments that ipamc needs, as the roles of
    'ipamc ci rbac' allow. Omits environment variables of pods, and command lines of applications. Runs
    $KUBECTL or kubectl. CLUSTER is a name below clusters/.

    Options:
        --for: Who reads the dump: a refresh needs only Nodes, CiliumNodes and the DaemonSet of agents.
    Examples:
        ipamc dump lab --write lab.json  # what 'ipamc audit lab lab.json' reads
        ipamc dump lab --for refresh | ipamc import lab --refresh -  # update the inventory
    Exit codes:
        1: the cluster cannot be read, or an I/O or environment error; nothing is written
    """
    from ipamc.workspace.dump import dump as read

    namespace = manifests(_folder(cluster)).flags.namespace
    kube = Kube(name=cluster, context=context or context_of(_folder(cluster)))
    data, missing = read(kube, dumped(job, namespace), {"kube-system", namespace})
    for line in missing:
        say(f"{cluster}: {line}")
    if path == "-":
        click.echo(data, nl=False)
    else:
        disk.replace(path, data.decode())
    return DONE


@click.command(cls=Verb)
@click.argument("cluster")
@files_argument
@click.option("--remote", "url", required=True, metavar="URL")
def audit(*, cluster: str, files: tuple[str, ...], url: str) -> int:
    """Audit CLUSTER from dumps, as 'ipamc audit' does, and keep one issue open while something is wrong.

    Opens an issue if there are problems or the audit fails; the next audit updates its text, or closes it.
    Only an issue of the token's owner is changed.

    GitHub needs GITHUB_TOKEN with the permission issues: write. GitLab needs IPAMC_TOKEN with the scope api
    and the role Reporter. Without a token, the job fails if there are problems.

    Options:
        --remote: The repository whose refs name the last apply: an https URL without a user, or the absolute
            path of a folder.
    Examples:
        ipamc dump lab --write lab.json && ipamc ci audit lab lab.json --remote "$CI_PROJECT_URL.git"
            # what the scheduled job does
    Exit codes:
        0: no problems; or an open issue lists them
        1: problems were found and there is no issue for them, the audit failed, or an I/O or environment
            error
    """
    from ipamc.cli.audit import audited
    from ipamc.report.findings import report
    from ipamc.review.audit import number_of_problems

    require_top()
    folder = _folder(cluster)
    problems = Problems()
    found: Sequence[Located] = ()
    with progress("reading the cluster"), problems.of(folder):
        applied = None
        try:
            if named := last_applied(url, cluster).get(cluster, ""):
                applied = git.commit(".", named)
        except EnvironmentFailure as problem:
            say(f"{cluster}: cannot read {git.APPLIED}{cluster}: {problem}")
        found = audited(folder, files, applied)
    if problems:
        code = problems.conclude("full")
        lines = ["The audit failed: the log of the job has the reason."]
    else:
        print_findings(found, "full")
        code = REFUSED if number_of_problems(found) else DONE
        lines = report(found, "concise").splitlines() if code else []
    updated = _update_issue(cluster, lines)
    return code if problems or not updated else DONE


def _update_issue(cluster: str, lines: Sequence[str]) -> bool:
    """Write these lines into the issue of a cluster, or close it without any; return whether that worked."""
    from ipamc.report.plan_markdown import code

    mark = MARK.format(cluster)
    listed = "".join(f"- {code(line)}\n" for line in lines)
    about = "Each audit replaces this text, and closes the issue when it finds nothing."
    about += " To explain a code, run `ipamc explain CODE`."
    text = f"{mark}{listed}"[: LONGEST_COMMENT - len(about) - 20] + f"\n<sub>{about}</sub>\n"
    try:
        issues = issues_of_this_job()
        before = next(issues.mine(issues.forge.me(), mark.strip()), None)
        if not lines:
            if before:
                issues.close(before)
                say(f"{cluster}: issue {before.name} closed")
            return True
        if before and before.text.strip() != text.strip():
            issues.replace(before, text)
        number = before.name if before else issues.create(text, title=f"ipamc audit: {cluster}")
    except EnvironmentFailure as problem:
        say(f"{cluster}: no issue: {problem}")
        return False
    say(f"{cluster}: issue {number} {'updated' if before else 'opened'}: {count(len(lines), 'line')}")
    return True


@click.command(cls=Verb)
@click.argument("cluster")
@files_argument
@click.option("--remote", "url", required=True, metavar="URL")
@click.option("--target", required=True, metavar="NAME")
def refresh(*, cluster: str, files: tuple[str, ...], url: str, target: str) -> int:
    """Update the inventory of CLUSTER from dumps, and open or update one request for it.

    Runs 'ipamc import CLUSTER --refresh FILE...' and 'ipamc compile CLUSTER', commits to the branch
    ipamc/refresh/CLUSTER, opens a request with the plan, and restores the work tree. Without changes, it
    closes an open request. A request that only adds nodes or uids merges by itself after its checks pass, or
    has the label ipamc/only-adds if it cannot; you decide on any other.

    GitHub needs IPAMC_TOKEN, which may write contents and pull requests; with only GITHUB_TOKEN, no workflow
    runs for the request. GitLab needs IPAMC_TOKEN with the scopes api and write_repository, and a role that
    may merge into the branch. Without a token, nothing is requested, and a line says so.

    Options:
        --remote: The repository to push to: an https URL without a user, or the absolute path of a folder.
        --target: The branch to merge into; HEAD is its last commit.
    Examples:
        ipamc dump lab --for refresh --write lab.json && ipamc ci refresh lab lab.json --remote
            "$CI_PROJECT_URL.git" --target main
            # what the scheduled job does
    Exit codes:
        0: the request is up to date; or there is nothing to request, or no token for it, and a line says so
        1: the dump or the compile was refused, or an I/O or environment error; the request is unchanged
    """
    from ipamc.importing.files import NODES

    require_top()
    folder, branch = _folder(cluster), f"{BRANCHES}{cluster}"
    if disk.read_bytes(f"{folder}/{NODES}") is None:
        say(f"{cluster}: skipped: it has no {NODES}, so ipamc import did not write its inventory")
        return DONE
    trunk = f"refs/remotes/origin/{target}"
    if git.commit(".", trunk) and is_old(cluster, trunk):
        say(f"{cluster}: skipped: {target} is newer, and the next scheduled job refreshes it")
        return DONE
    try:
        requests = requests_of_this_job(branch, target)
        credentials = push_credentials(url)
    except Nowhere as problem:
        say(f"{cluster}: no request: {problem}")
        return DONE
    if not git.is_clean(".", disk.CLUSTERS):
        raise EnvironmentFailure(
            f"there are uncommitted changes below {disk.CLUSTERS}/: commit or stash them first"
        )
    title, commit = f"{cluster}: refresh the inventory", ""
    try:
        code, report = _refreshed(cluster, folder, files)
        if code:
            return code
        if report:
            commit = git.commit_beside(".", folder, f"{title}\n\nBy ipamc ci refresh.")
    finally:
        git.take_back(".", folder)
    with remote(".", url, credentials) as there:
        if report:
            return _propose(there, requests, report, commit, title)
        ref = f"refs/heads/{branch}"
        request = requests.find()
        if request:
            requests.close(request)
        if old := there.refs(ref).get(ref):
            there.push([Move(ref=ref, old=old, new="")])
        closed = f": request {request.number} closed" if request else ""
        say(f"{cluster}: the inventory is up to date{closed}")
        return DONE


def _refreshed(cluster: str, folder: str, files: tuple[str, ...]) -> tuple[int, ClusterReport | None]:
    """Refresh and compile in the work tree; return the exit code and the plan, None without a change."""
    from ipamc.cli import main
    from ipamc.cli.plan import PlanRun, run
    from ipamc.cli.runner import ClusterRun, compile_all, conclude
    from ipamc.workspace.environment import today
    from ipamc.workspace.plan_base import find_base

    if code := main(["import", "--refresh", "--", cluster, *files]):
        return code, None
    if git.is_clean(".", folder):
        return DONE, None
    day = today()
    if code := conclude(compile_all([ClusterRun(folder=folder, today=day)], 1), "full"):
        say(f"{cluster}: a compile of the new inventory is refused: refresh it by hand, and fix the errors")
        return code, None
    task = PlanRun(
        folder=folder,
        today=day,
        revision="HEAD",
        source=find_base("HEAD", [folder], []).source,
    )
    report = run(task)
    if report.difference is None:
        raise EnvironmentFailure(f"{cluster} cannot be planned: {report.said}")
    return DONE, report


def _propose(there: Remote, requests: Requests, report: ClusterReport, commit: str, title: str) -> int:
    """Push the branch, and update its merge or pull request."""
    from ipamc.review.diff.plan_report import beyond_additions

    cluster, ref = report.name, f"refs/heads/{BRANCHES}{report.name}"
    reasons = list(beyond_additions(report))
    old = there.refs(ref).get(ref, "")
    same = bool(old) and there.changes_the_same(ref, old, commit, f"{disk.CLUSTERS}/{cluster}")
    request = requests.find()
    if request is None and same and requests.was_closed(old):
        say(f"{cluster}: no request: the last one was closed, and the nodes have not changed since")
        return DONE
    if request and request.waits and (reasons or not same):
        requests.stop(request)  # before the push: GitHub goes on to merge what is pushed later
    pushed = request is None or not same
    if not same and (stayed := there.push([Move(ref=ref, old=old, new=commit)])):
        raise EnvironmentFailure(f"{ref}: {stayed.get(ref)}")
    if request is None:
        request = requests.create(title, _body(report, reasons, ""))
        say(f"{cluster}: request {request.number} opened")
    problem = ""
    if not (reasons or (request.waits and same)):
        try:
            requests.merge_when_checked(request, old if same else commit, pushed=pushed)
        except EnvironmentFailure as failure:
            problem = str(failure)
    requests.update(request, title, _body(report, reasons, problem), only_adds=not reasons)
    for reason in reasons:
        say(f"{cluster}: request {request.number} needs your decision: {reason}")
    if not reasons:
        how = f"cannot merge by itself: {problem}" if problem else "merges by itself after its checks pass"
        say(f"{cluster}: request {request.number} only adds nodes or uids; it {how}")
    return DONE


def _body(report: ClusterReport, reasons: list[str], problem: str) -> str:
    """Return the text of the merge or pull request: how it is merged, and the plan."""
    from ipamc.report import plan_markdown
    from ipamc.review.diff.plan_report import PlanReport

    only = "This only adds nodes or uids:"
    if reasons:
        listed = "".join(f"\n- {plan_markdown.code(reason)}" for reason in reasons)
        said = f"**Needs your decision**, because it does more than add nodes:\n{listed}"
    elif problem:
        said = f"{only} you can merge it. It cannot merge by itself: {plan_markdown.code(problem)}"
    else:
        said = f"{only} it merges by itself after its checks pass."
    plan = plan_markdown.render(PlanReport(base="HEAD", clusters=(report,), scope=(report.name,)))
    about = "The scheduled job force-pushes this branch, and closes this request when no change is left."
    return f"{said}\n\n{plan}\n<sub>{about}</sub>\n"[:LONGEST_COMMENT]
