"""The lock as values: lines, in one of four states, and what a person agreed to for one run."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import msgspec

from ipamc.model.cidr import Block
from ipamc.model.cluster import Mode


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


Key = tuple[str, int, str]
"""(node, family, pool): the blocks that are renumbered together. The pool is "" in a one-block mode: there a node has one block a family."""


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

    def key(self, *, one_block: bool) -> Key:
        """Return the key of the blocks that are renumbered together with this one."""
        return self.node, self.block.family, "" if one_block else self.pool


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
class Scope:
    """Whose lines a consent is about: a node, a CIDR or a pool. Exactly one of the three is set."""

    text: str
    """As the user typed it."""
    node: str = ""
    cidr: Block | None = None
    pool: str = ""

    def matches(self, line: Line) -> bool:
        """Tell whether a line is of this node or pool, or shares an address with this CIDR."""
        if self.cidr is not None:
            return line.block.overlaps(self.cidr)
        return line.pool == self.pool if self.pool else line.node == self.node


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What a person agreed to, for one run. Reviewed in the lock's lines, never a switch that stays on."""

    leave: frozenset[str] = frozenset()
    """Node names that may leave, or "all"."""
    renumber: tuple[Scope, ...] = ()
    """Whose blocks are to be replaced."""
    settle: frozenset[str] = frozenset()
    """Node names that have moved to their pending blocks."""
    release: tuple[Scope, ...] = ()
    """Whose quarantined or pending lines are released: of a node, or over a CIDR."""
    rename: tuple[tuple[str, str], ...] = ()
    """(dead node, its replacement)."""
    reshard: bool = False
    """The shard count may grow to what `output.shardSize` asks for."""
    mode: bool = False
    """The lock may switch to the Cluster's mode."""
