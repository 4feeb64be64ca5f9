"""Answers about Cilium minors from the table in `support`, and names and numbers that differ between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec.structs import replace

from ipamc.model.cidr import BITS, Block, usable
from ipamc.model.cilium.support import BGP_PEERS, FIRST, LAST, TABLE, Basis, Capability
from ipamc.model.cluster import Cluster, Mode, Pool, Version
from ipamc.model.lock import Line
from ipamc.model.node import Node

_ROWS = {row.capability: row for row in TABLE}


def can(version: Version, capability: Capability) -> bool:
    """Return whether a Cilium minor has a capability."""
    return _ROWS[capability].of(version)


def basis(version: Version, capability: Capability) -> Basis:
    """Return the evidence that a minor has a capability, or has it not."""
    return _ROWS[capability].basis(version)


def shown(version: Version, capability: Capability) -> bool:
    """Return whether a Cilium minor has a capability, and a run of its server proved that."""
    return can(version, capability) and basis(version, capability) is Basis.RUN


def since(capability: Capability) -> Version:
    """Return the first supported minor that has a capability."""
    return 1, _ROWS[capability].since


def until(capability: Capability) -> Version:
    """Return the last minor that has a capability; `LAST` if it was not removed."""
    return 1, _ROWS[capability].until


def taken_for(cluster: Cluster, assume: Version | None) -> Cluster:
    """Return the cluster with the minor to use: if it is newer than `LAST`, a known one is assumed instead.
    That is `assume`, else the one in the document; without either, or if that is not known, the minor stays
    unknown.
    """
    minor = assume or cluster.assume
    if cluster.cilium <= LAST or minor is None or not FIRST <= minor <= LAST:
        return cluster
    return replace(cluster, cilium=minor, written=cluster.cilium)


def waits_for_agent(cluster: Cluster, node: Node) -> bool:
    """Return whether a node's CiliumNode is applied only after its agent has created it.
    The operator would delete it before, or the agent creates it with its blocks, by admission.
    """
    return node.planned and (cluster.admission.assign or not can(cluster.cilium, Capability.DO_NOT_GC))


def minors() -> Iterator[Version]:
    """Yield every supported minor, in order."""
    return ((1, minor) for minor in range(FIRST[1], LAST[1] + 1))


def text(version: Version) -> str:
    """Return a version as users write it: `1.18`."""
    return f"{version[0]}.{version[1]}"


def node_config_api(version: Version) -> str:
    """Return the apiVersion in which that minor stores CiliumNodeConfigs."""
    return "cilium.io/v2" if can(version, Capability.NODE_CONFIG_V2) else "cilium.io/v2alpha1"


def bgp_peers(version: Version) -> str:
    """Return the command that lists the BGP sessions of an agent of that minor."""
    return max((minor, words) for minor, words in BGP_PEERS.items() if (1, minor) <= version)[1]


_POD_CIDR, _POD_CIDR_ALIAS = "network.cilium.io/ipv{}-pod-cidr", "io.cilium.network.ipv{}-pod-cidr"
POD_CIDR_ANNOTATIONS = tuple(key.format(family) for key in (_POD_CIDR, _POD_CIDR_ALIAS) for family in BITS)
"""Annotations of a Node with a block: names, then aliases (pkg/annotation/k8s.go)."""


def pod_cidr_annotation(version: Version, family: int) -> str:
    """Return the Node annotation for a block of a family that `podCIDRs` does not have (pkg/k8s/node.go)."""
    named = can(version, Capability.NETWORK_ANNOTATIONS)
    return (_POD_CIDR if named else _POD_CIDR_ALIAS).format(family)


def usable_addresses(version: Version, blocks: Iterable[Block], pool: Pool | None = None) -> int:
    """Return how many addresses of blocks in a pool pods can have in that minor.
    Of a large IPv6 block an agent uses 65,536 (NewCIDRRange in pkg/ipam/service/ipallocator/allocator.go,
    in github.com/cilium/ipam up to 1.13).
    """
    tiny = can(version, Capability.TINY_BLOCKS)
    # Outside multi-pool mode no pool has these fields (IPC0561).
    ends = sum(pool.allows.values()) if pool and can(version, Capability.ALLOW_ENDS) else 0
    used = (block if block.family == 4 else Block(6, block.first, max(block.prefix, 112)) for block in blocks)
    return sum(usable(block, all_of_tiny=tiny, ends=ends) for block in used)


def usable_of(cluster: Cluster, line: Line) -> int:
    """Return the number of addresses of a line's block for pods, in the cluster's mode and minor."""
    return usable_in(cluster, line.block, line.pool)


def usable_in(cluster: Cluster, block: Block, pool: str) -> int:
    """Return how many addresses of a block of a pool pods can have, in the cluster's mode and minor."""
    if cluster.mode is Mode.CRD:
        return usable(block, all_of_tiny=True)
    return usable_addresses(cluster.cilium, (block,), cluster.pools_by_name.get(pool))


INFRASTRUCTURE = 3
"""Addresses of each family that an agent takes from its default pool for itself: router, health, ingress."""
PRE_ALLOCATION = 8
"""The default pre-allocation of the default pool by agents (pkg/option/config.go, 1.15.19 to 1.20.2)."""


def needed_addresses(in_use: int, pre_allocation: int) -> int:
    """Return how many addresses an agent requests of a pool: the second next multiple of its pre-allocation.
    `neededIPCeil` in pkg/ipam/multipool_manager.go@1.20.2; pkg/ipam/multipool.go before.
    """
    if pre_allocation == 0:
        return in_use
    quotient, rest = divmod(in_use, pre_allocation)
    return (quotient + (2 if rest else 1)) * pre_allocation


def pre_allocation(
    version: Version, blocks: Iterable[Block], pool: Pool | None = None, *, default: bool
) -> int | None:
    """Return the largest pre-allocation, up to 8, with which an idle agent needs only a node's blocks.
    `default`: the agent takes its own addresses from this pool. Each family must suffice by itself. None if
    even 1 requests too much: the agent would be ready, and the operator would report `pool empty`. The
    arithmetic was seen with agents, and that it suffices for blocks of 8, 16 and 32 addresses.
    """
    room: dict[int, int] = {}
    for block in blocks:
        room[block.family] = room.get(block.family, 0) + usable_addresses(version, (block,), pool)
    return _largest(INFRASTRUCTURE if default else 0, min(room.values(), default=0))


@lru_cache
def _largest(in_use: int, room: int) -> int | None:
    return next(
        (number for number in range(PRE_ALLOCATION, 0, -1) if needed_addresses(in_use, number) <= room), None
    )
