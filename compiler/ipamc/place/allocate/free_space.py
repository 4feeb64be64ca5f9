"""The addresses of one pool and family: what is free, found lazily, then what may be given again.

A cursor runs through the gaps between blockers, lowest address first, and no further than a request has to look: the width of a range costs
nothing. What it passes over, being too small for a request, is kept as the largest aligned pieces, in a heap per prefix length; what a block does not
need of such a piece goes back as buddies. (A bitmap, as Cilium and Calico keep one, cannot hold an IPv6 range; a cursor alone cannot serve several
sizes.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

import msgspec

from ipamc.model.cidr import BITS, Block
from ipamc.place.allocate.occupancy import Blockers, aligned, gaps, shared
from ipamc.place.allocate.reuse import Reuse, places


class Found(msgspec.Struct, frozen=True, gc=False):
    """A place for a block. Good until something else is taken from its space. A Struct, because one is made for each newcomer."""

    block: Block
    key: int = 0
    """Where it is free: its own key."""
    length: int = -1
    """Prefix length of the piece that it is cut from; -1: it is at the cursor."""
    reuse: Reuse | None = None
    """The old lines that it lies over, if it is not free."""


class Space:
    """The addresses of one pool and family. What is available only shrinks, so nothing is looked at twice for one size.

    n blocks of k sizes cost O(k (n + lines) log n) in all. A free address is known by its *key*, the index of its range and its number in one: the
    order of keys is the order of allocation.
    """

    def __init__(self, family: int, ranges: Sequence[Block], blockers: Blockers) -> None:
        self._bits = BITS[family]
        self._ranges = ranges
        self._blockers = blockers
        self._full = -1  # blocks of this prefix length, and larger ones, are not to be had
        self._gaps = self._gaps_by_key()
        self._none = (len(ranges) << self._bits, 0)  # above all keys
        self._cursor, self._gap_end = next(self._gaps, self._none)
        self._heaps: dict[int, list[int]] = {}  # keys of the free pieces before the cursor, by prefix length
        self._ordered: list[tuple[int, list[int]]] = []  # the same, by prefix length
        self._absorbed = 0  # so many of blockers.freed
        self._placed: dict[int, set[int]] = defaultdict(
            set
        )  # first addresses of the blocks placed here, by prefix length
        self._queues: dict[int, list[Reuse]] = {}  # by prefix length; the next one is the last
        self._touched: dict[
            int, set[int]
        ] = {}  # for each queue, where a block of its size or smaller was placed

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
        _, first, prefix = found.block
        if found.reuse is not None:
            self._retire(found.reuse)
        elif found.length < 0:
            self._cursor += 1 << (self._bits - prefix)
            if self._cursor == self._gap_end:
                self._cursor, self._gap_end = next(self._gaps, self._none)
        else:
            heappop(self._heaps[found.length])
            for length in range(found.length + 1, prefix + 1):
                self._push(found.key + (1 << (self._bits - length)), length)
        self._placed[prefix].add(first)
        for size, touched in self._touched.items():
            if size <= prefix:
                touched.add(first >> (self._bits - size))

    def _gaps_by_key(self) -> Iterator[tuple[int, int]]:
        """Yield what is free at first: keys of the first address, and of the one after the last."""
        for order, ground in enumerate(self._ranges):
            offset = order << self._bits
            for first, end in gaps(
                ground.family, ground.first, ground.last + 1, self._blockers.over_range(ground)
            ):
                yield offset + first, offset + end

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
        end, _ = self._none
        size = 1 << (self._bits - prefix)
        while True:
            key, cut = end, -1
            for length, heap in self._ordered:
                if length > prefix:
                    break
                if heap and heap[0] < key:
                    key, cut = heap[0], length
            if self._cursor < key and self._reach(key, size):
                key, cut = self._cursor, -1
            if key == end:
                return None
            ground = self._ranges[key >> self._bits]
            first = key & ((1 << self._bits) - 1)
            if cut < 0 or not self._queues or not self._covered(first, cut):
                return Found(Block(ground.family, first, prefix), key, cut)
            heappop(self._heaps[cut])

    def _reach(self, key: int, size: int) -> bool:
        """Move the cursor to the first place of this size before `key`, if there is one; keep what it passes over."""
        cursor, end = self._cursor, self._gap_end
        while cursor < key and (cursor & (size - 1) or cursor + size > end):
            passed = aligned(cursor, end)
            self._push(cursor, self._bits + 1 - passed.bit_length())
            cursor += passed
            if cursor == end:
                cursor, end = next(self._gaps, self._none)
        self._cursor, self._gap_end = cursor, end
        return cursor < key

    def _again(self, prefix: int) -> Found | None:
        """Give the best place over old lines that no newcomer has taken from."""
        shift = self._bits - prefix
        queue = self._queues.get(prefix)
        if queue is None:
            queue = self._queues[prefix] = places(self._ranges, prefix, self._blockers)[::-1]
            self._touched[prefix] = {
                first >> shift for size, placed in self._placed.items() if size >= prefix for first in placed
            }
        touched = self._touched[prefix]
        while queue:
            first = queue[-1].block.first
            if first >> shift not in touched and not self._covered(first, prefix):
                return Found(queue[-1].block, reuse=queue[-1])
            queue.pop()
        return None

    def _covered(self, first: int, length: int) -> bool:
        """Tell whether a larger block was placed over this one, as happens to free pieces beside lines that are given again."""
        return any(
            first & -(1 << (self._bits - size)) in placed
            for size, placed in self._placed.items()
            if size < length
        )

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
