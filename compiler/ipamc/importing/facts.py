"""What a dump tells of a cluster beside its blocks: versions, owner of the flags, ranges not for pods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from ipamc.importing.draft import DraftRange
from ipamc.importing.managed import Offering, offering_of
from ipamc.model.address_sets import aligned, outermost
from ipamc.model.cidr import Block, CidrError, parse_block, readable_blocks
from ipamc.model.cluster import Bgp, ManagedBy, RoutingMode, Version
from ipamc.model.diagnostics import Span
from ipamc.model.dump import Dump, SeenObject, SeenPod
from ipamc.read.dump.kinds import release_of
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.yaml import yaml_documents
from ipamc.review.live.config import AGENT, CONFIG, OPERATOR, ipam_argument

KUBEADM = "kubeadm-config"
CONTROLLER = "kube-controller-manager"
ALLOCATE = "allocate-node-cidrs"

_MINOR = re.compile(r":v?(\d{1,3})\.(\d{1,3})(?=[.@-]|$)").search
_KUBELET = re.compile(r"v?(\d{1,3})\.(\d{1,3})").match
_RELEASE = re.compile(r"(?:^|(?:^|-)cilium-)v?(\d{1,3})\.(\d{1,3})(?=[.-]|$)").search
_HELM = "meta.helm.sh/release-name"
_CALICO_ADDRESS = ("projectcalico.org/IPv4Address", "projectcalico.org/IPv6Address")


class Facts(Struct, frozen=True, kw_only=True, dict=True):
    """What every import asks of a dump, whatever gives its nodes their blocks."""

    config: Mapping[str, str]
    """The keys of ConfigMap cilium-config; none where the dump does not have it."""
    config_at: Span | None
    """Where it is; None: Cilium is not there, or the dump does not have it."""
    namespace: str
    """Of cilium-config."""
    cilium: Version | None
    """The lowest minor that runs, as agents and operators tell."""
    nameless: tuple[str, ...]
    """Images of agents and operators that tell no version, nor do their labels."""
    kubernetes: Version | None
    """The lowest minor of the kubelets."""
    managed_by: ManagedBy | None
    """Helm, where cilium-config says so; None: unknown."""
    operator: tuple[str, ...] | None
    """The words of the operator's command line; None: unknown."""
    controller: Mapping[str, str]
    """The flags of kube-controller-manager, without dashes."""
    managed: Offering | None
    """The managed Kubernetes that it is; None: none that is known."""
    excluded: tuple[DraftRange, ...]
    """The service range, ranges of load balancers, and networks of nodes, where the dump tells."""

    @property
    def mode(self) -> str:
        """Return Cilium's IPAM mode, "" if unknown; not the operator's flag, which agents do not have."""
        return self.config.get("ipam", "")

    @property
    def chained(self) -> str:
        """Return `cni-chaining-mode` where another plugin gives pods their addresses; "": Cilium does."""
        mode = self.config.get("cni-chaining-mode", "")
        return "" if mode in {"none", "portmap"} else mode

    @property
    def routing_mode(self) -> RoutingMode | None:
        """Return `routing-mode`; before 1.14 `tunnel` says it."""
        mode, tunnel = self.config.get("routing-mode", ""), self.config.get("tunnel", "")
        if mode == "native" or (not mode and tunnel == "disabled"):
            return "native"
        return "tunnel" if mode == "tunnel" or tunnel not in {"", "disabled"} else None

    @property
    def native_routing(self) -> Block | None:
        """Return `ipv4-native-routing-cidr`."""
        return next(readable_blocks([self.config.get("ipv4-native-routing-cidr", "")]), None)

    @property
    def bgp(self) -> Bgp:
        """Return who announces blocks: Cilium's control plane, or its MetalLB (before 1.17)."""
        if self.config.get("enable-bgp-control-plane") == "true":
            return "control-plane"
        return "metallb" if self.config.get("bgp-announce-pod-cidr") == "true" else "none"

    @property
    def bystander(self) -> bool:
        """Return whether the operator runs with --ipam=kubernetes, and hands out nothing."""
        return ipam_argument(self.operator or ()) == "kubernetes"

    def blocks(self, key: str) -> tuple[Block, ...]:
        """Return the CIDRs of a key of cilium-config, in its order."""
        return tuple(readable_blocks(re.split(r"[\s,]+", self.config.get(key, "").strip())))

    def number(self, key: str, default: int) -> int:
        """Return the number of a key of cilium-config."""
        text = self.config.get(key, "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else default

    def families(self, dump: Dump) -> tuple[int, ...]:
        """Return the families of the cluster, the primary one first.

        cilium-config says which are on; the Nodes' podCIDRs, or else their addresses, which one is first.
        """
        on = {family for family in (4, 6) if self.config.get(f"enable-ipv{family}", "") == "true"}
        if not on:
            blocks = [block for node in dump.nodes for block in node.pod_cidrs]
            blocks += [block for node in dump.cilium_nodes for block in node.blocks]
            on = {block.family for block in blocks} or {4}
        firsts = [node.pod_cidrs[0].family for node in dump.nodes if node.pod_cidrs]
        firsts += [node.internal_ips[0][0] for node in dump.nodes if node.internal_ips]
        first = next((family for family in firsts if family in on), min(on))
        return (first, *sorted(on - {first}))


def facts_of(dump: Dump) -> Facts:
    """Read the facts of a dump. O(objects)."""
    config = dump.other("ConfigMap", CONFIG)
    deployment = dump.other("Deployment", OPERATOR)
    metadata: Mapping[str, Any] = (config.value.get("metadata") or {}) if config else {}
    programs = list(programs_of(dump))
    running = next((pod.words for pod in dump.pods if pod.app == OPERATOR), None)
    controller = _controller(dump)
    kubelets = [version for node in dump.nodes if (version := _version(_KUBELET(node.kubelet)))]
    return Facts(
        config=texts_of(config.value.get("data")) if config else {},
        config_at=config.at if config else None,
        namespace=(config.namespace if config else "") or "kube-system",
        cilium=min((each.version for each in programs if each.version), default=None),
        nameless=tuple(sorted({each.image for each in programs if each.image and not each.version})),
        kubernetes=min(kubelets, default=None),
        managed_by="helm" if _HELM in (metadata.get("annotations") or {}) else None,
        operator=words_of(deployment) or running,
        controller=controller,
        managed=offering_of(dump),
        excluded=tuple(_excluded(dump, controller)),
    )


class Program(NamedTuple):
    """A pod of Cilium's agent or operator; their DaemonSet or Deployment, where the dump has no such pod."""

    of: SeenPod | SeenObject
    image: str
    version: Version | None
    """By the image's tag, else by labels; None where neither tells."""


def programs_of(dump: Dump) -> Iterator[Program]:
    """Yield what a dump has of Cilium's agents and operators."""
    pods = [pod for pod in dump.pods if pod.app in {AGENT, OPERATOR} and not pod.has_ended]
    for pod in pods:
        yield Program(pod, pod.image, _minor(pod.image, pod.release))
    seen = {pod.app for pod in pods}
    for app, kind in ((AGENT, "DaemonSet"), (OPERATOR, "Deployment")):
        workload = dump.other(kind, app)
        if workload and app not in seen:
            image = next((str(each.get("image") or "") for each in _containers(workload)), "")
            labels = [_at(workload, *keys, "metadata", "labels") for keys in ((), ("spec", "template"))]
            releases = [release_of(texts_of(each)) for each in labels]
            yield Program(workload, image, _minor(image, *releases))


def _minor(image: str, *releases: str) -> Version | None:
    """Return the minor that the tag of an image names, or else a release: `1.18.5`, `cilium-1.18.5`."""
    matches = (_MINOR(image), *map(_RELEASE, releases))
    return next(filter(None, map(_version, matches)), None)


def _version(match: re.Match[str] | None) -> Version | None:
    return (int(match[1]), int(match[2])) if match else None


def texts_of(data: Any) -> dict[str, str]:
    """Return the texts among the entries of a mapping, whose shape nobody checked."""
    items = data.items() if isinstance(data, dict) else ()
    return {key: value for key, value in items if isinstance(value, str)}


def _at(item: SeenObject | None, *keys: str) -> Any:
    """Return what is at a path in an object, whose shape nobody checked; None where nothing is."""
    value: Any = item.value if item else None
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _list(item: SeenObject | None, *keys: str) -> list[Any]:
    value = _at(item, *keys)
    return value if isinstance(value, list) else []


def _containers(workload: SeenObject | None) -> list[Mapping[str, Any]]:
    found = _list(workload, "spec", "template", "spec", "containers")
    return [item for item in found if isinstance(item, dict)]


def words_of(deployment: SeenObject | None) -> tuple[str, ...]:
    """Return the words of the command lines of a Deployment's containers."""
    return tuple(
        word
        for container in _containers(deployment)
        for key in ("command", "args")
        for text in (container.get(key) or () if isinstance(container.get(key), list) else ())
        for word in str(text).split()
    )


def _controller(dump: Dump) -> dict[str, str]:
    """Return flags of kube-controller-manager: of its pods, else of kubeadm's configuration.

    A flag of that configuration may be gone from the manifest, so a pod wins, also without the flag.
    """
    found = dict(_kubeadm_arguments(dump))
    pods = [pod for pod in dump.pods if pod.app in {CONTROLLER, "kube-apiserver"}]
    if any(pod.app == CONTROLLER for pod in pods):
        found = {key: value for key, value in found.items() if key not in {ALLOCATE, "cluster-cidr"}}
    for pod in pods:
        for word in pod.words:
            key, sign, value = word.partition("=")
            if key.startswith("--") and (sign or key[2:] == ALLOCATE):
                found[key[2:]] = value if sign else "true"
    return found


def _kubeadm_arguments(dump: Dump) -> Iterator[tuple[str, str]]:
    """Yield the flags that follow from kubeadm's ClusterConfiguration (v1beta2 to v1beta4)."""
    config = dump.other("ConfigMap", KUBEADM, "kube-system")
    text = texts_of(config.value.get("data")).get("ClusterConfiguration", "") if config else ""
    try:
        value: Any = next((document.value for document in yaml_documents("kubeadm", text)), None)
    except Unreadable:
        return
    if not isinstance(value, dict):
        return
    networking = texts_of(value.get("networking"))
    for key, flag in (("podSubnet", "cluster-cidr"), ("serviceSubnet", "service-cluster-ip-range")):
        if key in networking:
            yield flag, networking[key]
    if networking.get("podSubnet"):
        yield ALLOCATE, "true"  # kubeadm, controlplane/manifests.go
    manager = value.get("controllerManager")
    arguments = manager.get("extraArgs") if isinstance(manager, dict) else None
    if isinstance(arguments, dict):
        yield from ((str(key), str(item)) for key, item in arguments.items())
    elif isinstance(arguments, list):  # v1beta4
        for item in arguments:
            if isinstance(item, dict):
                yield str(item.get("name")), str(item.get("value"))


def _excluded(dump: Dump, controller: Mapping[str, str]) -> Iterator[DraftRange]:
    """Yield what is not for pods, the largest around others first, once each."""
    found: dict[Block, str] = {}
    services = [text.strip() for text in controller.get("service-cluster-ip-range", "").split(",")]
    services += [text for item in dump.of_kind("ServiceCIDR") for text in _list(item, "spec", "cidrs")]
    found |= dict.fromkeys(readable_blocks(services), "services")
    for item in dump.of_kind("CiliumLoadBalancerIPPool"):
        for block in _of_load_balancers(item):
            found.setdefault(block, f"load balancers ({item.name})")
    for node in dump.nodes:
        for key in _CALICO_ADDRESS:
            if network := _network(node.annotations.get(key, "")):
                found.setdefault(network, "nodes")
    for block in outermost(found):
        yield DraftRange(block=block, why=found[block])


def _of_load_balancers(item: SeenObject) -> Iterator[Block]:
    """Yield the blocks of a CiliumLoadBalancerIPPool: CIDRs, or first and last addresses (v2alpha1, v2)."""
    for entry in (*_list(item, "spec", "blocks"), *_list(item, "spec", "cidrs")):
        if not isinstance(entry, dict):
            continue
        yield from readable_blocks([entry.get("cidr", "")])
        texts = [entry.get(key) for key in ("start", "stop")]
        hosts = [f"{text}/{128 if ':' in text else 32}" if isinstance(text, str) else "" for text in texts]
        first, last = (next(readable_blocks([host]), None) for host in hosts)
        last = last or first
        if first and last and first.family == last.family and first.first <= last.first:
            yield from aligned(first.family, first.first, last.first + 1)


def _network(text: str) -> Block | None:
    """Return the network of `192.0.2.7/24`, as calico-node writes a node's own address."""
    try:
        return parse_block(text, pods=False) if text else None
    except CidrError as problem:
        return next(readable_blocks([problem.better] if problem.rule == "host bits" else []), None)
