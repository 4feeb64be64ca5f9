"""How much smaller the blocks of newcomers would have to be for all of them to have room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ipamc.lock.utilisation import utilisation
from ipamc.model.cidr import BITS
from ipamc.model.cluster import Cluster, Dialect, Pool
from ipamc.model.lock import Line, Lock
from ipamc.model.pool_words import block_size

SMALLER = 2
"""How many smaller blocks are tried, bit by bit."""
SMALLER_AT_FIRST = 6
"""The same before any node has a block: a blockSize may be much too large then."""
LEAST_HOST_BITS = 4
"""Of a ClusterCIDR (IPC0212)."""
LEAST_BITS = 2
"""Of any other pool: of smaller blocks no address is left before Cilium 1.17 (IPC0552)."""


class Smaller(NamedTuple):
    """A size of blocks of which there are enough."""

    prefix: int
    room: int
    """How many of them are free."""
    wanted: int


def free_blocks(cluster: Cluster, lock: Lock, pool: Pool, family: int, prefix: int) -> int:
    """Count the blocks of a prefix length that newcomers could get of a pool. O(lines of the pool)."""
    part = replace(pool.families[family], block_size=prefix)
    alone = replace(cluster, pools=(replace(pool, families={family: part}),))
    return utilisation(alone, lock)[0].use.blocks_free


def smaller_blocks(
    cluster: Cluster, pool: Pool, full: tuple[int, int], before: Lock, after: Sequence[Line], lack: int
) -> Smaller | None:
    """Return the largest smaller block that makes room for all newcomers, or None.

    `full` is the family and the prefix length of the blocks that `lack` more of are wanted; `before` has the lines
    that stay, `after` those of newcomers too. Nodes that have a block keep it.
    """
    family, prefix = full
    if prefix != pool.families[family].block_size or cluster.shared_pools:
        return None  # a size of `blockSizes`; or an operator whose maskSize is fixed
    old = {line.block for line in before.lines}
    new = [line.block for line in after if line.pool == pool.name and line.block.family == family]
    wanted = lack + sum(block not in old for block in new)
    least = LEAST_HOST_BITS if pool.dialect is Dialect.CLUSTER_CIDR else LEAST_BITS
    most = prefix + (SMALLER if old else SMALLER_AT_FIRST)
    for size in range(prefix + 1, min(most, BITS[family] - least) + 1):
        if (room := free_blocks(cluster, before, pool, family, size)) >= wanted:
            return Smaller(size, room, wanted)
    return None


def words(pool: Pool, family: int, found: Smaller) -> str:
    """Say that newcomers could get smaller blocks."""
    each = 1 << (BITS[family] - found.prefix)
    return (
        f"give all newcomers of pool {pool.name} smaller blocks ({block_size(pool, family, found.prefix)}): "
        f"{found.room:,} are free of /{found.prefix}, {each} addresses each, and {found.wanted:,} needed"
    )
