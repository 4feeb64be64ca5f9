"""Compares the lines of two locks for a plan: verdicts, origins of new blocks, misplaced lines, numbers.

A compile records its own decisions (`Plan.origins`). The origin of a block that is new since the base only is
derived from the lines, the pins and the inventory, for people: it decides nothing. A block that the inventory
shows is then called adopted, even if the compiler placed it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from ipamc.check.held_blocks import ILLEGAL, Fault, classify, no_longer_selected, other_family, over_excluded
from ipamc.law.change import UNLAWFUL, Days, Gate, Verdict
from ipamc.lock.consent import renumber_command
from ipamc.lock.line_changes import VANISHED, LineChange, LockChange, line_changes
from ipamc.model.cidr import Block
from ipamc.model.cluster import Pool, Scheme
from ipamc.model.diagnostics import names
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Key, Line, State
from ipamc.model.ownership import RangeIndex
from ipamc.model.plan import Origin, Plan, Want
from ipamc.model.pool_words import terms


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
    new: tuple[Line, ...]
    why: str
    moves: bool = False
    """The renumber is completed in the lock, but the node runs and no object shows its new blocks yet."""


class Counts(Struct, frozen=True, kw_only=True):
    """Numbers of nodes."""

    renumbered: int = 0  # their blocks change, now or later
    added: int = 0  # nodes with a new block that are neither renumbered nor renamed
    left: int = 0
    """They held a block at the base and hold none now; not renamed nodes or those whose line vanished."""
    vanished: int = 0
    unchanged: int = 0  # they hold the same blocks as at the base
    renamed: int = 0  # they have the blocks of a node of another name
    followed: int = 0  # they lost blocks where their address, or Cilium's operator, decides
    released: int = 0  # they lost blocks in quarantine before it was over


class LineChanges(Struct, frozen=True, kw_only=True):
    """The changes of all lines. Tuples are in order of family and address, renumbers in order of node."""

    lines: tuple[LineChange, ...] = ()
    added: tuple[AddedBlock, ...] = ()
    pending: tuple[Renumber, ...] = ()  # moves that begin
    still_pending: tuple[Renumber, ...] = ()
    """Other pending lines: every plan lists them, although nothing changes."""
    completed: tuple[Renumber, ...] = ()  # the node no longer holds its old block
    changes_hands: bool = False  # addresses do so, or are asked to
    counts: Counts = Counts()

    def of(self, *verdicts: Verdict) -> tuple[LineChange, ...]:
        """Return what became of the base's lines with these verdicts."""
        return tuple([each for each in self.lines if each.before and each.verdict in verdicts])

    def gated(self, gate: Gate) -> tuple[LineChange, ...]:
        """Return the changes that a gate is about."""
        return tuple([each for each in self.lines if gate in each.gates])

    @property
    def refused(self) -> tuple[LineChange, ...]:
        """Return the changes that nothing allows."""
        return tuple([each for each in self.lines if each.before and each.verdict in UNLAWFUL])

    @property
    def left(self) -> tuple[LineChange, ...]:
        """Return the lines of nodes that left, also of nodes that came and left since the base."""
        passed = (each for each in self.lines if each.before is None and each.line.since)
        return (*self.of(Verdict.LEFT), *passed)

    @property
    def early(self) -> tuple[LineChange, ...]:
        """Return the quarantines that end early, where the lock records no consent of `lock --release`."""
        found = self.of(Verdict.ENDED_EARLY)
        return tuple([each for each in found if each.to or each.line.state is not State.RELEASED])

    @property
    def released(self) -> tuple[LineChange, ...]:
        """Return the others that end early, and cancelled moves."""
        early = set(self.early)
        found = self.of(Verdict.ENDED_EARLY, Verdict.CANCELLED)
        return tuple([each for each in found if each not in early])

    @property
    def unlawful(self) -> tuple[LineChange, ...]:
        """Return the changes that are refused, unless a person allows that quarantines end early."""
        return (*self.refused, *self.early)

    @property
    def vanished(self) -> tuple[LineChange, ...]:
        """Return the lines in use or in quarantine of which no line of the head has an address."""
        return tuple([each for each in self.unlawful if each.fault == VANISHED])

    @property
    def resized(self) -> tuple[LineChange, ...]:
        """Return the lines of which other addresses are rendered (crd mode)."""
        both = ((each, each.before, each.after) for each in self.of(Verdict.KEPT))
        return tuple([each for each, was, now in both if was and now and was.addresses != now.addresses])

    @property
    def pool_transfers(self) -> dict[tuple[str, str], list[Line]]:
        """The lines whose range is now in another or renamed pool, by old and new name: no node moves."""
        groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
        for each in self.of(Verdict.KEPT):
            if each.before and each.after and each.before.pool != each.after.pool:
                groups[each.before.pool, each.after.pool].append(each.after)
        return dict(sorted(groups.items()))


def compare_lines(
    before: Sequence[Line],
    plan: Plan,
    why_pending: Mapping[Block, str],
    days: Days,
    elsewhere: Collection[str] = (),
) -> LineChanges:
    """Return the changes of the base's lines, and the origins of the head's lines. O(n log n).
    `why_pending`: why a held block is misplaced. `days` and `elsewhere` are those of the law.
    """
    change = line_changes(before, plan.lock.lines, days, elsewhere)
    comparison = _Comparison(change, plan)
    pending, still_pending = comparison.pending(why_pending)
    found = LineChanges(
        lines=change.lines,
        added=tuple(comparison.added()),
        pending=pending,
        still_pending=still_pending,
        completed=tuple(comparison.completed()),
        changes_hands=change.changes_hands or bool(change.moving),
    )
    return replace(found, counts=_counted(found, change, plan))


