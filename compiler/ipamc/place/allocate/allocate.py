"""Places what nodes still need: pins first, then newcomers in name order over the whole cluster.

`assign` decided the order of the offers, and which pools may replace a full one.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ipamc.law.change import last_day
from ipamc.model.address_sets import blocks_over, by_block, lines_over, outermost
from ipamc.model.cidr import Block, Range, part
from ipamc.model.cluster import Scheme
from ipamc.model.diagnostics import At, Diagnostic, Related, Span, error
from ipamc.model.follows import address_for
from ipamc.model.limits import OLD_LINES_FOR_INSERTION
from ipamc.model.lock import Line, Lock, State
from ipamc.model.ownership import RangeIndex
from ipamc.model.plan import Demand, Offer, Origin, Plan, Reconciled, Want
from ipamc.model.progress import track
from ipamc.place.allocate import shortage
from ipamc.place.allocate.newcomers import Newcomers
from ipamc.place.allocate.occupancy import BlockedRange, Occupancy, blocked, blocked_ranges
from ipamc.place.reconcile.renumber import complete_placed
from ipamc.place.reconcile.transitions import without_quarantine


class Placement(Struct, frozen=True, kw_only=True):
    """The placed blocks, and the nodes that got nothing."""

    plan: Plan
    after: Occupancy
    """The plan's lines, and other addresses that newcomers may not have."""
    short: Sequence[shortage.Short]
    stunted: Sequence[shortage.Short]
    """Nodes with all blocks that they need, for which there is no room to grow."""
    unserved: Sequence[shortage.Unserved]
    conflicts: Sequence[PinConflict]


def allocate(
    cluster: Scheme, wants: tuple[Want, ...], reconciled: Reconciled, today: str
) -> tuple[Plan, list[Diagnostic]]:
    """Place what nodes still need; report the nodes that got nothing, and why. Costs the same as `place`."""
    made = place(cluster, wants, reconciled, today)
    found = list(pin_conflicts(cluster, made.plan.lock, made.conflicts))
    if made.short or made.unserved or made.stunted:
        found += shortage.no_room(cluster, made.short, made.after, reconciled.lock)
        found += shortage.half_room(cluster, made.short, made.after, reconciled.lock)
        found += shortage.no_family(cluster, made.unserved)
        found += shortage.no_room_to_grow(cluster, made.stunted, made.after)
    return made.plan, found


def place(cluster: Scheme, wants: tuple[Want, ...], reconciled: Reconciled, today: str) -> Placement:
    """Place what nodes still need: pinned newcomers, renumbered nodes, then newcomers, each in name order.
    New lines of renumbered nodes are pending. `today` (ISO 8601, UTC) decides which quarantine is over. A
    re-used line leaves the lock as a whole. O(n log n) in lines and newcomers, times the number of block
    sizes.
    """
    pinned = place_pins(cluster, reconciled, _in_order(reconciled.demands))
    with_pinned = reconciled.lock
    if pinned.new:
        with_pinned = replace(with_pinned, lines=tuple(sorted([*pinned.kept, *pinned.new], key=by_block)))
    renumbers = _in_order(reconciled.renumbers)
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
    new = [*(replace(line, state=State.PENDING) for line in moved.new), *placed.lines]
    new = _limited(new, reconciled) if renumbers else new
    lines = _merged(kept, new)
    held = _with_new(reconciled.held, [*pinned.new, *placed.lines])
    # A node that already shows its new block, or does not exist yet, moves without a second compile.
    one_block, every_new = cluster.mode.one_block, [*pinned.new, *new]
    arrived = list(complete_placed(reconciled.renumbered, every_new, today, one_block=one_block))
    if arrived:
        ranges = RangeIndex(cluster.pools)
        arrived = [without_quarantine(node, ranges) for node in arrived]
        held = {**held, **{node.name: node.held for node in arrived}}
        changed = {line.block: line for node in arrived for line in node.lines}
        lines = [changed.get(line.block, line) for line in lines]
    plan = Plan(
        scheme=cluster,
        wants=wants,
        lock=replace(reconciled.lock, lines=tuple(lines)),
        origins={
            **reconciled.origins,
            **{
                line.block: Origin.FOLLOWS if cluster.pools_by_name[line.pool].follows else Origin.PIN
                for line in pinned.new
            },
            **{line.block: Origin.RENUMBER for line in moved.new},
            **placed.origins,
        },
        stale=reconciled.stale,
        held=held,
        operator_pools=reconciled.operator_pools,
        disputed=reconciled.disputed,
        conflicting=reconciled.conflicting,
    )
    return Placement(
        plan=plan,
        after=replace(occupancy, lines=lines),
        short=placed.short,
        stunted=placed.stunted,
        unserved=placed.unserved,
        conflicts=[*pinned.conflicts, *moved.conflicts],
    )


