"""Objects as users, agents and ipamc write them, made by hand."""

from __future__ import annotations

from typing import Any

from tests.e2e.api import Object


def cilium_node(name: str, *blocks: str, **ipam: Any) -> Object:
    """Make a CiliumNode."""
    spec = {"ipam": {**({"podCIDRs": list(blocks)} if blocks else {}), **ipam}}
    return {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": name}, "spec": spec}


def ip_pool(name: str, *cidrs: str, size: int = 27) -> Object:
    """Make a CiliumPodIPPool."""
    spec = {"ipv4": {"cidrs": list(cidrs), "maskSize": size}}
    return {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumPodIPPool",
        "metadata": {"name": name},
        "spec": spec,
    }


def asks(pool: str, addresses: int) -> Object:
    """Make the `pools` of a node whose agent asks for addresses."""
    return {"requested": [{"pool": pool, "needed": {"ipv4-addrs": addresses}}]}


def verdict(node: Object) -> str:
    """Return what the operator finds wrong with a CiliumNode."""
    return str(node.get("status", {}).get("ipam", {}).get("operator-status", {}).get("error", ""))


def allocated(node: Object) -> list[str]:
    """Return a CiliumNode's blocks in multi-pool mode."""
    return [
        cidr for each in node["spec"]["ipam"].get("pools", {}).get("allocated", ()) for cidr in each["cidrs"]
    ]
