"""How a node comes to its blocks: what the stages decided about one node, put side by side. Nothing is decided here.

`assign` says which pools serve it and in what order, `settle` what becomes of its lines, `place` what it would be given now and why not. The lock does
not say why a block was chosen when it was new: a held block is held because it is in the lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Diagnostic, Place, Severity, count
from ipamc.model.lock import Consent, Line, Lock, State
from ipamc.model.plan import Reconciled, Want
from ipamc.model.range_index import RangeIndex
from ipamc.place.allocate.allocate import Placement, never, place
from ipamc.place.allocate.pins import conflict_text
from ipamc.place.allocate.reuse import first_day
from ipamc.place.allocate.shortage import ip
from ipamc.place.candidates import assign
from ipamc.place.reconcile.adopt import Evidence
from ipamc.place.reconcile.reconcile import settle
from ipamc.review.explain_pools import Seen, sight


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A block of the node: in the lock, or to be given to it by the next compile."""

    line: Line
    """As it is in the lock; of a new block, as it will be."""
    number: int
    """Row of the lock, from 1; 0 of a new block."""
    origin: str
    """Why it is new (`Plan.origins`), or ""."""
    why: str
    at: Place | None = None
    """Where the input asks for this very block: its pin, or what shows that the node has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The chain of reasons for one node of one cluster."""

    cluster: str
    node: str
    status: str
    """Of a node of the inventory: held, pending, newcomer, returning, skipped, unmatched, refused; else leaving, quarantined, released, unlisted, pinned."""
    at: Place | None
    """Of the node in the inventory, or the CiliumNode that shows it."""
    labels: Mapping[str, str]
    """Those that a selector looks at."""
    pools: tuple[Seen, ...]
    """In the order in which they serve the node, then the others by rank; none of a node that is not in the inventory."""
    steps: tuple[Step, ...]
    """By family and address."""
    notes: tuple[str, ...]


def trace(cluster: Cluster, lock: Lock, name: str, today: str) -> Trace | None:
    """Tell how a node comes to its blocks, as of `today` (ISO 8601, UTC); None where the cluster does not know it. Costs what a compile's decisions cost."""
    wants = assign(cluster)
    standing, found = settle(cluster, wants, lock, Consent(), today, locked=False)
    refused = [each for each in found if each.severity is Severity.ERROR]
    placement = None if refused else place(cluster, wants, standing, today)
    story = _Story(cluster, lock, name, today, standing, placement)
    want = next((each for each in wants if each.node.name == name), None)
    return story.of_a_node(want, refused) if want else story.of_a_stranger()


