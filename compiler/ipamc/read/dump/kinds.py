"""Objects of a dump to the values of `model.dump`: one function for each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from ipamc.model.address_sets import aggregated
from ipamc.model.cidr import BITS, Block
from ipamc.model.dump import (
    Address,
    Object,
    SeenCiliumNode,
    SeenEndpoint,
    SeenNode,
    SeenNodeConfig,
    SeenObject,
    SeenPod,
    SeenPool,
)
from ipamc.read.dump import shapes
from ipamc.read.dump.calico import read_affinity, read_calico_block
from ipamc.read.dump.items import Item
from ipamc.read.dump.reader import Reader
from ipamc.read.kinds.node import OF_CILIUM, pods

_REST_OF_ITEM = b'\n            "spec": {'
"""No text inside JSON has a line break, so this is the item's own key in a list that is printed with four blanks."""
_APPS = ("k8s-app", "component", "io.cilium/app", "name", "app.kubernetes.io/name")
"""Labels that tell what a pod of the control plane or of the pod network is."""
_OF_APPS = frozenset(_APPS)
_ROLES = {
    "kube-controller-manager": "kube-controller-manager",
    "kube-apiserver": "kube-apiserver",
    "cilium": "cilium",
    "cilium-agent": "cilium",
    "operator": "cilium-operator",
    "cilium-operator": "cilium-operator",
    "calico-node": "calico-node",
}


def read_node(raw: shapes.Node, item: Item, reader: Reader) -> SeenNode:
    """Return a Node."""
    metadata, spec = raw.metadata, raw.spec or shapes.NodeSpec()
    status = raw.status or shapes.NodeStatus()
    what = f"Node {metadata.name}"
    conditions = status.conditions or []
    for condition in conditions:
        reader.seen_at(condition.last_heartbeat_time, condition.last_transition_time)
    reader.seen_at(metadata.creation_timestamp)
    cidrs = spec.pod_cidrs or ([spec.pod_cidr] if spec.pod_cidr else [])
    annotations = reader.annotations(metadata.annotations)
    ips = [entry.address for entry in status.addresses or () if entry.type == "InternalIP"]
    return SeenNode(
        name=reader.text(metadata.name),
        file=reader.file,
        line=item.line,
        uid=metadata.uid or "",
        labels=reader.labels(metadata.labels),
        annotations=annotations,
        pod_cidrs=reader.blocks(cidrs, item, what),
        internal_ips=reader.addresses(ips, item, what),
        max_pods=pods(status.allocatable) or pods(status.capacity),
        provider_id=spec.provider_id or "",
        kubelet=reader.text((status.node_info or shapes.NodeInfo()).kubelet_version),
        ready=any(condition.type == "Ready" and condition.status == "True" for condition in conditions),
        cilium_runs=any(condition.reason == "CiliumIsUp" for condition in conditions)
        or any(key.startswith(OF_CILIUM) for key in annotations),
        unschedulable=bool(spec.unschedulable),
        created=metadata.creation_timestamp or "",
        deleting=bool(metadata.deletion_timestamp),
        version=metadata.resource_version or "",
    )


def read_cilium_node(raw: shapes.CiliumNode, item: Item, reader: Reader) -> SeenCiliumNode:
    """Return a CiliumNode."""
    metadata, spec = raw.metadata, raw.spec or shapes.CiliumNodeSpec()
    ipam = spec.ipam or shapes.NodeIpam()
    status = (raw.status or shapes.CiliumNodeStatus()).ipam or shapes.IpamStatus()
    pools = ipam.pools or shapes.NodePools()
    what = f"CiliumNode {metadata.name}"
    owners = [owner.uid for owner in metadata.owner_references or () if owner.kind == "Node" and owner.uid]
    single = reader.addresses(ipam.pool or (), item, what)
    by_type = {
        kind: reader.addresses([entry.ip for entry in spec.addresses or () if entry.type == kind], item, what)
        for kind in ("CiliumInternalIP", "InternalIP")
    }
    reader.seen_at(metadata.creation_timestamp)
    allocated = [
        (block, reader.text(entry.pool))
        for entry in pools.allocated or ()
        for block in reader.blocks(entry.cidrs or (), item, what)
    ]
    return SeenCiliumNode(
        name=reader.text(metadata.name),
        file=reader.file,
        line=item.line,
        uid=metadata.uid or "",
        owner_uid=owners[0] if owners else "",
        annotations=reader.annotations(metadata.annotations),
        blocks=reader.blocks(ipam.pod_cidrs or (), item, what),
        allocated=tuple(dict.fromkeys(allocated)),
        requested=tuple([_request(entry, reader) for entry in pools.requested or ()]),
        addresses=tuple(aggregated(Block(family, first, BITS[family]) for family, first in single)),
        used=reader.addresses(status.used or (), item, what),
        internal_ips=by_type["CiliumInternalIP"],
        node_ips=by_type["InternalIP"],
        error=(status.operator_status or shapes.OperatorStatus()).error or "",
        created=metadata.creation_timestamp or "",
        deleting=bool(metadata.deletion_timestamp),
        version=metadata.resource_version or "",
    )


