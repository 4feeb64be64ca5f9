"""Objects that ipamc applied once, and that left the tree: what each does if it stays, what may be deleted.

A Node and a ConfigMap are never deleted. A CiliumNode that somebody else made, as agents and people who
apply seeds do, has another field manager, and is not touched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from ipamc.review.live.objects import (
    CILIUM_NODE,
    NODE_CONFIG,
    POOL,
    Object,
    allocated,
    ipam,
    is_ours,
    name_of,
    node_of,
)

ORDER = (NODE_CONFIG, CILIUM_NODE, POOL)
"""The kinds in the order of deletion: what names a pool, what has blocks of it, the pool."""


class LeftOver(Struct, frozen=True, kw_only=True):
    """An object that left the tree."""

    kind: str
    namespace: str
    name: str
    effect: str
    """What it does if it stays."""
    kept: str = ""
    """Why it must not be deleted; "" where it may be."""


def left_over(
    wanted: Collection[str],
    live: Mapping[str, Object],
    nodes: Collection[str] | None,
    busy: Collection[str] | None,
) -> list[LeftOver]:
    """Return the objects of ipamc that are not among the wanted ones, by identity, in order of deletion.

    `nodes` are the cluster's Nodes, `busy` the nodes with pods; None: not known, then CiliumNodes are kept.
    """
    ours = {
        name: document for name, document in live.items() if document["kind"] in ORDER and is_ours(document)
    }
    users = pool_users(live.values())
    found = [_judged(document, users, nodes, busy) for name, document in ours.items() if name not in wanted]
    return sorted(found, key=lambda item: (ORDER.index(item.kind), item.name))


def is_strange(wanted: Collection[str], live: Mapping[str, Object]) -> bool:
    """Tell whether the cluster has objects of ipamc, and not one of them is wanted: another cluster's?"""
    ours = [name for name, document in live.items() if document["kind"] in ORDER and is_ours(document)]
    return bool(ours) and not any(name in wanted for name in ours)


def pool_users(documents: Iterable[Object]) -> dict[str, set[str]]:
    """Return the nodes whose CiliumNode has blocks of a pool or asks for some, by pool."""
    users: dict[str, set[str]] = defaultdict(set)
    for document in documents:
        if document["kind"] == CILIUM_NODE:
            asked = (ipam(document).get("pools") or {}).get("requested") or ()
            for pool in {
                *(pool for pool, _ in allocated(document)),
                *(str(entry.get("pool")) for entry in asked),
            }:
                users[pool].add(name_of(document))
    return users


def _judged(
    document: Object,
    users: Mapping[str, set[str]],
    nodes: Collection[str] | None,
    busy: Collection[str] | None,
) -> LeftOver:
    name, kind = name_of(document), str(document["kind"])
    kept = ""
    if kind == NODE_CONFIG:
        effect = (
            "its settings still hold for the nodes that it selects, and win over those of a name before it"
        )
    elif kind == CILIUM_NODE:
        effect = "its node keeps its block, and the operator gives it to nobody else"
        if nodes is None or busy is None:
            kept = "Nodes or pods cannot be read"
        elif name in nodes:
            kept = "its Node is there"
        elif name in busy:
            kept = "pods run on its node"
    else:
        owner = f"node {node_of(document)}" if node_of(document) else "any node that asks"
        effect = f"the operator hands out its blocks to {owner}"
        if used := users.get(name):
            kept = f"CiliumNode {min(used)} has blocks of it, or asks for some"
    return LeftOver(
        kind=kind,
        namespace=str(document["metadata"].get("namespace", "")),
        name=name,
        effect=effect,
        kept=kept,
    )
