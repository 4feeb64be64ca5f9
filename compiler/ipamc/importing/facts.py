"""Facts about a cluster besides its blocks: versions, owner of the flags, addresses that are not for pods."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ipamc.importing import import_rules as rules
from ipamc.importing.draft import DraftRange, PoolRange
from ipamc.model.address_sets import blocks_over, index_around, outermost, shared, subtract
from ipamc.model.cidr import BITS, Block, Odd, OverlapIndex, around, parse_block, read_blocks
from ipamc.model.cilium.flags import HYBRID, arguments, is_true, operator_keys, parse_cidrs
from ipamc.model.cilium.operator_list import CONFIG, HELM
from ipamc.model.cluster import Bgp, ManagedBy, Mode, RoutingMode, Version
from ipamc.model.diagnostics import Diagnostic, Span
from ipamc.model.dump import Dump, Scalar, SeenObject
from ipamc.model.evidence import every_block
from ipamc.model.node import CiliumNode
from ipamc.read.dump.addresses import blocks_in
from ipamc.read.dump.programs import (
    Offering,
    agent_flags,
    controller_flags,
    list_at,
    minor_of_kubelet,
    offering_of,
    operator_of,
    programs_of,
    texts_of,
    value_at,
)
from ipamc.read.dump.shapes import asked
from ipamc.read.rules import unreadable

_CALICO_ADDRESS = ("projectcalico.org/IPv4Address", "projectcalico.org/IPv6Address")


class Facts(Struct, frozen=True, kw_only=True, dict=True):
    """Facts of a dump that every import needs, whatever the source of blocks."""

    config: Mapping[str, str]
    """The keys of ConfigMap cilium-config, if the dump has it, after the operator's arguments."""
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
    found: tuple[Diagnostic, ...]
    """The texts among these that are no addresses."""

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
    def mesh(self) -> Mapping[str, int | str]:
        """Return the cluster's id in ClusterMesh, and its name there; empty for a cluster of none.
        Cilium's default is id 0 with the name "default" (pkg/clustermesh/types/option.go).
        """
        number, name = self.config.get("cluster-id", ""), self.config.get("cluster-name", "")
        if not re.fullmatch(r"[1-9][0-9]{0,2}", number) or int(number) not in range(512):
            return {}
        return {"clusterID": int(number), **({"clusterName": name} if name else {})}

    @property
    def routing_mode(self) -> RoutingMode | None:
        """Return `routing-mode`; before 1.14 from `tunnel`. None also for a mode that no Cluster has."""
        mode, tunnel = self.config.get("routing-mode", ""), self.config.get("tunnel", "")
        if mode == HYBRID:
            return None
        if mode == "native" or (not mode and tunnel == "disabled"):
            return "native"
        return "tunnel" if mode == "tunnel" or tunnel not in {"", "disabled"} else None

    @property
    def bgp(self) -> Bgp:
        """Return the BGP speaker: Cilium's control plane, or its MetalLB (before 1.17)."""
        if is_true(self.config, "enable-bgp-control-plane"):
            return "control-plane"
        return "metallb" if is_true(self.config, "bgp-announce-pod-cidr") else "none"

    @property
    def bystander(self) -> bool:
        """Return whether the operator runs with --ipam=kubernetes, and allocates nothing."""
        return arguments(self.operator or ()).get("ipam") == "kubernetes"

    def blocks(self, key: str) -> tuple[Block, ...]:
        """Return the CIDRs of a key of cilium-config, in its order."""
        return tuple(dict.fromkeys(parse_cidrs(self.config.get(key, ""))[0]))

    def families(self, dump: Dump) -> tuple[int, ...]:
        """Return the enabled families, the primary one first: that of podCIDRs, or else of addresses."""
        flags = {"enable-ipv4": "true", **self.config} if "enable-ipv6" in self.config else self.config
        on = {family for family in (4, 6) if is_true(flags, f"enable-ipv{family}")}
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
    metadata: Mapping[str, Any] = (config.value.get("metadata") or {}) if config else {}
    programs = list(programs_of(dump))
    _, words = operator_of(dump)
    found: list[Diagnostic] = []
    controller = controller_flags(dump)
    return Facts(
        config={**texts_of(config.value.get("data")), **agent_flags(dump), **operator_keys(words)}
        if config
        else {},
        config_at=config.at if config else None,
        namespace=(config.namespace if config else "") or "kube-system",
        cilium=min((each.version for each in programs if each.version), default=None),
        nameless=tuple(sorted({each.image for each in programs if each.image and not each.version})),
        kubernetes=min(filter(None, (minor_of_kubelet(node.kubelet) for node in dump.nodes)), default=None),
        managed_by="helm" if HELM in (metadata.get("annotations") or {}) else None,
        operator=words or None,
        controller=controller,
        managed=offering_of(dump),
        excluded=tuple(_excluded(dump, controller, found)),
        found=tuple(found),
    )