def _limited(new: Iterable[Line], reconciled: Reconciled) -> list[Line]:
    """Limit new pending lines to the number of addresses of the lines that they replace (crd mode)."""
    had: dict[tuple[str, int, str], list[int]] = {}
    for name in reconciled.renumbered:
        for line in reconciled.held.get(name, ()):
            had.setdefault(line.key(one_block=False), []).append(line.addresses)
    return [
        replace(line, addresses=part(line.block, max(of)))
        if line.state is State.PENDING and all(of := had.get(line.key(one_block=False), [0]))
        else line
        for line in new
    ]


def _in_order(demands: Sequence[Demand]) -> Sequence[Demand]:
    """Return demands by node name, then by pool of the node. Those of an inventory are already in order."""
    names = [demand.want.node.name for demand in demands]
    if len(set(names)) == len(names) and sorted(names) == names:
        return demands
    places: dict[int, dict[int, int]] = {}

    def key(demand: Demand) -> tuple[str, int]:
        name, offers, offer = demand.want.node.name, demand.want.offers, demand.offer
        if offer is None:
            return name, 0
        known = places.get(id(offers))
        if known is None:
            known = places[id(offers)] = {id(each): place for place, each in enumerate(offers)}
        place = known.get(id(offer))
        return name, offers.index(offer) if place is None else place

    return sorted(demands, key=key)


def _merged(lines: Sequence[Line], new: Sequence[Line]) -> list[Line]:
    """Return all lines by address. A few new ones are inserted: sorting 100,000 lines takes longer."""
    if len(new) * OLD_LINES_FOR_INSERTION > len(lines):
        return sorted([*lines, *new], key=by_block)
    result = list(lines)
    for line in new:
        bisect.insort(result, line, key=by_block)
    return result


def _with_new(held: Mapping[str, tuple[Line, ...]], new: Iterable[Line]) -> Mapping[str, tuple[Line, ...]]:
    """Return the held lines by node, including new ones."""
    result = dict(held)
    by_node: dict[str, list[Line]] = {}
    for line in new:
        if line.state is not State.PENDING:
            by_node.setdefault(line.node, []).append(line)
    for node, lines in by_node.items():
        every = (*result.get(node, ()), *lines)
        # Nearly all newcomers get one block: 100,000 lists of one are not sorted.
        result[node] = tuple(sorted(every, key=by_block)) if len(every) > 1 else every
    return result


class Pinned(Struct, frozen=True, kw_only=True):
    """The lines placed by pins, and the demands that remain."""

    new: Sequence[Line] = ()
    kept: Sequence[Line]
    """The lock's lines, without those that a pin replaced."""
    demands: Sequence[Demand]
    """What to place without a pin. A family whose pin is refused is not included."""
    conflicts: Sequence[PinConflict] = ()


class PinConflict(Struct, frozen=True, kw_only=True):
    """A pin that cannot be placed, and the line or range that has its addresses."""

    node: str
    pin: Range
    by: Line | BlockedRange
    address: str = ""
    """The node's address that decides the block; "" for a pin in the input."""


def place_pins(cluster: Scheme, reconciled: Reconciled, demands: Iterable[Demand]) -> Pinned:
    """Place the pins of nodes in the families that they need. O(pins log (pins + lines)).
    Nodes come in the order of `demands`, pins as written; pins share no address (IPC0217). A pin that its
    node holds, or that the node's pending line has, is not placed again.
    """
    lines = reconciled.lock.lines
    pinned_nodes = {node for pool in cluster.pools for node in pool.pins}
    if not pinned_nodes:
        return Pinned(kept=lines, demands=list(demands))
    placer = _PinPlacer(cluster, reconciled)
    rest: list[Demand] = []
    for demand in demands:
        node = demand.want.node.name
        if node not in pinned_nodes:
            rest.append(demand)
        elif offer := demand.offer:
            missing = placer.place(node, offer, demand.count)
            if offer.pool.disabled or offer.pool.unlisted:
                missing = placer.without_pending(node, offer, missing)
            if missing:
                rest.append(replace(demand, families=tuple(missing), count=missing))
        else:
            missing = dict.fromkeys(demand.families, 1)
            for each in demand.want.offers:
                missing = placer.place(node, each, missing)
            if missing:
                rest.append(Demand(demand.want, tuple(missing)))
    kept = [line for line in lines if line.block not in placer.replaced] if placer.replaced else lines
    return Pinned(new=placer.new, kept=kept, demands=rest, conflicts=placer.conflicts)


