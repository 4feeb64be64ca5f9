"""Converts objects of a dump to the values of `model.dump`: one function for each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ipamc.model import bgp, dump
from ipamc.model.cidr import Address, Block, CidrError, Odd, no_cidrs, parse_address, read_blocks
from ipamc.model.cilium.flags import parse_size
from ipamc.model.cilium.support import NODE_CONFIG_CRD
from ipamc.model.diagnostics import At, Diagnostic, Span, note
from ipamc.model.node import CiliumNode, Node
from ipamc.read import rules
from ipamc.read.dump import shapes
from ipamc.read.dump.calico_blocks import read_affinity, read_calico_block
from ipamc.read.dump.items import DumpItem
from ipamc.read.kinds.nodes import RawCiliumNode, read_cilium_node, read_node
from ipamc.read.syntax.document import Keys


def place_of(file: str, item: DumpItem) -> Span:
    """Return the place of an item in its file."""
    return Span(file, item.line, 1, 1) if item.line else Span(file)


class Reader(Struct):
    """The state of reading one dump: findings, shared texts, the latest time."""

    file: str = ""
    found: list[Diagnostic] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    """Texts that many objects share: keys and values of labels, names of nodes."""
    newest: str = ""
    item: DumpItem | None = None
    """The present item as in the file."""
    raw: Any = None
    """The present item as a struct."""
    _addresses: dict[str, Address] = field(default_factory=dict)
    """Addresses by text: a Pod and its CiliumEndpoint share one, as do objects that name a node's."""

    def text(self, text: str | None) -> str:
        """Return a text, the same object for equal texts."""
        return self.texts.setdefault(text, text) if text else ""

    def seen_at(self, *times: str | None) -> None:
        """Record the latest time, RFC 3339 in UTC."""
        for time in times:
            if time and time > self.newest and time.endswith("Z"):
                self.newest = time

    def name(self, *_: At | str) -> None:
        """Accept any name: the apiserver has checked it."""

    def labels(self, labels: Mapping[str, str | None] | None, *_: At | str) -> dict[str, str]:
        """Return labels with shared texts; a null value is ""."""
        return {self.text(key): self.text(value) for key, value in (labels or {}).items()}

    def blocks(self, texts: Iterable[str], *_: At | str | int) -> tuple[Block, ...]:
        """Return CIDRs as Go reads them, in their order, once each; report odd ones."""
        good, odd = read_blocks(texts)
        self._report(odd)
        return tuple(dict.fromkeys(good))

    def addresses(self, texts: Iterable[tuple[str | None, Keys]], *_: At) -> tuple[Address, ...]:
        """Return addresses in their order; report unreadable ones. Empty texts are skipped."""
        return self.numbers([text for text, _ in texts])

    def numbers(self, texts: Iterable[str | None]) -> tuple[Address, ...]:
        """Do the same as `addresses` for texts without keys, of which there are 150,000."""
        good, bad, known = [], list[Odd](), self._addresses
        for text in texts:
            if text:
                try:
                    good.append(known.get(text) or known.setdefault(text, parse_address(text)))
                except CidrError:
                    bad.append(Odd(text))
        self._report(bad)
        return tuple(good)

    def _report(self, odd: list[Odd]) -> None:
        if odd and self.item:
            metadata = self.raw.metadata
            namespace = getattr(metadata, "namespace", None)
            name = f"{namespace}/{metadata.name}" if namespace else metadata.name
            self.found.append(rules.unreadable(self.at(self.item), f"{self.item.kind} {name}", odd))

    def at(self, item: DumpItem) -> Span:
        """Return the place of an item."""
        return place_of(self.file, item)

    def origin(self, raw: Any, item: DumpItem) -> dict[str, Any]:
        """Return the fields that every Object of `model.dump` has."""
        return {"name": raw.metadata.name, "file": self.file, "line": item.line}


_APPS = ("k8s-app", "component", "io.cilium/app", "name", "app.kubernetes.io/name")
"""Labels that identify a pod of the control plane or of the pod network."""
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


def read_live_node(raw: shapes.Node, item: DumpItem, reader: Reader) -> Node:
    """Return a Node."""
    spec, status = raw.spec or shapes.NodeSpec(), raw.status or shapes.NodeStatus()
    for condition in status.conditions or ():
        reader.seen_at(condition.last_heartbeat_time, condition.last_transition_time)
    reader.seen_at(raw.metadata.creation_timestamp)
    (node,) = read_node(raw, reader.at(item), reader)
    info = status.node_info or shapes.NodeInfo()
    return replace(
        node,
        provider_id=spec.provider_id or "",
        kubelet=reader.text(info.kubelet_version),
        unschedulable=bool(spec.unschedulable),
        system=reader.text(info.operating_system),
        taints=tuple([f"{taint.get('key')}={taint.get('value') or ''}" for taint in spec.taints or ()]),
        created=raw.metadata.creation_timestamp or "",
    )


