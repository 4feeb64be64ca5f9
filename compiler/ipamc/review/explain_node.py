"""Explains a node's blocks: collects the decisions of all stages about the node, and decides nothing.

`assign` chose the pools that serve the node, and their order; `reconcile` decides about its lines; `place`
finds the block that it would get now, or the reason for none. The lock does not record why a block was chosen
at first: a held block stays because it is in the lock.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ipamc.check.drift import check_drift, find_drift
from ipamc.model.cluster import Cluster, Scheme
from ipamc.model.diagnostics import At, Diagnostic, count, errors_of
from ipamc.model.evidence import Evidence
from ipamc.model.follows import address_for
from ipamc.model.lock import Consent, Line, Lock, State
from ipamc.model.ownership import RangeIndex
from ipamc.model.plan import Offers, Origin, Reconciled, Want
from ipamc.model.pool_words import terms, why_only_pins
from ipamc.model.wording import ip
from ipamc.place.allocate.allocate import Placement, conflict_text, place
from ipamc.place.candidates import assign, shared_pools, unlisted_pools
from ipamc.place.quarantine import first_day
from ipamc.place.reconcile.reconcile import reconcile
from ipamc.review.explain_pools import ExplainedPool, explain_pools
from ipamc.review.shown_pools import started_with


class NodeStatus(enum.StrEnum):
    """The state of a node: the first seven are for nodes of the inventory, the rest for other names."""

    HELD = "held"  # it holds a block
    PENDING = "pending"  # it holds a block, and will move to another
    NEWCOMER = "newcomer"
    RETURNING = "returning"
    SKIPPED = "skipped"  # no pool selects it, and `unmatchedNodes: skip` is set
    UNMATCHED = "unmatched"  # no pool selects it
    REFUSED = "refused"  # it gets no block
    LEAVING = "leaving"  # the lock has blocks in use for it
    QUARANTINED = "quarantined"
    RELEASED = "released"
    UNLISTED = "unlisted"  # only a CiliumNode shows it
    PINNED = "pinned"  # only pins name it


class ExplainedBlock(Struct, frozen=True, kw_only=True):
    """A block of the node: in the lock, or given to it by the next compile."""

    line: Line  # as in the lock; for a new block, as it will be
    number: int  # row of the lock, from 1; 0 of a new block
    origin: Origin | None  # why it is new; None for a block in the lock
    why: str
    at: At | None = None
    """The place in the input that names the block: a pin, or the object that shows it."""
    follows: bool = False
    """The block is computed from the node's address."""


class ExplainedNode(Struct, frozen=True, kw_only=True):
    """The reasons for the blocks of one node of one cluster."""

    cluster: str
    node: str
    status: NodeStatus
    at: At | None  # the node in the inventory, or the CiliumNode that shows it
    labels: Mapping[str, str] = {}  # the labels that selectors test
    pools: tuple[ExplainedPool, ...] = ()
    """The pools that serve the node, in order, then the others by rank; empty if not in the inventory."""
    blocks: tuple[ExplainedBlock, ...]  # by family and address
    notes: tuple[str, ...]
    planned: bool = False  # the inventory says that it has not joined yet: nobody uses its blocks


def explain_node(cluster: Scheme, lock: Lock, name: str, today: str) -> ExplainedNode | None:
    """Explain the blocks of a node as of `today` (ISO 8601, UTC); None if the cluster does not know it.
    Costs as much as the decisions of a compile, unless the node is explained alone.
    """
    return explain_alone(cluster, lock, name, today) or explain_among_all(cluster, lock, name, today)


def explain_alone(cluster: Scheme, lock: Lock, name: str, today: str) -> ExplainedNode | None:
    """Explain a node of the inventory that keeps its blocks and needs none; None for any other.
    No other node is looked at. The needs of others change nothing for it: its lines are held, it shows no
    other blocks, and where Cilium's operator allocates, it shows these. Whether pools are full is taken from
    the lock as it is. The answer does not say whether a compile is refused because of other nodes.
    """
    node = next((node for node in cluster.nodes if node.name == name), None)
    lines = tuple([line for line in lock.lines if line.node == name]) if node else ()
    settled = bool(lines) and all(line.state is State.HELD for line in lines)
    if node is None or not settled or cluster.own_pools:  # other nodes decide which pools are shared
        return None
    seen = tuple([seen for seen in cluster.cilium_nodes if seen.name == name])
    alone = replace(cluster, nodes=(node,), cilium_nodes=seen)
    wants = assign(alone)
    shared = shared_pools(alone, wants)
    shown = {shown.block for shown in Evidence(alone).of(node)}
    if (shared or unlisted_pools(alone)) and not all(line.block in shown for line in lines):
        return None  # the operator may give a block that the node does not show to another one
    own = replace(lock, lines=lines)
    reconciled, found = reconcile(alone, wants, own, Consent(), today, locked=False, shared=shared)
    if reconciled.stale or reconciled.demands or reconciled.renumbers or errors_of(found):
        return None
    placement = place(alone, wants, reconciled, today)
    if _drift(placement):
        return None
    now = replace(placement, after=replace(placement.after, lines=lock.lines))
    return _Decisions(alone, lock, name, today, reconciled, now).of_listed(wants[0], [])


