"""Selects what `ipamc show` prints of a cluster: pools, their room, and the lines that the user asks for.

It also finds the blocks that nodes started with, where Cilium's operator may have given them others since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from ipamc.check.drift import disagreeing
from ipamc.law.change import is_over, last_day
from ipamc.lock.utilisation import PoolUse, lines_in, utilisation
from ipamc.model.address_sets import lines_over
from ipamc.model.cidr import Block
from ipamc.model.cluster import Scheme
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Line, Lock, State
from ipamc.model.ownership import OwnershipRules, ShownBlocks
from ipamc.model.pool_words import Terms, terms
from ipamc.place.candidates import assign, shared_pools, unlisted_pools
from ipamc.place.quarantine import first_day, released_on


class Choice(Struct, frozen=True, kw_only=True):
    """Filters of pools and lines. An empty filter accepts everything; filters combine.
    Names may be shell patterns, such as `rack-*`: no Kubernetes name contains their characters.
    """

    pools: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    states: frozenset[State] = frozenset()

    @property
    def of_lines(self) -> bool:
        """Return whether a filter of lines is set: then pools without a matching line are hidden."""
        return bool(self.nodes or self.states)

    @property
    def any(self) -> bool:
        """Return whether any filter is set, so that the output may be incomplete."""
        return bool(self.pools or self.of_lines)

    def has_pool(self, name: str) -> bool:
        """Return whether the filter accepts a pool of this name."""
        return not self.pools or _matches(name, self.pools)

    def lines(self, lines: Sequence[Line]) -> Sequence[Line]:
        """Return the lines that the filters accept, in their order. O(lines); each name is matched once."""
        if self.states:
            lines = tuple(line for line in lines if line.state in self.states)
        if self.nodes:
            wanted = {name for name in {line.node for line in lines} if _matches(name, self.nodes)}
            lines = tuple(line for line in lines if line.node in wanted)
        return lines


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def without_match(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the patterns that no name matches."""
    every = frozenset(names)
    return [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in every)]


class Ending(Struct, frozen=True, kw_only=True):
    """The next day on which quarantined blocks can be given out again."""

    day: str  # ISO 8601, after today
    blocks: int  # the number of lines whose addresses can be given out from that day on


class ShownPool(Struct, frozen=True, kw_only=True):
    """A pool in one family."""

    use: PoolUse
    room: int
    """The number of further nodes with room; the same in both families. See `rooms`."""
    ending: Ending | None  # None: no quarantine in it ends after today


class ShownCluster(Struct, frozen=True, kw_only=True):
    """The data that is shown of one cluster."""

    name: str
    terms: Terms
    nodes: int  # that hold blocks, in the whole cluster; of an address space, clusters
    blocks: int  # held blocks of the whole cluster
    pools: tuple[ShownPool, ...]  # the chosen ones by name, IPv4 before IPv6
    every: int  # the number of the cluster's pools
    adds_up: bool  # a node's blocks are in one pool: the cluster's room is the sum of its pools' rooms
    lines: Mapping[Block, Sequence[Line]] | None
    """The chosen lines by range; None if not requested."""
    outside: tuple[Line, ...]  # the chosen lines outside every pool
    states: Mapping[State, int]  # the lines of the whole lock in each state
    started: frozenset[Block]  # blocks that nodes started with, and may no longer have
    quarantine_days: int | None
    today: str  # ISO 8601
    acknowledged: tuple[str, ...] = ()  # the codes of which the cluster acknowledges findings
    disputed: frozenset[str] = frozenset()  # nodes about which the lock and the cluster disagree

    def free_on(self, line: Line) -> str:
        """Return the first day on which a quarantined line can be given out; "" for others, or never."""
        days = self.quarantine_days
        return quarantine_ends(line, days) if line.state is State.QUARANTINED and days is not None else ""


