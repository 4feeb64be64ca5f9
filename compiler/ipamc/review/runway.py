"""Computes how many weeks the room of each pool lasts: its free blocks, divided by the growth of its nodes.

Growth is given as a range: the slowest, the middle and the fastest stretch of the lock's history. A stretch
is a number of weeks in a row, at least a quarter of the history; its rate is its growth by its weeks. The
lowest and the highest rate of all stretches are the range, and their median is the middle. No curve is
fitted, and no random numbers are used: each number can be verified by hand from the history, as in the
example in `docs/forecast.md`.

Why stretches of a quarter: growth by independent weeks with the deviation s has an average over n weeks that
is off by s/√n, and a stretch of n/4 weeks is off by twice that. So the range of stretches is about as wide as
what statistics gives for 19 of 20 cases; in simulated histories of constant growth it has the true rate in
more than nine of ten (`tests/review/test_growth.py`). Seasonal growth makes stretches that differ, and a wide
range.
"""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from ipamc.lock.line_changes import renumbered
from ipamc.lock.utilisation import PoolUse
from ipamc.model.cidr import BITS
from ipamc.model.cluster import Scheme
from ipamc.model.limits import FORECAST_REACH, LEAST_CHANGES, LEAST_WEEKS, MOST_JUMPS, MOST_WEEKS
from ipamc.model.lock import Line, Lock
from ipamc.model.ownership import RangeIndex
from ipamc.review.address_map import Versions
from ipamc.review.shown_pools import rooms, uses_on

WEEK = 7 * 86_400


Key = tuple[str, int]  # a pool by name, "" for none, and a family


class Edge(Struct, frozen=True):
    """The end of a week: its time in seconds since 1970, and the lock's version at that time."""

    second: int
    version: int


class Delta(Struct, frozen=True, kw_only=True):
    """The change between two versions, in addresses by pool and family."""

    own: Mapping[Key, int]  # from nodes that came or left, and from more or fewer blocks of the same nodes
    switched: Mapping[Key, int]
    """From nodes that changed the pool: a renumber, a new pool, a renamed pool."""


class Week(Struct, frozen=True, kw_only=True):
    """The addresses of a pool at the end of a week, and their change in the week."""

    second: int
    held: int
    own: int = 0
    switched: int = 0


class Jump(Struct, frozen=True):
    """A week that changed more than all other weeks together: an import or a move, not a trend."""

    week: int  # its number in the history, from 0 on
    change: int
    share: Fraction  # its share of the changes, up or down, of all weeks that were not left out before


class Growth(Struct, frozen=True, kw_only=True):
    """The rate of growth that a history shows. Rates are by week."""

    weeks: int  # weeks that count, without jumps
    changed: int  # weeks of these with a change
    jumps: tuple[Jump, ...] = ()  # the weeks that are left out, the largest first
    uneven: bool = False  # after MOST_JUMPS one week still changes more than all others: there is no rate
    stretch: int = 0  # the fewest weeks of a stretch
    stretches: int = 0  # the number of stretches
    rates: tuple[Fraction, Fraction, Fraction] | None = None
    """The slowest, the middle and the fastest; None if there is no answer."""


