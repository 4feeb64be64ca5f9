"""Rules about what the network does with pod addresses: BGP objects announce them, nodes masquerade them.

Without BGP peers in the input nothing is reported of them: they may be elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from ipamc.check.multi_pool import needs
from ipamc.model.address_sets import aggregated, covers
from ipamc.model.bgp import POD_CIDR, POD_IP_POOL, POOL_NAME, Advert, Advertisement, pool_labels
from ipamc.model.cidr import Block
from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can, text, until
from ipamc.model.cluster import Cluster, Mode, Pool
from ipamc.model.diagnostics import Diagnostic, Place, Related, error, names, note, warning
from ipamc.model.masquerade import native_routing, needs_members, unmasqueraded
from ipamc.model.plan import Plan
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
                also, fix = [cluster.mode_here], "remove it" if cluster.mode is Mode.CRD else f"write {other}"
            elif not of_pools and advert.selector not in {None, EVERY}:
                why = f"{each.kind} {each.name} has a selector, and PodCIDR announces all blocks of a node"
                also, fix = [cluster.mode_here], "remove selector: it is for multi-pool mode"
            elif of_pools and not any(_announces(cluster, each, advert, pool) for pool in cluster.pools):
                why = f"{each.kind} {each.name} selects no pool"
                also = [Related(one.at, f"labels of {one.name}: {_labels(one)}") for one in cluster.pools[:3]]
                fix = "give a pool the label in metadata.labels, or change the selector"
            else:
                continue
            make = error if each.rendered else warning
            yield make("IPC0586", advert.at, why, also=also, help=fix)


def _labels(of: Pool | Advertisement) -> str:
    return names(f"{key}={value}" for key, value in of.labels.items()) or "none"


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
    labels = "advertisements: {matchLabels: …}"
    families = [each for config in cluster.peer_configs for each in config.families]
    every = {each.family for each in families}
    also = [Related(each.at, f"{each.kind} {each.name}") for each in adverts[:3]]
    for config, family in product(cluster.peer_configs, cluster.families):
        has = f"{config.kind} {config.name}"
        if not config.families or family not in every:
            message = f"{has} has no family with advertisements of IPv{family}"
            fix = f"add {{afi: ipv{family}, safi: unicast, {labels}}} for peers with an IPv{family} address"
            yield warning("IPC0588", config.at / "spec" / "families", message, also=also, help=fix)
        for each in (one for one in config.families if one.family == family):
            if not (each.selector and any(each.selector.matches(one.labels, "") for one in adverts)):
                has = f"{has} selects no advertisement for IPv{family}"
                yield warning("IPC0588", each.at, has, also=also, help=f"write {labels}, the labels of one")
    chosen = [each for each in families if each.selector]
    for advert in adverts:
        if chosen and not any(one.selector and one.selector.matches(advert.labels, "") for one in chosen):
            has = f"{advert.kind} {advert.name}, whose labels are: {_labels(advert)}"
            also = [Related(one.at, "selected here") for one in chosen[:3]]
            fix = "give it the labels that families[].advertisements of a peer select"
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
                fix = f"name one of {names(sorted(configs))}, or put {name} beside it"
                has = f"peer {peer} of {whose} has peerConfigRef {name}, which is not here"
                yield at / "peerConfigRef", has, [], fix
            for each in configs[name].families if family == 4 and name in configs else ():
                if each.family == 6 and each.selector and 6 in cluster.families:
                    fix = "announce IPv6 in a CiliumBGPPeerConfig of peers with an IPv6 address"
                    has = f"peer {peer} of {whose} gets IPv6 over IPv4: routers with Linux reject the routes"
                    yield at / "peerAddress", has, [Related(each.at, "IPv6 is announced here")], fix
        if cluster.nodes and not any(group.selector.matches(one.labels, one.name) for one in cluster.nodes):
            at, has = group.at / "spec" / "nodeSelector", f"{whose} selects no node of the inventory"
            yield at, has, [], "change nodeSelector"


_MASQUERADE = ("spec", "cilium", "masquerade")


def masquerading_too_early(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0581: what `masquerade` asks for is in that Cilium, and in that mode."""
    asked = cluster.masquerade
    if asked is None:
        return
    six, agent, pools = 6 in cluster.families, asked.ip_masq_agent, Capability.SKIP_MASQUERADE
    used = (
        (six and agent, "ipMasqAgent", "an ip-masq-agent of IPv6", Capability.IP_MASQ_AGENT_IPV6),
        (six and not agent, "ipMasqAgent", "ipv6-native-routing-cidr", Capability.IPV6_NATIVE_ROUTING),
        (asked.link_local_6, "masqLinkLocalIPv6", "masqLinkLocalIPv6", Capability.IP_MASQ_AGENT_IPV6),
        (asked.only_default_pool, "onlyMasqueradeDefaultPool", "onlyMasqueradeDefaultPool", pools),
    )
    for is_used, name, what, capability in used:
        at = cluster.field(*_MASQUERADE, name)
        if is_used and not can(cluster.cilium, capability):
            instead = "write ipMasqAgent: false" if "agent of" in what else f"remove {name}"
            fix = f"{'remove masquerade' if what.startswith('ipv6') else instead}, or use a newer Cilium"
            message = needs(cluster, what, capability)
            yield error("IPC0581", at, message, also=[cluster.version_here], help=fix)
        elif is_used and capability is pools and cluster.mode is not Mode.MULTI_POOL:
            message = f"{name} has no effect in {cluster.mode} mode: it is for multi-pool mode"
            yield error("IPC0581", at, message, also=[cluster.mode_here], help=f"remove {name}")
    for name, is_used in (("masqLinkLocal", asked.link_local), ("masqLinkLocalIPv6", asked.link_local_6)):
        if is_used and not agent:
            message = f"{name} with ipMasqAgent: false: only the ip-masq-agent reads it"
            fix = f"remove {name}, or ipMasqAgent: false"
            yield error("IPC0581", cluster.field(*_MASQUERADE, name), message, help=fix)


