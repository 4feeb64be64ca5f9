"""A cluster as read, the same value for every input dialect. Frozen: no stage changes its input."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Literal

from msgspec import Struct, field

from ipamc.model.acknowledge import Acknowledged
from ipamc.model.admission import Admission
from ipamc.model.assertion import Assertion
from ipamc.model.bgp import Advertisement, NodeOverride, PeerCluster, PeerConfig
from ipamc.model.cidr import Block, OverlapIndex, Range
from ipamc.model.diagnostics import Place, Related
from ipamc.model.node import CiliumNode, Node, NodeGroup
from ipamc.model.selector.selector import Selector, SelectorIndex
from ipamc.model.space import Ask

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

    @property
    def one_block(self) -> bool:
        """Return whether a node has one block of each family: Cilium gives pods only the first one."""
        return self in {Mode.KUBERNETES, Mode.CLUSTER_POOL}


class SpaceMode(enum.StrEnum):
    """The mode of the lock of an address space, in which a range has one block of each family."""

    SPACE = "address-space"

    @property
    def one_block(self) -> bool:
        """Return whether a range has one block of each family: it has."""
        return True


LockMode = Mode | SpaceMode
LOCK_MODES: Mapping[str, LockMode] = {mode.value: mode for mode in (*Mode, *SpaceMode)}
"""The modes that a lock can have, by their text in its header."""


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


class Masquerade(Struct, frozen=True, kw_only=True):
    """`spec.cilium.masquerade`: the settings of masquerading that are rendered."""

    ip_masq_agent: bool = True  # a list for Cilium's ip-masq-agent; else one CIDR of each family
    non_masquerade: tuple[Range, ...] = ()  # `nonMasqueradeCIDRs`: CIDRs besides those of pools
    members: bool = True  # `addressSpace`: the addresses of the other clusters of the address space, too
    link_local: bool = False  # `masqLinkLocal`: 169.254.0.0/16 is masqueraded
    link_local_6: bool = False  # `masqLinkLocalIPv6`: fe80::/10 is
    only_default_pool: bool = False  # multi-pool mode; pods of other pools keep their addresses


class Scheme(Struct, frozen=True, kw_only=True, dict=True):
    """What blocks are placed for: the nodes of a cluster, or the ranges that pools request from a space."""

    name: str
    at: Place
    families: tuple[int, ...] = (4,)
    """The first is the primary family."""
    excluded: tuple[Range, ...] = ()
    """`excludedCIDRs`, and the CIDRs of Calico pools that are not for workloads."""
    unmatched_nodes: UnmatchedNodes = "error"
    unpooled: Unpooled = "refuse"
    quarantine_days: int | None = 7  # None: never
    budget_leave: int = 5  # percent
    labels: Mapping[str, str] = {}  # of the document
    address_space: str = ""
    """The address space of which the addresses are; "" for none, and for an address space."""
    patch_nodes: PatchNodes = "none"
    shard_size: int = 250
    pools: tuple[Pool, ...] = ()
    nodes: tuple[Node, ...] = ()
    groups: tuple[NodeGroup, ...] = ()
    cilium_nodes: tuple[CiliumNode, ...] = ()
    """Pools, nodes and CiliumNodes are sorted by name, groups as written."""
    truncated: Place | None = None
    """A `List` with `metadata.continue`: the rest of the list is not in the input."""
    tests: tuple[Assertion, ...] = ()
    """In order of file and place; empty if the cluster was not read for a compile."""
    acknowledges: tuple[Acknowledged, ...] = ()

    @property
    def mode(self) -> LockMode:
        """Return the mode that the lock has."""
        return SpaceMode.SPACE

    @property
    def own_pools(self) -> bool:
        """Return whether each node has CiliumPodIPPools of its own (multi-pool mode, `pinning: node`)."""
        return False

    @property
    def shared_pools(self) -> bool:
        """Return whether nodes share CiliumPodIPPools, so that the operator chooses their blocks."""
        return False

    @property
    def operator_adopts(self) -> bool:
        """Return whether Cilium's operator gives blocks of `unlisted` pools to other nodes."""
        return False

    @property
    def assigns(self) -> bool:
        """Return whether admission gives nodes their blocks when they join."""
        return False

    def may_run(self, node: Node) -> bool:
        """Return whether pods may run on a node: if admission gives blocks, even on a planned one."""
        return not node.planned or self.assigns

    def families_of(self, node: str) -> tuple[int, ...]:  # noqa: ARG002 - of a space, by node
        """Return the families in which a node has blocks."""
        return self.families

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


