"""Reconciled to plan: what is lacking is placed. Pins first, then the newcomers in name order, over the whole cluster.

Which pool serves a node, and who may take a full pool's place, was decided by `assign`; here the offers are only walked.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec

from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Node, Pool
from ipamc.model.diagnostics import Diagnostic
from ipamc.model.lock import Consent, Line, Lock, State
from ipamc.model.plan import Demand, Offer, Plan, Reconciled, Want
from ipamc.place.allocate.free_space import Space
from ipamc.place.allocate.occupancy import Blockers, outermost
from ipamc.place.allocate.pins import Conflict, Pinned, barriers, place_pins
from ipamc.place.allocate.reuse import last_day
from ipamc.place.allocate.shortage import Passed, Short, Unserved, half_room, ip, no_family, no_room
from ipamc.place.reconcile.adopt import Evidence
from ipamc.place.reconcile.demand import held_by_node
from ipamc.place.reconcile.renumber import settle_moves

_block = operator.attrgetter("block")

FEW = 1000
"""New lines are few if there are so many times as many old ones."""


class Placement(NamedTuple):
    """What was placed, and who went without: what the findings of `allocate` are about."""

    plan: Plan
    after: Blockers
    """The plan's lines, and what else newcomers may not have."""
    short: Sequence[Short]
    unserved: Sequence[Unserved]
    conflicts: Sequence[Conflict]
    found: list[Diagnostic]
    """Of pins."""


def allocate(
    cluster: Cluster, wants: tuple[Want, ...], standing: Reconciled, today: str
) -> tuple[Plan, list[Diagnostic]]:
    """Place what is lacking; say who got nothing, and why. Costs what `place` does."""
    plan, after, short, unserved, _, found = place(cluster, wants, standing, today)
    return plan, [
        *found,
        *no_room(cluster, short, after),
        *half_room(cluster, short, after),
        *no_family(unserved),
    ]


def place(cluster: Cluster, wants: tuple[Want, ...], standing: Reconciled, today: str) -> Placement:
    """Place what is lacking.

    Pinned newcomers come first, then who is renumbered (at the pin where there is one; their new lines are pending), then all newcomers: each in name
    order, whatever the order of `standing.lacking`. `today` (ISO 8601, UTC) decides whose
    quarantine is over. Lines are re-used whole: they leave the lock where a new block takes some of their addresses. Costs O(n log n) in lines and
    newcomers, times the number of block sizes; the width of ranges does not count.
    """
    pinned = place_pins(cluster, standing, sorted(standing.lacking, key=_order))
    moved = place_pins(
        cluster, replace(standing, lock=_with(standing.lock, pinned)), sorted(standing.moving, key=_order)
    )
    blockers = Blockers(moved.kept, _kept_free(cluster, standing), last_day(today, cluster.quarantine_days))
    placed = _place(moved.lacking, pinned.lacking, blockers)
    kept = [line for line in moved.kept if line.block not in blockers.gone] if blockers.gone else moved.kept
    lines = _together(
        kept, [*(msgspec.structs.replace(line, state=State.PENDING) for line in moved.new), *placed.lines]
    )
    held = _with_new(standing.held, [*pinned.new, *placed.lines])
    if (
        standing.moving
    ):  # who is not there yet, or shows the new block already, need not wait for another compile
        by_name = {want.node.name: want for want in wants}
        lines = settle_moves(cluster, standing.lock, lines, by_name, Evidence(cluster), Consent(), today)[0]
        held = held_by_node(lines)
    plan = Plan(
        cluster=cluster,
        wants=wants,
        lock=replace(standing.lock, lines=tuple(lines)),
        origins={
            **standing.origins,
            **{line.block: "pin" for line in pinned.new},
            **{line.block: "renumber" for line in moved.new},
            **placed.origins,
        },
        stale=standing.stale,
        held=held,
    )
    conflicts = [*pinned.conflicts, *moved.conflicts]
    return Placement(
        plan,
        replace(blockers, lines=lines),
        placed.short,
        placed.unserved,
        conflicts,
        [*pinned.found, *moved.found],
    )


def _order(lacking: Demand) -> tuple[str, int]:
    """By node name; of one node, its pools in the order in which they serve it."""
    return lacking.want.node.name, lacking.want.offers.index(lacking.offer) if lacking.offer else 0


def _with(lock: Lock, pinned: Pinned) -> Lock:
    """Give the lock as it is with the pins of newcomers placed."""
    return replace(lock, lines=tuple(sorted([*pinned.kept, *pinned.new], key=_block))) if pinned.new else lock


