"""Announcements of pod addresses by Cilium's BGP control plane: advertisements, and objects of peers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from ipamc.model.admission import CLUSTER, label_of
from ipamc.model.diagnostics import Place
from ipamc.model.node import HOSTNAME, Node
from ipamc.model.selector.selector import Selector

if TYPE_CHECKING:
    from ipamc.model.cluster import Cluster, Pool

POLICY = "CiliumBGPPeeringPolicy"
_OF_V2 = ("Advertisement", "PeerConfig", "ClusterConfig", "NodeConfigOverride")
KINDS = (*(f"CiliumBGP{each}" for each in _OF_V2), POLICY)
"""Those that a user writes."""
POD_CIDR, POD_IP_POOL, INTERFACE = "PodCIDR", "CiliumPodIPPool", "Interface"
"""Types of advertisements: the first two concern pods."""
TYPES = (POD_CIDR, POD_IP_POOL, "Service", INTERFACE)
"""Every type that a Cilium has (client/crds/v2/ciliumbgpadvertisements.yaml)."""
POOL_NAME = "io.cilium.podippool.name"
"""A label that Cilium adds to each CiliumPodIPPool (pod_ip_pool.go in its BGP control plane)."""


class Advert(Struct, frozen=True, kw_only=True):
    """One entry of an advertisement."""

    type: str
    selector: Selector | None
    """Selects CiliumPodIPPools; None selects none of them."""
    at: Place


class BgpObject(Struct, frozen=True, kw_only=True):
    """An object of Cilium's BGP control plane."""

    kind: str
    name: str
    at: Place
    """The document, or the entry of the Cluster."""
    api_version: str = ""
    """"" for a rendered object."""


class Advertisement(BgpObject, frozen=True, kw_only=True):
    """A CiliumBGPAdvertisement, in the input or to render; or what a CiliumBGPPeeringPolicy announces."""

    labels: Mapping[str, str]
    adverts: tuple[Advert, ...]

    @property
    def rendered(self) -> bool:
        """Return whether it is one of `bgpAdvertisements`."""
        return not self.api_version


class PeeringPolicy(Advertisement, frozen=True, kw_only=True):
    """A CiliumBGPPeeringPolicy: what nodes announce to all of its neighbours."""

    selector: Selector


class PeerFamily(Struct, frozen=True, kw_only=True):
    """A family of addresses of a CiliumBGPPeerConfig."""

    family: int
    selector: Selector | None
    """Selects advertisements by their labels; None selects none of them."""
    at: Place


class PeerConfig(BgpObject, frozen=True, kw_only=True):
    """A CiliumBGPPeerConfig: the announcements to a peer."""

    families: tuple[PeerFamily, ...]


class PeerCluster(BgpObject, frozen=True, kw_only=True):
    """A CiliumBGPClusterConfig: the peers of nodes."""

    selector: Selector
    peers: tuple[tuple[str, str, int, Place], ...]
    """The name of each, that of its CiliumBGPPeerConfig or "", the family of its address or 0, its place."""


class NodeOverride(BgpObject, frozen=True, kw_only=True):
    """A CiliumBGPNodeConfigOverride: router ids, ports and AS numbers of the node of its name."""


Speaker = PeeringPolicy | PeerCluster


def with_peers(cluster: Cluster) -> tuple[Speaker, ...]:
    """Return the objects that give nodes peers, policies first."""
    policies = [each for each in cluster.advertisements if isinstance(each, PeeringPolicy)]
    return (*policies, *cluster.peer_clusters)


def labels_of(node: Node) -> Mapping[str, str]:
    """Return a node's labels, with two that an inventory may leave out."""
    return {HOSTNAME: node.name, "kubernetes.io/os": "linux", **node.labels}


def speakers(cluster: Cluster) -> Mapping[str, tuple[Speaker, ...]]:
    """Return by node the objects that give it peers: policies if one selects it, else CiliumBGPClusterConfigs
    (Reconcile in pkg/bgpv1/agent/controller.go, 1.16 to 1.18). O(nodes * objects).
    """
    found, every = {}, with_peers(cluster)
    for node in cluster.nodes:
        labels, name = labels_of(node), node.name
        chosen = [each for each in every if each.selector.matches(labels, name)]
        found[name] = tuple([each for each in chosen if isinstance(each, PeeringPolicy)] or chosen)
    return found


def pool_labels(cluster: Cluster, pool: Pool) -> Mapping[str, str]:
    """Return the labels of a pool's CiliumPodIPPools: its own, and, if advertisements are rendered, that of
    the cluster, by which they select only what ipamc renders.
    """
    if not any(each.rendered for each in cluster.advertisements):
        return pool.labels
    return {**pool.labels, CLUSTER: label_of(cluster.name)}
