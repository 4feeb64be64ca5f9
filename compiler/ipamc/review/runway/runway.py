"""How many weeks the room of each pool lasts: its free blocks, divided by how fast its nodes grow in number.

How fast something grows is a range: the slowest, the middle and the fastest stretch of its history.
A stretch is a number of weeks in a row, at least a quarter of the history; its rate is its growth by its weeks.
Of all stretches the lowest and the highest rate are the range, and their median is the middle. No curve is
fitted, and nothing is drawn by chance: each number can be found again in the history by hand.

Why stretches of a quarter: growth by independent weeks with the deviation s has an average over n weeks that is
off by s/√n, and a stretch of n/4 weeks is off by twice that. So the range of stretches is about as wide as what
statistics gives for 19 of 20 cases; in made histories of constant growth it has the true rate in more than nine of
ten (`tests/review/test_growth.py`). Growth that comes by seasons makes stretches that differ, and a wide range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from ipamc.lock.utilisation import PoolUse
from ipamc.model.cidr import BITS
from ipamc.model.cluster import Cluster
from ipamc.model.lock import Lock
from ipamc.review.runway.weeks import Edge, Ledger, Step, Week, edges, history_of
from ipamc.review.shown_pools import rooms, uses_on

LEAST_WEEKS = 12
"""With fewer weeks nothing is said: a quarter of them would be no stretch."""
LEAST_CHANGES = 5
"""With fewer weeks in which something changed nothing is said."""
MOST_JUMPS = 2
"""So many weeks may be left out as jumps."""


class Jump(Struct, frozen=True):
    """A week that changed more than all other weeks together: an import or a move, and no trend."""

    week: int
    """Its number in the history, from 0 on."""
    change: int
    share: Fraction
    """Of the changes of all weeks that were not left out before, up or down."""


class Growth(Struct, frozen=True, kw_only=True):
    """What a history says about the rate of growth. Rates are by week."""

    weeks: int
    """How many count: jumps do not."""
    changed: int
    """How many of them changed something."""
    jumps: tuple[Jump, ...] = ()
    """The weeks that are left out, the largest first."""
    uneven: bool = False
    """After MOST_JUMPS one week still makes more than all others: no rate is given."""
    stretch: int = 0
    """The fewest weeks of a stretch."""
    stretches: int = 0
    """How many there are."""
    rates: tuple[Fraction, Fraction, Fraction] | None = None
    """The slowest, the middle and the fastest; None where nothing is said."""


def growth(changes: Sequence[int]) -> Growth:
    """Return how fast something grows by its changes week for week. O(n² log n) of at most a year of weeks."""
    left = list(enumerate(changes))
    jumps: list[Jump] = []
    while (jump := _jump(left)) and len(jumps) < MOST_JUMPS:
        jumps.append(jump)
        left = [pair for pair in left if pair[0] != jump.week]
    weeks, changed = len(left), sum(change != 0 for _, change in left)
    said = Growth(weeks=weeks, changed=changed, jumps=tuple(jumps), uneven=jump is not None)
    if jump or weeks < LEAST_WEEKS or 0 < changed < LEAST_CHANGES:
        return said
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
    return Growth(
        weeks=weeks,
        changed=changed,
        jumps=tuple(jumps),
        stretch=stretch,
        stretches=len(rates),
        rates=(rates[0], middle, rates[-1]),
    )


def _jump(changes: Sequence[tuple[int, int]]) -> Jump | None:
    """Return the week that changed more than all others together, if there are enough changes to tell."""
    total = sum(abs(change) for _, change in changes)
    if sum(change != 0 for _, change in changes) < 2:
        largest = max(changes, key=lambda pair: abs(pair[1]), default=(0, 0))
        return Jump(*largest, Fraction(1)) if abs(largest[1]) > 1 else None
    week, change = max(changes, key=lambda pair: (abs(pair[1]), -pair[0]))
    return Jump(week, change, Fraction(abs(change), total)) if 2 * abs(change) > total else None


REACH = 2
"""A history of n weeks says something about the next 2n weeks, and no more."""


class Lasts(Struct, frozen=True, kw_only=True):
    """For how many whole weeks there is room. None: longer than the history can tell, or for ever."""

    soonest: int | None
    middle: int | None
    latest: int | None
    reach: int
    """So many weeks ahead are looked at."""


class PoolRunway(Struct, frozen=True, kw_only=True):
    """The future of a pool in one family."""

    use: PoolUse
    nodes: int
    """Room for so many more nodes, as `rooms` counts them: the same in both families."""
    blocks: int
    """The free blocks of the pool's size that these would get."""
    weeks: tuple[Week, ...]
    """Its history, in addresses; empty where it never had anything."""
    growth: Growth
    """In addresses."""
    lasts: Lasts | None
    """None where nothing is said."""

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
        """Return how many blocks came from other pools, less those that went there."""
        return Fraction(sum(week.switched for week in self.weeks), self.size)


