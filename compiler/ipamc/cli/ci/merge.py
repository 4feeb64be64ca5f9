"""`ipamc ci merge REV`: merge the target branch in, where a forge has no merge drivers."""

from __future__ import annotations

import re

import click

from ipamc.cli.ci.matrix import there
from ipamc.cli.command import DONE, Verb
from ipamc.cli.interrupted import Account, accounted
from ipamc.cli.terminal import say
from ipamc.model.diagnostics import names
from ipamc.workspace import disk, git
from ipamc.workspace.revision import known, require_top
from ipamc.workspace.trouble import Trouble


@click.command(
    cls=Verb,
    examples=(
        ("ipamc ci merge origin/main && git push", "update a branch whose lock conflicts with the trunk's"),
    ),
    refused="inputs conflict, a compile was refused, or an I/O or environment error; the work tree is as it was",
)
@click.argument("rev")
def merge(*, rev: str) -> int:
    """Merge REV into the branch and commit: inputs by git, locks by rule, rendered/ by a compile.

    Where a person must decide (both sides changed the same lines of an input, or the merged inputs are
    refused), nothing is changed.
    """
    from ipamc.cli.runner import ClusterRun, compile_all, conclude
    from ipamc.workspace.environment import today

    require_top()
    commit = known(".", rev)
    if git.merge_base(".", commit, "HEAD") == commit:
        say(f"{rev} is merged already")
        return DONE
    if not git.is_clean("."):
        raise Trouble("there are uncommitted changes: commit or stash them first")
    if problem := git.begin_merge(".", commit):
        raise Trouble(f"git cannot merge {rev}: {problem}")
    finished = False
    try:
        with accounted(lambda: Account("nothing is merged")):
            _resolve_rendered()
            day = today()
            tasks = [ClusterRun(folder=folder, today=day, onto=commit) for folder in there().values()]
            code = conclude(compile_all(tasks, None), "full")
        if code == DONE:
            git.finish_merge(".", disk.CLUSTERS)
            finished = True
            say(f"merged {rev}")
        return code
    finally:
        if not finished:
            git.take_back(".")
            say("the merge was undone: merge by hand, then run ipamc lock --onto and ipamc compile")


def _resolve_rendered() -> None:
    """Take one side of rendered files, which the compile writes again; raise Trouble for other conflicts.

    Locks stay: `onto` reads their sides from the index.
    """
    unmerged = git.unmerged(".")
    generated = re.compile(rf"{disk.CLUSTERS}/[^/]+/(?:{re.escape(disk.LOCK)}|{disk.RENDERED}/.+)").fullmatch
    if others := sorted(path for path in unmerged if not generated(path)):
        raise Trouble(f"a person must decide, both sides changed: {names(others)}")
    rendered = {path: sides for path, sides in unmerged.items() if not path.endswith(f"/{disk.LOCK}")}
    for side, paths in (
        (2, [path for path in rendered if 2 in rendered[path]]),
        (3, [path for path in rendered if 2 not in rendered[path]]),
    ):
        if paths:
            git.restore(".", side, paths)