def _request(entry: shapes.Request, reader: Reader) -> tuple[str, int, int]:
    needed = entry.needed or shapes.Needed()
    return reader.text(entry.pool), needed.ipv4_addrs or 0, needed.ipv6_addrs or 0


def read_pool(raw: shapes.Pool, item: Item, reader: Reader) -> SeenPool:
    """Return a CiliumPodIPPool."""
    spec = raw.spec or shapes.PoolSpec()
    what = f"CiliumPodIPPool {raw.metadata.name}"
    families = {family: part for family, part in ((4, spec.ipv4), (6, spec.ipv6)) if part}
    whole = msgspec.json.decode(item.raw) if isinstance(item.raw, bytes) else item.raw
    return SeenPool(
        name=raw.metadata.name,
        file=reader.file,
        line=item.line,
        labels=reader.labels(raw.metadata.labels),
        cidrs={family: reader.blocks(part.cidrs or (), item, what) for family, part in families.items()},
        mask_sizes={family: part.mask_size for family, part in families.items() if part.mask_size},
        spec=whole.get("spec") or {},
    )


def read_node_config(raw: shapes.NodeConfig, item: Item, reader: Reader) -> SeenNodeConfig:
    """Return a CiliumNodeConfig."""
    spec = raw.spec or shapes.NodeConfigSpec()
    return SeenNodeConfig(
        name=raw.metadata.name,
        file=reader.file,
        line=item.line,
        namespace=reader.text(raw.metadata.namespace),
        selector=spec.node_selector or {},
        defaults=spec.defaults or {},
    )


def read_endpoint(raw: shapes.Endpoint, item: Item, reader: Reader) -> SeenEndpoint:
    """Return a CiliumEndpoint."""
    networking = raw.status.networking if raw.status else None
    namespace, name = raw.metadata.namespace or "", raw.metadata.name
    found: tuple[Address, ...] = ()
    node: tuple[Address, ...] = ()
    if networking:
        texts = [text for entry in networking.addressing or () for text in (entry.ipv4, entry.ipv6)]
        found = reader.addresses(texts, item, "CiliumEndpoint", namespace, name)
        node = reader.addresses([networking.node], item, "CiliumEndpoint", namespace, name)
    return SeenEndpoint(
        name=name,
        file=reader.file,
        line=item.line,
        namespace=reader.text(namespace),
        node_ip=node[0] if node else None,
        addresses=found,
    )


def read_pod(raw: shapes.Pod, item: Item, reader: Reader) -> SeenPod:
    """Return a Pod; command lines and the image only of what decides about addresses."""
    metadata, spec, status = raw.metadata, raw.spec or _NO_SPEC, raw.status or _NO_STATUS
    for time in (status.start_time, metadata.creation_timestamp):
        if time and time > reader.newest:
            reader.seen_at(time)
    app = _app(metadata.labels or {})
    containers = (spec.containers or []) if app else []
    ips = [entry.ip for entry in status.pod_ips] if status.pod_ips else [status.pod_ip]
    return SeenPod(
        name=metadata.name,
        file=reader.file,
        line=item.line,
        namespace=reader.text(metadata.namespace),
        node=reader.text(spec.node_name),
        addresses=reader.addresses(ips, item, "Pod", metadata.namespace or "", metadata.name),
        host_network=bool(spec.host_network),
        phase=reader.text(status.phase),
        started=reader.text(status.start_time),
        deleting=bool(metadata.deletion_timestamp),
        app=app,
        image=reader.text(containers[0].image) if containers else "",
        release=reader.text(release_of(metadata.labels or {})) if app else "",
        words=_words(containers) if containers else (),
    )


_NO_SPEC, _NO_STATUS = shapes.PodSpec(), shapes.PodStatus()


