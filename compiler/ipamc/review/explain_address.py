"""Addresses that no line of the lock covers: free, reserved, excluded, pinned, or in use without a line."""

from __future__ import annotations

from typing import NamedTuple

from ipamc.model.address_sets import blocks_over, covers, lines_over, outermost, shared
from ipamc.model.cidr import Block, OverlapIndex, Range
from ipamc.model.cluster import Scheme
from ipamc.model.diagnostics import At
from ipamc.model.evidence import Evidence
from ipamc.model.follows import address_for
from ipamc.model.lock import Lock
from ipamc.model.pool_words import why_only_pins
from ipamc.place.allocate.occupancy import blocked_ranges


class UnheldBlock(NamedTuple):
    """Addresses without a line in the lock, and their meaning in the input. Sorts by address."""

    block: Block  # as in the input; for free addresses, the queried part of a range
    pool: str  # "" outside every pool
    node: str  # the node that has a pin for it or whose CiliumNode shows it; "" for none
    state: str  # free, reserved, excluded, pinned, `the node with ADDRESS`, or a phrase
    at: At
    reason: str = ""  # the author's reason why it is reserved; "" for none
    address: str = ""  # the address of the node that has the block by it, if the pool follows addresses


def explain_address(cluster: Scheme, lock: Lock, block: Block) -> list[UnheldBlock]:
    """Return what the input says about a block, by address. O(pools + pins + lines over the block)."""
    kept = [  # the blocks without a line that new nodes cannot get
        UnheldBlock(pin.block, pool.name, node, "pinned", pin.at)
        for pool in cluster.pools
        for node, pins in (pool.pins.items() if not pool.follows else ())
        for pin in pins
    ]
    for each in blocked_ranges(cluster, Evidence(cluster).taken(list(lock.lines))).values():
        of = each.range
        node, reason = ("", of.reason) if isinstance(of, Range) else (of.node, "")
        kept.append(UnheldBlock(of.block, "", node, each.why, of.at, reason))
    by_block: dict[Block, list[UnheldBlock]] = {}
    for unheld in kept:
        by_block.setdefault(unheld.block, []).append(unheld)
    index = OverlapIndex(by_block, lambda key: key)
    around = outermost(each.block for pool in cluster.pools for each in pool.ranges)
    result = dict.fromkeys(  # in the order of the input, each once
        unheld
        for unheld in kept
        if unheld.block.overlaps(block) and not blocks_over(around, shared(unheld.block, block))
    )
    ranges = [(pool, each) for pool in cluster.pools for each in pool.ranges if each.block.overlaps(block)]
    for pool, pool_range in ranges:
        asked = shared(pool_range.block, block)
        over = [unheld for key in index.over(asked) for unheld in by_block[key]]
        result |= dict.fromkeys(unheld._replace(pool=pool.name) for unheld in over)
        lines = [line.block for line in lines_over(lock.lines, asked)]
        if not covers([*lines, *(unheld.block for unheld in over)], asked):
            why, address = why_only_pins(pool), address_for(pool, asked)
            state = f"free, but the pool {why}" if why else "free"
            if address:  # then all of the block belongs to that node
                asked = asked.widened(pool.families[asked.family].block_size)
                state = f"the node with {address}"
            result[UnheldBlock(asked, pool.name, "", state, pool_range.at, address=address)] = None
    return sorted(result, key=lambda unheld: unheld[:4])
