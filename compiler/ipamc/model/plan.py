"""The values that the stages of placement pass on: a node's pools, its state, its needs, and the plan."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct, field

from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Pool, Scheme
from ipamc.model.diagnostics import At, Diagnostic
from ipamc.model.follows import following
from ipamc.model.lock import Growth, Line, Lock, State
from ipamc.model.node import Node

_NOTHING: Mapping[Any, Any] = MappingProxyType({})
"""An empty mapping that 100,000 values share."""


class Offer(msgspec.Struct, frozen=True):
    """A pool as a node sees it. Shared by all nodes that are equal for selectors."""

    pool: Pool
    sizes: dict[int, int]
    """Prefix length of this node's blocks, by family."""
    instead: Sequence[Offer] = ()
    """The pools that may replace it when it is full, in order (one-block modes)."""
    pinned: bool = False
    """It comes first because of a pin."""


class Fallbacks(Sequence[Offer]):
    """The other pools of one selector, which share one list, followed by those of `overflow`."""

    __slots__ = ("_alike", "_but", "_overflow")

    def __init__(self, alike: tuple[Offer, ...], but: int, overflow: tuple[Offer, ...]) -> None:
        """`but` is the index of the pool itself among them."""
        self._alike, self._but, self._overflow = alike, but, overflow

    def __len__(self) -> int:
        return len(self._alike) - 1 + len(self._overflow)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        number = range(len(self))[index]
        rest = len(self._alike) - 1
        return (
            self._overflow[number - rest] if number >= rest else self._alike[number + (number >= self._but)]
        )

    def __iter__(self) -> Iterator[Offer]:
        for number, offer in enumerate(self._alike):
            if number != self._but:
                yield offer
        yield from self._overflow

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


class Offers(tuple[Offer, ...]):  # noqa: SLOT001 - the names are kept beside the offers
    """The offers of a node, the first candidate first. Nodes that are equal for selectors share them."""

    @cached_property
    def overflow(self) -> frozenset[str]:
        """The names of the pools that may replace one of them by its `overflow`."""
        lists = {id(offer.pool.overflow): offer.pool.overflow for offer in self}
        return frozenset(name for names in lists.values() for name in names)


class Want(msgspec.Struct, frozen=True, gc=False):
    """A node and the pools that serve it, the first candidate first."""

    node: Node
    offers: tuple[Offer, ...]
    """An `Offers`, if `assign` created them."""

    @property
    def first(self) -> Pool | None:
        """Return the first candidate pool, or None if no pool serves the node."""
        return self.offers[0].pool if self.offers else None


def by_place(wants: Sequence[Want]) -> tuple[dict[str, Node], dict[str, Node]]:
    """Return the pools that are first candidates, and those that are further ones, each with a node."""
    first: dict[str, Node] = {}
    further: dict[str, Node] = {}
    seen: set[int] = set()
    for want in wants:
        # Nodes that are equal for selectors have the same tuple of offers.
        if want.first and id(want.offers) not in seen:
            seen.add(id(want.offers))
            first.setdefault(want.first.name, want.node)
            for offer in want.offers[1:]:
                further.setdefault(offer.pool.name, want.node)
    return first, further


def pod_cidrs(cluster: Cluster, held: Sequence[Line]) -> tuple[Block, ...]:
    """Return a node's held blocks as `spec.podCIDRs` lists them: in the order of `ipFamilies`."""
    if len(held) == 1:
        return (held[0].block,)
    return tuple(line.block for family in cluster.families for line in held if line.block.family == family)


class StaleReason(enum.Enum):
    """Why a lock is out of date."""

    NEWCOMER = "newcomer"
    LEAVER = "leaver"
    RETURNING = "returning"
    ARRIVED = "arrived"
    """A renumber is complete: the pending line is now held."""
    RENAMED = "renamed"
    RESIZED = "resized"
    """The node gets more blocks or addresses, or gives some back, because of their use."""
    INCOMPLETE = "incomplete"
    """The node needs more blocks than it holds."""
    UNQUARANTINED = "unquarantined"
    """One of its lines is released because its pool now follows the addresses of nodes."""
    FOLLOWED = "followed"
    """Cilium's operator allocates these blocks, and gave the node others."""


class Stale(msgspec.Struct, frozen=True, gc=False):
    """A reason why a lock is out of date, and its node."""

    reason: StaleReason
    node: str


class ShownBlock(msgspec.Struct, frozen=True, gc=False):
    """A block that a running node shows."""

    block: Block
    node: str
    at: At
    pool: str = ""
    """In multi-pool mode, the ipamc pool from which Cilium has it."""
    part: bool = False
    """It is a part of the node's block: addresses of `spec.ipam.pool` (crd mode), as aligned pieces."""

    def fits(self, block: Block) -> bool:
        """Return whether a line with this block matches the shown one."""
        return block.contains(self.block) if self.part else block == self.block


