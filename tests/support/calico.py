"""Objects of Calico as kubectl prints them, of either API group, for tests of dumps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_network
from typing import Any

from tests.support.dumps import Object

CRD, V3 = "crd.projectcalico.org/v1", "projectcalico.org/v3"

Use = tuple[int, str, str]
"""(number of the address in its block, node that uses it, NAMESPACE/POD or a kind of tunnel address)."""


def cidr_name(cidr: str) -> str:
    """Return the name of a CIDR as Calico writes it into names (libcalico-go, lib/names)."""
    return cidr.replace(".", "-").replace(":", "-").replace("/", "-")


def pool(name: str, cidr: str, *, api: str = CRD, labels: Mapping[str, str] = {}, **spec: Any) -> Object:
    """Return an IPPool."""
    return {
        "apiVersion": api,
        "kind": "IPPool",
        "metadata": {"name": name, "uid": f"uid-{name}", **({"labels": dict(labels)} if labels else {})},
        "spec": {
            "allowedUses": ["Workload", "Tunnel"],
            "blockSize": 122 if ":" in cidr else 26,
            "cidr": cidr,
            "ipipMode": "Never",
            "natOutgoing": True,
            "nodeSelector": "all()",
            "vxlanMode": "Never",
            **spec,
        },
    }


def block(cidr: str, host: str = "", uses: Iterable[Use] = (), *, api: str = CRD, **spec: Any) -> Object:
    """Return an IPAMBlock that is affine to a host, or to none."""
    size = ip_network(cidr).num_addresses
    allocations: list[int | None] = [None] * size
    attributes: list[Object] = []
    for number, node, user in uses:
        allocations[number] = len(attributes)
        attributes.append(_attributes(node, user))
    return {
        "apiVersion": api,
        "kind": "IPAMBlock",
        "metadata": {
            "name": cidr_name(cidr),
            "annotations": {"projectcalico.org/metadata": '{"creationTimestamp":null}'},
        },
        "spec": {
            **({"affinity": f"host:{host}"} if host else {}),
            "allocations": allocations,
            "attributes": attributes,
            "cidr": cidr,
            "deleted": False,
            "strictAffinity": False,
            "unallocated": [number for number, index in enumerate(allocations) if index is None],
            **spec,
        },
    }


def _attributes(node: str, user: str) -> Object:
    if "/" not in user:
        kind = user.removesuffix("Address").replace("Tunnel", "-tunnel").lower()
        return {"handle_id": f"{kind}-addr-{node}", "secondary": {"node": node, "type": user}}
    namespace, _, pod = user.partition("/")
    return {
        "handle_id": f"k8s-pod-network.{pod}",
        "secondary": {
            "namespace": namespace,
            "node": node,
            "pod": pod,
            "timestamp": "2026-11-20 07:11:53.923041651 +0000 UTC",
        },
    }


def affinity(
    cidr: str, host: str, state: str = "confirmed", *, api: str = CRD, deleted: bool = False, **spec: Any
) -> Object:
    """Return a BlockAffinity. In crd.projectcalico.org `deleted` is a text."""
    return {
        "apiVersion": api,
        "kind": "BlockAffinity",
        "metadata": {"name": f"{host}-{cidr_name(cidr)}"},
        "spec": {
            "cidr": cidr,
            "deleted": str(deleted).lower() if api == CRD else deleted,
            "node": host,
            "state": state,
            **spec,
        },
    }


def affine(cidr: str, host: str, uses: Iterable[Use] = (), *, api: str = CRD) -> list[Object]:
    """Return a block of a host, with its affinity."""
    return [block(cidr, host, uses, api=api), affinity(cidr, host, api=api)]


def reservation(name: str, cidrs: Sequence[str], *, api: str = CRD) -> Object:
    """Return an IPReservation."""
    return {
        "apiVersion": api,
        "kind": "IPReservation",
        "metadata": {"name": name},
        "spec": {"reservedCIDRs": list(cidrs)},
    }


def config(*, strict: bool = False, auto: bool = True, api: str = CRD) -> Object:
    """Return Calico's IPAM configuration."""
    return {
        "apiVersion": api,
        "kind": "IPAMConfig" if api == CRD else "IPAMConfiguration",
        "metadata": {"name": "default"},
        "spec": {"autoAllocateBlocks": auto, "strictAffinity": strict},
    }


def bgp(kind: str, name: str, *, api: str = CRD, **spec: Any) -> Object:
    """Return a BGPPeer or BGPConfiguration."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}


def asking(item: Object, **annotations: str) -> Object:
    """Return a pod or namespace that asks Calico by these annotations; with `ip_pool`, Cilium."""
    names = {"ip_pool": "ipam.cilium.io/ip-pool", "ipv6_pool": "ipam.cilium.io/ipv6-pool"}
    keys = {key: names.get(key, f"cni.projectcalico.org/{key}") for key in annotations}
    noted = {keys[key]: text for key, text in annotations.items()}
    return {**item, "metadata": {**item["metadata"], "annotations": {"token": "s3cret", **noted}}}


FROZEN = config(strict=True, auto=False)
