"""`ipamc ci merge REV`: the target branch merged in where a forge could not, because forges run no merge drivers."""

from __future__ import annotations

import re

import click

from ipamc.cli.ci.matrix import there
from ipamc.cli.ci.pipelines import at_top
from ipamc.cli.command import DONE, Verb
from ipamc.cli.terminal import say, today
from ipamc.model.diagnostics import names
from ipamc.workspace import disk, git
from ipamc.workspace.disk import Trouble
from ipamc.workspace.revision import known


@click.command(
    cls=Verb,
    examples=(
        (
            "ipamc ci merge origin/main && git push",
            "bring a branch up to date whose lock conflicts with the trunk's",
        ),
    ),
    refused="inputs conflict, a compile was refused, or the surroundings failed; the work tree is as it was",
)
@click.argument("rev")
def merge(*, rev: str) -> int:
    """Merge REV into the branch: inputs by git, locks by rule, rendered/ compiled again; and commit.

    Where people have to decide (both sides changed the same lines of an input, or the merged inputs are refused), nothing is changed.
    """
    from ipamc.cli.runner import Job, compile_all, conclude
    from ipamc.model.lock import Consent

    at_top()
    commit = known(".", rev)
    if git.merge_base(".", commit, "HEAD") == commit:
        say(f"{rev} is merged already")
        return DONE
    if not git.is_clean("."):
        raise Trouble("there are changes that are not committed: commit or stash them first")
    if problem := git.begin_merge(".", commit):
        raise Trouble(f"git does not merge {rev}: {problem}")
    finished = False
    try:
        _take_ours()
        day, consent = today(), Consent()
        jobs = [Job(folder=folder, today=day, consent=consent, onto=commit) for folder in there().values()]
        code = conclude(compile_all(jobs, None), "full")
        if code == DONE:
            git.finish_merge(".", disk.CLUSTERS)
            finished = True
            say(f"merged {rev}")
        return code
    finally:
        if not finished:
            git.take_back(".")
            say("the merge was taken back: merge by hand, then run ipamc lock --onto and ipamc compile")


def _take_ours() -> None:
    """Settle what the compile writes anew; raise Trouble for any other file that git could not merge. Locks stay: `onto` reads their sides from the index."""
    unmerged = git.unmerged(".")
    generated = re.compile(rf"{disk.CLUSTERS}/[^/]+/(?:{re.escape(disk.LOCK)}|{disk.RENDERED}/.+)").fullmatch
    if others := sorted(path for path in unmerged if not generated(path)):
        raise Trouble(f"a person has to decide, both sides changed: {names(others)}")
    rendered = {path: sides for path, sides in unmerged.items() if not path.endswith(f"/{disk.LOCK}")}
    for side, paths in (
        (2, [each for each in rendered if 2 in rendered[each]]),
        (3, [each for each in rendered if 2 not in rendered[each]]),
    ):
        if paths:
            git.restore(".", side, paths)
