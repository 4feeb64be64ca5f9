"""Place what nodes still need: pins first, then newcomers in name order over the whole cluster.

`assign` decided which pools serve a node, and which may take the place of a full one; here the offers are
taken in that order.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from ipamc.model.address_sets import outermost
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Node, Pool
from ipamc.model.diagnostics import Diagnostic
from ipamc.model.lock import Line, Lock, State
from ipamc.model.plan import Demand, Offer, Origin, Plan, Reconciled, Want
from ipamc.place.allocate.free_space import Space
from ipamc.place.allocate.occupancy import Occupancy, blocked_ranges
from ipamc.place.allocate.pins import PinConflict, pin_conflicts, place_pins
from ipamc.place.allocate.reuse import last_day
from ipamc.place.allocate.shortage import Passed, Short, Unserved, half_room, ip, no_family, no_room
from ipamc.place.reconcile.renumber import complete_placed

_block = operator.attrgetter("block")

FEW = 1000
"""Insert new lines one by one above this ratio of old to new lines; else sort them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What was placed, and which nodes got nothing."""

    plan: Plan
    after: Occupancy
    """The plan's lines, and what else newcomers may not have."""
    short: Sequence[Short]
    unserved: Sequence[Unserved]
    conflicts: Sequence[PinConflict]


def allocate(
    cluster: Cluster, wants: tuple[Want, ...], reconciled: Reconciled, today: str
) -> tuple[Plan, list[Diagnostic]]:
    """Place what nodes still need; report which of them got nothing, and why. Costs what `place` does."""
    made = place(cluster, wants, reconciled, today)
    return made.plan, [
        *pin_conflicts(cluster, made.plan.lock, made.conflicts),
        *no_room(cluster, made.short, made.after),
        *half_room(cluster, made.short, made.after),
        *no_family(made.unserved),
    ]


def place(cluster: Cluster, wants: tuple[Want, ...], reconciled: Reconciled, today: str) -> Placement:
    """Place what nodes still need.

    Pinned newcomers come first, then the nodes that are renumbered (at the pin where there is one; their new
    lines are pending), then all newcomers: each in name order, whatever the order of the demands. `today`
    (ISO 8601, UTC) decides which quarantine is over. Lines are re-used whole: they leave the lock where a new
    block takes some of their addresses. Costs O(n log n) in lines and newcomers, times the number of block
    sizes; the width of ranges does not count.
    """
    pinned = place_pins(cluster, reconciled, sorted(reconciled.demands, key=_order))
    with_pinned = _with(reconciled.lock, pinned.kept, pinned.new)
    renumbers = sorted(reconciled.renumbers, key=_order)
    moved = place_pins(cluster, replace(reconciled, lock=with_pinned), renumbers)
    over = last_day(today, cluster.quarantine_days)
    occupancy = Occupancy(moved.kept, _blocked(cluster, reconciled), over, today)
    placed = _Newcomers(occupancy)
    placed.place(moved.demands, State.PENDING)
    placed.place(pinned.demands, State.HELD)
    reused = occupancy.reused
    kept = [line for line in moved.kept if line.block not in reused] if reused else moved.kept
    new = [*(msgspec.structs.replace(line, state=State.PENDING) for line in moved.new), *placed.lines]
    lines = _together(kept, new)
    held = _with_new(reconciled.held, [*pinned.new, *placed.lines])
    # A node that shows its new block already, or is not there yet, moves at once: no second compile is needed.
    for node in complete_placed(
        reconciled.renumbered, [*pinned.new, *new], today, one_block=cluster.mode.one_block
    ):
        held = {**held, node.name: node.held}
        changed = {line.block: line for line in node.lines}
        lines = [changed.get(line.block, line) for line in lines]
    plan = Plan(
        cluster=cluster,
        wants=wants,
        lock=replace(reconciled.lock, lines=tuple(lines)),
        origins={
            **reconciled.origins,
            **{line.block: Origin.PIN for line in pinned.new},
            **{line.block: Origin.RENUMBER for line in moved.new},
            **placed.origins,
        },
        stale=reconciled.stale,
        held=held,
        operator_pools=reconciled.operator_pools,
    )
    return Placement(
        plan=plan,
        after=replace(occupancy, lines=lines),
        short=placed.short,
        unserved=placed.unserved,
        conflicts=[*pinned.conflicts, *moved.conflicts],
    )


