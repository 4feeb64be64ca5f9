"""Clusters read as far as a question needs it, without their Nodes; and the blocks that nodes started with.

`ipamc show` and `ipamc which` ask what the lock and the pools say. Other errors of an inventory are not found
then: `ipamc compile` finds them. Where Nodes may change the answer, or something is found, the whole cluster
is read, so that answers and findings are those of all files. Of 5,000 Nodes in a dump of kubectl this saves
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
    """A cluster, its lock, and the texts in which their places are."""

    cluster: Cluster
    lock: Lock
    sources: Mapping[str, bytes]


def load_without_nodes(inputs: Inputs, enough: Callable[[Cluster, Lock], bool]) -> Loaded:
    """Read a cluster without its Nodes if that is `enough`, else with them. Raises Refused."""
    sources = narrow(inputs.sources, NO_NODES)
    if sources is not inputs.sources:
        with contextlib.suppress(Refused):
            cluster, lock = load_cluster(replace(inputs, sources=sources))
            if enough(cluster, lock):
                return Loaded(cluster, lock, sources)
    return Loaded(*load_cluster(inputs), inputs.sources)


def enough_for_use(cluster: Cluster, lock: Lock) -> bool:
    """Tell whether pools are used alike whichever CiliumNode has a Node, and no node is as it started.
    Blocks of a CiliumNode without a Node count as held; they do already where a line has them.
    """
    evidence = Evidence(cluster)
    lines = [line.block for line in lock.lines if line.state is not State.RELEASED]
    return enough_for_started(cluster, lock) and all(
        index_around(lines, shown.block) is not None
        for seen in cluster.cilium_nodes
        for shown in evidence.by(seen)
    )


def enough_for_started(cluster: Cluster, lock: Lock) -> bool:
    """Tell whether all nodes show what the operator gave them, in the inventory or not."""
    multi = cluster.mode is Mode.MULTI_POOL
    pools = frozenset(cluster.pools_by_name) if multi else unlisted_pools(cluster)
    if not pools:
        return True
    evidence = Evidence(cluster)
    shown = {seen.name: ShownBlocks(evidence.by(seen)) for seen in cluster.cilium_nodes}
    return not any(not_shown(lock, pools, shown))


def enough_for_addresses(cluster: Cluster, lock: Lock) -> bool:
    """Tell whether lines have all that nodes show: the lock and the pools say all about an address."""
    if not cluster.cilium_nodes:
        return True
    return cluster.mode is not Mode.KUBERNETES and not Evidence(cluster).taken(lock.lines)


def operator_pools(cluster: Cluster) -> frozenset[str]:
    """Return the pools whose blocks Cilium's operator gives out. O(nodes) with pools of nodes."""
    return shared_pools(cluster, assign(cluster) if cluster.own_pools else ()) | unlisted_pools(cluster)


def started_with(cluster: Cluster, lock: Lock) -> frozenset[Block]:
    """Return the blocks that nodes started with, and may not have any more. O(lines log n).
    These are held blocks of the operator's pools that their nodes, which are in the inventory, do not show.
    """
    pools = operator_pools(cluster)
    if not pools:
        return frozenset()
    evidence = Evidence(cluster)
    shown = {node.name: ShownBlocks(evidence.of(node)) for node in cluster.nodes}
    return frozenset(line.block for line in not_shown(lock, pools, shown) if line.node in shown)


def not_shown(lock: Lock, pools: Collection[str], shown: Mapping[str, ShownBlocks]) -> Iterator[Line]:
    """Yield the held lines of some pools whose nodes do not show the block. `shown` is by node."""
    nothing = ShownBlocks(())
    for line in lock.lines:
        held = line.state is State.HELD and line.pool in pools
        if held and not shown.get(line.node, nothing).fits(line.block):
            yield line
