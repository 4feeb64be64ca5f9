"""Reads a cluster as far as a question needs it, without its Nodes; finds the blocks that nodes started with.

`ipamc show` and `ipamc which` ask what the lock and the pools say. Other errors of an inventory are not found
then: `ipamc compile` finds them. If Nodes may change the answer, or there is a finding, the whole cluster is
read, so that answers and findings are those of all files. With 5,000 Nodes in a dump of kubectl this saves
more than 1.5 s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from ipamc.model.address_sets import index_around
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Refused
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Line, Lock, State
from ipamc.model.ownership import ShownBlocks
from ipamc.pipeline import Inputs, load_cluster
from ipamc.place.candidates import assign, shared_pools, unlisted_pools
from ipamc.read.narrow import NO_NODES, narrow


class Loaded(NamedTuple):
    """A cluster, its lock, and the texts that its places refer to."""

    cluster: Cluster
    lock: Lock
    sources: Mapping[str, bytes]


def load_without_nodes(inputs: Inputs, enough: Callable[[Cluster, Lock], bool]) -> Loaded:
    """Read a cluster without its Nodes if `enough` accepts that, else with them. Raises Refused."""
    sources = narrow(inputs.sources, NO_NODES)
    if sources is not inputs.sources:
        with contextlib.suppress(Refused):
            cluster, lock = load_cluster(replace(inputs, sources=sources))
            if enough(cluster, lock):
                return Loaded(cluster, lock, sources)
    return Loaded(*load_cluster(inputs), inputs.sources)


def enough_for_use(cluster: Cluster, lock: Lock) -> bool:
    """Return whether the use of pools is the same for any set of Nodes, and no node is as it started.
    Blocks of a CiliumNode without a Node count as held; if they have a line, they do so anyway.
    """
    evidence = Evidence(cluster)
    lines = [line.block for line in lock.lines if line.state is not State.RELEASED]
    return enough_for_started(cluster, lock) and all(
        index_around(lines, shown.block) is not None
        for seen in cluster.cilium_nodes
        for shown in evidence.by(seen)
    )


def enough_for_started(cluster: Cluster, lock: Lock) -> bool:
    """Return whether every node, in the inventory or not, shows the blocks that the operator gave it."""
    multi = cluster.mode is Mode.MULTI_POOL
    pools = frozenset(cluster.pools_by_name) if multi else unlisted_pools(cluster)
    if not pools:
        return True
    evidence = Evidence(cluster)
    shown = {seen.name: ShownBlocks(evidence.by(seen)) for seen in cluster.cilium_nodes}
    return not any(not_shown(lock, pools, shown))


def enough_for_addresses(cluster: Cluster, lock: Lock) -> bool:
    """Return whether the lines have all blocks that nodes show: then lock and pools know each address."""
    if not cluster.cilium_nodes:
        return True
    return cluster.mode is not Mode.KUBERNETES and not Evidence(cluster).taken(lock.lines)


def operator_pools(cluster: Cluster) -> frozenset[str]:
    """Return the pools whose blocks Cilium's operator gives out. O(nodes) with pools of single nodes."""
    return shared_pools(cluster, assign(cluster) if cluster.own_pools else ()) | unlisted_pools(cluster)


def started_with(cluster: Cluster, lock: Lock) -> frozenset[Block]:
    """Return the blocks that nodes started with and may no longer have. O(lines log n).
    They are held blocks of the operator's pools whose nodes are in the inventory and do not show them.
    """
    pools = operator_pools(cluster)
    if not pools:
        return frozenset()
    evidence = Evidence(cluster)
    shown = {node.name: ShownBlocks(evidence.of(node)) for node in cluster.nodes}
    return frozenset(line.block for line in not_shown(lock, pools, shown) if line.node in shown)


def not_shown(lock: Lock, pools: Collection[str], shown: Mapping[str, ShownBlocks]) -> Iterator[Line]:
    """Yield the held lines of some pools whose node does not show the block. `shown` is by node."""
    nothing = ShownBlocks(())
    for line in lock.lines:
        held = line.state is State.HELD and line.pool in pools
        if held and not shown.get(line.node, nothing).fits(line.block):
            yield line