def _order(demand: Demand) -> tuple[str, int]:
    """Sort by node name; the demands of one node by the order in which its pools serve it."""
    return demand.want.node.name, demand.want.offers.index(demand.offer) if demand.offer else 0


def _with(lock: Lock, kept: Sequence[Line], new: Sequence[Line]) -> Lock:
    """Return the lock with the pins of newcomers placed."""
    return replace(lock, lines=tuple(sorted([*kept, *new], key=_block))) if new else lock


def _blocked(cluster: Cluster, reconciled: Reconciled) -> list[Block]:
    """Return what newcomers may not have though no line has it. Pins count, also those of absent nodes."""
    pins = [pin.block for pool in cluster.pools for pinned in pool.pins.values() for pin in pinned]
    return outermost([*blocked_ranges(cluster, reconciled.taken), *pins])


def _together(lines: Sequence[Line], new: Sequence[Line]) -> list[Line]:
    """Return all lines by address. A few new ones are inserted, as sorting 100,000 lines takes longer."""
    if len(new) * FEW > len(lines):
        return sorted([*lines, *new], key=_block)
    result = list(lines)
    for line in new:
        bisect.insort(result, line, key=_block)
    return result


def _with_new(held: Mapping[str, tuple[Line, ...]], new: Iterable[Line]) -> Mapping[str, tuple[Line, ...]]:
    """Return the held lines by node, the new ones among them."""
    result = dict(held)
    for line in new:
        if line.state is not State.PENDING:
            mine = result.get(line.node)
            result[line.node] = (line,) if mine is None else tuple(sorted((*mine, line), key=_block))
    return result