class AddressSpace(Scheme, frozen=True, kw_only=True, dict=True):
    """Ranges for clusters: its nodes are ranges that pools of clusters request."""

    asks: Mapping[str, Mapping[int, int]] = {}
    """Prefix lengths by node and family."""

    def families_of(self, node: str) -> tuple[int, ...]:
        """Return the requested families."""
        return tuple(self.asks[node])


class Cluster(Scheme, frozen=True, kw_only=True, dict=True):
    """Everything that was read of a cluster, with defaults filled in."""

    cilium: Version
    """The minor whose behaviour is assumed."""
    written: Version | None = None  # the minor in the document, if it is unknown: `cilium` is assumed instead
    assume: Version | None = None
    """The minor to assume for an unknown newer one, if the document sets it; `taken_for` applies it."""
    managed_by: ManagedBy
    namespace: str = "kube-system"
    routing_mode: RoutingMode | Literal[""] = ""
    """Empty: unknown, so its rules are not checked."""
    native_routing: Range | None = None
    services: Pool | None = None  # a pool without nodes: what an address space gives for `services`
    cloud_routes: int = 0  # the routes that a table of the cloud holds; 0: the cloud routes nothing
    masquerade: Masquerade | None = None  # None: masquerading is not rendered
    runs_on: Selector | None = None
    """`spec.cilium.nodeSelector`: the nodes that run Cilium. None: `without_cilium()` tells."""
    kubernetes: Version | None = None
    mode: Mode
    operator: OperatorRole = "bystander"
    """Applies only in cluster-pool mode; use `operator_adopts` or `bystander`."""
    pinning: Pinning = "pool"
    """Applies only in multi-pool mode; use `own_pools` or `shared_pools`."""
    auto_create: tuple[str, ...] = ()
    bgp: Bgp = "none"
    advertisements: tuple[Advertisement, ...] = ()
    """`bgpAdvertisements`, and those of the input; by name."""
    peer_configs: tuple[PeerConfig, ...] = ()
    peer_clusters: tuple[PeerCluster, ...] = ()
    node_overrides: tuple[NodeOverride, ...] = ()
    cluster_id: int = 0  # of ClusterMesh, like `mesh_name`; 0: not set
    mesh_name: str = ""
    context: str = ""  # the kubeconfig's, as written; use `kube_context`
    node_objects: NodeObjects = "guarded"
    admission: Admission = Admission()

    @property
    def kube_context(self) -> str:
        """Return the name of the context of a kubeconfig that leads to the cluster."""
        return self.context or self.name

    @property
    def networks(self) -> tuple[Pool, ...]:
        """Return the pools, and the service network: all that may ask an address space."""
        return (*self.pools, *filter(None, [self.services]))

    @property
    def has_bgp_objects(self) -> bool:
        """Return whether objects of the BGP control plane are in the input or to render."""
        return any((self.advertisements, self.peer_configs, self.peer_clusters, self.node_overrides))

    @property
    def own_pools(self) -> bool:
        """See `Scheme`."""
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

    @property
    def assigns(self) -> bool:
        """See `Scheme`."""
        return self.admission.assign

    @property
    def version_here(self) -> Related:
        """Return the place of Cilium's version, as a related place of a finding."""
        return Related(self.field("spec", "cilium", "version"), "the version is set here")
