"""What people do to pools: each edit changes a world in place, or does nothing where it makes no sense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ipamc.model.cidr import Block
from tests.support.history.model import LONGER, Pool, World, cell

T = TypeVar("T")


def pick(things: Sequence[T], which: int) -> T | None:
    """Return one of some things; None if there are none."""
    return things[which % len(things)] if things else None


def inside(pool: Pool, family: int, where: int, prefix: int) -> Block:
    """Return a block of a pool near the beginning of a range, where blocks are given out first. Where it has none of the family, any block."""
    ranges = pool.ranges.get(family) or [cell(family, where, prefix)]
    around = ranges[where % len(ranges)]
    size = max(prefix + LONGER[family], around.prefix)
    number = where // len(ranges) % min(1 << size - around.prefix, 8)
    return Block(family, around.first + number * (around.size >> size - around.prefix), size)


def halves(block: Block) -> tuple[Block, Block]:
    """Cut a block in two."""
    prefix = block.prefix + 1
    return Block(block.family, block.first, prefix), Block(
        block.family, block.first + block.size // 2, prefix
    )


def grow(pool: Pool, family: int, where: int, width: int) -> None:
    """Append a range."""
    pool.ranges.setdefault(family, []).append(cell(family, where, width))


def shrink(pool: Pool, family: int, which: int) -> None:
    """Take a range away, or all of it but its first or its second half."""
    if ranges := pool.ranges.get(family):
        whole = ranges.pop(which % len(ranges))
        ranges += [half for half in halves(whole) if half == halves(whole)[which % 2] and which % 3]


def split(world: World, pool: Pool, family: int, name: str) -> None:
    """Make a range, or half of the only one, a pool of another name."""
    if (ranges := pool.ranges.get(family)) and name not in world.pools:
        other = ranges.pop()
        if not ranges:
            kept, other = halves(other)
            ranges.append(kept)
        world.pools[name] = Pool({family: [other]}, pool.size, pool.rack, pool.priority)


def rename(world: World, old: str, new: str) -> None:
    """Give a pool another name, also where others name it."""
    if new not in world.pools:
        world.pools[new] = world.pools.pop(old)
        for pool in world.pools.values():
            pool.overflow = [new if each == old else each for each in pool.overflow]


def remove(world: World, name: str) -> None:
    """Delete a pool; never the last one."""
    if len(world.pools) > 1:
        del world.pools[name]
        for pool in world.pools.values():
            pool.overflow = [each for each in pool.overflow if each != name]


def keep(world: World, pool: Pool, block: Block, *, excluded: bool) -> None:
    """Reserve addresses of a pool, maybe because they are excluded from the cluster; or no longer, if some are."""
    if excluded and world.excluded:
        world.excluded.pop()
    else:
        world.excluded += [block] if excluded else []
        pool.reserved = [] if pool.reserved and not excluded else [block]


def pin(pool: Pool, node: str, block: Block) -> None:
    """Pin a node, or no longer."""
    if pool.pins.get(node):
        pool.pins[node].pop()
    else:
        pool.pins[node] = [block]
