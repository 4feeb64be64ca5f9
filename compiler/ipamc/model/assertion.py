"""Assertions of a `Tests` document about the plan: each of one of six kinds."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ipamc.model.cidr import Range
from ipamc.model.diagnostics import Place
from ipamc.model.selector.selector import Selector


class BlocksOf(Struct, frozen=True, kw_only=True):
    """`blocks`: where the blocks of some nodes are, and how large."""

    selector: Selector
    within: tuple[Range, ...] = ()
    """The only allowed CIDRs for blocks of their family; a family without one here allows all."""
    outside: tuple[Range, ...] = ()
    """CIDRs that share no address with a block."""
    sizes: Mapping[int, int] = field(default_factory=dict)
    """Prefix length of every block, by family."""


class NodeHas(Struct, frozen=True, kw_only=True):
    """`node`: a node has these blocks, and may have others."""

    node: str
    has: tuple[Range, ...]


class Room(Struct, frozen=True, kw_only=True):
    """`room`: this number of further nodes would get their blocks.
    They are of one pool, or have the labels `like`, or are copies of nodes in the inventory: of those of
    `selector`, or of those with each value of the label `each`.
    """

    nodes: int
    pool: str = ""
    like: Mapping[str, str] | None = None
    selector: Selector | None = None
    each: str = ""


class Apart(Struct, frozen=True, kw_only=True):
    """`apart`: no prefix of a length has blocks of two groups of nodes."""

    selectors: tuple[Selector, ...] = ()
    """One for each group."""
    each: str = ""
    """A label: the nodes with one value are a group."""
    prefixes: Mapping[int, int]
    """Prefix length by family; blocks of an unlisted family are ignored."""


class NothingIn(Struct, frozen=True, kw_only=True):
    """`nothingIn`: no block and no range of a pool is in these CIDRs."""

    ranges: tuple[Range, ...]


class Agreed(Struct, frozen=True, kw_only=True):
    """A renumber that was agreed on."""

    node: str
    ticket: str
    at: Place


class Renumber(Struct, frozen=True, kw_only=True):
    """`renumber`: every renumber is in `agreed`, with a ticket."""

    ticket: str
    """The form of tickets: a shell pattern with `*`, `?` and `[0-9]`."""
    agreed: tuple[Agreed, ...] = ()


Asserted = BlocksOf | NodeHas | Room | Apart | NothingIn | Renumber


class Assertion(Struct, frozen=True, kw_only=True):
    """An entry of `tests`."""

    name: str
    """As written, else a description of the assertion."""
    because: str = ""
    at: Place
    """The entry."""
    asserts: Asserted
    warn: bool = False
    """A failure is only a warning."""
    allow_empty: bool = False
    """It may match no node."""
    space: str = ""
    """The address space in its document; "": it applies to every cluster beside the document."""
    shared: bool = False
    """It is in a file beside the clusters, not in the folder of one."""
