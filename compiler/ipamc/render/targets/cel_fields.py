"""Where Cilium finds the blocks of nodes, in CEL: each field, and the resources that it is written through.

Agents find their own blocks in one field, by the mode, and those of other nodes in all fields of their
CiliumNodes (ParseCiliumNode in pkg/node/types/node.go@1.20). Of a Node they prefer `podCIDRs`. For a family
that is missing there they take an annotation, by its name or by its alias (ParseNode in pkg/k8s/node.go). So
a policy about one of the fields is about all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ipamc.model.cluster import Mode

POD_CIDRS, ALLOCATED, ADDRESSES = "spec.ipam.podCIDRs", "spec.ipam.pools.allocated", "spec.ipam.pool"
"""The fields of a CiliumNode."""
OWN = {
    Mode.KUBERNETES: POD_CIDRS,
    Mode.CLUSTER_POOL: POD_CIDRS,
    Mode.MULTI_POOL: ALLOCATED,
    Mode.CRD: ADDRESSES,
}
"""The field of a CiliumNode with its node's blocks, by mode. In kubernetes mode the agent copies them."""


class Resource(Struct, frozen=True):
    """A resource that a policy matches."""

    group: str
    version: str
    name: str
    also: tuple[str, ...] = ()
    """Subresources through which its objects are written, too."""


NODES = Resource("", "v1", "nodes", ("nodes/status",))
CILIUM_NODES = Resource("cilium.io", "v2", "ciliumnodes", ("ciliumnodes/status",))
POOLS = Resource("cilium.io", "v2alpha1", "ciliumpodippools")


def of(expression: str, it: str) -> str:
    """Return an expression about an object, `object` or `oldObject`."""
    return expression.replace("{it}", it)


def before(expression: str, none: str = "[]") -> str:
    """Return an expression about the object before the request; `none` if the request creates it."""
    return f"(oldObject == null ? {none} : {of(expression, 'oldObject')})"


def annotation(key: str) -> str:
    """Return the expression for the text of an annotation of the object `{it}`, as a list."""
    there = "has({it}.metadata.annotations)"
    return (
        f"({there} && '{key}' in {{it}}.metadata.annotations ? [{{it}}.metadata.annotations['{key}']] : [])"
    )


NODE_CIDRS = "(has({it}.spec.podCIDRs) ? {it}.spec.podCIDRs : [])"
"""The podCIDRs of a Node. kube-apiserver makes the first one and `podCIDR` the same."""
THERE = "has({it}.spec.ipam) && has({it}.spec.ipam.pools) && has({it}.spec.ipam.pools.allocated)"
"""Whether a CiliumNode lists blocks by pool."""
ENTRY = "(has(entry.cidrs) ? entry.cidrs.map(it, string(it)) : [])"
"""The blocks of one pool, `entry`, in a CiliumNode."""
OF_CILIUM_NODE: Mapping[str, str] = {
    POD_CIDRS: "(has({it}.spec.ipam) && has({it}.spec.ipam.podCIDRs) ? {it}.spec.ipam.podCIDRs : [])",
    ALLOCATED: f"({THERE} ? {{it}}.spec.ipam.pools.allocated.map(entry, {ENTRY}.join(','))"
    ".join(',').split(',').filter(it, it != '') : [])",
    ADDRESSES: "(has({it}.spec.ipam) && has({it}.spec.ipam.pool) ? {it}.spec.ipam.pool.map(it, it) : [])",
}
"""Blocks and addresses of a CiliumNode as a list of texts, by field."""


def beside(own: str) -> tuple[str, ...]:
    """Return the expressions of the other fields of a CiliumNode."""
    return tuple(text for name, text in OF_CILIUM_NODE.items() if name != own)
