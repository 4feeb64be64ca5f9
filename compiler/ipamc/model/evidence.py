"""What the running cluster shows: the blocks that nodes have, whatever the lock says.

In kubernetes mode that is `spec.podCIDRs` of a Node, and its CiliumNode where the Node has none; in the other
modes the CiliumNode. There, Node podCIDRs are leftovers of kube-controller-manager and mean nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

from ipamc.model.address_sets import index_around, outermost
from ipamc.model.cidr import BITS, Block
from ipamc.model.cluster import CiliumNode, Cluster, Mode, Node, Pool
from ipamc.model.fitting import Blocks
from ipamc.model.lock import Line
from ipamc.model.plan import ShownBlock


class Evidence:
    """The blocks that Nodes and CiliumNodes of the input show."""

    def __init__(self, cluster: Cluster, lines: Iterable[Line] = ()) -> None:
        """Read what a cluster shows. `lines` are those with which it is compared."""
        self._cluster = cluster
        self._lines = lines
        self._kubernetes = cluster.mode is Mode.KUBERNETES
        self._seen = {seen.name: seen for seen in cluster.cilium_nodes}

    def of(self, node: Node) -> tuple[ShownBlock, ...]:
        """Return the blocks that a node shows, in its order."""
        if self._kubernetes and node.pod_cidrs:
            return tuple([ShownBlock(block, node.name, node.at) for block in node.pod_cidrs])
        seen = self._seen.get(node.name) if self._seen else None
        return self.by(seen) if seen else ()

    def has_cilium_node(self, name: str) -> bool:
        """Tell whether the input has the CiliumNode of a node, with or without blocks."""
        return name in self._seen

    def by(self, seen: CiliumNode) -> tuple[ShownBlock, ...]:
        """Return the blocks of a CiliumNode as its mode has them.

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
        """Return the longest prefix of a block by family: no piece of addresses has parts of two blocks."""
        longest = {line.block.family: 0 for line in self._lines}
        for line in self._lines:
            longest[line.block.family] = max(longest[line.block.family], line.block.prefix)
        for pool in self._cluster.pools:
            sizes = [(family, part.block_size) for family, part in pool.families.items()]
            sizes += [size for chosen in pool.block_sizes for size in chosen.sizes.items()]
            for family, size in sizes:
                longest[family] = max(longest.get(family, 0), size)
        return longest

    def without_node(self) -> Iterator[ShownBlock]:
        """Yield the blocks of CiliumNodes whose node is not in the inventory, by name."""
        if self._seen:
            nodes = {node.name for node in self._cluster.nodes}
            for name, seen in sorted(self._seen.items()):
                if name not in nodes:
                    yield from self.by(seen)

    def every(self) -> Iterator[ShownBlock]:
        """Yield all blocks that are shown: those of the inventory's nodes, then those of others."""
        for node in self._cluster.nodes:
            yield from self.of(node)
        yield from self.without_node()

    def taken(self, lines: Iterable[Line]) -> tuple[ShownBlock, ...]:
        """Return the blocks that are shown without a line, except a node's own pins: they are in use.

        Most are of CiliumNodes without a node in the inventory.
        """
        if not self._seen:
            return ()
        own = _OfNodes(lines)
        pins = {
            (pin.block, node)
            for pool in self._cluster.pools
            for node, pins in pool.pins.items()
            for pin in pins
        }
        return tuple(
            shown for shown in self.every() if not own.cover(shown) and (shown.block, shown.node) not in pins
        )


def gave(cluster: Cluster, operator_pools: Collection[str], shown: ShownBlock, pool: Pool | None) -> bool:
    """Tell whether the operator gave a block: by its range, or outside all ranges by its pool's name.

    `operator_pools` are the names of the pools whose blocks it gives out, `pool` is the one in whose range the
    block is. In multi-pool mode `podCIDRs` are left over of another mode: no operator decides about them any
    more.
    """
    if cluster.mode is Mode.MULTI_POOL and not shown.pool:
        return False
    return (pool.name if pool else shown.pool) in operator_pools


def is_foreign(cluster: Cluster, shown: ShownBlock, pool: Pool | None) -> bool:
    """Tell whether a block is of a CiliumPodIPPool that is none of ours (multi-pool mode); `pool` as in `gave`."""
    return cluster.mode is Mode.MULTI_POOL and pool is None and shown.pool not in cluster.pools_by_name


def _pieces(addresses: Block, prefix: int) -> Iterator[Block]:
    """Yield aligned addresses as blocks of a prefix length, or as they are if they are no larger."""
    if addresses.prefix >= prefix:
        yield addresses
        return
    size = 1 << (BITS[addresses.family] - prefix)
    for first in range(addresses.first, addresses.last + 1, size):
        yield Block(addresses.family, first, prefix)


class _OfNodes:
    """The lines in use, for look-up by node."""

    def __init__(self, lines: Iterable[Line]) -> None:
        blocks: dict[str, list[Block]] = {}
        for line in lines:
            if line.in_use:
                blocks.setdefault(line.node, []).append(line.block)
        self._blocks = {node: Blocks(some) for node, some in blocks.items()}

    def cover(self, shown: ShownBlock) -> bool:
        """Tell whether the node has a line for what it shows."""
        blocks = self._blocks.get(shown.node)
        return blocks is not None and blocks.fit(shown)
