"""`ipamc aggregates`: the fewest prefixes that cover what is in use, also as prefix lists of routers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ipamc.cli.command import Verb
from ipamc.cli.findings import format_option, tell
from ipamc.cli.options import output_option, several, source_of, source_options
from ipamc.cli.shown import NODE, POOL, STATES, Reading
from ipamc.cli.terminal import colour, show, show_record
from ipamc.workspace.failure import EnvironmentFailure

if TYPE_CHECKING:
    from ipamc.model.cluster import Scheme
    from ipamc.model.lock import Lock
    from ipamc.report.prefixes import ClusterAggregates
    from ipamc.review.shown_pools import Choice


@click.command(cls=Verb)
@several("--pool", "pools", metavar="NAME,…", help=POOL)
@several("--node", "nodes", metavar="NAME,…", help=NODE)
@several("--state", "states", metavar="STATE,…", type=click.Choice(STATES))
@click.option("--by", metavar="LABEL")
@click.option("--match", type=click.Choice(("within", "exact")), default="within", show_default=True)
@output_option("text", "json", "frr", "junos", "ios-xr")
@source_options
@format_option
def command(
    *,
    pools: tuple[str, ...],
    nodes: tuple[str, ...],
    states: tuple[str, ...],
    by: str | None,
    match: str,
    output: str,
    style: str,
    **where: Any,
) -> int:
    """Show the fewest prefixes that cover exactly what is in use, for routers. Writes nothing.

    In use are held and pending blocks. The outputs frr, junos and ios-xr are prefix lists of these routers.
    CLUSTER is a name below clusters/ or a folder; by default all clusters.

    Options:
        --state: Only blocks in this state: held, pending, quarantined or released.  [default: held,pending]
        --by: Group by the values of this node label, such as zone, and not by pool. Reads the inventory.
        --match: What a prefix list permits: within, each prefix and the routes of nodes inside it; exact,
            only the prefixes.
    Examples:
        ipamc aggregates lab  # the fewest prefixes of each pool
        ipamc aggregates --by zone  # of each zone
        ipamc aggregates lab --output frr  # as prefix lists of a router
        ipamc aggregates lab --at origin/main --output json  # of a commit, for programs
    Exit codes:
        1: an input or a lock was refused, nothing matches --pool or --node, or an I/O or environment error
    """
    from ipamc.model.lock import State
    from ipamc.report.lock_lines import about_started
    from ipamc.review.shown_pools import Choice

    choice = Choice(pools=pools, nodes=nodes, states=frozenset(map(State, states)))
    reading = Reading(source_of(**where), choice)
    found = reading.read(_aggregated(choice, by))
    _write(output, found, match, reading.source.record())
    started = [about_started(cluster.name, cluster.started) for cluster in found if cluster.started]
    tell(style, *reading.unmatched(found), *started)
    return reading.conclude(style)


def _aggregated(choice: Choice, by: str | None) -> Callable[[Scheme, Lock], ClusterAggregates | None]:
    """Return a function that maps a cluster to its aggregates, by pool or label, or to None."""
    from ipamc.report.prefixes import ClusterAggregates
    from ipamc.review.aggregates import IN_USE, LabelError, by_label, by_pool, chosen, label_key
    from ipamc.review.shown_pools import started_with

    states = choice.states or IN_USE
    said = tuple(str(state) for state in type(next(iter(states))) if state in states)

    def make(cluster: Scheme, lock: Lock) -> ClusterAggregates | None:
        lines = chosen(cluster, lock, choice)
        key = ""
        if by is None:
            groups = by_pool(cluster, lines)
        else:
            try:
                key = label_key(cluster, by)
            except LabelError as problem:
                raise EnvironmentFailure(str(problem)) from None
            groups = by_label(cluster, lines, key)
        if choice.of_lines:
            groups = tuple(group for group in groups if group.blocks)
        if choice.any and not groups:
            return None
        started = started_with(cluster, lock)
        return ClusterAggregates(name=cluster.name, label=key, states=said, groups=groups, started=started)

    return make


def _write(output: str, found: Sequence[ClusterAggregates], match: str, at: Mapping[str, object]) -> None:
    from ipamc.report.prefixes import FORMATS, VERSION, record, render

    if output == "json":
        show_record({"version": VERSION, **at, "clusters": list(map(record, found))})
    elif output in FORMATS:
        show(FORMATS[output](found, match))
    else:
        show(render(found, colour=colour(sys.stdout)))
