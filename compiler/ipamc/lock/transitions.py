"""The difference of two locks: each changed line is in one transition, with the reason of the change.

A line is a block with its node. A lock does not record which verb wrote a line, so a transition is derived
from the effects of verbs; changes that no verb makes are in `REFUSED`. A node that took over all lines of one
that is gone was renamed, as by `lock --rename`. The merge of two locks (`lock/merge.py`) decides, and does
not read transitions.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.address_sets import covers, lines_over
from ipamc.model.cidr import Block
from ipamc.model.lock import Key, Line, State


class Reason(enum.StrEnum):
    """The kind of change of a line, and its reason."""

    ADDED = "added"
    """Newly held; it replaces no other block of the node."""
    RETURNED = "returned"
    """Held again by the node that had left."""
    RENAMED = "renamed"
    """A node that held nothing took it over from a node that is gone."""
    PENDING = "pending begun"
    CANCELLED = "pending cancelled"
    SETTLED = "settled"
    """Newly held: it was pending, or it replaces a block that its node lost."""
    MOVED = "moved away"
    """Its node holds other blocks; the line keeps the block in quarantine or released."""
    LEFT = "left"
    """Its node left the inventory."""
    RELEASED = "released"
    GIVEN_BACK = "given back"
    """Quarantined because it was not used: its node keeps other blocks of the pool, and got none."""
    TAKEN_BACK = "taken back by the operator"
    RE_USED = "re-used"
    """It was released, or its quarantine is over, and its addresses were given out again; or its node
        left, and another node now has its address and so its block."""
    REPOOLED = "pool renamed"
    RESIZED = "resized"
    """Other addresses of the block are rendered (crd mode)."""
    VANISHED = "vanished"
    """No line covers its addresses."""
    TAKEN = "taken"
    """It was held, and other lines have its addresses; no line keeps it."""
    ENDED_EARLY = "quarantine ended early"
    """Or a node has a block again that it should never get back."""
    DAY_CHANGED = "day changed"
    """In quarantine since a day on which no compile can have put it there."""


REFUSED = (Reason.VANISHED, Reason.TAKEN, Reason.ENDED_EARLY, Reason.DAY_CHANGED)
"""Changes of a line that no verb makes; consent to the first two is impossible."""
_SAME = {Reason.RENAMED, Reason.REPOOLED, Reason.RESIZED}
_LOST = {Reason.MOVED, Reason.TAKEN, Reason.VANISHED, Reason.DAY_CHANGED}
_GAINED = {Reason.ADDED, Reason.RETURNED, Reason.RENAMED, Reason.SETTLED}


class Transition(Struct, frozen=True, kw_only=True):
    """A changed line. Both ends are of one block and, unless it was renamed, of one node."""

    before: Line | None
    after: Line | None
    reason: Reason
    other: Line | None = None
    """Another node's first line with the addresses of an ended line, or before with those of a new one."""

    @property
    def line(self) -> Line:
        """The present line, or the former one if the line is gone."""
        return next(line for line in (self.after, self.before) if line)

    @property
    def to(self) -> str:
        """The node that has its addresses now, if the line is gone."""
        return self.other.node if self.other and not self.after else ""

    @property
    def of(self) -> str:
        """The other node that had the addresses of a new line before; "" if none had."""
        had = self.before or self.other
        return had.node if had and self.after and had.node != self.after.node else ""

    @property
    def is_about_quarantine(self) -> bool:
        """Return whether the line enters or leaves quarantine, or its quarantine changes."""
        return any(line and line.since for line in (self.before, self.after))

    @property
    def gains(self) -> bool:
        """Return whether the node now holds the block, and did not before."""
        return self.reason in _GAINED and self.line.state is State.HELD

    @property
    def leaves(self) -> bool:
        """Return whether a line was held and ended, other than by a rename."""
        return bool(self.before and self.before.state is State.HELD) and self.reason not in _SAME

    @property
    def begins(self) -> bool:
        """Return whether a move of the node to the block begins."""
        return self.reason in {Reason.PENDING, Reason.RENAMED} and self.line.state is State.PENDING

    def loses(self, present: Collection[str]) -> bool:
        """Return whether a present node lost a held block, except to its use or to the operator."""
        was = self.before
        return self.reason in _LOST and was is not None and was.state is State.HELD and was.node in present

    def key(self, *, one_block: bool) -> Key:
        """Return the key of the blocks that are renumbered together with this one, by present pools."""
        line = self.before or self.line
        return replace(line, pool=(self.after or self.other or line).pool).key(one_block=one_block)


