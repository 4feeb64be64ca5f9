"""The law of a change: what may become of each address between two locks, and what a person has to allow.

It knows the lines of both locks, the day, the quarantine, and the pools that are decided elsewhere: neither
nodes nor objects. It compares ranges of addresses, so a line that is split, resized or in a renamed pool is
no special case. `ROWS` is the law: of each range that differs, the first row that matches decides, and
nothing else in ipamc does.

A node is gone if no line of the head is held or pending for it. Both locks must be sound: lines are in order
of family and address, and none overlaps another one.
"""

import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any, Generic, NamedTuple, Protocol, TypeVar


class Line(Protocol):
    """A line of a lock. All members are read-only."""

    @property
    def block(self) -> Any: ...  # noqa: D102 - has `family` (4 or 6), and `first` and `last` as numbers
    @property
    def pool(self) -> str: ...  # noqa: D102 - the pool whose range contains it
    @property
    def node(self) -> str: ...  # noqa: D102 - the node that has, will have or had it
    @property
    def state(self) -> str: ...  # noqa: D102 - held, pending, quarantined or released
    @property
    def since(self) -> str: ...  # noqa: D102 - first day of the quarantine, ISO 8601 in UTC; "" without one
    @property
    def moved(self) -> bool: ...  # noqa: D102 - in quarantine because its node moved to another block


L = TypeVar("L", bound=Line)
FREE, HELD, PENDING, QUARANTINED = "free", "held", "pending", "quarantined"
IN_USE = (HELD, PENDING)
OURS = (*IN_USE, QUARANTINED)  # the states in which addresses are of one node alone


class Gate(enum.StrEnum):
    """A kind of change that a person can be asked to allow, by the label `ipamc/GATE` of a pull request."""

    RENUMBER = "renumber"
    RENAME = "rename"
    RELEASE = "release"
    FOLLOW = "follow"
    LEAVE = "leave"
    DELETE_CLUSTER = "delete-cluster"
    WEAKER = "weaker"


class Verdict(enum.StrEnum):
    """What became of a range of addresses, the worst last."""

    FREE = "free"  # it was free, and no node uses it now
    GIVEN = "given"
    KEPT = "kept"
    RETURNED = "returned"
    SETTLED = "settled"
    CANCELLED = "pending cancelled"
    LEFT = "left"
    GIVEN_BACK = "given back"  # its node keeps other blocks, and got none
    MOVED = "moved away"
    FOLLOWED = "followed"  # the address of a node, or Cilium's operator, decides there
    RENAMED = "renamed"
    ADOPTED = "adopted"  # its node has another block, and a node that moved there has this one
    ENDED_EARLY = "quarantine ended early"
    DATED = "day changed"  # in quarantine since a day on which no compile can have put it there
    TAKEN = "taken"


UNLAWFUL = {Verdict.DATED, Verdict.TAKEN}  # nothing allows these


class Days(NamedTuple):
    """The day, and how long a quarantine lasts."""

    today: str  # ISO 8601 in UTC
    base: int | None  # days; None: for ever
    head: int | None

    @property
    def over(self) -> str:
        """Return the last day whose quarantine is over; "": none is. A change shortens nothing that waits."""
        longest = None if self.base is None or self.head is None else max(self.base, self.head)
        return last_day(self.today, longest)


def last_day(today: str, days: int | None) -> str:
    """Return the last day, ISO 8601, from which it is `days` days to `today`; "" for None or none."""
    try:
        return "" if days is None else (date.fromisoformat(today) - timedelta(days=days)).isoformat()
    except OverflowError:
        return ""


def is_over(line: Line, last: str, today: str = "") -> bool:
    """Return whether a line's quarantine is over: it began on `last` (`last_day`) or before.
    A line that a node was moved from `today` stays: the move is not applied yet.
    """
    return line.state == QUARANTINED and line.since <= last and not (line.moved and line.since == today)


