"""The lock as values: its lines, each in one of four states, and a person's consent for one run."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec
from msgspec import Struct, field

from ipamc.model.cidr import Block
from ipamc.model.cluster import LockMode
from ipamc.model.selector.selector import Selector


class State(enum.StrEnum):
    """The state of a block in a line of the lock."""

    HELD = "held"
    """The node has the block now."""
    PENDING = "pending"
    """The node will move to the block, by consent. No other node gets it; nothing is rendered for it yet."""
    QUARANTINED = "quarantined"
    """The node left the inventory, or moved to another block. The addresses are kept back for some days."""
    RELEASED = "released"
    """No node has the block: its addresses can be given out again at once."""


Key = tuple[str, int, str]
"""The key (node, family, pool) of blocks that are renumbered together.

The pool is "" in one-block modes, where a node has one block per family.
"""


class Line(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One line of the lock: a block, its node, and its state. A Struct, because there are 100,000 of them."""

    block: Block
    pool: str = ""
    """The pool whose range contains the block; "" for a held block outside every pool (`unpooled: hold`)."""
    node: str
    state: State = State.HELD
    since: str = ""
    """The first day in quarantine, ISO 8601 in UTC; sorts as text. "" in the other states."""
    moved: bool = False
    """Of a quarantined line: the node moved to another block, and never gets this one back."""
    was_pending: bool = False
    """Of a quarantined line: it was pending when its node left, and is pending again if the node returns."""
    addresses: int = 0
    """The number of rendered addresses of the block, from its first usable one on (crd mode); 0: all."""

    @property
    def in_use(self) -> bool:
        """Return whether the node has this block now, or will move to it."""
        return self.state is State.HELD or self.state is State.PENDING

    def key(self, *, one_block: bool) -> Key:
        """Return the key of the blocks that are renumbered together with this one."""
        return self.node, self.block.family, "" if one_block else self.pool


class Lock(Struct, frozen=True, kw_only=True):
    """The blocks of all nodes: the header and the lines of the lock file."""

    cluster: str
    mode: LockMode
    shards: int
    """The shard count, a power of two."""
    lines: tuple[Line, ...] = ()
    """By family and address."""
    path: str = ""
    """The file, as the user would type it."""
    written: tuple[Line, ...] = ()
    """The lines as in the file, below its header. Findings quote these, not `lines`."""
    text: bytes = b""
    """The file if it is valid; else ""."""


class Scope(Struct, frozen=True, kw_only=True):
    """The lines of a consent: of a node, a CIDR, a pool or a selector. Exactly one of the four is set."""

    text: str
    """As the user typed it."""
    node: str = ""
    cidr: Block | None = None
    pool: str | None = None
    """"" means no pool: the held blocks outside every pool."""
    selector: Selector | None = None
    selected: frozenset[str] = frozenset()
    """The nodes of the inventory that the selector selects."""

    def matches(self, line: Line) -> bool:
        """Return whether a line is of this node, of one that is selected, or of this pool, or shares an
        address with this CIDR.
        """
        if self.selector is not None:
            return line.node in self.selected
        if self.cidr is not None:
            return line.block.overlaps(self.cidr)
        return line.node == self.node if self.pool is None else line.pool == self.pool


class Growth(Struct, frozen=True, kw_only=True):
    """Further blocks for a node, in one family of one pool."""

    pool: str
    family: int
    blocks: int
    addresses: int = 0
    """The number of rendered addresses of the last block (crd mode); 0: all."""


class Resize(Struct, frozen=True, kw_only=True):
    """Changes of one node's blocks by their use; `place/resize/` decides about them."""

    grow: tuple[Growth, ...] = ()
    addresses: Mapping[Block, int] = field(default_factory=dict)
    """The number of addresses of held blocks to render from now on; 0: all."""
    reclaim: frozenset[Block] = frozenset()
    """Held blocks that go into quarantine, and never return to the node."""


class Consent(Struct, frozen=True, kw_only=True):
    """A person's consent for one run. Reviewers see its effect in the lock's lines; it is not stored."""

    leave: frozenset[str] = frozenset()
    """Names of nodes that may leave, or "all"."""
    renumber: tuple[Scope, ...] = ()
    settle: frozenset[str] = frozenset()
    """Names of nodes that have moved to their pending blocks."""
    release: tuple[Scope, ...] = ()
    """Quarantined or pending lines to release: of a node, or over a CIDR."""
    rename: tuple[tuple[str, str], ...] = ()
    """(dead node, its replacement)."""
    reshard: bool = False
    """The shard count may grow as `output.shardSize` requires."""
    mode: bool = False
    """The lock may switch to the Cluster's mode."""
    no_pods: frozenset[str] = frozenset()
    """Names of running nodes without pods of Cilium's, or "all": their CiliumNodes need not be known."""
    adopt: frozenset[str] = frozenset()
    """Names of running nodes, or "all", that hold what they show: the blocks of their objects, else those
        around their addresses in use."""
    resize: Mapping[str, Resize] = field(default_factory=dict)
    """By node."""

    def adopts(self, node: str) -> bool:
        """Return whether a node adopts the blocks that it shows."""
        return bool(self.adopt) and not self.adopt.isdisjoint({node, "all"})
