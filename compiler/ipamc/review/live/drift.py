"""Objects of the tree that are missing in the cluster, or differ from it in what ipamc owns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ipamc.review.live.blocks import lost
from ipamc.review.live.objects import CILIUM_NODE, NODE, POOL, Object, identity, name_of

State = Literal["missing", "differs", "re-created", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One object that the cluster does not have as it is rendered."""

    document: Object
    state: State
    """`re-created`: the Node has another uid than the inventory. `gone`: there is no such Node any more."""


def drift(
    tree: Iterable[Object], live: Mapping[str, Object], nodes: Collection[str] | None
) -> Iterator[Drift]:
    """Yield what differs, in the order of the tree.

    `nodes` are the names of the cluster's Nodes; None: not known. A CiliumNode whose Node is gone is not made
    again, because the operator would collect it; a planned node's has no Node yet, and an annotation.
    """
    for document in tree:
        there, kind = live.get(identity(document)), document["kind"]
        metadata = document["metadata"]
        if there is None:
            kept = (
                kind != CILIUM_NODE
                or nodes is None
                or name_of(document) in nodes
                or metadata.get("annotations")
            )
            yield Drift(document=document, state="missing" if kept and kind != NODE else "gone")
        elif kind == NODE and metadata.get("uid") not in {None, there["metadata"].get("uid")}:
            yield Drift(document=document, state="re-created")
        elif not _same(document, there):
            yield Drift(document=document, state="differs")


def _same(document: Object, there: Object) -> bool:
    """Tell whether the cluster has all that is rendered, and no block of ours beyond it.

    Agents replace the annotations of CiliumNodes, so these do not count.
    """
    metadata, live = document["metadata"], there["metadata"]
    kept = ("labels",) if document["kind"] == CILIUM_NODE else ("labels", "annotations")
    return (
        all(_within(metadata.get(key) or {}, live.get(key) or {}) for key in kept)
        and all(_within(document.get(key) or {}, there.get(key) or {}) for key in ("spec", "data"))
        and not lost(there, document)
        and (document["kind"] != POOL or _families(document) == _families(there))
    )


def _within(part: Any, whole: Any) -> bool:
    """Tell whether mappings have at least these entries. Lists are compared whole, as the apiserver owns them."""
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(
            key in whole and _within(value, whole[key]) for key, value in part.items()
        )
    return bool(part == whole)


def _families(pool: Object) -> set[str]:
    return {"ipv4", "ipv6"} & (pool.get("spec") or {}).keys()
