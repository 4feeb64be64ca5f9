"""Nodes: `ipamc/v1alpha1 NodeInventory`, `v1 Node` as kubectl prints it, `cilium.io/v2 CiliumNode`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from msgspec import UNSET, UnsetType, field

from ipamc.model.address_sets import aggregated
from ipamc.model.cidr import BITS, Block, no_cidrs
from ipamc.model.diagnostics import At, Place
from ipamc.model.limits import LARGEST_CLUSTER, LONGEST_SUBDOMAIN
from ipamc.model.node import CiliumNode, Node, NodeGroup
from ipamc.model.progress import track
from ipamc.model.selector.label_syntax import subdomain_problem
from ipamc.read import node_names, rules
from ipamc.read.syntax.document import Keys
from ipamc.read.values import Foreign, ForeignMetadata, Natural, Own, Positive, Reading, Text, Values


class _Entry(Own, gc=False):
    """A node, or with `names` several planned nodes."""

    name: Text | UnsetType = UNSET
    names: Text | UnsetType = UNSET
    maximum: Positive | UnsetType = UNSET
    labels: dict[str, str] = field(default_factory=dict)
    uid: str = ""
    pod_cidrs: list[str] = field(name="podCIDRs", default_factory=list)
    max_pods: Natural = 0
    planned: bool = False
    running: bool = False
    pod_ips: list[str] = field(name="podIPs", default_factory=list)
    internal_ips: list[str] = field(name="internalIPs", default_factory=list)

    def __post_init__(self) -> None:
        if self.name is UNSET and self.names is UNSET:
            raise ValueError


class IgnoredMetadata(Own):
    """`metadata`, which ipamc ignores."""

    name: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class RawInventory(Own):
    """The document."""

    api_version: str
    kind: str
    nodes: list[_Entry]
    metadata: IgnoredMetadata | UnsetType = UNSET


def read_inventory(raw: RawInventory, at: Place, reading: Reading) -> Iterator[Node | NodeGroup]:
    """Yield nodes in their order, a group before its nodes. Names and labels are checked together; if one is
    bad, one by one. Nodes of one pattern share labels and place, so that 100,000 take little memory.
    """
    path, document, keys, entries = at.path, at.document, (*at.keys, "nodes"), raw.nodes
    several = {
        index: _expanded(entry.names, entry, Place(path, document, (*keys, index)), reading)
        for index, entry in enumerate(entries)
        if entry.names is not UNSET
    }
    single = [entry.name for entry in entries if entry.name is not UNSET]
    sound = reading.sound([*single, *chain(*several.values())], [entry.labels for entry in entries])
    for index, entry in enumerate(track(entries, "reading", "nodes")):
        here = Place(path, document, (*keys, index))
        if not sound:
            reading.labels(entry.labels, here, "labels")
        if entry.name is UNSET or index in several:
            pattern, labels, most, names = str(entry.names), entry.labels, entry.max_pods, several[index]
            every = [Node(name, labels, here, "", (), most, planned=True, pattern=pattern) for name in names]
            if every and entry.maximum is not UNSET:
                some = node_names.size(node_names.parse(pattern))
                every, more = every[:some], tuple(every[some:])
                yield NodeGroup(pattern, entry.maximum, labels, most, here, more)
            yield from every
            continue
        if entry.maximum is not UNSET:
            problem, fix = "maximum needs names, which this entry lacks", "remove it, or add names"
            reading.found.append(rules.names_syntax(here / "maximum", problem, fix))
        if not sound:
            reading.name(entry.name, "node", here, "name")
        yield Node(
            entry.name,
            entry.labels,
            here,
            entry.uid,
            reading.blocks(entry.pod_cidrs, here, "podCIDRs") if entry.pod_cidrs else (),
            entry.max_pods,
            entry.planned,
            internal_ips=reading.addresses(
                [(ip, ("internalIPs", n)) for n, ip in enumerate(entry.internal_ips)], here
            )
            if entry.internal_ips
            else (),
            ready=entry.running,
            pod_ips=reading.addresses([(ip, ("podIPs", n)) for n, ip in enumerate(entry.pod_ips)], here)
            if entry.pod_ips
            else (),
        )


def _expanded(pattern: str, entry: _Entry, at: Place, reading: Reading) -> Sequence[str]:
    """Return the names of a pattern up to its maximum; none, and a report, if something is wrong."""
    found = reading.found
    given: Mapping[str, object] = {
        "name": entry.name is not UNSET,
        "uid": entry.uid,
        "podCIDRs": entry.pod_cidrs,
        "running": entry.running,
        "podIPs": entry.pod_ips,
        "internalIPs": entry.internal_ips,
    }
    of_one = [Place(at.path, at.document, (*at.keys, key), key=True) for key, on in given.items() if on]
    if of_one or not entry.planned:
        found.append(rules.not_planned_names(at / "names", of_one))
        return ()
    at /= "names"
    try:
        parts = node_names.parse(pattern)
        parts = parts if entry.maximum is UNSET else node_names.up_to(parts, entry.maximum)
    except node_names.PatternError as wrong:
        here = Place(at.path, at.document, at.keys, offset=wrong.offset)
        found.append(rules.names_syntax(here, wrong.problem, wrong.better))
        return ()
    if node_names.longest(parts) > LONGEST_SUBDOMAIN:  # before the names take memory
        found.append(rules.names_syntax(at, f"a name has more than {LONGEST_SUBDOMAIN} characters", ""))
        return ()
    number = node_names.size(parts)
    total = reading.names + number
    if total > LARGEST_CLUSTER:
        found.append(rules.too_many_names(at, number, total, LARGEST_CLUSTER))
        return ()
    reading.names = total
    names = node_names.names(parts)
    if bad := next(((name, problem) for name in names if (problem := subdomain_problem(name))), None):
        found.append(rules.bad_name(at, rules.NODE_NAME, *bad))
        return ()
    return names


OF_CILIUM = ("network.cilium.io/", "io.cilium.network.")
"""Prefixes of annotations that agents write to Nodes, from 1.13 on, and before."""
POD_CIDR = "-pod-cidr"
"""The suffix of annotations with a node's block, in every version of Cilium."""
_OF_NETWORKS = ("cilium.io", "io.cilium", "projectcalico.org")
"""Parts of the keys of annotations that Cilium and Calico write."""
_PODS = re.compile(r"\+?([0-9]{1,9})(k?)").fullmatch


