"""What stages of placement hand on: who is offered which pools, what is still to be placed, and the plan."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Node, Pool, Range
from ipamc.model.lock import Line, Lock


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


class Demand(msgspec.Struct, frozen=True):
    """What a node still needs. In one-block modes `families` over all its offers; else `count` blocks of each family of one offer."""

    want: Want
    families: tuple[int, ...]
    offer: Offer | None = None
    """None in one-block modes: walk the offers."""
    count: dict[int, int] = {}
    """Blocks that are missing, by family, where `offer` is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """The lock's lines against the inventory: what stays, and what is still to be placed."""

    lock: Lock
    """Every line with its state of today; nothing placed yet."""
    held: Mapping[str, tuple[Line, ...]]
    """Held lines by node name, by family and address."""
    lacking: tuple[Demand, ...] = ()
    """By node name."""
    moving: tuple[Demand, ...] = ()
    """Whose blocks are to be replaced by consent: what is placed for them is pending. By node name."""
    taken: tuple[Range, ...] = ()
    """Blocks that nobody may be given, besides lines, reserved, excluded and pins: those of CiliumNodes without a node."""
    origins: Mapping[Block, str] = field(default_factory=dict)
    """returned or adopted."""
    stale: tuple[Stale, ...] = ()


class Origin(enum.StrEnum):
    """Why a block is new to its node."""

    FIRST_FIT = "first fit"
    PIN = "pin"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the cluster is to look like."""

    cluster: Cluster
    wants: tuple[Want, ...]
    """By node name."""
    lock: Lock
    origins: Mapping[Block, str]
    """Why a block is new here, as the words of `Origin`."""
    stale: tuple[Stale, ...]
    held: Mapping[str, tuple[Line, ...]]
    """Held lines by node name, by family and address."""
