"""How many weeks the room of each pool lasts: its free blocks, divided by how fast its nodes grow in number."""

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
from ipamc.review.runway.growth import Growth, growth
from ipamc.review.runway.weeks import Edge, Ledger, Step, Week, edges, history_of
from ipamc.review.shown_pools import rooms, uses_on

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
    def moved(self) -> Fraction:
        """Return how many blocks came from other pools, less those that went there."""
        return Fraction(sum(week.moved for week in self.weeks), self.size)


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
    nothing = Step(own={}, moved={})
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
