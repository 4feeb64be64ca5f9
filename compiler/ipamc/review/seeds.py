"""Blocks that a node started with, and may not have any more: Cilium's operator decides about them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Line, Lock, State
from ipamc.model.ownership import Shown
from ipamc.place.candidates import assign, shared_pools, unlisted_pools


def operator_pools(cluster: Cluster) -> frozenset[str]:
    """Return the names of the pools whose blocks Cilium's operator gives out. O(nodes) with pools of nodes."""
    wants = assign(cluster) if cluster.own_pools else ()
    return shared_pools(cluster, wants) | unlisted_pools(cluster)


def started_with(cluster: Cluster, lock: Lock) -> frozenset[Block]:
    """Return the held blocks of such pools that their nodes do not show, of nodes in the inventory. O(lines log n)."""
    pools = operator_pools(cluster)
    if not pools:
        return frozenset()
    evidence = Evidence(cluster)
    shown = {node.name: Shown(evidence.of(node)) for node in cluster.nodes}
    return frozenset(line.block for line in not_shown(lock, pools, shown) if line.node in shown)


def not_shown(lock: Lock, pools: Collection[str], shown: Mapping[str, Shown]) -> Iterator[Line]:
    """Yield the held lines of some pools whose nodes do not show the block. `shown` is by node."""
    nothing = Shown(())
    for line in lock.lines:
        held = line.state is State.HELD and line.pool in pools
        if held and not shown.get(line.node, nothing).fits(line.block):
            yield line
