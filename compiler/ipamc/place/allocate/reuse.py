"""Addresses that may be re-used: places over lines that are released, or quarantined for long enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

import msgspec

from ipamc.model.address_sets import blocks_over, lines_over, shared
from ipamc.model.cidr import BITS, Block
from ipamc.model.cluster import Cluster
from ipamc.model.lock import Line, Lock, State
from ipamc.place.allocate.occupancy import Occupancy, is_over


class Reuse(NamedTuple):
    """A place over old lines. Sorts: the smallest is taken first."""

    day: str
    """The latest day on which one of its lines was quarantined, ISO 8601; "" where all are released."""
    order: int
    """The index of its range."""
    block: Block
    lines: tuple[Line, ...]
    """The lines that leave the lock for it, whole. Other parts of the block may be free."""


def last_day(today: str, days: int | None) -> str:
    """Return the last day of quarantine that is over today: lines of that day or before may be re-used.

    ISO 8601; "" where none may. `days` None: quarantine never ends.
    """
    if days is None:
        return ""
    try:
        return (date.fromisoformat(today) - timedelta(days=days)).isoformat()
    except OverflowError:
        return ""


def first_day(since: str, days: int) -> str:
    """Return the first day on which a line quarantined `since` may be re-used; "" if the calendar ends."""
    try:
        return (date.fromisoformat(since) + timedelta(days=days)).isoformat()
    except OverflowError:
        return ""


def places(ranges: Sequence[Block], prefix: int, occupancy: Occupancy) -> list[Reuse]:
    """Return the places over old lines for blocks of one prefix length, the one to be taken first first.

    Over lines of this size or smaller that is every place. Of a larger line it is only the lowest one: the
    whole line leaves the lock with it, and the rest is free then. The caller checks what newcomers have taken
    since. O(lines log lines).
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


def released_on(cluster: Cluster, lock: Lock, today: str) -> Lock:
    """Return a lock in which the lines that a compile of a day (ISO 8601, UTC) may give out count as released."""
    return released(lock, last_day(today, cluster.quarantine_days), today)


def released(lock: Lock, last: str, today: str = "") -> Lock:
    """Return a lock in which the lines whose quarantine `is_over` count as released. O(lines)."""
    if not any(is_over(line, last, today) for line in lock.lines if line.since):
        return lock
    lines = (
        msgspec.structs.replace(line, state=State.RELEASED, since="", moved=False)
        if is_over(line, last, today)
        else line
        for line in lock.lines
    )
    return msgspec.structs.replace(lock, lines=tuple(lines))
