"""Facts about a cluster besides its blocks: versions, owner of the flags, ranges not for pods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from ipamc.importing.draft import DraftRange
from ipamc.model.address_sets import aligned, outermost
from ipamc.model.cidr import Block, CidrError, parse_block, readable_blocks
from ipamc.model.cilium.operator_list import CONFIG, OPERATOR, ipam_argument
from ipamc.model.cluster import Bgp, ManagedBy, RoutingMode, Version
from ipamc.model.diagnostics import Span
from ipamc.model.dump import Dump, SeenObject
from ipamc.read.dump.managed import Offering, offering_of
from ipamc.read.dump.programs import (
    controller_flags,
    list_at,
    minor_of_kubelet,
    programs_of,
    texts_of,
    words_of,
)

_HELM = "meta.helm.sh/release-name"
_CALICO_ADDRESS = ("projectcalico.org/IPv4Address", "projectcalico.org/IPv6Address")


class Facts(Struct, frozen=True, kw_only=True, dict=True):
    """Facts of a dump that every import needs, whatever the source of blocks."""

    config: Mapping[str, str]  # the keys of ConfigMap cilium-config; empty if the dump does not have it
    config_at: Span | None  # its place; None: there is no Cilium, or the dump does not have it
    namespace: str  # the namespace of cilium-config
    cilium: Version | None  # the lowest minor of running agents and operators
    nameless: tuple[str, ...]  # images of agents and operators without a version in tag or labels
    kubernetes: Version | None  # the lowest minor of the kubelets
    managed_by: ManagedBy | None  # Helm, if cilium-config says so; None: unknown
    operator: tuple[str, ...] | None  # the operator's arguments; None: unknown
    controller: Mapping[str, str]  # the flags of kube-controller-manager, without dashes
    managed: Offering | None  # the managed Kubernetes; None: no known one
    excluded: tuple[DraftRange, ...]
    """The service range, ranges of load balancers, and networks of nodes, as far as the dump has them."""

    @property
    def mode(self) -> str:
        """Return Cilium's IPAM mode, "" if unknown; not the operator's flag, which agents do not have."""
        return self.config.get("ipam", "")

    @property
    def chained(self) -> str:
        """Return `cni-chaining-mode` if another plugin gives pods their addresses; "": Cilium does."""
        mode = self.config.get("cni-chaining-mode", "")
        return "" if mode in {"none", "portmap"} else mode

    @property
    def routing_mode(self) -> RoutingMode | None:
        """Return `routing-mode`; before 1.14 from `tunnel`."""
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
        """Return the BGP speaker: Cilium's control plane, or its MetalLB (before 1.17)."""
        if self.config.get("enable-bgp-control-plane") == "true":
            return "control-plane"
        return "metallb" if self.config.get("bgp-announce-pod-cidr") == "true" else "none"

    @property
    def bystander(self) -> bool:
        """Return whether the operator runs with --ipam=kubernetes, and allocates nothing."""
        return ipam_argument(self.operator or ()) == "kubernetes"

    def blocks(self, key: str) -> tuple[Block, ...]:
        """Return the CIDRs of a key of cilium-config, in its order."""
        return tuple(readable_blocks(re.split(r"[\s,]+", self.config.get(key, "").strip())))

    def number(self, key: str, default: int) -> int:
        """Return the number of a key of cilium-config."""
        text = self.config.get(key, "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else default

    def families(self, dump: Dump) -> tuple[int, ...]:
        """Return the enabled families, the primary one first: that of podCIDRs, or else of addresses."""
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
    controller = controller_flags(dump)
    return Facts(
        config=texts_of(config.value.get("data")) if config else {},
        config_at=config.at if config else None,
        namespace=(config.namespace if config else "") or "kube-system",
        cilium=min((each.version for each in programs if each.version), default=None),
        nameless=tuple(sorted({each.image for each in programs if each.image and not each.version})),
        kubernetes=min(filter(None, (minor_of_kubelet(node.kubelet) for node in dump.nodes)), default=None),
        managed_by="helm" if _HELM in (metadata.get("annotations") or {}) else None,
        operator=words_of(deployment.value if deployment else None) or running,
        controller=controller,
        managed=offering_of(dump),
        excluded=tuple(_excluded(dump, controller)),
    )


def _excluded(dump: Dump, controller: Mapping[str, str]) -> Iterator[DraftRange]:
    """Yield CIDRs that are not for pods, larger ones before those inside them, once each."""
    services = [text.strip() for text in controller.get("service-cluster-ip-range", "").split(",")]
    services += (cidr for item in dump.of_kind("ServiceCIDR") for cidr in list_at(item, "spec", "cidrs"))
    found = dict.fromkeys(readable_blocks(services), "services")
    for item in dump.of_kind("CiliumLoadBalancerIPPool"):
        for block in _of_load_balancers(item):
            found.setdefault(block, f"load balancers ({item.name})")
    for node in dump.nodes:
        for key in _CALICO_ADDRESS:
            if network := _network(node.annotations.get(key, "")):
                found.setdefault(network, "nodes")
    yield from (DraftRange(block=block, why=found[block]) for block in outermost(found))


def _of_load_balancers(item: SeenObject) -> Iterator[Block]:
    """Yield the blocks of a CiliumLoadBalancerIPPool: CIDRs, or first and last addresses (v2alpha1, v2)."""
    for entry in (*list_at(item, "spec", "blocks"), *list_at(item, "spec", "cidrs")):
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
    """Return the network of `192.0.2.7/24`, the form in which calico-node writes a node's own address."""
    try:
        return parse_block(text, pods=False) if text else None
    except CidrError as problem:
        return next(readable_blocks([problem.better] if problem.rule == "host bits" else []), None)