class _PinPlacer:
    """Places pins one by one, against lines and blocked ranges."""

    def __init__(self, cluster: Scheme, reconciled: Reconciled) -> None:
        self._lines = reconciled.lock.lines
        self._blocked_ranges = blocked_ranges(cluster, reconciled.taken)
        self._blocked = outermost(self._blocked_ranges)
        self.new: list[Line] = []
        self.replaced: set[Block] = set()
        self.conflicts: list[PinConflict] = []

    def place(self, node: str, offer: Offer, missing: Mapping[int, int]) -> dict[int, int]:
        """Place a node's pins of a pool, up to the missing number; return what is still missing."""
        still = dict(missing)
        for block, pin in _pins_of(node, offer).items():
            if not still.get(block.family):
                continue
            under = [line for line in lines_over(self._lines, block) if line.block not in self.replaced]
            if any(line.block == block and line.node == node and line.in_use for line in under):
                continue
            still[block.family] -= 1
            if by := self._forbidden(node, block, under):
                self.conflicts.append(
                    PinConflict(node=node, pin=pin, by=by, address=address_for(offer.pool, block))
                )
            else:
                usage = offer.pool.usage
                addresses = part(block, usage.addresses) if usage else 0
                self.new.append(Line(block=block, pool=offer.pool.name, node=node, addresses=addresses))
                self.replaced.update(line.block for line in under)
        return {family: number for family, number in still.items() if number}

    def without_pending(self, node: str, offer: Offer, missing: Mapping[int, int]) -> dict[int, int]:
        """Return the missing numbers minus the pins that the node's pending lines have."""
        still = dict(missing)
        for block in _pins_of(node, offer):
            pending = (line for line in lines_over(self._lines, block) if line.state is State.PENDING)
            if block.family in still and any((line.node, line.block) == (node, block) for line in pending):
                still[block.family] -= 1
        return {family: number for family, number in still.items() if number > 0}

    def _forbidden(self, node: str, block: Block, under: Iterable[Line]) -> Line | BlockedRange | None:
        """Return what forbids a pin, or None. Released lines and the node's own quarantined ones do not."""
        for line in under:
            if line.in_use or (line.state is State.QUARANTINED and line.node != node):
                return line
        blocked = blocks_over(self._blocked, block)
        return self._blocked_ranges[blocked[0]] if blocked else None


def _pins_of(node: str, offer: Offer) -> dict[Block, Range]:
    """Return a node's pins in a pool, as written, each block once."""
    return {pin.block: pin for pin in offer.pool.pins.get(node, ())}


def pin_conflicts(cluster: Scheme, lock: Lock, conflicts: Sequence[PinConflict]) -> Iterator[Diagnostic]:
    """IPC0306: a pinned block is free, or its node holds it."""
    places: Mapping[str, At] = {node.name: node.at for node in cluster.nodes} if conflicts else {}
    for conflict in conflicts:
        by = conflict.by
        if isinstance(by, BlockedRange):
            way_out = _elsewhere(conflict)
            also = [Related(by.range.at, f"{by.range.block} is {by.why}")]
        else:
            why, way_out = _of_line(by, conflict, cluster)
            at = places.get(by.node) or (Span(lock.path) if lock.path else None)
            also = [Related(at, f"{by.block}, which {why}")] if at else []
        yield error("IPC0306", conflict.pin.at, conflict_text(cluster, conflict), also=also, help=way_out)


def conflict_text(cluster: Scheme, conflict: PinConflict) -> str:
    """Return a sentence with the addresses that a pin cannot have, and the reason."""
    by = conflict.by
    if isinstance(by, BlockedRange):
        other = f"{by.range.block}, which is {by.why}"
    else:
        other = f"{by.block}, which {_of_line(by, conflict, cluster)[0]}"
    address = conflict.address
    pin = f"{conflict.pin.block}, which follows {address}" if address else f"pin {conflict.pin.block}"
    return f"{pin} of node {conflict.node}{',' if address else ''} overlaps {other}"


def _elsewhere(conflict: PinConflict) -> str:
    """Return how to give a node another pin."""
    if conflict.address:
        return f"give node {conflict.node} another address"
    return f"pin another block for node {conflict.node}"


def _of_line(line: Line, conflict: PinConflict, cluster: Scheme) -> tuple[str, str]:
    """Return a description of a line, and what to do about a pin that overlaps it."""
    release = f"ipamc lock {cluster.name} --release {line.block}"
    another = _elsewhere(conflict)
    if line.state is State.QUARANTINED:
        since = f"has been in quarantine since {line.since} (node {line.node})"
        return since, f"if nothing uses it: {release}"
    if line.state is State.PENDING:
        return f"is pending for node {line.node}", f"{another}, or cancel the renumber: {release}"
    if conflict.address:
        another = f"move {line.node}: ipamc lock {cluster.name} --renumber {line.node}; or {another}"
    return f"node {line.node} holds", another
