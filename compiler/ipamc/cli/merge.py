"""`ipamc merge-driver` and `ipamc ci merge`: merges of locks by rule."""

from __future__ import annotations

import re

import click

from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.terminal import say
from ipamc.model.diagnostics import names
from ipamc.report.terminal_text import visible
from ipamc.workspace import disk, git
from ipamc.workspace.failure import EnvironmentFailure


@click.command("merge-driver", cls=Verb)
@click.argument("base", metavar="%O")
@click.argument("ours", metavar="%A")
@click.argument("theirs", metavar="%B")
@click.argument("path", metavar="%P")
def merge_driver(*, base: str, ours: str, theirs: str, path: str) -> int:
    """Merge two versions of a lock; called by git.

    The result is written to %A. Of two newcomers that overlap, the one in the trunk's lock stays (git config
    ipamc.trunk, origin/HEAD by default), else the one whose name comes first. The other is named on stderr,
    and the next compile places it again. A quarantine that the trunk does not have begins today.

    Until the merge is done %A has both sides between conflict markers: whatever ends it before leaves them.

    Examples:
        ipamc merge-driver %O %A %B %P  # git runs this once 'ipamc init' has configured it
    Exit codes:
        0: merged
        1: conflicts, which stay between markers for a person; or an I/O or environment error
    """
    from ipamc.lock.merge import merge, unmerged
    from ipamc.report.lock_lines import dropped_lines
    from ipamc.workspace.environment import today

    texts = [disk.read_bytes(version) or b"" for version in (base, ours, theirs)]
    disk.put(ours, unmerged(texts[1], texts[2]))
    merged = merge(texts[0], texts[1], texts[2], git.show(".", git.trunk("."), path), today=today())
    disk.put(ours, merged.text)
    for line in dropped_lines(path, merged.dropped, "the trunk"):
        say(line)
    for conflict in merged.conflicts:
        say(visible(f"{path}: conflict: {conflict}"))
    return REFUSED if merged.conflicts else DONE


@click.command(cls=Verb)
@click.argument("rev")
def merge(*, rev: str) -> int:
    """Merge REV into the branch and commit: inputs by git, locks by rule, rendered/ by a compile.

    A quarantine that REV does not have begins today. Where a person must decide (both sides changed the same
    lines of an input, or the merged inputs are refused), nothing is changed.

    Examples:
        ipamc ci merge origin/main && git push  # update a branch whose lock conflicts with the trunk's
    Exit codes:
        1: inputs conflict, a compile was refused, or an I/O or environment error; the work tree is as it was
    """
    from ipamc.cli.ci.matrix import there
    from ipamc.cli.runner import ClusterRun, compile_all, conclude
    from ipamc.workspace.environment import today
    from ipamc.workspace.revision import commit_named, require_top

    require_top()
    commit = commit_named(".", rev)
    if git.merge_base(".", commit, "HEAD") == commit:
        say(f"{rev} is merged already")
        return DONE
    if not git.is_clean("."):
        raise EnvironmentFailure("there are uncommitted changes: commit or stash them first")
    if problem := git.begin_merge(".", commit):
        raise EnvironmentFailure(f"git cannot merge {rev}: {problem}")
    finished = False
    try:
        # One side of rendered files is taken, which the compile writes again. Locks stay: `onto` reads
        # their sides from the index.
        unmerged = git.unmerged(".")
        generated = re.compile(
            rf"{disk.CLUSTERS}/[^/]+/(?:{re.escape(disk.LOCK)}|{disk.RENDERED}/.+)"
        ).fullmatch
        if others := sorted(path for path in unmerged if not generated(path)):
            raise EnvironmentFailure(f"a person must decide, both sides changed: {names(others)}")
        rendered = {path: sides for path, sides in unmerged.items() if not path.endswith(f"/{disk.LOCK}")}
        for side in (2, 3):  # ours, if there is one, else theirs
            if paths := [path for path, sides in rendered.items() if (2 in sides) == (side == 2)]:
                git.restore(".", side, paths)
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
