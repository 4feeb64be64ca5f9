"""What the stages of placement hand on: a node's pools, its state, what it needs, and the plan."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct, field

from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Node, Pool
from ipamc.model.diagnostics import At, Diagnostic
from ipamc.model.lock import Growth, Line, Lock, State

_NOTHING: Mapping[Any, Any] = MappingProxyType({})
"""An empty mapping that 100,000 values share."""


class Offer(msgspec.Struct, frozen=True):
    """A pool as a node sees it. Shared by all nodes that look alike to the selectors."""

    pool: Pool
    sizes: dict[int, int]
    """Prefix length of this node's blocks, by family."""
    instead: Sequence[Offer] = ()
    """The pools that may take its place when it is full, in order (one-block modes)."""
    pinned: bool = False
    """It is here, first, because of a pin."""


class Fallbacks(Sequence[Offer]):
    """The other pools of one selector, which share one list of them all, then those of `overflow`."""

    __slots__ = ("_but", "_overflow", "_twins")

    def __init__(self, twins: tuple[Offer, ...], but: int, overflow: tuple[Offer, ...]) -> None:
        """`but` is the place of the pool itself among its twins."""
        self._twins, self._but, self._overflow = twins, but, overflow

    def __len__(self) -> int:
        return len(self._twins) - 1 + len(self._overflow)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        number = range(len(self))[index]
        twins = len(self._twins) - 1
        return (
            self._overflow[number - twins] if number >= twins else self._twins[number + (number >= self._but)]
        )

    def __iter__(self) -> Iterator[Offer]:
        for number, twin in enumerate(self._twins):
            if number != self._but:
                yield twin
        yield from self._overflow

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


class Offers(tuple[Offer, ...]):  # noqa: SLOT001 - the names are kept beside the offers
    """The offers of a node, the first candidate first. Nodes that look alike to the selectors share them."""

    @cached_property
    def overflow(self) -> frozenset[str]:
        """The names of the pools that may stand in for one of them by its `overflow`."""
        lists = {id(offer.pool.overflow): offer.pool.overflow for offer in self}
        return frozenset(name for names in lists.values() for name in names)


class Want(msgspec.Struct, frozen=True, gc=False):
    """A node and the pools that serve it, the first candidate first."""

    node: Node
    offers: tuple[Offer, ...]
    """`Offers`, where `assign` made them."""


def by_place(wants: Sequence[Want]) -> tuple[dict[str, Node], dict[str, Node]]:
    """Return the pools that are first candidates, and those that are further ones, each with a node."""
    first: dict[str, Node] = {}
    further: dict[str, Node] = {}
    seen: set[int] = set()
    for want in wants:
        # Nodes that look alike to the selectors have the same tuple of offers.
        if want.offers and id(want.offers) not in seen:
            seen.add(id(want.offers))
            first.setdefault(want.offers[0].pool.name, want.node)
            for offer in want.offers[1:]:
                further.setdefault(offer.pool.name, want.node)
    return first, further


class StaleReason(enum.Enum):
    """Why a lock is out of date."""

    NEWCOMER = "newcomer"
    LEAVER = "leaver"
    RETURNING = "returning"
    ARRIVED = "arrived"
    """A renumber is complete: the pending line is held now."""
    RENAMED = "renamed"
    RESIZED = "resized"
    """The node gets more blocks or addresses, or gives some back, by their use."""
    INCOMPLETE = "incomplete"
    """The node wants a block more than it holds."""
    UNQUARANTINED = "unquarantined"
    """A line of it is released, as its pool follows the addresses of nodes now."""
    FOLLOWED = "followed"
    """Cilium's operator decides about these blocks, and gave the node others."""


class Stale(msgspec.Struct, frozen=True, gc=False):
    """A reason why a lock is out of date, and the node that it is about."""

    reason: StaleReason
    node: str


class ShownBlock(msgspec.Struct, frozen=True, gc=False):
    """A block that a running node shows."""

    block: Block
    node: str
    at: At
    pool: str = ""
    """In multi-pool mode, the ipamc pool that Cilium has it from."""
    part: bool = False
    """It is a part of the node's block: addresses of `spec.ipam.pool` (crd mode), as aligned pieces."""

    def fits(self, block: Block) -> bool:
        """Tell whether a line with this block says the same as what is shown."""
        return block.contains(self.block) if self.part else block == self.block


