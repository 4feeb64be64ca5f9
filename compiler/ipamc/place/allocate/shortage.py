"""Why a node got no block: which pools were full or passed over, and what they have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ipamc.model.cidr import BITS, Block
from ipamc.model.cluster import Cluster, Node, PoolFamily
from ipamc.model.diagnostics import Diagnostic, Related, count, error, names
from ipamc.model.plan import Offer
from ipamc.place.allocate.free_space import Found, Space
from ipamc.place.allocate.occupancy import Blockers, blocks_over, lines_over, pieces, shared
from ipamc.place.allocate.reuse import first_day

_LAST_DAY = "9999-12-31"
"""When every quarantine is over."""


class Passed(NamedTuple):
    """A pool that was passed over."""

    pool: str
    why: str
    """A predicate: "is disabled"."""
    barred: bool = False
    """It might serve the node, but may not take the place of the full pool."""


class Short(NamedTuple):
    """A node that found its pool full, and nobody to take the pool's place."""

    node: Node
    offer: Offer
    full: tuple[int, ...]
    """Families without room."""
    room: tuple[int, ...]
    """Families that the pool had room for, and did not give because of the others."""
    passed: tuple[Passed, ...]


class Unserved(NamedTuple):
    """A node whose candidates lack a family."""

    node: Node
    families: tuple[int, ...]
    passed: tuple[Passed, ...]


def no_room(cluster: Cluster, shorts: Iterable[Short], after: Blockers) -> Iterator[Diagnostic]:
    """IPC0303: the pool that serves a node has room for it.

    Every place for a block of that size is held, reserved, pinned or in quarantine. Only pools with the same selector and those that `overflow` names
    may take a full pool's place: a rack never spills into another by accident. Add a CIDR to the pool, name another pool in its `overflow`, or release
    what is in quarantine and no longer used: `ipamc lock --release CIDR`.
    """
    for group, nodes in _grouped(short for short in shorts if not short.room):
        stock = _Stock(cluster, group, after)
        yield error(
            "IPC0303",
            stock.at,
            f"pool {group.pool} has no room for {_nodes(nodes)}; {stock.told}{_passed_over(group.passed)}",
            also=[Related(nodes[0].at, f"node {nodes[0].name} needs a block")],
            help=stock.ways_out,
        )


def half_room(cluster: Cluster, shorts: Iterable[Short], after: Blockers) -> Iterator[Diagnostic]:
    """IPC0305: a dual-stack pool serves all the families that a node lacks, or none.

    The pool has room in one family but not in the other, and no other pool may take its place. It gives neither, so that the blocks of a node stay
    together. Add a CIDR of the family that is full, or name another pool in `overflow`.
    """
    for group, nodes in _grouped(short for short in shorts if short.room):
        stock = _Stock(cluster, group, after)
        yield error(
            "IPC0305",
            stock.at,
            f"pool {group.pool} has room in {ip(group.room)} but not in {ip(dict(group.full))} for {_nodes(nodes)}; "
            f"{stock.told}{_passed_over(group.passed)}",
            also=[Related(nodes[0].at, f"node {nodes[0].name} needs both")],
            help=stock.ways_out,
        )


def no_family(unserved: Iterable[Unserved]) -> Iterator[Diagnostic]:
    """IPC0307: every family of the cluster is in a pool that serves the node.

    A node needs a block of each of `ipFamilies`; Cilium waits for ever on a missing one. Give one of the node's pools a range of that family, or
    select the node with a pool that has one.
    """
    groups: dict[tuple[tuple[int, ...], tuple[Passed, ...]], list[Node]] = defaultdict(list)
    for each in unserved:
        groups[each.families, each.passed].append(each.node)
    for (families, passed), nodes in sorted(groups.items(), key=lambda item: item[0]):
        nodes.sort(key=lambda node: node.name)
        pools = f"; {_why(passed)}" if passed else ", as they have none"
        yield error(
            "IPC0307",
            nodes[0].at,
            f"no candidate pool gives {ip(families)} to {_nodes(nodes)}{pools}",
            help=f"give one of these pools a range of {ip(families)}, or take it out of ipFamilies",
        )


class Group(NamedTuple):
    """Shortages that are one finding."""

    pool: str
    full: tuple[tuple[int, int], ...]
    """Families without room, and the prefix length that was asked for."""
    room: tuple[int, ...]
    passed: tuple[Passed, ...]


