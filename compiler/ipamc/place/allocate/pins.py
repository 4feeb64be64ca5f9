"""Pins: blocks that are kept for one node. Those of newcomers are placed before anything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Range
from ipamc.model.diagnostics import At, Diagnostic, Related, Span, error
from ipamc.model.lock import Line, State
from ipamc.model.plan import Demand, Offer, Reconciled
from ipamc.place.allocate.occupancy import blocks_over, lines_over, outermost


class Pinned(NamedTuple):
    """What became of the newcomers' pins."""

    new: list[Line]
    kept: Sequence[Line]
    """The lock's lines without those that vanish under new ones."""
    lacking: list[Demand]
    """What is to be placed without a pin. A family whose pin is refused is not in it."""
    found: list[Diagnostic]
    conflicts: list[Conflict]
    """What the findings are about."""


class Barrier(NamedTuple):
    """Addresses that a pin may not take though no line is there."""

    why: str
    range: Range


class Conflict(NamedTuple):
    """A pin that cannot be had, and what forbids it."""

    node: str
    pin: Range
    by: Line | Barrier


def place_pins(cluster: Cluster, standing: Reconciled, lacking: Iterable[Demand]) -> Pinned:
    """Give nodes the blocks that are pinned for them, of the families that they lack: nodes in the order of `lacking`, pins as written.

    A pin that the node holds, or that its pending line goes to, is not to be placed any more. O(pins log (pins + lines)).
    """
    pinning = {node for pool in cluster.pools for node in pool.pins}
    if not pinning:
        return Pinned([], standing.lock.lines, list(lacking), [], [])
    claims = _Claims(cluster, standing)
    rest: list[Demand] = []
    for each in lacking:
        node = each.want.node.name
        if node not in pinning:
            rest.append(each)
        elif each.offer is None:
            missing = dict.fromkeys(each.families, 1)
            for offer in each.want.offers:
                missing = claims.take_up(node, offer, missing)
            if missing:
                rest.append(Demand(each.want, tuple(missing)))
        else:
            missing = claims.take_up(node, each.offer, each.count)
            if each.offer.pool.disabled or each.offer.pool.unlisted:
                missing = claims.without_next(node, each.offer, missing)
            if missing:
                rest.append(msgspec.structs.replace(each, families=tuple(missing), count=missing))
    kept = (
        [line for line in standing.lock.lines if line.block not in claims.gone]
        if claims.gone
        else standing.lock.lines
    )
    return Pinned(
        claims.new, kept, rest, list(pin_conflicts(cluster, standing, claims.conflicts)), claims.conflicts
    )


def barriers(cluster: Cluster, standing: Reconciled) -> dict[Block, Barrier]:
    """Give what is kept from everybody: reserved, excluded, and taken without a line."""
    reserved = [each for pool in cluster.pools for each in pool.reserved]
    return {
        **{each.block: Barrier("held by a CiliumNode without a node", each) for each in standing.taken},
        **{each.block: Barrier("reserved", each) for each in reserved},
        **{each.block: Barrier("excluded", each) for each in cluster.excluded},
    }


