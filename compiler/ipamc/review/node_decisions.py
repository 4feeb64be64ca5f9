"""What the stages decided about one node, and its explanation."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping

from msgspec import Struct

from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import At, Diagnostic, count
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Line, Lock, State
from ipamc.model.plan import Offers, Origin, Reconciled, Want
from ipamc.model.range_index import RangeIndex
from ipamc.place.allocate.allocate import Placement
from ipamc.place.allocate.newcomers import never
from ipamc.place.allocate.occupancy import first_day
from ipamc.place.allocate.pins import conflict_text
from ipamc.place.allocate.shortage import ip
from ipamc.review.explain_pools import ExplainedPool, explain_pools
from ipamc.review.seeds import started_with


class NodeStatus(enum.StrEnum):
    """What is known of a node: the first seven are for the inventory's nodes, the others for other names."""

    HELD = "held"
    """It holds a block."""
    PENDING = "pending"
    """It holds a block, and is to move to another."""
    NEWCOMER = "newcomer"
    RETURNING = "returning"
    SKIPPED = "skipped"
    """No pool selects it, and `unmatchedNodes: skip` is set."""
    UNMATCHED = "unmatched"
    """No pool selects it."""
    REFUSED = "refused"
    """It gets no block."""
    LEAVING = "leaving"
    """The lock has blocks in use for it."""
    QUARANTINED = "quarantined"
    RELEASED = "released"
    UNLISTED = "unlisted"
    """Only a CiliumNode shows it."""
    PINNED = "pinned"
    """Only pins name it."""


class ExplainedBlock(Struct, frozen=True, kw_only=True):
    """A block of the node: in the lock, or to be given to it by the next compile."""

    line: Line
    """As it is in the lock; of a new block, as it will be."""
    number: int
    """Row of the lock, from 1; 0 of a new block."""
    origin: Origin | None
    """Why it is new; None of a block of the lock."""
    why: str
    at: At | None = None
    """Where the input names this block: its pin, or the object that shows that the node has it."""


class ExplainedNode(Struct, frozen=True, kw_only=True):
    """The reasons for the blocks of one node of one cluster."""

    cluster: str
    node: str
    status: NodeStatus
    at: At | None
    """The node in the inventory, or the CiliumNode that shows it."""
    labels: Mapping[str, str]
    """Those that a selector tests."""
    pools: tuple[ExplainedPool, ...]
    """Those that serve the node, in order, then the others by rank; empty if it is not in the inventory."""
    blocks: tuple[ExplainedBlock, ...]
    """By family and address."""
    notes: tuple[str, ...]
    planned: bool = False
    """The inventory says that it has not joined yet: whatever it holds, nobody uses."""


