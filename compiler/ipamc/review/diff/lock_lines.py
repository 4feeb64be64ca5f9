"""The lines of two locks, told apart by what became of their nodes. Lines that are the same cost one look-up each.

What a compile decides now it says itself (`Plan.origins`). What was decided between the two sides is read from what they show: the lines, the pins
and the inventory; a block that an inventory shows is then called adopted, whoever gave it out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ipamc.model.address_sets import lines_over
from ipamc.model.cidr import Block
from ipamc.model.lock import Key, Line, State
from ipamc.model.plan import Plan
from ipamc.place.reconcile.adopt import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A block that its node did not hold before."""

    line: Line
    origin: str
    """first fit, pin, returned, adopted, re-used or renamed."""
    of: str = ""
    """Who had these addresses in the base's lock, if it was somebody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A line that nobody holds any more."""

    line: Line
    """As it is now; as it was where the head has no such line."""
    before: Line | None
    """As it was; None where the base had no such line."""
    to: str = ""
    """Who has its addresses now, where the line itself is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renumber:
    """A node whose block changes, or is to change."""

    node: str
    old: tuple[Line, ...]
    """What it holds until it moves, or held. By family and address, as `new`."""
    new: tuple[Line, ...]
    """Empty where a block was taken away and none given."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repooled:
    """Lines whose pool has another name now, or another pool has their ground: nobody moves."""

    before: str
    after: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Nodes, each counted once."""

    renumbered: int
    """As `renumbered` says."""
    added: int
    """With a block more, and not renumbered."""
    left: int
    """They held a block at the base and hold none now; a renamed node did not leave, and one whose line vanished is counted there."""
    vanished: int
    unchanged: int
    """They hold what they held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChanges:
    """What became of every line. Tuples are in order of family and address, renumbers in order of node."""

    added: tuple[Added, ...] = ()
    left: tuple[Gone, ...] = ()
    released: tuple[Gone, ...] = ()
    pending: tuple[Renumber, ...] = ()
    """New pending lines."""
    standing: tuple[Renumber, ...] = ()
    """Pending lines that the base had already: no change, and told in every plan."""
    settled: tuple[Renumber, ...] = ()
    vanished: tuple[Line, ...] = ()
    repooled: tuple[Repooled, ...] = ()
    counts: Counts


def renumbered(ended: Iterable[Line], begun: Iterable[Line], present: Collection[str]) -> set[str]:
    """Give the nodes whose blocks change: this is what compile, lock and plan call renumbered.

    A node is renumbered when it no longer holds a block that it held, or when a block is newly pending for it. `ended` are the lines of the base that
    are not in the head as they were, `begun` those of the head that were not in the base; lines that both have may be in both. `present` are the nodes
    that stay in the inventory: who left it is not renumbered.
    """
    begun = tuple(begun)
    ended = tuple(ended)
    holds = {(line.node, line.block) for line in begun if line.state is State.HELD}
    waited = {(line.node, line.block) for line in ended if line.state is State.PENDING}
    moved = {line.node for line in ended if line.state is State.HELD and (line.node, line.block) not in holds}
    coming = {
        line.node for line in begun if line.state is State.PENDING and (line.node, line.block) not in waited
    }
    return {node for node in moved | coming if node in present}


def compare_lines(
    before: Sequence[Line], plan: Plan, why_pending: Mapping[Block, str], quarantined_after: str
) -> LineChanges:
    """Tell what became of the base's lines, and where the head's come from. O(n log n).

    `why_pending`: what is wrong with held blocks. `quarantined_after`: the last day on which a line may have left to be given out again without consent.
    """
    comparison = _Comparison(before, plan)
    settled = tuple(comparison.settled())
    coming, standing = comparison.pending(why_pending)
    added = tuple(comparison.added())
    left, released, vanished = comparison.gone(quarantined_after)
    renamed = {each.of for each in added if each.origin == "renamed"}
    moved = renumbered(comparison.ended, comparison.begun, comparison.present)
    joined = {each.line.node for each in added} - moved
    lost = {line.node for line in vanished if line.node not in comparison.present}
    return LineChanges(
        added=added,
        left=left,
        released=released,
        pending=coming,
        standing=standing,
        settled=settled,
        vanished=vanished,
        repooled=comparison.repooled(),
        counts=Counts(
            renumbered=len(moved),
            added=len(joined),
            left=len(
                {line.node for line in before if line.state is State.HELD}
                - comparison.present
                - renamed
                - lost
            ),
            vanished=len({line.node for line in vanished}),
            unchanged=len(comparison.present - moved - joined),
        ),
    )


