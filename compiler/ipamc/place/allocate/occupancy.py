"""Addresses that newcomers cannot get: lines of the lock, and addresses that no node gets."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from ipamc.law.change import is_over
from ipamc.model.address_sets import blocks_over, lines_over, outermost, shared, subtract
from ipamc.model.cidr import BITS, Block, Range
from ipamc.model.cluster import Scheme
from ipamc.model.lock import Line, State
from ipamc.model.ownership import reserved_around
from ipamc.model.plan import ShownBlock

Take = Callable[[int, Block], None]
"""Takes a freed piece into a space: the index of its range, and a piece that overlaps that range."""


class BlockedRange(Struct, frozen=True, kw_only=True):
    """Addresses in no line that no node gets, and why: a predicate like `reserved`."""

    why: str
    range: Range | ShownBlock


def blocked_ranges(cluster: Scheme, taken: Sequence[ShownBlock]) -> dict[Block, BlockedRange]:
    """Return addresses that no node gets: reserved, excluded, `taken` by CiliumNodes without a line."""
    reserved = [cidr for pool in cluster.pools for cidr in pool.reserved]
    reserved += (around for _, around in reserved_around(cluster, by_operator=True))
    return {
        **{
            shown.block: BlockedRange(why="in use by a CiliumNode but not in the lock", range=shown)
            for shown in taken
        },
        **{cidr.block: BlockedRange(why="reserved", range=cidr) for cidr in reserved},
        **{cidr.block: BlockedRange(why="excluded", range=cidr) for cidr in cluster.excluded},
    }


def blocked(cluster: Scheme, taken: Sequence[ShownBlock]) -> list[Block]:
    """Return addresses in no line that newcomers cannot get, including pins, even of absent nodes."""
    pins = [pin.block for pool in cluster.pools for pinned in pool.pins.values() for pin in pinned]
    return outermost([*blocked_ranges(cluster, taken), *pins])


class Occupancy(Struct):
    """Lines and blocked addresses, for look-up by block, and the re-used lines. A compile has one."""

    lines: Sequence[Line]
    """Lines of the lock: disjoint, by address."""
    blocked: Sequence[Block]
    """Reserved, excluded, pinned, or taken without a line; as `outermost` returns them."""
    last_day: str
    """Lines in quarantine since this day (ISO 8601) or before may be re-used. "": none may."""
    today: str = ""
    """ISO 8601: a block from which a node is moved today stays in use until the change is applied."""
    reused: set[Block] = field(default_factory=set)
    """The blocks of re-used lines, which leave the lock."""
    freed: list[Block] = field(default_factory=list)
    """Freed parts of re-used lines outside of one range, by address: each space takes its own part."""
    joined: list[tuple[Sequence[Block], Take]] = field(default_factory=list)
    """Spaces that are not in `_takers` yet: their ranges, and the functions that take freed pieces."""
    _ranges: list[Block] = field(default_factory=list)
    """The ranges of the other spaces, by address; they are disjoint."""
    _takers: dict[Block, tuple[int, Take]] = field(default_factory=dict)
    """By range: its index in its space, and the function that takes freed pieces."""

    def over_range(self, block: Block) -> list[Block]:
        """Return all lines and blocked addresses that overlap a range, by address."""
        lines = [line.block for line in lines_over(self.lines, block)]
        blocked = blocks_over(self.blocked, block)
        return sorted([*lines, *blocked]) if blocked else lines

    def join(self, ranges: Sequence[Block], take: Take) -> None:
        """Register a space for its part of freed pieces, earlier and later ones. O(log n) each range."""
        for number, block in enumerate(ranges if self.freed else ()):
            for piece in blocks_over(self.freed, block):
                take(number, piece)
        self.joined.append((ranges, take))

    def free(self, pieces: Iterable[Block]) -> None:
        """Give pieces outside one range to the spaces that own parts of them. O(log n + result) each."""
        for ranges, take in self.joined:
            self._takers |= {block: (number, take) for number, block in enumerate(ranges)}
            self._ranges += ranges
        if self.joined:
            self._ranges.sort()
            self.joined.clear()
        for piece in pieces:
            bisect.insort(self.freed, piece)
            for block in blocks_over(self._ranges, piece):
                number, take = self._takers[block]
                take(number, piece)

    def reusable(self, line: Line) -> bool:
        """Return whether the addresses of a line may be given out again today."""
        return line.state is State.RELEASED or is_over(line, self.last_day, self.today)

    def unblocked(self, block: Block, *but: Block) -> Iterator[Block]:
        """Yield the pieces of a block that are neither blocked nor in `but`; lines are ignored."""
        return subtract(block, [*blocks_over(self.blocked, block), *but])


class Reuse(NamedTuple):
    """A place over old lines. Sorts: the smallest is taken first."""

    day: str
    """The latest day on which one of its lines was quarantined, ISO 8601; "" if all are released."""
    order: int
    """The index of its range."""
    block: Block
    lines: tuple[Line, ...]
    """The lines that leave the lock for it, as a whole. Other parts of the block may be free."""


def places(ranges: Sequence[Block], prefix: int, occupancy: Occupancy) -> list[Reuse]:
    """Return the places over old lines for blocks of a prefix length, in order of use. O(lines log lines).
    In a larger line it is only the lowest place: the whole line leaves the lock with it, and the rest becomes
    free. The caller checks what newcomers took since.
    """
    return sorted(
        place
        for order, block in enumerate(ranges)
        if block.prefix <= prefix
        for place in _places(order, block, prefix, occupancy)
    )


def _places(order: int, cidr: Block, prefix: int, occupancy: Occupancy) -> Iterator[Reuse]:
    family = cidr.family
    size = 1 << (BITS[family] - prefix)
    lines = lines_over(occupancy.lines, cidr)
    blocked = blocks_over(occupancy.blocked, cidr)
    index = 0
    while index < len(lines):
        line = lines[index]
        if line.block.prefix < prefix:
            index += 1
            if occupancy.reusable(line):
                pieces = occupancy.unblocked(shared(line.block, cidr))
                if lowest := next((piece for piece in pieces if piece.prefix <= prefix), None):
                    yield Reuse(line.since, order, Block(family, lowest.first, prefix), (line,))
            continue
        block = Block(family, line.block.first & -size, prefix)
        start = index
        while index < len(lines) and lines[index].block.first < block.first + size:
            index += 1
        under = lines[start:index]
        if all(map(occupancy.reusable, under)) and not (blocked and blocks_over(blocked, block)):
            yield Reuse(max(line.since for line in under), order, block, tuple(under))
