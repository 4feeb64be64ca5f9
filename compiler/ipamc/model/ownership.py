"""Who owns a block that a node shows, for compile, plan, audit, apply; the range around a block or address.

A pod with the address of a node would take its traffic. Pods in a large network beside the nodes in it are
common (Cilium's cluster-pool default 10.0.0.0/8), so the address of a node in a pool reserves the block
around it, which no node is given, and stops nobody.
"""

from __future__ import annotations

import bisect
import enum
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model import follows
from ipamc.model.address_sets import index_around, lines_over, outermost
from ipamc.model.cidr import BITS, Block, Range
from ipamc.model.cilium.operator_list import sizes_of
from ipamc.model.cluster import Cluster, Mode, Pool, Scheme
from ipamc.model.diagnostics import Place
from ipamc.model.lock import Line, State
from ipamc.model.node import Node
from ipamc.model.plan import ShownBlock


class Ownership(enum.Enum):
    """The relation of a block that a node shows to this node. The first that applies counts."""

    OWN = "own"
    """The node holds it."""
    PENDING = "pending"
    """The node will move to it."""
    ADDRESS = "its address's"
    """Its pool follows addresses, and the node joined with this one: the node's lines follow."""
    OPERATORS = "the operator's"
    """Cilium's operator allocated it: the node's lines follow."""
    FORMER = "former"
    """The lock moved the node away from it."""
    FOREIGN = "foreign"
    """It belongs to a CiliumPodIPPool that is not ours (multi-pool mode)."""
    ANOTHERS = "another node's"
    """A line that is not released has all or part of it for another node."""
    STRAY = "stray"
    """It belongs to nobody: the node has no line for it."""


class OwnershipRules:
    """The rules that decide who owns a block, in one cluster, for one set of lines."""

    def __init__(
        self,
        cluster: Scheme,
        lines: Sequence[Line],
        operator_pools: Collection[str] = (),
        ranges: RangeIndex | None = None,
        by_address: Collection[tuple[Block, str]] | None = None,
    ) -> None:
        """`lines` are the lock's, by address; the operator allocates the blocks of `operator_pools`.
        `by_address` are blocks with the nodes whose addresses they follow; None: those of the inventory.
        """
        self._multi_pool = cluster.mode is Mode.MULTI_POOL
        self._pools = cluster.pools_by_name
        self._lines = lines
        self._operator_pools = operator_pools
        self.ranges = ranges or RangeIndex(cluster.pools)
        self._by_address = follows.by_address(cluster) if by_address is None else by_address
        self._own: dict[str, tuple[Blocks, Blocks, Blocks, set[int]]] = {}

    @cached_property
    def lines(self) -> Mapping[str, Sequence[Line]]:
        """Return the lines of each node, in all states. O(lines), once."""
        found: dict[str, list[Line]] = {}
        for line in self._lines:
            found.setdefault(line.node, []).append(line)
        return found

    def of(self, shown: ShownBlock) -> Ownership:
        """Return the relation of a shown block to its node. O(log lines), after the first of its node."""
        own = self._own.get(shown.node)
        if own is None:
            lines = self.lines.get(shown.node, ())
            held = [line for line in lines if line.state is State.HELD]
            own = self._own[shown.node] = (
                Blocks(line.block for line in held),
                Blocks(line.block for line in lines if line.state is State.PENDING),
                Blocks(line.block for line in lines if line.moved),
                # A block of an `unlisted` pool follows another one, and does not replace one of ours.
                set()
                if self._multi_pool
                else {line.block.family for line in held if line.pool not in self._operator_pools},
            )
        mine, pending, former, kept = own
        if mine.fit(shown):
            return Ownership.OWN
        if pending.fit(shown):
            return Ownership.PENDING
        if self.by_address(shown):
            return Ownership.ADDRESS
        if shown.block.family not in kept and self.operator_gave(shown):
            return Ownership.OPERATORS
        if former.fit(shown):
            return Ownership.FORMER
        if self.is_foreign(shown):
            return Ownership.FOREIGN
        return Ownership.ANOTHERS if self.others(shown) else Ownership.STRAY

    def others(self, shown: ShownBlock) -> list[Line]:
        """Return the lines of other nodes over a block, without released ones."""
        over = lines_over(self._lines, shown.block)
        return [line for line in over if line.node != shown.node and line.state is not State.RELEASED]

    def strays(self, every: Iterable[ShownBlock]) -> Iterator[tuple[ShownBlock, Ownership]]:
        """Yield shown blocks that the node does not have, with their relation to it.
        A node may have foreign blocks besides ours; if it shows no others, they replace ours.
        """
        whose = [(shown, self.of(shown)) for shown in every]
        alone = all(owner is Ownership.FOREIGN for _, owner in whose)
        for shown, owner in whose:
            if owner not in HAS and (alone or owner is not Ownership.FOREIGN):
                yield shown, owner

    def operator_gave(self, shown: ShownBlock) -> bool:
        """Return whether the operator gave a block: by its range, or outside of all by its pool's name.
        In multi-pool mode `podCIDRs` are leftovers of another mode: no operator decides about them any more.
        """
        if not self._operator_pools or (self._multi_pool and not shown.pool):
            return False
        pool = self.ranges.pool_of(shown.block)
        return (pool.name if pool else shown.pool) in self._operator_pools

    def by_address(self, shown: ShownBlock) -> bool:
        """Return whether a block follows from its node's address, in a pool that follows addresses."""
        return (shown.block, shown.node) in self._by_address

    def is_foreign(self, shown: ShownBlock) -> bool:
        """Return whether a block belongs to a CiliumPodIPPool that is not ours (multi-pool mode)."""
        named = not self._multi_pool or shown.pool in self._pools
        return not named and self.ranges.pool_of(shown.block) is None


