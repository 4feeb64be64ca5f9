"""The lines of two locks, compared: what was added, left, released, renumbered or vanished.

A line that is the same costs one look-up.

A compile records its own decisions (`Plan.origins`). Decisions between the base and the head are derived from
the lines, the pins and the inventory: a block that the inventory shows is then called adopted, even if the
compiler placed it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from ipamc.model.address_sets import lines_over
from ipamc.model.cidr import Block
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Key, Line, State
from ipamc.model.plan import Origin, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedBlock:
    """A block that its node did not hold before."""

    line: Line
    origin: Origin
    """Any but RENUMBER."""
    of: str = ""
    """Another node that has these addresses in the base's lock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerBlock:
    """A block that its node no longer has."""

    line: Line
    """Its line in the head; in the base if the head has none."""
    before: Line | None
    """Its line in the base, if there is one."""
    to: str = ""
    """The node that has its addresses now, if the head has no such line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renumber:
    """A node whose block changes, or is to change."""

    node: str
    old: tuple[Line, ...]
    """The blocks that it holds until it moves, or held. By family and address, as `new`."""
    new: tuple[Line, ...]
    """Empty if the node lost a block and got none."""
    why: str
    moves: bool = False
    """Of a completed one: the node runs, and nothing shows its new blocks yet, so it is still to move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTransfer:
    """Lines whose range belongs to another pool now, or to one of another name: no node moves."""

    before: str
    after: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Nodes, each counted once."""

    renumbered: int
    """As `renumbered` counts them."""
    added: int
    """They have a new block, and are not renumbered."""
    left: int
    """They held a block at the base and hold none now.

    Without renamed nodes, and those whose line vanished.
    """
    vanished: int
    unchanged: int
    """They hold the same blocks as at the base."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChanges:
    """What became of every line. Tuples are in order of family and address, renumbers in order of node."""

    added: tuple[AddedBlock, ...] = ()
    left: tuple[FormerBlock, ...] = ()
    released: tuple[FormerBlock, ...] = ()
    pending: tuple[Renumber, ...] = ()
    """New pending lines."""
    still_pending: tuple[Renumber, ...] = ()
    """Lines that were pending in the base: no change, but every plan lists them."""
    completed: tuple[Renumber, ...] = ()
    """The node no longer holds its old block."""
    vanished: tuple[Line, ...] = ()
    pool_transfers: tuple[PoolTransfer, ...] = ()
    counts: Counts