def _words(containers: Iterable[shapes.Container]) -> tuple[str, ...]:
    return tuple(
        word
        for container in containers
        for text in (*(container.command or ()), *(container.args or ()))
        for word in text.split()
    )


def release_of(labels: Mapping[str, str | None]) -> str:
    """Return what labels say of a version: that of the program, else that of its chart."""
    return labels.get("app.kubernetes.io/version") or labels.get("helm.sh/chart") or ""


def is_app(item: Item) -> bool:
    """Tell whether a Pod is one of the control plane or of the pod network, or cannot be read."""
    try:
        if isinstance(item.raw, bytes):
            # What kubectl prints is sorted: the metadata, which are short, come before the rest.
            rest = item.raw.find(_REST_OF_ITEM)
            text = item.raw if rest < 0 else item.raw[:rest].rstrip(b",") + b"}"
            head = msgspec.json.decode(text, type=shapes.Labelled)
        else:
            head = msgspec.convert(item.raw, shapes.Labelled)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return True  # read_pod says what is wrong
    return bool(_app((head.metadata or shapes.Labels()).labels or {}))


def _app(labels: Mapping[str, str | None]) -> str:
    for key in () if _OF_APPS.isdisjoint(labels) else _APPS:
        if (value := labels.get(key)) and value in _ROLES:
            return _ROLES[value]
    return ""


def read_other(raw: shapes.Other, item: Item, reader: Reader) -> SeenObject:
    """Return an object as it is."""
    value = msgspec.json.decode(item.raw) if isinstance(item.raw, bytes) else item.raw
    metadata = raw.metadata if isinstance(raw.metadata, shapes.Metadata) else None
    return SeenObject(
        name=metadata.name if metadata else "",
        file=reader.file,
        line=item.line,
        namespace=(metadata.namespace if metadata else "") or "",
        api_version=item.api_version,
        kind=item.kind,
        value={"apiVersion": item.api_version, "kind": item.kind, **value},
    )


class Kind(NamedTuple):
    """A kind of object: its struct, and the function that makes a value of it."""

    shape: type
    read: Callable[[Any, Item, Reader], Object | None]
    decode: Callable[[bytes], Any]


def _kind(shape: type, read: Callable[[Any, Item, Reader], Object | None]) -> Kind:
    return Kind(shape, read, msgspec.json.Decoder(shape).decode)


_CALICO = ("crd.projectcalico.org", "projectcalico.org")
KINDS: Mapping[tuple[str, str], Kind] = {
    ("", "Node"): _kind(shapes.Node, read_node),
    ("", "Pod"): _kind(shapes.Pod, read_pod),
    ("cilium.io", "CiliumNode"): _kind(shapes.CiliumNode, read_cilium_node),
    ("cilium.io", "CiliumPodIPPool"): _kind(shapes.Pool, read_pool),
    ("cilium.io", "CiliumNodeConfig"): _kind(shapes.NodeConfig, read_node_config),
    ("cilium.io", "CiliumEndpoint"): _kind(shapes.Endpoint, read_endpoint),
    **{(group, "IPAMBlock"): _kind(shapes.CalicoBlock, read_calico_block) for group in _CALICO},
    **{(group, "BlockAffinity"): _kind(shapes.Affinity, read_affinity) for group in _CALICO},
}
"""By API group and kind."""

_OTHER = _kind(shapes.Other, read_other)
OTHERS = frozenset(
    {
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("", "ConfigMap"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("networking.k8s.io", "ClusterCIDR"),
        ("networking.x-k8s.io", "ClusterCIDR"),
        ("cilium.io", "CiliumLoadBalancerIPPool"),
        *((group, kind) for group in _CALICO for kind in ("IPPool", "IPReservation")),
        *((group, kind) for group in _CALICO for kind in ("IPAMConfig", "IPAMConfiguration")),
    }
)
"""Kinds whose objects are kept as they are; of the kinds of NAMED only those of NAMES."""

NAMED = frozenset({"ConfigMap", "DaemonSet", "Deployment"})
NAMES = frozenset(
    {"cilium-config", "kubeadm-config", "calico-config", "canal-config", "cilium", "cilium-operator"}
)
"""The objects of NAMED that are kept."""


@lru_cache(maxsize=256)
def kind_of(api_version: str, kind: str) -> Kind | None:
    """Return how to read an item; None for a kind that ipamc does not ask for."""
    group = api_version.rpartition("/")[0]
    found = KINDS.get((group, kind))
    return found or (_OTHER if (group, kind) in OTHERS else None)
