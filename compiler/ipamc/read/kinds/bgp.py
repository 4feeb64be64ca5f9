"""`cilium.io` kinds of the BGP control plane, with which a rendered advertisement is compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import field

from ipamc.model import bgp
from ipamc.model.diagnostics import Place
from ipamc.model.selector.selector import EVERY, Selector, parse_label_selector
from ipamc.read.values import Foreign, ForeignMetadata, Reading

_FAMILIES = {"ipv4": 4, "ipv6": 6}
Object = dict[str, Any]


class _Document(Foreign):
    metadata: ForeignMetadata
    api_version: str = ""

    def head(self, kind: str, at: Place) -> dict[str, Any]:
        """Return the fields that all objects of the model have."""
        return {"kind": kind, "name": self.metadata.name, "at": at, "api_version": self.api_version}


class _Advert(Foreign):
    advertisement_type: str
    selector: Object | None = None


class _AdvertisementSpec(Foreign):
    advertisements: list[_Advert] | None = None


class RawAdvertisement(_Document, kw_only=True):
    """The document."""

    spec: _AdvertisementSpec


class _PeerFamily(Foreign):
    afi: str
    safi: str = "unicast"
    advertisements: Object | None = None


class _PeerConfigSpec(Foreign):
    families: list[_PeerFamily] | None = None


class RawPeerConfig(_Document, kw_only=True):
    """The document."""

    spec: _PeerConfigSpec


class _Reference(Foreign):
    name: str


class _Peer(Foreign):
    name: str
    peer_address: str | None = None
    peer_config_ref: _Reference | None = None


class _Instance(Foreign):
    peers: list[_Peer] | None = None


class _ClusterSpec(Foreign):
    node_selector: Object | None = None
    bgp_instances: list[_Instance] | None = field(name="bgpInstances", default=None)


class RawClusterConfig(_Document, kw_only=True):
    """The document."""

    spec: _ClusterSpec


class _Override(Foreign):
    name: str
    router_id: str | None = field(name="routerID", default=None)
    local_port: int | None = None
    local_asn: int | None = field(name="localASN", default=None)


class _OverrideSpec(Foreign):
    bgp_instances: list[_Override] | None = field(name="bgpInstances", default=None)


class RawOverride(_Document, kw_only=True):
    """The document."""

    spec: _OverrideSpec


class _Router(Foreign):
    export_pod_cidr: bool | None = field(name="exportPodCIDR", default=None)
    pod_ip_pool_selector: Object | None = field(name="podIPPoolSelector", default=None)


class _PolicySpec(Foreign):
    node_selector: Object | None = None
    virtual_routers: list[_Router] | None = None


class RawPeeringPolicy(_Document, kw_only=True):
    """The document."""

    spec: _PolicySpec


def read_advertisement(raw: RawAdvertisement, at: Place, reading: Reading) -> Iterator[bgp.Advertisement]:
    """Yield the advertisement, with the entries of all types."""
    here = at / "spec" / "advertisements"
    yield bgp.Advertisement(
        **raw.head("CiliumBGPAdvertisement", at),
        labels=reading.labels(raw.metadata.labels, at, "metadata", "labels"),
        adverts=tuple(
            bgp.Advert(
                type=each.advertisement_type,
                selector=_selector(each.selector, here / index / "selector", reading),
                at=here / index,
            )
            for index, each in enumerate(raw.spec.advertisements or ())
        ),
    )


def read_peer_config(raw: RawPeerConfig, at: Place, reading: Reading) -> Iterator[bgp.PeerConfig]:
    """Yield a peer's families that apply to prefixes of pools."""
    here = at / "spec" / "families"
    yield bgp.PeerConfig(
        **raw.head("CiliumBGPPeerConfig", at),
        families=tuple(
            bgp.PeerFamily(
                family=_FAMILIES[each.afi],
                selector=_selector(each.advertisements, here / index / "advertisements", reading),
                at=here / index,
            )
            for index, each in enumerate(raw.spec.families or ())
            if each.afi in _FAMILIES and each.safi == "unicast"
        ),
    )


def read_cluster_config(raw: RawClusterConfig, at: Place, reading: Reading) -> Iterator[bgp.PeerCluster]:
    """Yield the peers; without a nodeSelector every node has them."""
    here = at / "spec"
    yield bgp.PeerCluster(
        **raw.head("CiliumBGPClusterConfig", at),
        selector=_selector(raw.spec.node_selector, here / "nodeSelector", reading) or EVERY,
        peers=tuple(
            (
                peer.name,
                peer.peer_config_ref.name if peer.peer_config_ref else "",
                (6 if ":" in peer.peer_address else 4) if peer.peer_address else 0,
                here / "bgpInstances" / number / "peers" / index,
            )
            for number, instance in enumerate(raw.spec.bgp_instances or ())
            for index, peer in enumerate(instance.peers or ())
        ),
    )


def read_override(raw: RawOverride, at: Place, _: Reading) -> Iterator[bgp.NodeOverride]:
    """Yield the override of the node of its name."""
    yield bgp.NodeOverride(**raw.head("CiliumBGPNodeConfigOverride", at))


def read_peering_policy(raw: RawPeeringPolicy, at: Place, reading: Reading) -> Iterator[bgp.PeeringPolicy]:
    """Yield a policy; without a nodeSelector it is every node's."""
    here = at / "spec" / "virtualRouters"
    adverts = []
    for index, router in enumerate(raw.spec.virtual_routers or ()):
        if router.export_pod_cidr:
            place = here / index / "exportPodCIDR"
            adverts.append(bgp.Advert(type=bgp.POD_CIDR, selector=None, at=place))
        if router.pod_ip_pool_selector is not None:
            place = here / index / "podIPPoolSelector"
            selector = _selector(router.pod_ip_pool_selector, place, reading)
            adverts.append(bgp.Advert(type=bgp.POD_IP_POOL, selector=selector, at=place))
    nodes = _selector(raw.spec.node_selector, at / "spec" / "nodeSelector", reading) or EVERY
    head = raw.head("CiliumBGPPeeringPolicy", at)
    yield bgp.PeeringPolicy(**head, labels={}, adverts=tuple(adverts), selector=nodes)


def _selector(written: Object | None, at: Place, reading: Reading) -> Selector | None:
    return None if written is None else reading.selector(parse_label_selector, written, at)
