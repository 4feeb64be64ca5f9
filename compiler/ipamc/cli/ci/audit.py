"""`ipamc ci audit`: an audit by a schedule, and one issue for each cluster in which something is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipamc.cli.ci.comment import LONGEST
from ipamc.cli.ci.dump import folder_there
from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.findings import Problems, print_findings
from ipamc.cli.interrupted import NOTHING, accounted
from ipamc.cli.terminal import progress, say
from ipamc.model.diagnostics import count
from ipamc.workspace import git
from ipamc.workspace.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipamc.model.diagnostics import Located

MARK = "<!-- ipamc ci audit {} -->\n"
"""The first line of our issue about a cluster: one that starts with it and that we wrote is replaced."""


@click.command(
    cls=Verb,
    examples=(
        (
            'ipamc ci dump lab --write lab.json && ipamc ci audit lab lab.json --remote "$CI_PROJECT_URL.git"',
            "what the scheduled job does",
        ),
    ),
    done="0 problems; or an open issue tells them",
    refused="problems were found and there is no issue for them, the audit could not be made, or an I/O or environment error",
)
@click.argument("cluster")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option(
    "--remote",
    "url",
    required=True,
    metavar="URL",
    help="The repository whose refs say what was applied last: a URL of https without a user, or the absolute path of a folder.",
)
def audit(*, cluster: str, files: tuple[str, ...], url: str) -> int:
    """Audit CLUSTER by dumps, as 'ipamc audit' does, and keep one issue open while something is wrong.

    Where problems are found, or the audit cannot be made, an issue is opened with them; the next audit
    replaces its text, and closes it when there are none. Only an issue that the owner of the token wrote is
    replaced or closed. Who watches the repository is told by the forge.

    GitHub needs GITHUB_TOKEN with the permission issues: write. GitLab needs IPAMC_TOKEN with the scope api and
    the role Reporter. Without a token the job fails where there are problems, and the forge tells of that.
    """
    from ipamc.cli.audit import audited
    from ipamc.report.findings import report
    from ipamc.review.audit import number_of_problems
    from ipamc.workspace.revision import require_top

    require_top()
    folder = folder_there(cluster)
    problems = Problems()
    found: Sequence[Located] = ()
    with accounted(lambda: NOTHING), progress("reading the cluster"), problems.of(folder):
        found = audited(folder, files, _applied(cluster, url))
    if problems:
        code = problems.conclude("full")
        lines = ["The audit could not be made: the log of the job says why."]
    else:
        print_findings(found, "full")
        code = REFUSED if number_of_problems(found) else DONE
        lines = report(found, "concise").splitlines() if code else []
    told = _tell(cluster, lines)
    return code if problems or not told else DONE


def _applied(cluster: str, url: str) -> str | None:
    """Return the commit that was applied last, as the remote repository tells it; None where it does not."""
    from ipamc.workspace.forge import Nowhere, last_applied

    try:
        named = last_applied(url, cluster).get(cluster, "")
    except (Nowhere, Trouble) as problem:
        say(f"{cluster}: {git.APPLIED}{cluster} is not known: {problem}")
        return None
    return git.commit(".", named) if named else None


def _tell(cluster: str, lines: Sequence[str]) -> bool:
    """Let the issue of a cluster say this, or close it where there is nothing to say; tell whether it does."""
    from ipamc.report.plan.markdown import code
    from ipamc.workspace.forge import Nowhere
    from ipamc.workspace.forge_issue import issues_of_this_job

    mark = MARK.format(cluster)
    listed = "".join(f"- {code(line)}\n" for line in lines)
    about = "Each audit replaces this text, and closes the issue when it finds nothing. What a code means: ipamc explain CODE."
    text = f"{mark}{listed}"[: LONGEST - len(about) - 20] + f"\n<sub>{about}</sub>\n"
    try:
        issues = issues_of_this_job()
        before = issues.find(mark.strip())
        if not lines:
            if before:
                issues.close(before)
                say(f"{cluster}: issue {before.name} is closed")
            return True
        if before:
            issues.replace(before, text)
        issue = before or issues.create(f"ipamc audit: {cluster}", text)
    except (Nowhere, Trouble) as problem:
        say(f"{cluster}: no issue: {problem}")
        return False
    say(f"{cluster}: issue {issue.name} {'says it' if before else 'opened'}: {count(len(lines), 'line')}")
    return True
