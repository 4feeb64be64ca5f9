"""The draft of an import, from any source, before it is written as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from ipamc.model.address_sets import outermost
from ipamc.model.cidr import Block, around
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import At, Diagnostic
from ipamc.model.limits import SPARSEST_RANGE

Blocks = tuple[tuple[Block, str], ...]
"""(block, name of its pool), in the order of the source."""


class DraftPool(Struct, frozen=True, kw_only=True):
    """An IPPool to be written."""

    name: str
    ranges: Mapping[int, tuple[Block, ...]]  # by family, in the order of allocation
    sizes: Mapping[int, int]  # `blockSize`: a prefix length by family
    selector: Any = None  # Calico's text, or a LabelSelector or NodeSelector; None: every node
    priority: int = 0
    reserved: Mapping[Block, str] = field(default_factory=dict)  # with the reason; "": not known
    unlisted: bool = False
    disabled: bool = False
    pods_only: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)  # further fields of the spec, in written form
    comment: str = ""  # a comment above the pool: its origin


class DraftRange(Struct, frozen=True, kw_only=True):
    """An entry of `excludedCIDRs`, or of `reserved`."""

    block: Block
    why: str  # a few words, for the comment beside it
    at: At | None = None  # its place in the dump, as far as it is known
    kind: str = ""  # of the object that has it, as far as it is known; findings are one a kind


class PoolRange(Struct, frozen=True, kw_only=True):
    """A range of a pool, of a draft or of a cluster."""

    block: Block
    pool: str
    size: int  # the prefix length of the pool's blocks
    at: At | None = None  # None: it is a draft


class Draft(Struct, frozen=True, kw_only=True):
    """A cluster to be written."""

    mode: Mode
    families: tuple[int, ...]  # the first is the primary family
    pools: tuple[DraftPool, ...]
    blocks: Mapping[str, Blocks]
    """All blocks of each node. A node without blocks gets one by the next compile."""
    fresh: bool = False
    """No pod has an address of these pools yet, so every node may get a new block, even if it runs."""
    proposed: bool = False
    """The ranges are a proposal, which nobody planned."""
    excluded: tuple[DraftRange, ...] = ()
    """Besides the service range and the node networks, which every import looks for."""
    ipam: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of `spec.ipam`: `operator`, `pinning`, `autoCreate`."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of `spec`: `unpooled`, `unmatchedNodes`, `patchNodes`."""
    label_keys: frozenset[str] = frozenset()
    """Keys of node labels that selectors of these pools use: the inventory must include them."""
    decisions: tuple[Diagnostic, ...] = ()
    """What a person must decide. After an error nothing is written."""


def ranges_around(blocks: Iterable[Block], others: Sequence[Block]) -> tuple[Block, ...]:
    """Return few CIDRs that contain all blocks, by address.
    No CIDR overlaps one of `others`, unless a block does, and none has more than SPARSEST_RANGE times the
    addresses of its blocks. O(n log n).
    """
    found: list[Block] = []
    for family in (4, 6):
        mine = [block for block in outermost(blocks) if block.family == family]
        if mine:
            found += _split(mine, [other for other in others if other.family == family])
    return tuple(found)


def _split(blocks: Sequence[Block], others: Sequence[Block]) -> list[Block]:
    """Return the range around blocks (by address), or the ranges around its halves."""
    whole = around(blocks[0].family, blocks[0].first, max(block.last for block in blocks))
    if len(blocks) == 1:
        return [whole]
    near = [other for other in others if whole.overlaps(other)]
    if not near and whole.size <= SPARSEST_RANGE * sum(block.size for block in blocks):
        return [whole]
    middle = whole.first + whole.size // 2
    low = [block for block in blocks if block.first < middle]
    return [*_split(low, near), *_split([block for block in blocks if block.first >= middle], near)]


def usual_size(blocks: Iterable[Block], family: int, default: int) -> int:
    """Return the most common prefix length of a family's blocks; of two equally common ones the longer."""
    sizes = Counter(block.prefix for block in blocks if block.family == family)
    return max(sizes, key=lambda prefix: (sizes[prefix], prefix)) if sizes else default
