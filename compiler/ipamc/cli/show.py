"""`ipamc show`: how full the pools are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.findings import Problems, format_option, print_findings
from ipamc.model.diagnostics import Log, Refused
from ipamc.workspace.clusters import clusters_argument, find, inputs_of
from ipamc.workspace.history import at_option, look_back

if TYPE_CHECKING:
    from ipamc.model.cluster import Cluster
    from ipamc.model.lock import Lock
    from ipamc.pipeline import Inputs


@click.command(
    cls=Verb,
    examples=(
        ("ipamc show", "the pools of every cluster below clusters/"),
        ("ipamc show lab --show-blocks", "and who has which block"),
        ("ipamc show lab --at 2026-11-21", "as they were at the end of that day, UTC"),
        ("ipamc show lab --output json", "the same for programs, all digits"),
    ),
    refused="the input or the lock was refused, or the surroundings failed",
)
@clusters_argument
@click.option("--show-blocks", is_flag=True, help="A row for each block of the lock: its node and its state.")
@click.option(
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="What goes to stdout.",
)
@at_option
@format_option
def command(*, clusters: tuple[str, ...], show_blocks: bool, output: str, at: str, style: str) -> int:
    """Show how full the pools are, by the lock as it stands. Writes nothing.

    CLUSTER is a folder, or a name below clusters/; without one, all of them.
    """
    from ipamc.lock.utilisation import utilisation
    from ipamc.model.lock import Consent
    from ipamc.report import utilisation as report_utilisation

    problems = Problems()
    tables, records = [], []
    past = look_back(at, clusters) if at else None
    for folder in past.folders if past else find(clusters):
        with problems.of(folder):
            cluster, lock = survey(
                past.inputs(folder) if past else inputs_of(folder, today="", consent=Consent())
            )
            uses = utilisation(cluster, lock)
            if output == "json":
                records.append(report_utilisation.records(cluster.name, uses, lock, blocks=show_blocks))
            else:
                tables.append(report_utilisation.table(cluster.name, uses, lock, blocks=show_blocks))
    if output == "json":
        click.echo(
            json.dumps(
                {
                    "version": report_utilisation.VERSION,
                    **({"at": past.record()} if past else {}),
                    "clusters": records,
                },
                indent=2,
            )
        )
    else:
        click.echo("\n".join(tables), nl=False)
    print_findings(problems.findings, style, problems.failures)
    return REFUSED if problems else DONE


def survey(inputs: Inputs) -> tuple[Cluster, Lock]:
    """Read a cluster and its lock as they stand; place nothing. Raises Refused where a compile would refuse what was read."""
    from ipamc.check import check
    from ipamc.lock.file import load
    from ipamc.read.locate import locate
    from ipamc.read.read import read

    log = Log()
    try:
        cluster = log.keep(read(inputs.name, inputs.folder, inputs.sources, inputs.schemas))
        log.add(check(cluster))
        lock = log.keep(
            load(inputs.lock, inputs.lock_path, cluster, inputs.consent, rendered=inputs.rendered)
        )
    except Refused as refused:
        raise Refused(locate(refused.diagnostics, inputs.sources)) from None
    return cluster, lock
