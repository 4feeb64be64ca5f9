"""Pools of two sides: what was written differently, and how much room there was and is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ipamc.check.capacity import LOW
from ipamc.lock.utilisation import Use, utilisation
from ipamc.model.cluster import Cluster, Pool
from ipamc.model.lock import Lock

_SINGLE = frozenset(
    {"ipv4.blockSize", "ipv6.blockSize", "nodeSelector", "priority", "blocksPerNode", "unlisted", "disabled"}
)
"""Fields with one value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a pool. Of a list, only what the other side has not."""

    name: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    whole: bool
    """Both sides are all there is: no list, or one of which nothing but the order differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolChange:
    """A pool that is new, gone, or written differently."""

    name: str
    change: str
    """added, removed or changed."""
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The room of a pool in one family."""

    pool: str
    family: int
    size: int
    """Prefix length of a block, as it is now; as it was where the pool is gone."""
    before: Use | None
    """None: there was no such pool, or its documents cannot be read any more."""
    after: Use | None
    """None: the pool is gone."""
    serves: bool
    """It gives blocks to newcomers: neither disabled nor for unlisted nodes."""

    @property
    def changed(self) -> bool:
        """Tell whether newcomers find another amount of room."""
        before, after = self.before, self.after
        return (
            before is None
            or after is None
            or before.blocks != after.blocks
            or before.blocks_free != after.blocks_free
        )

    @property
    def short(self) -> bool:
        """Tell whether so little is free that a pool is worth a warning (IPC0215), and less than before."""
        after, before = self.after, self.before
        low = after is not None and after.available * 100 < after.total * LOW
        return self.serves and low and (before is None or after is None or after.available < before.available)


def compare_pools(before: Cluster, after: Cluster) -> tuple[PoolChange, ...]:
    """Give the pools that differ, by name."""
    old, new = ({pool.name: _written(pool) for pool in each.pools} for each in (before, after))
    return tuple(
        PoolChange(
            name=name,
            change="changed" if name in old and name in new else "added" if name in new else "removed",
            fields=tuple(_fields(old.get(name, {}), new.get(name, {}))),
        )
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def _written(pool: Pool) -> dict[str, tuple[str, ...]]:
    """Give everything of a pool that decides addresses, as text; what is not set is left out."""
    found: dict[str, tuple[str, ...]] = {}
    for family, part in sorted(pool.families.items()):
        found[f"ipv{family}.cidrs"] = tuple(str(each.block) for each in part.ranges)
        found[f"ipv{family}.blockSize"] = (str(part.block_size),)
    found["nodeSelector"] = (pool.selector.canonical,)
    found["priority"] = (str(pool.priority),) if pool.priority else ()
    found["overflow"] = pool.overflow
    found["blocksPerNode"] = (str(pool.blocks_per_node),) if pool.blocks_per_node != 1 else ()
    found["blockSizes"] = tuple(
        f"{each.selector.canonical}: {', '.join(f'IPv{family} /{size}' for family, size in sorted(each.sizes.items()))}"
        for each in pool.block_sizes
    )
    found["reserved"] = tuple(str(each.block) for each in pool.reserved)
    for node, pins in sorted(pool.pins.items()):
        found[f"pins.{node}"] = tuple(str(each.block) for each in pins)
    found["unlisted"] = ("true",) if pool.unlisted else ()
    found["disabled"] = ("true",) if pool.disabled else ()
    return {name: value for name, value in found.items() if value}


def _fields(old: dict[str, tuple[str, ...]], new: dict[str, tuple[str, ...]]) -> Iterator[Field]:
    for name in {**old, **new}:
        was, now = old.get(name, ()), new.get(name, ())
        if was == now:
            continue
        less, more = (
            tuple(each for each in one if each not in other) for one, other in ((was, now), (now, was))
        )
        if name in _SINGLE or not (less or more):
            yield Field(name=name, old=was, new=now, whole=True)
        else:
            yield Field(name=name, old=less, new=more, whole=False)


def capacity(
    before: Cluster | None, lock_before: Lock, after: Cluster, lock_after: Lock
) -> tuple[Capacity, ...]:
    """Count every pool on both sides, by name, IPv4 before IPv6. O(n log n)."""
    old = {
        (each.pool.name, each.family.family): each
        for each in (utilisation(before, lock_before) if before else ())
    }
    new = {(each.pool.name, each.family.family): each for each in utilisation(after, lock_after)}
    found = []
    for name, family in sorted(old.keys() | new.keys()):
        was, now = old.get((name, family)), new.get((name, family))
        either = now or was
        assert either is not None  # noqa: S101 - the key is of one of them
        found.append(
            Capacity(
                pool=name,
                family=family,
                size=either.family.block_size,
                before=was.use if was else None,
                after=now.use if now else None,
                serves=not (either.pool.disabled or either.pool.unlisted),
            )
        )
    return tuple(found)
