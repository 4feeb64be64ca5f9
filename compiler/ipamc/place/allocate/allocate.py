"""Place what nodes still need: pins first, then newcomers in name order over the whole cluster.

`assign` decided which pools serve a node, and which may take the place of a full one; here the offers are
taken in that order.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.cidr import part
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Diagnostic
from ipamc.model.lock import Line, State
from ipamc.model.plan import Demand, Offer, Origin, Plan, Reconciled, Want
from ipamc.model.progress import track
from ipamc.place.allocate.newcomers import Newcomers
from ipamc.place.allocate.occupancy import Occupancy, blocked, last_day
from ipamc.place.allocate.pins import PinConflict, pin_conflicts, place_pins
from ipamc.place.allocate.shortage import Short, Unserved, half_room, no_family, no_room, no_room_to_grow
from ipamc.place.reconcile.renumber import complete_placed

_block = operator.attrgetter("block")

FEW = 1000
"""Insert new lines one by one above this ratio of old to new lines; else sort them all."""


class Placement(Struct, frozen=True, kw_only=True):
    """What was placed, and which nodes got nothing."""

    plan: Plan
    after: Occupancy
    """The plan's lines, and what else newcomers may not have."""
    short: Sequence[Short]
    stunted: Sequence[Short]
    """Nodes that have what they need, and for which there is no room to grow."""
    unserved: Sequence[Unserved]
    conflicts: Sequence[PinConflict]


def allocate(
    cluster: Cluster, wants: tuple[Want, ...], reconciled: Reconciled, today: str
) -> tuple[Plan, list[Diagnostic]]:
    """Place what nodes still need; report which of them got nothing, and why. Costs what `place` does."""
    made = place(cluster, wants, reconciled, today)
    return made.plan, [
        *pin_conflicts(cluster, made.plan.lock, made.conflicts),
        *no_room(cluster, made.short, made.after, reconciled.lock),
        *half_room(cluster, made.short, made.after, reconciled.lock),
        *no_family(made.unserved),
        *no_room_to_grow(cluster, made.stunted, made.after),
    ]


def place(cluster: Cluster, wants: tuple[Want, ...], reconciled: Reconciled, today: str) -> Placement:
    """Place what nodes still need.

    Pinned newcomers come first, then the nodes that are renumbered (at the pin where there is one; their new
    lines are pending), then all newcomers: each in name order, whatever the order of the demands. `today`
    (ISO 8601, UTC) decides which quarantine is over. Lines are re-used whole: they leave the lock where a new
    block takes some of their addresses. Costs O(n log n) in lines and newcomers, times the number of block
    sizes; the width of ranges does not count.
    """
    order = _Order()
    pinned = place_pins(cluster, reconciled, order.sorted(reconciled.demands))
    with_pinned = reconciled.lock
    if pinned.new:
        with_pinned = replace(with_pinned, lines=tuple(sorted([*pinned.kept, *pinned.new], key=_block)))
    renumbers = order.sorted(reconciled.renumbers)
    moved = place_pins(cluster, replace(reconciled, lock=with_pinned), renumbers)
    over = last_day(today, cluster.quarantine_days)
    occupancy = Occupancy(moved.kept, blocked(cluster, reconciled.taken), over, today)
    placed = Newcomers(occupancy)
    placed.place(moved.demands, State.PENDING)
    newcomers = [demand for demand in pinned.demands if not demand.growth]
    placed.place(track(newcomers, "placing", "nodes") if newcomers else (), State.HELD)
    placed.place([demand for demand in pinned.demands if demand.growth], State.HELD)
    reused = occupancy.reused
    kept = [line for line in moved.kept if line.block not in reused] if reused else moved.kept
    new = [*(msgspec.structs.replace(line, state=State.PENDING) for line in moved.new), *placed.lines]
    new = _as_many(new, reconciled) if renumbers else new
    lines = _together(kept, new)
    held = _with_new(reconciled.held, [*pinned.new, *placed.lines])
    # A node that shows its new block already, or is not there yet, moves at once: no second compile is needed.
    arrived = list(
        complete_placed(reconciled.renumbered, [*pinned.new, *new], today, one_block=cluster.mode.one_block)
    )
    if arrived:
        held = {**held, **{node.name: node.held for node in arrived}}
        changed = {line.block: line for node in arrived for line in node.lines}
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
        stunted=placed.stunted,
        unserved=placed.unserved,
        conflicts=[*pinned.conflicts, *moved.conflicts],
    )


def _as_many(new: Iterable[Line], reconciled: Reconciled) -> list[Line]:
    """Return new lines; a pending one has no more addresses than those that it replaces (crd mode)."""
    had: dict[tuple[str, int, str], list[int]] = {}
    for name in reconciled.renumbered:
        for line in reconciled.held.get(name, ()):
            had.setdefault(line.key(one_block=False), []).append(line.addresses)
    return [
        msgspec.structs.replace(line, addresses=part(line.block, max(of)))
        if line.state is State.PENDING and all(of := had.get(line.key(one_block=False), [0]))
        else line
        for line in new
    ]


class _Order:
    """The order of demands: by node name; those of one node in the order in which its pools serve it."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[tuple[Offer, ...], dict[int, int]]] = {}

    def sorted(self, demands: Sequence[Demand]) -> Sequence[Demand]:
        """Return demands in order. Those of an inventory are: then no sort keys are made."""
        names = [demand.want.node.name for demand in demands]
        if len(set(names)) == len(names) and sorted(names) == names:
            return demands
        return sorted(demands, key=self.of)

    def of(self, demand: Demand) -> tuple[str, int]:
        """Return the sort key of a demand."""
        name, offers, offer = demand.want.node.name, demand.want.offers, demand.offer
        if offer is None:
            return name, 0
        known = self._places.get(id(offers))
        if known is None:
            known = self._places[id(offers)] = offers, {id(each): place for place, each in enumerate(offers)}
        place = known[1].get(id(offer))
        return name, offers.index(offer) if place is None else place


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
    by_node: dict[str, list[Line]] = {}
    for line in new:
        if line.state is not State.PENDING:
            by_node.setdefault(line.node, []).append(line)
    for node, lines in by_node.items():
        before = result.get(node, ())
        # Nearly all newcomers get one block: 100,000 lists of one are not sorted.
        result[node] = (
            tuple(sorted((*before, *lines), key=_block)) if before or len(lines) > 1 else (lines[0],)
        )
    return result
