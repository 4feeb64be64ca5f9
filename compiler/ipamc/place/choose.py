"""The offers of a node: its candidate pools by rank, and which pools may take the place of each.

What nodes and pools have in common is made once: selectors are evaluated once for each projection of a node's
labels onto the keys that selectors name, an offer is made once for each pool and class of nodes, and nodes with
the same candidates share one `Offers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ipamc.model.cluster import Node, Pool
from ipamc.model.plan import Fallbacks, Offer, Offers
from ipamc.model.selector.selector import Selector, SelectorIndex

_FEW = 16
"""Keys that are looked up in every node; of more, a node's own labels are gone through."""

Classes = Mapping[int, int | None]
"""The number of the class that a node belongs to, by `blockSizes`; None: no class selects it."""


class _Twins(NamedTuple):
    """The enabled pools of one selector, by rank: each may take the place of another."""

    pools: tuple[Pool, ...]
    sized: tuple[Pool, ...]
    """A pool for each `blockSizes` of theirs, and of those that they overflow to."""


class Chooser:
    """Chooses the candidates of nodes, out of the enabled pools."""

    def __init__(self, pools: Iterable[Pool]) -> None:
        """Arrange pools, which come by rank."""
        pools = list(pools)
        enabled = [pool for pool in pools if not pool.disabled and not pool.unlisted]
        self._enabled = {pool.name: pool for pool in enabled}
        numbers: dict[tuple[int, ...], int] = {}
        self._sizes_of: dict[str, int] = {}
        """By pool: the number of its `blockSizes`. Thousands of pools may have the same."""
        for pool in pools:
            same = tuple([id(size_class.selector) for size_class in pool.block_sizes])
            self._sizes_of[pool.name] = numbers.setdefault(same, len(numbers))
        self._rank = {pool.name: number for number, pool in enumerate(enabled)}
        alike: dict[Selector, list[Pool]] = {}
        for pool in enabled:
            alike.setdefault(pool.selector, []).append(pool)
        self._twins = [_Twins(tuple(some), self._sized(some)) for some in alike.values()]
        self._any_sized = any(some.sized for some in self._twins)
        self._index = SelectorIndex([some[0].selector for some in alike.values()])
        selectors = {id(pool.selector): pool.selector for pool in enabled}
        selectors |= {id(other.selector): other.selector for pool in enabled for other in pool.block_sizes}
        self._keys = frozenset().union(*(selector.keys for selector in selectors.values()))
        self._in_order = sorted(self._keys) if len(self._keys) <= _FEW else None
        self._names = frozenset().union(*(selector.names for selector in selectors.values()))
        self._projected: dict[object, Offers] = {}
        self._known: dict[object, Offers] = {}
        self._of_twins: dict[object, Sequence[Offer]] = {}
        self._plain: dict[tuple[str, int | None], Offer] = {}
        self._uninvited: dict[object, Offer] = {}
        self._sized_of_one: dict[str, tuple[Pool, ...]] = {}
        self.candidates = 0
        """How many candidates were listed: those that nodes share count once."""
        self._tests = 0

    @property
    def tests(self) -> int:
        """Count the tests of labels that were made, about."""
        return self._tests + self._index.asked

    def choose(self, node: Node) -> Offers:
        """Return the offers of a node, the first candidate first."""
        labels, name = node.labels, node.name
        named = name if name in self._names else None
        projection: tuple[object, ...]
        if self._in_order is not None:
            projection = (*map(labels.get, self._in_order), named)
        else:
            keys = self._keys
            projection = (*sorted([item for item in labels.items() if item[0] in keys]), named)
        offers = self._projected.get(projection)
        if offers is None:
            offers = self._projected[projection] = self._look(labels, name)
        return offers

    def with_pins(self, node: Node, pools: Iterable[Pool]) -> Offers:
        """Put the pools that pin a node, by rank, before its other candidates, whatever their selectors say."""
        offers = self.choose(node)
        known = {offered.pool.name: offered for offered in offers}
        pinned = [known.get(pool.name) or self._not_selected(pool, node) for pool in pools]
        names = {offered.pool.name for offered in pinned}
        first = (Offer(offered.pool, offered.sizes, offered.instead, pinned=True) for offered in pinned)
        self.candidates += len(offers)
        return Offers((*first, *(other for other in offers if other.pool.name not in names)))

    def _sized(self, pools: Iterable[Pool]) -> tuple[Pool, ...]:
        """Return a pool for each `blockSizes` of some pools, and of those that they overflow to."""
        found: dict[int, Pool] = {}
        for pool in pools:
            others = (self._enabled[name] for name in pool.overflow if name in self._enabled)
            found |= {self._sizes_of[other.name]: other for other in (pool, *others) if other.block_sizes}
        return tuple(found.values())

    def _classes(self, pools: Iterable[Pool], labels: Mapping[str, str], name: str) -> dict[int, int | None]:
        found = {}
        for pool in pools:
            before = pool.class_index.asked
            found[self._sizes_of[pool.name]] = pool.class_index.first(labels, name)
            self._tests += pool.class_index.asked - before
        return found

    def _look(self, labels: Mapping[str, str], name: str) -> Offers:
        numbers = self._index.matching(labels, name)
        # By selector: the classes of the node, where they count.
        classes = {
            number: self._classes(self._twins[number].sized, labels, name)
            for number in (numbers if self._any_sized else ())
            if self._twins[number].sized
        }
        key = tuple(numbers), *((number, *some.values()) for number, some in classes.items())
        offers = self._known.get(key)
        if offers is None:
            groups = [self._offers_of(number, classes.get(number, {})) for number in numbers]
            every = [offer for group in groups for offer in group]
            if len(groups) > 1:
                every.sort(key=lambda offer: self._rank[offer.pool.name])
            offers = self._known[key] = Offers(every)
            self.candidates += len(offers)
        return offers

    def _offers_of(self, number: int, classes: Classes) -> Sequence[Offer]:
        """Return the offers of all pools of one selector, each with its stand-ins: its twins, then its `overflow`.

        A rack never spills into another by accident.
        """
        key = number, *classes.values()
        offers = self._of_twins.get(key)
        if offers is None:
            pools = self._twins[number].pools
            plain = tuple(self._offer(pool, classes) for pool in pools)
            twins = {pool.name for pool in pools}
            offers = self._of_twins[key] = [
                Offer(
                    offer.pool,
                    offer.sizes,
                    Fallbacks(plain, place, self._overflow(offer.pool, classes, twins)),
                )
                for place, offer in enumerate(plain)
            ]
        return offers

    def _offer(self, pool: Pool, classes: Classes) -> Offer:
        """Return a pool with the block sizes for a class of nodes: its own, or those of the first class that selects them."""
        key = pool.name, classes[self._sizes_of[pool.name]] if pool.block_sizes else None
        offer = self._plain.get(key)
        if offer is None:
            offer = self._plain[key] = Offer(pool, pool.sizes_of(key[1]))
        return offer

    def _overflow(self, full: Pool, classes: Classes, but: Iterable[str] = ()) -> tuple[Offer, ...]:
        """Return the pools that a pool's `overflow` names, as written, whether or not they select the node."""
        return tuple(
            self._offer(self._enabled[name], classes)
            for name in full.overflow
            if name in self._enabled and name != full.name and name not in but
        )

    def _not_selected(self, pool: Pool, node: Node) -> Offer:
        """Return the offer of a pool that pins a node, and does not select it or is disabled."""
        sized = self._sized_of_one.get(pool.name)
        if sized is None:
            sized = self._sized_of_one[pool.name] = self._sized([pool])
        classes = self._classes(sized, node.labels, node.name)
        key = pool.name, *classes.values()
        offer = self._uninvited.get(key)
        if offer is None:
            own = self._offer(pool, classes)
            offer = self._uninvited[key] = Offer(pool, own.sizes, self._overflow(pool, classes))
        return offer