def cidr_of(item: SeenObject, text: str, notes: list[Diagnostic], *, pods: bool = True) -> Block:
    """Return a CIDR of an object as Go reads it; add to `notes` what it reads otherwise. Raises CidrError."""
    odd = [one for one in read_blocks([text])[1] if one.block]
    notes += [unreadable(item.at, f"{item.kind} {item.name}", odd)] if odd else []
    return parse_block(str(odd[0].block) if odd else text, pods=pods)


def askers(dump: Dump) -> Iterator[tuple[str, Span, Mapping[str, str]]]:
    """Yield words, place and annotations of pods and namespaces that ask for a pool or an address."""
    for pod in dump.pods:
        if pod.asks and not pod.has_ended:
            yield f"pod {pod.namespace}/{pod.name}", pod.at, pod.asks
    for item in dump.of_kind("Namespace"):
        yield f"namespace {item.name}", item.at, asked(texts_of(value_at(item, "metadata", "annotations")))


def _excluded(dump: Dump, controller: Mapping[str, str], notes: list[Diagnostic]) -> Iterator[DraftRange]:
    """Yield CIDRs that are not for pods, larger ones before those inside them, once each; add to `notes`."""
    services = parse_cidrs(controller.get("service-cluster-ip-range", ""))[0]
    found = {block: DraftRange(block=block, why="services") for block in services}
    for item in dump.of_kind(*_NETWORKS):
        why, read = _NETWORKS[item.kind].format(item.name), _networks_of(item)
        for block in read[0]:
            found.setdefault(block, DraftRange(block=block, why=why, at=item.at, kind=item.kind))
        notes += [unreadable(item.at, f"{item.kind} {item.name}", read[1])] if read[1] else []
    for node in dump.nodes:
        for key in _CALICO_ADDRESS:
            blocks, odd = read_blocks(filter(None, [node.annotations.get(key)]))
            for block in blocks:  # as calico-node writes a node's own address: 192.0.2.7/24
                found.setdefault(block, DraftRange(block=block, why="nodes", at=node.at, kind="Node"))
            odd = [one for one in odd if not one.block]
            notes += [unreadable(node.at, f"Node {node.name}", odd)] if odd else []
    yield from (found[block] for block in outermost(found))


RESOURCE_POOL = "CiliumResourceIPPool"
_NETWORKS = {
    "ServiceCIDR": "services",
    "CiliumLoadBalancerIPPool": "load balancers ({})",
    RESOURCE_POOL: "devices ({})",
}
"""By kind: whose its addresses are. Devices of DRA have them from Cilium's main branch, later than 1.20."""
_CIDRS = ("blocks",), ("cidrs",), ("ipv4", "cidrs"), ("ipv6", "cidrs")


def _networks_of(item: SeenObject) -> tuple[list[Block], list[Odd]]:
    """Read the CIDRs, or first and last addresses, of an object of `_NETWORKS` in any version."""
    good, odd = list[Block](), list[Odd]()
    for entry in (entry for keys in _CIDRS for entry in list_at(item.value, "spec", *keys)):
        keys = ("cidr", "start", "stop")
        cidr, first, last = [entry.get(key) for key in keys] if isinstance(entry, dict) else (entry, "", "")
        if cidr or not first:
            both = read_blocks([cidr])
            good, odd = good + both[0], odd + both[1]
            continue
        run = f"{first}-{last or first}"
        blocks = list(blocks_in(run))
        good, odd = good + blocks, odd + ([] if blocks else [Odd(run)])
    return good, odd


def _apart(dump: Dump, calico: Iterable[tuple[str, Block]]) -> Iterator[DraftRange]:
    """Yield what nodes have that run no Cilium: podCIDRs, blocks of `calico`, addresses of pods."""
    apart = {node.name: node for node in dump.apart}
    found = [(node.name, block) for node in dump.apart for block in node.pod_cidrs]
    found += [pair for pair in calico if pair[0] in apart]
    found += [(name, Block(*ip, BITS[ip[0]])) for name in apart for ip in dump.in_use.get(name, ())]
    for name, block in found:
        why, at = f"node {name}, which does not run Cilium", apart[name].at
        yield DraftRange(block=block, why=why, at=at, kind="Node without Cilium")


def keeps(dump: Dump, mode: Mode) -> bool:
    """Return whether a cluster of `mode` keeps blocks of the IPAM mode that runs, if that is known.
    Of modes that ipamc does not have only the podCIDRs of `cluster-pool-v2beta` (1.12 to 1.14) are kept.
    """
    config = dump.other("ConfigMap", CONFIG)
    ipam = {**texts_of(value_at(config, "data")), **agent_flags(dump)}.get("ipam", "") if config else ""
    return ipam in {"", *Mode} or (ipam == "cluster-pool-v2beta" and mode.one_block)


