"""What would help nodes that a full pool has no block for: another pool, a smaller block, a quarantine, more space."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterator

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
from ipamc.review.released import released

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


def ways_out(
    cluster: Cluster, lock: Lock, new: Collection[Block], shortage: Shortage, lack: int, today: str
) -> Iterator[Way]:
    """Yield what would help `lack` nodes.

    `new` are the blocks that others got at the same time: with smaller ones, there is room for more.
    O(n log n) for each pool that might serve them.
    """
    pool = cluster.pools_by_name[shortage.pool]
    each = 1 if cluster.mode.one_block else pool.blocks_per_node
    blocks = lack * each
    if cluster.mode.one_block:
        yield from _other_pools(cluster, lock, shortage, pool, lack)
    for family, prefix in shortage.full:
        yield from _quarantine(cluster, lock, pool, family, prefix, blocks, today)
        yield from _smaller_blocks(cluster, lock, new, pool, family, prefix, blocks)
        size = max(prefix - (blocks - 1).bit_length(), 1)
        of = "" if len(cluster.families) == 1 else f" --family IPv{family}"
        yield Way(
            text=f"add a range of /{size} to pool {pool.name}: ipamc suggest pool {cluster.name} --pool {pool.name} --size {size}{of}",
            enough=True,
        )


def _free(cluster: Cluster, lock: Lock, pool: Pool, family: int, prefix: int = 0) -> int:
    """Count the blocks that newcomers could get of a pool; of another prefix length, if it is given."""
    part = pool.families[family]
    sized = replace(part, block_size=prefix) if prefix else part
    alone = replace(cluster, pools=(replace(pool, families={family: sized}),))
    return utilisation(alone, lock)[0].use.blocks_free


def _other_pools(cluster: Cluster, lock: Lock, shortage: Shortage, full: Pool, lack: int) -> Iterator[Way]:
    """Yield pools with room that `overflow` could name, those with room for all first, the least of them first."""
    families = [family for family, _ in shortage.full] + list(shortage.room)
    asked = {full.name, *full.overflow}
    rooms = []
    for pool in cluster.pools:
        if pool.name in asked or never(pool) or not all(family in pool.families for family in families):
            continue
        if room := min(_free(cluster, lock, pool, family) for family in families):
            rooms.append((room < lack, room if room >= lack else -room, pool.name))
    for short, room, name in sorted(rooms)[:MOST_POOLS]:
        how = f"name {name} in the overflow of pool {full.name}"
        if full.dialect is not Dialect.NATIVE:
            how += f", written in the native form as a {full.dialect} has none"
        yield Way(text=f"pool {name} has room for {count(abs(room), 'node')}: {how}", enough=not short)


def _quarantine(
    cluster: Cluster, lock: Lock, pool: Pool, family: int, prefix: int, blocks: int, today: str
) -> Iterator[Way]:
    """Yield how many blocks come free, and when those that are needed have, or all. O(n log days)."""
    days = cluster.quarantine_days
    mine = [
        line
        for line in lock.lines
        if line.pool == pool.name and line.block.family == family and line.state is State.QUARANTINED
    ]
    if days is None or not mine:
        return
    now = _free(cluster, lock, pool, family, prefix)
    waiting = [since for since in sorted({line.since for line in mine}) if first_day(since, days) > today]

    def more(since: str) -> int:
        return _free(cluster, released(lock, since), pool, family, prefix) - now

    place = bisect.bisect_left(waiting, blocks, key=more)
    if waiting and (gained := more(waiting[min(place, len(waiting) - 1)])):
        since = waiting[min(place, len(waiting) - 1)]
        yield Way(
            text=f"wait until {first_day(since, days)}: quarantine is over for {count(gained, 'block')} of pool {pool.name} then",
            enough=gained >= blocks,
        )


def _smaller_blocks(
    cluster: Cluster,
    lock: Lock,
    new: Collection[Block],
    pool: Pool,
    family: int,
    prefix: int,
    blocks: int,
) -> Iterator[Way]:
    """Yield the largest smaller block that makes room for all. Nodes that have a block keep it."""
    if prefix != pool.families[family].block_size or cluster.shared_pools:
        return  # a size of `blockSizes`; or an operator whose maskSize is fixed
    before = replace(lock, lines=tuple(line for line in lock.lines if line.block not in new))
    wanted = blocks + sum(
        line.block in new and line.pool == pool.name and line.block.family == family for line in lock.lines
    )
    longest = BITS[family] - (LEAST_HOST_BITS if pool.dialect is Dialect.CLUSTER_CIDR else 0)
    for size in range(prefix + 1, min(prefix + SMALLER, longest) + 1):
        room = _free(cluster, before, pool, family, size)
        if room >= wanted:
            yield Way(
                text=f"give all newcomers of pool {pool.name} smaller blocks ({block_size(pool, family, size)}): "
                f"{room:,} are free of /{size}, {1 << (BITS[family] - size)} addresses each, and {wanted:,} needed",
                enough=True,
            )
            return
