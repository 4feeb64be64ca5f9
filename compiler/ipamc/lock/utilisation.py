"""The use of pools: addresses and blocks of every range, without a loop over its addresses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ipamc.model.address_sets import addresses_taken, blocks_over, gaps, lines_over, outermost
from ipamc.model.cidr import BITS, Block, Range
from ipamc.model.cluster import Pool, PoolFamily, Scheme
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Line, Lock, State


class Use(Struct, frozen=True, kw_only=True):
    """The use of the addresses of a range, or of a pool in one family: each counts once, in this order."""

    total: int
    held: int
    """In held and pending lines, and of CiliumNodes without a node."""
    quarantined: int
    """In quarantined lines."""
    released: int
    """In released lines: given out again, but only if nothing else is free."""
    reserved: int
    """Reserved in the pool, or excluded, and in no line."""
    free: int
    blocks_held: int
    """Held and pending lines that begin in the range, of any size."""
    blocks_free: int
    """Blocks of the pool's blockSize that new nodes could get now: free or released, and without a pin."""
    blocks: int
    """The number of blocks of the pool's blockSize in an empty range."""

    @property
    def available(self) -> int:
        """Count the addresses that can be given out: free and released."""
        return self.free + self.released


class RangeUse(Struct, frozen=True, kw_only=True):
    """The use of one range."""

    range: Range
    use: Use


class PoolUse(Struct, frozen=True, kw_only=True):
    """The use of one pool in one family."""

    pool: Pool
    family: PoolFamily
    use: Use
    ranges: tuple[RangeUse, ...]
    """In the order as written."""


def utilisation(cluster: Scheme, lock: Lock) -> tuple[PoolUse, ...]:
    """Count every pool, by name, IPv4 before IPv6. Ranges and lines are disjoint. O(n log n)."""
    # The blocks of CiliumNodes without a node are occupied, and in no line.
    without_line = outermost(shown.block for shown in Evidence(cluster).without_node())
    excluded = outermost(cidr.block for cidr in cluster.excluded)
    found = []
    for pool in cluster.pools:
        reserved = outermost(cidr.block for cidr in pool.reserved)
        pins = outermost(pin.block for some in pool.pins.values() for pin in some)
        for _, part in sorted(pool.families.items()):
            ranges = []
            for cidr in part.ranges:
                block, lines = cidr.block, lines_over(lock.lines, cidr.block)
                apart = _in_order(blocks_over(reserved, block), blocks_over(excluded, block))
                outside, pinned = blocks_over(without_line, block), blocks_over(pins, block)
                every = [line.block for line in lines]
                kept = [line for line in lines if line.state is not State.HELD]  # few, in most clusters none
                quarantined = [line.block for line in kept if line.state is State.QUARANTINED]
                released = [
                    line.block
                    for line in kept
                    if line.state is State.RELEASED
                    and not blocks_over(outside, line.block)  # a machine has it
                ]
                held = [line.block for line in lines if line.in_use] if kept else every
                occupied = _in_order(every, outside)
                in_quarantine, free_again = (
                    addresses_taken(block, quarantined),
                    addresses_taken(block, released),
                )
                used = addresses_taken(block, occupied)
                taken = addresses_taken(block, _in_order(occupied, apart)) if apart else used
                free = _in_order(held, quarantined, outside, apart, pinned)
                use = Use(
                    total=block.size,
                    held=used - in_quarantine - free_again,
                    quarantined=in_quarantine,
                    released=free_again,
                    reserved=taken - used,
                    free=block.size - taken,
                    blocks_held=len(held) - bool(held and held[0].first < block.first),
                    blocks_free=_places(block, part.block_size, free),
                    blocks=_places(block, part.block_size, ()),
                )
                ranges.append(RangeUse(range=cidr, use=use))
            uses, parts = [counted.use for counted in ranges], Use.__struct_fields__
            total = Use(**{name: sum(getattr(use, name) for use in uses) for name in parts})
            found.append(PoolUse(pool=pool, family=part, use=total, ranges=tuple(ranges)))
    return tuple(found)


def _in_order(*many: Sequence[Block]) -> Sequence[Block]:
    filled = [blocks for blocks in many if blocks]
    if not filled:
        return ()
    return filled[0] if len(filled) == 1 else sorted(block for blocks in filled for block in blocks)


def _places(block: Block, prefix: int, taken: Iterable[Block]) -> int:
    """Count the aligned blocks of a prefix length inside a block that overlap none of the `taken` ones."""
    size = 1 << (BITS[block.family] - prefix)
    return sum(max(end // size + -first // size, 0) for first, end in gaps(block, taken))


def lines_in(lock: Lock, block: Block) -> tuple[Line, ...]:
    """Return the lines that begin in a range, by address. O(log n + result)."""
    lines = tuple(lines_over(lock.lines, block))
    return lines[1:] if lines and lines[0].block.first < block.first else lines
