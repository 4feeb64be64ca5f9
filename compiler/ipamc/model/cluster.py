"""A cluster as read, the same value for every input dialect. Frozen: no stage changes its input."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Literal

import msgspec
from msgspec import Struct, field

from ipamc.model.admission import Admission
from ipamc.model.assertion import Assertion
from ipamc.model.bgp import Advertisement, PeerCluster, PeerConfig
from ipamc.model.cidr import Address, Block, OverlapIndex, Range
from ipamc.model.diagnostics import At, Place, Related
from ipamc.model.selector.selector import Selector, SelectorIndex
from ipamc.model.space import Ask

HOSTNAME = "kubernetes.io/hostname"
"""The label that the kubelet sets to a node's host name."""

Version = tuple[int, int]
"""Major and minor; compared as a tuple."""

# Words of the Cluster document. They are Literal types, so that mypy refuses a misspelt word in a comparison.
ManagedBy = Literal["helm", "kustomize", "none"]
RoutingMode = Literal["native", "tunnel"]
OperatorRole = Literal["bystander", "adopt"]
Pinning = Literal["pool", "node", "none"]
UnmatchedNodes = Literal["error", "skip"]
Unpooled = Literal["refuse", "hold"]
Bgp = Literal["none", "metallb", "control-plane"]
PatchNodes = Literal["podCIDRs", "annotations", "none"]
NodeObjects = Literal["guarded", "create"]


class Mode(enum.StrEnum):
    """Cilium's `ipam` values that ipamc can serve."""

    KUBERNETES = "kubernetes"
    CLUSTER_POOL = "cluster-pool"
    MULTI_POOL = "multi-pool"
    CRD = "crd"
    SPACE = "address-space"
    """Not Cilium's: an address space, whose nodes are pools of clusters that request ranges."""

    @property
    def one_block(self) -> bool:
        """Return whether a node has one block of each family: Cilium gives pods only the first one."""
        return self in {Mode.KUBERNETES, Mode.CLUSTER_POOL, Mode.SPACE}


CILIUM_MODES = tuple(mode for mode in Mode if mode is not Mode.SPACE)
"""The modes that a Cluster can have."""


class Dialect(enum.StrEnum):
    """The dialect that a pool is written in; its limits apply to the pool."""

    NATIVE = "IPPool"
    CALICO = "Calico IPPool"
    CLUSTER_CIDR = "ClusterCIDR"


class PoolFamily(Struct, frozen=True, kw_only=True):
    """The ranges and the block size of one family of a pool."""

    family: int
    ranges: tuple[Range, ...]
    """In the order of the file, which is the order of allocation."""
    block_size: int
    """Prefix length of a node's block; in an address space, that of a range."""
    ask: Ask | None = None  # if it is set, `ranges` are those that the space gave
    follows: Range | None = None
    """The nodes' network: the n-th block belongs to the node with its n-th address (`model/follows.py`)."""
    at: Place


class SizeClass(Struct, frozen=True, kw_only=True):
    """Another block size for a class of nodes. The first class that selects a node applies to it."""

    selector: Selector
    sizes: Mapping[int, int]
    """Prefix length by family; an unlisted family keeps the pool's `block_size`."""
    at: Place


class Usage(Struct, frozen=True, kw_only=True):
    """When `ipamc resize` gives a node more blocks of a pool, and when it takes some back."""

    high: int
    """Percent of a node's usable addresses in use, above which it gets more."""
    low: int
    """Percent below which unused blocks are taken back."""
    least: int
    """The fewest blocks of a family that a node keeps (`minBlocks`)."""
    most: int
    """The most blocks that it gets (`maxBlocks`)."""
    addresses: int = 0
    """The number of single addresses of a new block that are rendered at first (crd mode); 0: all."""
    at: Place


