"""`ipamc show`: how full the pools are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from msgspec import Struct, field
from msgspec.structs import replace

from ipamc.cli.command import REFUSED, Verb
from ipamc.cli.findings import Problems, format_option, tell
from ipamc.cli.options import output_option, source_of, source_options
from ipamc.cli.terminal import colour, columns, has_blocks, is_terminal, progress, show, show_csv, show_record
from ipamc.model.diagnostics import count, names
from ipamc.workspace.failure import EnvironmentFailure

if TYPE_CHECKING:
    from ipamc.model.cluster import Scheme
    from ipamc.model.lock import Lock
    from ipamc.report.prefixes import ClusterAggregates
    from ipamc.report.runway import History
    from ipamc.review.runway import Runway
    from ipamc.review.shown_pools import Choice, ShownCluster
    from ipamc.review.what_if import WhatIf
    from ipamc.workspace.source import Source

Made = TypeVar("Made")

SORTS = ("use", "name", "free", "size", "room")
ROUTERS = ("frr", "junos", "ios-xr")
STATES = ("held", "pending", "quarantined", "released")


@click.command(cls=Verb)
@click.option("--pool", "pools", multiple=True, metavar="NAME")
@click.option("--node", "nodes", multiple=True, metavar="NAME")
@click.option("--state", "states", multiple=True, type=click.Choice(STATES))
@click.option("--sort", type=click.Choice(SORTS), default="use", show_default=True)
@click.option("--reverse", is_flag=True)
@click.option("--show-blocks", is_flag=True)
@click.option("--ranges/--no-ranges", default=None)
@click.option("--all", "every", is_flag=True)
@click.option("--aggregates", is_flag=True)
@click.option("--by", metavar="LABEL")
@click.option("--match", type=click.Choice(("within", "exact")), default="within", show_default=True)
@click.option("--what-if", "changes", multiple=True, metavar="CHANGE")
@click.option("--runway", is_flag=True)
@output_option("text", "json", "csv", "prometheus", *ROUTERS)
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
    aggregates: bool,
    by: str | None,
    match: str,
    changes: tuple[str, ...],
    runway: bool,
    output: str,
    style: str,
    **where: Any,
) -> int:
    """Show how full the pools are, according to the lock. Writes nothing.

    A line a pool and family: how much of it is used, what is free, and for how many more nodes like its own
    it has room: blocks of its blockSize that are free, by blocksPerNode; in dual-stack of both families.
    'comes free' is the next day on which a quarantine ends, and of how many blocks. A bar is red where there
    is no room for a node, and yellow where less than 10 % of the addresses are free, of which IPC0215 warns,
    too.

    Numbers are those of the whole pool, whichever of its blocks --node and --state choose. Different filters
    combine: what all of them choose is shown.

    Of --output, frr, junos and ios-xr are --aggregates as prefix lists. By default they are for the routes
    that nodes announce: blocks inside an aggregate. With --match exact only the aggregates themselves pass.

    CLUSTER is a folder, or a name below clusters/; without one, all of them. 'held at start' is a block of a
    pool of which Cilium's operator gives out blocks, where no CiliumNode shows that the node has it now.

    Options:
        --pool: Only this pool, or those of a pattern such as 'rack-*'. Repeatable.
        --node: Only the blocks of this node, or of a pattern, and their pools. Repeatable.
        --state: Only blocks in this state, and their pools. Repeatable.
        --sort: use: the fullest first, before them those without room; name: A to Z; free, size, room: the
            largest first.
        --reverse: The other way round.
        --show-blocks: Add a line for each block of the lock: its node and its state.
        --ranges: Add a line for each range of a pool.  [default: where a pool has several]
        --all: All pools, where a terminal would show the first 30 of a cluster.
        --aggregates: Instead, the fewest prefixes that cover exactly what is held or pending, or in the
            states of --state.
        --by: With --aggregates: by the values of a label of nodes, such as zone, instead of by pool. Reads
            the inventory.
        --match: What lists for routers let pass: each prefix and the routes of nodes in it, or the prefixes
            alone.
        --what-if: Instead, what a compile would make of other nodes: '+40 rack=b', '+3 like NODE', '-rack=b',
            '-node NAME'. Repeatable. Exit code 1 where it would refuse them.
        --runway: Instead, for how many weeks the pools have room, by the history of the lock in git: a range,
            and how it was found.
    Examples:
        ipamc show  # the pools of all clusters below clusters/, the fullest first
        ipamc show lab --show-blocks  # and which node has which block
        ipamc show lab --pool 'rack-*' --sort room  # some pools, those with the most room first
        ipamc show --state quarantined  # what is in quarantine, and until when
        ipamc show lab --at 2026-11-21  # as they were at the end of that day, UTC
        ipamc show lab --output json  # the same, for programs, with all digits
        ipamc show --aggregates --by zone  # the fewest prefixes of what each zone holds
        ipamc show lab --aggregates --output frr  # the same by pool, as prefix lists of a router
        ipamc show lab --what-if '+40 rack=b'  # who would get what, what is full, what would help
        ipamc show lab --runway  # for how many weeks there is room, by the history in git
        ipamc show --output csv > pools.csv  # for a spreadsheet; with --show-blocks the blocks
        ipamc show --output prometheus > x.prom.$$ && mv x.prom.$$ ipamc.prom  # metrics, at once
    Exit codes:
        1: an input or a lock was refused, nothing has a name of --pool or --node, or an I/O or environment
            error
    """
    from ipamc.model.lock import State
    from ipamc.report.lock_lines import about_disputed, about_started
    from ipamc.review.shown_pools import Choice

    if runway or changes:
        return forecast(source_of(**where), changes, pools, runway=runway, output=output, style=style)
    if output == "prometheus" and (show_blocks or nodes or states):
        only = "metrics are of pools: --output prometheus takes no --show-blocks, --node or --state"
        raise click.UsageError(only)
    choice = Choice(pools=pools, nodes=nodes, states=frozenset(map(State, states)))
    reading = _Reading(source_of(**where), choice)
    found: Sequence[ClusterAggregates | ShownCluster]
    pooled: Sequence[ShownCluster] = ()
    if aggregates or output in ROUTERS:
        if output in {"csv", "prometheus"} or show_blocks:
            raise click.UsageError(
                "--aggregates takes no --show-blocks, and is no --output csv or prometheus"
            )
        found = prefixes = reading.read(_aggregated(choice, by))
        _write_aggregates(output, prefixes, match, reading.source.record())
    elif by is not None:
        raise click.UsageError("--by is for --aggregates: ipamc show --aggregates --by LABEL")
    else:
        lines = show_blocks or choice.of_lines
        found = pooled = reading.read(_shown(choice, reading.source.day(), lines=lines))
        if output == "text":
            from ipamc.report.show_text import Screen, ShowOptions, render

            options = ShowOptions(
                sort=sort, reverse=reverse, ranges=ranges, every=every, blocks=lines, filtered=choice.any
            )
            screen = Screen(
                width=columns(), colour=colour(sys.stdout), blocks=has_blocks(), cuts=is_terminal()
            )
            show(render(pooled, options, screen))
        else:
            _write(output, pooled, reading, blocks=lines)
    missing = reading.missing()
    nothing = [] if found or missing or not choice.of_lines else [reading.nothing()]
    notes = [about_disputed(cluster.name, cluster.disputed) for cluster in pooled if cluster.disputed]
    notes += [about_started(cluster.name, cluster.started) for cluster in found if cluster.started]
    hidden = ((cluster.name, cluster.acknowledged) for cluster in pooled)
    notes += [f"{name}: findings of {names(codes)} are acknowledged" for name, codes in hidden if codes]
    tell(style, *missing, *nothing, *notes)
    return reading.problems.conclude(style, answered=not missing)


def _shown(choice: Choice, day: str, *, lines: bool) -> Callable[[Scheme, Lock], ShownCluster | None]:
    """Return a function that maps a cluster to its pools, or to None if a filter leaves nothing."""
    from ipamc.review.shown_pools import shown, started_with

    def make(cluster: Scheme, lock: Lock) -> ShownCluster | None:
        found = shown(cluster, lock, choice, day, lines=lines, started=started_with(cluster, lock))
        return found if found.pools or (found.outside and lines) or not choice.any else None

    return make


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


class _Reading(Struct):
    """The clusters to show. A refused cluster does not stop the others."""

    source: Source
    choice: Choice
    problems: Problems = field(default_factory=Problems)
    pools: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)

    def read(self, make: Callable[[Scheme, Lock], Made | None]) -> list[Made]:
        """Return the results of `make` that are not None."""
        from ipamc.pipeline import load_folder

        found = []
        for folder in self.source.folders:
            with self.problems.of(folder):
                cluster, lock = load_folder(self.source.inputs(folder, rendered=False))
                self.pools.update(cluster.pools_by_name)
                if self.choice.nodes:
                    self.nodes.update(line.node for line in lock.lines)
                if made := make(cluster, lock):
                    found.append(made)
        return found

    def missing(self) -> list[str]:
        """Return a line for each value of --pool and --node that matches nothing, with a similar name."""
        from ipamc.model.wording import nearest_name, suggestion
        from ipamc.review.shown_pools import without_match

        where = count(len(self.source.folders), "cluster")
        asked = (("pool", self.choice.pools, self.pools), ("node", self.choice.nodes, self.nodes))
        return [
            f"no {kind} of {where} is named {name}{f': {near}' if near else ''}"
            for kind, names, known in asked
            for name in without_match(names, known)
            for near in [suggestion(name, known, nearest_name)]
        ]

    def nothing(self) -> str:
        """Return the line for filters of which each matches something, but no block matches all."""
        choice = self.choice
        chosen = (("of pool", choice.pools), ("of node", choice.nodes), ("that is", sorted(choice.states)))
        asked = [f"{what} {' or '.join(some)}" for what, some in chosen if some]
        unread = ", as far as they could be read" if self.problems else ""
        return f"{count(len(self.source.folders), 'cluster')}{unread}: no block {' '.join(asked)}"


def _write(output: str, found: Sequence[ShownCluster], reading: _Reading, *, blocks: bool) -> None:
    from ipamc.report import utilisation

    if output == "json":
        records = list(map(utilisation.record, found))
        show_record({"version": utilisation.VERSION, **reading.source.record(), "clusters": records})
    elif output == "csv":
        show_csv(utilisation.blocks_csv(found) if blocks else utilisation.pools_csv(found))
    else:
        show(utilisation.prometheus(found))


def _write_aggregates(
    output: str, found: Sequence[ClusterAggregates], match: str, at: Mapping[str, object]
) -> None:
    from ipamc.report.prefixes import FORMATS, VERSION, record, render

    if output == "json":
        show_record({"version": VERSION, **at, "clusters": list(map(record, found))})
    elif output in FORMATS:
        show(FORMATS[output](found, match))
    else:
        show(render(found, colour=colour(sys.stdout)))


_COMMON = {"clusters", "output", "at", "assume", "style", "report"}
"""Parameters of `show` that both questions have, too."""


def forecast(
    source: Source, changes: tuple[str, ...], pools: tuple[str, ...], *, runway: bool, output: str, style: str
) -> int:
    """Answer --what-if or --runway; return the exit code. Raises UsageError for other options."""
    if runway and changes:
        raise click.UsageError("--runway and --what-if are two questions: ask one after the other")
    name, own = ("--runway", {"runway", "pools"}) if runway else ("--what-if", {"changes"})
    context = click.get_current_context()
    for param in context.command.params:
        given = context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if given and param.name not in own | _COMMON:
            raise click.UsageError(f"{name} takes no {param.opts[0]}")
    if output not in {"text", "json"}:
        raise click.UsageError(f"{name} is no --output {output}: text or json")
    if runway:
        return _tell_runway(source, pools, output, style)
    from ipamc.report import what_if as report
    from ipamc.review.node_changes import ChangeError, parse_change
    from ipamc.review.what_if import what_if
    from ipamc.workspace.spaces import not_space

    if len(source.folders) != 1:
        raise click.UsageError("--what-if asks about the nodes of one cluster: name it")
    folder, problems = not_space(*source.folders), Problems()
    answer: WhatIf | None = None
    misfit = ""
    with progress("compiling in thought"), problems.of(folder):
        try:
            answer = what_if(source.inputs(folder), [parse_change(text) for text in changes], source.day())
        except ChangeError as problem:
            misfit = str(problem)
    if misfit:
        raise click.UsageError(f"--what-if {misfit}")
    if answer and output == "json":
        show_record({"version": report.VERSION, **source.record(), **report.record(answer)})
    elif answer:
        show(report.text(answer))
    code = problems.conclude(style, answered=answer is not None)
    return code if answer is None or answer.fits else REFUSED


def _tell_runway(source: Source, pools: Sequence[str], output: str, style: str) -> int:
    """Print how long pools of these names or patterns, or all, have room; return the exit code."""
    from ipamc.pipeline import load_folder
    from ipamc.report import runway as report
    from ipamc.review.runway import runway, to_read
    from ipamc.review.shown_pools import Choice, without_match
    from ipamc.workspace.revision import is_last, lock_history, texts

    problems, choice = Problems(), Choice(pools=tuple(pools))
    known: set[str] = set()
    found: list[tuple[Runway, History]] = []
    with progress("reading the history"):
        for folder in source.folders:
            with problems.of(folder):
                inputs = source.inputs(folder, rendered=False)
                cluster, lock = load_folder(inputs)
                past = lock_history(folder, source.record().get("at", {}).get("commit", "HEAD"))
                today = source.day()
                seconds = [version.second for version in past.versions]
                wanted = [past.versions[number] for number in to_read(seconds, today)]
                one = runway(cluster, lock, seconds, (text for _, text in texts(past, wanted)), today)
                known.update(one.cluster.pools_by_name)
                chosen = tuple(pool for pool in one.pools if choice.has_pool(pool.use.pool.name))
                history = report.History(
                    commits=[(version.commit, version.second) for version in past.versions],
                    shallow=past.shallow,
                    cut=past.cut,
                    uncommitted=bool(past.versions) and not is_last(past, inputs.lock),
                )
                found.append((replace(one, pools=chosen), history))
    if output == "json":
        head = {"version": report.VERSION, **source.record(), "today": source.day()}
        show_record({**head, "clusters": [report.record(*one) for one in found]})
    else:
        show("\n".join(report.text(*one) for one in found))
    where, missing = count(len(source.folders), "cluster"), list(without_match(pools, known))
    tell(style, *(f"no pool of {where} is named {name}" for name in missing))
    return problems.conclude(style, answered=not missing)
