"""The pools as one node sees them: which serve it, which stand in, which are passed over, and what decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ipamc.model.cluster import Cluster, Node, Pool, SizeClass
from ipamc.model.plan import Offer, Want
from ipamc.model.selector.selector import Selector
from ipamc.place.allocate.allocate import Placement, never
from ipamc.place.allocate.free_space import Space
from ipamc.place.allocate.occupancy import Occupancy
from ipamc.place.allocate.reuse import last_day
from ipamc.place.allocate.shortage import ip
from ipamc.place.candidates import deciding, rank, size_class


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A pool as the node sees it."""

    pool: Pool
    verdict: str
    """first, serves, stands in, or passed over."""
    why: str
    size: SizeClass | None = None
    """The class of `blockSizes` that the node belongs to, where the pool may give it blocks."""


def sight(cluster: Cluster, want: Want, placement: Placement | None, today: str) -> tuple[Seen, ...]:
    """Give every pool, in the order in which they serve the node, then the others by rank.

    It is `assign` that chose: this only words its offers. With what `place` made of the whole cluster, a pool that is full says so.
    """
    return tuple(_Sight(cluster, want, placement, today).pools())


class _Sight:
    """A node's view."""

    def __init__(self, cluster: Cluster, want: Want, placement: Placement | None, today: str) -> None:
        self.cluster, self.want, self.placement, self.today = cluster, want, placement, today
        self.stand_ins: dict[str, list[str]] = defaultdict(list)
        """Whose place a pool may take, of those that serve the node."""
        self.passed = dict(self._passed())

    def pools(self) -> Iterator[Seen]:
        """Yield every pool once."""
        told: set[str] = set()
        offers = self.want.offers
        for index, each in enumerate(offers):
            verdict, why = self._of_offer(index)
            yield self._seen(each, verdict, why)
            told.add(each.pool.name)
            if self.cluster.mode.one_block and verdict in {"first", "serves"}:
                for other in each.instead:
                    self.stand_ins[other.pool.name].append(each.pool.name)
        for other in (other for each in offers for other in each.instead):
            if other.pool.name in self.stand_ins and other.pool.name not in told:
                told.add(other.pool.name)
                why = f"{' and '.join(self.stand_ins[other.pool.name])} names it in overflow"
                yield self._seen(other, "stands in", why)
        for pool in sorted(self.cluster.pools, key=rank):
            if pool.name not in told:
                why = never(pool) or f"does not select the node: {_looks(pool.selector, self.want.node)}"
                yield Seen(pool=pool, verdict="passed over", why=why)

    def _seen(self, offer: Offer, verdict: str, why: str) -> Seen:
        node, full = self.want.node, self.passed.get(offer.pool.name) or self._full(offer)
        size = size_class(offer.pool, node.labels, node.name)
        return Seen(pool=offer.pool, verdict=verdict, why=f"{why}; {full}" if full else why, size=size)

    def _of_offer(self, index: int) -> tuple[str, str]:
        offers = self.want.offers
        each, first = offers[index], offers[0]
        if not index and each.pinned:
            alone = f"; it {never(each.pool)}, and gives pins alone" if never(each.pool) else ""
            return "first", f"pins the node, which comes before all selectors{alone}"
        if not index:
            return "first", f"first of {len(offers)} candidates" if offers[1:] else "the only candidate"
        order = (
            f"{first.pool.name} pins the node"
            if first.pinned and not each.pinned
            else _later(first.pool, each.pool)
        )
        if not self.cluster.mode.one_block:
            return "serves", f"every candidate does; {order}"
        before = {family for other in offers[:index] for family in other.sizes}
        own = [family for family in self.cluster.families if family in each.sizes and family not in before]
        if own:
            return "serves", f"gives {ip(own)}, which the candidates before it have not; {order}"
        if others := self.stand_ins[each.pool.name]:
            return "stands in", f"takes the place of {' and '.join(others)} when that has no room; {order}"
        return "passed over", f"{order}; may not take its place, as its selector is another"

    def _passed(self) -> Iterator[tuple[str, str]]:
        """Yield why pools gave nothing when it was the node's turn."""
        made, node = self.placement, self.want.node
        for short in made.short if made else ():
            if short.node is node:
                yield short.offer.pool.name, f"is full in {ip(short.full)}"
                yield from (
                    each for each in short.passed if each.why != "may not take its place"
                )  # which the verdict says
        for none in made.unserved if made else ():
            if none.node is node:
                yield from none.passed

    def _full(self, offer: Offer) -> str:
        """Say that a pool has no room now, where the node has its block of that family elsewhere. What a held block once found is not known."""
        if not self.placement or not self.cluster.mode.one_block:
            return ""
        plan, after = self.placement.plan, self.placement.after
        mine = {line.block.family: line.pool for line in plan.held.get(self.want.node.name, ())}
        full = []
        for family, size in sorted(offer.sizes.items()):
            if mine.get(family, offer.pool.name) != offer.pool.name:
                occupancy = Occupancy(
                    after.lines, after.blocked, last_day(self.today, self.cluster.quarantine_days)
                )
                if (
                    Space(
                        family, [each.block for each in offer.pool.families[family].ranges], occupancy
                    ).find(size)
                    is None
                ):
                    full.append(family)
        return f"is full in {ip(full)} now" if full else ""


def _later(first: Pool, later: Pool) -> str:
    """Say what puts a candidate after the first one."""
    key, one, other = deciding(first, later)
    words = {"blocks": "blocks in all", "addresses": "addresses a block"}
    if key == "name":
        return f"comes later by name, all else being equal: {first.name} before {later.name}"
    return f"comes later by {words.get(key, key)}: {other}, and {first.name} has {one}"


def _looks(selector: Selector, node: Node) -> str:
    """Say what a selector finds at a node."""
    seen = [
        f"{key}={node.labels[key]}" if key in node.labels else f"no label {key}"
        for key in sorted(selector.keys)
    ]
    if selector.names:
        seen.append(f"its name is not {' or '.join(sorted(selector.names))}")
    return ", ".join(seen) or "nothing can satisfy it"
