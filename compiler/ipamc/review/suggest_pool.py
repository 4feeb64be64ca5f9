"""Finds free addresses for a pool: space that no cluster of an address space uses, near the pool's ranges.

These addresses of a cluster of the address space are used: the ranges of all its pools, disabled ones too,
reserved and excluded CIDRs, the blocks of its lock in any place (held, pending and quarantined), the CIDRs of
CiliumPodIPPools that were rendered before, the blocks that Nodes and CiliumNodes show, and the networks of
its nodes: those that pools follow, and the /24 around each InternalIP, of IPv6 the /64, because subnets are
rarely smaller. Released lines are free. Excluded CIDRs of another cluster around a range of this one are
ignored: they keep the range free for this cluster. A service range, and networks that no file of a cluster
names, are not known.

Free space is divided into aligned holes of the largest possible size. All blocks in a hole are equally near
to anything outside of it, so a hole gives one suggestion: its lowest block, or its highest one if only that
touches a range. The order of preference:

1. inside nativeRoutingCIDR, if the cluster has one: agents masquerade traffic that leaves it;
2. it completes a larger prefix with ranges of the pool, the larger the better: that saves a route or a
   firewall rule;
3. the smallest prefix around it and a range of the pool is small: free space beside them can join them later;
4. the same two for the ranges of the cluster, and then of the address space; a new pool has only these;
5. the hole is small, so that the large ones stay whole;
6. the lowest address.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgspec import Struct

from ipamc.lock.file import load
from ipamc.model.address_sets import PRIVATE, aggregated, blocks_over, index_around, outermost, without
from ipamc.model.cidr import BITS, NEVER_PODS, Block, around, parse_block
from ipamc.model.cluster import AddressSpace, Cluster, Pool
from ipamc.model.diagnostics import Log, Refused
from ipamc.model.evidence import Evidence
from ipamc.model.limits import IPV6_BLOCK_BITS
from ipamc.model.lock import Consent, State
from ipamc.model.masquerade import native_limit
from ipamc.pipeline import Inputs
from ipamc.place.candidates import rank
from ipamc.read.locate import locate
from ipamc.read.read import read_folder

LOCAL = parse_block("fc00::/7")  # unique local addresses of IPv6 (RFC 4193)
SITE = 48  # the prefix length of one site
SUBNET = {4: 24, 6: 64}  # the prefix length of the smallest usual network of machines
USUAL_BLOCK = {4: 24, 6: 120}  # the block size of the first pool of a cluster: Cilium's default


class Member(Struct, frozen=True, kw_only=True):
    """A cluster of the address space, and every block that it uses in any way; they may nest."""

    cluster: Cluster
    used: tuple[Block, ...]  # all blocks but those that it excludes

    @property
    def ranges(self) -> Iterator[Block]:
        """The ranges of its pools."""
        return (found.block for pool in self.cluster.pools for found in pool.ranges)


class Given(Struct, frozen=True, kw_only=True):
    """The address space that is to choose, and every block that it keeps back."""

    space: AddressSpace
    used: tuple[Block, ...]


class Area(Struct, frozen=True, order=True):
    """A range that is searched for free space, and the reason."""

    block: Block
    why: str


class Near(Struct, frozen=True, kw_only=True):
    """The relation of a suggestion to existing ranges."""

    whose: str  # `pool NAME`, `cluster NAME` or `the address space`
    joined: Block  # the larger prefix that it completes with ranges, else the suggestion itself
    with_range: Block  # the nearest range: of those with the longest common prefix, the lowest
    within: Block  # the smallest prefix that contains both


class Suggestion(Struct, frozen=True, kw_only=True):
    """Free space for a pool."""

    block: Block
    near: tuple[Near, ...]  # for ranges of pool, cluster and address space, if they exist
    hole: Block  # the free prefix that contains it
    routed: bool | None  # it is inside nativeRoutingCIDR; None if the cluster has none of this family


class Wish(Struct, frozen=True, kw_only=True):
    """A request for free space."""

    size: int  # a prefix length
    family: int
    within: tuple[Block, ...] = ()  # `--from`; empty: see `areas_of`
    pool: Pool | None = None  # the pool that is to grow; None for a new one
    most: int = 3  # how many suggestions


class Suggestions(Struct, frozen=True, kw_only=True):
    """The answer to `ipamc suggest pool`."""

    wish: Wish
    areas: tuple[Area, ...]
    found: tuple[Suggestion, ...]  # the best first
    largest: Block | None  # the largest free block, the lowest of these; None if nothing is free
    members: tuple[Member, ...]
    cluster: Cluster | None  # the cluster of the pool; None for any cluster of the address space
    block_size: int  # the pool's block size; for a new pool, the cluster's usual one
    space: AddressSpace | None = None  # the address space that is to choose, if the user named no ranges


def member_of(inputs: Inputs) -> Member:
    """Read every address that a cluster uses. Raises Refused if its files or its lock cannot be read, and
    TypeError for an address space. Its pools are not checked: a cluster that needs another range may have
    errors in them.
    """
    cluster, used = _used(inputs)
    if isinstance(cluster, AddressSpace):
        raise TypeError(f"{inputs.folder} is an address space")
    return Member(
        cluster=cluster, used=(*used, *(found.block for pool in cluster.pools for found in pool.ranges))
    )


def space_of(inputs: Inputs) -> Given:
    """Read every address that an address space keeps back. Raises as `member_of` does."""
    space, used = _used(inputs)
    if not isinstance(space, AddressSpace):
        raise TypeError(f"{inputs.folder} is a cluster")
    return Given(space=space, used=tuple(used))


def _used(inputs: Inputs) -> tuple[AddressSpace | Cluster, list[Block]]:
    try:
        what = inputs.name, inputs.folder, inputs.sources, inputs.schemas
        cluster, _ = read_folder(*what, spaces=inputs.spaces)
        consent = Consent(mode=True)  # the lock's blocks are the same in both modes
        lock = Log().keep(load(inputs.lock, inputs.lock_path, cluster, consent, rendered=inputs.rendered))
    except Refused as refused:
        raise Refused(locate(refused.diagnostics, inputs.sources)) from None
    used = [
        *chain(*(blocks for pool in inputs.before.pools.values() for blocks in pool.cidrs.values())),
        *(found.block for pool in cluster.pools for found in pool.reserved),
        *(line.block for line in lock.lines if line.state is not State.RELEASED),
        *(shown.block for shown in Evidence(cluster, lock.lines).every()),
    ]
    used += (network.block for pool in cluster.pools for network in pool.follows)
    addresses = [address for node in cluster.nodes for address in node.internal_ips]
    used += (around(family, number, number).widened(SUBNET[family]) for family, number in addresses)
    return cluster, used


def suggest(
    members: Sequence[Member], cluster: Cluster | None, wish: Wish, space: Given | None = None
) -> Suggestions:
    """Return free aligned space, the best first. O(n log n) in members' blocks, not in free space.
    In an address `space` with levels, search the level that selects the cluster.
    """
    family = wish.family
    areas = tuple(Area(block, "--from") for block in wish.within)
    areas = areas or (tuple(_levels(space.space, cluster, family)) if space else ())
    areas = areas or areas_of(members, cluster, family)
    used = [block for member in (*members, *([space] if space else ())) for block in member.used]
    excluded = [block for member in members for block in _excluded(member, members, cluster)]
    busy = outermost([*used, *excluded, *NEVER_PODS])
    searched = outermost(area.block for area in areas if area.block.family == family)
    holes = without(searched, busy)
    homes = [home for home in _homes(members, cluster, wish) if home.ranges]
    native = native_limit(cluster, family) if cluster else None
    ranked = [_ranked(hole, wish.size, homes, native) for hole in holes if hole.prefix <= wish.size]
    ranked.sort(key=lambda pair: pair[0])
    return Suggestions(
        wish=wish,
        areas=areas,
        found=tuple(found for _, found in ranked[: wish.most]),
        largest=min(holes, key=lambda hole: (hole.prefix, hole), default=None),
        members=tuple(members),
        cluster=cluster,
        block_size=_block_size(members, cluster, wish),
        space=space.space if space and not wish.within else None,
    )


def _levels(space: AddressSpace, cluster: Cluster | None, family: int) -> Iterator[Area]:
    levels = [pool for pool in sorted(space.pools, key=rank) if family in pool.families]
    if cluster:
        levels = [pool for pool in levels if pool.selector.matches(cluster.labels, cluster.name)][:1]
    for level in levels:
        for found in level.families[family].ranges:
            yield Area(found.block, f"{level.name} of address space {space.name}")


def _excluded(member: Member, members: Sequence[Member], cluster: Cluster | None) -> Iterator[Block]:
    """Yield a cluster's excluded CIDRs, except those that keep ranges of the given cluster free."""
    name = cluster.name if cluster else member.cluster.name
    own = outermost(block for found in members if found.cluster.name == name for block in found.ranges)
    for found in member.cluster.excluded:
        if member.cluster.name == name or not any(map(found.block.contains, blocks_over(own, found.block))):
            yield found.block