def growth(changes: Sequence[int]) -> Growth:
    """Return the growth from its changes week by week. O(n² log n) of at most 52 weeks."""
    left = list(enumerate(changes))
    jumps: list[Jump] = []
    while (jump := _jump(left)) and len(jumps) < MOST_JUMPS:
        jumps.append(jump)
        left = [pair for pair in left if pair[0] != jump.week]
    weeks, changed = len(left), sum(change != 0 for _, change in left)
    result = Growth(weeks=weeks, changed=changed, jumps=tuple(jumps), uneven=jump is not None)
    if jump or weeks < LEAST_WEEKS or 0 < changed < LEAST_CHANGES:
        return result
    stretch = -(-weeks // 4)
    sums = [0]
    for _, change in left:
        sums.append(sums[-1] + change)
    rates = sorted(
        Fraction(sums[end] - sums[start], end - start)
        for start in range(weeks + 1)
        for end in range(start + stretch, weeks + 1)
    )
    middle = (rates[(len(rates) - 1) // 2] + rates[len(rates) // 2]) / 2
    return replace(result, stretch=stretch, stretches=len(rates), rates=(rates[0], middle, rates[-1]))


def _jump(changes: Sequence[tuple[int, int]]) -> Jump | None:
    """Return the week that changed more than all others together; None without one or with few changes."""
    total = sum(abs(change) for _, change in changes)
    alone = sum(change != 0 for _, change in changes) < 2
    week, change = max(changes, key=lambda pair: (abs(pair[1]), -pair[0]), default=(0, 0))
    most = 2 * abs(change) > total and (abs(change) > 1 or not alone)
    return Jump(week, change, Fraction(abs(change), total)) if most else None


class Lasts(Struct, frozen=True, kw_only=True):
    """The number of whole weeks for which there is room. None: longer than the forecast, or for ever."""

    soonest: int | None
    middle: int | None
    latest: int | None
    reach: int  # the weeks of the forecast


class PoolRunway(Struct, frozen=True, kw_only=True):
    """The forecast for a pool in one family."""

    use: PoolUse
    nodes: int  # the number of further nodes with room, as `rooms` counts them: the same in both families
    blocks: int  # the free blocks of the pool's size for these nodes
    weeks: tuple[Week, ...]  # its history, in addresses; empty if it never had any
    growth: Growth  # in addresses
    lasts: Lasts | None  # None if there is no answer

    @property
    def size(self) -> int:
        """Return the addresses of a block."""
        return 1 << (BITS[self.use.family.family] - self.use.family.block_size)

    @property
    def rates(self) -> tuple[Fraction, ...]:
        """Return the slowest, the middle and the fastest growth in blocks of the pool's size a week."""
        return tuple(rate / self.size for rate in self.growth.rates or ())

    @property
    def switched(self) -> Fraction:
        """Return the blocks that came from other pools, minus those that went to other pools."""
        return Fraction(sum(week.switched for week in self.weeks), self.size)


class Runway(Struct, frozen=True, kw_only=True):
    """The forecast for a cluster's pools."""

    cluster: Scheme
    today: str
    edges: tuple[Edge, ...]  # the ends of the weeks, the oldest first
    read: int  # the number of lock versions that were read
    unread: tuple[int, ...]  # the numbers of unreadable versions, which are skipped
    pools: tuple[PoolRunway, ...]


def last_second(today: str) -> int:
    """Return the last second of a day (ISO 8601, UTC), in seconds since 1970."""
    return ((date.fromisoformat(today) - date(1970, 1, 1)).days + 1) * 86_400


def to_read(seconds: Sequence[int], today: str) -> list[int]:
    """Return the indexes of the versions at the ends of weeks, in order, at most one a week; see `edges`."""
    return list(dict.fromkeys(edge.version for edge in edges(seconds, last_second(today))))


def edges(seconds: Sequence[int], end: int) -> list[Edge]:
    """Return the ends of weeks back from `end`, the oldest first, each with the lock's version at that time.
    `seconds` are the commit times of the versions, in their order. If clocks contradict the order, the
    largest consistent set of versions counts. At most MOST_WEEKS weeks; the first edge begins the first week.
    """
    agreeing = [number for number in _in_order(seconds) if seconds[number] <= end]
    if not agreeing:
        return []
    times = [seconds[number] for number in agreeing]
    weeks = min((end - times[0]) // WEEK, MOST_WEEKS)
    return [
        Edge(second, agreeing[bisect.bisect_right(times, second) - 1])
        for second in range(end - weeks * WEEK, end + 1, WEEK)
    ]


def _in_order(seconds: Sequence[int]) -> list[int]:
    """Return the positions of a longest non-decreasing subsequence. O(n log n)."""
    tails: list[int] = []
    places: list[int] = []
    before: list[int] = []
    for place, second in enumerate(seconds):
        length = bisect.bisect_right(tails, second)
        before.append(places[length - 1] if length else -1)
        tails[length : length + 1] = [second]
        places[length : length + 1] = [place]
    run: list[int] = []
    place = places[-1] if places else -1
    while place >= 0:
        run.append(place)
        place = before[place]
    return run[::-1]


class Ledger:
    """Counts the addresses in the versions of a lock, one after the other.
    A block belongs to today's pool whose range contains it, else to today's pool with the name in its line: a
    pool that is renamed, divided or enlarged keeps its history. Only held blocks count: nodes with pending
    blocks have others.
    """

    def __init__(self, cluster: Scheme) -> None:
        self._ranges = RangeIndex(cluster.pools)
        self._names = frozenset(cluster.pools_by_name)
        self._versions = Versions(lines=[], current=0)
        self.held: dict[Key, int] = defaultdict(int)  # the addresses that are held now, by pool and family

    def read(self, text: bytes) -> Delta | None:
        """Read the next version, and return its changes; None, and no change, if it is no readable lock."""
        found = self._versions.add(text)
        if found is None:
            return None
        both = renumbered(found)
        sums: dict[tuple[str, Key], int] = defaultdict(int)
        for each in found:
            for node, line, sign in ((each.lost, each.before, -1), (each.got, each.after, 1)):
                if node and line:
                    sums[node, self._key(line)] += sign * (each.last - each.first + 1)
        own: dict[Key, int] = defaultdict(int)
        moved: dict[Key, int] = defaultdict(int)
        keys = Counter((node, key[1]) for node, key in sums)
        for (node, key), difference in sums.items():
            # A node that is renumbered within a pool, to a block of another size, makes the pool grow.
            moves = (node, key[1]) in both and keys[node, key[1]] > 1
            (moved if moves else own)[key] += difference
            self.held[key] += difference
        return Delta(own=own, switched=moved)

    def _key(self, line: Line) -> Key:
        pool = self._ranges.pool_of(line.block)
        return (pool.name if pool else line.pool if line.pool in self._names else ""), line.block.family


def runway(cluster: Scheme, lock: Lock, seconds: Sequence[int], texts: Iterable[bytes], today: str) -> Runway:
    """Return how long the room of each pool lasts, as of `today` (ISO 8601, UTC).
    `texts` are the versions from `to_read`, in order. O(lines) for the first one; of the others only lines
    that differ are decoded.
    """
    ends = edges(seconds, last_second(today))
    ledger, remaining = Ledger(cluster), iter(texts)
    uses = [use for use in uses_on(cluster, lock, today) if use.family.family in cluster.families]
    weeks: dict[Key, list[Week]] = {(use.pool.name, use.family.family): [] for use in uses}
    unread: list[int] = []
    for number, edge in enumerate(ends):
        delta = None
        if number == 0 or edge.version != ends[number - 1].version:
            delta = ledger.read(next(remaining))
            if delta is None:
                unread.append(edge.version)
        for key, history in weeks.items():
            held = ledger.held.get(key, 0)
            own, switched = (delta.own.get(key, 0), delta.switched.get(key, 0)) if delta else (0, 0)
            if history:
                history.append(Week(second=edge.second, held=held, own=own, switched=switched))
            elif held:  # the history of a pool begins with its first block
                history.append(Week(second=edge.second, held=held))
    room = rooms(cluster, uses)
    pools = [_pool(use, room[use.pool.name], weeks[use.pool.name, use.family.family]) for use in uses]
    return Runway(
        cluster=cluster,
        today=today,
        edges=tuple(ends),
        read=len({edge.version for edge in ends}) - len(unread),
        unread=tuple(unread),
        pools=tuple(pools),
    )


def _pool(use: PoolUse, nodes: int, weeks: Sequence[Week]) -> PoolRunway:
    blocks = nodes * use.pool.blocks_per_node
    grown = growth([week.own for week in weeks[1:]])
    pool = PoolRunway(use=use, nodes=nodes, blocks=blocks, weeks=tuple(weeks), growth=grown, lasts=None)
    if grown.rates is None:
        return pool
    reach = FORECAST_REACH * grown.weeks
    numbers = [pool.blocks // rate if rate > 0 else reach + 1 for rate in pool.rates]
    latest, middle, soonest = (number if number <= reach else None for number in numbers)
    return replace(pool, lasts=Lasts(soonest=soonest, middle=middle, latest=latest, reach=reach))
