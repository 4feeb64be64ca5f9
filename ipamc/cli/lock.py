"""`ipamc lock`: the lock alone, and every consent."""

from __future__ import annotations

import click

from ipamc.cli.clusters import clusters_argument, find, format_option
from ipamc.cli.terminal import today
from ipamc.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=(
        ("ipamc lock lab", "bring the lock of clusters/lab/ up to date"),
        ("ipamc lock --check", "write nothing; fail if a lock is out of date, with the reasons by name"),
        ("ipamc lock lab --leave node-7", "node-7 is really gone, although the inventory looks cut off"),
    ),
    refused="refused, out of date with --check, or the surroundings failed",
)
@clusters_argument
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a lock is out of date, with the reasons by name.")
@click.option(
    "--leave", multiple=True, metavar="NODE|all", help="This node is really gone: quarantine its blocks. Repeatable; all: every leaver."
)
@format_option
def command(*, clusters: tuple[str, ...], check: bool, leave: tuple[str, ...], style: str) -> int:
    """Write the lock alone, and nothing below rendered/.

    CLUSTER is a folder, or a name below clusters/; without one, all of them. Consent is given here, once, and is reviewed in the lock's lines.
    """
    from ipamc.cli.run import Job, conclude, run_all
    from ipamc.model import Consent

    day, consent = today(), Consent(leave=frozenset(leave))
    todo = [Job(folder=folder, today=day, consent=consent, render=False, locked=check, check=check) for folder in find(clusters)]
    return conclude(run_all(todo, None), style)