def read_pool(raw: shapes.Pool, item: DumpItem, reader: Reader) -> dump.SeenPool:
    """Return a CiliumPodIPPool."""
    spec = raw.spec or shapes.PoolSpec()
    families = {family: part for family, part in ((4, spec.ipv4), (6, spec.ipv6)) if part}
    sizes = {family: parse_size(str(part.mask_size), family) for family, part in families.items()}
    if odd := [f"maskSize {part.mask_size} in IPv{key}" for key, part in families.items() if not sizes[key]]:
        reader.found.append(rules.unreadable(reader.at(item), f"CiliumPodIPPool {raw.metadata.name}", odd))
    entries = [entry for part in families.values() for entry in part.pool or ()]
    if kept := [str(entry.get("cidr")) for entry in entries if entry.get("reservedRanges")]:
        odd = [f"reservedRanges in {', '.join(kept)}, which ipamc does not know (cilium/cilium#46880)"]
        whose, way_out = f"CiliumPodIPPool {raw.metadata.name}", "add them to reserved of the pool"
        reader.found.append(rules.unreadable(reader.at(item), whose, odd, way_out, make=note))
    return dump.SeenPool(
        **reader.origin(raw, item),
        labels=reader.labels(raw.metadata.labels),
        cidrs={family: reader.blocks(part.cidrs or ()) for family, part in families.items()},
        unreadable=no_cidrs(text for part in families.values() for text in part.cidrs or ()),
        mask_sizes={family: size for family, size in sizes.items() if size},
        value=_rendered(raw, item),
    )


def _whole(item: DumpItem) -> dict[str, Any]:
    value = msgspec.json.decode(item.raw) if isinstance(item.raw, bytes) else item.raw
    return {"apiVersion": item.api_version, "kind": item.kind, **value}


def _rendered(raw: shapes.Pool | shapes.NodeConfig, item: DumpItem) -> dict[str, Any]:
    """Return the fields of an object that ipamc may render, besides its identity, as a manifest has them."""
    metadata = msgspec.to_builtins(replace(raw.metadata, uid=None, creation_timestamp=None))
    return {"kind": item.kind, "metadata": metadata, "spec": _whole(item).get("spec") or {}}


def read_node_config(raw: shapes.NodeConfig, item: DumpItem, reader: Reader) -> dump.SeenNodeConfig:
    """Return a CiliumNodeConfig."""
    spec = raw.spec or shapes.NodeConfigSpec()
    return dump.SeenNodeConfig(
        **reader.origin(raw, item),
        namespace=reader.text(raw.metadata.namespace),
        selector=spec.node_selector or {},
        defaults=spec.defaults or {},
        value=_rendered(raw, item),
    )


def read_endpoint(raw: shapes.Endpoint, item: DumpItem, reader: Reader) -> dump.SeenEndpoint:
    """Return a CiliumEndpoint."""
    networking = (raw.status.networking if raw.status else None) or shapes.Networking()
    texts = [text for entry in networking.addressing or () for text in (entry.ipv4, entry.ipv6)]
    return dump.SeenEndpoint(
        **reader.origin(raw, item),
        namespace=reader.text(raw.metadata.namespace),
        addresses=reader.numbers(texts),
        node_ip=next(iter(reader.numbers([networking.node])), None),
    )


def read_pod(raw: shapes.Pod, item: DumpItem, reader: Reader) -> dump.SeenPod:
    """Return a Pod; command lines and image only for programs that decide about addresses."""
    metadata, spec, status = raw.metadata, raw.spec or _NO_SPEC, raw.status or _NO_STATUS
    for time in (status.start_time, metadata.creation_timestamp):
        if time and time > reader.newest:
            reader.seen_at(time)
    app = _app(metadata.labels or {})
    containers = (spec.containers or []) if app else []
    ips = dict.fromkeys([*(entry.ip for entry in status.pod_ips or ()), status.pod_ip])
    return dump.SeenPod(
        name=metadata.name,
        file=reader.file,
        line=item.line,
        namespace=reader.text(metadata.namespace),
        node=reader.text(spec.node_name),
        addresses=reader.numbers(ips),
        host_network=bool(spec.host_network),
        phase=reader.text(status.phase),
        started=reader.text(status.start_time),
        deleting=bool(metadata.deletion_timestamp),
        asks=shapes.asked(metadata.annotations) or _NOTHING,
        app=app,
        image=reader.text(containers[0].image) if containers else "",
        release=reader.text(release_of(metadata.labels or {})) if app else "",
        words=tuple(
            word
            for container in containers
            for text in (*(container.command or ()), *(container.args or ()))
            for word in text.split()
        ),
    )


