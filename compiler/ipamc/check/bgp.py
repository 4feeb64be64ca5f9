"""Rules about BGP: objects of the BGP control plane announce the addresses of pods.

Without BGP peers in the input nothing is reported of them: they may be elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from ipamc.check.multi_pool import needs
from ipamc.model import bgp
from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can, since, text, until
from ipamc.model.cluster import Cluster, Mode, Pool
from ipamc.model.diagnostics import Diagnostic, Place, Related, and_others, error, names, note, warning
from ipamc.model.plan import Plan
from ipamc.model.selector.selector import EVERY


def check_bgp(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield findings about BGP control plane objects in the input and to render."""
    yield from bgp_objects_too_early(cluster)
    if cluster.bgp == "control-plane":
        yield from nothing_advertised(cluster)
        yield from nothing_for_peers(cluster)
        yield from not_one_speaker(cluster)
        yield from override_of_nothing(cluster)


def bgp_objects_too_early(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0585: the cluster's Cilium supports its BGP objects, and `bgp: control-plane` is set."""
    runs, ours = text(cluster.cilium), cluster.field("spec", "bgpAdvertisements")
    rendered = [each for each in cluster.advertisements if each.rendered]
    of_peers = (*cluster.peer_configs, *cluster.peer_clusters, *cluster.node_overrides)
    if cluster.bgp != "control-plane":
        first = next(iter((*cluster.advertisements, *of_peers)))
        at, what = (ours, "bgpAdvertisements") if rendered else (first.at / "kind", first.kind)
        message = f"{what} has no effect with bgp: {cluster.bgp}"
        also = [Related(cluster.field("spec", "bgp"), "bgp is set here")]
        make = error if rendered else warning
        yield make("IPC0585", at, message, also=also, help="write bgp: control-plane, or remove it")
        return
    if rendered and not can(cluster.cilium, Capability.BGP_ADVERTISEMENT):
        message = needs(cluster, "bgpAdvertisements", Capability.BGP_ADVERTISEMENT)
        fix = "remove it; use exportPodCIDR or podIPPoolSelector of a CiliumBGPPeeringPolicy"
        yield error("IPC0585", ours, message, also=[cluster.version_here], help=fix)
    for each in (*cluster.advertisements, *of_peers):
        problem = ""
        if each.kind == bgp.POLICY and not can(cluster.cilium, Capability.BGP_PEERING_POLICY):
            last = text(until(Capability.BGP_PEERING_POLICY))
            problem = f"Cilium {runs} has no {bgp.POLICY}; {last} is the last version with it"
            fix = "use a CiliumBGPClusterConfig, CiliumBGPPeerConfig and CiliumBGPAdvertisement"
        elif each.api_version and each.kind != bgp.POLICY:
            needed = Capability.BGP_V2 if each.api_version.endswith("/v2") else Capability.BGP_ADVERTISEMENT
            if not can(cluster.cilium, needed):
                problem = needs(cluster, f"{each.kind} of {each.api_version}", needed)
                older = can(cluster.cilium, Capability.BGP_ADVERTISEMENT)
                fix = "write apiVersion: cilium.io/v2alpha1" if older else f"write a {bgp.POLICY}"
        if problem:
            yield error("IPC0585", each.at / "kind", problem, also=[cluster.version_here], help=fix)


def _places(objects: Iterable[bgp.BgpObject]) -> list[Related]:
    """Return where objects are, by kind and name."""
    return [Related(each.at, f"{each.kind} {each.name}") for each in objects]


def nothing_advertised(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0586: an advertisement announces something."""
    for each in cluster.advertisements:
        for advert in each.adverts:
            of_pools = advert.type == bgp.POD_IP_POOL
            if advert.type not in bgp.TYPES:
                why = f"{each.kind} {each.name} has the unknown advertisementType {advert.type}"
                also, fix = [], f"write one of {', '.join(bgp.TYPES)}"
            elif advert.type not in {bgp.POD_CIDR, bgp.POD_IP_POOL}:
                has_it = each.api_version == "cilium.io/v2" and can(cluster.cilium, Capability.BGP_INTERFACE)
                if advert.type != bgp.INTERFACE or has_it:
                    continue
                what = f"{advert.type} of {each.kind} {each.name} in {each.api_version}"
                why = f"{what} needs cilium.io/v2 and Cilium {text(since(Capability.BGP_INTERFACE))} or newer"
                also, fix = [cluster.version_here], "remove it from the object"
            elif of_pools != (cluster.mode is Mode.MULTI_POOL) or cluster.mode is Mode.CRD:
                other = bgp.POD_CIDR if of_pools else bgp.POD_IP_POOL
                why = (
                    f"type {advert.type} of {each.kind} {each.name} announces nothing in {cluster.mode} mode"
                )
                also, fix = [cluster.mode_here], "remove it" if cluster.mode is Mode.CRD else f"write {other}"
            elif not of_pools and advert.selector not in {None, EVERY}:
                why = f"{each.kind} {each.name} has a selector, but PodCIDR announces all blocks of a node"
                also, fix = [cluster.mode_here], "remove selector: it is for multi-pool mode"
            elif of_pools and not any(_announces(cluster, each, advert, pool) for pool in cluster.pools):
                why = f"{each.kind} {each.name} selects no pool"
                also = [Related(one.at, f"labels of {one.name}: {_labels(one)}") for one in cluster.pools[:3]]
                fix = "give a pool the label in metadata.labels, or change the selector"
            else:
                continue
            make = error if each.rendered else warning
            yield make("IPC0586", advert.at, why, also=also, help=fix)


def _labels(of: Pool | bgp.Advertisement) -> str:
    return names(f"{key}={value}" for key, value in of.labels.items()) or "none"


def _announces(cluster: Cluster, each: bgp.Advertisement, advert: bgp.Advert, pool: Pool) -> bool:
    """Return whether an entry of an advertisement announces blocks of a pool."""
    if advert.type == bgp.POD_CIDR:
        return cluster.mode.one_block
    if advert.type != bgp.POD_IP_POOL or cluster.mode is not Mode.MULTI_POOL or advert.selector is None:
        return False
    by_flag = pool.name in cluster.auto_create  # it has no labels, and a rendered selector tests one
    labels = {} if by_flag else bgp.pool_labels(cluster, pool)
    if by_flag and each.rendered:
        return False
    if cluster.own_pools and bgp.POOL_NAME in advert.selector.keys:
        return True  # each node's pools have their own names
    return advert.selector.matches({**labels, bgp.POOL_NAME: pool.name}, "")


def never_advertised(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0587: the blocks of every pool are announced to a peer."""
    cluster, covered = plan.cluster, dict(plan.cluster.pools_by_name)
    adverts = [(each, advert) for each in cluster.advertisements for advert in each.adverts]
    written = "write bgpAdvertisements: [{name: pods, labels: {advertise: pods}}]"
    also = _places(cluster.advertisements[:3])
    for pool in cluster.pools:
        if any(_announces(cluster, each, advert, pool) for each, advert in adverts):
            continue
        del covered[pool.name]
        if pool.disabled:
            continue
        if cluster.mode.one_block:  # all pools, or none
            message = "no advertisement announces podCIDRs: none has the type PodCIDR"
            yield warning("IPC0587", cluster.field("spec", "bgp"), message, also=also, help=written)
            return
        message, fix = f'no advertisement announces the blocks of pool "{pool.name}"', written
        if pool.name in cluster.auto_create:
            fix = "remove it from autoCreate: the operator's flag gives a pool no labels"
        elif adverts:
            fix = "give the pool a label that an advertisement selects"
        yield warning("IPC0587", pool.at / "metadata" / "name", message, also=also, help=fix)
    for at, message, also, fix in _unheard(plan, covered) if bgp.with_peers(cluster) else ():
        yield warning("IPC0587", at, message, also=also, help=fix)


def _unheard(plan: Plan, pools: Mapping[str, Pool]) -> Iterator[tuple[Place, str, list[Related], str]]:
    """Yield, as `_of_peers` does, pools of which nodes announce blocks to no peer. If others announce a pool,
    IPC0589 alone names those that no object selects.
    """
    cluster, chosen, announced = plan.cluster, bgp.speakers(plan.cluster), set[str]()
    told = dict[tuple[Place, ...], set[tuple[str, int]]]()
    lacking = defaultdict[tuple[str, int], list[str]](list)  # of nodes that nothing selects: family 0
    for node, objects in chosen.items():
        if (key := tuple(each.at for each in objects)) not in told:
            told[key] = {one for each in objects for one in _told(cluster, each)}
        shown = {(line.pool, line.block.family) for line in plan.held.get(node, ()) if line.pool in pools}
        announced |= {name for name, _ in shown & told[key]}
        for name, family in {(name, family if objects else 0) for name, family in shown - told[key]}:
            lacking[name, family].append(node)
    for (name, family), nodes in sorted(lacking.items()):
        if family or name not in announced:
            does = "selects" if family else "does not select"
            some = (chosen[nodes[0]] or bgp.with_peers(cluster))[:3]
            also = [Related(each.at, f"{each.kind} {each.name} {does} {nodes[0]}") for each in some]
            what = f"IPv{family} blocks" if family else "blocks"
            message = f'{nodes[0]} announces its {what} of pool "{name}" to no peer{and_others(nodes)}'
            how = "families[].advertisements of the CiliumBGPPeerConfig of a peer"
            how = "exportPodCIDR or podIPPoolSelector" if isinstance(some[0], bgp.PeeringPolicy) else how
            fix = f"announce it for IPv{family} in {how}" if family else "select the node in a nodeSelector"
            yield pools[name].at / "metadata" / "name", message, also, fix


def _told(cluster: Cluster, speaker: bgp.Speaker) -> Iterator[tuple[str, int]]:
    """Yield (pool, family) of blocks that an object's peers get. A peer without a CiliumBGPPeerConfig gets
    none (GetConfiguredAdvertisements in peer_advertisements.go, 1.16 to 1.20); without any in the input they
    are elsewhere, and may select everything.
    """
    adverts = [each for each in cluster.advertisements if not isinstance(each, bgp.PeeringPolicy)]
    parts = list(product((4, 6), (EVERY,)))
    if isinstance(speaker, bgp.PeeringPolicy):
        adverts = [speaker]
    elif cluster.peer_configs:
        wanted = {name for _, name, _, _ in speaker.peers}
        some = (part for each in cluster.peer_configs if each.name in wanted for part in each.families)
        parts = [(part.family, part.selector) for part in some if part.selector]
    for (family, selector), each, pool in product(parts, adverts, cluster.pools):
        told = (_announces(cluster, each, advert, pool) for advert in each.adverts)
        if selector.matches(each.labels, "") and any(told):
            yield pool.name, family


def nothing_for_peers(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0588: each peer gets an advertisement, and each advertisement goes to a peer."""
    adverts = [each for each in cluster.advertisements if each.kind != bgp.POLICY]
    labels = "advertisements: {matchLabels: …}"
    families = [each for config in cluster.peer_configs for each in config.families]
    every = {each.family for each in families}
    also = _places(adverts[:3])
    for config, family in product(cluster.peer_configs, cluster.families):
        has = f"{config.kind} {config.name}"
        if not config.families or family not in every:
            message = f"{has} has no IPv{family} family with advertisements"
            fix = f"add {{afi: ipv{family}, safi: unicast, {labels}}} for peers with an IPv{family} address"
            yield warning("IPC0588", config.at / "spec" / "families", message, also=also, help=fix)
        for each in (one for one in config.families if one.family == family):
            if not (each.selector and any(each.selector.matches(one.labels, "") for one in adverts)):
                has = f"{has} selects no advertisement for IPv{family}"
                fix = f"write {labels}, with the labels of an advertisement"
                yield warning("IPC0588", each.at, has, also=also, help=fix)
    chosen = [each for each in families if each.selector]
    for advert in adverts:
        if chosen and not any(one.selector and one.selector.matches(advert.labels, "") for one in chosen):
            has = f"{advert.kind} {advert.name}, whose labels are: {_labels(advert)}"
            also = [Related(one.at, "selected here") for one in chosen[:3]]
            fix = "give it the labels that families[].advertisements of a peer selects"
            yield warning("IPC0588", advert.at, f"no CiliumBGPPeerConfig selects {has}", also=also, help=fix)
    for at, has, also, fix in _of_peers(cluster):
        yield warning("IPC0588", at, has, also=also, help=fix)


def _of_peers(cluster: Cluster) -> Iterator[tuple[Place, str, list[Related], str]]:
    """Yield (place, problem, related places, fix) for peers and nodes of CiliumBGPClusterConfigs."""
    configs = {each.name: each for each in cluster.peer_configs}
    for group in cluster.peer_clusters:
        whose = f"{group.kind} {group.name}"
        for peer, name, family, at in group.peers:
            if name and configs and name not in configs:
                fix = f"name one of {names(sorted(configs))}, or add {name} to the folder"
                has = f"peer {peer} of {whose} has peerConfigRef {name}, which does not exist here"
                yield at / "peerConfigRef", has, [], fix
            for each in configs[name].families if family == 4 and name in configs else ():
                if each.family == 6 and each.selector and 6 in cluster.families:
                    fix = "announce IPv6 only in a CiliumBGPPeerConfig of peers with an IPv6 address"
                    has = f"peer {peer} of {whose} gets IPv6 over IPv4: Linux routers reject these routes"
                    yield at / "peerAddress", has, [Related(each.at, "IPv6 is announced here")], fix
        if cluster.nodes and not any(
            group.selector.matches(bgp.labels_of(one), one.name) for one in cluster.nodes
        ):
            at, has = group.at / "spec" / "nodeSelector", f"{whose} selects no node of the inventory"
            yield at, has, [], "change nodeSelector"


def not_one_speaker(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0589: exactly one object with BGP peers selects each node."""
    # The CiliumBGPClusterConfig that made a node's CiliumBGPNodeConfig keeps it (upsertNodeConfigs in
    # operator/pkg/bgp/cluster.go, operator/pkg/bgpv2 up to 1.18). Of policies an agent takes none: it ends
    # its sessions up to 1.15, and keeps them as they are from 1.16 on (pkg/bgpv1/agent/controller.go).
    twice, alone, chosen = defaultdict[tuple[str, ...], list[str]](list), list[str](), bgp.speakers(cluster)
    for node, objects in chosen.items():
        if len(objects) > 1:
            twice[tuple(each.name for each in objects)].append(node)
        elif not objects:
            alone.append(node)
    for nodes in twice.values():
        *others, last = chosen[nodes[0]]
        has = f"{last.kind} {' and '.join(each.name for each in chosen[nodes[0]])} select {nodes[0]}"
        make, outcome = warning, "only the first one gives it peers"
        if isinstance(last, bgp.PeeringPolicy):
            make, outcome = error, "its agent ends every session"
            if can(cluster.cilium, Capability.BGP_ADVERTISEMENT):
                outcome = "its agent ignores every change, and has no session after its next start"
        also = _places(others)
        fix = "write a nodeSelector in each, so that only one selects each node"
        at, message = last.at / "spec" / "nodeSelector", f"{has}: {outcome}{and_others(nodes)}"
        yield make("IPC0589", at, message, also=also, help=fix)
    if alone and len(alone) < len(chosen):  # where one selects nobody, IPC0588 says so
        first, *others = bgp.with_peers(cluster)
        message = f"no object with peers selects {names(alone)}"
        also = _places(others[:3])
        fix = "select them in a nodeSelector; if they have no router, do nothing"
        yield note("IPC0589", first.at / "spec" / "nodeSelector", message, also=also, help=fix)


def override_of_nothing(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0590: a CiliumBGPNodeConfigOverride has the name of a node that a CiliumBGPClusterConfig selects."""
    chosen = bgp.speakers(cluster) if cluster.node_overrides else {}
    for each in cluster.node_overrides:  # upsertNodeConfigs finds one by this name
        if any(isinstance(one, bgp.PeerCluster) for one in chosen.get(each.name, ())):
            continue
        if cluster.peer_clusters or each.name not in chosen:
            has_no = (
                "no CiliumBGPClusterConfig gives peers to" if each.name in chosen else "the inventory lacks"
            )
            message = f"{each.kind} {each.name} has no effect: {has_no} node {each.name}"
            also = _places(cluster.peer_clusters[:3])
            fix = "give it the name of its node, change a nodeSelector, or remove it"
            yield warning("IPC0590", each.at / "metadata" / "name", message, also=also, help=fix)
