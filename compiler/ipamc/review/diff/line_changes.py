"""What became of the lines of a lock since the base: the values that `lock_lines` returns."""

from __future__ import annotations

from msgspec import Struct

from ipamc.model.lock import Line
from ipamc.model.plan import Origin


class AddedBlock(Struct, frozen=True, kw_only=True):
    """A block that its node did not hold before."""

    line: Line
    origin: Origin
    """Any but RENUMBER."""
    of: str = ""
    """Another node that has these addresses in the base's lock."""


class FormerBlock(Struct, frozen=True, kw_only=True):
    """A block that its node no longer has."""

    line: Line
    """Its line in the head; in the base if the head has none."""
    before: Line | None
    """Its line in the base, if there is one."""
    to: str = ""
    """The node that has its addresses now, if the head has no such line."""


class TakenBlock(Struct, frozen=True, kw_only=True):
    """A block of the base that another line has now, although no line records a consent."""

    line: Line
    """Its line in the base, which was held."""
    by: Line
    """The line of the head, held or pending, that has the lowest of its addresses."""


class Renumber(Struct, frozen=True, kw_only=True):
    """A node whose block changes, or is to change."""

    node: str
    old: tuple[Line, ...]
    """The blocks that it holds until it moves, or held. By family and address, as `new`."""
    new: tuple[Line, ...]
    """Empty if the node lost a block and got none."""
    why: str
    moves: bool = False
    """Of a completed one: the node runs, and nothing shows its new blocks yet, so it is still to move."""


class ResizedBlock(Struct, frozen=True, kw_only=True):
    """A block of which other addresses are rendered than before (crd mode)."""

    line: Line
    before: int
    """How many were rendered; 0: all."""


class PoolTransfer(Struct, frozen=True, kw_only=True):
    """Lines whose range belongs to another pool now, or to one of another name: no node moves."""

    before: str
    after: str
    lines: tuple[Line, ...]


class Counts(Struct, frozen=True, kw_only=True):
    """Nodes, each counted once."""

    renumbered: int
    """As `renumbered` counts them."""
    added: int
    """They have a new block, and are not renumbered."""
    left: int
    """They held a block at the base and hold none now.

    Without renamed nodes, and those whose line vanished.
    """
    vanished: int
    unchanged: int
    """They hold the same blocks as at the base."""


class LineChanges(Struct, frozen=True, kw_only=True):
    """What became of every line. Tuples are in order of family and address, renumbers in order of node."""

    added: tuple[AddedBlock, ...] = ()
    left: tuple[FormerBlock, ...] = ()
    released: tuple[FormerBlock, ...] = ()
    pending: tuple[Renumber, ...] = ()
    """New pending lines."""
    still_pending: tuple[Renumber, ...] = ()
    """Lines that were pending in the base: no change, but every plan lists them."""
    completed: tuple[Renumber, ...] = ()
    """The node no longer holds its old block."""
    vanished: tuple[Line, ...] = ()
    taken: tuple[TakenBlock, ...] = ()
    """Held blocks that changed hands without consent."""
    pool_transfers: tuple[PoolTransfer, ...] = ()
    taken_back: tuple[FormerBlock, ...] = ()
    """Blocks of pools where Cilium's operator decides, which their node no longer shows, or another shows."""
    given_back: tuple[FormerBlock, ...] = ()
    """Blocks that their node does not need, beside others of the pool that it keeps."""
    resized: tuple[ResizedBlock, ...] = ()
    counts: Counts