class Case:
    """A range that differs, and what rows ask about it: n has it in the base, m in the head."""

    def __init__(
        self, facts: "_Facts[Any]", before: Line | None, after: Line | None, *, family: int, elsewhere: bool
    ) -> None:
        n, m = ((line.node, family) if line else ("", family) for line in (before, after))
        waits = before is not None and not is_over(before, facts.over, facts.today)
        self.was: str = before.state if before and waits and before.state in OURS else FREE  # in the base
        self.now: str = after.state if after else ""  # in the head; "" without a line
        self.elsewhere: bool = elsewhere  # its pool is decided elsewhere, in base and head
        self.own: bool = n[0] == m[0] and bool(before and after)  # n is m
        self.gone: bool = n[0] not in facts.has  # n has no block in use in the head
        self.new: bool = m[0] not in facts.had  # m had no block in use in the base
        self.stays: bool = n in facts.holds  # n holds a block of the family in the head
        self.gets: bool = n in facts.gets  # n holds addresses of the family that it did not hold in the base
        self.asked: bool = n not in facts.unasked  # all of these were pending for n in the base
        self.swaps: bool = m in facts.swaps  # m held others, and all of these are left as moved
        # There is no quarantine in base and head, n is gone, and the range is in use, or in no line.
        self.at_once: bool = facts.no_quarantine and self.gone and self.now in {"", *IN_USE}
        # It is pending, and m did not wait for it, nor comes back.
        self.moves: bool = self.now == PENDING and not (self.own and (self.was == PENDING or self.new))
        # It is in quarantine since a day on which a compile can have put it there; `left`: for n.
        first = before.since if before and self.was == QUARANTINED else facts.earliest
        in_time = bool(after and after.state == QUARANTINED and first <= after.since <= facts.today)
        self.left: bool = self.own and in_time
        # n moved away from it, and the head does not say so.
        self.unmoved: bool = bool(before and before.moved and not (after and after.moved))
        # n is gone, and m, which is new, has the whole block as n had it, or has left it.
        is_left = self.was in {HELD, QUARANTINED} and in_time and not self.unmoved
        alike = is_left if self.now == QUARANTINED else self.now == self.was
        whole = bool(before and after and before.block == after.block)
        self.inherited: bool = whole and alike and self.gone and self.new and not self.own


class Row(NamedTuple):
    """A row of the law. `when` says for people what `matches` asks."""

    was: str
    when: str
    matches: Callable[[Case], bool]
    verdict: Verdict
    gate: Gate | None = None


_V, _G, _Q = Verdict, Gate, QUARANTINED
ROWS = (
    Row(FREE, "m starts to move there", lambda c: c.moves, _V.GIVEN, _G.RENUMBER),
    Row(FREE, "held by m, or pending for m", lambda c: c.now in IN_USE, _V.GIVEN),
    Row(FREE, "any other", lambda _: True, _V.FREE),
    Row(HELD, "held by n", lambda c: c.own and c.now == HELD, _V.KEPT),
    Row(HELD, "in quarantine; n has no other block", lambda c: c.left and c.gone, _V.LEFT, _G.LEAVE),
    Row(HELD, "in quarantine; n keeps others", lambda c: c.left and c.stays and not c.gets, _V.GIVEN_BACK),
    Row(HELD, "in quarantine; n gets its pending block", lambda c: c.left and c.gets and c.asked, _V.MOVED),
    Row(HELD, "in quarantine; n gets another block", lambda c: c.left, _V.MOVED, _G.RENUMBER),
    Row(HELD, "decided elsewhere; n is gone", lambda c: c.elsewhere and c.gone and not c.moves, _V.FOLLOWED),
    Row(HELD, "decided elsewhere", lambda c: c.elsewhere, _V.FOLLOWED, _G.FOLLOW),
    Row(HELD, "no quarantine; m starts to move there", lambda c: c.at_once and c.moves, _V.LEFT, _G.RENUMBER),
    Row(HELD, "no quarantine; free, or m has it", lambda c: c.at_once, _V.LEFT, _G.LEAVE),
    Row(HELD, "held by m, which replaces n", lambda c: c.inherited, _V.RENAMED, _G.RENAME),
    Row(HELD, "held by m, swapped", lambda c: c.now == HELD and c.swaps and c.stays, _V.ADOPTED, _G.RENUMBER),
    Row(HELD, "in quarantine since an impossible day", lambda c: c.own and c.now == QUARANTINED, _V.DATED),
    Row(HELD, "any other", lambda _: True, _V.TAKEN),
    Row(_Q, "in a line of m, which replaces n", lambda c: c.inherited, _V.RENAMED, _G.RENAME),
    Row(_Q, "in quarantine for n", lambda c: c.left and not c.unmoved, _V.KEPT),
    Row(_Q, "since another day", lambda c: c.own and c.now == QUARANTINED and not c.left, _V.DATED),
    Row(_Q, "no longer moved", lambda c: c.own and c.now in OURS and c.unmoved, _V.ENDED_EARLY, _G.RELEASE),
    Row(_Q, "n starts to move back", lambda c: c.own and c.moves, _V.RETURNED, _G.RENUMBER),
    Row(_Q, "held by n, or pending for n", lambda c: c.own and c.now in IN_USE, _V.RETURNED),
    Row(_Q, "decided elsewhere; n is gone", lambda c: c.elsewhere and c.gone and not c.moves, _V.FOLLOWED),
    Row(_Q, "decided elsewhere", lambda c: c.elsewhere, _V.FOLLOWED, _G.FOLLOW),
    Row(_Q, "any other", lambda _: True, _V.ENDED_EARLY, _G.RELEASE),
    Row(PENDING, "pending for m, which replaces n", lambda c: c.inherited, _V.RENAMED, _G.RENAME),
    Row(PENDING, "pending for n", lambda c: c.own and c.now == PENDING, _V.KEPT),
    Row(PENDING, "held by n", lambda c: c.own and c.now == HELD, _V.SETTLED),
    Row(PENDING, "m starts to move there", lambda c: c.moves, _V.CANCELLED, _G.RENUMBER),
    Row(PENDING, "any other", lambda _: True, _V.CANCELLED),
)
"""n is the node in the base, m the node in the head. docs/concepts/verify.md has the words of `when`."""


