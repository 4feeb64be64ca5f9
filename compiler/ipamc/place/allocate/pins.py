"""Pins: blocks that are kept for one node. Those of newcomers are placed before anything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from ipamc.model.address_sets import blocks_over, lines_over, outermost
from ipamc.model.cidr import Block, Range, part
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import At, Diagnostic, Related, Span, error
from ipamc.model.lock import Line, Lock, State
from ipamc.model.plan import Demand, Offer, Reconciled
from ipamc.place.allocate.occupancy import BlockedRange, blocked_ranges


class Pinned(Struct, frozen=True, kw_only=True):
    """What was placed by pins, and what is still to be placed."""

    new: Sequence[Line] = ()
    kept: Sequence[Line]
    """The lock's lines without those that a pin replaced."""
    demands: Sequence[Demand]
    """What is to be placed without a pin. A family whose pin is refused is not in it."""
    conflicts: Sequence[PinConflict] = ()


class PinConflict(Struct, frozen=True, kw_only=True):
    """A pin that cannot be placed, and what has its addresses."""

    node: str
    pin: Range
    by: Line | BlockedRange


def place_pins(cluster: Cluster, reconciled: Reconciled, demands: Iterable[Demand]) -> Pinned:
    """Place the pins of nodes in the families that they need. O(pins log (pins + lines)).

    Nodes are taken in the order of `demands`, pins as written. A pin that its node holds, or that the node's
    pending line has, is not placed again. Pins share no address: `check` refuses those that do (IPC0217).
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
        elif demand.offer is None:
            missing = dict.fromkeys(demand.families, 1)
            for offer in demand.want.offers:
                missing = placer.place(node, offer, missing)
            if missing:
                rest.append(Demand(demand.want, tuple(missing)))
        else:
            missing = placer.place(node, demand.offer, demand.count)
            if demand.offer.pool.disabled or demand.offer.pool.unlisted:
                missing = placer.without_pending(node, demand.offer, missing)
            if missing:
                rest.append(msgspec.structs.replace(demand, families=tuple(missing), count=missing))
    kept = [line for line in lines if line.block not in placer.replaced] if placer.replaced else lines
    return Pinned(new=placer.new, kept=kept, demands=rest, conflicts=placer.conflicts)


class _PinPlacer:
    """Places pins one by one, against lines and blocked ranges."""

    def __init__(self, cluster: Cluster, reconciled: Reconciled) -> None:
        self._lines = reconciled.lock.lines
        self._blocked_ranges = blocked_ranges(cluster, reconciled.taken)
        self._blocked = outermost(self._blocked_ranges)
        self.new: list[Line] = []
        self.replaced: set[Block] = set()
        self.conflicts: list[PinConflict] = []

    def place(self, node: str, offer: Offer, missing: Mapping[int, int]) -> dict[int, int]:
        """Place a node's pins of one pool, as many of a family as it misses; return what is missing then."""
        still = dict(missing)
        for block, pin in _pins_of(node, offer).items():
            if not still.get(block.family):
                continue
            under = [line for line in lines_over(self._lines, block) if line.block not in self.replaced]
            if any(line.block == block and line.node == node and line.in_use for line in under):
                continue
            still[block.family] -= 1
            if by := self._forbidden(node, block, under):
                self.conflicts.append(PinConflict(node=node, pin=pin, by=by))
            else:
                usage = offer.pool.usage
                addresses = part(block, usage.addresses) if usage else 0
                self.new.append(Line(block=block, pool=offer.pool.name, node=node, addresses=addresses))
                self.replaced.update(line.block for line in under)
        return {family: number for family, number in still.items() if number}

    def without_pending(self, node: str, offer: Offer, missing: Mapping[int, int]) -> dict[int, int]:
        """Return what is missing beyond the pins that the node's pending lines have."""
        still = dict(missing)
        for block in _pins_of(node, offer):
            under = lines_over(self._lines, block)
            if block.family in still and any(
                line.state is State.PENDING and line.node == node and line.block == block for line in under
            ):
                still[block.family] -= 1
        return {family: number for family, number in still.items() if number > 0}

    def _forbidden(self, node: str, block: Block, under: Iterable[Line]) -> Line | BlockedRange | None:
        """Return what forbids a pin, or None. Released lines and the node's own quarantined ones do not."""
        for line in under:
            if not (line.state is State.RELEASED or (line.state is State.QUARANTINED and line.node == node)):
                return line
        blocked = blocks_over(self._blocked, block)
        return self._blocked_ranges[blocked[0]] if blocked else None


def _pins_of(node: str, offer: Offer) -> dict[Block, Range]:
    """Return a node's pins in a pool, as written, each block once."""
    return {pin.block: pin for pin in offer.pool.pins.get(node, ())}


def pin_conflicts(cluster: Cluster, lock: Lock, conflicts: Sequence[PinConflict]) -> Iterator[Diagnostic]:
    """IPC0306: a pinned block is free for its node, or was released."""
    places: Mapping[str, At] = {node.name: node.at for node in cluster.nodes} if conflicts else {}
    for conflict in conflicts:
        node, by = conflict.node, conflict.by
        if isinstance(by, BlockedRange):
            way_out = f"pin another block for node {node}"
            also = [Related(by.range.at, f"{by.range.block} is {by.why}")]
        else:
            why, way_out = _of_line(by, node, cluster)
            at = places.get(by.node) or (Span(lock.path) if lock.path else None)
            also = [Related(at, f"{by.block}, which {why}")] if at else []
        yield error("IPC0306", conflict.pin.at, conflict_text(cluster, conflict), also=also, help=way_out)


def conflict_text(cluster: Cluster, conflict: PinConflict) -> str:
    """Say which addresses a pin cannot have, and why."""
    by = conflict.by
    block, why = (
        (by.range.block, f"is {by.why}")
        if isinstance(by, BlockedRange)
        else (by.block, _of_line(by, conflict.node, cluster)[0])
    )
    return f"pin {conflict.pin.block} of node {conflict.node} overlaps {block}, which {why}"


def _of_line(line: Line, node: str, cluster: Cluster) -> tuple[str, str]:
    """Return what a line is, in words, and what to do about a pin over it."""
    release = f"ipamc lock {cluster.name} --release {line.block}"
    if line.state is State.QUARANTINED:
        return (
            f"is quarantined since {line.since}, of node {line.node}",
            f"if nothing uses it any more: {release}",
        )
    if line.state is State.PENDING:
        return (
            f"is pending for node {line.node}",
            f"pin another block for node {node}, or cancel the renumber: {release}",
        )
    return f"node {line.node} holds", f"pin another block for node {node}"