def shown(
    cluster: Scheme,
    lock: Lock,
    choice: Choice,
    today: str,
    *,
    lines: bool = False,
    started: frozenset[Block] = frozenset(),
) -> ShownCluster:
    """Return the data to show of a cluster on a day (ISO 8601, UTC); `lines`: with lines. O(n log n)."""
    uses = uses_on(cluster, lock, today)
    of_lock = lock.lines
    not_held = tuple(line for line in of_lock if line.state is not State.HELD)  # few, in most clusters none
    quarantined = tuple(line for line in not_held if line.state is State.QUARANTINED)
    number = {state: sum(line.state is state for line in not_held) for state in State}
    number[State.HELD] = len(of_lock) - len(not_held)
    room = rooms(cluster, uses)
    chosen = replace(lock, lines=tuple(choice.lines(of_lock)))
    by_range = {part.range.block: lines_in(chosen, part.range.block) for use in uses for part in use.ranges}
    pools = tuple(
        ShownPool(use=use, room=room[use.pool.name], ending=_ending(cluster, use, quarantined, today))
        for use in uses
        if choice.has_pool(use.pool.name)
        and (not choice.of_lines or any(by_range[part.range.block] for part in use.ranges))
    )
    in_use = {(line.node, line.pool) for line in of_lock if line.in_use and not cluster.mode.one_block}
    outside = not choice.pools and sum(map(len, by_range.values())) != len(chosen.lines)
    inside = {line.block for found in by_range.values() for line in found} if outside else ()
    return ShownCluster(
        name=cluster.name,
        terms=terms(cluster),
        nodes=len({line.node.partition("/")[0] for line in of_lock if line.state is State.HELD}),
        blocks=number[State.HELD],
        pools=pools,
        every=len(cluster.pools),
        adds_up=cluster.mode.one_block or len({node for node, _ in in_use}) == len(in_use),
        lines=by_range if lines or choice.of_lines else None,
        outside=tuple(line for line in chosen.lines if line.block not in inside) if outside else (),
        states=number,
        started=started,
        quarantine_days=cluster.quarantine_days,
        today=today,
        acknowledged=tuple([each.code for each in cluster.acknowledges]),
        disputed=disputed(cluster, lock),
    )


def uses_on(cluster: Scheme, lock: Lock, today: str) -> tuple[PoolUse, ...]:
    """Count every pool's use on a day (ISO 8601, UTC); blocks past quarantine are released. O(n log n)."""
    return utilisation(cluster, released_on(cluster, lock, today))


def rooms(cluster: Scheme, uses: Sequence[PoolUse]) -> dict[str, int]:
    """Return the number of further nodes for which each pool has room, by name.
    These are nodes like the present ones: each gets `blocksPerNode` blocks of the pool's own `blockSize`, in
    a cluster of two families of each family that the pool has. Free and released blocks of `uses` count, but
    not those with a pin, reserved or excluded addresses. A disabled pool has no room. Ignored are other sizes
    of `blockSizes`, the pool's `overflow`, and that nodes of several pools need blocks of each. For an
    `unlisted` pool it is the room for nodes outside the inventory.
    """
    found: dict[str, int] = {}
    for use in uses:
        pool = use.pool
        if use.family.family in cluster.families and not pool.disabled:
            more = use.use.blocks_free // pool.blocks_per_node
            found[pool.name] = min(found.get(pool.name, more), more)
    return {pool.name: found.get(pool.name, 0) for pool in cluster.pools}


def _ending(cluster: Scheme, use: PoolUse, quarantined: Sequence[Line], today: str) -> Ending | None:
    days, last = cluster.quarantine_days, last_day(today, cluster.quarantine_days)
    if days is None or not quarantined:
        return None
    ends = [
        ends
        for part in use.ranges
        for line in lines_over(quarantined, part.range.block)
        if not is_over(line, last, today) and (ends := quarantine_ends(line, days))
    ]
    day = min(ends, default="")
    return Ending(day=day, blocks=ends.count(day)) if day else None


def quarantine_ends(line: Line, days: int) -> str:
    """Return the first day on which a quarantined line can be given out again; "" if the calendar ends.
    A block that a node moved away from is not given out on the day of the move.
    """
    return first_day(line.since, max(days, int(line.moved)))


def operator_pools(cluster: Scheme, published: Iterable[str] = ()) -> frozenset[str]:
    """Return the pools whose blocks Cilium's operator gives out. O(nodes) with pools of single nodes.
    `published`: names of rendered pools that nodes share.
    """
    wants = assign(cluster) if cluster.own_pools else ()
    return shared_pools(cluster, wants, published) | unlisted_pools(cluster)


def disputed(cluster: Scheme, lock: Lock) -> frozenset[str]:
    """Return the nodes with blocks about which lock and cluster disagree. O(lines log lines)."""
    evidence, rules = (
        Evidence(cluster, lock.lines),
        OwnershipRules(cluster, lock.lines, operator_pools(cluster)),
    )
    shown = [blocks for node in cluster.nodes if (blocks := evidence.of(node))]
    return disagreeing(cluster, rules, shown) & {line.node for line in lock.lines if line.in_use}


def started_with(cluster: Scheme, lock: Lock) -> frozenset[Block]:
    """Return the blocks that nodes started with and may no longer have. O(lines log n).
    They are held blocks of the operator's pools whose nodes are in the inventory and do not show them.
    """
    pools = operator_pools(cluster)
    if not pools:
        return frozenset()
    evidence = Evidence(cluster)
    shown = {node.name: ShownBlocks(evidence.of(node)) for node in cluster.nodes}
    lines = (line for line in lock.lines if line.state is State.HELD and line.pool in pools)
    return frozenset(
        line.block for line in lines if line.node in shown and not shown[line.node].fits(line.block)
    )