class Demand(msgspec.Struct, frozen=True, gc=False):
    """What a node still needs: a block of each of `families` over all offers, else `count` of one offer."""

    want: Want
    families: tuple[int, ...]
    offer: Offer | None = None
    """None in one-block modes: walk the offers."""
    count: Mapping[int, int] = _NOTHING
    """Blocks that are missing, by family, where `offer` is given."""
    growth: Growth | None = None
    """The node has what the pool owes it, and gets this beside it, if there is room."""


class Origin(enum.StrEnum):
    """Why a block is new to its node."""

    FIRST_FIT = "first fit"
    PIN = "pin"
    FOLLOWS = "by address"
    """Its pool follows the addresses of nodes."""
    RETURNED = "returned"
    """Its node is back in the inventory."""
    ADOPTED = "adopted"
    """The running node shows it."""
    RE_USED = "re-used"
    """It lies over old lines whose quarantine is over."""
    RENUMBER = "renumber"
    """Placed by consent in the place of another block."""
    RENAMED = "renamed"
    """It was the block of a node that the lock renamed. Only a comparison of two locks sees that."""


class NodeState(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A node between two steps of reconciling: its want, what it shows, its lines, and what it needs."""

    name: str
    want: Want | None
    """None: the node is not in the inventory."""
    shown: tuple[ShownBlock, ...] = ()
    written: tuple[Line, ...] = ()
    """Its lines as they are in the lock, in all states, by family and address."""
    lines: tuple[Line, ...] = ()
    """The same lines with their states of today, and those that it adopts."""
    origins: Mapping[Block, Origin] = _NOTHING
    """Of blocks that it did not have in the lock: returned or adopted."""
    renumbers: tuple[Demand, ...] = ()
    """What is to be placed as pending."""
    demands: tuple[Demand, ...] = ()
    """What is to be placed as held."""
    stale: tuple[StaleReason, ...] = ()
    """What the steps changed."""
    found: tuple[Diagnostic, ...] = ()
    """Why steps were refused."""
    empty: bool = False
    """No pod is on its blocks: it is planned, or its Node joined again since it was rendered."""

    @property
    def held(self) -> tuple[Line, ...]:
        """Return the blocks that the node has now."""
        return tuple([line for line in self.lines if line.state is State.HELD])

    @property
    def pending(self) -> tuple[Line, ...]:
        """Return the blocks that the node is to move to."""
        return tuple([line for line in self.lines if line.state is State.PENDING])

    @property
    def in_use(self) -> tuple[Line, ...]:
        """Return the held and the pending blocks."""
        return tuple([line for line in self.lines if line.in_use])


class Reconciled(Struct, frozen=True, kw_only=True):
    """The lock's lines against the inventory: what stays, and what is still to be placed."""

    lock: Lock
    """Every line with its state of today; nothing placed yet."""
    held: Mapping[str, tuple[Line, ...]]
    """Held lines by node name, by family and address."""
    operator_pools: frozenset[str] = frozenset()
    """Names of the pools whose blocks Cilium's operator gives out."""
    demands: tuple[Demand, ...] = ()
    """What is to be placed as held, by node name."""
    renumbers: tuple[Demand, ...] = ()
    """What is to be placed as pending, by consent, by node name."""
    renumbered: Mapping[str, NodeState] = field(default_factory=dict)
    """The nodes of `renumbers`, by name."""
    taken: tuple[ShownBlock, ...] = ()
    """Blocks that are in use without a line, as of CiliumNodes without a node: no node may get them."""
    origins: Mapping[Block, Origin] = field(default_factory=dict)
    """Returned or adopted."""
    stale: tuple[Stale, ...] = ()


class Plan(Struct, frozen=True, kw_only=True):
    """What the cluster is to look like."""

    cluster: Cluster
    wants: tuple[Want, ...]
    """By node name."""
    lock: Lock
    origins: Mapping[Block, Origin]
    """Why a block is new here."""
    stale: tuple[Stale, ...]
    held: Mapping[str, tuple[Line, ...]]
    """Held lines by node name, by family and address."""
    operator_pools: frozenset[str] = frozenset()
    """Names of the pools whose blocks Cilium's operator gives out: there, lines follow what nodes show."""
