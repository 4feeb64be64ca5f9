"""Compares the lines of two locks for a plan: transitions, the origins of new blocks, and misplaced lines.

A compile records its own decisions (`Plan.origins`). Decisions between the base and the head are derived from
the lines, the pins and the inventory. A block that the inventory shows is then called adopted, even if the
compiler placed it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from msgspec import Struct

from ipamc.check.held_blocks import ILLEGAL, Fault, classify, no_longer_selected, other_family, over_excluded
from ipamc.lock.transitions import Days, Known, Reason, Transition, renumbered, transitions
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Pool
from ipamc.model.diagnostics import names
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Key, Line, State
from ipamc.model.ownership import RangeIndex
from ipamc.model.plan import Origin, Plan, Want
from ipamc.model.pool_words import terms

T = TypeVar("T", Line, Transition)
_MOST = 20  # Nodes that a command names


class AddedBlock(Struct, frozen=True, kw_only=True):
    """A block that its node did not hold before."""

    line: Line
    origin: Origin  # any except RENUMBER
    of: str = ""  # another node with these addresses in the base's lock
    since: str = ""  # the day on which the node's own line of the block went into quarantine in the base

    @property
    def why(self) -> str:
        """Return the origin of the block, as a phrase."""
        since = f", was in quarantine since {self.since}" if self.since else ""
        return f"{self.origin}{f', was of {self.of}' if self.of else ''}{since}"


class Renumber(Struct, frozen=True, kw_only=True):
    """A node whose block changes now or later."""

    node: str
    old: tuple[Line, ...]
    """The blocks that it holds until it moves, or held before. By family and address, like `new`."""
    new: tuple[Line, ...]  # empty if the node lost a block and got none
    why: str
    moves: bool = False
    """The renumber is completed in the lock, but the node runs and no object shows its new blocks yet."""


class Counts(Struct, frozen=True, kw_only=True):
    """Numbers of nodes; each node counts once."""

    renumbered: int  # the nodes of `renumbered`
    added: int  # nodes with a new block that are not renumbered
    left: int
    """They held a block at the base and hold none now; not renamed nodes or those whose line vanished."""
    vanished: int
    unchanged: int  # they hold the same blocks as at the base


class LineChanges(Struct, frozen=True, kw_only=True):
    """The changes of all lines. Tuples are in order of family and address, renumbers in order of node."""

    transitions: tuple[Transition, ...] = ()
    added: tuple[AddedBlock, ...] = ()
    pending: tuple[Renumber, ...] = ()  # new pending lines
    still_pending: tuple[Renumber, ...] = ()
    """Lines that are pending in the base, too: every plan lists them, although nothing changes."""
    completed: tuple[Renumber, ...] = ()  # the node no longer holds its old block
    counts: Counts

    def of(self, *reasons: Reason) -> tuple[Transition, ...]:
        """Return the transitions with these reasons."""
        return tuple([each for each in self.transitions if each.reason in reasons])

    @property
    def released(self) -> tuple[Transition, ...]:
        """The blocks whose addresses can be, or were, given out before their quarantine was over."""
        moved = [each for each in self.of(Reason.MOVED) if each.line.state is State.RELEASED]
        return (*self.of(Reason.RELEASED, Reason.CANCELLED, Reason.ENDED_EARLY), *moved)

    @property
    def pool_transfers(self) -> dict[tuple[str, str], list[Line]]:
        """The lines whose range is now in another or renamed pool, by old and new name: no node moves."""
        groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
        for each in self.of(Reason.REPOOLED, Reason.RESIZED):
            if each.before and each.before.pool != each.line.pool:
                groups[each.before.pool, each.line.pool].append(each.line)
        return dict(sorted(groups.items()))


def changes_of(before: Sequence[Line], plan: Plan, days: Days | None = None) -> tuple[Transition, ...]:
    """Return the transitions from a lock to a plan, for a base whose rendered files are not known."""
    return _Comparison(before, plan, days or Days(), frozenset()).transitions


def compare_lines(
    before: Sequence[Line],
    plan: Plan,
    why_pending: Mapping[Block, str],
    days: Days,
    published: Collection[Block] = frozenset(),
) -> LineChanges:
    """Return the changes of the base's lines, and the origins of the head's lines. O(n log n).
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
    """The transitions, and pairs of them in which a new block replaces an old one."""

    def __init__(self, before: Sequence[Line], plan: Plan, days: Days, published: Collection[Block]) -> None:
        self.plan, self.published = plan, published
        self.one_block = plan.cluster.mode.one_block
        known = Known(
            one_block=self.one_block,
            present=plan.held,
            inventory=frozenset(node.name for node in plan.cluster.nodes),
            days=days,
            operator_pools=plan.operator_pools,
            of_address=lambda line: self._pinned(line) is Origin.FOLLOWS,
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
        evidence = Evidence(self.plan.cluster)
        return {(shown.node, shown.block) for node in self.plan.cluster.nodes for shown in evidence.of(node)}

    @cached_property
    def _showing(self) -> set[str]:
        return {node for node, _ in self._shown}

    def _is_followed(self, line: Line, over: Iterable[Line]) -> bool:
        """Return whether CiliumNodes show that a node lost a block of the operator, or its new owner.
        A block that ipamc rendered is not the operator's.
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
            settled = was_pending or old[0].line.moved
            shown = {(each.line.node, each.line.block) for each in new} <= self._shown
            moves = settled and not shown and key[0] not in planned
            days = {each.line.since for each in old if each.line.since}
            why = _why_lost(old[0], was_pending=was_pending)
            if new and all(self._pinned(each.line) is Origin.FOLLOWS for each in new):
                why = "it has the block of its address now"
            yield Renumber(
                node=key[0],
                old=tuple([each.before for each in old if each.before]),
                new=tuple([each.line for each in new]),
                why=why
                + (": the node moves with the next apply" if moves else "")
                + (f"; in quarantine since {names(days)}" if days else ""),
                moves=moves,
            )

    def pending(self, why: Mapping[Block, str]) -> tuple[tuple[Renumber, ...], tuple[Renumber, ...]]:
        begun = {each.line.block for each in self.transitions if each.begins}
        groups = self._by_key(line for line in self.plan.lock.lines if line.state is State.PENDING)
        nodes = {key[0] for key in groups}
        held = self._by_key(line for node in nodes for line in self.plan.held.get(node, ()))
        every: dict[bool, list[Renumber]] = {True: [], False: []}
        for key, new in sorted(groups.items()):
            old = held.get(key, [])
            reason = next((why[line.block] for line in old if line.block in why), "") or self._goal(old, new)
            renumber = Renumber(node=key[0], old=tuple(old), new=tuple(new), why=reason)
            every[any(line.block in begun for line in new)].append(renumber)
        return tuple(every[True]), tuple(every[False])

    def _goal(self, old: list[Line], new: list[Line]) -> str:
        """Return a phrase that says where a node moves although its old block is not misplaced."""
        if pinned := next((pinned for line in new if (pinned := self._pinned(line))), None):
            place = "the block of its address" if pinned is Origin.FOLLOWS else "its pin"
            return f"to {place}, by consent"
        if old and old[0].pool != new[0].pool:
            return f"from pool {old[0].pool or 'none'} to {new[0].pool}, by consent"
        if old and old[0].block.prefix != new[0].block.prefix:
            return f"from a /{old[0].block.prefix} to a /{new[0].block.prefix}, by consent"
        return "by consent"

    def _pinned(self, line: Line) -> Origin | None:
        """Return why a pool keeps a block for its node: a pin, or the node's address; None for neither."""
        for pool in self.plan.cluster.pools:
            if any(pin.block == line.block for pin in pool.pins.get(line.node, ())):
                return Origin.FOLLOWS if pool.follows else Origin.PIN
        return None

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
        if pinned := self._pinned(line):
            return pinned
        if shown:
            return Origin.ADOPTED
        return Origin.RE_USED if new.of else Origin.FIRST_FIT


def _why_lost(lost: Transition, *, was_pending: bool) -> str:
    if was_pending:
        return "it was pending, and is settled"
    now = lost.after
    if now and now.state is State.QUARANTINED:
        return "renumbered by consent since the base" if now.moved else "its block is in quarantine"
    if now and now.state is State.RELEASED:
        return "its block was released"
    if lost.other and lost.other.node != lost.line.node:
        unit = terms(lost.other.node).unit
        return f"{unit} {lost.other.node} has its addresses now, and no line records a consent"
    if lost.reason is Reason.VANISHED:
        return "its line vanished from the lock"
    return "its addresses are in another of its own blocks now"


class Misplaced(Struct, frozen=True, kw_only=True):
    """Held and pending lines whose nodes would get other blocks today. Every plan lists them.
    Either rule 2 of the lock would refuse a new block there, or the pool does not select the node, or it is
    not the first candidate.
    """

    why: str
    illegal: bool  # rule 2 refuses the block; False: only the pool is wrong
    move: str = ""  # the command that gives them other blocks; "" if a renumber does not help
    lines: tuple[Line, ...]  # by family and address


def misplaced(plan: Plan, full: Collection[tuple[str, int]] = ()) -> tuple[Misplaced, ...]:
    """Return the misplaced lines by reason, the illegal ones first. O(lines).
    `full` are the pools without a free block, with the family. Nearly all lines are in the first candidate of
    their node: `_is_at_home` sorts these out, which takes 100,000 lines a third of the time.
    """
    cluster, ranges, lines = plan.cluster, RangeIndex(plan.cluster.pools), plan.lock.lines
    wants = {want.node.name: want for want in plan.wants}
    moving = {(line.node, line.block.family) for line in lines if line.state is State.PENDING}
    groups: dict[tuple[bool, str], list[Line]] = defaultdict(list)
    movable: set[Line] = set()
    firsts: dict[tuple[int, int], Pool | None] = {}
    for line, pool in zip(lines, ranges.pools_of([line.block for line in lines]), strict=True):
        want, family = wants.get(line.node), line.block.family
        if want is None or _is_at_home(cluster, want, line, pool) or not line.in_use:
            continue
        faults = [(fault.rule not in ILLEGAL, _words(fault)) for fault in classify(cluster, want, line, pool)]
        faults = [(legal, why) for legal, why in faults if why]
        key = id(want.offers), family
        if key not in firsts:
            # If every pool that selects a node gives it blocks, none is first, and no block has to move.
            offers = want.offers if cluster.mode.one_block else ()
            firsts[key] = next((offer.pool for offer in offers if family in offer.sizes), None)
        first = firsts[key]
        waits = line.state is State.PENDING or (line.node, family) in moving
        if first and first is not pool and not waits:
            movable.add(line)
            no_room = ", which has no free block" if (first.name, family) in full else ""
            if pool and not faults:
                faults = [(True, f"in pool {pool.name}; the first candidate is {first.name}{no_room}")]
        for fault in faults:
            groups[fault].append(line)
    held = [line for lines in plan.held.values() for line in lines] if movable else []
    whole = {line.pool for line in held} - {line.pool for line in held if line not in movable}
    return tuple(
        Misplaced(why=why, lines=tuple(lines), illegal=not legal, move=_move(cluster, lines, movable, whole))
        for (legal, why), lines in sorted(groups.items())
    )


def _is_at_home(cluster: Cluster, want: Want, line: Line, pool: Pool | None) -> bool:
    """Return whether a block lies in its node's first candidate pool, so that `_words` has no fault to name.
    `pool` is the one whose range contains the block. False if CIDRs are excluded: then `classify` decides.
    """
    family, first = line.block.family, want.offers[0] if want.offers else None
    if first is None or first.pool is not pool or cluster.excluded:
        return False
    return family in first.sizes and family in cluster.families


def _words(fault: Fault) -> str:
    """Return a phrase for a fault of a block; "" for faults that a plan reports elsewhere."""
    if fault.rule is other_family:
        return f"IPv{fault.family} is not in ipFamilies"
    if fault.rule is over_excluded:
        return f"overlaps excluded {fault.ranges[0].block}"
    if fault.rule is no_longer_selected:
        return f"pool {fault.pool} no longer selects the node"
    return "outside every pool" if fault.rule in ILLEGAL else ""


def _move(cluster: Cluster, lines: list[Line], movable: Collection[Line], whole: Collection[str]) -> str:
    """Return the command that renumbers these lines: the pool, if all of it moves (`whole`), else each."""
    mine = [line for line in lines if line in movable]
    if not mine:
        return ""
    pools = sorted({line.pool for line in mine})
    if all(pool and pool in whole for pool in pools):
        scopes = [f"pool/{pool}" for pool in pools]
    elif len(cluster.families) > 1:  # the other family of a node stays
        scopes = [str(line.block) for line in mine]
    else:
        scopes = [line.node for line in mine]
    more = f" and {len(scopes) - _MOST:,} more" if len(scopes) > _MOST else ""
    flags = " ".join(f"--renumber {scope}" for scope in scopes[:_MOST])
    return f"ipamc lock {cluster.name} {flags}{more}"