def renumbered(ended: Iterable[Line], begun: Iterable[Line], present: Collection[str]) -> set[str]:
    """Return the nodes whose blocks change: compile, lock and plan call these renumbered.

    A node is renumbered if it no longer holds a block that it held, or if a block is newly pending for it.
    `ended` are the lines of the base that the head does not have, `begun` those of the head that the base did
    not have; a line that is the same in both may be in both. `present` are the nodes of the inventory: a node
    that left it is not renumbered.
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
    """Return what became of the base's lines, and where the head's lines come from. O(n log n).

    `why_pending`: why a held block is misplaced. `quarantined_after`: lines whose quarantine began on this
    day or before are given out again without consent.
    """
    comparison = _Comparison(before, plan)
    pending, still_pending = comparison.pending(why_pending)
    added = tuple(comparison.added())
    left, released, vanished = comparison.former(quarantined_after)
    renamed = {block.of for block in added if block.origin is Origin.RENAMED}
    moved = renumbered(comparison.ended, comparison.begun, comparison.present)
    joined = {block.line.node for block in added} - moved
    lost = {line.node for line in vanished if line.node not in comparison.present}
    return LineChanges(
        added=added,
        left=left,
        released=released,
        pending=pending,
        still_pending=still_pending,
        completed=tuple(comparison.completed()),
        vanished=vanished,
        pool_transfers=comparison.pool_transfers(),
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
    """The lines that differ, and those of them that replace each other."""

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

    def completed(self) -> Iterator[Renumber]:
        planned = {node.name for node in self.plan.cluster.nodes if node.planned} if self.lost else ()
        for group, old in sorted(self.lost.items()):
            new = self.gained.get(group, [])
            shown = {(line.node, line.block) for line in new} <= self._shown
            moves = self._is_settled(old[0], new) and not shown and group[0] not in planned
            why = self._why_completed(old[0], new, moves=moves)
            yield Renumber(node=group[0], old=tuple(old), new=tuple(new), why=why, moves=moves)

    def _was_pending(self, new: list[Line]) -> bool:
        return any(
            (was := self.old.get(line.block)) and was.state is State.PENDING and was.node == line.node
            for line in new
        )

    def _is_settled(self, old: Line, new: list[Line]) -> bool:
        """Return whether the lines record that a node has left its block by consent."""
        now = self.new.get(old.block)
        return self._was_pending(new) or bool(now and now.moved)

    def _why_completed(self, old: Line, new: list[Line], *, moves: bool) -> str:
        now = self.new.get(old.block)
        if self._was_pending(new):
            return "it was pending, and is settled" + (
                ": the node moves with the next apply" if moves else ""
            )
        if now and now.state is State.QUARANTINED:
            return (
                f"renumbered by consent since the base{': the node moves with the next apply' if moves else ''}"
                if now.moved
                else "its block is in quarantine"
            )
        if now and now.state is State.RELEASED:
            return "its block was released"
        if taken := [
            line.node for line in lines_over(self.plan.lock.lines, old.block) if line.node != old.node
        ]:
            return f"node {taken[0]} has its addresses now, and no line records a consent"
        return (
            "its addresses are in another of its own blocks now"
            if lines_over(self.plan.lock.lines, old.block)
            else "its line vanished from the lock"
        )

    def pending(self, why: Mapping[Block, str]) -> tuple[tuple[Renumber, ...], tuple[Renumber, ...]]:
        begun = {line.block for line in self.begun}
        groups = self._by_group(line for line in self.plan.lock.lines if line.state is State.PENDING)
        held = self._by_group(
            line for node in {group[0] for group in groups} for line in self.plan.held.get(node, ())
        )
        pending: list[Renumber] = []
        still_pending: list[Renumber] = []
        for group, new in sorted(groups.items()):
            old = held.get(group, [])
            reason = next((why[line.block] for line in old if line.block in why), "") or self._aim(old, new)
            renumber = Renumber(node=group[0], old=tuple(old), new=tuple(new), why=reason)
            (pending if any(line.block in begun for line in new) else still_pending).append(renumber)
        return tuple(pending), tuple(still_pending)

    def _aim(self, old: list[Line], new: list[Line]) -> str:
        """Say where a node moves whose old block is not misplaced."""
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

    def added(self) -> Iterator[AddedBlock]:
        for group, lines in self.gained.items():
            for line in lines if group not in self.lost else ():
                had = [was for was in lines_over(self.before, line.block) if was.node != line.node]
                origin = self._origin(line, had)
                yield AddedBlock(line=line, origin=origin, of=had[0].node if had else "")

    def _origin(self, line: Line, had: list[Line]) -> Origin:
        decided = self.plan.origins.get(line.block)
        if decided and decided is not Origin.RENUMBER:
            return decided
        was = self.old.get(line.block)
        if was and was.node == line.node and was.state is not State.RELEASED:
            return Origin.RETURNED
        if was and was.in_use:
            return Origin.RENAMED
        if self._pinned(line):
            return Origin.PIN
        if (line.node, line.block) in self._shown:
            return Origin.ADOPTED
        return Origin.RE_USED if had else Origin.FIRST_FIT

    @cached_property
    def _shown(self) -> set[tuple[str, Block]]:
        """Return the blocks that the inventory shows, each with its node."""
        evidence = Evidence(self.plan.cluster)
        return {(shown.node, shown.block) for node in self.plan.cluster.nodes for shown in evidence.of(node)}

    def former(
        self, quarantined_after: str
    ) -> tuple[tuple[FormerBlock, ...], tuple[FormerBlock, ...], tuple[Line, ...]]:
        """Return what is left, what is released, and what vanished.

        Addresses that were given out during their quarantine were released in between.
        """
        left = [
            FormerBlock(line=line, before=self.old.get(line.block))
            for line in self.begun
            if line.state is State.QUARANTINED and line.block not in self.replaced
        ]
        released = [
            FormerBlock(line=line, before=self.old.get(line.block))
            for line in self.begun
            if line.state is State.RELEASED and line.block not in self.replaced
        ]
        vanished = []
        for line in self.ended:
            over = lines_over(self.plan.lock.lines, line.block)
            if not over:
                vanished.append(line)
            elif line.since > quarantined_after and over[0].node != line.node:
                released.append(FormerBlock(line=line, before=line, to=over[0].node))
            elif line.block not in self.new and line.block not in self.replaced and line.in_use:
                some = released if line.node in self.present else left
                some.append(FormerBlock(line=line, before=line, to=over[0].node))
        return _in_order(left), _in_order(released), tuple(vanished)

    def pool_transfers(self) -> tuple[PoolTransfer, ...]:
        groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
        for was, now in self._moved_pools:
            groups[was.pool, now.pool].append(now)
        return tuple(
            PoolTransfer(before=before, after=after, lines=tuple(lines))
            for (before, after), lines in sorted(groups.items())
        )


def _same(was: Line, now: Line) -> bool:
    """Return whether a line is the same but for the name of its pool."""
    return was == now or (was.node == now.node and msgspec.structs.replace(was, pool=now.pool) == now)


def _in_order(blocks: Iterable[FormerBlock]) -> tuple[FormerBlock, ...]:
    return tuple(sorted(blocks, key=lambda block: block.line.block))