class Days(Struct, frozen=True, kw_only=True):
    """Days that limit a quarantine, ISO 8601 in UTC."""

    today: str = ""
    """"" if no day is too late for a quarantine."""
    over: str = ""
    """A quarantine from this day or before is over by base and head. "": none is."""
    shortened: str = ""
    """The same by the head alone, if that is later: it shortens the quarantine."""
    base: str = ""
    """The day of the first lock, if it was committed."""


class Known(Struct, frozen=True, kw_only=True):
    """Facts beside the lines."""

    one_block: bool
    present: Collection[str] = ()
    """The nodes that hold a block now."""
    inventory: Collection[str] = ()
    """Nodes in the inventory, even without a block."""
    days: Days = Days()
    operator_pools: Collection[str] = frozenset()
    """Names of the pools whose blocks Cilium's operator allocates."""
    of_address: Callable[[Line], bool] = lambda _line: False
    """Whether a line has the block of its node's address, in a pool that follows: without quarantine."""
    followed: Callable[[Line, Sequence[Line]], bool] = lambda _line, _over: False
    """Whether the operator took a block from its node, or gave its addresses to these lines."""


def transitions(before: Sequence[Line], after: Sequence[Line], known: Known) -> tuple[Transition, ...]:
    """Return the change of each line that differs, by block. Both arguments are by address. O(n log n)."""
    gone, come = differing(before, after)
    if not gone and not come:
        return ()
    found = list(_Comparison(before, after, gone, come, known).each())
    lost = {each.key(one_block=known.one_block) for each in found if each.loses(known.present)}
    gained = {each.key(one_block=known.one_block) for each in found if each.gains}
    if kept := lost - gained if not known.one_block else set():
        kept &= {line.key(one_block=False) for line in after if line.state is State.HELD}
    for number, each in enumerate(found):
        key = each.key(one_block=known.one_block)
        if each.gains and key in lost and each.reason is not Reason.RENAMED:
            found[number] = replace(each, reason=Reason.SETTLED)
        elif each.reason is Reason.MOVED and key in kept and each.line.moved:
            found[number] = replace(each, reason=Reason.GIVEN_BACK)
    return tuple(sorted(found, key=lambda each: (each.line.block, each.before is None)))


def renumbered(changes: Iterable[Transition], present: Collection[str]) -> set[str]:
    """Return nodes whose blocks change now or later, without those that left or returned unused blocks."""
    both = ((each, each.line.node) for each in changes)
    return {node for each, node in both if each.loses(present) or (each.begins and node in present)}


