"""Objects as kubectl prints them, made by hand."""

from __future__ import annotations

from typing import Any

Made = dict[str, Any]


def ours(*fields: str) -> list[Made]:
    """Make the managed fields of an object that ipamc applied; `fields` are single addresses of it."""
    pool: Made = {f"f:{field}": {} for field in fields}
    return [
        {"manager": "cilium-operator", "operation": "Update", "fieldsV1": {}},
        {"manager": "ipamc", "operation": "Apply", "fieldsV1": {"f:spec": {"f:ipam": {"f:pool": pool}}}},
    ]


def cilium_node(name: str, *cidrs: str, pools: Made | None = None, error: str = "", **more: Any) -> Made:
    """Make a CiliumNode; `pools` are CIDRs by name, `addresses` single ones, `asks` the pools that it asks for."""
    ipam: Made = {"podCIDRs": list(cidrs)} if cidrs else {}
    if pools or "asks" in more:
        ipam["pools"] = {
            "allocated": [{"pool": pool, "cidrs": blocks} for pool, blocks in (pools or {}).items()],
            "requested": [{"pool": pool} for pool in more.get("asks", ())],
        }
    if "addresses" in more:
        ipam["pool"] = {address: {} for address in more["addresses"]}
    made = {
        "kind": "CiliumNode",
        "metadata": {"name": name, "managedFields": more.get("managed", [])},
        "spec": {"ipam": ipam},
    }
    return {**made, "status": {"ipam": {"operator-status": {"error": error}}}} if error else made


def pool(name: str, *cidrs: str, six: tuple[str, ...] = (), **metadata: Any) -> Made:
    """Make a CiliumPodIPPool."""
    spec = {"ipv4": {"cidrs": list(cidrs), "maskSize": 27}}
    if six:
        spec["ipv6"] = {"cidrs": list(six), "maskSize": 123}
    return {"kind": "CiliumPodIPPool", "metadata": {"name": name, **metadata}, "spec": spec}


def node(
    name: str, *cidrs: str, uid: str = "u", annotations: Made | None = None, cordoned: bool = False
) -> Made:
    """Make a Node."""
    spec: Made = {"unschedulable": cordoned, "podCIDRs": list(cidrs)}
    if cidrs:
        spec["podCIDR"] = cidrs[0]
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": uid, "annotations": annotations or {}},
        "spec": spec,
    }


def config(name: str, **metadata: Any) -> Made:
    """Make a CiliumNodeConfig."""
    return {
        "kind": "CiliumNodeConfig",
        "metadata": {"name": name, "namespace": "kube-system", **metadata},
        "spec": {"defaults": {"ipam-default-ip-pool": name}, "nodeSelector": {}},
    }


def by_identity(*documents: Made) -> dict[str, Made]:
    """Return objects by kind, namespace and name."""
    from ipamc.read.rendered import identity

    return {identity(document): document for document in documents}
