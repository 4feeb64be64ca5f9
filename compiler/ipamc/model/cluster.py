"""What the compiler knows about a cluster, whatever dialect it came in. Frozen: no stage changes what it was given."""

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


class State(enum.StrEnum):
    """What a lock line says of its block."""

    HELD = "held"
    """The node has the block now."""
    PENDING = "pending"
    """The node is to move to the block, by consent. It is kept for the node, and nothing is rendered for it."""
    QUARANTINED = "quarantined"
    """The node left the inventory, or moved to another block. Its addresses are not given out for some days."""
    RELEASED = "released"
    """Nobody has the block any more: its addresses can be given out at once."""


class Line(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One line of the lock: a block, the node that it is about, and in which state it is."""

    block: Block
    pool: str = ""
    """"" for a held block that lies outside every pool (`unpooled: hold`)."""
    node: str
    state: State = State.HELD
    since: str = ""
    """The day from which a quarantined line is in quarantine, ISO 8601 in UTC; sorts as text. Empty in the other states."""
    moved: bool = False
    """A quarantined line: the node moved to another block, and this one never returns to it."""
    was_pending: bool = False
    """A quarantined line: it was pending when its node left, and is again if the node returns."""

    @property
    def in_use(self) -> bool:
        """Tell whether the node has this block now, or is to move to it."""
        return self.state is State.HELD or self.state is State.PENDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """The memory: header and lines."""

    cluster: str
    mode: Mode
    shards: int
    """Shard count, a power of two."""
    lines: tuple[Line, ...] = ()
    """By family and address."""
    path: str = ""
    """The file, as the user would type it."""
    written: tuple[Line, ...] = ()
    """The lines as they stand in the file, below its header. Findings quote these, whatever became of `lines`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What a person agreed to, for one run. Reviewed in the lock's lines, never a switch that stays on."""

    leave: frozenset[str] = frozenset()
    """Node names that may leave, or "all"."""
    renumber: tuple[str, ...] = ()
    """Whose blocks are to be replaced: NODE, CIDR or pool/NAME."""
    settle: frozenset[str] = frozenset()
    """Node names that have moved to their pending blocks."""
    release: frozenset[str] = frozenset()
    """Whose quarantined or pending lines are released: NODE or CIDR."""
    rename: tuple[tuple[str, str], ...] = ()
    """(dead node, its replacement)."""
    reshard: bool = False
    """The shard count may grow to what `output.shardSize` asks for."""
    mode: bool = False
    """The lock may go over to the Cluster's mode."""


class Offer(msgspec.Struct, frozen=True):
    """A pool as a node sees it. Shared by all nodes that look alike to the selectors."""

    pool: Pool
    sizes: dict[int, int]
    """Prefix length of this node's blocks, by family."""
    instead: tuple[Offer, ...] = ()
    """Who may take its place when it is full, in order (one-block modes)."""
    pinned: bool = False
    """It is here, first, because of a pin."""


class Want(msgspec.Struct, frozen=True):
    """A node and the pools that serve it, the first candidate first."""

    node: Node
    offers: tuple[Offer, ...]


class Stale(NamedTuple):
    """A named reason why a lock is out of date."""

    reason: str
    """newcomer, leaver, returning, settled, renamed or lacking."""
    node: str
    detail: str = ""


class Lacking(msgspec.Struct, frozen=True):
    """What a node still needs. In one-block modes `families` over all its offers; else `count` blocks of each family of one offer."""

    want: Want
    families: tuple[int, ...]
    offer: Offer | None = None
    """None in one-block modes: walk the offers."""
    count: dict[int, int] = {}
    """Blocks that are missing, by family, where `offer` is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The lock's lines against the inventory: what stays, and what is still to be placed."""

    lock: Lock
    """Every line with its state of today; nothing placed yet."""
    held: Mapping[str, tuple[Line, ...]]
    """Held lines by node name, by family and address."""
    lacking: tuple[Lacking, ...] = ()
    """By node name."""
    moving: tuple[Lacking, ...] = ()
    """Whose blocks are to be replaced by consent: what is placed for them is pending. By node name."""
    taken: tuple[Range, ...] = ()
    """Blocks that nobody may be given, besides lines, reserved, excluded and pins: those of CiliumNodes without a node."""
    origins: Mapping[Block, str] = field(default_factory=dict)
    """returned or adopted."""
    stale: tuple[Stale, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the cluster is to look like."""

    cluster: Cluster
    wants: tuple[Want, ...]
    """By node name."""
    lock: Lock
    origins: Mapping[Block, str]
    """Why a block is new here: returned, adopted, pin, first fit, re-used."""
    stale: tuple[Stale, ...]
    held: Mapping[str, tuple[Line, ...]]
    """Held lines by node name, by family and address."""
