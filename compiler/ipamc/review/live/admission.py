"""Admission policies on apply: the commit that they name, and dry runs that test whether they are active.

Each kube-apiserver evaluates a policy some moments after it was written. A dry run creates an object with a
name that nobody uses. The policy that sets blocks then writes the commit into an annotation, and the policy
that refuses blocks names it in its message.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ipamc.model.admission import COMMIT, PROBE
from ipamc.model.cilium.versions import POD_CIDR_ANNOTATIONS
from ipamc.review.live.objects import POLICIES, Object, name_of

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