HAS = frozenset({Ownership.OWN, Ownership.PENDING})
"""Blocks that the lock has for the node."""


class ShownBlocks:
    """The blocks that a node shows, for look-up by block."""

    def __init__(self, shown: Iterable[ShownBlock]) -> None:
        self._whole: set[Block] = set()
        self._parts: list[Block] = []
        for each in shown:
            if each.part:
                self._parts.append(each.block)
            else:
                self._whole.add(each.block)
        self._parts.sort()

    def fits(self, block: Block) -> bool:
        """Return whether a shown block matches a line with this block. O(log n)."""
        if block in self._whole or not self._parts:
            return block in self._whole
        place = bisect.bisect_left(self._parts, block)  # parts of a block come right after it
        return place < len(self._parts) and block.contains(self._parts[place])


class Blocks:
    """The blocks of a node, for look-up by a shown block."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._blocks = set(blocks)
        self._outermost: list[Block] | None = None

    def fit(self, shown: ShownBlock) -> bool:
        """Return whether a line with one of these blocks matches a shown block. O(log n)."""
        return self.contain(shown.block) if shown.part else shown.block in self._blocks

    def contain(self, block: Block) -> bool:
        """Return whether a block lies in one of these. O(log n)."""
        if self._outermost is None:
            self._outermost = outermost(self._blocks)
        return index_around(self._outermost, block) is not None


class PoolRange(Struct, frozen=True, kw_only=True):
    """A range and the pool that it belongs to."""

    pool: Pool
    range: Range


class RangeIndex:
    """The ranges of all pools, for look-up by block in O(log ranges). They are disjoint (IPC0207)."""

    def __init__(self, pools: Iterable[Pool]) -> None:
        ranges = (PoolRange(pool=pool, range=cidr) for pool in pools for cidr in pool.ranges)
        self._ranges = sorted(ranges, key=lambda pool_range: pool_range.range.block)
        self._blocks = [pool_range.range.block for pool_range in self._ranges]

    def pools_of(self, blocks: Sequence[Block]) -> list[Pool | None]:
        """Return the pool of each of many blocks, which are disjoint and by address, as `of` would.
        O(blocks + ranges log blocks). With a look-up for each, the lines of 100,000 nodes took ten times as
        long.
        """
        found: list[Pool | None] = [None] * len(blocks)
        for pool_range in self._ranges:
            around = pool_range.range.block
            low = bisect.bisect_left(blocks, around)  # a larger block that begins here sorts before it
            high = bisect.bisect_left(blocks, Block(around.family, around.last + 1, 0), low)
            found[low:high] = [pool_range.pool] * (high - low)
        return found

    def of(self, block: Block) -> PoolRange | None:
        """Return the range that contains every address of the block, with its pool, or None."""
        index = index_around(self._blocks, block)
        return None if index is None else self._ranges[index]

    def pool_of(self, block: Block) -> Pool | None:
        """Return the pool whose range contains a block. O(log ranges)."""
        found = self.of(block)
        return found.pool if found else None


def nodes_in_pools(
    cluster: Scheme, pools: Sequence[Pool] | None = None
) -> Iterator[tuple[Pool, Range, Node, Block]]:
    """Yield the InternalIPs that lie in ranges of pools: the pool, the range, the node and the address.
    In order of the nodes; without `pools`, of all. O(addresses log ranges).
    """
    pools = cluster.pools if pools is None else pools
    ranges = RangeIndex(pools)
    for node in cluster.nodes if pools else ():
        for family, number in node.internal_ips:
            address = Block(family, number, BITS[family])
            if inside := ranges.of(address):
                yield inside.pool, inside.range, node, address


def reserved_around(cluster: Scheme, *, by_operator: bool) -> Iterator[tuple[Pool, Range]]:
    """Yield the smallest block of a pool around each InternalIP that the pool's author did not reserve, of
    the pools whose blocks Cilium's operator allocates, or of the others.
    """
    pools = [pool for pool in cluster.pools if (cluster.shared_pools or pool.unlisted) is by_operator]
    for pool, _, node, address in nodes_in_pools(cluster, pools):
        if pool.reserved_over(address) is None and isinstance(node.at, Place):
            smallest = max(size for size, _ in sizes_of(pool, address.family))
            reason = f"InternalIP of node {node.name}"
            yield pool, Range(address.widened(smallest), node.at, reason, node.name)


def with_node_addresses(cluster: Cluster) -> Cluster:
    """Return a cluster whose pools reserve the blocks around addresses of nodes.
    Not pools of Cilium's operator: their ranges are what it was given.
    """
    found: dict[str, list[Range]] = defaultdict(list)
    for pool, around in reserved_around(cluster, by_operator=False):
        found[pool.name].append(around)
    pools = [
        replace(pool, reserved=(*pool.reserved, *found[pool.name])) if pool.name in found else pool
        for pool in cluster.pools
    ]
    return replace(cluster, pools=tuple(pools)) if found else cluster