class _Comparison:
    """Lines that differ, by what they are."""

    def __init__(self, before: Sequence[Line], plan: Plan) -> None:
        self.plan = plan
        self.old = {line.block: line for line in before}
        self.new = {line.block: line for line in plan.lock.lines}
        self.before = before
        self.present = set(plan.held)
        pairs = [(line, self.new.get(line.block)) for line in before]
        self._moved_pools = [(was, now) for was, now in pairs if now and now != was and _same(was, now)]
        self.ended = [line for line, now in pairs if not (now and _same(line, now))]
        self.begun = [
            line for line in plan.lock.lines if not ((was := self.old.get(line.block)) and _same(was, line))
        ]
        self.lost = self._by_group(
            line for line in self.ended if line.state is State.HELD and line.node in self.present
        )
        self.gained = self._by_group(line for line in self.begun if line.state is State.HELD)
        self.replaced = {line.block for some in self.lost.values() for line in some}

    def _by_group(self, lines: Iterable[Line]) -> dict[Key, list[Line]]:
        groups: dict[Key, list[Line]] = defaultdict(list)
        for line in lines:
            now = self.new.get(line.block)
            pool = "" if self.plan.cluster.mode.one_block else now.pool if now else line.pool
            groups[line.node, line.block.family, pool].append(line)
        return groups

    def settled(self) -> Iterator[Renumber]:
        for group, old in sorted(self.lost.items()):
            new = self.gained.get(group, [])
            yield Renumber(node=group[0], old=tuple(old), new=tuple(new), why=self._why_settled(old[0], new))

    def _why_settled(self, old: Line, new: list[Line]) -> str:
        now = self.new.get(old.block)
        if any(
            (was := self.old.get(line.block)) and was.state is State.PENDING and was.node == line.node
            for line in new
        ):
            return "it was to move, and has moved"
        if now and now.state is State.QUARANTINED:
            return (
                "renumbered by consent since the base, and settled"
                if now.moved
                else "its block is in quarantine"
            )
        if now and now.state is State.RELEASED:
            return "its block was released"
        if taken := [
            line.node for line in lines_over(self.plan.lock.lines, old.block) if line.node != old.node
        ]:
            return f"its addresses are {taken[0]}'s now, and no line says who agreed"
        return (
            "its addresses are in another block of its own now"
            if lines_over(self.plan.lock.lines, old.block)
            else "its line vanished from the lock"
        )

    def pending(self, why: Mapping[Block, str]) -> tuple[tuple[Renumber, ...], tuple[Renumber, ...]]:
        begun = {line.block for line in self.begun}
        groups = self._by_group(line for line in self.plan.lock.lines if line.state is State.PENDING)
        held = self._by_group(
            line for node in {group[0] for group in groups} for line in self.plan.held.get(node, ())
        )
        coming: list[Renumber] = []
        standing: list[Renumber] = []
        for group, new in sorted(groups.items()):
            old = held.get(group, [])
            reason = next((why[line.block] for line in old if line.block in why), "") or self._aim(old, new)
            found = Renumber(node=group[0], old=tuple(old), new=tuple(new), why=reason)
            (coming if any(line.block in begun for line in new) else standing).append(found)
        return tuple(coming), tuple(standing)

    def _aim(self, old: list[Line], new: list[Line]) -> str:
        """Say where a move leads that nothing forces."""
        if any(self._pinned(line) for line in new):
            return "to its pin, by consent"
        if old and old[0].pool != new[0].pool:
            return f"from pool {old[0].pool or 'none'} to {new[0].pool}, by consent"
        if old and old[0].block.prefix != new[0].block.prefix:
            return f"from a /{old[0].block.prefix} to a /{new[0].block.prefix}, by consent"
        return "by consent"

    def _pinned(self, line: Line) -> bool:
        return any(
            pin.block == line.block
            for pool in self.plan.cluster.pools
            for pin in pool.pins.get(line.node, ())
        )

    def added(self) -> Iterator[Added]:
        shown = self._shown()
        for group, lines in self.gained.items():
            for line in lines if group not in self.lost else ():
                had = [was for was in lines_over(self.before, line.block) if was.node != line.node]
                yield Added(line=line, origin=self._origin(line, had, shown), of=had[0].node if had else "")

    def _origin(self, line: Line, had: list[Line], shown: set[tuple[str, Block]]) -> str:
        known = self.plan.origins.get(line.block, "renumber")
        if known != "renumber":
            return known
        was = self.old.get(line.block)
        if was and was.node == line.node and was.state is not State.RELEASED:
            return "returned"
        if was and was.in_use:
            return "renamed"
        if self._pinned(line):
            return "pin"
        return "adopted" if (line.node, line.block) in shown else "re-used" if had else "first fit"

    def _shown(self) -> set[tuple[str, Block]]:
        """Give what the inventory shows of blocks that live nodes have."""
        evidence = Evidence(self.plan.cluster)
        return {(claim.node, claim.block) for node in self.plan.cluster.nodes for claim in evidence.of(node)}

    def gone(self, quarantined_after: str) -> tuple[tuple[Gone, ...], tuple[Gone, ...], tuple[Line, ...]]:
        """Give what was left, what was released, and what vanished. Addresses that were given out in their quarantine were released in between."""
        left = [
            Gone(line=line, before=self.old.get(line.block))
            for line in self.begun
            if line.state is State.QUARANTINED and line.block not in self.replaced
        ]
        released = [
            Gone(line=line, before=self.old.get(line.block))
            for line in self.begun
            if line.state is State.RELEASED and line.block not in self.replaced
        ]
        vanished = []
        for line in self.ended:
            over = lines_over(self.plan.lock.lines, line.block)
            if not over:
                vanished.append(line)
            elif line.since > quarantined_after and over[0].node != line.node:
                released.append(Gone(line=line, before=line, to=over[0].node))
            elif line.block not in self.new and line.block not in self.replaced and line.in_use:
                some = released if line.node in self.present else left
                some.append(Gone(line=line, before=line, to=over[0].node))
        return _in_order(left), _in_order(released), tuple(vanished)

    def repooled(self) -> tuple[Repooled, ...]:
        groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
        for was, now in self._moved_pools:
            groups[was.pool, now.pool].append(now)
        return tuple(
            Repooled(before=before, after=after, lines=tuple(lines))
            for (before, after), lines in sorted(groups.items())
        )


def _same(was: Line, now: Line) -> bool:
    """Tell whether a line is as it was, whatever its pool is called."""
    return was == now or (was.node == now.node and msgspec.structs.replace(was, pool=now.pool) == now)


def _in_order(found: Iterable[Gone]) -> tuple[Gone, ...]:
    return tuple(sorted(found, key=lambda each: each.line.block))
