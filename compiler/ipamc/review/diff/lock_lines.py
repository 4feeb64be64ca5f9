"""The lines of two locks, compared: what was added, left, released, renumbered or vanished.

A line that is the same costs one look-up. A compile records its own decisions (`Plan.origins`). Decisions
between the base and the head are derived from the lines, the pins and the inventory: a block that the
inventory shows is then called adopted, even if the compiler placed it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from ipamc.model.address_sets import lines_over
from ipamc.model.cidr import Block
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Key, Line, State
from ipamc.model.plan import Origin, Plan
from ipamc.review.diff.line_changes import (
    AddedBlock,
    Counts,
    FormerBlock,
    LineChanges,
    PoolTransfer,
    Renumber,
    ResizedBlock,
)
from ipamc.review.diff.taken import taken_blocks
from ipamc.review.renumbered import renumbered


def compare_lines(
    before: Sequence[Line],
    plan: Plan,
    why_pending: Mapping[Block, str],
    quarantined_after: str,
    published: Collection[Block] = frozenset(),
) -> LineChanges:
    """Return what became of the base's lines, and where the head's lines come from. O(n log n).

    `why_pending`: why a held block is misplaced. `quarantined_after`: lines whose quarantine began on this
    day or before are given out again without consent. `published`: blocks that the base rendered for nodes.
    """
    comparison = _Comparison(before, plan, published)
    pending, still_pending = comparison.pending(why_pending)
    added = tuple(comparison.added())
    left, released, vanished = comparison.former(quarantined_after)
    renamed = {block.of for block in added if block.origin is Origin.RENAMED}
    moved = renumbered(
        comparison.ended,
        comparison.begun,
        comparison.present,
        plan.operator_pools,
        one_block=plan.cluster.mode.one_block,
    )
    moved |= {item.line.node for item in comparison.taken} & comparison.present
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
        taken=comparison.taken,
        pool_transfers=comparison.pool_transfers(),
        taken_back=comparison.former_of_operator(),
        given_back=_in_order(
            FormerBlock(line=comparison.new[line.block], before=line) for line in comparison.given_back
        ),
        resized=comparison.resized,
        counts=Counts(
            renumbered=len(moved),
            added=len(joined),
            # Who left holds nothing now, so each of its lines has ended.
            left=len(
                {line.node for line in comparison.ended if line.state is State.HELD}
                - comparison.present
                - renamed
                - lost
            ),
            vanished=len({line.node for line in vanished}),
            unchanged=len(comparison.present) - len(comparison.present & (moved | joined)),
        ),
    )


class _Comparison:
    """The lines that differ, and those of them that replace each other."""

    def __init__(self, before: Sequence[Line], plan: Plan, published: Collection[Block]) -> None:
        self.plan = plan
        self.old = {line.block: line for line in before}
        self.new = {line.block: line for line in plan.lock.lines}
        self.before = before
        self.present = set(plan.held)
        pairs = [
            (line, now)
            for line in before
            if (now := self.new.get(line.block)) is not line and now != line  # most are the same object
        ]
        self.resized = tuple(
            ResizedBlock(line=now, before=was.addresses)
            for was, now in pairs
            if now and now.state is State.HELD and now.addresses != was.addresses and _same(was, now)
        )
        self._moved_pools = [
            (was, now) for was, now in pairs if now and now.pool != was.pool and _same(was, now)
        ]
        self.ended = [line for line, now in pairs if not (now and _same(line, now))]
        self.begun = [
            line
            for line in plan.lock.lines
            if (was := self.old.get(line.block)) is not line and not (was and _same(was, line))
        ]
        shown = self._shown if plan.operator_pools else frozenset()
        self.taken = tuple(taken_blocks(before, self.ended, plan, shown, published))
        taken = {item.line.block for item in self.taken}
        left = [line for line in self.ended if line.state is State.HELD and line.node in self.present]
        given_out = [line for line in left if line.pool in plan.operator_pools and line.block not in taken]
        back = {line.block for line in given_out if not self._moved(line)}
        self.gained = self._by_group(line for line in self.begun if line.state is State.HELD)
        lost = self._by_group(line for line in left if line.block not in back)
        self.given_back = [
            line
            for group, some in lost.items()
            if group not in self.gained and not plan.cluster.mode.one_block
            for line in some
            if self._moved(line) and any(_in_group(held, group) for held in plan.held.get(line.node, ()))
        ]
        unneeded = {line.block for line in self.given_back}
        lost = {group: [line for line in some if line.block not in unneeded] for group, some in lost.items()}
        self.lost = {group: some for group, some in lost.items() if some}
        self.replaced = {line.block for some in self.lost.values() for line in some} | unneeded
        freed = (self.old.get(line.block) for line in self.begun if line.state is State.RELEASED)
        back |= {line.block for line in freed if line and line.pool in plan.operator_pools}
        given = (line for line in self.ended if line.since and line.pool in plan.operator_pools)
        back |= {line.block for line in given if self._of_others(line)}
        self.taken_back = [line for line in before if line.block in back] if back else []
        self.replaced |= back

    def _of_others(self, line: Line) -> bool:
        """Tell whether another node has a block now."""
        now = self.new.get(line.block)
        return now is not None and now.node != line.node

    def _moved(self, line: Line) -> bool:
        """Tell whether the node moved away from a block by consent."""
        now = self.new.get(line.block)
        return now is not None and now.node == line.node and now.moved

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
        if line.pool in self.plan.operator_pools and (line.node, line.block) in self._shown:
            return Origin.ADOPTED
        if was and was.in_use and was.node not in self.present:
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
            elif line.block in self.replaced:
                continue
            elif line.since > quarantined_after and over[0].node != line.node:
                released.append(FormerBlock(line=line, before=line, to=over[0].node))
            elif line.block not in self.new and line.block not in self.replaced and line.in_use:
                some = released if line.node in self.present else left
                some.append(FormerBlock(line=line, before=line, to=over[0].node))
        return _in_order(left), _in_order(released), tuple(vanished)

    def former_of_operator(self) -> tuple[FormerBlock, ...]:
        """Return the blocks that the operator took back, each with the node that has its addresses now."""
        found = []
        for line in self.taken_back:
            over = [
                other for other in lines_over(self.plan.lock.lines, line.block) if other.node != line.node
            ]
            now = self.new.get(line.block)
            mine = now if now and now.node == line.node else line
            found.append(FormerBlock(line=mine, before=line, to=over[0].node if over else ""))
        return _in_order(found)

    def pool_transfers(self) -> tuple[PoolTransfer, ...]:
        groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
        for was, now in self._moved_pools:
            groups[was.pool, now.pool].append(now)
        return tuple(
            PoolTransfer(before=before, after=after, lines=tuple(lines))
            for (before, after), lines in sorted(groups.items())
        )


def _same(was: Line, now: Line) -> bool:
    """Return whether a line is the same but for the name of its pool, and how many of its addresses are rendered."""
    return was == now or (
        was.node == now.node and msgspec.structs.replace(was, pool=now.pool, addresses=now.addresses) == now
    )


def _in_group(line: Line, group: Key) -> bool:
    return line.key(one_block=False) == group


def _in_order(blocks: Iterable[FormerBlock]) -> tuple[FormerBlock, ...]:
    return tuple(sorted(blocks, key=lambda block: block.line.block))
