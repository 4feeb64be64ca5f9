"""Objects as kubectl prints them and as they are rendered: their identity, and the blocks that they give.

CIDRs are read as Go reads them; `blocks.held_by_others` asks for texts that are no CIDR.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ipamc.model.cidr import BITS, Block, CidrError, parse_address, read_blocks
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


def ipam(document: Object) -> Object:
    """Return a CiliumNode's `spec.ipam`."""
    return (document.get("spec") or {}).get("ipam") or {}


def allocated(document: Object) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield pools and the texts of their CIDRs of a CiliumNode in multi-pool mode."""
    for entry in (ipam(document).get("pools") or {}).get("allocated") or ():
        yield str(entry.get("pool", "")), entry.get("cidrs") or ()


def reported_errors(documents: Iterable[Object]) -> dict[str, str]:
    """Return the errors of Cilium's operator by node; an error may have several lines."""
    errors = {}
    for document in documents:
        if document.get("kind") == CILIUM_NODE:
            status = ((document.get("status") or {}).get("ipam") or {}).get("operator-status") or {}
            if status.get("error"):
                errors[name_of(document)] = str(status["error"])
    return errors


def cidrs(document: Object, like: Object) -> set[str]:
    """Return the blocks that an object gives, as texts; single addresses have a full prefix.
    `like` is the rendered object: for a Node, only the fields that ipamc writes are read, because podCIDRs
    beside annotations belong to kube-controller-manager.
    """
    spec = document.get("spec") or {}
    kind = like.get("kind")
    if kind == POOL:
        families = (spec.get(family) or {} for family in ("ipv4", "ipv6"))
        return {cidr for family in families for cidr in family.get("cidrs") or ()}
    if kind == CILIUM_NODE:
        entries = ipam(document).get("pool") or ()
        addresses = (f"{entry}/{BITS[6 if ':' in entry else 4]}" for entry in entries)
        return {*(ipam(document).get("podCIDRs") or ()), *addresses}
    if kind == NODE:
        if given := pod_cidr_annotations(like):
            there = pod_cidr_annotations(document)
            return {there[key] for key in given if key in there}
        return {*(spec.get("podCIDRs") or ()), *([spec["podCIDR"]] if spec.get("podCIDR") else ())}
    return set()


def pod_cidr_annotations(document: Object) -> dict[str, str]:
    """Return the annotations of a Node that hold its blocks."""
    found = (document.get("metadata") or {}).get("annotations") or {}
    return {key: value for key, value in found.items() if value and key.endswith(POD_CIDR)}


def parsed(texts: Iterable[object]) -> list[Block]:
    """Return the CIDRs among texts, sorted."""
    return sorted(read_blocks(texts)[0])


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
