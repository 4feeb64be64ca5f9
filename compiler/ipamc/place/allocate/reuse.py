"""Addresses that may be given again: places over lines that were released, or that left long enough ago."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from ipamc.model.cidr import BITS, Block
from ipamc.model.lock import Line
from ipamc.place.allocate.occupancy import Blockers, blocks_over, lines_over, shared


class Reuse(NamedTuple):
    """A place over old lines. The smallest is taken first."""

    day: str
    """The youngest day on which one of its lines left, ISO 8601; empty where all were released, so that these come first."""
    order: int
    """The index of its range."""
    block: Block
    lines: tuple[Line, ...]
    """The lines that vanish under it, whole. Other parts of the block may be free."""


def last_day(today: str, days: int | None) -> str:
    """Give the last day on which a line may have left to be given again today. Empty: no line may be. `days` None: never."""
    if days is None:
        return ""
    try:
        return (date.fromisoformat(today) - timedelta(days=days)).isoformat()
    except OverflowError:
        return ""


def first_day(left: str, days: int) -> str:
    """Give the day from which on a line that left on a day may be given again; empty if the calendar ends before."""
    try:
        return (date.fromisoformat(left) + timedelta(days=days)).isoformat()
    except OverflowError:
        return ""


def places(ranges: Sequence[Block], prefix: int, blockers: Blockers) -> list[Reuse]:
    """Give the places for blocks of one prefix length, the one to be taken first first.

    Over lines of this size or smaller, every place is told; of a larger line only the lowest, because the line vanishes with it and the rest of
    it is free then. What newcomers took since is for the caller to see. O(lines log lines).
    """
    return sorted(
        place
        for order, ground in enumerate(ranges)
        if ground.prefix <= prefix
        for place in _places(order, ground, prefix, blockers)
    )


def _places(order: int, ground: Block, prefix: int, blockers: Blockers) -> Iterator[Reuse]:
    family = ground.family
    size = 1 << (BITS[family] - prefix)
    lines = lines_over(blockers.lines, ground)
    fixed = blocks_over(blockers.fixed, ground)
    index = 0
    while index < len(lines):
        line = lines[index]
        if line.block.prefix < prefix:
            index += 1
            if blockers.reusable(line):
                lowest = next(
                    (
                        piece
                        for piece in blockers.unfixed(shared(line.block, ground))
                        if piece.prefix <= prefix
                    ),
                    None,
                )
                if lowest:
                    yield Reuse(line.since, order, Block(family, lowest.first, prefix), (line,))
            continue
        block = Block(family, line.block.first & -size, prefix)
        start = index
        while index < len(lines) and lines[index].block.first < block.first + size:
            index += 1
        under = lines[start:index]
        if all(map(blockers.reusable, under)) and not (fixed and blocks_over(fixed, block)):
            yield Reuse(max(each.since for each in under), order, block, tuple(under))