class Runway(Struct, frozen=True, kw_only=True):
    """The future of a cluster's pools."""

    cluster: Cluster
    today: str
    edges: tuple[Edge, ...]
    """The ends of the weeks, the oldest first."""
    read: int
    """How many versions of the lock were read."""
    unread: tuple[int, ...]
    """The numbers of those that could not be read, and are passed over."""
    pools: tuple[PoolRunway, ...]


def last_second(today: str) -> int:
    """Return the second since 1970 with which a day (ISO 8601, UTC) ends."""
    return ((date.fromisoformat(today) - date(1970, 1, 1)).days + 1) * 86_400


def to_read(seconds: Sequence[int], today: str) -> list[int]:
    """Return the numbers of the versions that the weeks end with, in their order: at most one a week.

    `seconds` are when the versions were committed, the first one first.
    """
    return list(dict.fromkeys(edge.version for edge in edges(seconds, last_second(today))))


def runway(
    cluster: Cluster, lock: Lock, seconds: Sequence[int], texts: Iterable[bytes], today: str
) -> Runway:
    """Return how long the room of each pool lasts, as of `today` (ISO 8601, UTC).

    `texts` are the versions that `to_read` names, one after the other. O(lines) for the first one; of the others
    only lines that differ are decoded.
    """
    found = edges(seconds, last_second(today))
    ledger = Ledger(cluster)
    steps: list[tuple[Edge, Step, dict[tuple[str, int], int]]] = []
    nothing = Step(own={}, switched={})
    remaining = iter(texts)
    unread: list[int] = []
    for number, edge in enumerate(found):
        step = None
        if number == 0 or edge.version != found[number - 1].version:
            step = ledger.read(next(remaining))
            if step is None:
                unread.append(edge.version)
        steps.append((edge, step or nothing, dict(ledger.held)))
    uses = [use for use in uses_on(cluster, lock, today) if use.family.family in cluster.families]
    room = rooms(cluster, uses)
    weeks = history_of([(use.pool.name, use.family.family) for use in uses], steps)
    return Runway(
        cluster=cluster,
        today=today,
        edges=tuple(found),
        read=len({edge.version for edge in found}) - len(unread),
        unread=tuple(unread),
        pools=tuple(_pool(use, room[use.pool.name], weeks[use.pool.name, use.family.family]) for use in uses),
    )


def _pool(use: PoolUse, nodes: int, weeks: Sequence[Week]) -> PoolRunway:
    found = PoolRunway(
        use=use,
        nodes=nodes,
        blocks=nodes * use.pool.blocks_per_node,
        weeks=tuple(weeks),
        growth=growth([week.own for week in weeks[1:]]),
        lasts=None,
    )
    if found.growth.rates is None:
        return found
    return replace(found, lasts=_lasts(found))


def _lasts(found: PoolRunway) -> Lasts:
    slowest, middle, fastest = found.rates
    reach = REACH * found.growth.weeks

    def weeks(rate: Fraction) -> int | None:
        number = found.blocks // rate if rate > 0 else reach + 1
        return number if number <= reach else None

    return Lasts(soonest=weeks(fastest), middle=weeks(middle), latest=weeks(slowest), reach=reach)


def day_after(today: str, weeks: int) -> str:
    """Return the day so many weeks after another one, ISO 8601; "" if the calendar ends."""
    try:
        return (date.fromisoformat(today) + timedelta(weeks=weeks)).isoformat()
    except OverflowError:
        return ""
