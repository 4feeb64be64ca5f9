"""Blocks that follow from the addresses of nodes: the n-th address of their network has the n-th block.

The admission policy that gives a joining node its block computes the same in CEL, without any data, so an
unlisted node has the block that a compile gives it once it is listed. Node addresses are unique, so blocks
are, too. In a compile the blocks are pins, derived once, after all files are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ipamc.model.cidr import BITS, Address, Block, OverlapIndex, Range, address_text
from ipamc.model.cluster import Cluster, Mode, Pool, PoolFamily, Scheme
from ipamc.model.diagnostics import Place
from ipamc.model.lock import Line
from ipamc.model.node import Node

_NOWHERE = Block(4, 0, 32)


def block_of(part: PoolFamily, address: Address) -> Block | None:
    """Return the block of the node with an address; None if the pool does not follow its network.
    The address .0 of the network is the 0th, and its block the first of the pool's only range.
    """
    network, (family, number) = part.follows, address
    if network is None or not part.ranges or not network.block.contains(Block(family, number, BITS[family])):
        return None
    step = 1 << (BITS[family] - part.block_size)
    return Block(family, part.ranges[0].block.first + (number - network.block.first) * step, part.block_size)


def address_of(part: PoolFamily, block: Block) -> Address | None:
    """Return the address of the node whose block is, or contains, a block or a single address, or None.
    The inverse of `block_of`.
    """
    network = part.follows
    if network is None or not part.ranges or block.family != part.family or block.prefix < part.block_size:
        return None
    step = 1 << (BITS[block.family] - part.block_size)
    number = (block.first - part.ranges[0].block.first) // step
    return (block.family, network.block.first + number) if 0 <= number < network.block.size else None


def room_for(part: PoolFamily, network: Block) -> int:
    """Return the prefix length of a range with a block for each address of a network; below 0: impossible."""
    return part.block_size - (BITS[network.family] - network.prefix)


def area_of(part: PoolFamily) -> Block | None:
    """Return the addresses of all blocks that follow the network, in a range with room, or None."""
    if part.follows is None or not part.ranges:
        return None
    return Block(part.family, part.ranges[0].block.first, room_for(part, part.follows.block))


def address_for(pool: Pool, block: Block) -> str:
    """Return the node address that decides a block, as text; "" in most pools, which follow nothing."""
    part = pool.families.get(block.family)
    address = address_of(part, block) if part else None
    return address_text(*address) if address else ""


def networks(pool: Pool) -> str:
    """Return the networks that a pool follows, as text."""
    return " and ".join(str(network.block) for network in pool.follows)


def following(cluster: Scheme) -> frozenset[str]:
    """Return the names of the pools whose blocks follow the addresses of nodes."""
    return frozenset(pool.name for pool in cluster.pools if pool.follows)


class Followed(NamedTuple):
    """A node with an InternalIP in a network that a pool follows."""

    pool: Pool
    node: Node
    address: Address
    block: Block


def followed(cluster: Scheme) -> Iterator[Followed]:
    """Yield the nodes with addresses in networks that pools follow, by name. O(addresses log pools).
    A CiliumNode's own InternalIPs count, too: agents write them, and the policy reads them there.
    """
    parts = [(pool, part) for pool in cluster.pools for part in pool.families.values() if part.follows]
    index = OverlapIndex(parts, lambda pair: pair[1].follows.block if pair[1].follows else _NOWHERE)
    for node in cluster.nodes if parts else ():
        seen = cluster.cilium_nodes_by_name.get(node.name)
        for address in dict.fromkeys((*node.internal_ips, *(seen.node_ips if seen else ()))):
            for pool, part in index.over(Block(*address, BITS[address[0]])):
                if block := block_of(part, address):
                    yield Followed(pool, node, address, block)


def with_followed(cluster: Cluster) -> Cluster:
    """Return a cluster in which nodes have the blocks of their addresses as pins."""
    pins: dict[str, dict[str, tuple[Range, ...]]] = defaultdict(dict)
    for pool, node, _, block in followed(cluster):
        assert isinstance(node.at, Place)  # noqa: S101 - nodes of a folder's files have places
        own = pins[pool.name]
        own[node.name] = (*own.get(node.name, ()), Range(block, node.at))
    pools = [replace(pool, pins=pins[pool.name]) if pool.name in pins else pool for pool in cluster.pools]
    return replace(cluster, pools=tuple(pools)) if pins else cluster


def by_address(cluster: Scheme) -> frozenset[tuple[Block, str]]:
    """Return the blocks of the node addresses in the inventory, each with the name of its node."""
    pools = [pool for pool in cluster.pools if pool.follows]
    return frozenset((pin.block, node) for pool in pools for node, own in pool.pins.items() for pin in own)


def given_by_address(cluster: Scheme, held: Mapping[str, Sequence[Line]]) -> frozenset[str]:
    """Return the nodes whose held blocks depend on the address alone, even when they join again.
    By its name such a node could get its block with another address, while the node with its old address gets
    the same block. In multi-pool mode nothing is given by address.
    """
    if not cluster.assigns or cluster.mode is Mode.MULTI_POOL:
        return frozenset()
    own = by_address(cluster)
    names = {node for _, node in own} & held.keys()
    return frozenset(name for name in names if all((line.block, name) in own for line in held[name]))
