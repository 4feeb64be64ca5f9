"""What a dump may lack: takings by name, each of which leaves objects, or fields of objects, out of a dump."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

from tests.support.dumps import Object

Taking = Callable[[Sequence[Object]], list[Object]]
Path = tuple[str, ...]

OF_NODES = ("Node", "CiliumNode", "CiliumEndpoint", "Pod", "IPAMBlock", "BlockAffinity")
"""Kinds of which nodes have objects of their own."""
MANY = ("CiliumEndpoint", "Pod")
"""Kinds of which a field is taken from all objects only, unless every field is taken."""
FIELDS: dict[str, tuple[str, ...]] = {
    "Node": (
        "metadata.uid",
        "metadata.labels",
        "metadata.annotations",
        "spec",
        "spec.podCIDR",
        "spec.podCIDRs",
        "spec.podCIDR spec.podCIDRs",
        "spec.providerID",
        "status",
        "status.addresses",
        "status.conditions",
        "status.nodeInfo",
    ),
    "CiliumNode": (
        "metadata.ownerReferences",
        "spec",
        "spec.addresses",
        "spec.ipam",
        "spec.ipam.podCIDRs",
        "spec.ipam.pool",
        "spec.ipam.pools",
        "spec.ipam.pools.allocated",
        "spec.ipam spec.addresses spec.health spec.ingress",
        "status",
    ),
    "CiliumEndpoint": ("status.networking.addressing", "status.networking.node"),
    "Pod": (
        "metadata.labels",
        "spec.containers",
        "spec.hostNetwork",
        "spec.nodeName",
        "status",
        "status.podIP status.podIPs",
    ),
    "ConfigMap": ("metadata.annotations", "data"),
    "Deployment": ("spec",),
    "DaemonSet": ("spec",),
    "CiliumPodIPPool": ("spec", "spec.ipv4", "spec.ipv4.cidrs", "spec.ipv4.maskSize"),
    "CiliumNodeConfig": ("spec", "spec.defaults", "spec.nodeSelector"),
    "IPAMBlock": (
        "metadata.name",
        "spec",
        "spec.affinity",
        "spec.allocations",
        "spec.attributes",
        "spec.cidr",
        "spec.unallocated",
    ),
    "BlockAffinity": ("metadata.name", "spec", "spec.cidr", "spec.node", "spec.state"),
    "IPPool": ("spec", "spec.blockSize", "spec.cidr", "spec.ipipMode", "spec.nodeSelector", "spec.vxlanMode"),
}
"""Fields that tell a block, the mode, the mask, or who runs what; several are taken together."""
ONLY = (
    "Node",
    "Node CiliumNode",
    "Node Pod",
    "Node ConfigMap",
    "Node CiliumEndpoint",
    "Node Pod CiliumEndpoint",
    "Node Pod ConfigMap",
    "Node CiliumNode ConfigMap",
    "Node CiliumNode Pod ConfigMap",
    "Node IPPool",
    "Node IPAMBlock",
    "Node BlockAffinity",
    "CiliumNode Pod ConfigMap",
)
"""What people ask kubectl for."""
TOGETHER = {
    "no CiliumNode, no conditions": ("no CiliumNode", "Node without status.conditions"),
    "no CiliumNode, no status": ("no CiliumNode", "Node without status"),
    "no CiliumNode, no CiliumEndpoint": ("no CiliumNode", "no CiliumEndpoint"),
    "no CiliumNode, no Pod": ("no CiliumNode", "no Pod"),
    "no CiliumNode, no mask": ("no CiliumNode", "ConfigMap without data.cluster-pool-ipv4-mask-size"),
    "no CiliumNode, no ranges": ("no CiliumNode", "ConfigMap without data.cluster-pool-ipv4-cidr"),
    "no CiliumNode, Pods of unknown networks": ("no CiliumNode", "Pod without spec.hostNetwork"),
    "no CiliumNode, Pods of unknown nodes": ("no CiliumNode", "Pod without spec.nodeName"),
    "no CiliumNode of one, Pods of unknown networks": (
        "no CiliumNode of one",
        "Pod without spec.hostNetwork",
    ),
    "no CiliumNode of one, Pods of unknown nodes": ("no CiliumNode of one", "Pod without spec.nodeName"),
    "no CiliumNode of one, nor pods of its": (
        "no CiliumNode of one",
        "no Pod of one",
        "no CiliumEndpoint of one",
    ),
    "no blocks of one, nor pods of its": (
        "CiliumNode without spec.ipam of one",
        "no Pod of one",
        "no CiliumEndpoint of one",
    ),
    "no blocks of one, nor a condition": (
        "CiliumNode without spec.ipam of one",
        "Node without status.conditions of one",
    ),
    "no Node of one, no blocks": ("no Node of one", "CiliumNode without spec.ipam of one"),
    "no blocks of one, nor its podCIDRs": (
        "CiliumNode without spec.ipam.podCIDRs of one",
        "Node without spec.podCIDR spec.podCIDRs of one",
    ),
    "no IPAMBlock of one, no BlockAffinity": ("no IPAMBlock of one", "no BlockAffinity of one"),
    "no affinity of one": ("IPAMBlock without spec.affinity of one", "no BlockAffinity of one"),
}


def takings(objects: Sequence[Object], *, every: bool = False) -> Iterator[tuple[str, Taking]]:
    """Yield the takings that change these objects, by name. `every`: of each field that there is, and not of FIELDS."""
    kinds = sorted({item["kind"] for item in objects})
    known: dict[str, Taking] = {}
    for kind in kinds:
        fields = _fields(objects, kind) if every else list(FIELDS.get(kind, ()))
        if kind == "ConfigMap" and not every:
            fields += sorted(
                f"data.{key}" for item in objects if item["kind"] == kind for key in item["data"]
            )
        scopes = ("", " of one", " of a tenth") if every else ("", " of one")
        for scope in scopes if kind in OF_NODES else ("",):
            known[f"no {kind}{scope}"] = _without(kind, scope)
            for field in fields if every or not scope or kind not in MANY else ():
                known[f"{kind} without {field}{scope}"] = _lacking(kind, field, scope)
    known |= {f"only {kinds}": _only(kinds.split()) for kinds in ONLY}
    known |= {
        name: _both([known[part] for part in parts])
        for name, parts in TOGETHER.items()
        if all(part in known for part in parts)
    }
    whole = set(map(id, objects))
    lists: set[tuple[int | str, ...]] = {tuple(map(id, objects))}
    for name, taking in known.items():
        left = taking(objects)
        same = tuple(id(item) if id(item) in whole else repr(item) for item in left)
        if same not in lists and any(item["kind"] == "Node" for item in left):
            lists.add(same)
            yield name, taking


def _fields(objects: Sequence[Object], kind: str) -> list[str]:
    """Return the paths of all fields of the objects of a kind, those of lists left out."""
    found: set[str] = set()

    def look(value: Any, path: str) -> None:
        for key, inner in value.items() if isinstance(value, dict) else ():
            if "." not in key and f"{path}{key}" not in {"kind", "apiVersion"}:
                found.add(f"{path}{key}")
                look(inner, f"{path}{key}.")

    for item in objects:
        if item["kind"] == kind:
            look(item, "")
    return sorted(found)


def _chosen(objects: Sequence[Object], scope: str) -> Container[str]:
    """Return the nodes of a scope: the second one, or every tenth from the fourth on."""
    names = [item["metadata"]["name"] for item in objects if item["kind"] == "Node"]
    return names[1:2] if scope == " of one" else names[3::10]


def _without(kind: str, scope: str) -> Taking:
    def take(objects: Sequence[Object]) -> list[Object]:
        mine = _in(objects, kind, scope)
        return [item for item in objects if not mine(item)]

    return take


def _lacking(kind: str, fields: str, scope: str) -> Taking:
    def take(objects: Sequence[Object]) -> list[Object]:
        mine = _in(objects, kind, scope)
        return [_less(item, fields) if mine(item) else item for item in objects]

    return take


def _in(objects: Sequence[Object], kind: str, scope: str) -> Callable[[Object], bool]:
    """Return a test for the objects of a kind, of all nodes or of those of a scope."""
    chosen = _chosen(objects, scope) if scope else ()
    ips = {
        address["address"]: item["metadata"]["name"]
        for item in objects
        if item["kind"] == "Node"
        for address in item.get("status", {}).get("addresses", ())
    }
    return lambda item: item["kind"] == kind and (not scope or _node_of(item, ips) in chosen)


def _node_of(item: Object, ips: dict[str, str]) -> str:
    """Return the node of an object; "" where that is not known any more."""
    spec = item.get("spec", {})
    match item["kind"]:
        case "Pod":
            return str(spec.get("nodeName", ""))
        case "CiliumEndpoint":
            return ips.get(item.get("status", {}).get("networking", {}).get("node", ""), "")
        case "IPAMBlock":
            return str(spec.get("affinity", "")).removeprefix("host:")
        case "BlockAffinity":
            return str(spec.get("node", ""))
        case _:
            return str(item["metadata"].get("name", ""))


def _less(item: Object, fields: str) -> Object:
    """Return an object without fields, as a copy where it has one of them."""
    for field in fields.split():
        item = _dropped(item, field.split("."))
    return item


def _dropped(value: Object, path: Sequence[str]) -> Object:
    key, *below = path
    inner = value.get(key)
    if not below:
        return {name: each for name, each in value.items() if name != key} if key in value else value
    left = _dropped(inner, below) if isinstance(inner, dict) else inner
    return value if left is inner else {**value, key: left}


def _only(kinds: Container[str]) -> Taking:
    return lambda objects: [item for item in objects if item["kind"] in kinds]


def _both(parts: Sequence[Taking]) -> Taking:
    def take(objects: Sequence[Object]) -> list[Object]:
        left = list(objects)
        for part in parts:
            left = part(left)
        return left

    return take