@dataclass(slots=True)
class _Newcomers:
    """A run of newcomers: the spaces that they take from, the lines that they get, and who gets nothing."""

    occupancy: Occupancy
    spaces: dict[tuple[str, int], Space] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    origins: dict[Block, Origin] = field(default_factory=dict)
    short: list[Short] = field(default_factory=list)
    unserved: list[Unserved] = field(default_factory=list)
    state: State = State.HELD
    """The state of new lines: pending where the nodes that come now are renumbered."""
    origin: Origin | None = None
    """The origin of new lines, where it is not that of the place."""

    def place(self, demands: Iterable[Demand], state: State) -> None:
        """Place demands in their order, as lines of one state."""
        self.state = state
        self.origin = Origin.RENUMBER if state is State.PENDING else None
        for demand in demands:
            if demand.offer is None:
                self._serve_families(demand.want, demand.families)
            else:
                self._serve_pool(demand.want.node, demand.offer, demand.count)

    def _serve_families(self, want: Want, families: tuple[int, ...]) -> None:
        """Place one block of each family.

        An offer serves all families that it has and that are missing, or none.
        """
        node, missing = want.node.name, families
        for offer in want.offers:
            asked = _asked(offer, missing)
            if not asked:
                continue
            if self._give(node, offer, asked):
                if asked == missing:
                    return
                missing = _less(missing, asked)
            else:
                missing = self._instead(node, offer, asked, missing)
                if not set(asked).isdisjoint(missing):
                    self.short.append(self._explain(want, offer, asked, missing))
                    return
            if not missing:
                return
        passed = tuple(
            Passed(offer.pool.name, never(offer.pool) or _has_no(missing)) for offer in want.offers
        )
        self.unserved.append(Unserved(want.node, missing, passed))

    def _serve_pool(self, node: Node, offer: Offer, count: Mapping[int, int]) -> None:
        """Place a number of blocks of each family for a node, all of one pool."""
        if why := never(offer.pool):
            self.short.append(Short(node, offer, tuple(count), (), (Passed(offer.pool.name, why),)))
            return
        full = tuple(
            family
            for family, number in count.items()
            if not all(self._give(node.name, offer, (family,)) for _ in range(number))
        )
        if full:
            self.short.append(Short(node, offer, full, (), ()))

    def _instead(
        self, node: str, full: Offer, asked: tuple[int, ...], missing: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Let other pools take a full one's place until what it was asked for is served.

        Return what is still missing.
        """
        for other in full.instead:
            some = _asked(other, missing)
            if some and self._give(node, other, some):
                missing = _less(missing, some)
                if set(asked).isdisjoint(missing):
                    break
        return missing

    def _give(self, node: str, offer: Offer, families: tuple[int, ...]) -> bool:
        """Place a block of each family, or none if one of them has no room."""
        pool = offer.pool
        name = pool.name
        places = []
        for family in families:
            space = self.spaces.get((name, family)) or self._open(pool, family)
            found = space.find(offer.sizes[family])
            if found is None:
                return False
            places.append((space, found))
        for space, found in places:
            space.take(found)
            self.lines.append(Line(block=found.block, pool=name, node=node, state=self.state))
            self.origins[found.block] = self.origin or (Origin.RE_USED if found.reuse else Origin.FIRST_FIT)
        return True

    def _open(self, pool: Pool, family: int) -> Space:
        """Make the space of a pool and family, the first time that it is asked for."""
        space = Space(family, [cidr.block for cidr in pool.families[family].ranges], self.occupancy)
        self.spaces[pool.name, family] = space
        return space

    def _room(self, offer: Offer, families: Iterable[int]) -> tuple[int, ...]:
        """Return those of some families in which a pool still has room."""
        spaces = {
            family: self.spaces.get((offer.pool.name, family)) or self._open(offer.pool, family)
            for family in families
        }
        return tuple(family for family, space in spaces.items() if space.find(offer.sizes[family]))

    def _explain(self, want: Want, full: Offer, asked: tuple[int, ...], missing: tuple[int, ...]) -> Short:
        """Return why no pool serves a node.

        It names the pools that may take the full one's place, and those that may not.
        """
        room = self._room(full, asked)
        lacks = _less(asked, room)
        passed: dict[str, Passed] = {}
        may = {full.pool.name, *(other.pool.name for other in full.instead)}
        for other in full.instead:
            passed[other.pool.name] = Passed(other.pool.name, self._why_not(other, missing))
        for other in want.offers:
            if other.pool.name not in may:
                why = never(other.pool) or ("" if _asked(other, missing) else _has_no(missing))
                passed[other.pool.name] = Passed(
                    other.pool.name, why or "may not take its place", barred=not why
                )
        return Short(
            want.node,
            full,
            lacks,
            tuple(family for family in room if family in missing),
            tuple(passed.values()),
        )

    def _why_not(self, offer: Offer, missing: tuple[int, ...]) -> str:
        asked = _asked(offer, missing)
        if not asked:
            return never(offer.pool) or _has_no(missing)
        room = self._room(offer, asked)
        return f"has no room in {ip(_less(asked, room))}" if room else "is full"


def never(pool: Pool) -> str:
    """Return why a pool gives out nothing but pins, as a predicate; "" if it gives out more."""
    return "is disabled" if pool.disabled else "is for unlisted nodes" if pool.unlisted else ""


def _asked(offer: Offer, missing: tuple[int, ...]) -> tuple[int, ...]:
    """Return the families to ask a pool for: those that it has and that are missing.

    None of a pool that gives out nothing but pins.
    """
    if offer.pool.disabled or offer.pool.unlisted:
        return ()
    sizes = offer.sizes
    return tuple([family for family in missing if family in sizes])


def _less(families: tuple[int, ...], some: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([family for family in families if family not in some])


def _has_no(families: tuple[int, ...]) -> str:
    return f"has no {' or '.join(f'IPv{family}' for family in families)}"