class _Comparison:
    """Pairs the blocks that nodes lost and got."""

    def __init__(self, change: LockChange, plan: Plan) -> None:
        self.plan, self.change = plan, change

    @cached_property
    def _shown(self) -> set[tuple[str, Block]]:
        evidence = Evidence(self.plan.scheme)
        return {(shown.node, shown.block) for node in self.plan.scheme.nodes for shown in evidence.of(node)}

    def completed(self) -> Iterator[Renumber]:
        pairs: dict[tuple[str, int], tuple[list[LineChange], list[LineChange]]] = {
            key: ([], []) for key in sorted(self.change.renumbered)
        }
        for each in self.change.lines if pairs else ():
            for side, line in enumerate((each.lost, each.got)):
                if line and (line.node, line.block.family) in pairs:
                    pairs[line.node, line.block.family][side].append(each)
        planned = {node.name for node in self.plan.scheme.nodes if node.planned} if pairs else ()
        for (node, _), (old, new) in pairs.items():
            settled = any(each.verdict is Verdict.SETTLED for each in new)
            shown = {(node, each.line.block) for each in new} <= self._shown
            moves = (settled or old[0].line.moved) and not shown and node not in planned
            days = {each.line.since for each in old if each.line.since and not each.to}
            why = "it was pending, and is settled" if settled else _why_lost(old[0])
            if all(self._pinned(each.line) is Origin.FOLLOWS for each in new):
                why = "it has the block of its address now"
            yield Renumber(
                node=node,
                old=tuple([each.lost for each in old if each.lost]),
                new=tuple([each.got for each in new if each.got]),
                why=why
                + (": the node moves with the next apply" if moves else "")
                + (f"; in quarantine since {names(days)}" if days else ""),
                moves=moves,
            )

    def pending(self, why: Mapping[Block, str]) -> tuple[tuple[Renumber, ...], tuple[Renumber, ...]]:
        begun = {each.line.block for each in self.change.lines if each.begins}
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

    def _by_key(self, lines: Iterable[Line]) -> dict[Key, list[Line]]:
        groups: dict[Key, list[Line]] = defaultdict(list)
        for line in lines:
            groups[line.key(one_block=self.plan.scheme.mode.one_block)].append(line)
        return groups

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
        for pool in self.plan.scheme.pools:
            if any(pin.block == line.block for pin in pool.pins.get(line.node, ())):
                return Origin.FOLLOWS if pool.follows else Origin.PIN
        return None

    def added(self) -> Iterator[AddedBlock]:
        for each in self.change.lines:
            if (line := each.got) and (line.node, line.block.family) not in self.change.renumbered:
                since = each.before.since if each.before else ""
                yield AddedBlock(line=line, origin=self._origin(each), of=each.of, since=since)

    def _origin(self, new: LineChange) -> Origin:
        line = new.line
        decided = self.plan.origins.get(line.block)
        if decided and decided is not Origin.RENUMBER:
            return decided
        if new.verdict in {Verdict.RETURNED, Verdict.SETTLED}:
            return Origin.RETURNED
        shown = (line.node, line.block) in self._shown
        if shown and line.pool in self.plan.operator_pools:
            return Origin.ADOPTED
        if new.verdict is Verdict.RENAMED:
            return Origin.RENAMED
        if pinned := self._pinned(line):
            return pinned
        if shown:
            return Origin.ADOPTED
        return Origin.RE_USED if new.of else Origin.FIRST_FIT


def _why_lost(lost: LineChange) -> str:
    if lost.verdict is Verdict.FOLLOWED:
        return "Cilium's operator took its block back"
    if lost.verdict is Verdict.MOVED:
        return "renumbered since the base"
    return (
        f"{terms(lost.to).unit} {lost.to} has its addresses now" if lost.to else "its line does not keep it"
    )


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
    cluster, ranges, lines = plan.scheme, RangeIndex(plan.scheme.pools), plan.lock.lines
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


def _is_at_home(cluster: Scheme, want: Want, line: Line, pool: Pool | None) -> bool:
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


def _move(cluster: Scheme, lines: list[Line], movable: Collection[Line], whole: Collection[str]) -> str:
    """Return the command that renumbers these lines: the pool, if all of it moves (`whole`), else each."""
    mine = [line for line in lines if line in movable]
    if not mine:
        return ""
    pools = sorted({line.pool for line in mine})
    if all(pool and pool in whole for pool in pools):
        return f"ipamc lock {cluster.name} --renumber {','.join(f'pool/{pool}' for pool in pools)}"
    return renumber_command(cluster, mine)


def _counted(lines: LineChanges, change: LockChange, plan: Plan) -> Counts:
    """Count the nodes of a plan by what becomes of them."""
    present, renamed = set(plan.held), {each.line.node for each in lines.of(Verdict.RENAMED)}
    new = {block.line.node for block in lines.added} - change.moving - renamed
    vanished = {each.line.node for each in lines.vanished}
    lost = {each.lost.node for each in change.lines if each.lost and each.verdict is not Verdict.RENAMED}
    followed, released = (
        {each.before.node for each in lines.of(verdict) if each.before}
        for verdict in (Verdict.FOLLOWED, Verdict.ENDED_EARLY)
    )
    return Counts(
        renumbered=len(change.moving),
        renamed=len(renamed),
        followed=len(followed),
        released=len(released - vanished),
        added=len(new),
        left=len(lost - present - vanished),
        vanished=len(vanished),
        unchanged=len(present - change.moving - new - renamed),
    )