def areas_of(members: Sequence[Member], cluster: Cluster | None, family: int) -> tuple[Area, ...]:
    """Return the areas to search: where the owner has addresses, as far as the clusters' files say.
    These are nativeRoutingCIDR, and each private network (RFC 1918, RFC 6598) that contains a pool; for IPv6
    the /48 around each range of unique local addresses; without any pool, all of RFC 1918. Nobody knows who
    owns public addresses beside a pool: they are searched only with `--from`.
    """
    asked = [member.cluster for member in members if cluster is None or member.cluster.name == cluster.name]
    native = {each.native_routing.block for each in asked if each.native_routing}
    areas = [Area(block, "nativeRoutingCIDR") for block in sorted(native) if block.family == family]
    ranges = [block for member in members for block in member.ranges if block.family == family]
    sites = outermost(block.widened(SITE) for block in ranges if LOCAL.contains(block))
    private: Sequence[Block] = PRIVATE if family == 4 else sites
    areas += [Area(area, "has a pool") for area in private if any(area.contains(block) for block in ranges)]
    if not areas and not ranges and family == 4:
        areas = [
            Area(area, "RFC 1918, because there is no pool yet") for area in PRIVATE if area.prefix != 10
        ]
    return tuple(areas)


class _Home(Struct, frozen=True):
    """Ranges that suggestions should be near to."""

    whose: str
    ranges: Sequence[Block]  # disjoint, by address
    joined: Sequence[Block]  # the fewest prefixes with the same addresses


