"""Clusters read as far as a question needs it: without their Nodes, or with one of them; else as a whole.

`ipamc show` and `ipamc which` ask what the lock and the pools say, `ipamc why` asks about one node. Whatever
else is wrong with an inventory is not found then: `ipamc compile` finds it. Where the rest may change the
answer, or something is found, the whole cluster is read, so that answers and findings are those of all files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from ipamc.model.address_sets import index_around
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Refused
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Lock, State
from ipamc.model.ownership import Shown
from ipamc.pipeline import Inputs, load_cluster
from ipamc.place.candidates import unlisted_pools
from ipamc.read.narrow import NO_NODES, narrow, only_node
from ipamc.review.explain_node import explain_alone, explain_node
from ipamc.review.node_decisions import ExplainedNode
from ipamc.review.seeds import not_shown


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


def explain_one(inputs: Inputs, node: str, today: str) -> tuple[ExplainedNode, Mapping[str, bytes]] | None:
    """Explain a node as `explain_node` does; return the texts in which its places are, too. Raises Refused.

    Other nodes are read only where they may change the answer: not for one that keeps what it holds.
    """
    sources = narrow(inputs.sources, only_node(node))
    if sources is not inputs.sources:
        with contextlib.suppress(Refused):
            loaded = load_cluster(replace(inputs, sources=sources))
            if found := explain_alone(*loaded, node, today):
                return found, sources
    found = explain_node(*load_cluster(inputs), node, today)
    return (found, inputs.sources) if found else None


def enough_for_use(cluster: Cluster, lock: Lock) -> bool:
    """Tell whether pools are equally full whichever CiliumNode has a Node, and no node is as it started.

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
    """Tell whether no node is as it started, in the inventory or not: all show what the operator gave them."""
    multi = cluster.mode is Mode.MULTI_POOL
    pools = frozenset(cluster.pools_by_name) if multi else unlisted_pools(cluster)
    if not pools:
        return True
    evidence = Evidence(cluster)
    shown = {seen.name: Shown(evidence.by(seen)) for seen in cluster.cilium_nodes}
    return not any(not_shown(lock, pools, shown))


def enough_for_addresses(cluster: Cluster, lock: Lock) -> bool:
    """Tell whether what nodes show is in their lines, so that the lock and the pools say all about an address."""
    if not cluster.cilium_nodes:
        return True
    return cluster.mode is not Mode.KUBERNETES and not Evidence(cluster).taken(lock.lines)
