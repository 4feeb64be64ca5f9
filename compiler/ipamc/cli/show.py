"""`ipamc show`: how full the pools are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ipamc.cli.command import Verb
from ipamc.cli.findings import format_option, tell
from ipamc.cli.options import output_option, several, source_of, source_options
from ipamc.cli.shown import NODE, POOL, STATES, Reading
from ipamc.cli.terminal import colour, columns, has_blocks, is_terminal, show, show_csv, show_record
from ipamc.model.diagnostics import names

if TYPE_CHECKING:
    from ipamc.model.cluster import Scheme
    from ipamc.model.lock import Lock
    from ipamc.review.shown_pools import Choice, ShownCluster

SORTS = ("use", "name", "free", "size", "room")


@click.command(cls=Verb)
@several("--pool", "pools", metavar="NAME,…", help=POOL)
@several("--node", "nodes", metavar="NAME,…", help=NODE)
@several("--state", "states", metavar="STATE,…", type=click.Choice(STATES))
@click.option("--sort", type=click.Choice(SORTS), default="use", show_default=True)
@click.option("--reverse", is_flag=True)
@click.option("--show-blocks", is_flag=True)
@click.option("--ranges/--no-ranges", default=None)
@click.option("--all", "every", is_flag=True)
@output_option("text", "json", "csv", "prometheus")
@source_options
@format_option
def command(  # noqa: PLR0913 - an argument for each option
    *,
    pools: tuple[str, ...],
    nodes: tuple[str, ...],
    states: tuple[str, ...],
    sort: str,
    reverse: bool,
    show_blocks: bool,
    ranges: bool | None,
    every: bool,
    output: str,
    style: str,
    **where: Any,
) -> int:
    """Show how full the pools are, according to the lock. Writes nothing.

    Prints one line per pool and family: used and free addresses, and room for more nodes, which is the number
    of free blocks of blockSize divided by blocksPerNode (in dual-stack, of both families). 'comes free' is
    the next day on which a quarantine ends. 'held at start' marks a block of a pool that Cilium's operator
    also allocates from, if no CiliumNode shows it yet. A bar is red without room, and yellow below 10 % free.

    The numbers are those of the whole pool, regardless of --node and --state. A block must match all filters.
    CLUSTER is a name below clusters/ or a folder; by default all clusters.

    Options:
        --state: Only blocks in this state, and their pools: held, pending, quarantined or released.
        --sort: use: pools without room first, then the fullest; name: A to Z; free, size, room: the largest
            first.
        --reverse: Reverse the order.
        --show-blocks: Add a line for each block of the lock, with its node and state.
        --ranges: Add a line for each range of a pool.  [default: for pools with several]
        --all: Show all pools. By default a terminal shows the first 30 of a cluster.
    Examples:
        ipamc show  # the pools of all clusters below clusters/, the fullest first
        ipamc show lab --show-blocks  # also which node has which block
        ipamc show lab --pool 'rack-*' --sort room  # some pools, those with the most room first
        ipamc show --state quarantined  # what is in quarantine, and until when
        ipamc show lab --at 2026-11-21  # the pools at the end of that day, UTC
        ipamc show lab --output json  # for programs, with all digits
        ipamc show --output csv > pools.csv  # for a spreadsheet; with --show-blocks, the blocks
        ipamc show --output prometheus > x.prom.$$ && mv x.prom.$$ ipamc.prom  # metrics, replaced at once
    Exit codes:
        1: an input or a lock was refused, nothing matches --pool or --node, or an I/O or environment error
    """
    from ipamc.model.lock import State
    from ipamc.report.lock_lines import about_disputed, about_started
    from ipamc.review.shown_pools import Choice

    if output == "prometheus" and (show_blocks or nodes or states):
        only = "--output prometheus has metrics of pools: omit --show-blocks, --node and --state"
        raise click.UsageError(only)
    choice = Choice(pools=pools, nodes=nodes, states=frozenset(map(State, states)))
    reading = Reading(source_of(**where), choice)
    lines = show_blocks or choice.of_lines
    found = reading.read(_shown(choice, reading.source.day(), lines=lines))
    if output == "text":
        from ipamc.report.show_text import Screen, ShowOptions, render

        options = ShowOptions(
            sort=sort, reverse=reverse, ranges=ranges, every=every, blocks=lines, filtered=choice.any
        )
        screen = Screen(width=columns(), colour=colour(sys.stdout), blocks=has_blocks(), cuts=is_terminal())
        show(render(found, options, screen))
    else:
        _write(output, found, reading, blocks=lines)
    notes = [about_disputed(cluster.name, cluster.disputed) for cluster in found if cluster.disputed]
    notes += [about_started(cluster.name, cluster.started) for cluster in found if cluster.started]
    hidden = ((cluster.name, cluster.acknowledged) for cluster in found)
    notes += [f"{name}: findings of {names(codes)} are acknowledged" for name, codes in hidden if codes]
    tell(style, *reading.unmatched(found), *notes)
    return reading.conclude(style)


def _shown(choice: Choice, day: str, *, lines: bool) -> Callable[[Scheme, Lock], ShownCluster | None]:
    """Return a function that maps a cluster to its pools, or to None if a filter leaves nothing."""
    from ipamc.review.shown_pools import shown, started_with

    def make(cluster: Scheme, lock: Lock) -> ShownCluster | None:
        found = shown(cluster, lock, choice, day, lines=lines, started=started_with(cluster, lock))
        return found if found.pools or (found.outside and lines) or not choice.any else None

    return make


def _write(output: str, found: Sequence[ShownCluster], reading: Reading, *, blocks: bool) -> None:
    from ipamc.report import utilisation

    if output == "json":
        records = list(map(utilisation.record, found))
        show_record({"version": utilisation.VERSION, **reading.source.record(), "clusters": records})
    elif output == "csv":
        show_csv(utilisation.blocks_csv(found) if blocks else utilisation.pools_csv(found))
    else:
        show(utilisation.prometheus(found))
