"""How full the pools are: addresses and blocks of every range, counted from the lock without walking a range.

Every address of a range is counted once: held, else quarantined, else released, else reserved, else free.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ipamc.model.cidr import BITS, Block
from ipamc.model.cluster import Cluster, Pool, PoolFamily, Range
from ipamc.model.lock import Line, Lock, State

Spans = list[tuple[int, int]]
"""Runs of addresses, (first, one past the last): disjoint, not adjacent, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What the addresses of a range, or of all ranges of a pool in one family, are used for. The five parts sum up to `total`."""

    total: int
    held: int
    """Of live and pending lines, and what a CiliumNode without a node shows."""
    quarantined: int
    """Of quarantined lines."""
    released: int
    """Of `released` lines: nobody's, and given out again only when nothing else is free."""
    reserved: int
    """Reserved in the pool, or excluded, and no line's."""
    free: int
    blocks_held: int
    """Live and pending lines, of any size."""
    blocks_free: int
    """Blocks of the pool's blockSize that newcomers could be given now: over free and released addresses, beside pins."""
    blocks: int
    """Blocks of the pool's blockSize that an empty range has."""

    @property
    def available(self) -> int:
        """Count the addresses that nobody has and nobody waits for."""
        return self.free + self.released


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeUse:
    """One range."""

    range: Range
    use: Use


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """One pool in one family."""

    pool: Pool
    family: PoolFamily
    use: Use
    ranges: tuple[RangeUse, ...]
    """In the order as written."""


def utilisation(cluster: Cluster, lock: Lock) -> tuple[PoolUse, ...]:
    """Count every pool, by name, IPv4 before IPv6. Ranges and lines are disjoint among themselves (`check` and `lock` saw to it). O(n log n)."""
    books = {family: _Book(cluster, lock, family) for family in BITS}
    return tuple(
        _pool_use(pool, part, books[family])
        for pool in cluster.pools
        for family, part in sorted(pool.families.items())
    )


class _Book:
    """What stands on the addresses of one family, in every pool."""

    def __init__(self, cluster: Cluster, lock: Lock, family: int) -> None:
        lines = [line for line in lock.lines if line.block.family == family]
        held = [line.block for line in lines if line.in_use]
        self.starts = sorted(block.first for block in held)
        self.held = _spans(held)
        self.left = _spans(line.block for line in lines if line.state is State.QUARANTINED)
        self.released = _spans(line.block for line in lines if line.state is State.RELEASED)
        self.excluded = _spans(each.block for each in cluster.excluded if each.block.family == family)
        self.ghosts = _spans(block for block in _of_nobody(cluster) if block.family == family)


def _of_nobody(cluster: Cluster) -> Iterable[Block]:
    """Give the blocks of the CiliumNodes that have no node: taken, and in no line."""
    if not cluster.cilium_nodes:
        return
    known = {node.name for node in cluster.nodes}
    for each in cluster.cilium_nodes:
        if each.name not in known:
            yield from (block for block, _ in (*each.blocks, *each.allocated))


def _pool_use(pool: Pool, part: PoolFamily, book: _Book) -> PoolUse:
    family = part.family
    reserved = _merge(
        book.excluded, _spans(each.block for each in pool.reserved if each.block.family == family)
    )
    pins = _spans(
        each.block for pinned in pool.pins.values() for each in pinned if each.block.family == family
    )
    step = 1 << (BITS[family] - part.block_size)
    ranges = tuple(
        RangeUse(range=each, use=_range_use(each.block, step, reserved, pins, book)) for each in part.ranges
    )
    return PoolUse(pool=pool, family=part, use=_sum([each.use for each in ranges]), ranges=ranges)


def _range_use(block: Block, step: int, reserved: Spans, pins: Spans, book: _Book) -> Use:
    first, end = block.first, block.last + 1
    held, left, released, kept, ghosts, pinned = (
        _clip(spans, first, end)
        for spans in (book.held, book.left, book.released, reserved, book.ghosts, pins)
    )
    lines = _merge(held, left, released)
    with_ghosts = _merge(lines, ghosts)
    taken = _merge(with_ghosts, kept)
    return Use(
        total=block.size,
        held=_size(held) + _size(with_ghosts) - _size(lines),
        quarantined=_size(left),
        released=_size(released),
        reserved=_size(taken) - _size(with_ghosts),
        free=block.size - _size(taken),
        blocks_held=bisect.bisect_left(book.starts, end) - bisect.bisect_left(book.starts, first),
        blocks_free=_places(_merge(held, left, ghosts, kept, pinned), first, end, step),
        blocks=_places([], first, end, step),
    )


def _sum(parts: Sequence[Use]) -> Use:
    return Use(**{name: sum(getattr(part, name) for part in parts) for name in Use.__dataclass_fields__})


def _spans(blocks: Iterable[Block]) -> Spans:
    """Give the addresses of blocks, which may nest and repeat."""
    return _merge([(block.first, block.first + block.size) for block in blocks])


def _merge(*many: Spans) -> Spans:
    """Give the addresses that are in any of them."""
    result: Spans = []
    start = stop = -1
    for first, end in sorted(span for spans in many for span in spans):
        if first <= stop:
            stop = max(stop, end)
        else:
            if stop >= 0:
                result.append((start, stop))
            start, stop = first, end
    if stop >= 0:
        result.append((start, stop))
    return result


def _clip(spans: Spans, first: int, end: int) -> Spans:
    """Give the part of `spans` within [first, end)."""
    low = bisect.bisect_right(spans, first, key=lambda span: span[1])
    high = bisect.bisect_left(spans, end, key=lambda span: span[0])
    return [(max(start, first), min(stop, end)) for start, stop in spans[low:high]]


def _size(spans: Spans) -> int:
    return sum(end - first for first, end in spans)


def _places(taken: Spans, first: int, end: int, step: int) -> int:
    """Count the aligned runs of `step` addresses within [first, end) that touch nothing taken."""
    edges = [first, *(edge for span in taken for edge in span), end]
    return sum(
        max(stop // step + -start // step, 0) for start, stop in zip(edges[::2], edges[1::2], strict=True)
    )


def lines_in(lock: Lock, block: Block) -> tuple[Line, ...]:
    """Give the lines that lie in a range, in order of address. O(log n) and the lines."""
    low = bisect.bisect_left(lock.lines, (block.family, block.first), key=lambda line: line.block[:2])
    high = bisect.bisect_right(lock.lines, (block.family, block.last), key=lambda line: line.block[:2])
    return lock.lines[low:high]
