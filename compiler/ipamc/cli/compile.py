"""`ipamc compile`: write the lock and the manifests."""

from __future__ import annotations

from typing import Any

import click

from ipamc.cli import options
from ipamc.cli.command import Verb
from ipamc.cli.findings import format_option
from ipamc.cli.terminal import say
from ipamc.workspace.clusters import find

DRIVER = "ipamc"  # the merge driver that `.gitattributes` names for locks; `ipamc init` configures it


@click.command(cls=Verb)
@options.clusters_argument
@options.clusters_from_option
@click.option("--locked", is_flag=True)
@click.option("--check", is_flag=True)
@options.jobs_option
@options.assume_option
@format_option
def command(
    *, clusters: tuple[str, ...], listed: str | None, jobs: int | None, style: str, **run: Any
) -> int:
    """Compile clusters: write the lock, then the manifests below rendered/.

    CLUSTER is a folder, or a name below clusters/; without one, all of them. Nodes keep the blocks that they
    hold; only new nodes get new blocks. Files that do not change are not written.

    Options:
        --locked: Do not write the lock; refuse one that is out of date, with the reasons.
        --check: Write nothing; exit 1 if a file would change.
    Examples:
        ipamc compile  # all clusters below clusters/
        ipamc compile lab  # the cluster in clusters/lab/
        ipamc compile --locked  # render from the lock; fail if the lock is out of date
        ipamc compile --check  # write nothing; fail if a file is not as a compile would write it
    Exit codes:
        1: refused, out of date with --check or --locked, or an I/O or environment error; clusters that are
            not refused are written
    """
    from ipamc.cli.runner import ClusterRun, compile_all, conclude
    from ipamc.report.findings import FORMATS
    from ipamc.workspace.environment import today, variable

    day = today()
    folders = find(options.clusters_of(clusters, listed))
    tasks = [ClusterRun(folder=folder, today=day, **run) for folder in folders]
    code = conclude(compile_all(tasks, jobs), style)
    quiet = run["check"] or run["locked"] or FORMATS[style].document or variable("CI")
    if not quiet and _merges_as_text():
        say("note: git merges locks as text in this clone, which has no merge driver: ipamc init")
    return code


def _merges_as_text() -> bool:
    """Return whether .gitattributes names the merge driver for locks, and git's configuration lacks it."""
    from ipamc.workspace import disk
    from ipamc.workspace.failure import EnvironmentFailure

    try:
        if f"merge={DRIVER}" not in disk.read_text(".gitattributes"):
            return False
        from ipamc.workspace import git

        top = git.root(".")
        return top is not None and not git.has_driver(top, DRIVER)
    except (EnvironmentFailure, OSError, UnicodeDecodeError):  # the compile is done already
        return False
