"""`ipamc/v1alpha1 Cluster`: the cluster, with defaults filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from ipamc.model import cluster
from ipamc.model.acknowledge import Acknowledged
from ipamc.model.admission import Admission
from ipamc.model.bgp import POD_CIDR, POD_IP_POOL, Advert, Advertisement
from ipamc.model.cidr import BITS, Range
from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import since
from ipamc.model.diagnostics import Place
from ipamc.model.selector.label_syntax import dns_label_problem
from ipamc.model.selector.selector import EVERY
from ipamc.model.space import Ask
from ipamc.read import rules
from ipamc.read.kinds.pools import RawLabelSelector, RawSelector, read_label_selector, read_selector
from ipamc.read.values import AnyOf, Metadata, Natural, Own, Positive, Reading, Text, given

_MAJOR_MINOR = re.compile(r"v?([0-9]+)\.([0-9]+)")

VersionText = Annotated[str, Meta(pattern=r"^v?[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]+)?([-+][0-9A-Za-z.+-]*)?$")]
Percent = Annotated[int, Meta(ge=0, le=100)]


class _Masquerade(Own):
    ip_masq_agent: bool = True
    non_masquerade_cidrs: list[str] = field(name="nonMasqueradeCIDRs", default_factory=list)
    address_space: bool = True
    masq_link_local: bool = False
    masq_link_local_ipv6: bool = field(name="masqLinkLocalIPv6", default=False)
    only_masquerade_default_pool: bool = False


class _Cilium(Own):
    version: VersionText
    managed_by: cluster.ManagedBy
    assume: VersionText | UnsetType = UNSET
    namespace: Text = "kube-system"
    routing_mode: cluster.RoutingMode | UnsetType = UNSET
    native_routing_cidr: Text | UnsetType = field(name="nativeRoutingCIDR", default=UNSET)
    cluster_id: Annotated[int, Meta(ge=1, le=511)] | UnsetType = field(name="clusterID", default=UNSET)
    cluster_name: Text | UnsetType = UNSET
    masquerade: _Masquerade | UnsetType = UNSET
    node_selector: str | RawSelector | UnsetType = UNSET


class _Kubernetes(Own):
    version: VersionText


class _Ipam(Own):
    mode: Literal["kubernetes", "cluster-pool", "multi-pool", "crd"]
    operator: cluster.OperatorRole = "bystander"
    pinning: cluster.Pinning | UnsetType = UNSET
    auto_create: list[Text] = field(default_factory=list)


class _Budget(Own):
    leave: Percent = 5


class _Output(Own):
    shard_size: Positive = 250
    node_objects: cluster.NodeObjects = "guarded"


class _Services4(Own):
    from_: Text = field(name="from")
    prefix_length: Annotated[int, Meta(ge=12, le=32)]  # kube-apiserver takes no more than 20 bits


class _Services6(Own):
    from_: Text = field(name="from")
    prefix_length: Annotated[int, Meta(ge=108, le=128)]


class _Services(AnyOf):
    any_of = ("ipv4", "ipv6")
    ipv4: _Services4 | UnsetType = UNSET
    ipv6: _Services6 | UnsetType = UNSET


class _Advertisement(Own):
    name: Text
    labels: Annotated[dict[str, str], Meta(min_length=1)]
    selector: RawLabelSelector | UnsetType = UNSET


class _Acknowledged(Own):
    code: Annotated[str, Meta(pattern=r"^IPC[0-9]{4}$")]
    reason: Text
    pools: list[Text] = field(default_factory=list)
    nodes: str | RawSelector = ""


Context = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9@:._/+-]{0,252}$")]


class RawSpec(Own):
    """`spec`."""

    cilium: _Cilium
    ipam: _Ipam
    kubernetes: _Kubernetes | UnsetType = UNSET
    ip_families: Annotated[list[Literal["IPv4", "IPv6"]], Meta(min_length=1, max_length=2)] = field(
        default_factory=lambda: ["IPv4"]
    )
    excluded_cidrs: list[str] = field(name="excludedCIDRs", default_factory=list)
    services: _Services | UnsetType = UNSET
    unmatched_nodes: cluster.UnmatchedNodes = "error"
    unpooled: cluster.Unpooled = "refuse"
    quarantine_days: Natural | Literal["never"] = 7
    budget: _Budget = field(default_factory=_Budget)
    bgp: cluster.Bgp = "none"
    bgp_advertisements: list[_Advertisement] = field(default_factory=list)
    address_space: str = ""
    context: Context | UnsetType = UNSET
    patch_nodes: cluster.PatchNodes | UnsetType = UNSET
    cloud_routes: Positive | UnsetType = UNSET
    admission: Admission = Admission()
    output: _Output = field(default_factory=_Output)
    acknowledge: list[_Acknowledged] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(set(self.ip_families)) < len(self.ip_families):
            raise ValueError


_NETWORK = {4: (0, 31), 6: (0, 127)}
"""The prefix lengths of a network of several addresses."""


class RawCluster(Own):
    """The document."""

    api_version: str
    kind: str
    metadata: Metadata
    spec: RawSpec


def read_cluster(raw: RawCluster, at: Place, reading: Reading) -> Iterator[cluster.Cluster | Advertisement]:
    """Yield the advertisements that it requests, then the cluster, without pools and nodes so far."""
    spec, cilium, ipam, here = raw.spec, raw.spec.cilium, raw.spec.ipam, at / "spec"
    mode = cluster.Mode(ipam.mode)
    if problem := dns_label_problem(cilium.namespace):
        reading.found.append(
            rules.bad_name(here / "cilium" / "namespace", "a namespace", cilium.namespace, problem)
        )
    native = None
    if not isinstance(cilium.native_routing_cidr, UnsetType):
        place = here / "cilium" / "nativeRoutingCIDR"
        block = reading.block(cilium.native_routing_cidr, place, pods=False, lengths=_NETWORK)
        native = Range(block, place) if block else None
    masquerade = None
    if not isinstance(asked := cilium.masquerade, UnsetType):
        place = here / "cilium" / "masquerade" / "nonMasqueradeCIDRs"
        masquerade = cluster.Masquerade(
            ip_masq_agent=asked.ip_masq_agent,
            non_masquerade=reading.ranges(asked.non_masquerade_cidrs, place, pods=False),
            members=asked.address_space,
            link_local=asked.masq_link_local,
            link_local_6=asked.masq_link_local_ipv6,
            only_default_pool=asked.only_masquerade_default_pool,
        )
    for index, each in enumerate(spec.bgp_advertisements):
        place, pools = here / "bgpAdvertisements" / index, mode is cluster.Mode.MULTI_POOL
        reading.name(each.name, "CiliumBGPAdvertisement", place, "name")
        selector = read_label_selector(each.selector, place / "selector", reading) or EVERY
        advert = Advert(type=POD_IP_POOL if pools else POD_CIDR, selector=selector, at=place)
        yield Advertisement(
            kind="CiliumBGPAdvertisement",
            name=each.name,
            at=place,
            labels=reading.labels(each.labels, place, "labels"),
            adverts=(advert,),
        )
    entries = []
    for number, one in enumerate(spec.acknowledge):
        place = here / "acknowledge" / number
        nodes, names = read_selector(one.nodes, place / "nodes", reading), tuple(one.pools)
        entries.append(Acknowledged(code=one.code, reason=one.reason, pools=names, nodes=nodes, at=place))
    version = _version(cilium.version)
    pinning: cluster.Pinning = "pool" if version >= since(Capability.DEFAULT_IP_POOL) else "none"
    patch: cluster.PatchNodes = "podCIDRs" if mode is cluster.Mode.KUBERNETES else "none"
    yield cluster.Cluster(
        name=raw.metadata.name,
        at=at,
        cilium=version,
        assume=None if isinstance(cilium.assume, UnsetType) else _version(cilium.assume),
        managed_by=cilium.managed_by,
        namespace=cilium.namespace,
        routing_mode=given(cilium.routing_mode, ""),
        native_routing=native,
        cloud_routes=given(spec.cloud_routes, 0),
        masquerade=masquerade,
        runs_on=None
        if isinstance(cilium.node_selector, UnsetType)
        else read_selector(cilium.node_selector, here / "cilium" / "nodeSelector", reading),
        kubernetes=None if isinstance(spec.kubernetes, UnsetType) else _version(spec.kubernetes.version),
        mode=mode,
        operator=ipam.operator,
        pinning=given(ipam.pinning, pinning),
        auto_create=tuple(ipam.auto_create),
        families=tuple({"IPv4": 4, "IPv6": 6}[family] for family in spec.ip_families),
        excluded=reading.ranges(spec.excluded_cidrs, here / "excludedCIDRs", pods=False),
        services=_services(spec.services, here / "services"),
        unmatched_nodes=spec.unmatched_nodes,
        unpooled=spec.unpooled,
        quarantine_days=None if isinstance(spec.quarantine_days, str) else spec.quarantine_days,
        budget_leave=spec.budget.leave,
        bgp=spec.bgp,
        address_space=spec.address_space,
        cluster_id=given(cilium.cluster_id, 0),
        mesh_name=given(cilium.cluster_name, ""),
        context=given(spec.context, ""),
        labels=reading.labels(raw.metadata.labels, at, "metadata", "labels"),
        patch_nodes=given(spec.patch_nodes, patch),
        shard_size=spec.output.shard_size,
        node_objects=spec.output.node_objects,
        admission=spec.admission,
        acknowledges=tuple(entries),
    )


def _services(raw: _Services | UnsetType, at: Place) -> cluster.Pool | None:
    """Return the request of a service network; no pool has its name."""
    if isinstance(raw, UnsetType):
        return None
    families = {}
    for family, part in ((4, raw.ipv4), (6, raw.ipv6)):
        if not isinstance(part, UnsetType):
            here = at / f"ipv{family}"
            ask = Ask(space=part.from_, prefix=part.prefix_length, at=here / "from")
            families[family] = cluster.PoolFamily(
                family=family, ranges=(), block_size=BITS[family], ask=ask, at=here
            )
    return cluster.Pool(name="services", at=at, families=families, selector=EVERY, selector_at=at)


def _version(text: str) -> cluster.Version:
    """Return major and minor. The decoder has checked that the text begins with them."""
    match = _MAJOR_MINOR.match(text)
    return (int(match[1]), int(match[2])) if match else (0, 0)
