"""Whose ground a block lies on: the range, hence the pool, that contains it."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import NamedTuple

from ipamc.model.cidr import Block
from ipamc.model.cluster import Pool, Range


class Ground(NamedTuple):
    """A range and the pool that it belongs to."""

    pool: Pool
    range: Range


class RangeIndex:
    """The ranges of all pools, for look-up by block in O(log ranges). Ranges are disjoint: `check` saw to it."""

    def __init__(self, pools: Iterable[Pool]) -> None:
        grounds = [
            Ground(pool, each) for pool in pools for part in pool.families.values() for each in part.ranges
        ]
        self._grounds = sorted(grounds, key=lambda ground: ground.range.block)
        self._starts = [(ground.range.block.family, ground.range.block.first) for ground in self._grounds]

    def of(self, block: Block) -> Ground | None:
        """Give the ground that contains every address of the block, or None."""
        index = bisect.bisect_right(self._starts, (block.family, block.first)) - 1
        if index >= 0 and self._grounds[index].range.block.contains(block):
            return self._grounds[index]
        return None


def first_overlap(ranges: Iterable[Range], block: Block) -> Range | None:
    """Give the first of a few ranges (excluded, reserved) that shares an address with the block, or None."""
    return next((each for each in ranges if each.block.overlaps(block)), None)
