"""Addresses of nodes inside pools: the block around each is given to no node.

A pod with the address of a node would take its traffic. Pods in a large network beside the nodes in it are
common (Cilium's cluster-pool default 10.0.0.0/8), so a node's address reserves the block around it, and stops
nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from msgspec.structs import replace

from ipamc.model.cidr import BITS, Block, Range
from ipamc.model.cilium.operator_list import sizes_of
from ipamc.model.cluster import Cluster, Node, Pool
from ipamc.model.diagnostics import Place
from ipamc.model.ownership import RangeIndex


def nodes_in_pools(cluster: Cluster) -> Iterator[tuple[Pool, Range, Node, Block]]:
    """Yield the InternalIPs that lie in ranges of pools: the pool, the range, the node and the address.
    In order of the nodes. O(addresses log ranges).
    """
    ranges: RangeIndex | None = None
    for node in cluster.nodes:
        for family, number in node.internal_ips:
            ranges = ranges or RangeIndex(cluster.pools)
            address = Block(family, number, BITS[family])
            if inside := ranges.of(address):
                yield inside.pool, inside.range, node, address


def with_node_addresses(cluster: Cluster) -> Cluster:
    """Return a cluster whose pools reserve the smallest block around each address of a node.
    Not in pools whose blocks Cilium's operator allocates: their ranges are what it was given.
    """
    found: dict[str, list[Range]] = defaultdict(list)
    for pool, _, node, address in nodes_in_pools(cluster):
        theirs = cluster.shared_pools or pool.unlisted
        if not theirs and pool.reserved_over(address) is None and isinstance(node.at, Place):
            smallest = max(size for size, _ in sizes_of(pool, address.family))
            reason = f"InternalIP of node {node.name}"
            found[pool.name].append(Range(address.widened(smallest), node.at, reason, node.name))
    pools = [
        replace(pool, reserved=(*pool.reserved, *found[pool.name])) if pool.name in found else pool
        for pool in cluster.pools
    ]
    return replace(cluster, pools=tuple(pools)) if found else cluster
