"""Ranges that no pool object and no flag says, from the blocks in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ipamc.model.address_sets import outermost
from ipamc.model.cidr import BITS, Block

SPARSE = 16
"""A derived range has at most so many times the addresses of the blocks in it, or it is split."""


def ranges_around(blocks: Iterable[Block], others: Sequence[Block] = ()) -> tuple[Block, ...]:
    """Return few CIDRs that contain all blocks, by address.

    None of them overlaps one of `others`, unless a block does, and none has more than SPARSE times the
    addresses of its blocks. O(n log n).
    """
    found: list[Block] = []
    for family in (4, 6):
        mine = [block for block in outermost(blocks) if block.family == family]
        if mine:
            found += _split(mine, [other for other in others if other.family == family])
    return tuple(found)


def _split(blocks: Sequence[Block], others: Sequence[Block]) -> list[Block]:
    """Return the range around blocks by address, or the ranges around its halves."""
    around = common(blocks)
    if len(blocks) == 1:
        return [around]
    full = sum(block.size for block in blocks)
    near = [other for other in others if around.overlaps(other)]
    if not near and around.size <= SPARSE * full:
        return [around]
    middle = around.first + around.size // 2
    low = [block for block in blocks if block.first < middle]
    high = [block for block in blocks if block.first >= middle]
    return [*_split(low, near), *_split(high, near)]


def common(blocks: Sequence[Block]) -> Block:
    """Return the smallest CIDR around blocks of one family, which are sorted by address."""
    family, first, last = blocks[0].family, blocks[0].first, max(block.last for block in blocks)
    bits = BITS[family]
    prefix = bits - (first ^ last).bit_length()
    size = bits - prefix
    return Block(family, first >> size << size, prefix)


def usual_size(blocks: Iterable[Block], family: int, default: int) -> int:
    """Return the prefix length that most blocks of a family have; of two the longer one."""
    sizes = Counter(block.prefix for block in blocks if block.family == family)
    return max(sizes, key=lambda prefix: (sizes[prefix], prefix)) if sizes else default
