"""What a `Tests` document asserts of the plan: one assertion each, of one of six kinds."""

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
    """The only CIDRs for blocks of their family; of a family without one here, all."""
    outside: tuple[Range, ...] = ()
    """CIDRs of which no block has an address."""
    sizes: Mapping[int, int] = field(default_factory=dict)
    """Prefix length of every block, by family."""


class NodeHas(Struct, frozen=True, kw_only=True):
    """`node`: a node has these blocks, and may have others."""

    node: str
    has: tuple[Range, ...]


class Room(Struct, frozen=True, kw_only=True):
    """`room`: so many more nodes would get their blocks.
    They are of one pool, or have the labels `like`, or look like nodes of the inventory: those of `selector`,
    or for each value of the label `each` those that have it.
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
    """Prefix length by family; blocks of a family that is not listed are not looked at."""


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
    """What tickets look like: a pattern with `*`, `?` and `[0-9]`, as a shell has it."""
    agreed: tuple[Agreed, ...] = ()


Asserted = BlocksOf | NodeHas | Room | Apart | NothingIn | Renumber


class Assertion(Struct, frozen=True, kw_only=True):
    """An entry of `tests`."""

    name: str
    """As it was written, else what it asserts."""
    because: str = ""
    at: Place
    """The entry."""
    asserts: Asserted
    warn: bool = False
    """A failure is a warning, and refuses nothing."""
    allow_empty: bool = False
    """It may be about no node."""
    space: str = ""
    """The address space that its document names; "": it holds for every cluster beside the document."""
    shared: bool = False
    """It stands in a file beside the clusters, and not in the folder of one."""
