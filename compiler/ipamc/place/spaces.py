"""Places ranges of an address space: pools of clusters take the place of nodes, and ranges that of blocks.

The node `beijing-1/pods` is the first range of pool `pods` of cluster `beijing-1`, `beijing-1/pods/2` the
second one. The stages of a compile do the rest: held ranges stay, those of leavers are quarantined, nothing
is given twice. A further range is pinned next to one that the pool has, if that is free, so that both
aggregate; and a pool that had CIDRs of its own is pinned to them.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ipamc.model.address_sets import blocks_over, covers, outermost
from ipamc.model.cidr import BITS, Block, Range, parse_block
from ipamc.model.cluster import AddressSpace
from ipamc.model.lock import Consent, Line, Lock, State
from ipamc.model.node import Node
from ipamc.model.ownership import RangeIndex
from ipamc.model.space import ClusterPrefixes, Prefix, node_name, range_of
from ipamc.read.space_index import IndexLine


def with_members(
    space: AddressSpace, lock: Lock, members: Sequence[ClusterPrefixes], before: Iterable[IndexLine]
) -> AddressSpace:
    """Return a space with its members' pools as nodes, and the members' other addresses as excluded.
    `before` are lines of an earlier index, with the CIDRs that a pool had before its request. O(n log n).
    """
    default = {family: part.block_size for pool in space.pools for family, part in pool.families.items()}
    nodes: dict[str, Node] = {}
    asks: dict[str, dict[int, int]] = {}
    for member in members:
        for each in member.asks:
            for number in range(1, each.ask.ranges + 1):
                name = node_name(member.cluster, each.pool, number)
                nodes[name] = Node(name=name, labels=dict(member.labels), at=each.ask.at)
                size = each.ask.prefix or default.get(each.family, BITS[each.family])
                asks.setdefault(name, {})[each.family] = size
    space = with_others(space, index_lines(members))
    pins = _pins(space, lock, asks, _had(before), [each.block for each in space.excluded])
    return replace(
        space,
        nodes=tuple(nodes[name] for name in sorted(nodes)),
        asks=asks,
        pools=tuple(replace(pool, pins=pins.get(pool.name, pool.pins)) for pool in space.pools),
    )


def with_others(space: AddressSpace, lines: Iterable[IndexLine]) -> AddressSpace:
    """Return a space with the clusters' own CIDRs, as in the lines of an index, as excluded."""
    excluded = (
        Range(parse_block(line.cidr, pods=False), space.at, f"{line.cluster}/{line.pool or line.node}")
        for line in lines
        if line.cidr and not line.range
    )
    return replace(space, excluded=tuple(excluded))


def _had(before: Iterable[IndexLine]) -> Mapping[str, Block]:
    """Return the CIDRs that pools had of their own, named as future ranges, in order of address."""
    found: dict[tuple[str, str], list[Block]] = defaultdict(list)
    for line in before:
        if line.pool and line.cidr and not line.range:
            found[line.cluster, line.pool].append(parse_block(line.cidr, pods=False))
    had: dict[str, Block] = {}
    for (cluster, pool), blocks in found.items():
        for family in BITS:
            of_family = sorted(block for block in blocks if block.family == family)
            had |= {f"{family} {node_name(cluster, pool, n)}": block for n, block in enumerate(of_family, 1)}
    return had


def _pins(
    space: AddressSpace,
    lock: Lock,
    asks: Mapping[str, Mapping[int, int]],
    had: Mapping[str, Block],
    others: list[Block],
) -> dict[str, dict[str, tuple[Range, ...]]]:
    """Return, by pool of the space and node, the blocks to which nodes without a line are pinned."""
    lines = [line for line in lock.lines if line.state is not State.RELEASED]
    mine: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        mine[line.node].append(line)
    reserved = [each.block for pool in space.pools for each in pool.reserved]
    taken = outermost([*(line.block for line in lines), *others, *reserved])
    ranges = RangeIndex(space.pools)
    pins: dict[str, dict[str, tuple[Range, ...]]] = defaultdict(dict)
    for name in sorted(asks):
        for family, size in asks[name].items():
            if any(line.block.family == family and not line.moved for line in mine[name]):
                continue
            cluster, pool, number = range_of(name)
            known = [had[key]] if (key := f"{family} {name}") in had else []
            for earlier in range(number - 1, 0, -1):
                known += [
                    block
                    for line in mine[node_name(cluster, pool, earlier)]
                    if line.in_use and line.block.family == family
                    for block in _beside(line.block, size)
                ]
            for block in known:
                if (inside := ranges.pool_of(block)) and not blocks_over(taken, block):
                    pins[inside.name][name] = (*pins[inside.name].get(name, ()), Range(block, space.at))
                    bisect.insort(taken, block)
                    break
    return pins


def _beside(block: Block, prefix: int) -> Iterator[Block]:
    """Yield the blocks of a prefix length next to a block: first the one that aggregates with it."""
    family, first, size = block.family, block.first, 1 << (BITS[block.family] - prefix)
    if prefix == block.prefix:
        yield Block(family, first ^ size, prefix)
    after, last = block.last + 1, (1 << BITS[family]) - size
    for start in (after, first - size):
        if 0 <= start <= last and not start % size:
            yield Block(family, start, prefix)


def with_given(
    members: Iterable[ClusterPrefixes], lines: Iterable[Line], consent: Consent
) -> list[ClusterPrefixes]:
    """Return members with the held and pending ranges that a space gives them, renamed by consent.
    Blocks of a member's nodes inside one of its ranges do not count by themselves.
    """
    renamed = dict(consent.rename)
    given: dict[str, list[Prefix]] = defaultdict(list)
    places = {(one.cluster, each.pool, each.family): each.ask.at for one in members for each in one.asks}
    for line in lines:
        cluster, pool, number = range_of(renamed.get(line.node, line.node))
        at = places.get((cluster, pool, line.block.family))
        if line.in_use and at:
            moving = line.state is State.PENDING
            given[cluster].append(Prefix(block=line.block, at=at, owner=pool, number=number, moving=moving))

    def alone(member: ClusterPrefixes) -> Iterator[Prefix]:
        ranges = outermost(prefix.block for prefix in given[member.cluster])
        for own in member.prefixes:
            if not own.number and not (own.state and covers(ranges, own.block)):
                yield own

    return [replace(each, prefixes=(*given[each.cluster], *alone(each))) for each in members]


def index_lines(members: Iterable[ClusterPrefixes]) -> Iterator[IndexLine]:
    """Yield the lines of an index for the addresses that members occupy."""
    for member in members:
        name = member.cluster
        if member.cluster_id or member.mesh_name:
            yield IndexLine(cluster=name, cluster_id=member.cluster_id, cluster_name=member.mesh_name)
        for one in member.prefixes:
            if one.state:
                yield IndexLine(cidr=str(one.block), cluster=name, node=one.owner)
            else:
                yield IndexLine(
                    cidr=str(one.block), cluster=name, pool=one.owner, range=one.number, pending=one.moving
                )
