"""Which prefixes routers know of a pool, before and after: the fewest that cover its held and pending blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ipamc.model.address_sets import aggregated
from ipamc.model.cidr import Block
from ipamc.model.lock import Line

Key = tuple[str, int]
"""A pool and a family."""


class AggregateChange(Struct, frozen=True, kw_only=True):
    """What changes of the prefixes of one pool in one family."""

    pool: str
    """"" of the blocks outside every pool."""
    family: int
    removed: tuple[Block, ...]
    added: tuple[Block, ...]


def compare_aggregates(before: Sequence[Line], after: Sequence[Line]) -> tuple[AggregateChange, ...]:
    """Return the pools whose prefixes differ, by name and family. Lines are by address.

    O(n), and prefixes are made only of pools that have a new block, or lost one.
    """
    changed = set(_changed(before, after))
    old, new = _in_use(before, changed), _in_use(after, changed)
    found = []
    for pool, family in sorted(changed):
        was, now = (set(aggregated(blocks[pool, family])) for blocks in (old, new))
        if was != now:
            removed, added = tuple(sorted(was - now)), tuple(sorted(now - was))
            found.append(AggregateChange(pool=pool, family=family, removed=removed, added=added))
    return tuple(found)


def _changed(before: Sequence[Line], after: Sequence[Line]) -> Iterator[Key]:
    """Yield the pools and families of lines that only one of the two has in use."""
    one = other = 0
    while one < len(before) and other < len(after):
        old, new = before[one], after[other]
        if old == new:  # nearly all
            one, other = one + 1, other + 1
        elif old.block == new.block:
            one, other = one + 1, other + 1
            if (old.pool, old.in_use) != (new.pool, new.in_use):
                yield from _keys((old, new))
        elif old.block < new.block:
            one += 1
            yield from _keys((old,))
        else:
            other += 1
            yield from _keys((new,))
    yield from _keys((*before[one:], *after[other:]))


def _keys(lines: Iterable[Line]) -> Iterator[Key]:
    return ((line.pool, line.block.family) for line in lines if line.in_use)


def _in_use(lines: Iterable[Line], keys: Collection[Key]) -> Mapping[Key, Sequence[Block]]:
    pools = {pool for pool, _ in keys}
    found: dict[Key, list[Block]] = {key: [] for key in keys}
    for line in lines if keys else ():
        if line.pool in pools and line.in_use:
            found.setdefault((line.pool, line.block.family), []).append(line.block)
    return found
