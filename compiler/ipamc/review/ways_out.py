"""What would help nodes that a full pool has no block for: another pool, a smaller block, a quarantine, more space."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ipamc.lock.utilisation import utilisation
from ipamc.model.cidr import BITS, Block
from ipamc.model.cluster import Cluster, Dialect, Pool
from ipamc.model.diagnostics import count
from ipamc.model.lock import Lock, State
from ipamc.model.pool_words import block_size
from ipamc.place.allocate.newcomers import never
from ipamc.place.allocate.reuse import first_day
from ipamc.place.allocate.shortage import Shortage
from ipamc.place.released import released

MOST_POOLS = 3
"""How many other pools are named."""
SMALLER = 2
"""How many smaller blocks are tried, bit by bit."""
LEAST_HOST_BITS = 4
"""Of a ClusterCIDR (IPC0212)."""


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
        size = max(prefix - (blocks - 1).bit_length(), 1)
        of = "" if len(cluster.families) == 1 else f" --family IPv{family}"
        yield Way(
            text=f"add a range of /{size} to pool {pool.name}: ipamc suggest pool {cluster.name} --pool {pool.name} --size {size}{of}",
            enough=True,
        )


class _Full(Struct, frozen=True, kw_only=True):
    """A pool without room for blocks of a prefix length, and how many are wanted."""

    pool: Pool
    family: int
    prefix: int
    blocks: int

    def free(self, cluster: Cluster, lock: Lock, prefix: int) -> int:
        """Count the blocks of a prefix length that newcomers could get of the pool."""
        part = replace(self.pool.families[self.family], block_size=prefix)
        alone = replace(cluster, pools=(replace(self.pool, families={self.family: part}),))
        return utilisation(alone, lock)[0].use.blocks_free


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
    pool, cluster = full.pool, after.cluster
    if full.prefix != pool.families[full.family].block_size or cluster.shared_pools:
        return  # a size of `blockSizes`; or an operator whose maskSize is fixed
    before = replace(
        after.lock, lines=tuple(line for line in after.lock.lines if line.block not in after.new)
    )
    wanted = full.blocks + sum(
        line.block in after.new and line.pool == pool.name and line.block.family == full.family
        for line in after.lock.lines
    )
    longest = BITS[full.family] - (LEAST_HOST_BITS if pool.dialect is Dialect.CLUSTER_CIDR else 0)
    for size in range(full.prefix + 1, min(full.prefix + SMALLER, longest) + 1):
        room = full.free(cluster, before, size)
        if room >= wanted:
            yield Way(
                text=f"give all newcomers of pool {pool.name} smaller blocks ({block_size(pool, full.family, size)}): "
                f"{room:,} are free of /{size}, {1 << (BITS[full.family] - size)} addresses each, and {wanted:,} needed",
                enough=True,
            )
            return
