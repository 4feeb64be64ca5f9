"""What pools are for a node, and why; and what the input says of addresses without a line in the lock."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from ipamc.law.change import last_day
from ipamc.model.address_sets import blocks_over, covers, lines_over, outermost, shared
from ipamc.model.cidr import Block, OverlapIndex, Range
from ipamc.model.cluster import AddressSpace, Pool, Scheme, SizeClass
from ipamc.model.diagnostics import At
from ipamc.model.evidence import Evidence
from ipamc.model.follows import address_for
from ipamc.model.lock import Lock
from ipamc.model.node import Node
from ipamc.model.plan import Offer, Want
from ipamc.model.pool_words import terms, why_only_pins
from ipamc.model.selector.selector import Selector
from ipamc.model.wording import ip
from ipamc.place.allocate.allocate import Placement
from ipamc.place.allocate.free_space import Space
from ipamc.place.allocate.occupancy import Occupancy, blocked_ranges
from ipamc.place.candidates import deciding, rank


class PoolRole(enum.StrEnum):
    """The role of a pool for a node."""

    FIRST = "first"  # the first candidate
    SERVES = "serves"  # another candidate that gives the node blocks
    STANDS_IN = "stands in"  # it replaces a candidate that is full
    PASSED_OVER = "passed over"


class ExplainedPool(Struct, frozen=True, kw_only=True):
    """A pool, its role for the node, and the reason."""

    pool: Pool
    verdict: PoolRole
    why: str
    size: SizeClass | None = None
    """The class of `blockSizes` that matches the node, if the pool can give it blocks."""


def explain_pools(
    cluster: Scheme, want: Want, placement: Placement | None, today: str
) -> tuple[ExplainedPool, ...]:
    """Return every pool: those that serve the node in the order of its offers, then the others by rank.
    The offers are those of `assign`; this function only explains them. With `placement`, the result of
    `place` for the whole cluster, it also says which pools are full.
    """
    return tuple(_Pools(cluster, want, placement, today).explained())


class _Pools:
    def __init__(self, cluster: Scheme, want: Want, placement: Placement | None, today: str) -> None:
        self.cluster, self.want, self.placement, self.today = cluster, want, placement, today
        self.stand_ins: dict[str, list[str]] = defaultdict(list)
        """The serving pools that a pool may stand in for."""
        self.given = set[int]()  # the families of the candidates explained so far
        self.passed = dict(self._passed())

    def explained(self) -> Iterator[ExplainedPool]:
        done: set[str] = set()
        offers = self.want.offers
        for index, offer in enumerate(offers):
            verdict, why = self._of_offer(index)
            yield self._explained(offer, verdict, why)
            done.add(offer.pool.name)
            self.given |= offer.sizes.keys()
            if self.cluster.mode.one_block and verdict in {PoolRole.FIRST, PoolRole.SERVES}:
                for other in offer.instead:
                    self.stand_ins[other.pool.name].append(offer.pool.name)
        left = self.stand_ins.keys() - done
        for other in (other for offer in offers if left for other in offer.instead):
            if other.pool.name in left:
                left.discard(other.pool.name)
                done.add(other.pool.name)
                why = f"in overflow of {' and '.join(self.stand_ins[other.pool.name])}"
                yield self._explained(other, PoolRole.STANDS_IN, why)
        for pool in sorted(self.cluster.pools, key=rank):
            if pool.name not in done:
                node, why = self.want.node, why_only_pins(pool)
                if not why and offers and pool.selector.matches(node.labels, node.name):
                    why = _why_later(offers[0].pool, pool)  # a space gives ranges of one level
                why = why or f"does not select the {terms(self.cluster).unit}: {_labels(pool.selector, node)}"
                yield ExplainedPool(pool=pool, verdict=PoolRole.PASSED_OVER, why=why)

    def _explained(self, offer: Offer, verdict: PoolRole, why: str) -> ExplainedPool:
        node, full = self.want.node, self.passed.get(offer.pool.name) or self._full(offer)
        why = f"{why}; {full}" if full else why
        size = offer.pool.size_class(node.labels, node.name)
        return ExplainedPool(pool=offer.pool, verdict=verdict, why=why, size=size)

    def _of_offer(self, index: int) -> tuple[PoolRole, str]:
        offers = self.want.offers
        offer, first = offers[index], offers[0]
        if not index and offer.pinned:
            only_pins = (
                f"; the pool {why_only_pins(offer.pool)}, so it gives only pins"
                if why_only_pins(offer.pool)
                else ""
            )
            if offer.pool.follows:
                return PoolRole.FIRST, f"{why_only_pins(offer.pool)}, which contains the node's address"
            unit = terms(self.cluster).unit
            return PoolRole.FIRST, f"pins the {unit}, and pins come before selectors{only_pins}"
        if not index:
            of = f"first of {len(offers)} candidates" if len(offers) > 1 else "the only candidate"
            return PoolRole.FIRST, of
        order = _why_later(first.pool, offer.pool)
        if first.pinned and not offer.pinned:
            pins = "has the block of its address" if first.pool.follows else "pins the node"
            order = f"{first.pool.name} {pins}"
        if not self.cluster.mode.one_block:
            return PoolRole.SERVES, f"every candidate serves the node; {order}"
        own = [each for each in self.cluster.families if each in offer.sizes and each not in self.given]
        if own:
            return PoolRole.SERVES, f"gives {ip(own)}, which earlier candidates lack; {order}"
        if others := self.stand_ins[offer.pool.name]:
            return PoolRole.STANDS_IN, f"replaces {' and '.join(others)} if full; {order}"
        return PoolRole.PASSED_OVER, f"{order}; cannot replace it, because its selector differs"

    def _passed(self) -> Iterator[tuple[str, str]]:
        made, node = self.placement, self.want.node
        if made is None:
            return
        for short in made.short:
            if short.node is node:
                yield short.offer.pool.name, f"is full in {ip(short.full)}"
                yield from ((passed.pool, passed.why) for passed in short.passed if not passed.barred)
        for unserved in made.unserved:
            if unserved.node is node:
                yield from ((passed.pool, passed.why) for passed in unserved.passed)

    def _full(self, offer: Offer) -> str:
        """Return a phrase if a pool is full now for a family of which the node has its block elsewhere."""
        if not self.placement or not self.cluster.mode.one_block:
            return ""
        plan, after = self.placement.plan, self.placement.after
        own = {line.block.family: line.pool for line in plan.held.get(self.want.node.name, ())}
        last, full = last_day(self.today, self.cluster.quarantine_days), []
        for family, size in sorted(offer.sizes.items()):
            if own.get(family, offer.pool.name) != offer.pool.name:
                ranges = [pool_range.block for pool_range in offer.pool.families[family].ranges]
                space = Space(family, ranges, Occupancy(after.lines, after.blocked, last, self.today))
                full += [family] if space.find(size) is None else []
        return f"is full in {ip(full)} now" if full else ""


def _why_later(first: Pool, later: Pool) -> str:
    key, one, other = deciding(first, later)
    words = {"blocks": "number of blocks", "addresses": "addresses per block"}
    if key == "name":
        return f"comes later by name: {first.name} before {later.name}"
    return f"comes later by {words.get(key, key)}: {other}, but {first.name} has {one}"


def _labels(selector: Selector, node: Node) -> str:
    has = {key: f"{key}={value}" for key, value in node.labels.items()}
    labels = [has.get(key, f"no label {key}") for key in sorted(selector.keys)]
    if selector.names:
        labels.append(f"its name is not {' or '.join(sorted(selector.names))}")
    return ", ".join(labels) or "nothing can match it"


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
    # What clusters have outside an address space, they tell. In the order of the input, each once.
    told = () if isinstance(cluster, AddressSpace) else kept
    result = dict.fromkeys(
        unheld
        for unheld in told
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
