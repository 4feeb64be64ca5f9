"""Finds the blocks that nodes started with, where Cilium's operator may have given them others since."""

from __future__ import annotations

from collections.abc import Iterable

from ipamc.model.cidr import Block
from ipamc.model.cluster import Scheme
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Lock, State
from ipamc.model.ownership import ShownBlocks
from ipamc.place.candidates import assign, shared_pools, unlisted_pools


def operator_pools(cluster: Scheme, published: Iterable[str] = ()) -> frozenset[str]:
    """Return the pools whose blocks Cilium's operator gives out. O(nodes) with pools of single nodes.
    `published`: names of rendered pools that nodes share.
    """
    wants = assign(cluster) if cluster.own_pools else ()
    return shared_pools(cluster, wants, published) | unlisted_pools(cluster)


def started_with(cluster: Scheme, lock: Lock) -> frozenset[Block]:
    """Return the blocks that nodes started with and may no longer have. O(lines log n).
    They are held blocks of the operator's pools whose nodes are in the inventory and do not show them.
    """
    pools = operator_pools(cluster)
    if not pools:
        return frozenset()
    evidence = Evidence(cluster)
    shown = {node.name: ShownBlocks(evidence.of(node)) for node in cluster.nodes}
    lines = (line for line in lock.lines if line.state is State.HELD and line.pool in pools)
    return frozenset(
        line.block for line in lines if line.node in shown and not shown[line.node].fits(line.block)
    )
