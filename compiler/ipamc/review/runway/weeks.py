"""The history of a lock week for week: what its pools had, and which of it came with new nodes."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ipamc.lock.record import HEADER, Record, decode_records
from ipamc.model.cidr import parse_block
from ipamc.model.cluster import Cluster
from ipamc.model.lock import State
from ipamc.model.ownership import RangeIndex

WEEK = 7 * 86_400
MOST = 52
"""How many weeks are looked at: a year, so that every season is in it once."""

Key = tuple[str, int]
"""A pool by name, "" for none, and a family."""


class Edge(Struct, frozen=True):
    """The end of a week: the moment in seconds since 1970, and which version of the lock was there."""

    second: int
    version: int


class Step(Struct, frozen=True, kw_only=True):
    """What changed between two versions, in addresses by pool and family."""

    own: Mapping[Key, int]
    """By nodes that the cluster did not have, or has no more, and by blocks more or less of the same nodes."""
    switched: Mapping[Key, int]
    """By nodes that had, or have then, blocks in another pool: a renumber, a new pool, a pool renamed."""


class Week(Struct, frozen=True, kw_only=True):
    """What a pool had at the end of a week, in addresses, and what changed in the week."""

    second: int
    held: int
    own: int = 0
    switched: int = 0


def edges(seconds: Sequence[int], end: int) -> list[Edge]:
    """Return the ends of weeks back from `end`, the oldest first, each with the version that was there.

    `seconds` are when the versions were committed, in their order. Where clocks contradict the order, the most
    versions that agree count. At most MOST weeks; the first edge is the beginning of the first one.
    """
    agreeing = [number for number in _in_order(seconds) if seconds[number] <= end]
    if not agreeing:
        return []
    times = [seconds[number] for number in agreeing]
    weeks = min((end - times[0]) // WEEK, MOST)
    return [
        Edge(second, agreeing[bisect.bisect_right(times, second) - 1])
        for second in range(end - weeks * WEEK, end + 1, WEEK)
    ]


def _in_order(seconds: Sequence[int]) -> list[int]:
    """Return the positions of a longest run of numbers that do not fall. O(n log n)."""
    tails: list[int] = []
    places: list[int] = []
    before: list[int] = []
    for place, second in enumerate(seconds):
        length = bisect.bisect_right(tails, second)
        before.append(places[length - 1] if length else -1)
        tails[length : length + 1] = [second]
        places[length : length + 1] = [place]
    found: list[int] = []
    place = places[-1] if places else -1
    while place >= 0:
        found.append(place)
        place = before[place]
    return found[::-1]


class Ledger:
    """Reads versions of a lock one after the other, and tells what changed: only lines that differ are decoded.

    A block counts for the pool of today in whose range it is, else for the pool of today with the name in its
    line: a pool that is renamed, divided or enlarged keeps its history. Held blocks count; pending ones are of
    nodes that have others.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._ranges = RangeIndex(cluster.pools)
        self._names = frozenset(cluster.pools_by_name)
        self._rows: frozenset[bytes] = frozenset()
        self._nodes: dict[str, dict[Key, int]] = {}
        self.held: dict[Key, int] = defaultdict(int)
        """The addresses that are held now, by pool and family."""

    def read(self, text: bytes) -> Step | None:
        """Go on to this version; None, and nothing changes, where it is no lock that can be read."""
        header, _, body = text.partition(b"\n")
        rows = frozenset(body.split(b"\n"))
        try:
            HEADER.decode(header)
            gone = self._decoded(self._rows - rows)
            come = self._decoded(rows - self._rows)
        except ValueError:  # msgspec's errors and CidrErrors are some
            return None
        self._rows = rows
        return self._apply(gone, come)

    def _decoded(self, rows: Iterable[bytes]) -> list[tuple[str, Key, int]]:
        """Return node, pool and addresses of the held lines among some. Raises ValueError."""
        filled = [row for row in rows if row]
        records = decode_records(b"\n".join(filled) + b"\n") if filled else []
        if len(records) != len(filled):
            raise ValueError("a line has two records")
        held = [
            (parse_block(record.block, pods=False), record)
            for record in records
            if record.state is State.HELD
        ]
        held.sort(key=lambda pair: pair[0])
        pools = self._ranges.pools_of([block for block, _ in held])
        return [
            (record.node, (pool.name if pool else self._named(record), block.family), block.size)
            for (block, record), pool in zip(held, pools, strict=True)
        ]

    def _named(self, record: Record) -> str:
        return record.pool if record.pool in self._names else ""

    def _apply(self, gone: Iterable[tuple[str, Key, int]], come: Iterable[tuple[str, Key, int]]) -> Step:
        changes: dict[str, dict[Key, int]] = {}
        for sign, lines in ((-1, gone), (1, come)):
            for node, key, size in lines:
                change = changes.setdefault(node, {})
                change[key] = change.get(key, 0) + sign * size
        own: dict[Key, int] = defaultdict(int)
        moved: dict[Key, int] = defaultdict(int)
        for node, change in changes.items():
            before = self._nodes.get(node, {})
            after = {
                key: size
                for key in before.keys() | change.keys()
                if (size := before.get(key, 0) + change.get(key, 0))
            }
            for key, difference in change.items():
                if difference:
                    (moved if _is_move(key, before, after) else own)[key] += difference
                    self.held[key] += difference
            if after:
                self._nodes[node] = after
            else:
                self._nodes.pop(node, None)
        return Step(own=own, switched=moved)


def _is_move(key: Key, before: Mapping[Key, int], after: Mapping[Key, int]) -> bool:
    """Tell whether a node came to a pool from another one, or left it for another one, in this family."""
    if key in before and key in after:
        return False
    other = after if key in before else before
    return any(family == key[1] for pool, family in other if (pool, family) != key)


def history_of(
    keys: Iterable[Key], steps: Sequence[tuple[Edge, Step, Mapping[Key, int]]]
) -> dict[Key, list[Week]]:
    """Return what each pool had, week for week, from the first edge on at which it had something.

    `steps` are the edges with what changed since the one before, and what was held then.
    """
    found: dict[Key, list[Week]] = {}
    for key in keys:
        weeks: list[Week] = []
        for edge, step, held in steps:
            now = held.get(key, 0)
            if weeks:
                weeks.append(
                    Week(
                        second=edge.second,
                        held=now,
                        own=step.own.get(key, 0),
                        switched=step.switched.get(key, 0),
                    )
                )
            elif now:
                weeks.append(Week(second=edge.second, held=now))
        found[key] = weeks
    return found
