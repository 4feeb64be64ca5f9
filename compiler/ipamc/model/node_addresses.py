"""Addresses of nodes inside pools: the block around each is given to no node.

A pod with the address of a node would take its traffic. Pods in a large network beside the nodes in it are
common (Cilium's cluster-pool default 10.0.0.0/8), so a node's address reserves the block around it, and stops
nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ipamc.model.cidr import BITS, Block, Range
from ipamc.model.cilium.operator_list import sizes_of
from ipamc.model.cluster import Cluster, Pool, Scheme
from ipamc.model.diagnostics import Place
from ipamc.model.node import Node
from ipamc.model.ownership import RangeIndex


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
