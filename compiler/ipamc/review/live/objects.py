"""Objects as kubectl prints them and as they are rendered: their identity, and the blocks that they give.

`read_object` reads both as a dump is read; `unreadable` of a value has the texts of blocks that are no CIDR.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from ipamc.model.address_sets import outermost
from ipamc.model.cidr import BITS, Block, CidrError, no_cidrs, parse_address, read_blocks
from ipamc.model.cluster import CiliumNode, Node
from ipamc.model.dump import SeenPool
from ipamc.read.dump.kinds import RenderedValue, read_object
from ipamc.read.kinds.nodes import POD_CIDR

Object = Mapping[str, Any]

NODE, CILIUM_NODE, POOL, NODE_CONFIG = "Node", "CiliumNode", "CiliumPodIPPool", "CiliumNodeConfig"

POLICIES = {
    f"{how}AdmissionPolicy{part}": f"{how.lower()}admissionpolic{plural}"
    for part, plural in (("Binding", "ybindings"), ("", "ies"))
    for how in ("Mutating", "Validating")
}
"""The resources of admission policies by kind; bindings first, because a policy without one does nothing."""

MANAGER = "ipamc"  # the field manager of every apply


def restart(namespace: str, node: str) -> str:
    """Return the command that restarts the agent of a node."""
    return f"kubectl -n {namespace} delete pod -l k8s-app=cilium --field-selector spec.nodeName={node}"


def name_of(document: Object) -> str:
    """Return an object's name."""
    return str((document.get("metadata") or {}).get("name", ""))


def over(document: Object, there: Object | None) -> Object:
    """Return a rendered object in the form to apply over the live one, if that exists.
    An agent removes the annotations of its CiliumNode when it starts; they are not added again.
    """
    if document["kind"] != CILIUM_NODE or there is None or not there["metadata"].get("ownerReferences"):
        return document
    metadata = {key: value for key, value in document["metadata"].items() if key != "annotations"}
    return {**document, "metadata": metadata}


def node_of(document: Object) -> str:
    """Return the node that an object belongs to; "" for an object that nodes share.
    The CiliumPodIPPool of one node is called POOL.NODE, and no name of a pool has a dot (IPC0530).
    """
    kind = document.get("kind")
    if kind == POOL:
        return name_of(document).partition(".")[2]
    return name_of(document) if kind in {NODE, CILIUM_NODE} else ""


def cilium_nodes(documents: Iterable[Object]) -> Iterator[CiliumNode]:
    """Yield the CiliumNodes among objects."""
    found = (read_object(document) for document in documents if document["kind"] == CILIUM_NODE)
    return (seen for seen in found if isinstance(seen, CiliumNode))


def reported_errors(documents: Iterable[Object]) -> dict[str, str]:
    """Return the errors of Cilium's operator by node; an error may have several lines."""
    return {seen.name: seen.error for seen in cilium_nodes(documents) if seen.error}


def given_by(there: RenderedValue, like: RenderedValue) -> tuple[list[Block], tuple[str, ...]]:
    """Return the blocks that an object gives, in its order, and texts in their place that are no CIDR.
    `like` is the rendered object: for a Node, only the fields that ipamc writes are read, because podCIDRs
    beside annotations belong to kube-controller-manager.
    """
    match there:
        case CiliumNode():
            return [*there.blocks, *there.addresses], tuple(text for text, _ in there.unreadable)
        case SeenPool():
            return [*chain(*there.cidrs.values())], there.unreadable
        case Node() if isinstance(like, Node) and (keys := pod_cidr_annotations(like)):
            texts = [text for key in keys if (text := there.annotations.get(key))]
            return read_blocks(texts)[0], no_cidrs(texts)
        case Node():
            return [*there.pod_cidrs], there.unreadable
    return [], ()


def blocks_of(there: RenderedValue, like: RenderedValue | None = None) -> list[Block]:
    """Return the blocks that an object gives, as `given_by` does; by default those of a rendered object."""
    return given_by(there, like or there)[0]


def texts_of(there: RenderedValue, like: RenderedValue) -> list[str]:
    """Return the blocks that an object gives as texts, sorted, with those that are no CIDR."""
    blocks, unreadable = given_by(there, like)
    return sorted([*map(str, outermost(blocks)), *unreadable])


def pod_cidr_annotations(node: Node) -> dict[str, str]:
    """Return the annotations of a Node that hold its blocks."""
    return {key: text for key, text in node.annotations.items() if text and key.endswith(POD_CIDR)}


def address(text: str) -> Block | None:
    """Return a single address as a block; None for other texts."""
    try:
        family, number = parse_address(text)
    except CidrError:
        return None
    return Block(family, number, BITS[family])


def is_ours(document: Object) -> bool:
    """Return whether ipamc applied an object, by its field manager."""
    return _owned(document) is not None


def owned_addresses(document: Object) -> Collection[str]:
    """Return the entries of `spec.ipam.pool` that ipamc applied. An apply removes no entry of others."""
    fields: Any = _owned(document) or {}
    for key in ("f:spec", "f:ipam", "f:pool"):
        fields = fields.get(key) or {}
    return {key.removeprefix("f:") for key in fields}


def _owned(document: Object) -> Object | None:
    for entry in (document.get("metadata") or {}).get("managedFields") or ():
        if (entry.get("manager"), entry.get("operation")) == (MANAGER, "Apply"):
            return entry.get("fieldsV1") or {}
    return None
