"""The addresses of one pool and family: what is free, found lazily, then what may be given again.

Free addresses are kept as the largest aligned pieces, in a heap per prefix length; what a block does not need of its piece goes back as buddies.
Pieces are pulled in address order from the gaps between blockers, only as far as a request has to look, so that the width of a range costs
nothing. (A bitmap, as Cilium and Calico keep one, cannot hold an IPv6 range; a cursor alone cannot serve several sizes.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

import msgspec

from ipamc.blockers import Blockers, pieces, shared
from ipamc.cidr import BITS, Block
from ipamc.reclaim import Reuse, places


class Found(msgspec.Struct, frozen=True, gc=False):
    """A place for a block. Good until something else is taken from its space. A Struct: one is made for each newcomer."""

    block: Block
    key: int
    """Of the free piece that it is cut from."""
    length: int
    """That piece's prefix length."""
    reuse: Reuse | None = None
    """The old lines that it lies over, if it is not free."""


class Space:
    """The addresses of one pool and family. What is available only shrinks, so nothing is looked at twice for one size.

    n blocks of k sizes cost O(k (n + lines) log n) in all. A free piece is known by its *key*, the index of its range and its address in one
    number: the order of keys is the order of allocation.
    """

    def __init__(self, family: int, ranges: Sequence[Block], blockers: Blockers) -> None:
        self._bits = BITS[family]
        self._ranges = ranges
        self._blockers = blockers
        self._full = -1  # blocks of this prefix length, and larger ones, are not to be had
        self._end = len(ranges) << self._bits  # above all keys
        self._heaps: dict[int, list[int]] = {}  # keys of free pieces by prefix length
        self._ordered: list[tuple[int, list[int]]] = []  # the same, by prefix length
        self._rest = self._pulled()
        self._frontier, self._frontier_length = next(self._rest, (self._end, 0))  # the first piece that is in no heap yet
        self._absorbed = 0  # so many of blockers.freed
        self._placed: dict[int, set[int]] = defaultdict(set)  # first addresses of the blocks placed here, by prefix length
        self._queues: dict[int, list[Reuse]] = {}  # by prefix length; the next one is the last
        self._touched: dict[int, set[int]] = {}  # for each queue, where a block of its size or smaller was placed

    def find(self, prefix: int) -> Found | None:
        """Give the place for a block of this prefix length, or None; nothing is taken.

        Free addresses, lowest range and address first; else over released lines only; else also over lines whose days are over, the place whose
        youngest day is oldest.
        """
        if prefix <= self._full:
            return None
        found = self._free(prefix) or self._again(prefix)
        if found is None:  # for ever: what comes free later, this size could have had as part of an old line
            self._full = prefix
        return found

    def take(self, found: Found) -> None:
        """Take what `find` gave just before."""
        block = found.block
        _, first, prefix = block
        if found.reuse is None:
            heappop(self._heaps[found.length])
            for length in range(found.length + 1, prefix + 1):
                self._push(found.key + (1 << (self._bits - length)), length)
        else:
            self._retire(found.reuse)
        self._placed[prefix].add(first)
        for size, touched in self._touched.items():
            if size <= prefix:
                touched.add(first >> (self._bits - size))

    def _pulled(self) -> Iterator[tuple[int, int]]:
        """Yield key and prefix length of what is free at first, by key."""
        for order, ground in enumerate(self._ranges):
            offset = order << self._bits
            for first, length in pieces(ground.family, ground.first, ground.last + 1, self._blockers.over_range(ground)):
                yield offset + first, length

    def _push(self, key: int, length: int) -> None:
        heap = self._heaps.get(length)
        if heap is None:
            heap = self._heaps[length] = []
            self._ordered = sorted(self._heaps.items())
        heappush(heap, key)

    def _free(self, prefix: int) -> Found | None:
        """Give the lowest free place. Of a piece that is large enough, that is its beginning."""
        if self._absorbed < len(self._blockers.freed):
            self._absorb()
        key = end = self._end
        fit = 0
        for length, heap in self._ordered:
            if length > prefix:
                break
            if heap and heap[0] < key:
                key, fit = heap[0], length
        while self._frontier < key:
            if self._frontier_length <= prefix:
                key, fit = self._frontier, self._frontier_length
            self._push(self._frontier, self._frontier_length)
            self._frontier, self._frontier_length = next(self._rest, (end, 0))
        if key == end:
            return None
        order = key >> self._bits
        ground = self._ranges[order]
        block = Block(ground.family, key - (order << self._bits), prefix)
        if self._queues and self._covered(block.first, fit):
            heappop(self._heaps[fit])
            return self._free(prefix)
        return Found(block, key, fit)

    def _again(self, prefix: int) -> Found | None:
        """Give the best place over old lines that no newcomer has taken from."""
        shift = self._bits - prefix
        queue = self._queues.get(prefix)
        if queue is None:
            queue = self._queues[prefix] = places(self._ranges, prefix, self._blockers)[::-1]
            self._touched[prefix] = {first >> shift for size, placed in self._placed.items() if size >= prefix for first in placed}
        touched = self._touched[prefix]
        while queue:
            first = queue[-1].block.first
            if first >> shift not in touched and not self._covered(first, prefix):
                return Found(queue[-1].block, 0, 0, queue[-1])
            queue.pop()
        return None

    def _covered(self, first: int, length: int) -> bool:
        """Tell whether a larger block was placed over this one, as happens to free pieces beside lines that are given again."""
        return any(first & -(1 << (self._bits - size)) in placed for size, placed in self._placed.items() if size < length)

    def _retire(self, reuse: Reuse) -> None:
        """Let the lines under a place vanish. What it leaves over of a larger one is free."""
        for line in reuse.lines:
            self._blockers.gone.add(line.block)
            if line.block.prefix < reuse.block.prefix:
                left_over = self._blockers.unfixed(line.block, reuse.block)
                if self._ranges[reuse.order].contains(line.block):
                    for piece in left_over:
                        self._push((reuse.order << self._bits) + piece.first, piece.prefix)
                else:
                    self._blockers.freed.extend(left_over)

    def _absorb(self) -> None:
        """Take in what lines beyond one range left free, as far as it lies in ranges of this space."""
        freed = self._blockers.freed
        while self._absorbed < len(freed):
            piece = freed[self._absorbed]
            self._absorbed += 1
            for order, ground in enumerate(self._ranges):
                if ground.overlaps(piece):
                    own = shared(piece, ground)
                    self._push((order << self._bits) + own.first, own.prefix)