def check_masquerading(plan: Plan, members: Sequence[Block] | None) -> Iterator[Diagnostic]:
    """Yield findings about masquerading. `members` are the addresses of the other clusters of the address
    space; None: they are not known.
    """
    cluster, asked = plan.cluster, plan.cluster.masquerade
    if asked is None:
        return
    if members is None and needs_members(cluster):
        yield from unknown_members(cluster)
    elif asked.ip_masq_agent:
        yield from mount_by_hand(cluster)
    else:
        yield from not_one_cidr(cluster, unmasqueraded(cluster, plan.lock.lines, members or ()))


def unknown_members(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0582: the other clusters of the address space are known where their addresses are rendered."""
    space = cluster.address_space
    message = f"masquerade lists the clusters of address space {space}, and no index of it is beside this one"
    also = [Related(cluster.field("spec", "addressSpace"), "the address space is named here")]
    alone = "write masquerade: {addressSpace: false}, and their CIDRs in nonMasqueradeCIDRs"
    fix = f"write it where the other clusters are: ipamc init --space {space}; or {alone}"
    yield error("IPC0582", cluster.field(*_MASQUERADE), message, also=also, help=fix)


def not_one_cidr(cluster: Cluster, blocks: Sequence[Block]) -> Iterator[Diagnostic]:
    """IPC0583: with `ipMasqAgent: false`, one CIDR of a family has all that is not masqueraded."""
    native = native_routing(cluster, blocks)
    for family in cluster.families:
        some = list(aggregated(block for block in blocks if block.family == family))
        one = native.get(family)
        outside = [block for block in some if one is None or not covers([one], block)]
        if not outside:
            continue
        flag, written = f"ipv{family}-native-routing-cidr", cluster.native_routing
        if one and written:
            at, message = written.at, f"{names(map(str, outside))} outside nativeRoutingCIDR {one}"
            fix = "widen nativeRoutingCIDR"
        else:
            at = cluster.field(*_MASQUERADE, "ipMasqAgent")
            message = f"{flag} is one CIDR, and these are {len(some)}: {names(map(str, some))}"
            fix = "write nativeRoutingCIDR, one CIDR that has them all"
        also = [Related(cluster.field(*_MASQUERADE), "asked for here")]
        yield error("IPC0583", at, message, also=also, help=f"{fix}; or ipMasqAgent: true, which has a list")


def mount_by_hand(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0584: where Helm does not do it, the agents' pods mount the ConfigMap of the ip-masq-agent."""
    if cluster.managed_by != "helm":
        file = "key config, as /etc/config/ip-masq-agent"
        message = f"the DaemonSet cilium must mount ConfigMap ip-masq-agent, {file}"
        fix = "render Cilium's chart with ipMasqAgent.enabled=true and without ipMasqAgent.config"
        yield note("IPC0584", cluster.field(*_MASQUERADE), message, help=fix)
