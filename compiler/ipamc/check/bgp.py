"""Rules about BGP control plane objects: advertisements, pools, and the user's peers.

Advertisements are those that are rendered and those of the input. Peers are the user's, and may be elsewhere,
so if the input has none, nothing is reported about peers.
"""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.check.multi_pool import needs
from ipamc.model.bgp import POD_CIDR, POD_IP_POOL, POOL_NAME, Advert, Advertisement, PeerConfig, pool_labels
from ipamc.model.cilium.features import Capability
from ipamc.model.cilium.versions import can, text, until
from ipamc.model.cluster import Cluster, Mode, Pool
from ipamc.model.diagnostics import Diagnostic, Place, Related, error, names, warning
from ipamc.model.selector.selector import EVERY

_POLICY = "CiliumBGPPeeringPolicy"


def check_bgp(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield findings about BGP control plane objects in the input and to render."""
    yield from bgp_objects_too_early(cluster)
    if cluster.bgp == "control-plane":
        yield from nothing_advertised(cluster)
        yield from never_advertised(cluster)
        yield from nothing_for_peers(cluster)


def bgp_objects_too_early(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0585: objects of the BGP control plane are those of the Cilium that runs, and it is in use."""
    runs, ours = text(cluster.cilium), cluster.field("spec", "bgpAdvertisements")
    rendered = [each for each in cluster.advertisements if each.rendered]
    if cluster.bgp != "control-plane":
        first = next(iter((*cluster.advertisements, *cluster.peer_configs, *cluster.peer_clusters)))
        at, what = (ours, "bgpAdvertisements") if rendered else (first.at / "kind", first.kind)
        message = f"{what} with bgp: {cluster.bgp}: the BGP control plane announces nothing"
        also = [Related(cluster.field("spec", "bgp"), "bgp is set here")]
        make = error if rendered else warning
        yield make("IPC0585", at, message, also=also, help="write bgp: control-plane, or remove it")
        return
    if rendered and not can(cluster.cilium, Capability.BGP_ADVERTISEMENT):
        message = needs(cluster, "bgpAdvertisements", Capability.BGP_ADVERTISEMENT)
        policy = "a CiliumBGPPeeringPolicy with exportPodCIDR or podIPPoolSelector announces blocks before"
        yield error("IPC0585", ours, message, also=[cluster.version_here], help=f"remove it: {policy}")
    for each in (*cluster.advertisements, *cluster.peer_configs, *cluster.peer_clusters):
        problem = ""
        if each.kind == _POLICY and not can(cluster.cilium, Capability.BGP_PEERING_POLICY):
            last = text(until(Capability.BGP_PEERING_POLICY))
            problem = f"{_POLICY} with Cilium {runs}: {last} is the last with it"
            fix = "write the other kinds"
        elif each.api_version and each.kind != _POLICY:
            needed = Capability.BGP_V2 if each.api_version.endswith("/v2") else Capability.BGP_ADVERTISEMENT
            if not can(cluster.cilium, needed):
                problem = needs(cluster, f"{each.kind} of {each.api_version}", needed)
                older = can(cluster.cilium, Capability.BGP_ADVERTISEMENT)
                fix = "write apiVersion: cilium.io/v2alpha1" if older else f"write a {_POLICY}"
        if problem:
            yield error("IPC0585", each.at / "kind", problem, also=[cluster.version_here], help=fix)


def nothing_advertised(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0586: what an advertisement announces of pods is there."""
    for each in cluster.advertisements:
        for advert in each.adverts:
            of_pools = advert.type == POD_IP_POOL
            if advert.type not in {POD_CIDR, POD_IP_POOL}:
                continue
            if of_pools != (cluster.mode is Mode.MULTI_POOL) or cluster.mode is Mode.CRD:
                other = POD_CIDR if of_pools else POD_IP_POOL
                why = f"{each.kind} {each.name} announces nothing by {advert.type} in {cluster.mode} mode"
                also = [cluster.mode_here]
                fix = f"write {other}" if cluster.mode is not Mode.CRD else "remove it"
            elif not of_pools and advert.selector not in {None, EVERY}:
                why = f"{each.kind} {each.name} has a selector, and PodCIDR announces all blocks of a node"
                also, fix = [cluster.mode_here], "remove selector: it is for multi-pool mode"
            elif of_pools and not any(_announces(cluster, each, advert, pool) for pool in cluster.pools):
                why = f"{each.kind} {each.name} selects no pool"
                also = [Related(one.at, f"labels of {one.name}: {_shown(one)}") for one in cluster.pools[:3]]
                fix = "give a pool the label in metadata.labels, or change the selector"
            else:
                continue
            make = error if each.rendered else warning
            yield make("IPC0586", advert.at, why, also=also, help=fix)


def _shown(pool: Pool) -> str:
    return names((f"{key}={value}" for key, value in pool.labels.items()), 3) if pool.labels else "none"


def _announces(cluster: Cluster, each: Advertisement, advert: Advert, pool: Pool) -> bool:
    """Return whether an entry of an advertisement announces blocks of a pool."""
    if advert.type == POD_CIDR:
        return cluster.mode.one_block
    if advert.type != POD_IP_POOL or cluster.mode is not Mode.MULTI_POOL or advert.selector is None:
        return False
    by_flag = pool.name in cluster.auto_create  # it has no labels, and a rendered selector tests one
    labels = {} if by_flag else pool_labels(cluster, pool)
    if by_flag and each.rendered:
        return False
    if cluster.own_pools and POOL_NAME in advert.selector.keys:
        return True  # each node's pools have their own names
    return advert.selector.matches({**labels, POOL_NAME: pool.name}, "")


def never_advertised(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0587: every pool that gives blocks is announced by an advertisement."""
    adverts = [(each, advert) for each in cluster.advertisements for advert in each.adverts]
    written = "write bgpAdvertisements: [{name: pods, labels: {advertise: pods}}]"
    also = [Related(each.at, f"{each.kind} {each.name}") for each in cluster.advertisements[:3]]
    for pool in cluster.pools:
        if pool.disabled or any(_announces(cluster, each, advert, pool) for each, advert in adverts):
            continue
        if cluster.mode.one_block:  # all pools, or none
            message = "nobody announces podCIDRs: no advertisement has the type PodCIDR"
            yield warning("IPC0587", cluster.field("spec", "bgp"), message, also=also, help=written)
            return
        message, fix = f'nobody announces the blocks of pool "{pool.name}"', written
        if pool.name in cluster.auto_create:
            fix = "remove it from autoCreate: the operator's flag gives a pool no labels"
        elif adverts:
            fix = "give it a label that one of them selects"
        yield warning("IPC0587", pool.at / "metadata" / "name", message, also=also, help=fix)


def nothing_for_peers(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0588: each peer of the input gets an advertisement, and each advertisement goes to a peer."""
    adverts = [each for each in cluster.advertisements if each.kind != _POLICY]
    configs = {each.name for each in cluster.peer_configs}
    every = {each.family for config in cluster.peer_configs for each in config.families}
    for config in cluster.peer_configs:
        for at, message, fix in _to_peer(cluster, config, adverts, every):
            also = [Related(each.at, f"{each.kind} {each.name}") for each in adverts[:3]]
            yield warning("IPC0588", at, message, also=also, help=fix)
    families = [each for config in cluster.peer_configs for each in config.families if each.selector]
    for each in adverts:
        if families and not any(one.selector and one.selector.matches(each.labels, "") for one in families):
            labels = names(f"{key}={value}" for key, value in sorted(each.labels.items())) or "none"
            message = f"no CiliumBGPPeerConfig selects {each.kind} {each.name}, whose labels are: {labels}"
            also = [Related(one.at, "selected here") for one in families[:3]]
            fix = "give it the labels that families[].advertisements of a peer select"
            yield warning("IPC0588", each.at, message, also=also, help=fix)
    for group in cluster.peer_clusters:
        for peer, name, at in group.peers:
            if name and configs and name not in configs:
                has = f"peer {peer} of {group.kind} {group.name} has peerConfigRef {name}"
                fix = f"name one of {names(sorted(configs))}, or put {name} beside it"
                yield warning("IPC0588", at / "peerConfigRef", f"{has}, which is not here", help=fix)
        if cluster.nodes and not any(group.selector.matches(one.labels, one.name) for one in cluster.nodes):
            message = f"{group.kind} {group.name} selects no node of the inventory"
            yield warning("IPC0588", group.at / "spec" / "nodeSelector", message, help="change nodeSelector")


def _to_peer(
    cluster: Cluster, config: PeerConfig, adverts: list[Advertisement], every: set[int]
) -> Iterator[tuple[Place, str, str]]:
    """Yield (place, problem, fix) for families without announcements. `every`: those of any PeerConfig."""
    labels = "advertisements: {matchLabels: …}"
    for family in cluster.families:
        if family not in every or not config.families:
            problem = f"{config.kind} {config.name} has no family with advertisements of IPv{family}"
            add = f"add {{afi: ipv{family}, safi: unicast, {labels}}} to families"
            fix = f"for peers with an IPv{family} address {add}"
            yield config.at / "spec" / "families", problem, fix
        for each in (one for one in config.families if one.family == family):
            selector = each.selector
            if selector is None or not any(selector.matches(other.labels, "") for other in adverts):
                problem = f"{config.kind} {config.name} selects no advertisement for IPv{family}"
                yield each.at, problem, f"write {labels} with the labels of one"