class Pool(Struct, frozen=True, kw_only=True, dict=True):
    """A pool of addresses: its ranges, and the nodes that may have blocks of them."""

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
    """By node name; in a pool that follows the nodes' network, derived from their InternalIPs."""
    unlisted: bool = False
    disabled: bool = False
    """It gives only pins. So does a pool that follows the nodes' network, and one for pods alone."""
    pods_only: bool = False
    """Multi-pool mode: it serves no node by itself, only pods, by annotation or by its selectors of pods.
        Cilium's operator gives its blocks to the nodes on which such pods run."""
    labels: Mapping[str, str] = field(default_factory=dict)
    pod_selector: Selector | None = None
    """Multi-pool mode: selects pods that get addresses of this pool on any node; None: not set."""
    namespace_selector: Selector | None = None
    """The same by the labels of the pods' namespaces. If both are set, both must select a pod."""
    allow_first: bool = False
    """Multi-pool mode: pods may have the first address of a block; `allow_last`: the last one."""
    allow_last: bool = False
    skip_masquerade: bool = False
    """Multi-pool mode: pods of this pool keep their addresses for every destination."""
    usage: Usage | None = None
    """None: nodes keep their blocks."""

    @property
    def ranges(self) -> Iterator[Range]:
        """Return the ranges of all families, IPv4 first."""
        return (cidr for part in self.families.values() for cidr in part.ranges)

    @property
    def follows(self) -> tuple[Range, ...]:
        """Return the nodes' networks that its blocks follow, IPv4 first; () for most pools."""
        return tuple([part.follows for part in self.families.values() if part.follows])

    @property
    def by_pods(self) -> Mapping[str, Selector]:
        """Return the selectors of pods, by their field."""
        both = {"podSelector": self.pod_selector, "namespaceSelector": self.namespace_selector}
        return {name: selector for name, selector in both.items() if selector is not None}

    @property
    def allows(self) -> Mapping[str, bool]:
        """Return, by field, whether pods may have the first, and the last address of a block."""
        return {"allowFirstIP": self.allow_first, "allowLastIP": self.allow_last}

    def size_class(self, labels: Mapping[str, str], name: str) -> SizeClass | None:
        """Return the first class of `blockSizes` that selects a node, by its labels and name, or None."""
        number = self.class_index.first(labels, name) if self.block_sizes else None
        return None if number is None else self.block_sizes[number]

    def sizes(self, labels: Mapping[str, str], name: str) -> dict[int, int]:
        """Return the prefix lengths of a node's blocks by family: its class's, or the pool's own."""
        return self.sizes_of(self.class_index.first(labels, name) if self.block_sizes else None)

    def sizes_of(self, number: int | None) -> dict[int, int]:
        """Return the prefix lengths of blocks by family for a class of nodes by index; None: no class."""
        sizes = {family: part.block_size for family, part in self.families.items()}
        if number is not None:
            chosen = self.block_sizes[number].sizes
            sizes.update({family: size for family, size in chosen.items() if family in sizes})
        return sizes

    @cached_property
    def class_index(self) -> SelectorIndex:
        """Return the selectors of `blockSizes`, by index."""
        return SelectorIndex([size_class.selector for size_class in self.block_sizes])

    def reserved_over(self, block: Block) -> Range | None:
        """Return the first reserved CIDR, as written, that shares an address with a block, or None."""
        return self._reserved.first_over(block) if self.reserved else None

    @cached_property
    def _reserved(self) -> OverlapIndex[Range]:
        return OverlapIndex(self.reserved, attrgetter("block"))


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node, of the inventory or of a dump. A Struct, because there are 100,000 of them."""

    name: str
    labels: dict[str, str]
    at: At
    """The node's item or document."""
    uid: str = ""
    pod_cidrs: tuple[Block, ...] = ()
    """`spec.podCIDRs`, in its order."""
    max_pods: int = 0  # 0: unknown
    planned: bool = False
    internal_ips: tuple[Address, ...] = ()
    """Each address of type InternalIP."""
    live: bool = False
    """True for a `v1 Node` as the apiserver prints it, False for an entry of a NodeInventory."""
    ready: bool = False
    """The kubelet reports it as ready."""
    agent_ran: bool = False
    """It has the annotations of Cilium's agent, or the condition CiliumIsUp."""
    annotated: tuple[Block, ...] = ()
    """The blocks in Cilium's annotations, IPv4 first."""
    pod_ips: tuple[Address, ...] = ()
    """From a NodeInventory: addresses of its pods outside the blocks that its objects show."""
    annotations: Mapping[str, str] = {}
    """Only those of Cilium and Calico."""
    kubelet: str = ""
    """`status.nodeInfo.kubeletVersion`. This field and the next ones are only set from dumps."""
    provider_id: str = ""  # `spec.providerID`: `SCHEME://...`
    unschedulable: bool = False
    deleting: bool = False
    pattern: str = ""
    """For an entry of a NodeInventory with several nodes, which share `at`: its `names`."""
    unreadable: tuple[str, ...] = ()  # texts of `pod_cidrs` that are no CIDR

    @property
    def hostname(self) -> str:
        """Return the label `kubernetes.io/hostname`; without it the name, which the label will have."""
        return self.labels.get(HOSTNAME, self.name)

    @property
    def running(self) -> bool:
        """Return whether pods may run on the node. podCIDRs prove nothing: another program sets them."""
        return self.ready or self.agent_ran or bool(self.pod_ips)