class RawSpec(Foreign):
    """`spec`: the CIDRs that a pod network may have set."""

    pod_cidr: str | None = field(name="podCIDR", default=None)
    pod_cidrs: list[str] | None = field(name="podCIDRs", default=None)


class _Address(Foreign):
    type: str | None = None
    address: str | None = None


class RawAmounts(Foreign):
    """`status.allocatable` and `status.capacity`."""

    pods: str | int | None = None


class RawCondition(Foreign):
    """An entry of `status.conditions`."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None


class RawStatus(Foreign):
    """`status`, as the kubelet reports it."""

    conditions: list[RawCondition] | None = None
    addresses: list[_Address] | None = None
    allocatable: RawAmounts | None = None
    capacity: RawAmounts | None = None


class RawMetadata(ForeignMetadata):
    """`metadata`, with the annotations, of which only the keys are used."""

    annotations: dict[str, object] | None = None


class RawNode(Foreign):
    """The document."""

    metadata: RawMetadata
    spec: RawSpec | None = None
    status: RawStatus | None = None


def read_node(raw: RawNode, at: At, values: Values) -> Iterator[Node]:
    """Yield the node. A node that is being deleted still counts: it holds its block until it is gone.
    Where Cilium's agent ran, the agent sets annotations (pkg/k8s/init.go, pkg/annotation, 1.12 to 1.20), and
    the operator the condition NetworkUnavailable with reason CiliumIsUp (operator/watchers/node_taint.go).
    """
    metadata, spec, status = raw.metadata, raw.spec or RawSpec(), raw.status or RawStatus()
    values.name(metadata.name, "node", at, "metadata", "name")
    cidrs, field_name = spec.pod_cidrs or [], "podCIDRs"
    if spec.pod_cidr and spec.pod_cidr not in cidrs[:1]:
        values.blocks(cidrs, at, "spec", field_name)  # reported if they cannot be read
        cidrs, field_name = [spec.pod_cidr], "podCIDR"  # overrides the list (apis/core/v1/conversion.go)
    conditions = status.conditions or ()
    annotations = {
        key: value if isinstance(value, str) else ""
        for key, value in (metadata.annotations or {}).items()
        if any(part in key for part in _OF_NETWORKS)
    }
    of_cilium = [key for key in sorted(annotations) if key.startswith(OF_CILIUM)]
    given = [annotations[key] for key in of_cilium if key.endswith(POD_CIDR)]
    internal = [
        (entry.address or "null", ("status", "addresses", index, "address"))
        for index, entry in enumerate(status.addresses or ())
        if entry.type == "InternalIP"
    ]
    pod_cidrs = values.blocks(cidrs, at, "spec", field_name) if cidrs else ()
    yield Node(
        name=values.text(metadata.name),
        labels=values.labels(metadata.labels, at, "metadata", "labels"),
        at=at,
        uid=metadata.uid or "",
        pod_cidrs=pod_cidrs,
        max_pods=pods(status.allocatable) or pods(status.capacity),
        internal_ips=values.addresses(internal, at),
        annotated=values.blocks(given, at, "metadata", "annotations") if given else (),
        live=True,
        ready=any(condition.type == "Ready" and condition.status == "True" for condition in conditions),
        agent_ran=bool(of_cilium) or any(condition.reason == "CiliumIsUp" for condition in conditions),
        annotations=annotations,
        deleting=bool(metadata.deletion_timestamp),
        unreadable=no_cidrs(cidrs) if len(pod_cidrs) < len(cidrs) else (),
    )


def pods(amounts: RawAmounts | None) -> int:
    """Return a number of pods, from a number or a text; 0 for any other spelling."""
    match = _PODS(str(amounts.pods)) if amounts and amounts.pods is not None else None
    return int(match[1]) * (1000 if match[2] else 1) if match else 0


class _Allocation(Foreign):
    pool: str
    cidrs: list[str] | None = None


class _Needed(Foreign):
    ipv4_addrs: int | None = field(name="ipv4-addrs", default=None)
    ipv6_addrs: int | None = field(name="ipv6-addrs", default=None)


class _Request(Foreign):
    pool: str
    needed: _Needed | None = None


class _Pools(Foreign):
    allocated: list[_Allocation] | None = None
    requested: list[_Request] | None = None


class _Ipam(Foreign):
    pod_cidrs: list[str] | None = field(name="podCIDRs", default=None)
    pools: _Pools | None = None
    pool: dict[str, object] | None = None
    """crd mode: single addresses, as keys."""


class _CiliumAddress(Foreign):
    type: str | None = None
    ip: str | None = None


class Families(Foreign):
    """Addresses by family: Cilium's own on a node, or those of a CiliumEndpoint."""

    ipv4: str | None = None
    ipv6: str | None = None


