"""The transitions of a lock's lines as a plan shows them: with where new blocks come from, and renumbers by node.

A compile records its own decisions (`Plan.origins`). Decisions between the base and the head are derived from the
lines, the pins and the inventory: a block that the inventory shows is then called adopted, even if the compiler
placed it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from msgspec import Struct

from ipamc.lock.transitions import Days, Known, Reason, Transition, renumbered, transitions
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import names
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Key, Line, State
from ipamc.model.plan import Origin, Plan

T = TypeVar("T", Line, Transition)


class AddedBlock(Struct, frozen=True, kw_only=True):
    """A block that its node did not hold before."""

    line: Line
    origin: Origin
    """Any but RENUMBER."""
    of: str = ""
    """Another node that has these addresses in the base's lock."""
    since: str = ""
    """The day since which its node's own line of the block was in quarantine in the base."""

    @property
    def why(self) -> str:
        """Return where the block comes from."""
        since = f", was in quarantine since {self.since}" if self.since else ""
        return f"{self.origin}{f', was of {self.of}' if self.of else ''}{since}"


class Renumber(Struct, frozen=True, kw_only=True):
    """A node whose block changes, or is to change."""

    node: str
    old: tuple[Line, ...]
    """The blocks that it holds until it moves, or held. By family and address, as `new`."""
    new: tuple[Line, ...]
    """Empty if the node lost a block and got none."""
    why: str
    moves: bool = False
    """Of a completed one: the node runs, and nothing shows its new blocks yet, so it is still to move."""


class PoolTransfer(Struct, frozen=True, kw_only=True):
    """Lines whose range belongs to another pool now, or to one of another name: no node moves."""

    before: str
    after: str
    lines: tuple[Line, ...]


class Counts(Struct, frozen=True, kw_only=True):
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


class LineChanges(Struct, frozen=True, kw_only=True):
    """What became of every line. Tuples are in order of family and address, renumbers in order of node."""

    transitions: tuple[Transition, ...] = ()
    added: tuple[AddedBlock, ...] = ()
    pending: tuple[Renumber, ...] = ()
    """New pending lines."""
    still_pending: tuple[Renumber, ...] = ()
    """Lines that were pending in the base: no change, but every plan lists them."""
    completed: tuple[Renumber, ...] = ()
    """The node no longer holds its old block."""
    counts: Counts

    def of(self, *reasons: Reason) -> tuple[Transition, ...]:
        """Return the transitions for these reasons."""
        return tuple([each for each in self.transitions if each.reason in reasons])

    @property
    def released(self) -> tuple[Transition, ...]:
        """The blocks whose addresses can be given out, or were, before a quarantine was over."""
        moved = [each for each in self.of(Reason.MOVED) if each.line.state is State.RELEASED]
        return (*self.of(Reason.RELEASED, Reason.CANCELLED, Reason.ENDED_EARLY), *moved)

    @property
    def pool_transfers(self) -> tuple[PoolTransfer, ...]:
        """The lines that are in another pool, by the names of both."""
        groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
        for each in self.of(Reason.REPOOLED, Reason.RESIZED):
            if each.before and each.before.pool != each.line.pool:
                groups[each.before.pool, each.line.pool].append(each.line)
        return tuple(
            PoolTransfer(before=before, after=after, lines=tuple(lines))
            for (before, after), lines in sorted(groups.items())
        )


def changes_of(
    before: Sequence[Line],
    plan: Plan,
    days: Days = Days(),  # noqa: B008 - frozen, and without a day
    published: Collection[Block] = frozenset(),
) -> tuple[Transition, ...]:
    """Return the transitions from a lock to a plan. `published`: blocks that the base rendered for nodes."""
    return _Comparison(before, plan, days, published).transitions


def compare_lines(
    before: Sequence[Line],
    plan: Plan,
    why_pending: Mapping[Block, str],
    days: Days,
    published: Collection[Block] = frozenset(),
) -> LineChanges:
    """Return what became of the base's lines, and where the head's lines come from. O(n log n).

    `why_pending`: why a held block is misplaced. `published`: blocks that the base rendered for nodes.
    """
    comparison = _Comparison(before, plan, days, published)
    pending, still_pending = comparison.pending(why_pending)
    added = tuple(comparison.added())
    changes, present = comparison.transitions, set(plan.held)
    moved = renumbered(changes, present)
    joined = {block.line.node for block in added} - moved
    vanished = {each.line.node for each in changes if each.reason is Reason.VANISHED}
    gone = {each.line.node for each in changes if each.leaves} - present - vanished
    return LineChanges(
        transitions=changes,
        added=added,
        pending=pending,
        still_pending=still_pending,
        completed=tuple(comparison.completed()),
        counts=Counts(
            renumbered=len(moved),
            added=len(joined),
            left=len(gone),
            vanished=len(vanished),
            unchanged=len(present) - len(present & (moved | joined)),
        ),
    )


