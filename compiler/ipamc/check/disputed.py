"""Disputed nodes: the lock and the cluster disagree about their blocks. One of them does not stop a cluster.

The line of such a node stays, and so do its objects; it gets nothing new, and what it shows counts as taken.
There are two ways out: `ipamc lock --adopt` where the cluster is right, or the node goes to its line.
"""

from __future__ import annotations

from collections.abc import Collection

from ipamc.model.cluster import Mode, Scheme
from ipamc.model.limits import FEW_NODES
from ipamc.model.lock import Lock


def too_many(cluster: Scheme, disputed: Collection[str]) -> bool:
    """Return whether so many nodes are disputed that the dump may be of another cluster."""
    return len(disputed) > max(FEW_NODES, len(cluster.nodes) * cluster.budget_leave // 100)


def adopt(lock: Lock, node: str) -> str:
    """Return the beginning of a fix: what to do if the cluster is right."""
    return f"if the pods of {node} use what it shows: ipamc lock {lock.cluster} --adopt {node}; if not: "


def other_dump(lock: Lock) -> str:
    """Return the beginning of a fix where many nodes are disputed."""
    live = "; in multi-pool mode with the CIDRs of the live CiliumPodIPPools as they are"
    pools = live if lock.mode is Mode.MULTI_POOL else ""
    replace = "if this dump is of another cluster, or older than the last apply, replace it"
    return f"{replace}; if the cluster is right: ipamc lock {lock.cluster} --adopt all{pools}; if not: "