class CiliumNode(msgspec.Struct, frozen=True, gc=False):
    """A `cilium.io/v2 CiliumNode`: evidence of a node's blocks, in the input or in a dump."""

    name: str
    at: At
    blocks: tuple[Block, ...] = ()
    """`spec.ipam.podCIDRs`, in its order."""
    allocated: tuple[tuple[Block, str], ...] = ()
    """`spec.ipam.pools.allocated` (multi-pool mode) as (block, pool), in its order."""
    requested: tuple[tuple[str, int, int], ...] = ()
    """`spec.ipam.pools.requested` as (pool, addresses of IPv4, addresses of IPv6)."""
    addresses: tuple[Block, ...] = ()
    """The single addresses of `spec.ipam.pool` (crd mode) as the fewest aligned blocks, by address."""
    used: tuple[Address, ...] = ()
    """The keys of `status.ipam.used` (crd mode)."""
    internal_ips: tuple[Address, ...] = ()
    """`spec.addresses` of type CiliumInternalIP: in the block that the agent had when it started."""
    health_ips: tuple[Address, ...] = ()
    """`spec.health` and `spec.ingress`: in the same block."""
    node_ips: tuple[Address, ...] = ()
    """`spec.addresses` of type InternalIP."""
    owner_uid: str = ""
    """The uid of the Node that owns it; "" without an owner: no agent has written the object."""
    error: str = ""
    """`status.ipam.operator-status.error`."""
    deleting: bool = False
    unreadable: tuple[tuple[str, str], ...] = ()  # (text, pool) of its blocks that are no CIDR


class Masquerade(Struct, frozen=True, kw_only=True):
    """`spec.cilium.masquerade`: the settings of masquerading that are rendered."""

    ip_masq_agent: bool = True  # a list for Cilium's ip-masq-agent; else one CIDR of each family
    non_masquerade: tuple[Range, ...] = ()  # `nonMasqueradeCIDRs`: CIDRs besides those of pools
    members: bool = True  # `addressSpace`: the addresses of the other clusters of the address space, too
    link_local: bool = False  # `masqLinkLocal`: 169.254.0.0/16 is masqueraded
    link_local_6: bool = False  # `masqLinkLocalIPv6`: fe80::/10 is
    only_default_pool: bool = False  # multi-pool mode; pods of other pools keep their addresses


