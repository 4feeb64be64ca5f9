"""The first of many CIDRs, as written, that shares addresses with a block."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from ipamc.model.cidr import Block

T = TypeVar("T")


class OverlapIndex(Generic[T]):
    """Items with a block each, in any order; blocks may nest, and be equal."""

    def __init__(self, items: Iterable[T], block_of: Callable[[T], Block]) -> None:
        """Arrange the items by address. O(n log n)."""
        self._items = list(items)
        first: dict[Block, int] = {}
        for number, item in enumerate(self._items):
            first.setdefault(block_of(item), number)  # of equal ones, the first counts
        self._blocks = sorted(first)
        self._numbers = [first[block] for block in self._blocks]
        # By the place of a block in the order of addresses: the place of the smallest block around it, or -1; and the
        # least number of the block and of all around it.
        self._outer: list[int] = []
        self._least: list[int] = []
        around: list[int] = []
        for place, block in enumerate(self._blocks):
            while around and not self._blocks[around[-1]].contains(block):
                around.pop()
            outer = around[-1] if around else -1
            self._outer.append(outer)
            number = self._numbers[place]
            self._least.append(min(number, self._least[outer]) if around else number)
            around.append(place)

    def first_over(self, block: Block) -> T | None:
        """Return the first item, as written, that shares an address with a block, or None.

        O(log n + items inside the block).
        """
        least, place = self._inside(block)
        if place >= 0:
            least.append(self._least[place])
        return self._items[min(least)] if least else None

    def over(self, block: Block) -> list[T]:
        """Return the items, as written, that share addresses with a block; of equal blocks the first.

        O(log n + result log result).
        """
        numbers, place = self._inside(block)
        while place >= 0:
            numbers.append(self._numbers[place])
            place = self._outer[place]
        return [self._items[number] for number in sorted(numbers)]

    def _inside(self, block: Block) -> tuple[list[int], int]:
        """Return the numbers of the items inside a block, and the place of the smallest around it, or -1."""
        blocks = self._blocks
        low = bisect.bisect_left(blocks, block)
        high = bisect.bisect_left(blocks, Block(block.family, block.last + 1, 0), low)
        place = low - 1
        while place >= 0 and not blocks[place].contains(block):  # at most one step for each prefix length
            place = self._outer[place]
        return self._numbers[low:high], place
