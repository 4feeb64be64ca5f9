"""What was read of a cluster, whatever dialect it came in. Frozen: no stage changes what it was given."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Place
from ipamc.model.selector import Selector

Version = tuple[int, int]
"""Major and minor; compared as a tuple."""


class Mode(enum.StrEnum):
    """Cilium's `ipam` values that ipamc can serve."""

    KUBERNETES = "kubernetes"
    CLUSTER_POOL = "cluster-pool"
    MULTI_POOL = "multi-pool"
    CRD = "crd"

    @property
    def one_block(self) -> bool:
        """Tell whether a node has exactly one block a family: Cilium routes more, but gives pods only the first."""
        return self in {Mode.KUBERNETES, Mode.CLUSTER_POOL}


class Dialect(enum.StrEnum):
    """The language a pool was written in; the bounds of that language hold for it."""

    NATIVE = "IPPool"
    CALICO = "Calico IPPool"
    CLUSTER_CIDR = "ClusterCIDR"


class Range(NamedTuple):
    """One CIDR of the input, and where it stands."""

    block: Block
    at: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFamily:
    """The part of a pool that is of one family."""

    family: int
    ranges: tuple[Range, ...]
    """In the order as written: the order of allocation."""
    block_size: int
    """Prefix length of a node's block."""
    at: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeClass:
    """Another block size for a class of nodes. The first class that selects the node counts."""

    selector: Selector
    sizes: Mapping[int, int]
    """Prefix length by family; a family that is missing keeps the pool's `block_size`."""
    at: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool of addresses: ranges, and which nodes may have blocks of them."""

    name: str
    at: Place
    """The document's root."""
    dialect: Dialect = Dialect.NATIVE
    families: Mapping[int, PoolFamily]
    """By family, IPv4 first."""
    selector: Selector
    selector_at: Place
    priority: int = 0
    overflow: tuple[str, ...] = ()
    blocks_per_node: int = 1
    block_sizes: tuple[SizeClass, ...] = ()
    reserved: tuple[Range, ...] = ()
    pins: Mapping[str, tuple[Range, ...]] = field(default_factory=dict)
    """By node name."""
    unlisted: bool = False
    disabled: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node of the inventory. A Struct, because there are 100,000 of them."""

    name: str
    labels: dict[str, str]
    at: Place
    """The node's item or document."""
    uid: str = ""
    pod_cidrs: tuple[Block, ...] = ()
    """`spec.podCIDRs`, in its order."""
    max_pods: int = 0
    """0: not said."""
    planned: bool = False
    internal_ips: tuple[tuple[int, int], ...] = ()
    """(family, number) of each address of type InternalIP."""
    live: bool = False
    """It is a `v1 Node`, as the apiserver prints it; else a line of a NodeInventory."""


class CiliumNode(msgspec.Struct, frozen=True, gc=False):
    """Evidence: the blocks that Cilium shows for a node. In multi-pool mode each with the pool's name, else with ""."""

    name: str
    at: Place
    blocks: tuple[tuple[Block, str], ...] = ()
    allocated: tuple[tuple[Block, str], ...] = ()
    """`spec.ipam.pools.allocated`: (block, pool). `blocks` is `spec.ipam.podCIDRs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Everything that was read, defaults filled in."""

    name: str
    at: Place
    cilium: Version
    managed_by: str
    """helm, kustomize or none."""
    namespace: str = "kube-system"
    routing_mode: str = ""
    """native, tunnel, or "" for not checked."""
    native_routing: Range | None = None
    kubernetes: Version | None = None
    mode: Mode
    operator: str = "bystander"
    pinning: str = "pool"
    auto_create: tuple[str, ...] = ()
    families: tuple[int, ...] = (4,)
    """The first is the primary family."""
    excluded: tuple[Range, ...] = ()
    """`excludedCIDRs`, and the CIDRs of Calico pools that are not for workloads."""
    unmatched_nodes: str = "error"
    unpooled: str = "refuse"
    quarantine_days: int | None = 7
    """None: never."""
    budget_leave: int = 5
    """Percent."""
    bgp: str = "none"
    address_space: str = ""
    patch_nodes: str = "none"
    shard_size: int = 250
    node_objects: str = "guarded"
    pools: tuple[Pool, ...] = ()
    nodes: tuple[Node, ...] = ()
    cilium_nodes: tuple[CiliumNode, ...] = ()
    """By name, all three."""
    truncated: Place | None = None
    """A `List` whose `metadata.continue` says that there is more."""

    def field(self, *keys: str) -> Place:
        """Give the place of a field of the Cluster document, whether or not it is written there."""
        at = self.at
        for key in keys:
            at /= key
        return at
