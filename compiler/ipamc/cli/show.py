"""`ipamc show`: how full the pools are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from ipamc.cli.command import Verb
from ipamc.cli.findings import Problems, format_option
from ipamc.cli.options import assume_option, at_option, clusters_argument, output_option, source_of
from ipamc.cli.terminal import say, show, show_json

if TYPE_CHECKING:
    from ipamc.model.cluster import Version


@click.command(
    cls=Verb,
    examples=(
        ("ipamc show", "the pools of all clusters below clusters/"),
        ("ipamc show lab --show-blocks", "and which node has which block"),
        ("ipamc show lab --at 2026-11-21", "as they were at the end of that day, UTC"),
        ("ipamc show lab --output json", "the same, for programs, with all digits"),
    ),
    refused="an input or a lock was refused, or an I/O or environment error",
)
@clusters_argument
@click.option(
    "--show-blocks", is_flag=True, help="Add a row for each block of the lock: its node and its state."
)
@output_option("table", "json")
@at_option
@assume_option
@format_option
def command(
    *,
    clusters: tuple[str, ...],
    show_blocks: bool,
    output: str,
    at: str | None,
    assume: Version | None,
    style: str,
) -> int:
    """Show how full the pools are, according to the lock. Writes nothing.

    Reads the pools, the lock and CiliumNodes; Nodes only where CiliumNodes leave open which blocks are in use.
    What is wrong with an inventory, ipamc compile --check tells.

    CLUSTER is a folder, or a name below clusters/; without one, all of them. 'held at start' is a block of a
    pool of which Cilium's operator gives out blocks, where no CiliumNode tells what the node has now.
    """
    from ipamc.lock.utilisation import utilisation
    from ipamc.report import utilisation as report_utilisation
    from ipamc.report.findings import format_of
    from ipamc.review.as_needed import enough_for_use, load_without_nodes
    from ipamc.review.started import started_with

    problems = Problems()
    tables, records, notes = [], [], []
    source = source_of(clusters, at, assume)
    for folder in source.folders:
        with problems.of(folder):
            inputs = source.inputs(folder, rendered=False)
            cluster, lock, _ = load_without_nodes(inputs, enough_for_use)
            name, uses, started = cluster.name, utilisation(cluster, lock), started_with(cluster, lock)
            if output == "json":
                records.append(
                    report_utilisation.records(name, uses, lock, blocks=show_blocks, started=started)
                )
            else:
                tables.append(report_utilisation.table(name, uses, lock, blocks=show_blocks, started=started))
            if started:
                notes.append(report_utilisation.about_started(name, started))
    if output == "json":
        show_json(
            json.dumps(
                {
                    "version": report_utilisation.VERSION,
                    **source.record(),
                    "clusters": records,
                },
                indent=2,
            )
        )
    else:
        show("\n".join(tables))
    for line in notes if not format_of(style).document else ():
        say(line)
    return problems.conclude(style)
