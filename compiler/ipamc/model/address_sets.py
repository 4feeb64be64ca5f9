"""Sets of addresses: blocks that share an address, the rest of a block without others, blocks over a block.

Blocks nest or are disjoint, so every answer here is one pass over blocks by address (family, first address,
larger block first), or one bisection. The tests compare with netaddr's IPSet, which takes 40 ms to load and
more than ten times as long to subtract.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from ipamc.model.cidr import BITS, Block, parse_block
from ipamc.model.lock import Line

T = TypeVar("T")

by_block = operator.attrgetter("block")
"""The order of lines in a lock, for `sorted` and `bisect`."""
PRIVATE = tuple(map(parse_block, ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16")))
"""RFC 1918, and RFC 6598, which many use for pods."""


def shared(block: Block, other: Block) -> Block:
    """Return the addresses that two overlapping blocks share: the smaller of the two."""
    return block if block.prefix > other.prefix else other


def overlaps(items: Iterable[T], block_of: Callable[[T], Block]) -> Iterator[tuple[T, T]]:
    """Yield (outer, inner) for every item that lies in an earlier one; `outer` is the largest around it.
    Items are processed by address; of equal blocks the first in `items` is the outer one. O(n log n).
    """
    outer: T | None = None
    outer_family = outer_end = 0
    for item in sorted(items, key=block_of):
        family, first, prefix = block_of(item)
        if outer is not None and first < outer_end and family == outer_family:
            yield outer, item
        else:
            outer, outer_family, outer_end = item, family, first + (1 << (BITS[family] - prefix))


def disjoint(blocks: Iterable[Block]) -> bool:
    """Return whether no two of some blocks share an address. O(n log n)."""
    return next(overlaps(blocks, lambda block: block), None) is None


def nested(items: Iterable[T], block_of: Callable[[T], Block]) -> Iterator[tuple[T, Sequence[T]]]:
    """Yield each item by address, with the items around it, the largest first. O(n log n).
    Of equal blocks the first in `items` is around the others. The sequence changes with each step.
    """
    around: list[T] = []
    for item in sorted(items, key=block_of):
        block = block_of(item)
        while around and not block_of(around[-1]).contains(block):
            around.pop()
        yield item, around
        around.append(item)


def outermost(blocks: Iterable[Block]) -> list[Block]:
    """Return the blocks that lie in no other: disjoint, by address, with the same addresses. O(n log n)."""
    result: list[Block] = []
    for block in sorted(blocks):
        if not result or not result[-1].contains(block):
            result.append(block)
    return result


def blocks_over(blocks: Sequence[Block], block: Block) -> Sequence[Block]:
    """Return those of disjoint blocks, by address, that share addresses with a block. O(log n + result)."""
    low = bisect.bisect_left(blocks, Block(block.family, block.first, 0))
    high = bisect.bisect_left(blocks, Block(block.family, block.last + 1, 0), low)
    if low and blocks[low - 1].overlaps(block):
        low -= 1
    return blocks[low:high]


def lines_over(lines: Sequence[Line], block: Block) -> Sequence[Line]:
    """Return those of disjoint lines, by address, that share addresses with a block. O(log n + result)."""
    low = bisect.bisect_left(lines, Block(block.family, block.first, 0), key=by_block)
    high = bisect.bisect_left(lines, Block(block.family, block.last + 1, 0), low, key=by_block)
    if low and lines[low - 1].block.overlaps(block):
        low -= 1
    return lines[low:high]


def index_around(blocks: Sequence[Block], block: Block) -> int | None:
    """Return the index of the block around a block, or None. `blocks` are disjoint, by address. O(log n)."""
    index = bisect.bisect_right(blocks, block) - 1
    return index if index >= 0 and blocks[index].contains(block) else None


def gaps(block: Block, taken: Iterable[Block]) -> Iterator[tuple[int, int]]:
    """Yield the free runs of addresses in a block, by address, as (first, one after the last).
    `taken` are blocks by address that share addresses with the block; they may nest, and reach beyond it.
    O(taken), lazily, as far as the caller iterates: the allocator walks through 100,000 lines with this.
    """
    family, cursor, prefix = block
    bits = BITS[family]
    end = cursor + (1 << (bits - prefix))
    for _, first, length in taken:
        if first > cursor:
            yield cursor, first
        after = first + (1 << (bits - length))
        if after > cursor:  # noqa: PLR1730 - once a line: a call of max() costs more than the rest
            cursor = after
    if cursor < end:
        yield cursor, end


def subtract(block: Block, without: Iterable[Block]) -> Iterator[Block]:
    """Yield the largest aligned blocks of a block without others, which may nest. O(n log n)."""
    family = block.family
    for first, end in gaps(block, sorted(other for other in without if other.overlaps(block))):
        yield from aligned(family, first, end)


def without(blocks: Iterable[Block], others: Iterable[Block]) -> list[Block]:
    """Return the parts of blocks that no block of the others covers."""
    known = outermost(others)
    return [piece for block in blocks for piece in subtract(block, blocks_over(known, block))]


def aggregated(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the fewest aligned blocks with the same addresses, by address. They may nest. O(n log n)."""
    family = first = end = 0
    for now, start, prefix in sorted(blocks):  # arithmetic in place: there may be 100,000
        after = start + (1 << (BITS[now] - prefix))
        if now == family and start <= end:
            end = max(end, after)
            continue
        yield from aligned(family, first, end)
        family, first, end = now, start, after
    yield from aligned(family, first, end)


def aligned(family: int, first: int, end: int) -> Iterator[Block]:
    """Yield the largest aligned blocks of a run of addresses; `end` is one after the last."""
    while first < end:
        size = largest_aligned(first, end)
        yield Block(family, first, BITS[family] + 1 - size.bit_length())
        first += size


def largest_aligned(first: int, end: int) -> int:
    """Return the size of the largest aligned block that begins at `first` and ends at `end` or before."""
    largest = 1 << ((end - first).bit_length() - 1)
    return min(first & -first, largest) or largest


def covers(blocks: Iterable[Block], block: Block) -> bool:
    """Return whether every address of `block` is in some of `blocks`, which may nest. O(n log n)."""
    return next(gaps(block, sorted(other for other in blocks if other.overlaps(block))), None) is None


def addresses_taken(block: Block, taken: Iterable[Block]) -> int:
    """Count the taken addresses of a block, each once. `taken` are as for `gaps`. O(taken)."""
    return block.size - sum(end - first for first, end in gaps(block, taken))
