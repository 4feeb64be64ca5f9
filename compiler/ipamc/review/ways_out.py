"""What would help nodes that a full pool has no block for: another pool, a smaller block, a quarantine, more space."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Dialect, Pool
from ipamc.model.diagnostics import count
from ipamc.model.lock import Lock, State
from ipamc.model.pool_words import range_for, suggest_pool
from ipamc.place.allocate.newcomers import never
from ipamc.place.allocate.occupancy import first_day, released
from ipamc.place.allocate.shortage import Shortage, free_blocks, smaller_blocks, words

MOST_POOLS = 3
"""How many other pools are named."""


class Way(Struct, frozen=True, kw_only=True):
    """Something that would help, and how much."""

    text: str
    enough: bool
    """Every node of this reason would get a block."""


class After(Struct, frozen=True, kw_only=True):
    """A cluster in which nodes got no block."""

    cluster: Cluster
    lock: Lock
    free: Mapping[tuple[str, int], int]
    """By pool and family: the blocks of the pool's size that newcomers could get."""
    new: frozenset[Block]
    """The blocks that others got at the same time: with smaller ones, there is room for more."""
    today: str


def ways_out(after: After, shortage: Shortage, lack: int) -> Iterator[Way]:
    """Yield what would help `lack` nodes. O(pools), and O(lines) a few times."""
    cluster = after.cluster
    pool = cluster.pools_by_name[shortage.pool]
    each = 1 if cluster.mode.one_block else pool.blocks_per_node
    blocks = lack * each
    if cluster.mode.one_block:
        yield from _other_pools(after, shortage, pool, lack)
    for family, prefix in shortage.full:
        full = _Full(pool=pool, family=family, prefix=prefix, blocks=blocks)
        yield from _quarantine(after, full)
        yield from _smaller_blocks(after, full)
        size = range_for(prefix, blocks)
        search = suggest_pool(cluster, pool, family, size)
        yield Way(text=f"add a range of /{size} to pool {pool.name}: {search}", enough=True)


class _Full(Struct, frozen=True, kw_only=True):
    """A pool without room for blocks of a prefix length, and how many are wanted."""

    pool: Pool
    family: int
    prefix: int
    blocks: int

    def free(self, cluster: Cluster, lock: Lock, prefix: int) -> int:
        """Count the blocks of a prefix length that newcomers could get of the pool."""
        return free_blocks(cluster, lock, self.pool, self.family, prefix)


def _other_pools(after: After, shortage: Shortage, full: Pool, lack: int) -> Iterator[Way]:
    """Yield pools with room that `overflow` could name, those with room for all first, the least of them first."""
    families = [family for family, _ in shortage.full] + list(shortage.room)
    asked = {full.name, *full.overflow}
    rooms = []
    for pool in after.cluster.pools:
        if pool.name in asked or never(pool) or not all(family in pool.families for family in families):
            continue
        if room := min(after.free[pool.name, family] for family in families):
            rooms.append((room < lack, room if room >= lack else -room, pool.name))
    for short, room, name in sorted(rooms)[:MOST_POOLS]:
        how = f"name {name} in the overflow of pool {full.name}"
        if full.dialect is not Dialect.NATIVE:
            how += f", written in the native form as a {full.dialect} has none"
        yield Way(text=f"pool {name} has room for {count(abs(room), 'node')}: {how}", enough=not short)


def _quarantine(after: After, full: _Full) -> Iterator[Way]:
    """Yield how many blocks come free, and when those that are needed have, or all. O(n log days)."""
    days, pool = after.cluster.quarantine_days, full.pool
    if days is None:
        return
    waiting = sorted(
        {
            line.since
            for line in after.lock.lines
            if line.state is State.QUARANTINED
            and line.pool == pool.name
            and line.block.family == full.family
            and first_day(line.since, days) > after.today
        }
    )

    def more(since: str) -> int:
        then = released(after.lock, since)
        return full.free(after.cluster, then, full.prefix) - full.free(after.cluster, after.lock, full.prefix)

    place = bisect.bisect_left(waiting, full.blocks, key=more)
    if waiting and (gained := more(since := waiting[min(place, len(waiting) - 1)])):
        yield Way(
            text=f"wait until {first_day(since, days)}: quarantine is over for {count(gained, 'block')} of pool {pool.name} then",
            enough=gained >= full.blocks,
        )


def _smaller_blocks(after: After, full: _Full) -> Iterator[Way]:
    """Yield the largest smaller block that makes room for all. Nodes that have a block keep it."""
    lines = after.lock.lines
    before = replace(after.lock, lines=tuple(line for line in lines if line.block not in after.new))
    one = full.family, full.prefix
    if found := smaller_blocks(after.cluster, full.pool, one, before, lines, full.blocks):
        yield Way(text=words(full.pool, full.family, found), enough=True)