def _kept_free(cluster: Cluster, standing: Reconciled) -> list[Block]:
    """Give all that newcomers may not have though no line says so. Pins count, whether or not their node is there."""
    pins = [pin.block for pool in cluster.pools for some in pool.pins.values() for pin in some]
    return outermost([*barriers(cluster, standing), *pins])


def _together(lines: Sequence[Line], new: Sequence[Line]) -> list[Line]:
    """Give all lines by family and address. A few new ones are put where they belong: sorting 100,000 lines takes longer than placing one."""
    if len(new) * FEW > len(lines):
        return sorted([*lines, *new], key=_block)
    result = list(lines)
    for line in new:
        bisect.insort(result, line, key=_block)
    return result


def _with_new(held: Mapping[str, tuple[Line, ...]], new: Iterable[Line]) -> Mapping[str, tuple[Line, ...]]:
    """Give the held lines by node with the new ones among them."""
    result = dict(held)
    for line in new:
        if line.state is not State.PENDING:
            mine = result.get(line.node)
            result[line.node] = (line,) if mine is None else tuple(sorted((*mine, line), key=_block))
    return result


def _place(moving: Iterable[Demand], lacking: Iterable[Demand], blockers: Blockers) -> _Newcomers:
    newcomers = _Newcomers(blockers)
    newcomers.moving = True
    _serve(newcomers, moving)
    newcomers.moving = False
    _serve(newcomers, lacking)
    return newcomers


def _serve(newcomers: _Newcomers, lacking: Iterable[Demand]) -> None:
    for each in lacking:
        if each.offer is None:
            newcomers.walk(each.want, each.families)
        else:
            newcomers.serve(each.want.node, each.offer, each.count)


@dataclass(slots=True)
class _Newcomers:
    """A run of newcomers: the spaces that they shrink, the lines that they get, and who goes without."""

    blockers: Blockers
    spaces: dict[tuple[str, int], Space] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    origins: dict[Block, str] = field(default_factory=dict)
    short: list[Short] = field(default_factory=list)
    unserved: list[Unserved] = field(default_factory=list)
    moving: bool = False
    """Those who come now are renumbered: their new lines are pending."""

    def walk(self, want: Want, families: tuple[int, ...]) -> None:
        """Give a node one block of each family. Each offer serves all that it has and that is missing, or none."""
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

    def serve(self, node: Node, offer: Offer, count: Mapping[int, int]) -> None:
        """Give a node so many blocks of each family, all of one pool."""
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
        """Let other pools take a full one's place until what it was asked for is served; give what is missing then."""
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
            self.lines.append(
                Line(
                    block=found.block,
                    pool=name,
                    node=node,
                    state=State.PENDING if self.moving else State.HELD,
                )
            )
            self.origins[found.block] = (
                "renumber" if self.moving else "re-used" if found.reuse else "first fit"
            )
        return True

    def _open(self, pool: Pool, family: int) -> Space:
        """Make the space of a pool and family, when it is first asked for."""
        space = Space(family, [each.block for each in pool.families[family].ranges], self.blockers)
        self.spaces[pool.name, family] = space
        return space

    def _room(self, offer: Offer, families: Iterable[int]) -> tuple[int, ...]:
        """Give those of some families in which a pool still has room."""
        spaces = {
            family: self.spaces.get((offer.pool.name, family)) or self._open(offer.pool, family)
            for family in families
        }
        return tuple(family for family, space in spaces.items() if space.find(offer.sizes[family]))

    def _explain(self, want: Want, full: Offer, asked: tuple[int, ...], missing: tuple[int, ...]) -> Short:
        """Say why nobody serves a node: the offers before the full one, those that might take its place, and those that may not."""
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
    """Say why a pool gives nothing but pins; empty if it gives."""
    return "is disabled" if pool.disabled else "is for unlisted nodes" if pool.unlisted else ""


def _asked(offer: Offer, missing: tuple[int, ...]) -> tuple[int, ...]:
    """Give the families to ask a pool for: those that it has and that are missing, none of a pool that gives nothing but pins."""
    if offer.pool.disabled or offer.pool.unlisted:
        return ()
    sizes = offer.sizes
    return tuple([family for family in missing if family in sizes])


def _less(families: tuple[int, ...], some: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([family for family in families if family not in some])


def _has_no(families: tuple[int, ...]) -> str:
    return f"has no {' or '.join(f'IPv{family}' for family in families)}"
