"""`ipamc compile`: lock and render."""

from __future__ import annotations

import click

from ipamc.cli.command import Verb
from ipamc.cli.findings import format_option
from ipamc.cli.terminal import today
from ipamc.workspace.clusters import clusters_argument, find


@click.command(
    cls=Verb,
    examples=(
        ("ipamc compile", "every cluster below clusters/"),
        ("ipamc compile lab", "the cluster in clusters/lab/"),
        ("ipamc compile --locked", "render what the lock says; fail if it is out of date"),
        ("ipamc compile --check", "write nothing; fail if a commit lacks what it should render to"),
    ),
    refused="refused, out of date with --check or --locked, or the surroundings failed; sound clusters are written all the same",
)
@clusters_argument
@click.option(
    "--locked", is_flag=True, help="The lock is read-only: a stale one is refused, with the reasons by name."
)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if anything on disk would change.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes for several clusters.  [default: one a processor]",
)
@format_option
def command(*, clusters: tuple[str, ...], locked: bool, check: bool, jobs: int | None, style: str) -> int:
    """Compile clusters: the lock, then the manifests below rendered/.

    CLUSTER is a folder, or a name below clusters/; without one, all of them. What a node holds it keeps: only what is new is placed. Files that
    are the same already are not touched.
    """
    from ipamc.cli.runner import Job, compile_all, conclude
    from ipamc.model.lock import Consent

    day, consent = today(), Consent()
    todo = [
        Job(folder=folder, today=day, consent=consent, locked=locked, check=check)
        for folder in find(clusters)
    ]
    return conclude(compile_all(todo, jobs), style)