class _Comparison:
    """The transitions, and those of them that replace each other."""

    def __init__(self, before: Sequence[Line], plan: Plan, days: Days, published: Collection[Block]) -> None:
        self.plan, self.published = plan, published
        self.one_block = plan.cluster.mode.one_block
        known = Known(
            one_block=self.one_block,
            present=plan.held,
            inventory=frozenset(node.name for node in plan.cluster.nodes),
            days=days,
            operator_pools=plan.operator_pools,
            followed=self._is_followed,
        )
        self.transitions = transitions(before, plan.lock.lines, known)
        self.lost = self._by_key(each for each in self.transitions if each.loses(plan.held))
        self.gained = self._by_key(each for each in self.transitions if each.gains)

    def _by_key(self, items: Iterable[T]) -> dict[Key, list[T]]:
        groups: dict[Key, list[T]] = defaultdict(list)
        for each in items:
            groups[each.key(one_block=self.one_block)].append(each)
        return groups

    @cached_property
    def _shown(self) -> set[tuple[str, Block]]:
        """Return the blocks that the inventory shows, each with its node."""
        evidence = Evidence(self.plan.cluster)
        return {(shown.node, shown.block) for node in self.plan.cluster.nodes for shown in evidence.of(node)}

    @cached_property
    def _showing(self) -> set[str]:
        return {node for node, _ in self._shown}

    def _is_followed(self, line: Line, over: Iterable[Line]) -> bool:
        """Tell whether a block is the operator's, and CiliumNodes show that the node lost it, or who has it.

        What was rendered was not the operator's.
        """
        if line.pool not in self.plan.operator_pools or line.block in self.published:
            return False
        lost = line.node in self._showing and (line.node, line.block) not in self._shown
        return lost or all((other.node, other.block) in self._shown for other in over)

    def completed(self) -> Iterator[Renumber]:
        planned = {node.name for node in self.plan.cluster.nodes if node.planned} if self.lost else ()
        for key, old in sorted(self.lost.items()):
            new = self.gained.get(key, [])
            was_pending = any(each.before and each.before.state is State.PENDING for each in new)
            settled = was_pending or old[0].line.is_former
            shown = {(each.line.node, each.line.block) for each in new} <= self._shown
            moves = settled and not shown and key[0] not in planned
            yield Renumber(
                node=key[0],
                old=tuple([each.before for each in old if each.before]),
                new=tuple([each.line for each in new]),
                why=_why_lost(old[0], was_pending=was_pending)
                + (": the node moves with the next apply" if moves else "")
                + _since(old),
                moves=moves,
            )

    def pending(self, why: Mapping[Block, str]) -> tuple[tuple[Renumber, ...], tuple[Renumber, ...]]:
        begun = {each.line.block for each in self.transitions if each.begins}
        groups = self._by_key(line for line in self.plan.lock.lines if line.state is State.PENDING)
        held = self._by_key(
            line for node in {key[0] for key in groups} for line in self.plan.held.get(node, ())
        )
        pending: list[Renumber] = []
        still_pending: list[Renumber] = []
        for key, new in sorted(groups.items()):
            old = held.get(key, [])
            reason = next((why[line.block] for line in old if line.block in why), "") or self._aim(old, new)
            renumber = Renumber(node=key[0], old=tuple(old), new=tuple(new), why=reason)
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
        for key, changes in self.gained.items():
            for each in changes if key not in self.lost else ():
                since = each.before.since if each.before else ""
                yield AddedBlock(line=each.line, origin=self._origin(each), of=each.of, since=since)

    def _origin(self, new: Transition) -> Origin:
        line = new.line
        decided = self.plan.origins.get(line.block)
        if decided and decided is not Origin.RENUMBER:
            return decided
        if new.reason in {Reason.RETURNED, Reason.SETTLED}:
            return Origin.RETURNED
        shown = (line.node, line.block) in self._shown
        if shown and line.pool in self.plan.operator_pools:
            return Origin.ADOPTED
        if new.reason is Reason.RENAMED:
            return Origin.RENAMED
        if self._pinned(line):
            return Origin.PIN
        if shown:
            return Origin.ADOPTED
        return Origin.RE_USED if new.of else Origin.FIRST_FIT


def _since(lost: Iterable[Transition]) -> str:
    days = {each.line.since for each in lost if each.line.since}
    return f"; in quarantine since {names(days)}" if days else ""


def _why_lost(lost: Transition, *, was_pending: bool) -> str:
    if was_pending:
        return "it was pending, and is settled"
    now = lost.after
    if now and now.state is State.QUARANTINED:
        return "renumbered by consent since the base" if now.is_former else "its block is in quarantine"
    if now and now.state is State.RELEASED:
        return "its block was released"
    if lost.other and lost.other.node != lost.line.node:
        return f"node {lost.other.node} has its addresses now, and no line records a consent"
    if lost.reason is Reason.VANISHED:
        return "its line vanished from the lock"
    return "its addresses are in another of its own blocks now"
