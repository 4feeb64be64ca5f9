"""What a node shows against its blocks, for nodes with thousands of both (see `ShownBlock.fits`)."""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from ipamc.model.address_sets import index_around, outermost
from ipamc.model.cidr import Block
from ipamc.model.plan import ShownBlock


class Shown:
    """What a node shows, for look-up by block."""

    def __init__(self, shown: Iterable[ShownBlock]) -> None:
        self._whole: set[Block] = set()
        self._parts: list[Block] = []
        for each in shown:
            if each.part:
                self._parts.append(each.block)
            else:
                self._whole.add(each.block)
        self._parts.sort()

    def fits(self, block: Block) -> bool:
        """Tell whether something that is shown says the same as a line with this block. O(log n)."""
        if block in self._whole or not self._parts:
            return block in self._whole
        place = bisect.bisect_left(self._parts, block)  # parts of a block come right after it
        return place < len(self._parts) and block.contains(self._parts[place])


class Blocks:
    """The blocks of a node, for look-up by what is shown."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._blocks = set(blocks)
        self._outermost: list[Block] | None = None

    def fit(self, shown: ShownBlock) -> bool:
        """Tell whether a line with one of these blocks says the same as what is shown. O(log n)."""
        if not shown.part:
            return shown.block in self._blocks
        if self._outermost is None:
            self._outermost = outermost(self._blocks)
        return index_around(self._outermost, shown.block) is not None
