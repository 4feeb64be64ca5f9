"""`ipamc show`: how full the pools are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from ipamc.cli.command import Verb
from ipamc.cli.findings import Problems, format_option, tell
from ipamc.cli.future import runway_option, tell_future, what_if_option
from ipamc.cli.options import assume_option, at_option, clusters_argument, output_option, source_of
from ipamc.cli.terminal import colour, columns, has_blocks, is_terminal, show, show_csv, show_record

if TYPE_CHECKING:
    from ipamc.model.cluster import Cluster, Version
    from ipamc.model.lock import Lock
    from ipamc.report.aggregates import ClusterAggregates
    from ipamc.review.shown_pools import Choice, Shown
    from ipamc.workspace.source import Source

Made = TypeVar("Made")

SORTS = ("use", "name", "free", "size", "room")
ROUTERS = ("frr", "junos", "ios-xr")
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
        ("ipamc show --aggregates --by zone", "the fewest prefixes of what each zone holds"),
        ("ipamc show lab --aggregates --output frr", "the same by pool, as prefix lists of a router"),
        ("ipamc show lab --what-if '+40 rack=b'", "who would get what, what is full, what would help"),
        ("ipamc show lab --runway", "for how many weeks there is room, by the history in git"),
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
@click.option(
    "--aggregates",
    is_flag=True,
    help="Instead, the fewest prefixes that cover exactly what is held or pending, or in the states of --state.",
)
@click.option(
    "--by",
    metavar="LABEL",
    help="With --aggregates: by the values of a label of nodes, such as zone, instead of by pool. Reads the inventory.",
)
@click.option(
    "--match",
    type=click.Choice(("within", "exact")),
    default="within",
    show_default=True,
    help="What lists for routers let pass: each prefix and the routes of nodes in it, or the prefixes alone.",
)
@what_if_option
@runway_option
@output_option("text", "json", "csv", "prometheus", *ROUTERS)
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
    aggregates: bool,
    by: str | None,
    match: str,
    changes: tuple[str, ...],
    runway: bool,
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

    Of --output, frr, junos and ios-xr are --aggregates as prefix lists. By default they are for the routes that
    nodes announce: blocks inside an aggregate. With --match exact only the aggregates themselves pass.

    Reads the pools, the lock and CiliumNodes; Nodes only where CiliumNodes leave open which blocks are in use.
    What is wrong with an inventory, ipamc compile --check tells.

    CLUSTER is a folder, or a name below clusters/; without one, all of them. 'held at start' is a block of a
    pool of which Cilium's operator gives out blocks, where no CiliumNode shows that the node has it now.
    """
    from ipamc.model.lock import State
    from ipamc.report.utilisation import about_started
    from ipamc.review.shown_pools import Choice

    if runway or changes:
        source = source_of(clusters, at, assume)
        return tell_future(source, changes, pools, runway=runway, output=output, style=style)
    if output == "prometheus" and (show_blocks or nodes or states):
        raise click.UsageError(
            "metrics are of pools: --output prometheus takes no --show-blocks, --node or --state"
        )
    choice = Choice(pools=pools, nodes=nodes, states=frozenset(map(State, states)))
    reading = _Reading(source_of(clusters, at, assume), choice)
    if aggregates or output in ROUTERS:
        from ipamc.cli.show_aggregates import aggregated, write

        if output in {"csv", "prometheus"} or show_blocks:
            raise click.UsageError(
                "--aggregates takes no --show-blocks, and is no --output csv or prometheus"
            )
        prefixes = reading.read(aggregated(choice, by), whole=by is not None)
        write(output, prefixes, match, reading.source.record())
        found: Sequence[ClusterAggregates | Shown] = prefixes
    elif by is not None:
        raise click.UsageError("--by is for --aggregates: ipamc show --aggregates --by LABEL")
    else:
        lines = show_blocks or choice.of_lines
        pooled = reading.read(_shown(choice, reading.source.day(), lines=lines))
        if output == "text":
            from ipamc.report.show.columns import Screen
            from ipamc.report.show.text import Look, render

            look = Look(
                sort=sort, reverse=reverse, ranges=ranges, every=every, blocks=lines, filtered=choice.any
            )
            screen = Screen(
                width=columns(), colour=colour(sys.stdout), blocks=has_blocks(), cuts=is_terminal()
            )
            show(render(pooled, look, screen))
        else:
            _write(output, pooled, reading, blocks=lines)
        found = pooled
    missing = reading.missing()
    nothing = [] if found or missing or not choice.of_lines else [reading.nothing()]
    notes = [about_started(cluster.name, cluster.started) for cluster in found if cluster.started]
    tell(style, *missing, *nothing, *notes)
    return reading.problems.conclude(style, answered=not missing)


def _shown(choice: Choice, day: str, *, lines: bool) -> Callable[[Cluster, Lock], Shown | None]:
    """Return what makes of a cluster what is shown of it; None: a filter leaves nothing."""
    from ipamc.review.as_needed import started_with
    from ipamc.review.shown_pools import shown

    def make(cluster: Cluster, lock: Lock) -> Shown | None:
        started = started_with(cluster, lock)
        found = shown(cluster, lock, choice, day, lines=lines, started=started)
        return found if found.pools or (found.outside and lines) or not choice.any else None

    return make


class _Reading:
    """Clusters as far as they are shown. One that is refused does not keep the others from being shown."""

    def __init__(self, source: Source, choice: Choice) -> None:
        self.source = source
        self.choice = choice
        self.problems = Problems()
        self.pools: set[str] = set()
        self.nodes: set[str] = set()

    def read(self, make: Callable[[Cluster, Lock], Made | None], *, whole: bool = False) -> list[Made]:
        """Return what is made of each cluster, but for those of which it is None; `whole`: with their Nodes."""
        from ipamc.pipeline import load_cluster
        from ipamc.review.as_needed import enough_for_use, load_without_nodes

        found = []
        for folder in self.source.folders:
            with self.problems.of(folder):
                inputs = self.source.inputs(folder, rendered=False)
                cluster, lock, *_ = (
                    load_cluster(inputs) if whole else load_without_nodes(inputs, enough_for_use)
                )
                self.pools.update(cluster.pools_by_name)
                if self.choice.nodes:
                    self.nodes.update(line.node for line in lock.lines)
                if made := make(cluster, lock):
                    found.append(made)
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


def _write(output: str, found: Sequence[Shown], reading: _Reading, *, blocks: bool) -> None:
    from ipamc.report import utilisation
    from ipamc.report.show import csv, prometheus

    if output == "json":
        body = {
            "version": utilisation.VERSION,
            **reading.source.record(),
            "clusters": list(map(utilisation.record, found)),
        }
        show_record(body)
    elif output == "csv":
        show_csv(csv.blocks(found) if blocks else csv.pools(found))
    else:
        show(prometheus.render(found))
