"""What newcomers may not have: lines of the lock, and addresses that are kept from everybody."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ipamc.model.cidr import BITS, Block
from ipamc.model.lock import Line, State

_by_block = operator.attrgetter("block")


def gaps(family: int, first: int, end: int, blockers: Iterable[Block]) -> Iterator[tuple[int, int]]:
    """Yield the runs of addresses from `first` up to `end` that no blocker covers, by address: the first one, and the one after the last.

    `blockers` come by address; they may nest, and reach beyond either end.
    """
    bits = BITS[family]
    cursor = first
    for _, low, prefix in blockers:
        if low > cursor:
            yield cursor, low
        after = low + (1 << (bits - prefix))
        if after > cursor:  # noqa: PLR1730 - once a line: a call of max() costs more than the rest
            cursor = after
    if cursor < end:
        yield cursor, end


def aligned(cursor: int, end: int) -> int:
    """Give the size of the largest aligned block that begins at `cursor` and ends before `end`."""
    largest = 1 << ((end - cursor).bit_length() - 1)
    return min(cursor & -cursor, largest) or largest


def pieces(block: Block, blockers: Iterable[Block]) -> Iterator[Block]:
    """Yield the largest aligned blocks of a block that no blocker covers, by address. A gap gives at most two a bit."""
    family, cursor, _ = block
    for first, end in gaps(family, cursor, block.last + 1, blockers):
        cursor = first
        while cursor < end:
            size = aligned(cursor, end)
            yield Block(family, cursor, BITS[family] + 1 - size.bit_length())
            cursor += size


def outermost(blocks: Iterable[Block]) -> list[Block]:
    """Give the blocks that lie in no other of them, by family and address: disjoint, and covering the same addresses."""
    result: list[Block] = []
    for block in sorted(blocks):
        if not result or not result[-1].contains(block):
            result.append(block)
    return result


def shared(block: Block, other: Block) -> Block:
    """Give the addresses that two overlapping blocks share: the smaller of the two."""
    return block if block.prefix > other.prefix else other


def lines_over(lines: Sequence[Line], block: Block) -> Sequence[Line]:
    """Give the lines that share addresses with a block. `lines` are disjoint, by family and address. O(log n + result)."""
    low = bisect.bisect_left(lines, Block(block.family, block.first, 0), key=_by_block)
    high = bisect.bisect_left(lines, Block(block.family, block.last + 1, 0), lo=low, key=_by_block)
    if low and lines[low - 1].block.overlaps(block):
        low -= 1
    return lines[low:high]


def blocks_over(blocks: Sequence[Block], block: Block) -> Sequence[Block]:
    """Give the blocks that share addresses with a block. `blocks` are as `outermost` gives them. O(log n + result)."""
    low = bisect.bisect_left(blocks, Block(block.family, block.first, 0))
    high = bisect.bisect_left(blocks, Block(block.family, block.last + 1, 0), lo=low)
    if low and blocks[low - 1].overlaps(block):
        low -= 1
    return blocks[low:high]


@dataclass(slots=True)
class Blockers:
    """Lines and fixed blocks, for look-up by block; and which lines were given again so far. Shared by all spaces of a compile."""

    lines: Sequence[Line]
    """Of the lock: disjoint, by family and address."""
    fixed: Sequence[Block]
    """Reserved, excluded, pinned, or taken without a line; as `outermost` gives them."""
    waited: str
    """Lines that left on this day (ISO 8601) or before have waited long enough. Empty: none has."""
    gone: set[Block] = field(default_factory=set)
    """The blocks of lines that were given again: they vanish from the lock."""
    freed: list[Block] = field(default_factory=list)
    """What such lines left free where they reached beyond one range: every space looks for its own here."""

    def over_range(self, block: Block) -> list[Block]:
        """Give everything that shares addresses with a range, by address."""
        lines = [line.block for line in lines_over(self.lines, block)]
        fixed = blocks_over(self.fixed, block)
        return sorted([*lines, *fixed]) if fixed else lines

    def reusable(self, line: Line) -> bool:
        """Tell whether the line's addresses may be given again today."""
        return line.state is State.RELEASED or bool(line.since and line.since <= self.waited)

    def unfixed(self, block: Block, *but: Block) -> Iterator[Block]:
        """Yield the pieces of a block that nothing fixed covers and that are not in `but`, whatever lines lie there."""
        return pieces(block, sorted([*blocks_over(self.fixed, block), *but]))