def explain_among_all(cluster: Scheme, lock: Lock, name: str, today: str) -> ExplainedNode | None:
    """Explain any node, with all decisions of the next compile; None if the cluster does not know it."""
    wants = assign(cluster)
    shared = shared_pools(cluster, wants)
    reconciled, found = reconcile(cluster, wants, lock, Consent(), today, locked=False, shared=shared)
    refused = errors_of(found)
    placement = None if refused else place(cluster, wants, reconciled, today)
    refused = _drift(placement) if placement else refused
    decisions = _Decisions(cluster, lock, name, today, reconciled, placement)
    want = next((want for want in wants if want.node.name == name), None)
    return decisions.of_listed(want, refused) if want else decisions.of_unlisted()


def _drift(placement: Placement) -> list[Diagnostic]:
    """Return the errors about nodes that show other blocks than the plan."""
    plan = placement.plan
    if not isinstance(plan.scheme, Cluster):
        return []
    return errors_of(check_drift(find_drift(plan)))


class _Decisions:
    """The decisions of the stages about one node."""

    def __init__(
        self,
        cluster: Scheme,
        lock: Lock,
        name: str,
        today: str,
        reconciled: Reconciled,
        placement: Placement | None,
    ) -> None:
        self.cluster, self.name, self.today, self.placement = cluster, name, today, placement
        self.lines = [(number, line) for number, line in enumerate(lock.lines, 2) if line.node == name]
        after = placement.plan.lock.lines if placement else reconciled.lock.lines
        self.after = {line.block: line for line in after if line.node == name}
        self.origins = placement.plan.origins if placement else reconciled.origins
        self.ranges = RangeIndex(cluster.pools)
        self.started = started_with(cluster, lock)
        self.pins = [(pool, pin) for pool in cluster.pools if name in pool.pins for pin in pool.pins[name]]
        self.evidence = Evidence(cluster)
        self.followed = {pin.block for pool, pin in self.pins if pool.follows}
        self.pin_places = {pin.block: pin.at for _, pin in reversed(self.pins)}

    def of_listed(self, want: Want, refused: list[Diagnostic]) -> ExplainedNode:
        selectors = [pool.selector for pool in self.cluster.pools]
        selectors += [size.selector for pool in self.cluster.pools for size in pool.block_sizes]
        keys = sorted({key for selector in selectors for key in selector.keys} & want.node.labels.keys())
        status, notes = self._status(want)
        if refused:
            codes = ", ".join(sorted({finding.code for finding in refused}))
            errors = f"{count(len(refused), 'error')} ({codes})"
            check = f"ipamc compile {self.cluster.name} --check"
            notes.append(f"the next compile fails with {errors}: {check}")
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
        seen = next((seen for seen in self.cluster.cilium_nodes if seen.name == self.name), None)
        pinning = [pool.name for pool in self.cluster.pools if self.name in pool.pins]
        if any(line.in_use for _, line in self.lines):
            status = NodeStatus.LEAVING
        elif any(line.state is State.QUARANTINED for _, line in self.lines):
            status = NodeStatus.QUARANTINED
        elif seen:
            status = NodeStatus.UNLISTED
        elif self.lines or pinning:
            status = NodeStatus.RELEASED if self.lines else NodeStatus.PINNED
        else:
            return None
        notes = [f"pool {pool} keeps pinned blocks for it" for pool in pinning]
        if seen:
            for block in dict.fromkeys((*seen.blocks, *(block for block, _ in seen.allocated))):
                place = self.ranges.of(block)
                unlisted = place and place.pool.unlisted
                given = "the operator gave it out of" if unlisted else "it counts as used in"
                where = f"pool {place.pool.name}" if place else "no pool"
                notes.append(f"a CiliumNode shows {block}: {given} {where}")
        return ExplainedNode(
            cluster=self.cluster.name,
            node=self.name,
            status=status,
            at=seen.at if seen else None,
            blocks=tuple(self._blocks(None)),
            notes=(f"not {terms(self.cluster).listed}", *notes),
        )

    def _status(self, want: Want) -> tuple[NodeStatus, list[str]]:
        notes = [*self._shortages()]
        gained = [line.block for line in self.after.values() if line.state is State.HELD]
        if any(line.state is State.HELD for _, line in self.lines):
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
        if made is None:
            return
        for short in made.short:
            if short.node.name == self.name and short.full:
                size = short.offer.sizes[short.full[0]]
                yield f"pool {short.offer.pool.name} is full for it: no /{size} is free in {ip(short.full)}"
        for unserved in made.unserved:
            if unserved.node.name == self.name:
                yield f"no candidate gives {ip(unserved.families)}"
        conflicts = [conflict for conflict in made.conflicts if conflict.node == self.name]
        yield from (conflict_text(self.cluster, conflict) for conflict in conflicts)
        for pool, pin in () if conflicts else self.pins:
            if pin.block not in self.after:
                address = address_for(pool, pin.block)
                held = f"{pin.block} follows {address}" if address else f"pool {pool.name} pins {pin.block}"
                held += ", but the node holds another block"
                yield f"{held}: ipamc lock {self.cluster.name} --renumber {self.name} moves it"

    def _blocks(self, want: Want | None) -> Iterator[ExplainedBlock]:
        for number, line in self.lines:
            why, pin = self._of_line(line, self.after.get(line.block), want), self.pin_places.get(line.block)
            follows = line.block in self.followed
            yield ExplainedBlock(line=line, number=number, origin=None, why=why, at=pin, follows=follows)
        known = {line.block for _, line in self.lines}
        for block, line in self.after.items():
            if block not in known:
                origin = self.origins[block]
                at: At | None = self.pin_places.get(block)
                if origin is Origin.ADOPTED:  # all that a node shows is in one object
                    at = next((shown.at for shown in self.evidence.of(want.node)), None) if want else None
                why = f"the next compile gives it: {_ORIGINS[origin]}"
                follows = block in self.followed
                yield ExplainedBlock(line=line, number=0, origin=origin, why=why, at=at, follows=follows)

    def _of_line(self, line: Line, after: Line | None, want: Want | None) -> str:
        """Return a phrase for a line of the lock: its meaning, and what the next compile does with it."""
        if after is None:
            return "the next compile gives its addresses to another node"
        if line.state is State.RELEASED:
            return "released; the line disappears when its addresses are given out again"
        place = self.ranges.of(line.block)
        if after.state is State.RELEASED and place and place.pool.follows:
            return f"the next compile releases it: pool {place.pool.name} {why_only_pins(place.pool)}"
        if line.state is State.QUARANTINED:
            if after.in_use:
                return "the next compile gives it back, because the node has returned"
            kept = "kept for the node if it returns"
            if line.moved:
                kept = "the node has moved to another block and cannot get this one back"
            days = self.cluster.quarantine_days
            until = (
                "forever" if days is None else f"until {first_day(line.since, days) or 'the calendar ends'}"
            )
            return f"{kept}; in quarantine {until}"
        if line.state is State.PENDING:
            if after.state is State.HELD:
                return "the next compile makes it held, because the node has moved"
            if after.state is State.PENDING:
                settle = f"ipamc lock {self.cluster.name} --settle {self.name}"
                held = "it becomes held when the node shows it"
                return f"the node moves here by consent; {held}, or after: {settle}"
            return f"the next compile puts it in quarantine: {terms(self.cluster).gone}"
        if after.state is State.QUARANTINED:
            why = "its node moved to its pending block" if after.moved else terms(self.cluster).gone
            return f"the next compile puts it in quarantine: {why}"
        if after.state is State.RELEASED:
            operator = "Cilium's operator chooses here, and the CiliumNodes have other blocks"
            return f"the next compile releases it: {operator}"
        return self._of_held(line, want)

    def _of_held(self, line: Line, want: Want | None) -> str:
        place = self.ranges.of(line.block)
        if place is None:
            return f"{terms(self.cluster).keeps}, although it is outside all pools now"
        pool = place.pool
        if line.block in self.started:
            operator = "Cilium's operator gives out this pool's blocks"
            shows = "no CiliumNode of the input shows this one"
            return f"the node starts with it: {operator}, but {shows}"
        if any(pin.block == line.block for pin in pool.pins.get(self.name, ())):
            address = address_for(pool, line.block)
            return f"it follows {address}, the node's address" if address else "its pin, which it holds"
        offers = Offers(want.offers) if want else None
        overflows = offers is not None and pool.name in offers.overflow and not why_only_pins(pool)
        if offers is not None and (overflows or any(offer.pool.name == pool.name for offer in offers)):
            return terms(self.cluster).keeps
        why_not = why_only_pins(pool) or "does not select it now"
        return f"{terms(self.cluster).keeps}, although pool {pool.name} {why_not}"


_ORIGINS = {
    Origin.FIRST_FIT: "first fit: the first free block in the order of the pool's ranges",
    Origin.RE_USED: "re-used: nothing is free, so it overlaps old lines whose quarantine is over",
    Origin.PIN: "its pin",
    Origin.FOLLOWS: "it follows the node's address",
    Origin.ADOPTED: "adopted: the running node shows it",
    Origin.RETURNED: "returned: the node had it before",
    Origin.RENUMBER: "renumbered by consent",
}