class _Claims:
    """Pins as they are taken up one by one, against lines, other pins, and what is kept from everybody."""

    def __init__(self, cluster: Cluster, standing: Reconciled) -> None:
        self._lines = standing.lock.lines
        self._rivals = _rivals(cluster)
        self._barriers = barriers(cluster, standing)
        self._fixed = outermost(self._barriers)
        self.new: list[Line] = []
        self.gone: set[Block] = set()
        self.conflicts: list[Conflict] = []

    def take_up(self, node: str, offer: Offer, missing: Mapping[int, int]) -> dict[int, int]:
        """Place a node's pins of one pool, as many of a family as are missing; give what is missing then."""
        left = dict(missing)
        for block, pin in _own(offer, node).items():
            if not left.get(block.family):
                continue
            under = [line for line in lines_over(self._lines, block) if line.block not in self.gone]
            if any(line.block == block and line.node == node and line.in_use for line in under):
                continue
            left[block.family] -= 1
            if by := self._forbidden(node, block, under):
                self.conflicts.append(Conflict(node, pin, by))
            else:
                self.new.append(Line(block=block, pool=offer.pool.name, node=node))
                self.gone.update(line.block for line in under)
        return {family: number for family, number in left.items() if number}

    def without_next(self, node: str, offer: Offer, missing: Mapping[int, int]) -> dict[int, int]:
        """Give what is missing beyond the pins that the node's pending lines go to."""
        left = dict(missing)
        for block in _own(offer, node):
            under = lines_over(self._lines, block)
            if block.family in left and any(
                line.state is State.PENDING and line.node == node and line.block == block for line in under
            ):
                left[block.family] -= 1
        return {family: number for family, number in left.items() if number > 0}

    def _forbidden(self, node: str, block: Block, under: Iterable[Line]) -> Line | Barrier | None:
        """Find what forbids a pin. Released lines do not, nor do lines that the node itself left."""
        for line in under:
            if not (line.state is State.RELEASED or (line.state is State.QUARANTINED and line.node == node)):
                return line
        if fixed := blocks_over(self._fixed, block):
            return self._barriers[fixed[0]]
        return self._rivals.get((node, block))


def _own(offer: Offer, node: str) -> dict[Block, Range]:
    """Give a node's pins in a pool, as written, each block once."""
    return {pin.block: pin for pin in offer.pool.pins.get(node, ())}


def _rivals(cluster: Cluster) -> dict[tuple[str, Block], Barrier]:
    """Give for each pin, by node and block, another that shares addresses with it. One sweep with the pins still open; O(pins log pins)."""
    pins = {
        (pin.block, node): pin for pool in cluster.pools for node, some in pool.pins.items() for pin in some
    }
    rivals: dict[tuple[str, Block], Barrier] = {}
    within: list[tuple[Block, str]] = []
    for block, node in sorted(pins):
        while within and not within[-1][0].contains(block):
            within.pop()
        for outer, other in within:
            rivals.setdefault((node, block), Barrier(f"pinned for node {other}", pins[outer, other]))
            rivals.setdefault((other, outer), Barrier(f"pinned for node {node}", pins[block, node]))
        if not within or within[-1][0] != block:  # one of equal pins is enough to meet the others
            within.append((block, node))
    return rivals


def pin_conflicts(cluster: Cluster, standing: Reconciled, conflicts: list[Conflict]) -> Iterator[Diagnostic]:
    """IPC0306: a pinned block is free for its node, or was released.

    A pin takes no block that another node holds or is to move to, and no addresses that are reserved, excluded, or pinned for two. A block that
    another node left is in quarantine; a pin takes it only with consent. Pin another block, or consent: `ipamc lock --release CIDR`.
    """
    places: Mapping[str, At] = {node.name: node.at for node in cluster.nodes} if conflicts else {}
    for node, pin, by in conflicts:
        if isinstance(by, Barrier):
            way_out = f"pin another block for node {node}"
            also = [Related(by.range.at, f"{by.range.block} is {by.why}")]
        else:
            why, way_out = _of_line(by, node, cluster)
            at = places.get(by.node) or (Span(standing.lock.path) if standing.lock.path else None)
            also = [Related(at, f"{by.block}, which {why}")] if at else []
        yield error("IPC0306", pin.at, told(cluster, Conflict(node, pin, by)), also=also, help=way_out)


def told(cluster: Cluster, conflict: Conflict) -> str:
    """Say what is in the way of a pin, in words."""
    node, pin, by = conflict
    block, why = (
        (by.range.block, f"is {by.why}")
        if isinstance(by, Barrier)
        else (by.block, _of_line(by, node, cluster)[0])
    )
    return f"pin {pin.block} of node {node} overlaps {block}, which {why}"


def _of_line(line: Line, node: str, cluster: Cluster) -> tuple[str, str]:
    """Say what a line is, and what to do about a pin over it."""
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