def _grouped(shorts: Iterable[Short]) -> list[tuple[Group, list[Node]]]:
    groups: dict[Group, list[Node]] = defaultdict(list)
    for node, offer, full, room, passed in shorts:
        groups[
            Group(offer.pool.name, tuple((family, offer.sizes[family]) for family in full), room, passed)
        ].append(node)
    return [
        (group, sorted(nodes, key=lambda node: node.name))
        for group, nodes in sorted(groups.items(), key=lambda item: item[0])
    ]


class _Stock:
    """What a pool has in the families that are full: in words, and what can be done."""

    def __init__(self, cluster: Cluster, group: Group, after: Blockers) -> None:
        pool = next(pool for pool in cluster.pools if pool.name == group.pool)
        parts = [(pool.families[family], prefix) for family, prefix in group.full]
        part = parts[0][0]
        self.at = part.ranges[0].at if part.ranges else part.at
        self._release = ""
        self.told = "; ".join(self._tell(cluster, part, prefix, after) for part, prefix in parts)
        overflow = "name a pool in its overflow" if cluster.mode.one_block else ""
        self.ways_out = "; or ".join(
            filter(None, (f"add a CIDR to pool {pool.name}", overflow, self._release))
        )

    def _tell(self, cluster: Cluster, part: PoolFamily, prefix: int, after: Blockers) -> str:
        ranges = [each.block for each in part.ranges]
        size = 1 << (BITS[part.family] - prefix)
        held, waiting, kept = _use(ranges, after)
        total = sum(ground.size for ground in ranges)
        until = ""
        if waiting:
            until = self._until(
                cluster,
                Space(part.family, ranges, Blockers(after.lines, after.fixed, waited=_LAST_DAY)).find(prefix),
            )
        shares = ((held, "held"), (waiting, f"quarantined{until}"), (kept, "reserved, excluded or pinned"))
        told = [f"{_blocks(number, size)} {what}" for number, what in shares if number]
        if free := total - held - waiting - kept:
            told.append(f"{_blocks(free, size)} free in pieces that are too small")
        return f"IPv{part.family} /{prefix}: {_blocks(total, size)} {'block' if total == size else 'blocks'}, {', '.join(told)}"

    def _until(self, cluster: Cluster, found: Found | None) -> str:
        """Say when quarantine gives a block back, if it ever does, and remember how to end it now."""
        if found is None or found.reuse is None or not found.reuse.day:
            return ""
        first = found.reuse.lines[0].block
        self._release = f"if nothing uses it any more: ipamc lock {cluster.name} --release {min(first, found.block, key=lambda each: each.prefix)}"
        day = "" if cluster.quarantine_days is None else first_day(found.reuse.day, cluster.quarantine_days)
        return f" (the next is free on {day})" if day else " for ever"


def _use(ranges: Iterable[Block], after: Blockers) -> tuple[int, int, int]:
    """Count the addresses of ranges that are held, quarantined, and kept from everybody."""
    held = waiting = kept = 0
    for ground in ranges:
        for line in lines_over(after.lines, ground):
            if line.in_use:
                held += shared(line.block, ground).size
            elif not after.reusable(line):
                waiting += shared(line.block, ground).size
        for fixed in blocks_over(after.fixed, ground):
            inside = shared(fixed, ground)
            lines = [line.block for line in lines_over(after.lines, inside)]
            kept += sum(piece.size for piece in pieces(inside, lines))
    return held, waiting, kept


def _blocks(addresses: int, size: int) -> str:
    """Say how many blocks a number of addresses is, to a tenth."""
    whole, tenth = divmod(addresses * 10 // size, 10)
    if addresses and not whole and not tenth:
        return "less than 0.1"
    return f"{whole:,}.{tenth}" if tenth else f"{whole:,}"


def _nodes(nodes: list[Node]) -> str:
    return f"{count(len(nodes), 'node')}: {names(node.name for node in nodes)}"


def ip(families: Iterable[int]) -> str:
    """Name families: `IPv4 and IPv6`."""
    return " and ".join(f"IPv{family}" for family in families)


def _why(passed: tuple[Passed, ...]) -> str:
    told = [f"pool {each.pool} {each.why}" for each in passed[:8]]
    return ", ".join(told) + (f" and {len(passed) - 8:,} more" if len(passed) > 8 else "")


def _passed_over(passed: tuple[Passed, ...]) -> str:
    return f"; passed over: {_why(passed)}" if passed else ""