def differing(before: Sequence[Line], after: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """Return the lines that only one of two locks has. Most lines are the same object in both."""
    was, now = set(map(id, before)), set(map(id, after))
    gone = {line.block: line for line in before if id(line) not in now}
    come = {line.block: line for line in after if id(line) not in was}
    for block in [block for block, line in gone.items() if come.get(block) == line]:
        del gone[block], come[block]
    return list(gone.values()), list(come.values())


class _Comparison:
    """Compares the lines that differ one by one, then pairs each node's gains with its losses."""

    def __init__(
        self,
        before: Sequence[Line],
        after: Sequence[Line],
        gone: Sequence[Line],
        come: Sequence[Line],
        known: Known,
    ) -> None:
        self.before, self.after, self.known = before, after, known
        self.gone = gone
        self.new = {line.block: line for line in come}
        self.paired: set[Block] = set()
        self.came = heirs = Counter(line.node for line in come) if gone else Counter()
        self.had = {line.node for line in before if line.state is State.HELD and line.node in heirs}
        left = {line.node for line in gone}
        of_left = (line for line in after if line.node in left and not line.moved)
        self.waiting = {line.node for line in of_left if line.since > known.days.over}

    def each(self) -> Iterator[Transition]:
        for was in self.gone:
            now = self.new.get(was.block)
            if now and (now.node == was.node or self._is_renamed(was, now)):
                self.paired.add(was.block)
                yield Transition(before=was, after=now, reason=self._changed(was, now))
            else:
                yield self._ended(was)
        for line in self.new.values():
            if line.block not in self.paired:
                had = (was for was in lines_over(self.before, line.block) if was.node != line.node)
                yield Transition(before=None, after=line, reason=self._begun(line), other=next(had, None))

    def _begun(self, now: Line) -> Reason:
        match now.state:
            case State.HELD:
                return Reason.ADDED
            case State.PENDING:
                return Reason.PENDING
            case State.QUARANTINED:
                return Reason.LEFT if self._may_be_since(None, now) else Reason.DAY_CHANGED
            case State.RELEASED:
                return Reason.RELEASED

    def _changed(self, was: Line, now: Line) -> Reason:
        by_operator = was.pool in self.known.operator_pools and not now.moved
        moved = was.state is State.HELD and was.node in self.known.present
        if now == replace(was, pool=now.pool, addresses=now.addresses):
            return Reason.REPOOLED if now.addresses == was.addresses else Reason.RESIZED
        if was.state is State.HELD and now.state is State.PENDING:
            return Reason.TAKEN
        if was.node != now.node and now.in_use:
            return Reason.RENAMED
        waits = was.since > self.known.days.over and now.since != was.since
        # The node gets back a block that it moved away from, or will move to one that it held.
        pending = now.was_pending or now.state is State.PENDING
        undone = (was.moved and not now.moved) or (pending and not was.was_pending)
        undone = undone and waits and now.state is not State.RELEASED
        if undone and not (self.known.followed(was, [now]) or self.known.of_address(now)):
            return Reason.ENDED_EARLY
        if now.state is State.HELD and was.state is not State.RELEASED:
            return Reason.SETTLED if was.state is State.PENDING else Reason.RETURNED
        if now.state is State.QUARANTINED and not self._may_be_since(was, now):
            return Reason.DAY_CHANGED
        if by_operator and (now.state is State.RELEASED or (moved and not now.in_use)):
            return Reason.TAKEN_BACK
        if now.state is State.RELEASED and was.state is State.PENDING:
            return Reason.CANCELLED
        return Reason.MOVED if moved else self._begun(now)

    def _ended(self, was: Line) -> Transition:
        over = lines_over(self.after, was.block)
        others = [line for line in over if line.state is not State.RELEASED or self._is_there(was.node)]
        if not over:
            reason = Reason.VANISHED
        elif was.state is State.RELEASED:
            reason = Reason.RE_USED
        elif was.state is State.PENDING:
            reason = Reason.CANCELLED
        elif self.known.followed(was, others):
            reason = Reason.TAKEN_BACK
        elif others and all(map(self.known.of_address, others)):
            moved = was.state is State.HELD and self._is_there(was.node)
            reason = Reason.MOVED if moved else Reason.RE_USED
        elif was.state is State.QUARANTINED:
            # Or its node keeps all its addresses, in use or for as long as before.
            own = (line for line in over if line.node == was.node)
            kept = [line.block for line in own if line.in_use or line.since >= was.since]
            is_over = was.since <= self.known.days.over or covers(kept, was.block)
            reason = Reason.RE_USED if is_over else Reason.ENDED_EARLY
        else:
            days, reason = self.known.days, Reason.TAKEN
            # The node left, and its addresses are given out the same day.
            if not self._is_there(was.node) and "" < days.today <= max(days.over, days.shortened):
                reason = Reason.LEFT if days.today <= days.over else Reason.ENDED_EARLY
        return Transition(before=was, after=None, reason=reason, other=next(iter(others or over), None))

    def _is_there(self, node: str) -> bool:
        return node in self.known.present or node in self.known.inventory

    def _is_renamed(self, was: Line, now: Line) -> bool:
        """Return whether a line in use is the same, except for the name of a node that replaces its node."""
        alike = now.state is was.state or now.state is State.QUARANTINED
        is_heir = now.node not in self.had and was.node not in self.waiting
        return was.in_use and alike and is_heir and not self._is_there(was.node)

    def _may_be_since(self, was: Line | None, now: Line) -> bool:
        """Return whether a compile can have put a line into quarantine on its day, never a future one.
        If the base has the block in use, the node may have left before, on another branch.
        """
        days = self.known.days
        if days.today and now.since > days.today:
            return False
        if was is None or was.state is State.RELEASED:
            return True
        if was.state is State.QUARANTINED:
            # A node that moved away on the day on which it had left has a new line since.
            moved = now.moved == was.moved or (now.moved and self.came[now.node] > 1)
            same = now.since == was.since and now.was_pending == was.was_pending
            return now.since > was.since or (same and moved)
        over = max(days.over, days.shortened)
        return "" < days.today <= over or now.since > over or now.since >= days.base
