"""What each Cilium minor can do, as one table, and the few names and numbers that differ from one minor to the next.

Claims are marked with how they are known: *run* on real servers (operators 1.15.19 and 1.18.5), *read* in Cilium's source at the refs named beside them,
or *inferred* from what was read. Sources are paths in cilium/cilium at a tag, or its pull requests and issues.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ipamc.cidr import Block, usable
from ipamc.model import Version

FIRST: Version = (1, 11)
"""The oldest minor whose behaviour is known here."""
LAST: Version = (1, 20)
"""The newest."""


class Known(enum.StrEnum):
    """How a claim is known."""

    RUN = "run"
    READ = "read"
    INFERRED = "inferred"


class Capability(enum.Enum):
    """Something that not every supported minor can do."""

    CLUSTER_POOL_LIST = enum.auto()
    """Several ranges in cluster-pool mode."""
    NETWORK_ANNOTATIONS = enum.auto()
    """Node annotations are called `network.cilium.io/…`, not `io.cilium.network.…`."""
    HELM_ANNOTATE_NODE = enum.auto()
    """The chart has the value `annotateK8sNode`."""
    MULTI_POOL = enum.auto()
    """`ipam: multi-pool`, CiliumPodIPPool and `auto-create-cilium-pod-ip-pools`."""
    DEFAULT_IP_POOL = enum.auto()
    """`ipam-default-ip-pool`, also in a CiliumNodeConfig: a default pool for some nodes."""
    NODE_CONFIG_V2 = enum.auto()
    """CiliumNodeConfig is served as `cilium.io/v2`, not only as `cilium.io/v2alpha1`."""
    TINY_BLOCKS = enum.auto()
    """Every address of a /31, /32, /127 and /128 is given to pods; before, none."""
    HELM_PRE_ALLOCATION = enum.auto()
    """The chart has the value `ipam.multiPoolPreAllocation`."""
    DO_NOT_GC = enum.auto()
    """`cilium.io/do-not-gc: "true"` keeps the operator from collecting a CiliumNode without a Node."""
    MULTI_POOL_TUNNEL = enum.auto()
    """Multi-pool mode works with tunnel routing."""
    ORPHAN_BLOCKS = enum.auto()
    """A block in `pools.allocated` whose CiliumPodIPPool is missing stays; before, the operator empties it."""
    NUMERIC_ALLOCATED = enum.auto()
    """The operator writes the CIDRs of `pools.allocated` in order of address; before, in order of text."""
    IMMUTABLE_MASK = enum.auto()
    """The apiserver refuses another `maskSize` for a CiliumPodIPPool; before, only the operator does."""
    METALLB = enum.auto()
    """The MetalLB speaker inside the agent, `bgp-announce-pod-cidr`."""
    METALLB_CILIUM_NODE = enum.auto()
    """That speaker announces the podCIDRs of CiliumNodes too; before, those of Nodes only."""
    BGP_CONTROL_PLANE = enum.auto()
    """The BGP control plane announces a node's podCIDRs."""
    BGP_CILIUM_NODE = enum.auto()
    """The BGP control plane reads CiliumNodes in every mode; before, Nodes in kubernetes mode."""
    BGP_POOL_ADVERTS = enum.auto()
    """The BGP control plane announces blocks by the labels of their CiliumPodIPPool."""
    BGP_PEERING_POLICY = enum.auto()
    """CiliumBGPPeeringPolicy."""
    BGP_ADVERTISEMENT = enum.auto()
    """CiliumBGPAdvertisement and CiliumBGPClusterConfig."""


class Row(NamedTuple):
    """One claim: the minors, both included, that have a capability."""

    capability: Capability
    first: Version
    last: Version
    known: Known
    source: str


_INFERRED, _READ, _RUN = Known.INFERRED, Known.READ, Known.RUN