class RawCiliumSpec(Foreign):
    """`spec`."""

    ipam: _Ipam | None = None
    addresses: list[_CiliumAddress] | None = None
    health: Families | None = None
    ingress: Families | None = None


class _Owner(Foreign):
    kind: str | None = None
    uid: str | None = None


class _CiliumMetadata(ForeignMetadata):
    owner_references: list[_Owner] | None = None


class _OperatorStatus(Foreign):
    error: str | None = None


class _IpamStatus(Foreign):
    operator_status: _OperatorStatus | None = field(name="operator-status", default=None)
    used: dict[str, object] | None = None


class RawCiliumStatus(Foreign):
    """`status`."""

    ipam: _IpamStatus | None = None


class RawCiliumNode(Foreign):
    """The document."""

    metadata: _CiliumMetadata
    spec: RawCiliumSpec | None = None
    status: RawCiliumStatus | None = None


def read_cilium_node(raw: RawCiliumNode, at: At, values: Values) -> Iterator[CiliumNode]:
    """Yield the CiliumNode with its blocks in the order of the document, without duplicates."""
    metadata, spec = raw.metadata, raw.spec or RawCiliumSpec()
    values.name(metadata.name, "CiliumNode", at, "metadata", "name")
    ipam, status = spec.ipam or _Ipam(), (raw.status or RawCiliumStatus()).ipam or _IpamStatus()
    pools = ipam.pools or _Pools()
    here: Keys = ("spec", "ipam")
    allocated = [
        (block, values.text(entry.pool))
        for index, entry in enumerate(pools.allocated or ())
        for block in values.blocks(entry.cidrs or (), at, *here, "pools", "allocated", index, "cidrs")
    ]
    requested = [
        (values.text(entry.pool), needed.ipv4_addrs or 0, needed.ipv6_addrs or 0)
        for entry in pools.requested or ()
        for needed in (entry.needed or _Needed(),)
    ]
    single = values.addresses([(text, (*here, "pool", text)) for text in ipam.pool or ()], at)
    of_type: dict[str | None, list[tuple[str | None, Keys]]] = {}
    for index, entry in enumerate(spec.addresses or ()):
        of_type.setdefault(entry.type, []).append((entry.ip, ("spec", "addresses", index, "ip")))
    health = [
        (text, ("spec", name, key))
        for name, part in (("health", spec.health), ("ingress", spec.ingress))
        for key, text in ((("ipv4", part.ipv4), ("ipv6", part.ipv6)) if part else ())
    ]
    owners = [owner.uid for owner in metadata.owner_references or () if owner.kind == "Node" and owner.uid]
    blocks = values.blocks(ipam.pod_cidrs or (), at, *here, "podCIDRs")
    yield CiliumNode(
        name=values.text(metadata.name),
        at=at,
        blocks=tuple(dict.fromkeys(blocks)),
        allocated=tuple(dict.fromkeys(allocated)),
        requested=tuple(requested),
        addresses=tuple(aggregated([Block(family, first, BITS[family]) for family, first in single])),
        used=values.addresses([(text, ("status", "ipam", "used", text)) for text in status.used or ()], at),
        internal_ips=values.addresses(of_type.get("CiliumInternalIP", ()), at),
        health_ips=values.addresses(health, at),
        node_ips=values.addresses(of_type.get("InternalIP", ()), at),
        owner_uid=owners[0] if owners else "",
        error=(status.operator_status or _OperatorStatus()).error or "",
        deleting=bool(metadata.deletion_timestamp),
        unreadable=_unreadable(ipam, len(blocks) + len(allocated) + len(single)),
    )


def _unreadable(ipam: _Ipam, read: int) -> tuple[tuple[str, str], ...]:
    """Return the texts of blocks that are no CIDR, with their pools. `read` is the number of the others."""
    texts = [(text, "") for text in ipam.pod_cidrs or ()]
    for entry in ipam.pools.allocated or () if ipam.pools else ():
        texts += ((text, entry.pool) for text in entry.cidrs or ())
    texts += ((f"{text}/{BITS[6 if ':' in text else 4]}", "") for text in ipam.pool or ())
    odd = no_cidrs(text for text, _ in texts) if read < len(texts) else ()
    return tuple(pair for pair in texts if pair[0] in odd)
