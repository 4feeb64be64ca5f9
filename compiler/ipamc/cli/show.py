"""`ipamc show`: how full the pools are."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ipamc.cli.command import Verb
from ipamc.cli.findings import Problems, format_option
from ipamc.cli.options import assume_option, at_option, clusters_argument, output_option, source_of
from ipamc.cli.terminal import colour, columns, has_blocks, is_terminal, say, show, show_csv, show_json

if TYPE_CHECKING:
    from ipamc.model.cluster import Version
    from ipamc.review.shown_pools import Choice, Shown
    from ipamc.workspace.source import Source

SORTS = ("use", "name", "free", "size", "room")
STATES = ("held", "pending", "quarantined", "released")


@click.command(
    cls=Verb,
    examples=(
        ("ipamc show", "the pools of all clusters below clusters/, the fullest first"),
        ("ipamc show lab --show-blocks", "and which node has which block"),
        ("ipamc show lab --pool 'rack-*' --sort room", "some pools, those with the most room first"),
        ("ipamc show --state quarantined", "what is in quarantine, and until when"),
        ("ipamc show lab --at 2026-11-21", "as they were at the end of that day, UTC"),
        ("ipamc show lab --output json", "the same, for programs, with all digits"),
        ("ipamc show --output csv > pools.csv", "for a spreadsheet; with --show-blocks the blocks"),
        ("ipamc show --output prometheus > x.prom.$$ && mv x.prom.$$ ipamc.prom", "metrics, at once"),
    ),
    refused="an input or a lock was refused, nothing has a name of --pool or --node, or an I/O or environment error",
)
@clusters_argument
@click.option(
    "--pool",
    "pools",
    multiple=True,
    metavar="NAME",
    help="Only this pool, or those of a pattern such as 'rack-*'. Repeatable.",
)
@click.option(
    "--node",
    "nodes",
    multiple=True,
    metavar="NAME",
    help="Only the blocks of this node, or of a pattern, and their pools. Repeatable.",
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    help="Only blocks in this state, and their pools. Repeatable.",
)
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="use",
    show_default=True,
    help="use: the fullest first, before them those without room; name: A to Z; free, size, room: the largest first.",
)
@click.option("--reverse", is_flag=True, help="The other way round.")
@click.option(
    "--show-blocks", is_flag=True, help="Add a line for each block of the lock: its node and its state."
)
@click.option(
    "--ranges/--no-ranges",
    default=None,
    help="Add a line for each range of a pool.  [default: where a pool has several]",
)
@click.option(
    "--all", "every", is_flag=True, help="All pools, where a terminal would show the first 30 of a cluster."
)
@output_option("table", "json", "csv", "prometheus")
@at_option
@assume_option
@format_option
def command(  # noqa: PLR0913 - an argument for each option
    *,
    clusters: tuple[str, ...],
    pools: tuple[str, ...],
    nodes: tuple[str, ...],
    states: tuple[str, ...],
    sort: str,
    reverse: bool,
    show_blocks: bool,
    ranges: bool | None,
    every: bool,
    output: str,
    at: str | None,
    assume: Version | None,
    style: str,
) -> int:
    """Show how full the pools are, according to the lock. Writes nothing.

    A line a pool and family: how much of it is used, what is free, and for how many more nodes like its own it
    has room: blocks of its blockSize that are free, by blocksPerNode; in dual-stack of both families. 'comes
    free' is the next day on which a quarantine ends, and of how many blocks. A bar is red where there is no room
    for a node, and yellow where less than 10 % of the addresses are free, of which IPC0215 warns, too.

    Numbers are those of the whole pool, whichever of its blocks --node and --state choose. Different filters
    combine: what all of them choose is shown.

    Reads the pools, the lock and CiliumNodes; Nodes only where CiliumNodes leave open which blocks are in use.
    What is wrong with an inventory, ipamc compile --check tells.

    CLUSTER is a folder, or a name below clusters/; without one, all of them. 'held at start' is a block of a
    pool of which Cilium's operator gives out blocks, where no CiliumNode tells what the node has now.
    """
    from ipamc.model.lock import State
    from ipamc.report.findings import format_of
    from ipamc.report.utilisation import about_started
    from ipamc.review.shown_pools import Choice

    if output == "prometheus" and (show_blocks or nodes or states):
        raise click.UsageError(
            "metrics are of pools: --output prometheus takes no --show-blocks, --node or --state"
        )
    choice = Choice(pools=pools, nodes=nodes, states=frozenset(map(State, states)))
    reading = _Reading(source_of(clusters, at, assume), choice, blocks=show_blocks or choice.of_lines)
    found = reading.clusters()
    if output == "table":
        show(_table(found, choice, sort, reverse=reverse, ranges=ranges, every=every, blocks=reading.blocks))
    else:
        _write(output, found, reading)
    missing = reading.missing()
    nothing = [] if found or missing or not choice.of_lines else [reading.nothing()]
    for line in [
        *missing,
        *nothing,
        *(about_started(cluster.name, cluster.started) for cluster in found if cluster.started),
    ]:
        if not format_of(style).document:
            say(line)
    return reading.problems.conclude(style, answered=not missing)


class _Reading:
    """Clusters as far as they are shown. One that is refused does not keep the others from being shown."""

    def __init__(self, source: Source, choice: Choice, *, blocks: bool) -> None:
        self.source = source
        self.choice = choice
        self.blocks = blocks
        self.problems = Problems()
        self.pools: set[str] = set()
        self.nodes: set[str] = set()

    def clusters(self) -> list[Shown]:
        """Return what is shown of each cluster; with a filter only of those that have something of it."""
        from ipamc.review.as_needed import enough_for_use, load_without_nodes
        from ipamc.review.shown_pools import shown
        from ipamc.review.started import started_with

        found = []
        day = self.source.day() if self.source.folders else ""
        for folder in self.source.folders:
            with self.problems.of(folder):
                cluster, lock, _ = load_without_nodes(
                    self.source.inputs(folder, rendered=False), enough_for_use
                )
                self.pools.update(cluster.pools_by_name)
                self.nodes.update(line.node for line in lock.lines) if self.choice.nodes else None
                started = started_with(cluster, lock)
                one = shown(cluster, lock, self.choice, day, lines=self.blocks, started=started)
                if one.pools or (one.outside and self.blocks) or not self.choice.any:
                    found.append(one)
        return found

    def missing(self) -> list[str]:
        """Return a line for each name that nothing has, with one that it has."""
        from ipamc.model.diagnostics import count
        from ipamc.model.wording import suggestion
        from ipamc.review.shown_pools import without_match

        where = count(len(self.source.folders), "cluster")
        found = []
        for kind, names, known in (
            ("pool", self.choice.pools, self.pools),
            ("node", self.choice.nodes, self.nodes),
        ):
            for name in without_match(names, known):
                near = suggestion(name, known)
                found.append(f"no {kind} of {where} is named {name}{f': {near}' if near else ''}")
        return found

    def nothing(self) -> str:
        """Return the line that says that names and states are there, and nothing that has all of them."""
        from ipamc.model.diagnostics import count

        choice = self.choice
        asked = [
            f"of pool {' or '.join(choice.pools)}" if choice.pools else "",
            f"of node {' or '.join(choice.nodes)}" if choice.nodes else "",
            f"that is {' or '.join(sorted(choice.states))}" if choice.states else "",
        ]
        unread = ", as far as they could be read" if self.problems else ""
        return (
            f"{count(len(self.source.folders), 'cluster')}{unread}: no block {' '.join(filter(None, asked))}"
        )


def _table(
    found: Sequence[Shown],
    choice: Choice,
    sort: str,
    *,
    reverse: bool,
    ranges: bool | None,
    every: bool,
    blocks: bool,
) -> str:
    from ipamc.report.show.columns import Screen
    from ipamc.report.show.text import Look, render

    look = Look(sort=sort, reverse=reverse, ranges=ranges, every=every, blocks=blocks, filtered=choice.any)
    screen = Screen(width=columns(), colour=colour(sys.stdout), blocks=has_blocks(), cuts=is_terminal())
    return render(found, look, screen)


def _write(output: str, found: Sequence[Shown], reading: _Reading) -> None:
    from ipamc.report import utilisation
    from ipamc.report.show import csv, prometheus

    if output == "json":
        body = {
            "version": utilisation.VERSION,
            **reading.source.record(),
            "clusters": list(map(utilisation.record, found)),
        }
        show_json(json.dumps(body, indent=2))
    elif output == "csv":
        show_csv(csv.blocks(found) if reading.blocks else csv.pools(found))
    else:
        show(prometheus.render(found))
