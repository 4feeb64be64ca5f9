"""Rules about how nodes masquerade the addresses of pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipamc.check.multi_pool import needs
from ipamc.model.address_sets import aggregated, covers
from ipamc.model.cidr import Block
from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic, Related, error, names, note
from ipamc.model.masquerade import native_routing, needs_members, unmasqueraded
from ipamc.model.plan import Plan

_MASQUERADE = ("spec", "cilium", "masquerade")


def masquerading_too_early(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0581: the cluster's Cilium and mode support the fields of `masquerade`."""
    asked = cluster.masquerade
    if asked is None:
        return
    six, agent, pools = 6 in cluster.families, asked.ip_masq_agent, Capability.SKIP_MASQUERADE
    used = (
        (six and agent, "ipMasqAgent", "IPv6 in the ip-masq-agent", Capability.IP_MASQ_AGENT_IPV6),
        (six and not agent, "ipMasqAgent", "ipv6-native-routing-cidr", Capability.IPV6_NATIVE_ROUTING),
        (asked.link_local_6, "masqLinkLocalIPv6", "masqLinkLocalIPv6", Capability.IP_MASQ_AGENT_IPV6),
        (asked.only_default_pool, "onlyMasqueradeDefaultPool", "onlyMasqueradeDefaultPool", pools),
    )
    for is_used, name, what, capability in used:
        at = cluster.field(*_MASQUERADE, name)
        if is_used and not can(cluster.cilium, capability):
            instead = "write ipMasqAgent: false" if "in the" in what else f"remove {name}"
            fix = f"{'remove masquerade' if what.startswith('ipv6') else instead}, or use a newer Cilium"
            message = needs(cluster, what, capability)
            yield error("IPC0581", at, message, also=[cluster.version_here], help=fix)
        elif is_used and capability is pools and cluster.mode is not Mode.MULTI_POOL:
            message = f"{name} has no effect in {cluster.mode} mode: it is for multi-pool mode"
            yield error("IPC0581", at, message, also=[cluster.mode_here], help=f"remove {name}")
    for name, is_used in (("masqLinkLocal", asked.link_local), ("masqLinkLocalIPv6", asked.link_local_6)):
        if is_used and not agent:
            message = f"{name} has no effect with ipMasqAgent: false: only the ip-masq-agent reads it"
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
    """IPC0582: an address space has an index if `masquerade` lists its other clusters."""
    space = cluster.address_space
    message = f"masquerade lists the clusters of address space {space}, but the space has no index here"
    also = [Related(cluster.field("spec", "addressSpace"), "the address space is named here")]
    alone = "write masquerade: {addressSpace: false}, and their CIDRs in nonMasqueradeCIDRs"
    fix = f"write the index beside the other clusters: ipamc init --space {space}; or {alone}"
    yield error("IPC0582", cluster.field(*_MASQUERADE), message, also=also, help=fix)


def not_one_cidr(cluster: Cluster, blocks: Sequence[Block]) -> Iterator[Diagnostic]:
    """IPC0583: with `ipMasqAgent: false`, one CIDR per IP family covers all unmasqueraded addresses."""
    native = native_routing(cluster, blocks)
    for family in cluster.families:
        some = list(aggregated(block for block in blocks if block.family == family))
        one = native.get(family)
        outside = [block for block in some if one is None or not covers([one], block)]
        if not outside:
            continue
        flag, written = f"ipv{family}-native-routing-cidr", cluster.native_routing
        if one and written:
            at, message = written.at, f"nativeRoutingCIDR {one} does not cover {names(map(str, outside))}"
            fix = "widen nativeRoutingCIDR"
        else:
            at = cluster.field(*_MASQUERADE, "ipMasqAgent")
            message = f"{flag} takes one CIDR, but the pools need {len(some)}: {names(map(str, some))}"
            fix = "write one nativeRoutingCIDR that covers them all"
        also = [Related(cluster.field(*_MASQUERADE), "masquerade is set here")]
        fix = f"{fix}; or set ipMasqAgent: true, which takes a list"
        yield error("IPC0583", at, message, also=also, help=fix)


def mount_by_hand(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0584: without Helm, the agents' pods mount the ConfigMap of the ip-masq-agent."""
    if cluster.managed_by != "helm":
        file = "key config, as /etc/config/ip-masq-agent"
        message = f"the DaemonSet cilium must mount ConfigMap ip-masq-agent, {file}"
        fix = "render Cilium's chart with ipMasqAgent.enabled=true and without ipMasqAgent.config"
        yield note("IPC0584", cluster.field(*_MASQUERADE), message, help=fix)