class _Story:
    """What is known about one node."""

    def __init__(
        self,
        cluster: Cluster,
        lock: Lock,
        name: str,
        today: str,
        standing: Reconciled,
        placement: Placement | None,
    ) -> None:
        self.cluster, self.name, self.today, self.standing, self.placement = (
            cluster,
            name,
            today,
            standing,
            placement,
        )
        self.written = [(number, line) for number, line in enumerate(lock.lines, 2) if line.node == name]
        after = placement.plan.lock.lines if placement else standing.lock.lines
        self.after = {line.block: line for line in after if line.node == name}
        self.origins = placement.plan.origins if placement else standing.origins
        self.range_index = RangeIndex(cluster.pools)

    def of_a_node(self, want: Want, refused: list[Diagnostic]) -> Trace:
        """Tell of a node of the inventory."""
        selectors = [
            each
            for pool in self.cluster.pools
            for each in (pool.selector, *(size.selector for size in pool.block_sizes))
        ]
        keys = sorted({key for selector in selectors for key in selector.keys} & want.node.labels.keys())
        status, notes = self._status(want)
        if refused:
            codes = ", ".join(sorted({each.code for each in refused}))
            notes.append(
                f"the next compile is refused as it is, with {count(len(refused), 'error')} ({codes}): ipamc compile {self.cluster.name} --check"
            )
        return Trace(
            cluster=self.cluster.name,
            node=self.name,
            status=status,
            at=want.node.at,
            labels={key: want.node.labels[key] for key in keys},
            pools=sight(self.cluster, want, self.placement, self.today),
            steps=tuple(self._steps(want)),
            notes=tuple(notes),
        )

    def of_a_stranger(self) -> Trace | None:
        """Tell of a name that is not in the inventory."""
        ghost = next((each for each in self.cluster.cilium_nodes if each.name == self.name), None)
        pinning = [pool.name for pool in self.cluster.pools if self.name in pool.pins]
        if any(line.in_use for _, line in self.written):
            status = "leaving"
        elif any(line.state is State.QUARANTINED for _, line in self.written):
            status = "quarantined"
        elif ghost:
            status = "unlisted"
        elif self.written or pinning:
            status = "released" if self.written else "pinned"
        else:
            return None
        notes = [f"pool {pool} pins blocks for it, which are kept free" for pool in pinning]
        if ghost:
            for block in dict.fromkeys(block for block, _ in (*ghost.blocks, *ghost.allocated)):
                ground = self.range_index.of(block)
                given = (
                    "the operator gave it out of"
                    if ground and ground.pool.unlisted
                    else "it counts as taken, in"
                )
                notes.append(
                    f"a CiliumNode shows {block}: {given} {f'pool {ground.pool.name}' if ground else 'no pool'}"
                )
        return Trace(
            cluster=self.cluster.name,
            node=self.name,
            status=status,
            at=ghost.at if ghost else None,
            labels={},
            pools=(),
            steps=tuple(self._steps(None)),
            notes=("not in the inventory", *notes),
        )

    def _status(self, want: Want) -> tuple[str, list[str]]:
        """Give the status, and why blocks are missing."""
        notes = [*self._shortages()]
        held = any(line.state is State.HELD for _, line in self.written)
        coming = [line for line in self.after.values() if line.state is State.HELD]
        if held:
            return "pending" if any(
                line.state is State.PENDING for line in self.after.values()
            ) else "held", notes
        if coming:
            return "returning" if any(
                self.origins.get(line.block) == "returned" for line in coming
            ) else "newcomer", notes
        if not want.offers:
            skips = self.cluster.unmatched_nodes == "skip"
            return "skipped" if skips else "unmatched", [
                *notes,
                f"no enabled pool selects it{', and unmatchedNodes: skip is set' if skips else ''}",
            ]
        return "refused", notes

    def _shortages(self) -> Iterator[str]:
        made = self.placement
        for short in made.short if made else ():
            if short.node.name == self.name and short.full:
                yield f"pool {short.offer.pool.name} is full for it: no /{short.offer.sizes[short.full[0]]} is free in {ip(short.full)}"
        for none in made.unserved if made else ():
            if none.node.name == self.name:
                yield f"no candidate gives {ip(none.families)}"
        conflicts = [each for each in (made.conflicts if made else ()) if each.node == self.name]
        yield from (conflict_text(self.cluster, each) for each in conflicts)
        for pool in self.cluster.pools if made and not conflicts else ():
            for pin in pool.pins.get(self.name, ()):
                if pin.block not in self.after:
                    yield f"pool {pool.name} pins {pin.block}, and the node holds another: ipamc lock {self.cluster.name} --renumber {self.name} moves it"

    def _steps(self, want: Want | None) -> Iterator[Step]:
        known = set()
        for number, line in self.written:
            known.add(line.block)
            after = self.after.get(line.block)
            yield Step(
                line=line,
                number=number,
                origin="",
                why=self._of_line(line, after, want),
                at=self._asked(line),
            )
        for block, line in self.after.items():
            if block not in known:
                origin = self.origins.get(block, "")
                at = self._shown(line, want) if origin == "adopted" else self._asked(line)
                yield Step(
                    line=line,
                    number=0,
                    origin=origin,
                    why=f"the next compile gives it: {_ORIGINS[origin]}",
                    at=at,
                )

    def _asked(self, line: Line) -> Place | None:
        """Give the place of the pin."""
        pins = (pin for pool in self.cluster.pools for pin in pool.pins.get(self.name, ()))
        return next((pin.at for pin in pins if pin.block == line.block), None)

    def _shown(self, line: Line, want: Want | None) -> Place | None:
        """Give the place of what shows that the node has a block."""
        claims = Evidence(self.cluster).of(want.node) if want else ()
        return next((claim.at for claim in claims if claim.block == line.block), None)

    def _of_line(self, line: Line, after: Line | None, want: Want | None) -> str:
        """Say what a line of the lock is, and what the next compile makes of it."""
        if after is None:
            return "the next compile gives its addresses to another"
        if line.state is State.RELEASED:
            return "released: the line goes when its addresses are given out again"
        if line.state is State.PENDING:
            return (
                "the next compile makes it held: the node has moved" if after.state is State.HELD
                else "the node is to move here, by consent; it is held when the node shows it, or after: "
                f"ipamc lock {self.cluster.name} --settle {self.name}" if after.state is State.PENDING
                else "the next compile puts it in quarantine: its node is gone from the inventory"
            )  # fmt: skip
        if line.state is State.QUARANTINED:
            return self._of_quarantined(line, after)
        if after.state is State.QUARANTINED:
            why = (
                "its node moved to its pending block"
                if after.moved
                else "its node is gone from the inventory"
            )
            return f"the next compile puts it in quarantine: {why}"
        return self._of_held(line, want)

    def _of_quarantined(self, line: Line, after: Line) -> str:
        if after.in_use:
            return "the next compile gives it back: the node has returned"
        never_back = (
            "the node has another block since, so it never returns to this one"
            if line.moved
            else "kept for the node, should it return"
        )
        days = self.cluster.quarantine_days
        until = "for ever" if days is None else f"until {first_day(line.since, days) or 'the calendar ends'}"
        return f"{never_back}; in quarantine {until}"

    def _of_held(self, line: Line, want: Want | None) -> str:
        ground = self.range_index.of(line.block)
        if ground is None:
            return "a node keeps the block that it holds, although it lies in no pool now"
        pool = ground.pool
        if any(pin.block == line.block for pin in pool.pins.get(self.name, ())):
            return "its pin, which it holds"
        offers = want.offers if want else ()
        serving = {each.pool.name for offer in offers for each in (offer, *offer.instead)}
        if pool.name in serving:
            return "a node keeps the block that it holds"
        return f"a node keeps the block that it holds, although pool {pool.name} {never(pool) or 'does not select it now'}"


_ORIGINS = {
    "first fit": "first fit, the lowest free place in the order of the pool's ranges",
    "re-used": "re-used, as nothing is free: it lies over old lines whose wait is over",
    "pin": "its pin",
    "adopted": "adopted, as the live node shows it",
    "returned": "returned, as it was the node's before",
    "renumber": "renumbered by consent",
}
