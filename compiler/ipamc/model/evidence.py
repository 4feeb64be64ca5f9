"""Evidence of the blocks that nodes use, independent of the lock, each with its place.

Its sources, the strongest first:
1. the object that gives a node its blocks. In kubernetes mode that is `spec.podCIDRs` of the Node, else the
   CiliumNode, else Cilium's annotations, where they are rendered; in the other modes the CiliumNode: there,
   podCIDRs of Nodes are leftovers of kube-controller-manager and mean nothing;
2. the addresses in use on the node: Cilium's own in the CiliumNode, and those of its pods. The block around
   an address has the size that the pool of that range gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from ipamc.model.address_sets import index_around, outermost
from ipamc.model.cidr import BITS, Address, Block, single
from ipamc.model.cluster import Mode, Scheme
from ipamc.model.diagnostics import At
from ipamc.model.lock import Line
from ipamc.model.node import CiliumNode, Node
from ipamc.model.ownership import HAS, OwnershipRules, RangeIndex
from ipamc.model.plan import ShownBlock

_NO_ROOM = re.compile(r"exhausted|\bfull\b|pool empty", re.IGNORECASE).search
"""Matches what the operator reports where its pool is full (operator/pkg/ipam/allocator, 1.12 to 1.20)."""


def waits(node: Node, seen: CiliumNode | None) -> bool:
    """Return whether a node has no pods yet: its agent never ran, and waits for a block of a full pool.
    Agents wait for a block of every family (pkg/node/sync/local_node_sync_wait.go; before 1.20 daemon/k8s).
    """
    if seen is None or node.agent_ran or node.pod_ips or not _NO_ROOM(seen.error):
        return False
    return not any((*every_block(seen), seen.unreadable, seen.used, seen.internal_ips, seen.health_ips))


class Evidence:
    """The blocks that Nodes and CiliumNodes show, and the addresses in use."""

    def __init__(self, cluster: Scheme, lines: Iterable[Line] = ()) -> None:
        """Read the blocks that a cluster shows, to compare them with `lines`."""
        self._cluster = cluster
        self._lines = lines
        self._kubernetes = cluster.mode is Mode.KUBERNETES
        self._annotates = self._kubernetes and cluster.patch_nodes == "annotations"
        self._seen = cluster.cilium_nodes_by_name

    def of(self, node: Node) -> tuple[ShownBlock, ...]:
        """Return the blocks that a node's object gives it, in its order."""
        seen = self._seen.get(node.name) if self._seen else None
        given = node.pod_cidrs if self._kubernetes else ()
        if not given and seen and (shown := self.by(seen)):
            return shown
        given = given or (node.annotated if self._annotates else ())
        return tuple([ShownBlock(block, node.name, node.at) for block in given]) if given else ()

    def by(self, seen: CiliumNode) -> tuple[ShownBlock, ...]:
        """Return the blocks of a CiliumNode in the fields of its mode.
        Agents keep `podCIDRs` when they change to multi-pool mode: they count until blocks are allocated
        (pkg/nodediscovery/nodediscovery.go, mutateNodeResource, 1.12 to 1.20).
        """
        multi = self._cluster.mode is Mode.MULTI_POOL
        own = f".{seen.name}" if self._cluster.own_pools else ""
        blocks = (seen.allocated if multi else ()) or [(block, "") for block in seen.blocks]
        found = [
            ShownBlock(block, seen.name, seen.at, pool.removesuffix(own) if own else pool)
            for block, pool in blocks
        ]
        if self._cluster.mode is Mode.CRD:
            whole = outermost(seen.blocks)
            found += [
                ShownBlock(piece, seen.name, seen.at, part=True)
                for addresses in seen.addresses
                for piece in _pieces(addresses, self._longest.get(addresses.family, 0))
                if index_around(whole, piece) is None
            ]
        return tuple(found)

    @cached_property
    def _longest(self) -> dict[int, int]:
        """Return the longest prefix of a block by family: a piece of this size is never in two blocks."""
        longest = {line.block.family: 0 for line in self._lines}
        for line in self._lines:
            longest[line.block.family] = max(longest[line.block.family], line.block.prefix)
        for pool in self._cluster.pools:
            sizes = [(family, part.block_size) for family, part in pool.families.items()]
            sizes += [size for chosen in pool.block_sizes for size in chosen.sizes.items()]
            for family, size in sizes:
                longest[family] = max(longest.get(family, 0), size)
        return longest

    def inferred(self, node: Node, own: Iterable[Line] = ()) -> tuple[ShownBlock, ...]:
        """Return the blocks of our pools around the addresses in use on a node: each once, by address.
        Addresses in blocks that the node's object gives it, or that are in its `own` lines in use, are
        skipped. O(addresses log ranges).
        """
        places = dict(reversed(list(self._addresses(node))))
        if not places:
            return ()
        known = [*(shown.block for shown in self.of(node)), *(line.block for line in own if line.in_use)]

        def size(address: Block) -> int:
            inside = self._ranges.of(address)
            return inside.pool.sizes(node.labels, node.name)[address.family] if inside else 0

        return tuple(
            ShownBlock(block, node.name, places[first], pool.name)
            for block, first in around(places, known, size).items()
            if (pool := self._ranges.pool_of(block))
        )

    def with_inferred(self, node: Node) -> tuple[ShownBlock, ...]:
        """Return the blocks that a node shows; in a family without a used one, those around its addresses."""
        wrong = self.contradicted(node)
        given = [shown for shown in self.of(node) if shown.block.family not in wrong]
        have = {shown.block.family for shown in given}
        return (*given, *(shown for shown in self.inferred(node) if shown.block.family not in have))

    def contradicted(self, node: Node) -> frozenset[int]:
        """Return the families in which all used addresses of a node are outside its object's blocks."""
        given = outermost(shown.block for shown in self.of(node))
        inside: dict[int, bool] = {}
        for address, _ in self._addresses(node) if given else ():
            there = index_around(given, single(address)) is not None
            if there or self._ranges.of(single(address)):
                inside[address[0]] = inside.get(address[0], False) or there
        shown = {block.family for block in given}
        return frozenset(family for family, there in inside.items() if family in shown and not there)

    def _addresses(self, node: Node) -> Iterator[tuple[Address, At]]:
        """Yield the addresses in use on a node, the strongest evidence first, each with its place."""
        if seen := self._seen.get(node.name):
            yield from ((address, seen.at) for address in (*seen.internal_ips, *seen.health_ips))
        yield from ((address, node.at) for address in node.pod_ips)

    @cached_property
    def _ranges(self) -> RangeIndex:
        return RangeIndex(self._cluster.pools)

    def without_node(self) -> Iterator[ShownBlock]:
        """Yield the blocks of CiliumNodes whose node is not in the inventory, by name."""
        if self._seen:
            nodes = {node.name for node in self._cluster.nodes}
            for name, seen in sorted(self._seen.items()):
                if name not in nodes:
                    yield from self.by(seen)

    def every(self) -> Iterator[ShownBlock]:
        """Yield all shown blocks: those of the inventory's nodes, then those of others."""
        for node in self._cluster.nodes:
            yield from self.of(node)
        yield from self.without_node()

    def strays(self, ownership: OwnershipRules) -> Iterator[ShownBlock]:
        """Yield blocks around used addresses that are in no block of their node, shown or in the lock."""
        for node in self._cluster.nodes:
            if node.pod_ips or node.name in self._seen:
                yield from self.inferred(node, ownership.lines.get(node.name, ()))

    def taken(
        self, lines: Sequence[Line], shown: Iterable[ShownBlock] | None = None
    ) -> tuple[ShownBlock, ...]:
        """Return the blocks that are in use without a line, except a node's own pins.
        They belong to CiliumNodes without a node in the inventory, to nodes whose pods use other blocks, and
        to disputed nodes. `shown` has what these show, if that is known.
        """
        ownership = OwnershipRules(self._cluster, lines)
        shows = self.every() if self._seen or shown is None else shown
        given = (each for each in shows if ownership.of(each) not in HAS)
        of_pools = (item for pool in self._cluster.pools for item in pool.pins.items())
        pins = {(pin.block, node) for node, own in of_pools for pin in own}
        every = (*given, *self.strays(ownership))
        return tuple(shown for shown in every if (shown.block, shown.node) not in pins)


def every_block(seen: CiliumNode) -> list[Block]:
    """Return the blocks that a CiliumNode shows in any mode, in the order of its fields."""
    return [*seen.blocks, *(block for block, _ in seen.allocated), *seen.addresses]


def around(
    addresses: Iterable[Address], known: Iterable[Block], size: Callable[[Block], int]
) -> dict[Block, Address]:
    """Return the blocks around addresses that are in none of `known`, by address, each with its lowest one.
    `size` returns the prefix length of the block around an address; 0 outside of our pools.
    """
    inside = outermost(known)
    found: dict[Block, Address] = {}
    for address in sorted(set(addresses)):
        block = single(address)
        if index_around(inside, block) is None and (prefix := size(block)):
            found.setdefault(block.widened(prefix), address)
    return found


def _pieces(addresses: Block, prefix: int) -> Iterator[Block]:
    """Yield aligned pieces of addresses, split into blocks of a prefix length if they are larger."""
    if addresses.prefix >= prefix:
        yield addresses
        return
    size = 1 << (BITS[addresses.family] - prefix)
    for first in range(addresses.first, addresses.last + 1, size):
        yield Block(addresses.family, first, prefix)
