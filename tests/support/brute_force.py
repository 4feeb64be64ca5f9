"""The allocator's rules in their plainest form: every aligned place of every range is looked at, every time. Slow and obvious."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from ipamc.model.cidr import BITS, Block
from ipamc.model.cluster import Cluster, Pool
from ipamc.model.lock import Line, State
from ipamc.model.plan import Demand, Offer, Reconciled


@dataclass
class BruteForce:
    """What the lock holds so far, what is given to no node, and who was refused with which code. Pins are disjoint."""

    cluster: Cluster
    lines: list[Line]
    kept: list[Block]
    today: str
    taken: list[Block]
    new: dict[Block, str] = field(default_factory=dict)
    refused: set[tuple[str, str]] = field(default_factory=set)

    def waited(self, line: Line) -> bool:
        """Tell whether a line left so long ago that its addresses may be given again.

        A block from which a node is moved today is in use until that was applied.
        """
        days = self.cluster.quarantine_days
        return (
            bool(line.since)
            and not (line.moved and line.since == self.today)
            and days is not None
            and date.fromisoformat(line.since) + timedelta(days=days) <= date.fromisoformat(self.today)
        )

    def under(self, block: Block) -> list[Line]:
        """Return the lines that share an address with a block."""
        return [line for line in self.lines if line.block.overlaps(block)]

    def places(self, pool: Pool, family: int, prefix: int) -> Iterator[Block]:
        """Yield every aligned place of a size in a pool that is not kept from everybody."""
        for each in pool.families[family].ranges:
            if each.block.prefix <= prefix:
                for first in range(each.block.first, each.block.last + 1, 1 << (BITS[family] - prefix)):
                    if not any(kept.overlaps(Block(family, first, prefix)) for kept in self.kept):
                        yield Block(family, first, prefix)

    def find(self, pool: Pool, family: int, prefix: int) -> Block | None:
        """Return the place that the rules choose."""
        places = list(self.places(pool, family, prefix))
        free = [place for place in places if not self.under(place)]
        released = [
            place for place in places if all(line.state is State.RELEASED for line in self.under(place))
        ]
        over = [
            place
            for place in places
            if all(line.state is State.RELEASED or self.waited(line) for line in self.under(place))
        ]
        # Stable: then as the ranges are written
        over.sort(key=lambda place: max((line.since for line in self.under(place)), default=""))
        return next(iter(free + released + over), None)

    def take(self, node: str, pool: Pool, block: Block, origin: str) -> None:
        """Give a node a block; every line under it vanishes."""
        under = self.under(block)
        self.lines = [line for line in self.lines if line not in under]
        self.lines.append(Line(block=block, pool=pool.name, node=node))
        self.new[block] = origin or ("re-used" if under else "first fit")

    def serve(self, node: str, offer: Offer, families: Sequence[int]) -> list[int]:
        """Place a block of each of the families that the pool has, or none; give the families placed."""
        if offer.pool.disabled or offer.pool.unlisted:
            return []
        has = [family for family in families if family in offer.pool.families]
        places = [self.find(offer.pool, family, offer.sizes[family]) for family in has]
        if None in places:
            return []
        for place in places:
            assert place is not None
            self.take(node, offer.pool, place, "")
        return has

    def walk(self, demand: Demand, missing: list[int]) -> None:
        """Place a block of each missing family."""
        node = demand.want.node.name
        for offer in demand.want.offers:
            has = [family for family in missing if family in offer.pool.families]
            if not has or offer.pool.disabled or offer.pool.unlisted:
                continue
            room = [family for family in has if self.find(offer.pool, family, offer.sizes[family])]
            served = self.serve(node, offer, missing)
            missing = [family for family in missing if family not in served]
            for other in () if served else offer.instead:
                if set(has) & set(missing):
                    served = self.serve(node, other, missing)
                    missing = [family for family in missing if family not in served]
            if set(has) & set(missing):
                self.refused.add(("IPC0305" if set(room) & set(missing) else "IPC0303", node))
                return
        if missing:
            self.refused.add(("IPC0307", node))

    def pins(self, demand: Demand) -> dict[int, int]:
        """Place the pins of a node; give how many blocks of each family are missing then."""
        node = demand.want.node.name
        missing = dict(demand.count) if demand.offer else dict.fromkeys(demand.families, 1)
        for offer in [demand.offer] if demand.offer else demand.want.offers:
            for pin in dict.fromkeys(each.block for each in offer.pool.pins.get(node, ())):
                here = [
                    line for line in self.lines if line.block == pin and line.node == node and line.in_use
                ]
                if not missing.get(pin.family) or here:
                    continue
                missing[pin.family] -= 1
                reserved = [each.block for pool in self.cluster.pools for each in pool.reserved]
                blocked = [
                    *reserved,
                    *(each.block for each in self.cluster.excluded),
                    *self.taken,
                ]
                if any(block.overlaps(pin) for block in blocked) or not all(
                    line.state is State.RELEASED or (line.since and line.node == node)
                    for line in self.under(pin)
                ):
                    self.refused.add(("IPC0306", node))
                else:
                    self.take(node, offer.pool, pin, "pin")
        return {family: number for family, number in missing.items() if number}


def brute_force(cluster: Cluster, reconciled: Reconciled, today: str) -> BruteForce:
    """Place what nodes still need, the slow way."""
    kept = [each.block for pool in cluster.pools for each in pool.reserved]
    kept += [each.block for pool in cluster.pools for some in pool.pins.values() for each in some]
    kept += [each.block for each in cluster.excluded] + [each.block for each in reconciled.taken]
    state = BruteForce(
        cluster, list(reconciled.lock.lines), kept, today, [each.block for each in reconciled.taken]
    )
    newcomers = sorted(
        reconciled.demands,
        key=lambda each: (each.want.node.name, each.want.offers.index(each.offer) if each.offer else 0),
    )
    rest = [(each, state.pins(each)) for each in newcomers]
    for each, missing in rest:
        if each.offer is None:
            state.walk(each, list(missing))
        elif each.offer.pool.disabled or each.offer.pool.unlisted:
            pins = {pin.block for pin in each.offer.pool.pins.get(each.want.node.name, ())}
            going = [
                line
                for line in state.lines
                if line.state is State.PENDING and line.node == each.want.node.name and line.block in pins
            ]
            if any(
                number > sum(line.block.family == family for line in going)
                for family, number in missing.items()
            ):
                state.refused.add(("IPC0303", each.want.node.name))
        else:
            for family, number in missing.items():
                for _ in range(number):
                    place = state.find(each.offer.pool, family, each.offer.sizes[family])
                    if place is None:
                        state.refused.add(("IPC0303", each.want.node.name))
                        break
                    state.take(each.want.node.name, each.offer.pool, place, "")
    return state
