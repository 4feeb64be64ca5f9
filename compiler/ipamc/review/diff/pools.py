"""Compares the pools of base and head: fields that differ, and their room before and after."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator

from msgspec import Struct

from ipamc.check.capacity import LOW
from ipamc.lock.utilisation import Use
from ipamc.model.cluster import Pool, Scheme
from ipamc.model.lock import Lock
from ipamc.model.pool_words import Terms, terms
from ipamc.review.shown_pools import uses_on

_IS_LIST = re.compile(r"ipv[46]\.cidrs|overflow|blockSizes|reserved|pins\.").match
"""The fields with several values."""


class PoolStatus(enum.StrEnum):
    """The kind of change of a pool."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class PoolField(Struct, frozen=True, kw_only=True):
    """A field of a pool that differs. For a list, only items that the other side lacks."""

    name: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    whole: bool
    """`old` and `new` are complete values: the field is no list, or only the order of the list differs."""


class PoolChange(Struct, frozen=True, kw_only=True):
    """A pool that was added, removed or changed."""

    name: str
    change: PoolStatus
    fields: tuple[PoolField, ...]


class Capacity(Struct, frozen=True, kw_only=True):
    """The room of a pool in one family."""

    pool: str
    family: int
    size: int  # prefix length of a block in the head; in the base if the pool was removed
    before: Use | None  # None: the base has no such pool, or this version cannot read its documents
    after: Use | None  # None: the pool was removed
    serves: bool  # new nodes can get its blocks: it is neither disabled nor for unlisted nodes

    @property
    def changed(self) -> bool:
        """Return whether the number of blocks, or of free blocks, differs."""
        numbers = {(use.blocks, use.blocks_free) if use else None for use in (self.before, self.after)}
        return len(numbers) > 1

    @property
    def short(self) -> bool:
        """Return whether fewer blocks are free than before, few enough for the warning IPC0215."""
        after, before = self.after, self.before
        low = after is not None and after.available * 100 < after.total * LOW
        return self.serves and low and (before is None or after is None or after.available < before.available)


def compare_pools(before: Scheme, after: Scheme) -> tuple[PoolChange, ...]:
    """Return the pools that differ, by name."""
    words, both = terms(after), (before, after)
    old, new = ({pool.name: _fields_of(pool, words) for pool in cluster.pools} for cluster in both)
    kept = {name: PoolStatus.CHANGED if name in old else PoolStatus.ADDED for name in new}
    return tuple(
        PoolChange(
            name=name,
            change=kept.get(name, PoolStatus.REMOVED),
            fields=tuple(_differing(old.get(name, {}), new.get(name, {}))),
        )
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def _fields_of(pool: Pool, words: Terms) -> dict[str, tuple[str, ...]]:
    """Return the fields of a pool that decide addresses, as text; unset fields are omitted."""
    found: dict[str, tuple[str, ...]] = {}
    for family, part in sorted(pool.families.items()):
        found[f"ipv{family}.cidrs"] = tuple(str(pool_range.block) for pool_range in part.ranges)
        found[f"ipv{family}.{words.size}"] = (str(part.block_size),)
        found[f"ipv{family}.follows"] = (str(part.follows.block),) if part.follows else ()
    found[words.selector] = (pool.selector.canonical,)
    found["priority"] = (str(pool.priority),) if pool.priority else ()
    found["overflow"] = pool.overflow
    found["blocksPerNode"] = (str(pool.blocks_per_node),) if pool.blocks_per_node != 1 else ()
    found["blockSizes"] = tuple(
        f"{sized.selector.canonical}: "
        + ", ".join(f"IPv{family} /{size}" for family, size in sorted(sized.sizes.items()))
        for sized in pool.block_sizes
    )
    written = (cidr for cidr in pool.reserved if not cidr.node)
    found["reserved"] = tuple(f"{cidr.block}{cidr.reason and f' ({cidr.reason})'}" for cidr in written)
    if not pool.follows and words.unit == "node":  # else pins, and `disabled`, follow from the pool's kind
        found |= {
            f"pins.{node}": tuple(str(pin.block) for pin in pins) for node, pins in sorted(pool.pins.items())
        }
    flags = {"unlisted": pool.unlisted, "podsOnly": pool.pods_only}
    flags["disabled"] = pool.disabled and not (pool.follows or pool.pods_only)
    found |= {name: ("true",) for name, is_set in flags.items() if is_set}
    if usage := pool.usage:
        bounds = f"{usage.low} to {usage.high} %, {usage.least} to {usage.most} blocks"
        found["usage"] = (f"{bounds}, {usage.addresses} addresses" if usage.addresses else bounds,)
    found |= {name: (selector.canonical or "{}",) for name, selector in pool.by_pods.items()}
    found |= {name: ("true",) for name, allows in pool.allows.items() if allows}
    return {name: value for name, value in found.items() if value}


def _differing(old: dict[str, tuple[str, ...]], new: dict[str, tuple[str, ...]]) -> Iterator[PoolField]:
    for name in {**old, **new}:
        was, now = old.get(name, ()), new.get(name, ())
        if was == now:
            continue
        less, more = (
            tuple(item for item in one if item not in other)
            for one, other in ((was, frozenset(now)), (now, frozenset(was)))
        )
        if not _IS_LIST(name) or not (less or more):
            yield PoolField(name=name, old=was, new=now, whole=True)
        else:
            yield PoolField(name=name, old=less, new=more, whole=False)


def capacity(
    before: Scheme | None, lock_before: Lock, after: Scheme, lock_after: Lock, today: str
) -> tuple[Capacity, ...]:
    """Return the room of every pool of base or head on a day, by name, IPv4 before IPv6. O(n log n)."""
    uses = (uses_on(before, lock_before, today) if before else (), uses_on(after, lock_after, today))
    old, new = ({(use.pool.name, use.family.family): use for use in some} for some in uses)
    return tuple(
        Capacity(
            pool=either.pool.name,
            family=either.family.family,
            size=either.family.block_size,
            before=old[key].use if key in old else None,
            after=new[key].use if key in new else None,
            serves=not (either.pool.disabled or either.pool.unlisted),
        )
        for key, either in sorted({**old, **new}.items(), key=lambda item: item[0])
    )
