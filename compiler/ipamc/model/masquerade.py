"""The addresses that pods reach without masquerading: the cluster's settings, and the CIDRs that follow.

Cilium replaces the source address of traffic to other addresses by that of the node. Two settings exempt
destinations: `ipv4-native-routing-cidr` (one CIDR, read when the agent starts), and with BPF masquerading the
list of its ip-masq-agent, a file that the agent reads again whenever it changes (pkg/ipmasq/ipmasq.go, 1.11.1
to 1.20.2). Without that file the agent has a list of private networks; with it, only the contents of the
file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ipamc.model.address_sets import aggregated, outermost
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster
from ipamc.model.lock import Line, State


def needs_members(cluster: Cluster) -> bool:
    """Return whether the rendered files depend on the other clusters of the address space."""
    return bool(cluster.masquerade and cluster.masquerade.members and cluster.address_space)


def native_limit(cluster: Cluster, family: int) -> Block | None:
    """Return the CIDR of a family outside of which ranges are masqueraded; None if unknown: there is no
    nativeRoutingCIDR of this family, or a list of all pools besides it.
    """
    written, asked = cluster.native_routing, cluster.masquerade
    listed = asked is not None and asked.ip_masq_agent
    return written.block if written and written.block.family == family and not listed else None


def unmasqueraded(cluster: Cluster, lines: Iterable[Line], members: Iterable[Block]) -> tuple[Block, ...]:
    """Return the CIDRs that pods reach with their own address, by address; none lies in another one.
    They are the ranges of all pools, held blocks in no pool, CIDRs that the cluster declares, and `members`:
    the addresses of the other clusters of its address space. Only enabled families. O(n log n).
    """
    asked = cluster.masquerade
    if asked is None:
        return ()
    every = [cidr.block for pool in cluster.pools for cidr in pool.ranges]
    every += [line.block for line in lines if not line.pool and line.state is State.HELD]
    every += [cidr.block for cidr in asked.non_masquerade]
    if asked.members:
        every += members
    return tuple(outermost(block for block in every if block.family in cluster.families))


def native_routing(cluster: Cluster, blocks: Iterable[Block]) -> Mapping[int, Block]:
    """Return the values of `ipv4-native-routing-cidr` and its IPv6 twin, by family, if they are rendered.
    It is `nativeRoutingCIDR`. The other family gets the one CIDR with exactly these addresses, if there is
    one; with an ip-masq-agent none: another pool would change the flag, and restart all agents.
    """
    asked, written = cluster.masquerade, cluster.native_routing
    found: dict[int, Block] = {}
    for family in cluster.families if asked else ():
        if written and written.block.family == family:
            found[family] = written.block
        elif asked and not asked.ip_masq_agent:
            some = list(aggregated(block for block in blocks if block.family == family))
            found |= {family: some[0]} if len(some) == 1 else {}
    return found
