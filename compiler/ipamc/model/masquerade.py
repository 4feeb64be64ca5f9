"""Which addresses pods reach with their own address: what a cluster asks for, and the CIDRs that follow.

Cilium replaces the source address of what leaves for other addresses by that of the node. Two things say
where it does not: `ipv4-native-routing-cidr` (one CIDR, read when the agent starts), and with BPF
masquerading the list of its ip-masq-agent, a file that the agent reads again whenever it changes
(pkg/ipmasq/ipmasq.go, 1.11.1 to 1.20.2). Without that file the agent has a list of private networks; with it,
only what the file says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ipamc.model.address_sets import aggregated, outermost
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster
from ipamc.model.lock import Line, State


def needs_members(cluster: Cluster) -> bool:
    """Return whether what is rendered depends on the other clusters of the address space."""
    return bool(cluster.masquerade and cluster.masquerade.members and cluster.address_space)


def native_limit(cluster: Cluster, family: int) -> Block | None:
    """Return the CIDR of a family outside of which ranges are masqueraded; None where none is known: there is
    no nativeRoutingCIDR of this family, or a list of all pools beside it.
    """
    written, asked = cluster.native_routing, cluster.masquerade
    listed = asked is not None and asked.ip_masq_agent
    return written.block if written and written.block.family == family and not listed else None


def unmasqueraded(cluster: Cluster, lines: Iterable[Line], members: Iterable[Block]) -> tuple[Block, ...]:
    """Return the CIDRs that pods reach with their own address, by address; none lies in another one.
    They are the ranges of all pools, held blocks in no pool, what the cluster declares, and `members`: the
    addresses of the other clusters of its address space. Of enabled families alone. O(n log n).
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
    """Return the CIDR of `ipv4-native-routing-cidr` and of its twin, by family, where it is rendered.
    It is `nativeRoutingCIDR`. A family that this is not of has the one CIDR with exactly these addresses, if
    there is one; with an ip-masq-agent none: another pool would be another flag, and restart all agents.
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
