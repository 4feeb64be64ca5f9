"""The addresses of one pool and family: free ones, found lazily, then re-usable ones.

A cursor moves through the gaps between occupied blocks, lowest address first, and only as far as needed: the
width of a range costs nothing. Gaps that are too small are kept as the largest aligned pieces, in a heap per
prefix length; the rest of a divided piece is put back as buddies. (A bitmap, as in Cilium and Calico, cannot
hold an IPv6 range.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

import msgspec

from ipamc.model.address_sets import gaps, largest_aligned, shared
from ipamc.model.cidr import BITS, Block
from ipamc.place.allocate.occupancy import Occupancy, Reuse, places


class FreePlace(msgspec.Struct, frozen=True, gc=False):
    """A place for a block, valid until its space changes. One is made for each newcomer."""

    block: Block
    key: int = 0
    """For a free place: its key (see `Space`)."""
    length: int = -1
    """Prefix length of the free piece that contains it; -1: it is at the cursor."""
    reuse: Reuse | None = None
    """For a place that is not free: the old lines that it overlaps."""


class Space:
    """The addresses of one pool and family.
    Available space only shrinks, so n blocks of k sizes cost O(k (n + lines) log n) in all. The *key* of a
    free address is the index of its range and its number in one integer: keys are in the order of allocation.
    """

    def __init__(self, family: int, ranges: Sequence[Block], occupancy: Occupancy) -> None:
        self._family = family
        self._bits = BITS[family]
        self._addresses = (1 << self._bits) - 1
        self._ranges = ranges
        self._occupancy = occupancy
        self._full = -1  # there is no place for blocks of this prefix length or larger ones
        self._gaps = self._gaps_by_key()
        self._none = (len(ranges) << self._bits, 0)  # greater than all keys
        self._cursor, self._gap_end = next(self._gaps, self._none)
        self._heaps: dict[int, list[int]] = {}  # keys of the free pieces before the cursor, by prefix length
        self._ordered: list[tuple[int, list[int]]] = []  # the same, by prefix length
        # By prefix length: first addresses of the blocks placed here; places over old lines, the next one
        # last; and for each of these queues, where a block of its size or smaller was placed.
        self._placed: dict[int, set[int]] = defaultdict(set)
        self._queues: dict[int, list[Reuse]] = {}
        self._touched: dict[int, set[int]] = {}
        occupancy.join(ranges, self._absorb)

    def find(self, prefix: int) -> FreePlace | None:
        """Return the place for a block of this prefix length, or None; change nothing.
        Free addresses come first, in the order of the ranges and by address; then places over only released
        lines; then places over lines whose quarantine is over, by their latest day, the earliest first.
        """
        if prefix <= self._full:
            return None
        if found := self._lowest(prefix):
            key, cut = found
            return FreePlace(Block(self._family, key & self._addresses, prefix), key, cut)
        place = self._reusable(prefix)
        if place is None:
            # Final: addresses that are freed later were available to this size before, in an old line.
            self._full = prefix
        return place

    def claim(self, prefix: int) -> Block | None:
        """Take a free place and return its block, or None. Faster than `find`, for nearly all newcomers."""
        found = self._lowest(prefix) if prefix > self._full else None
        if found is None:
            return None
        key, cut = found
        first = key & self._addresses
        self._cut(key, cut, prefix)
        self._note(first, prefix)
        return Block(self._family, first, prefix)

    def take(self, place: FreePlace) -> None:
        """Take the place that `find` has just returned."""
        _, first, prefix = place.block
        if place.reuse is not None:
            for line in place.reuse.lines:
                self._occupancy.reused.add(line.block)
                if line.block.prefix < place.reuse.block.prefix:
                    left_over = self._occupancy.unblocked(line.block, place.reuse.block)
                    if self._ranges[place.reuse.order].contains(line.block):
                        for piece in left_over:
                            self._push((place.reuse.order << self._bits) + piece.first, piece.prefix)
                    else:
                        self._occupancy.free(left_over)
        else:
            self._cut(place.key, place.length, prefix)
        self._note(first, prefix)

    def _cut(self, key: int, cut: int, prefix: int) -> None:
        """Take free addresses: at the cursor, or the beginning of the piece of a prefix length."""
        if cut < 0:
            self._cursor += 1 << (self._bits - prefix)
            if self._cursor == self._gap_end:
                self._cursor, self._gap_end = next(self._gaps, self._none)
            return
        heappop(self._heaps[cut])
        for length in range(cut + 1, prefix + 1):
            self._push(key + (1 << (self._bits - length)), length)

    def _note(self, first: int, prefix: int) -> None:
        self._placed[prefix].add(first)
        for size, touched in self._touched.items():
            if size <= prefix:
                touched.add(first >> (self._bits - size))

    def _gaps_by_key(self) -> Iterator[tuple[int, int]]:
        """Yield the initially free gaps: the keys of the first address, and of the one after the last."""
        for order, block in enumerate(self._ranges):
            offset = order << self._bits
            for first, end in gaps(block, self._occupancy.over_range(block)):
                yield offset + first, offset + end

    def _push(self, key: int, length: int) -> None:
        heap = self._heaps.get(length)
        if heap is None:
            heap = self._heaps[length] = []
            self._ordered = sorted(self._heaps.items())
        heappush(heap, key)

    def _lowest(self, prefix: int) -> tuple[int, int] | None:
        """Return the lowest free place: its key, and the prefix length of its piece, -1 at the cursor."""
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
            if cut < 0 or not self._queues or not self._covered(key & self._addresses, cut):
                return key, cut
            heappop(self._heaps[cut])

    def _reach(self, key: int, size: int) -> bool:
        """Move the cursor to the first place of this size before `key`, if any; keep the pieces before it."""
        cursor, end = self._cursor, self._gap_end
        while cursor < key and (cursor & (size - 1) or cursor + size > end):
            passed = largest_aligned(cursor, end)
            self._push(cursor, self._bits + 1 - passed.bit_length())
            cursor += passed
            if cursor == end:
                cursor, end = next(self._gaps, self._none)
        self._cursor, self._gap_end = cursor, end
        return cursor < key

    def _reusable(self, prefix: int) -> FreePlace | None:
        """Return the first place over old lines of which no newcomer has taken a part."""
        shift = self._bits - prefix
        queue = self._queues.get(prefix)
        if queue is None:
            queue = self._queues[prefix] = places(self._ranges, prefix, self._occupancy)[::-1]
            self._touched[prefix] = {
                first >> shift for size, placed in self._placed.items() if size >= prefix for first in placed
            }
        touched = self._touched[prefix]
        while queue:
            first = queue[-1].block.first
            if first >> shift not in touched and not self._covered(first, prefix):
                return FreePlace(queue[-1].block, reuse=queue[-1])
            queue.pop()
        return None

    def _covered(self, first: int, length: int) -> bool:
        """Return whether a larger block was placed over this one, together with old lines beside it."""
        larger = ((size, placed) for size, placed in self._placed.items() if size < length)
        return any(first & -(1 << (self._bits - size)) in placed for size, placed in larger)

    def _absorb(self, order: int, piece: Block) -> None:
        """Add the freed rest of a line, as far as it lies in a range of this space."""
        own = shared(piece, self._ranges[order])
        self._push((order << self._bits) + own.first, own.prefix)
