"""Objects as kubectl prints them and as they are rendered: identity, blocks, and admission policies.

`read_object` reads both as a dump is read; `unreadable` of a value has the texts of blocks that are no CIDR.

Each kube-apiserver evaluates an admission policy some moments after it was written. A dry run creates an
object with a name that nobody uses. The policy that sets blocks then writes the commit into an annotation,
and the policy that refuses blocks names it in its message.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ipamc.model.address_sets import outermost
from ipamc.model.admission import COMMIT, POLICIES, PROBE
from ipamc.model.cidr import Block, CidrError, no_cidrs, parse_address, read_blocks, single
from ipamc.model.cilium.versions import POD_CIDR_ANNOTATIONS
from ipamc.model.dump import SeenPool
from ipamc.model.node import CiliumNode, Node
from ipamc.read.dump.kinds import RenderedValue, read_object
from ipamc.read.kinds.nodes import POD_CIDR

Object = Mapping[str, Any]

NODE, CILIUM_NODE, POOL, NODE_CONFIG = "Node", "CiliumNode", "CiliumPodIPPool", "CiliumNodeConfig"

MANAGER = "ipamc"  # the field manager of every apply


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
        return single(parse_address(text))
    except CidrError:
        return None


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


_CIDR = "192.0.2.0/32"  # from RFC 5737 (documentation): no node has it
_ALLOCATED = [{"pool": f"{PROBE}.", "cidrs": [_CIDR]}]
_BLOCKS: Mapping[str, Mapping[str, Any]] = {
    "nodes": {
        "metadata": {"annotations": dict.fromkeys(POD_CIDR_ANNOTATIONS, _CIDR)},
        "spec": {"podCIDR": _CIDR, "podCIDRs": [_CIDR]},
    },
    "ciliumnodes": {"spec": {"ipam": {"podCIDRs": [_CIDR], "pools": {"allocated": _ALLOCATED}}}},
    "ciliumpodippools": {"spec": {"ipv4": {"cidrs": [_CIDR], "maskSize": 32}}},
}
PROBED = {
    "nodes": ("v1", "Node", PROBE),
    "ciliumnodes": ("cilium.io/v2", "CiliumNode", PROBE),
    "ciliumpodippools": ("cilium.io/v2alpha1", "CiliumPodIPPool", f"{PROBE}.{PROBE}"),
}
"""The apiVersion, kind and name of the object that a dry run creates, by resource."""
_REFUSES = re.compile(r"ValidatingAdmissionPolicy '([^']*)'.* denied request: git gives (.*)")


def naming(objects: Iterable[Object], commit: str) -> list[Object]:
    """Return objects for an apply, with the commit written into policies."""
    return [_naming(each, commit) if each["kind"] in POLICIES else each for each in objects]


def rows_of(document: Object) -> dict[str, str]:
    """Return the row of each node in a policy: `BLOCK...`, or `POOL=CIDR,CIDR...`."""
    rows = (each["expression"] for each in _variables(document) if each["name"].startswith("rows"))
    lines = (line.partition(" ") for text in rows for line in text.splitlines())
    return {node: given for node, blank, given in lines if blank}


def commit_of(objects: Iterable[Object]) -> str:
    """Return the commit that policies name; "" without any."""
    found = (each for document in objects for each in _variables(document))
    return next((str(each["expression"]).strip("'") for each in found if each["name"] == COMMIT), "")


def _variables(document: Object) -> Sequence[Mapping[str, str]]:
    return (document.get("spec") or {}).get("variables") or ()


def _naming(document: Object, commit: str) -> Object:
    variables = [
        {**one, "expression": f"'{commit}'"} if one["name"] == COMMIT else one for one in _variables(document)
    ]
    return {**document, "spec": {**document["spec"], "variables": variables}} if variables else document


def probed(objects: Iterable[Object]) -> Mapping[str, Collection[str]]:
    """Return the kinds of policies among objects, by the resource that they match."""
    found: dict[str, set[str]] = {}
    for document in objects:
        if document["kind"] in POLICIES:
            for rule in (document["spec"].get("matchConstraints") or {}).get("resourceRules") or ():
                for resource in rule.get("resources") or ():
                    found.setdefault(resource, set()).add(document["kind"])
    return found


def probes(objects: Sequence[Object]) -> Iterator[Object]:
    """Yield the objects to create in dry runs. Each answer, accepted or refused, should name the commit."""
    for resource, kinds in sorted(probed(objects).items()):
        if resource not in PROBED:
            continue
        version, kind, name = PROBED[resource]
        head = {"apiVersion": version, "kind": kind}
        if "MutatingAdmissionPolicy" in kinds:
            yield {**head, "metadata": {"name": name}, "spec": {}}
        if "ValidatingAdmissionPolicy" in kinds:
            blocks = _BLOCKS[resource]
            yield {**head, **blocks, "metadata": {**blocks.get("metadata", {}), "name": name}}


def is_late(refusal: str, policies: Sequence[Object]) -> bool:
    """Return whether one of these policies refused an object as an earlier commit had the policy. The
    kube-apiserver that answered does not evaluate the new one yet; a dry run may have asked another one.
    """
    ours, commit = set(map(name_of, policies)), f"(commit {commit_of(policies)})"
    return any(name in ours and commit not in said for name, said in _REFUSES.findall(refusal))