class Decisions:
    """What the stages decided about one node."""

    def __init__(
        self,
        cluster: Cluster,
        lock: Lock,
        name: str,
        today: str,
        reconciled: Reconciled,
        placement: Placement | None,
    ) -> None:
        self.cluster, self.name, self.today, self.placement = cluster, name, today, placement
        self.written = [(number, line) for number, line in enumerate(lock.lines, 2) if line.node == name]
        after = placement.plan.lock.lines if placement else reconciled.lock.lines
        self.after = {line.block: line for line in after if line.node == name}
        self.origins = placement.plan.origins if placement else reconciled.origins
        self.range_index = RangeIndex(cluster.pools)
        self.started = started_with(cluster, lock)
        self.pins = [(pool, pin) for pool in cluster.pools if name in pool.pins for pin in pool.pins[name]]
        self.serving: frozenset[str] | None = None
        self.evidence = Evidence(cluster)
        self.pin_places = {pin.block: pin.at for _, pin in reversed(self.pins)}

    def of_listed(self, want: Want, refused: list[Diagnostic]) -> ExplainedNode:
        """Explain a node of the inventory."""
        selectors = [
            selector
            for pool in self.cluster.pools
            for selector in (pool.selector, *(size.selector for size in pool.block_sizes))
        ]
        keys = sorted({key for selector in selectors for key in selector.keys} & want.node.labels.keys())
        status, notes = self._status(want)
        if refused:
            codes = ", ".join(sorted({finding.code for finding in refused}))
            notes.append(
                f"the next compile is refused with {count(len(refused), 'error')} ({codes}): "
                f"ipamc compile {self.cluster.name} --check"
            )
        return ExplainedNode(
            cluster=self.cluster.name,
            node=self.name,
            status=status,
            at=want.node.at,
            labels={key: want.node.labels[key] for key in keys},
            pools=explain_pools(self.cluster, want, self.placement, self.today),
            blocks=tuple(self._blocks(want)),
            notes=tuple(notes),
            planned=want.node.planned,
        )

    def of_unlisted(self) -> ExplainedNode | None:
        """Explain a name that is not in the inventory."""
        seen = next((seen for seen in self.cluster.cilium_nodes if seen.name == self.name), None)
        pinning = [pool.name for pool in self.cluster.pools if self.name in pool.pins]
        if any(line.in_use for _, line in self.written):
            status = NodeStatus.LEAVING
        elif any(line.state is State.QUARANTINED for _, line in self.written):
            status = NodeStatus.QUARANTINED
        elif seen:
            status = NodeStatus.UNLISTED
        elif self.written or pinning:
            status = NodeStatus.RELEASED if self.written else NodeStatus.PINNED
        else:
            return None
        notes = [f"pool {pool} pins blocks for it, which are kept free" for pool in pinning]
        if seen:
            for block in dict.fromkeys((*seen.blocks, *(block for block, _ in seen.allocated))):
                found = self.range_index.of(block)
                given = (
                    "the operator gave it out of"
                    if found and found.pool.unlisted
                    else "it counts as taken in"
                )
                notes.append(
                    f"a CiliumNode shows {block}: {given} {f'pool {found.pool.name}' if found else 'no pool'}"
                )
        return ExplainedNode(
            cluster=self.cluster.name,
            node=self.name,
            status=status,
            at=seen.at if seen else None,
            labels={},
            pools=(),
            blocks=tuple(self._blocks(None)),
            notes=("not in the inventory", *notes),
        )

    def _status(self, want: Want) -> tuple[NodeStatus, list[str]]:
        """Return the status of a node of the inventory, and why blocks are missing."""
        notes = [*self._shortages()]
        gained = [line.block for line in self.after.values() if line.state is State.HELD]
        if any(line.state is State.HELD for _, line in self.written):
            pending = any(line.state is State.PENDING for line in self.after.values())
            return NodeStatus.PENDING if pending else NodeStatus.HELD, notes
        if gained:
            returns = any(self.origins.get(block) is Origin.RETURNED for block in gained)
            return NodeStatus.RETURNING if returns else NodeStatus.NEWCOMER, notes
        if want.offers:
            return NodeStatus.REFUSED, notes
        skips = self.cluster.unmatched_nodes == "skip"
        why = f"no enabled pool selects it{', and unmatchedNodes: skip is set' if skips else ''}"
        return NodeStatus.SKIPPED if skips else NodeStatus.UNMATCHED, [*notes, why]

    def _shortages(self) -> Iterator[str]:
        made = self.placement
        for short in made.short if made else ():
            if short.node.name == self.name and short.full:
                size = short.offer.sizes[short.full[0]]
                yield f"pool {short.offer.pool.name} is full for it: no /{size} is free in {ip(short.full)}"
        for unserved in made.unserved if made else ():
            if unserved.node.name == self.name:
                yield f"no candidate gives {ip(unserved.families)}"
        conflicts = [conflict for conflict in (made.conflicts if made else ()) if conflict.node == self.name]
        yield from (conflict_text(self.cluster, conflict) for conflict in conflicts)
        for pool, pin in self.pins if made and not conflicts else ():
            if pin.block not in self.after:
                yield (
                    f"pool {pool.name} pins {pin.block}, but the node holds another block: "
                    f"ipamc lock {self.cluster.name} --renumber {self.name} moves it"
                )

    def _blocks(self, want: Want | None) -> Iterator[ExplainedBlock]:
        written = set()
        for number, line in self.written:
            written.add(line.block)
            why = self._of_line(line, self.after.get(line.block), want)
            yield ExplainedBlock(
                line=line, number=number, origin=None, why=why, at=self.pin_places.get(line.block)
            )
        for block, line in self.after.items():
            if block not in written:
                origin = self.origins[block]
                at: At | None = self.pin_places.get(block)
                if origin is Origin.ADOPTED:  # all that a node shows is in one object
                    at = next((shown.at for shown in self.evidence.of(want.node)), None) if want else None
                yield ExplainedBlock(
                    line=line,
                    number=0,
                    origin=origin,
                    why=f"the next compile gives it: {_ORIGINS[origin]}",
                    at=at,
                )

    def _of_line(self, line: Line, after: Line | None, want: Want | None) -> str:
        """Say what a line of the lock is, and what becomes of it in the next compile."""
        if after is None:
            return "the next compile gives its addresses to another node"
        if line.state is State.RELEASED:
            return "released: the line is removed when its addresses are given out again"
        if line.state is State.PENDING:
            return self._of_pending(after)
        if line.state is State.QUARANTINED:
            return self._of_quarantined(line, after)
        if after.state is State.QUARANTINED:
            why = "its node moved to its pending block" if after.is_former else "its node left the inventory"
            return f"the next compile puts it in quarantine: {why}"
        if after.state is State.RELEASED:
            return "the next compile releases it: Cilium's operator decides here, and the CiliumNodes say otherwise"
        return self._of_held(line, want)

    def _of_pending(self, after: Line) -> str:
        if after.state is State.HELD:
            return "the next compile makes it held: the node has moved"
        if after.state is State.PENDING:
            return (
                "the node is to move here, by consent; it becomes held when the node shows it, "
                f"or after: ipamc lock {self.cluster.name} --settle {self.name}"
            )
        return "the next compile puts it in quarantine: its node left the inventory"

    def _of_quarantined(self, line: Line, after: Line) -> str:
        if after.in_use:
            return "the next compile gives it back: the node has returned"
        kept = (
            "the node has moved to another block, and this one never returns to it"
            if line.is_former
            else "kept for the node if it returns"
        )
        days = self.cluster.quarantine_days
        until = "for ever" if days is None else f"until {first_day(line.since, days) or 'the calendar ends'}"
        return f"{kept}; in quarantine {until}"

    def _of_held(self, line: Line, want: Want | None) -> str:
        found = self.range_index.of(line.block)
        if found is None:
            return "a node keeps the block that it holds, although it is outside every pool now"
        pool = found.pool
        if line.block in self.started:
            return "what the node starts with: Cilium's operator gives out this pool's blocks, and no CiliumNode of the input shows that the node has it now"
        if any(pin.block == line.block for pin in pool.pins.get(self.name, ())):
            return "its pin, which it holds"
        if want and pool.name in self._serving(want):
            return "a node keeps the block that it holds"
        why_not = never(pool) or "does not select it now"
        return f"a node keeps the block that it holds, although pool {pool.name} {why_not}"

    def _serving(self, want: Want) -> frozenset[str]:
        """Return the pools that serve a node, or may take the place of one that does."""
        if self.serving is None:
            enabled = {pool.name for pool in self.cluster.pools if not never(pool)}
            offers = Offers(want.offers)
            self.serving = frozenset({offer.pool.name for offer in offers} | (offers.overflow & enabled))
        return self.serving


_ORIGINS = {
    Origin.FIRST_FIT: "first fit, the lowest free place in the order of the pool's ranges",
    Origin.RE_USED: "re-used, because nothing is free: it lies over old lines whose quarantine is over",
    Origin.PIN: "its pin",
    Origin.ADOPTED: "adopted, because the running node shows it",
    Origin.RETURNED: "returned, because it was the node's before",
    Origin.RENUMBER: "renumbered by consent",
}