def with_kept(dump: Dump, mode: Mode, known: Iterable[tuple[str, Block]] = ()) -> Dump:
    """Return a dump whose CiliumNodes show no blocks if a cluster of `mode` keeps none.
    Blocks inside `known` ones of their node stay: an edit of cilium-config by hand takes no block from it.
    Their fields do not tell: in ENI mode of 1.20 `pools.allocated` has /32 and /28 of subnets, in a pool that
    is no object (cilium/cilium#45110, #45154).
    """
    if keeps(dump, mode):
        return dump
    of_node: dict[str, list[Block]] = defaultdict(list)
    for node, block in known:
        of_node[node].append(block)

    def kept(seen: CiliumNode) -> CiliumNode:
        def has(block: Block) -> bool:
            return any(around.contains(block) for around in of_node.get(seen.name, ()))

        blocks, addresses = (tuple(filter(has, some)) for some in (seen.blocks, seen.addresses))
        allocated = tuple([pair for pair in seen.allocated if has(pair[0])])
        return replace(seen, blocks=blocks, addresses=addresses, allocated=allocated)

    return replace(dump, cilium_nodes=tuple(map(kept, dump.cilium_nodes)))


class Account(Struct, frozen=True, kw_only=True):
    """The addresses in ranges of pools that are not for pods."""

    reserved: Mapping[str, Mapping[Block, str]]  # by pool: what to reserve, over no block of a node, and why
    inside: frozenset[Block]  # known networks of others that share addresses with a range, as a whole
    findings: tuple[Diagnostic, ...]


def account(
    dump: Dump,
    ranges: Iterable[PoolRange],
    held: Iterable[Block],
    others: Iterable[DraftRange],
    kept: Iterable[Block],
    judged: Container[str] = ("ClusterCIDR",),
) -> Account:
    """Account for the addresses in ranges of pools. O(n log n).
    `held` are blocks of nodes besides those that the dump shows, `others` known networks besides those of its
    `scalars`, `kept` what no pool gives out, and `judged` kinds that have rules of their own. A scalar is
    explained if it is in one of these or an address of a node, or if it is a range or around one: it may be
    the network of all pods.
    """
    shown = [block for seen in dump.cilium_nodes for block in every_block(seen)]
    calico = [(each.host, each.block) for each in dump.calico_blocks]
    calico += [(each.host, each.block) for each in dump.affinities]
    apart = list(_apart(dump, calico))
    shown += {block for _, block in calico} - {item.block for item in apart}
    taken, index = outermost([*held, *shown]), OverlapIndex(ranges, attrgetter("block"))
    safe = outermost([*kept, *(Block(*ip, BITS[ip[0]]) for node in dump.nodes for ip in node.internal_ips)])
    known, unknown = [*others, *apart], list[tuple[Scalar, tuple[Block, ...], PoolRange]]()
    for scalar in dump.scalars:
        mine = scalar.kind == "Node"  # Cilium's router has an address in a block
        blocks = (block for block in scalar.blocks if not mine or index_around(taken, block) is None)
        over = [(block, part) for block in blocks for part in index.over(block)]
        narrow = tuple([block for block, part in over if not block.contains(part.block)])
        if scalar.owner and len(narrow) == len(over):
            why, at, kind = scalar.owner, scalar.at, scalar.kind
            known += (DraftRange(block=block, why=why, at=at, kind=kind) for block in narrow)
        elif scalar.kind not in judged and (narrow or (over and scalar.owner)):
            unknown.append((scalar, narrow, over[0][1]))
    found: dict[tuple[str, str], tuple[PoolRange, list[DraftRange]]] = {}
    free: dict[tuple[str, str, Block], list[Block]] = defaultdict(list)
    inside = set()
    for item in known:
        for part in index.over(item.block):
            inside.add(item.block)
            block = shared(item.block, part.block)
            rest = list(subtract(block, [*blocks_over(taken, block), *blocks_over(safe, block)]))
            if rest or index_around(safe, block) is None:
                found.setdefault((part.pool, item.kind or item.why), (part, []))[1].append(item)
            for one in rest:
                free[part.pool, item.why, one.widened(part.size)].append(one)
    reserved: dict[str, dict[Block, str]] = defaultdict(dict)
    for (pool, why, _), some in free.items():
        whole = around(some[0].family, min(some).first, max(block.last for block in some))
        for block in some if blocks_over(taken, whole) else [whole]:
            reserved[pool].setdefault(block, why)
    pods = [Block(*ip, BITS[ip[0]]) for pod in dump.pods for ip in pod.addresses] if unknown else []
    explained = outermost([*taken, *safe, *pods, *(item.block for item in known)])
    by_kind: dict[str, tuple[list[Scalar], PoolRange]] = {}
    for scalar, narrow, part in unknown:
        if scalar.owner or any(index_around(explained, block) is None for block in narrow):
            by_kind.setdefault(scalar.kind, ([], part))[0].append(scalar)
    insides = (
        rules.inside_pool(dump, items, part, reserved.get(part.pool, {})) for part, items in found.values()
    )
    strange = rules.unaccounted(dump, [by_kind[kind] for kind in sorted(by_kind)])
    return Account(reserved=reserved, inside=frozenset(inside), findings=(*insides, *strange))
