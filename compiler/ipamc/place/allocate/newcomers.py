"""Serves nodes that need blocks one by one: each takes the first place of the first pool with room."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct, field

from ipamc.model.cidr import Block, part
from ipamc.model.cluster import Pool
from ipamc.model.lock import Line, State
from ipamc.model.plan import Demand, Offer, Origin, Want
from ipamc.model.pool_words import why_only_pins
from ipamc.model.wording import ip
from ipamc.place.allocate import shortage
from ipamc.place.allocate.dual_stack import Families, asked_of, has_no, less, together
from ipamc.place.allocate.free_space import Space
from ipamc.place.allocate.occupancy import Occupancy

_NO_ROOM = "has no room"


class _Explained(NamedTuple):
    """Why nodes with equal offers and needs get no block."""

    full: Families
    room: Families
    passed: tuple[shortage.Passed, ...]
    until: int | None
    """Valid as long as there are this many new lines; None: for ever, because full pools stay full."""


class _First(NamedTuple):
    """The first pool of nodes with equal offers, if it has their only missing family."""

    pool: str
    space: Space
    prefix: int


class Newcomers(Struct):
    """A run of newcomers: the spaces that they take from, their new lines, and the nodes that get nothing."""

    occupancy: Occupancy
    spaces: dict[tuple[str, int], Space] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    origins: dict[Block, Origin] = field(default_factory=dict)
    short: list[shortage.Short] = field(default_factory=list)
    unserved: list[shortage.Unserved] = field(default_factory=list)
    stunted: list[shortage.Short] = field(default_factory=list)
    """Nodes with all blocks that they need, for which there is no room to grow."""
    state: State = State.HELD
    """The state of new lines: pending for nodes that are renumbered."""
    origin: Origin | None = None
    """The origin of new lines, if it does not follow from the place."""

    _firsts: dict[tuple[int, Families], _First | None] = field(default_factory=dict)
    """By offers and missing families: the space in which nearly all such nodes get their one block."""
    _askable: dict[tuple[int, Families], list[int]] = field(default_factory=dict)
    """By offers and missing families: the indexes of the offers that have one of these families."""
    _full: dict[tuple[int, Families], int] = field(default_factory=dict)
    """By replacements and missing families: how many of the first are full for all of these families."""
    _explained: dict[object, _Explained] = field(default_factory=dict)
    _passed: dict[shortage.Passed, shortage.Passed] = field(default_factory=dict)
    """Equal reasons share one value: thousands of nodes may be rejected by thousands of pools."""

    def place(self, demands: Iterable[Demand], state: State) -> None:
        """Place demands in their order, as lines of one state."""
        self.state = state
        self.origin = Origin.RENUMBER if state is State.PENDING else None
        for demand in demands:
            if demand.offer is not None:
                self._serve_pool(demand, demand.offer)
            elif not self._serve_at_once(demand.want, demand.families):
                self._serve_families(demand.want, demand.families)

    def _serve_at_once(self, want: Want, families: Families) -> bool:
        """Place the only missing block of a node, if its first pool has room: most nodes need no more."""
        key, offers = (id(want.offers), families), want.offers
        if key not in self._firsts:
            self._firsts[key] = None
            if len(families) == 1 and offers and asked_of(offers[0], families):
                space = self._space(offers[0].pool, families[0])
                self._firsts[key] = _First(offers[0].pool.name, space, offers[0].sizes[families[0]])
        first = self._firsts[key]
        block = first and first.space.claim(first.prefix)
        if first is None or block is None:
            return False
        self.lines.append(Line(block=block, pool=first.pool, node=want.node.name, state=self.state))
        self.origins[block] = self.origin or Origin.FIRST_FIT
        return True

    def _serve_families(self, want: Want, families: Families) -> None:
        """Place one block of each family; an offer serves all missing families that it has, or none.
        An offer that cannot serve a node, or any later node like it, is skipped once for all of them.
        """
        node, missing, offers = want.node.name, families, want.offers
        place = 0
        while place < len(offers):
            offer = offers[place]
            asked = asked_of(offer, missing)
            if not asked:
                # On to the next offer that has a missing family.
                known = self._askable.get((id(offers), missing))
                if known is None:
                    known = [number for number, offer in enumerate(offers) if asked_of(offer, missing)]
                    self._askable[id(offers), missing] = known
                index = bisect.bisect_left(known, place)
                place = known[index] if index < len(known) else len(offers)
                continue
            if self._give(node, offer, asked):
                if asked == missing:
                    return
                missing = less(missing, asked)
            else:
                missing = self._replace_full(node, offer, asked, missing)
                if not set(asked).isdisjoint(missing):
                    self.short.append(self._explain(want, offer, asked, missing))
                    return
            if not missing:
                return
            place += 1
        self.unserved.append(shortage.Unserved(want.node, missing, self._without_family(offers, missing)))

    def _serve_pool(self, demand: Demand, offer: Offer) -> None:
        """Place blocks of one pool for a node; for growth, all but the last have all their addresses."""
        node, growth, count = demand.want.node, demand.growth, demand.count
        short = self.stunted if growth else self.short
        if why := why_only_pins(offer.pool):
            short.append(
                shortage.Short(node, offer, tuple(count), (), (shortage.Passed(offer.pool.name, why),))
            )
            return
        usage = offer.pool.usage
        first = usage.addresses if usage and not growth and self.state is State.HELD else 0
        last = growth.addresses if growth else first
        full = []
        for family, number in count.items():
            addresses = (*[first] * (number - 1), last)
            if not all(self._give(node.name, offer, (family,), some) for some in addresses):
                full.append(family)
        if full:
            short.append(shortage.Short(node, offer, tuple(full), (), ()))

    def _replace_full(self, node: str, full: Offer, asked: Families, missing: Families) -> Families:
        """Serve the families of a full pool from its replacements; return the families still missing."""
        others = full.instead
        place = 0
        while place < len(others):
            place = max(place, first := self._full.get((id(others), missing), 0))
            if place == len(others):
                break
            other = others[place]
            some = asked_of(other, missing)
            if some and self._give(node, other, some):
                missing = less(missing, some)
                if set(asked).isdisjoint(missing):
                    break
            elif place == first:  # it has none of these families, or stays full
                self._full[id(others), missing] = first + 1
            place += 1
        return missing

    def _give(self, node: str, offer: Offer, families: Families, addresses: int = 0) -> bool:
        """Place a block per family with this number of addresses (0: all); none if one has no room."""
        places = together((self._space(offer.pool, family), offer.sizes[family]) for family in families)
        if places is None:
            return False
        for space, found in places:
            space.take(found)
            block, pool = found.block, offer.pool.name
            some = part(block, addresses) if addresses else 0
            self.lines.append(Line(block=block, pool=pool, node=node, state=self.state, addresses=some))
            self.origins[block] = self.origin or (Origin.RE_USED if found.reuse else Origin.FIRST_FIT)
        return True

    def _space(self, pool: Pool, family: int) -> Space:
        """Return the space of a pool and family; create it at the first call."""
        space = self.spaces.get((pool.name, family))
        if space is None:
            ranges = [cidr.block for cidr in pool.families[family].ranges]
            space = self.spaces[pool.name, family] = Space(family, ranges, self.occupancy)
        return space

    def _room(self, offer: Offer, families: Iterable[int]) -> Families:
        """Return those of some families in which a pool still has room."""
        sizes, pool = offer.sizes, offer.pool
        return tuple([family for family in families if self._space(pool, family).find(sizes[family])])

    def _explain(self, want: Want, full: Offer, asked: Families, missing: Families) -> shortage.Short:
        """Return why no pool serves a node; equal nodes share it until a pool may have become full."""
        key = id(want.offers), id(full), asked, missing
        known = self._explained.get(key)
        if known is None or known.until not in {None, len(self.lines)}:
            known = self._explained[key] = self._why(want.offers, full, asked, missing)
        return shortage.Short(want.node, full, known.full, known.room, known.passed)

    def _why(self, offers: tuple[Offer, ...], full: Offer, asked: Families, missing: Families) -> _Explained:
        room = self._room(full, asked)
        passed: dict[str, shortage.Passed] = {}
        may = {full.pool.name, *(other.pool.name for other in full.instead)}
        for other in full.instead:
            passed[other.pool.name] = self._because(other.pool.name, self._why_not(other, missing))
        may_change = bool(room) or any(why.why.startswith(_NO_ROOM) for why in passed.values())
        for other in offers:
            pool, name = other.pool, other.pool.name
            if name not in may:
                why = why_only_pins(pool) or ("" if asked_of(other, missing) else has_no(missing))
                passed[name] = self._because(name, why or "may not replace it", barred=not why)
        return _Explained(
            full=less(asked, room),
            room=tuple(family for family in room if family in missing),
            passed=tuple(passed.values()),
            until=len(self.lines) if may_change else None,
        )

    def _without_family(self, offers: tuple[Offer, ...], missing: Families) -> tuple[shortage.Passed, ...]:
        """Return why no offer gives a family that is missing at the end."""
        key = id(offers), missing
        known = self._explained.get(key)
        if known is None:
            pools = (offer.pool for offer in offers)
            passed = (self._because(pool.name, why_only_pins(pool) or has_no(missing)) for pool in pools)
            known = self._explained[key] = _Explained(full=(), room=(), passed=tuple(passed), until=None)
        return known.passed

    def _because(self, pool: str, why: str, *, barred: bool = False) -> shortage.Passed:
        passed = shortage.Passed(pool, why, barred)
        return self._passed.setdefault(passed, passed)

    def _why_not(self, offer: Offer, missing: Families) -> str:
        asked = asked_of(offer, missing)
        if not asked:
            return why_only_pins(offer.pool) or has_no(missing)
        room = self._room(offer, asked)
        return f"{_NO_ROOM} in {ip(less(asked, room))}" if room else "is full"