class Cluster(Struct, frozen=True, kw_only=True, dict=True):
    """Everything that was read, with defaults filled in."""

    name: str
    at: Place
    cilium: Version
    """The minor whose behaviour is assumed."""
    written: Version | None = None
    """The minor in the document, if it is unknown and `cilium` is assumed instead."""
    assume: Version | None = None
    """The minor to assume for an unknown newer one, if the document sets it; `taken_for` applies it."""
    managed_by: ManagedBy
    namespace: str = "kube-system"
    routing_mode: RoutingMode | Literal[""] = ""
    """Empty: unknown, so its rules are not checked."""
    native_routing: Range | None = None
    masquerade: Masquerade | None = None  # None: masquerading is not rendered
    kubernetes: Version | None = None
    mode: Mode
    operator: OperatorRole = "bystander"
    """Applies only in cluster-pool mode; use `operator_adopts` or `bystander`."""
    pinning: Pinning = "pool"
    """Applies only in multi-pool mode; use `own_pools` or `shared_pools`."""
    auto_create: tuple[str, ...] = ()
    families: tuple[int, ...] = (4,)
    """The first is the primary family."""
    excluded: tuple[Range, ...] = ()
    """`excludedCIDRs`, and the CIDRs of Calico pools that are not for workloads."""
    unmatched_nodes: UnmatchedNodes = "error"
    unpooled: Unpooled = "refuse"
    quarantine_days: int | None = 7  # None: never
    budget_leave: int = 5  # percent
    bgp: Bgp = "none"
    advertisements: tuple[Advertisement, ...] = ()
    """`bgpAdvertisements`, and those of the input; by name."""
    peer_configs: tuple[PeerConfig, ...] = ()
    peer_clusters: tuple[PeerCluster, ...] = ()
    address_space: str = ""
    cluster_id: int = 0  # of ClusterMesh, like `mesh_name`; 0: not set
    mesh_name: str = ""
    labels: Mapping[str, str] = {}  # of the document
    asks: Mapping[str, Mapping[int, int]] = {}  # of an address space: prefix lengths by node and family
    patch_nodes: PatchNodes = "none"
    shard_size: int = 250
    node_objects: NodeObjects = "guarded"
    admission: Admission = Admission()
    pools: tuple[Pool, ...] = ()
    nodes: tuple[Node, ...] = ()
    cilium_nodes: tuple[CiliumNode, ...] = ()
    """Pools, nodes and CiliumNodes are sorted by name."""
    truncated: Place | None = None
    """A `List` with `metadata.continue`: the rest of the list is not in the input."""
    tests: tuple[Assertion, ...] = ()
    """In order of file and place; empty if the cluster was not read for a compile."""

    @property
    def is_space(self) -> bool:
        """Return whether this is an address space, whose nodes are pools of clusters."""
        return self.mode is Mode.SPACE

    @property
    def own_pools(self) -> bool:
        """Return whether each node has CiliumPodIPPools of its own (multi-pool mode, `pinning: node`)."""
        return self.mode is Mode.MULTI_POOL and self.pinning == "node"

    @property
    def shared_pools(self) -> bool:
        """Return whether nodes share CiliumPodIPPools, so that the operator chooses their blocks."""
        return self.mode is Mode.MULTI_POOL and self.pinning != "node"

    @property
    def operator_adopts(self) -> bool:
        """Return whether Cilium's operator gives blocks of `unlisted` pools to other nodes."""
        return self.mode is Mode.CLUSTER_POOL and self.operator == "adopt"

    @property
    def bystander(self) -> bool:
        """Return whether Cilium's operator must hand out nothing in cluster-pool mode."""
        return self.mode is Mode.CLUSTER_POOL and self.operator == "bystander"

    def may_run(self, node: Node) -> bool:
        """Return whether pods may run on a node: if admission gives blocks, even on a planned one."""
        return not node.planned or self.admission.assign

    def excluded_over(self, block: Block) -> Range | None:
        """Return the first excluded CIDR, as written, that shares an address with a block, or None."""
        return self.excluded_index.first_over(block) if self.excluded else None

    @cached_property
    def excluded_index(self) -> OverlapIndex[Range]:
        """Return the excluded CIDRs, for look-up by block."""
        return OverlapIndex(self.excluded, attrgetter("block"))

    @cached_property
    def pools_by_name(self) -> Mapping[str, Pool]:
        """Return the pools by name."""
        return {pool.name: pool for pool in self.pools}

    @cached_property
    def cilium_nodes_by_name(self) -> Mapping[str, CiliumNode]:
        """Return the CiliumNodes by name."""
        return {seen.name: seen for seen in self.cilium_nodes}

    def field(self, *keys: str) -> Place:
        """Return the place of a field of the Cluster document, even if the field is absent."""
        at = self.at
        for key in keys:
            at /= key
        return at

    @property
    def mode_here(self) -> Related:
        """Return the place of the mode, as a related place of a finding."""
        return Related(self.field("spec", "ipam", "mode"), "the mode is set here")

    @property
    def version_here(self) -> Related:
        """Return the place of Cilium's version, as a related place of a finding."""
        return Related(self.field("spec", "cilium", "version"), "the version is set here")