_NO_SPEC, _NO_STATUS, _NOTHING = shapes.PodSpec(), shapes.PodStatus(), dict[str, str]()


def release_of(labels: Mapping[str, str | None]) -> str:
    """Return the version in a pod's labels: that of the program, else that of its chart."""
    return labels.get("app.kubernetes.io/version") or labels.get("helm.sh/chart") or ""


def _app(labels: Mapping[str, str | None]) -> str:
    for key in () if _OF_APPS.isdisjoint(labels) else _APPS:
        if (value := labels.get(key)) and value in _ROLES:
            return _ROLES[value]
    return ""


def read_other(raw: shapes.Other | shapes.Policy, item: DumpItem, reader: Reader) -> dump.SeenObject:
    """Return an object unchanged."""
    metadata = raw.metadata if isinstance(raw.metadata, shapes.Metadata) else None
    return dump.SeenObject(
        name=metadata.name if metadata else "",
        file=reader.file,
        line=item.line,
        namespace=(metadata.namespace if metadata else "") or "",
        api_version=item.api_version,
        kind=item.kind,
        value=_whole(item),
    )


Value = dump.Object | Node | CiliumNode


class DumpKind(NamedTuple):
    """A kind of object: its struct, and the function that converts it."""

    shape: type
    read: Callable[[Any, DumpItem, Reader], Value | None]
    decode: Callable[[bytes], Any]


def _kind(shape: type, read: Callable[[Any, DumpItem, Reader], Value | None]) -> DumpKind:
    return DumpKind(shape, read, msgspec.json.Decoder(shape).decode)


_CALICO = ("crd.projectcalico.org", "projectcalico.org")
KINDS: Mapping[tuple[str, str], DumpKind] = {
    ("", "Node"): _kind(shapes.Node, read_live_node),
    ("", "Pod"): _kind(shapes.Pod, read_pod),
    ("cilium.io", "CiliumNode"): _kind(
        RawCiliumNode, lambda raw, item, to: next(read_cilium_node(raw, to.at(item), to))
    ),
    ("cilium.io", "CiliumPodIPPool"): _kind(shapes.Pool, read_pool),
    ("cilium.io", "CiliumNodeConfig"): _kind(shapes.NodeConfig, read_node_config),
    ("cilium.io", "CiliumEndpoint"): _kind(shapes.Endpoint, read_endpoint),
    **{
        ("admissionregistration.k8s.io", f"{how}AdmissionPolicy{part}"): _kind(shapes.Policy, read_other)
        for how in ("Mutating", "Validating")
        for part in ("", "Binding")
    },
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
        ("", "Namespace"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("networking.k8s.io", "ClusterCIDR"),
        ("networking.x-k8s.io", "ClusterCIDR"),
        ("cilium.io", "CiliumLoadBalancerIPPool"),
        ("cilium.io", "CiliumResourceIPPool"),
        *(("cilium.io", kind) for kind in bgp.KINDS),
        *((group, kind) for group in _CALICO for kind in ("IPPool", "IPReservation")),
        *((group, kind) for group in _CALICO for kind in ("BGPPeer", "BGPConfiguration")),
        *((group, kind) for group in _CALICO for kind in ("IPAMConfig", "IPAMConfiguration")),
    }
)
"""Kinds whose objects are kept unchanged; for the kinds in NAMED only the objects in NAMES."""

NAMED = frozenset({"ConfigMap", "CustomResourceDefinition", "DaemonSet", "Deployment"})
NAMES = frozenset(
    {"cilium-config", "kubeadm-config", "calico-config", "canal-config", "cilium", "cilium-operator"}
    | {NODE_CONFIG_CRD}
)
"""The objects of kinds in NAMED that are kept."""


RenderedValue = Node | CiliumNode | dump.SeenPool | dump.SeenNodeConfig | dump.SeenObject


def read_object(document: Mapping[str, Any]) -> RenderedValue:
    """Return one object, live or rendered. Its fields must have their types; `unreadable` has odd texts."""
    item, reader = DumpItem("", document["kind"], 0, document), Reader()
    match item.kind:
        case "Node":
            return read_live_node(msgspec.convert(document, shapes.Node), item, reader)
        case "CiliumNode":
            return next(read_cilium_node(msgspec.convert(document, RawCiliumNode), Span(""), reader))
        case "CiliumPodIPPool":
            return read_pool(msgspec.convert(document, shapes.Pool), item, reader)
    return read_other(msgspec.convert(document, shapes.Other), item, reader)


@lru_cache(maxsize=256)
def kind_of(group: str, kind: str) -> DumpKind | None:
    """Return how to read an item; None for a kind that ipamc ignores."""
    return KINDS.get((group, kind)) or (_OTHER if (group, kind) in OTHERS else None)