TABLE = (
    Row(
        Capability.CLUSTER_POOL_LIST,
        FIRST,
        LAST,
        _RUN,
        "chart values@1.11.1: clusterPoolIPv4PodCIDRList; run with two ranges on 1.15 and 1.18",
    ),
    Row(Capability.NETWORK_ANNOTATIONS, (1, 13), LAST, _READ, "pkg/annotation/k8s.go@1.11.1, 1.12.19, 1.13.18"),
    Row(Capability.HELM_ANNOTATE_NODE, (1, 12), LAST, _READ, "chart values@1.11.1 has none, @1.12.19 and @1.13.18 have it"),
    Row(Capability.MULTI_POOL, (1, 14), LAST, _RUN, "PR #25824; pkg/ipam/option/option.go@1.12.19, 1.14.19; run on 1.15 and 1.18"),
    Row(Capability.DEFAULT_IP_POOL, (1, 15), LAST, _READ, "PR #28818; pkg/option/config.go@1.14.19, 1.15.19"),
    Row(
        Capability.NODE_CONFIG_V2,
        (1, 16),
        LAST,
        _RUN,
        "client/crds/v2/ciliumnodeconfigs.yaml@1.16.19; run as v2alpha1 on 1.15, as v2 on 1.18",
    ),
    Row(Capability.TINY_BLOCKS, (1, 17), LAST, _READ, "PR #34618; pkg/ipam/allocator/multipool/pool_allocator.go@1.16.19, 1.17.8"),
    Row(Capability.HELM_PRE_ALLOCATION, (1, 17), LAST, _READ, "chart values@1.15.19, 1.17.8"),
    Row(Capability.DO_NOT_GC, (1, 18), LAST, _RUN, "operator/watchers/cilium_node_gc.go@1.17.8, 1.18.5; run: 1.15 collects, 1.18 keeps"),
    Row(Capability.MULTI_POOL_TUNNEL, (1, 18), LAST, _READ, "PR #38483; Documentation/network/concepts/ipam/multi-pool.rst"),
    Row(Capability.ORPHAN_BLOCKS, (1, 19), LAST, _READ, "PR #42126; multipool/pool_allocator.go@1.18.5, 1.19.7; run on 1.18: emptied"),
    Row(Capability.NUMERIC_ALLOCATED, (1, 20), LAST, _READ, "multipool/pool_allocator.go@1.19.7, 1.20.2; run on 1.15 and 1.18: text order"),
    Row(Capability.IMMUTABLE_MASK, (1, 20), LAST, _READ, "client/crds/v2alpha1/ciliumpodippools.yaml@1.19.7, 1.20.2"),
    Row(Capability.METALLB, FIRST, (1, 16), _READ, "go.mod@1.16.19, 1.17.8: go.universe.tf/metallb is gone"),
    Row(Capability.METALLB_CILIUM_NODE, (1, 12), (1, 16), _READ, "pkg/bgp/speaker/speaker.go@1.12.19; issue #18852 for 1.11"),
    Row(Capability.BGP_CONTROL_PLANE, (1, 12), LAST, _READ, "pkg/bgpv1@1.12.19, pkg/bgp@1.20.2"),
    Row(Capability.BGP_CILIUM_NODE, (1, 15), LAST, _READ, "pkg/bgpv1/agent/nodespecer.go@1.14.19, gone in 1.15.19"),
    Row(
        Capability.BGP_POOL_ADVERTS,
        (1, 15),
        LAST,
        _READ,
        "PR #27100: podIPPoolSelector; CiliumBGPAdvertisement type CiliumPodIPPool from 1.16",
    ),
    Row(Capability.BGP_PEERING_POLICY, (1, 12), (1, 18), _READ, "client/crds/v2alpha1@1.12.19, 1.18.5, 1.19.7"),
    Row(Capability.BGP_ADVERTISEMENT, (1, 16), LAST, _READ, "client/crds/v2alpha1@1.16.19, v2@1.18.5"),
)

_ROWS = {row.capability: row for row in TABLE}


def can(version: Version, capability: Capability) -> bool:
    """Tell whether a Cilium minor has a capability."""
    row = _ROWS[capability]
    return row.first <= version <= row.last


def since(capability: Capability) -> Version:
    """Give the first supported minor that has a capability."""
    return _ROWS[capability].first


def until(capability: Capability) -> Version:
    """Give the last minor that has a capability; `LAST` where it was not removed."""
    return _ROWS[capability].last


def text(version: Version) -> str:
    """Write a version as users do: `1.18`."""
    return f"{version[0]}.{version[1]}"


def node_config_api(version: Version) -> str:
    """Give the apiVersion in which that minor stores CiliumNodeConfigs."""
    return "cilium.io/v2" if can(version, Capability.NODE_CONFIG_V2) else "cilium.io/v2alpha1"


def pod_cidr_annotation(version: Version, family: int) -> str:
    """Give the Node annotation in which that minor looks for a block; it looks only with `annotate-k8s-node: "true"` (pkg/k8s/node.go)."""
    return (
        f"network.cilium.io/ipv{family}-pod-cidr"
        if can(version, Capability.NETWORK_ANNOTATIONS)
        else f"io.cilium.network.ipv{family}-pod-cidr"
    )


def usable_addresses(version: Version, blocks: Iterable[Block]) -> int:
    """Count the addresses that pods can have in blocks, by that minor's arithmetic."""
    tiny = can(version, Capability.TINY_BLOCKS)
    return sum(usable(block, all_of_tiny=tiny) for block in blocks)


INFRASTRUCTURE = 3
"""Addresses of each family that an agent takes from its default pool for itself: router, health, ingress."""
PRE_ALLOCATION = 8
"""What agents pre-allocate of their default pool if nothing is said (pkg/option/config.go@1.15.19 to 1.20.2)."""


def needed_addresses(in_use: int, pre_allocation: int) -> int:
    """Count the addresses that an agent in multi-pool mode asks of a pool: the next multiple but one of its pre-allocation.

    `neededIPCeil` in pkg/ipam/multipool_manager.go@1.20.2; pkg/ipam/multipool.go before.
    """
    if pre_allocation == 0:
        return in_use
    quotient, rest = divmod(in_use, pre_allocation)
    return (quotient + (2 if rest else 1)) * pre_allocation


def pre_allocation(version: Version, blocks: Iterable[Block], *, default: bool) -> int | None:
    """Give the largest pre-allocation, at most 8, with which an idle agent asks for no more than a node's blocks of one pool hold.

    `default`: the agent takes its own addresses from this pool. Each family must suffice by itself. None if even 1 asks for too much: the agent would
    wait for an address that the operator cannot give. The arithmetic is read, that it suffices is inferred.
    """
    room: dict[int, int] = {}
    for block in blocks:
        room[block.family] = room.get(block.family, 0) + usable_addresses(version, (block,))
    return _largest(INFRASTRUCTURE if default else 0, min(room.values(), default=0))


@lru_cache
def _largest(in_use: int, room: int) -> int | None:
    return next((each for each in range(PRE_ALLOCATION, 0, -1) if needed_addresses(in_use, each) <= room), None)