class Change(NamedTuple, Generic[L]):
    """A range of addresses of which base and head say different things."""

    family: int
    first: int  # as a number
    last: int
    before: L | None
    after: L | None
    verdict: Verdict = Verdict.FREE
    gate: Gate | None = None

    @property
    def lost(self) -> str:
        """Return the node that held it and does not any more; "" if none."""
        state, node = _who(self.before)
        return node if state == HELD and _who(self.after) != (HELD, node) else ""

    @property
    def got(self) -> str:
        """Return the node that holds it and did not before; "" if none."""
        return self._replace(before=self.after, after=self.before).lost


def changes(
    before: Sequence[L], after: Sequence[L], days: Days, elsewhere: Collection[str] = ()
) -> list[Change[L]]:
    """Return the ranges that differ, by family and address, each with its verdict and gate.
    `elsewhere`: the pools that are decided elsewhere, in base and head. O(n log n) in lines that differ; the
    others are only looked at, and cost least if they are the same objects in both.
    """
    found = list(_differing(before, after))
    facts = _Facts(before, after, found, days)
    return [facts.judged(change, elsewhere) for change in found]


def _who(line: Line | None) -> tuple[str, str]:
    return (line.state, line.node) if line else (FREE, "")


def _differing(before: Sequence[L], after: Sequence[L]) -> Iterator[Change[L]]:
    was, now = set(map(id, before)), set(map(id, after))
    sides = [line for line in before if id(line) not in now], [line for line in after if id(line) not in was]
    blocks = [line.block for lines in sides for line in lines]
    ends = sorted({(block.family, end) for block in blocks for end in (block.first, block.last + 1)})
    gone, come = (list(_over(lines, ends)) for lines in sides)
    for (family, first), (_, end), old, new in zip(ends, ends[1:], gone, come, strict=False):
        if old != new:
            yield Change(family, first, end - 1, old, new)


def _over(lines: Iterable[L], ends: Iterable[tuple[int, int]]) -> Iterator[L | None]:
    """Yield the line at each of ascending addresses; None where there is none."""
    rest = iter(lines)
    line = next(rest, None)
    for end in ends:
        while line and (line.block.family, line.block.last) < end:
            line = next(rest, None)
        yield line if line and (line.block.family, line.block.first) <= end else None


class _Facts(Generic[L]):
    """What rows ask about nodes, collected once. Keys are a node and a family."""

    def __init__(self, before: Sequence[L], after: Sequence[L], found: list[Change[L]], days: Days) -> None:
        self.today, self.over, self.no_quarantine = days.today, days.over, days[1:] == (0, 0)
        # The first day on which a quarantine may have begun: half of the shorter one ago.
        shorter = min((each for each in days[1:] if each is not None), default=None)
        self.earliest = last_day(days.today, None if shorter is None else shorter // 2)
        some = {line.node for each in found for line in (each.before, each.after) if line}
        self.had = {line.node for line in before if line.node in some and line.state in IN_USE}
        self.has = {line.node for line in after if line.node in some and line.state in IN_USE}
        held = (line for line in after if line.node in some and line.state == HELD)
        self.holds = {(line.node, line.block.family) for line in held}
        self.gets = {(each.got, each.family) for each in found}
        waited = (each for each in found if _who(each.before) != (PENDING, each.got))
        self.unasked = {(each.got, each.family) for each in waited}
        lost = {(each.lost, each.family) for each in found if each.lost}
        moved = (each for each in found if each.after and each.after.moved)
        left = {each for each in moved if _who(each.after) == (QUARANTINED, each.lost)}
        self.swaps = lost - {(each.lost, each.family) for each in found if each not in left}

    def judged(self, change: Change[L], elsewhere: Collection[str]) -> Change[L]:
        """Return a change with the verdict and the gate of the first row that matches."""
        before, after = change.before, change.after
        pools = {line.pool for line in (before, after) if line}
        case = Case(self, before, after, family=change.family, elsewhere=pools.issubset(elsewhere))
        row = next(row for row in ROWS if row.was == case.was and row.matches(case))
        return change._replace(verdict=row.verdict, gate=row.gate)
