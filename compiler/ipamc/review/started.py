"""Blocks that a node started with, and may not have any more: Cilium's operator decides about them."""

from __future__ import annotations

from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Lock, State
from ipamc.place.candidates import assign, shared_pools, unlisted_pools


def operator_pools(cluster: Cluster) -> frozenset[str]:
    """Return the names of the pools whose blocks Cilium's operator gives out. O(nodes) with pools of nodes."""
    wants = assign(cluster) if cluster.own_pools else ()
    return shared_pools(cluster, wants) | unlisted_pools(cluster)


def started_with(cluster: Cluster, lock: Lock) -> frozenset[Block]:
    """Return the held blocks of such pools, of nodes in the inventory that show no block. O(lines)."""
    pools = operator_pools(cluster)
    if not pools:
        return frozenset()
    evidence = Evidence(cluster)
    untold = {node.name for node in cluster.nodes if not evidence.of(node)}
    return frozenset(
        line.block
        for line in lock.lines
        if line.state is State.HELD and line.pool in pools and line.node in untold
    )
