"""Compares the tree with the cluster: objects that are missing or differ, and those that left the tree.

Of those that left, a Node and a ConfigMap are never deleted. CiliumNodes that agents made, or people who
applied seeds, have another field manager, and are not touched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from ipamc.read.rendered import identity
from ipamc.review.live import objects
from ipamc.review.live.admission import commit_of, naming
from ipamc.review.live.blocks import lost

State = Literal["missing", "differs", "re-created", "gone"]


class Drift(Struct, frozen=True, kw_only=True):
    """One object whose live form differs from the rendered one."""

    document: objects.Object
    state: State
    """`re-created`: the Node has another uid than the inventory. `gone`: there is no such Node any more."""


def drift(
    tree: Iterable[objects.Object], live: Mapping[str, objects.Object], nodes: Collection[str] | None
) -> Iterator[Drift]:
    """Yield the differences, in the order of the tree.
    `nodes` are the names of the cluster's Nodes; None: unknown. A CiliumNode whose Node is gone is not
    created again, as the operator would delete it; a planned node has no Node yet, and an annotation.
    """
    for document in tree:
        there, kind = live.get(identity(document)), document["kind"]
        metadata = document["metadata"]
        if there is None:
            has_node = nodes is None or objects.name_of(document) in nodes
            kept = kind != objects.CILIUM_NODE or has_node or metadata.get("annotations")
            yield Drift(document=document, state="missing" if kept and kind != objects.NODE else "gone")
        elif kind == objects.NODE and metadata.get("uid") not in {None, there["metadata"].get("uid")}:
            yield Drift(document=document, state="re-created")
        elif unequal(document, there) or lost(there, document):
            yield Drift(document=document, state="differs")


def unequal(document: objects.Object, there: objects.Object) -> list[str]:
    """Return the paths of rendered fields whose live value is another.
    Agents replace the annotations of CiliumNodes, so these are ignored, and so is the commit that policies
    name. A pool must not have other families than rendered, and a policy no other fields: they could exempt
    requests from it.
    """
    kind, kept = document["kind"], ("labels", "annotations")
    if kind in objects.POLICIES:
        (document,) = naming([document], commit_of([there]))
    metadata, live = document["metadata"], there["metadata"]
    paths: list[str] = []
    for key in kept[:1] if kind == objects.CILIUM_NODE else kept:
        paths += _unequal(metadata.get(key) or {}, live.get(key) or {}, f"metadata.{key}")
    for key in ("spec", "data"):
        paths += _unequal(document.get(key) or {}, there.get(key) or {}, key)
    if kind == objects.POOL and (more := _families(there) - _families(document)):
        paths += (f"spec.{family}" for family in sorted(more))
    if kind in objects.POLICIES:
        paths += _added(document["spec"], there.get("spec") or {}, "spec")
    return list(dict.fromkeys(paths))


def _unequal(part: Any, whole: Any, path: str) -> Iterator[str]:
    """Yield the paths of values that differ. Lists are compared whole, as the apiserver owns them."""
    if not isinstance(part, Mapping) or not isinstance(whole, Mapping):
        if part != whole:
            yield path
        return
    for key, value in part.items():
        if key not in whole:
            yield f"{path}.{key}"
        else:
            yield from _unequal(value, whole[key], f"{path}.{key}")


_DEFAULTS: tuple[Any, ...] = ({}, [], None, "", "Equivalent")
"""Values that the apiserver adds to a policy; Equivalent is a matchPolicy."""


def _added(part: Any, whole: Any, path: str) -> Iterator[str]:
    """Yield the paths of fields that are not rendered and do not have a default value."""
    if isinstance(part, Mapping) and isinstance(whole, Mapping):
        for key, value in whole.items():
            if key in part:
                yield from _added(part[key], value, f"{path}.{key}")
            elif value not in _DEFAULTS:
                yield f"{path}.{key}"


def _families(pool: objects.Object) -> set[str]:
    return {"ipv4", "ipv6"} & (pool.get("spec") or {}).keys()


ORDER = (*objects.POLICIES, objects.NODE_CONFIG, objects.CILIUM_NODE, objects.POOL)
"""The kinds in the order of deletion: policies, objects that name a pool, those with its blocks, the pool."""


class LeftOver(Struct, frozen=True, kw_only=True):
    """An object that left the tree."""

    kind: str
    namespace: str
    name: str
    effect: str  # its effect if it stays
    kept: str = ""  # why it must not be deleted; "" if it may be


def left_over(
    wanted: Collection[str],
    live: Mapping[str, objects.Object],
    nodes: Collection[str] | None,
    busy: Collection[str] | None,
) -> list[LeftOver]:
    """Return ipamc's live objects that are not among the wanted ones, by identity, in order of deletion.
    `nodes` are the cluster's Nodes, `busy` the nodes with pods; None: unknown, and CiliumNodes are kept.
    """
    users, left = pool_users(live.values()), []
    for document in [live[about] for about in _ours(live) if about not in wanted]:
        name, kind, kept = objects.name_of(document), str(document["kind"]), ""
        if kind in objects.POLICIES:
            does = "gives nodes" if kind.startswith("Mutating") else "lets nodes have no other blocks than"
            effect = f"it still {does} the blocks of its last apply"
        elif kind == objects.NODE_CONFIG:
            wins = "and win over those of a name before it"
            effect = f"its settings still hold for the nodes that it selects, {wins}"
        elif kind == objects.CILIUM_NODE:
            effect = "its node keeps its block, and the operator gives it to nobody else"
            if nodes is None or busy is None:
                kept = "Nodes or pods cannot be read"
            elif name in nodes or name in busy:
                kept = "its Node is there" if name in nodes else "pods run on its node"
        else:
            owner = f"node {objects.node_of(document)}" if objects.node_of(document) else "any node that asks"
            effect = f"the operator hands out its blocks to {owner}"
            if used := users.get(name):
                kept = f"CiliumNode {min(used)} has blocks of it, or asks for some"
        namespace = str(document["metadata"].get("namespace", ""))
        left.append(LeftOver(kind=kind, namespace=namespace, name=name, effect=effect, kept=kept))
    return sorted(left, key=lambda item: (ORDER.index(item.kind), item.name))


def is_foreign_tree(wanted: Collection[str], live: Mapping[str, objects.Object]) -> bool:
    """Return whether the cluster has objects of ipamc and none is wanted: they are another cluster's."""
    ours = _ours(live)
    return bool(ours) and not any(name in wanted for name in ours)


def _ours(live: Mapping[str, objects.Object]) -> list[str]:
    return [
        name for name, document in live.items() if document["kind"] in ORDER and objects.is_ours(document)
    ]


def pool_users(documents: Iterable[objects.Object]) -> dict[str, set[str]]:
    """Return, by pool, the nodes whose CiliumNode has blocks of it or requests some."""
    users: dict[str, set[str]] = defaultdict(set)
    for seen in objects.cilium_nodes(documents):
        requested = {pool for pool, *_ in seen.requested}
        for pool in requested.union(pool for _, pool in (*seen.allocated, *seen.unreadable)):
            users[pool].add(seen.name)
    return users