def _homes(members: Sequence[Member], cluster: Cluster | None, wish: Wish) -> Iterator[_Home]:
    """Yield the ranges of the pool, the cluster and the address space, unless equal to the previous ones."""
    family = wish.family
    own = next((found for found in members if cluster and found.cluster.name == cluster.name), None)
    tiers: list[tuple[str, Iterable[Block]]] = []
    if wish.pool and family in wish.pool.families:
        tiers.append((f"pool {wish.pool.name}", (found.block for found in wish.pool.families[family].ranges)))
    if own:
        tiers.append((f"cluster {own.cluster.name}", own.ranges))
    tiers.append(("the address space", (block for member in members for block in member.ranges)))
    before: Sequence[Block] = ()
    for whose, blocks in tiers:
        disjoint = outermost(block for block in blocks if block.family == family)
        if disjoint != before:
            yield _Home(whose, disjoint, list(aggregated(disjoint)))
        before = disjoint


def _ranked(
    hole: Block, size: int, homes: Sequence[_Home], native: Block | None
) -> tuple[tuple[object, ...], Suggestion]:
    block = _place(hole, size, homes)
    near = tuple(_near(block, home) for home in homes)
    routed = native.contains(block) if native else None
    found = Suggestion(block=block, near=near, hole=hole, routed=routed)
    nearness = [(found.joined.prefix, -found.within.prefix) for found in near]
    return (routed is False, nearness, -hole.prefix, block), found


def _place(hole: Block, size: int, homes: Sequence[_Home]) -> Block:
    """Return the lowest block of a hole, or the highest if that alone touches a range of the first home."""
    family, bits, edges = hole.family, BITS[hole.family], homes[0].ranges if homes else ()
    lowest = Block(family, hole.first, size)
    below = hole.first and index_around(edges, Block(family, hole.first - 1, bits)) is not None
    if below or index_around(edges, Block(family, hole.last + 1, bits)) is None:
        return lowest
    return Block(family, hole.last + 1 - lowest.size, size)


def _near(block: Block, home: _Home) -> Near:
    place = bisect.bisect_left(home.ranges, block)
    # The longest common prefix is with a neighbour of the block in the order of addresses.
    beside = home.ranges[max(place - 1, 0) : place + 1]
    ends = [(found, min(block.first, found.first), max(block.last, found.last)) for found in beside]
    within = {found: around(block.family, first, last) for found, first, last in ends}
    nearest = min(within, key=lambda found: (-within[found].prefix, found))
    joined = block
    while joined.prefix:
        buddy = Block(joined.family, joined.first ^ joined.size, joined.prefix)
        if index_around(home.joined, buddy) is None:
            break
        joined = Block(joined.family, joined.first & ~joined.size, joined.prefix - 1)
    return Near(whose=home.whose, joined=joined, with_range=nearest, within=within[nearest])


def _block_size(members: Sequence[Member], cluster: Cluster | None, wish: Wish) -> int:
    """Return the block size of the pool; for a new one, the most common one of the cluster that fits."""
    if wish.pool and (part := wish.pool.families.get(wish.family)):
        return part.block_size
    sizes = Counter(
        pool.families[wish.family].block_size
        for member in members
        if cluster is None or member.cluster.name == cluster.name
        for pool in member.cluster.pools
        if wish.family in pool.families
    )
    usual = min(sizes, key=lambda size: (-sizes[size], size), default=USUAL_BLOCK[wish.family])
    size = max(usual, wish.size)
    return min(size, wish.size + IPV6_BLOCK_BITS) if wish.family == 6 else size