class Demand(msgspec.Struct, frozen=True, gc=False):
    """A node's need: a block of each of `families` from any offer, or `count` blocks of one offer."""

    want: Want
    families: tuple[int, ...]
    offer: Offer | None = None
    """None in one-block modes: try all offers."""
    count: Mapping[int, int] = _NOTHING
    """Missing blocks by family, if `offer` is set."""
    growth: Growth | None = None
    """The node has what the pool owes it, and gets this in addition, if there is room."""


class Origin(enum.StrEnum):
    """Why a node has a new block."""

    FIRST_FIT = "first fit"
    PIN = "pin"
    FOLLOWS = "by address"
    """Its pool follows the addresses of nodes."""
    RETURNED = "returned"
    """Its node is back in the inventory."""
    ADOPTED = "adopted"
    """The running node shows it."""
    RE_USED = "re-used"
    """It overlaps old lines whose quarantine is over."""
    RENUMBER = "renumber"
    """Placed by consent to replace another block."""
    RENAMED = "renamed"
    """It was the block of a node that the lock renamed. Only a comparison of two locks shows that."""


class NodeState(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A node between two steps of reconciling: its want, its shown blocks, its lines, and its needs."""

    name: str
    want: Want | None
    """None: the node is not in the inventory."""
    shown: tuple[ShownBlock, ...] = ()
    written: tuple[Line, ...] = ()
    """Its lines as in the lock, in all states, by family and address."""
    lines: tuple[Line, ...] = ()
    """The same lines with today's states, and adopted ones."""
    origins: Mapping[Block, Origin] = _NOTHING
    """For blocks that it did not have in the lock: returned or adopted."""
    renumbers: tuple[Demand, ...] = ()
    """Blocks to place as pending."""
    demands: tuple[Demand, ...] = ()
    """Blocks to place as held."""
    stale: tuple[StaleReason, ...] = ()
    """The changes by the steps."""
    found: tuple[Diagnostic, ...] = ()
    """Why steps were refused."""
    empty: bool = False
    """No pod uses its blocks: it is planned, or its Node joined again since it was rendered."""

    @property
    def held(self) -> tuple[Line, ...]:
        """Return the blocks that the node has now."""
        return tuple([line for line in self.lines if line.state is State.HELD])

    @property
    def pending(self) -> tuple[Line, ...]:
        """Return the blocks that the node will move to."""
        return tuple([line for line in self.lines if line.state is State.PENDING])

    @property
    def in_use(self) -> tuple[Line, ...]:
        """Return the held and the pending blocks."""
        return tuple([line for line in self.lines if line.in_use])


class Reconciled(Struct, frozen=True, kw_only=True):
    """The lock's lines after a comparison with the inventory, and the blocks still to place."""

    lock: Lock
    """Every line with today's state; nothing is placed yet."""
    held: Mapping[str, tuple[Line, ...]]
    """Held lines by node name, by family and address."""
    operator_pools: frozenset[str] = frozenset()
    """Names of the pools whose blocks Cilium's operator allocates."""
    demands: tuple[Demand, ...] = ()
    """Blocks to place as held, by node name."""
    renumbers: tuple[Demand, ...] = ()
    """Blocks to place as pending, by consent, by node name."""
    renumbered: Mapping[str, NodeState] = field(default_factory=dict)
    """The nodes of `renumbers`, by name."""
    taken: tuple[ShownBlock, ...] = ()
    """Blocks in use without a line, such as those of CiliumNodes without a node: no node may get them."""
    origins: Mapping[Block, Origin] = field(default_factory=dict)
    """Returned or adopted."""
    stale: tuple[Stale, ...] = ()
    disputed: frozenset[str] = frozenset()
    """Names of nodes that show other blocks than their lines, and of nodes whose lines have these blocks."""
    conflicting: frozenset[str] = frozenset()
    """Names of those that could not adopt a block, because a line of another node has it (IPC0423)."""


class Plan(Struct, frozen=True, kw_only=True):
    """The blocks of all nodes after this compile."""

    scheme: Scheme
    wants: tuple[Want, ...]
    """By node name."""
    lock: Lock
    origins: Mapping[Block, Origin]
    """Why each new block is new."""
    stale: tuple[Stale, ...]
    held: Mapping[str, tuple[Line, ...]]
    """Held lines by node name, by family and address."""
    more: tuple[Line, ...] = ()
    """The blocks that further nodes of groups would get, in the order in which they come."""
    operator_pools: frozenset[str] = frozenset()
    """Names of the pools whose blocks Cilium's operator allocates: their lines follow the nodes' objects."""
    disputed: frozenset[str] = frozenset()
    """Names of nodes about which the lock and the cluster disagree. Their lines stay as they are."""
    conflicting: frozenset[str] = frozenset()
    """As in `Reconciled`."""

    @property
    def decided_elsewhere(self) -> frozenset[str]:
        """Return the names of the pools that Cilium's operator, or the addresses of nodes, decide about."""
        return self.operator_pools | following(self.scheme)

    @property
    def cluster(self) -> Cluster:
        """Return the cluster that the plan is for. Raises TypeError for the plan of an address space."""
        if not isinstance(self.scheme, Cluster):
            raise TypeError(f"{self.scheme.name} is an address space")
        return self.scheme
