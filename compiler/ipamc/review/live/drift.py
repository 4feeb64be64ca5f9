"""Objects of the tree that are missing in the cluster, or differ from it in what ipamc owns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from ipamc.read.rendered import identity
from ipamc.review.live.blocks import lost
from ipamc.review.live.objects import CILIUM_NODE, NODE, POOL, Object, name_of

State = Literal["missing", "differs", "re-created", "gone"]


class Drift(Struct, frozen=True, kw_only=True):
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
        elif differing(document, there):
            yield Drift(document=document, state="differs")


def differing(document: Object, there: Object) -> list[str]:
    """Return the paths of the fields that ipamc owns and the cluster does not have as they are rendered, once each.

    Of the blocks of an object there must be none beyond those that are rendered. Agents replace the
    annotations of CiliumNodes, so these do not count.
    """
    metadata, live = document["metadata"], there["metadata"]
    kept = ("labels",) if document["kind"] == CILIUM_NODE else ("labels", "annotations")
    found = [
        path
        for key in kept
        for path in _other(metadata.get(key) or {}, live.get(key) or {}, f"metadata.{key}")
    ]
    for key in ("spec", "data"):
        found += _other(document.get(key) or {}, there.get(key) or {}, key)
    if document["kind"] == POOL and (more := _families(there) - _families(document)):
        found += (f"spec.{family}" for family in sorted(more))
    if not found and lost(there, document):
        found.append(_BLOCKS.get(document["kind"], "spec"))
    return list(dict.fromkeys(found))


_ENTRIES = "spec.ipam.pool"
"""The single addresses of crd mode: a mapping of hundreds of entries, which is one field here."""
_BLOCKS = {CILIUM_NODE: _ENTRIES, NODE: "spec.podCIDRs"}
"""The field in which an object may have more blocks than are rendered, when all that is rendered is there."""


def _other(part: Any, whole: Any, path: str) -> Iterator[str]:
    """Yield the paths of the entries that mappings do not have so.

    Lists are compared whole, as the apiserver owns them.
    """
    if not isinstance(part, Mapping):
        if part != whole:
            yield path
        return
    if not isinstance(whole, Mapping):
        yield path
        return
    for key, value in part.items():
        within = path if path == _ENTRIES else f"{path}.{key}"
        if key not in whole:
            yield within
        else:
            yield from _other(value, whole[key], within)


def _families(pool: Object) -> set[str]:
    return {"ipv4", "ipv6"} & (pool.get("spec") or {}).keys()
