"""The lines of two locks that differ, with the verdict of the law of a change (`law/change.py`) on each.

The law judges ranges of addresses; people read lines. A line of several ranges has the worst of their
verdicts, and the gates of all of them. Nothing is decided here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from ipamc.law.change import UNLAWFUL, Change, Days, Gate, Verdict, changes
from ipamc.model.lock import Line, State

VANISHED = "vanished"


class LineChange(Struct, frozen=True, kw_only=True):
    """A line that differs. Both ends are of one block."""

    before: Line | None
    after: Line | None
    verdict: Verdict
    gates: frozenset[Gate] = frozenset()
    other: Line | None = None  # the first line of the other side with addresses of it

    @property
    def line(self) -> Line:
        """Return the present line, or the former one if the line is gone."""
        return next(line for line in (self.after, self.before) if line)

    @property
    def fault(self) -> str:
        """Return the verdict, or VANISHED for a line of which no line has an address now."""
        return self.verdict if self.now else VANISHED

    @property
    def begins(self) -> bool:
        """Return whether a move of the node to the block begins."""
        return Gate.RENUMBER in self.gates and self.line.state is State.PENDING

    @property
    def now(self) -> Line | None:
        """Return the line that has its addresses now."""
        return self.after or (self.other if self.before else None)

    @property
    def of(self) -> str:
        """Return the other node that had the addresses of a new line before; "" if none had."""
        had = self.before or self.other
        return had.node if had and self.after and had.node != self.after.node else ""

    @property
    def to(self) -> str:
        """Return the other node that has the addresses of a former line now; "" if none has."""
        return self.now.node if self.before and self.now and self.now.node != self.before.node else ""

    @property
    def is_about_quarantine(self) -> bool:
        """Return whether the line enters or leaves quarantine, or its quarantine changes."""
        return any(line and line.since for line in (self.before, self.after))

    @property
    def lost(self) -> Line | None:
        """Return the line that a node held, and does not hold any more."""
        kept = self.verdict is Verdict.KEPT
        return self.before if self.before and self.before.state is State.HELD and not kept else None

    @property
    def got(self) -> Line | None:
        """Return the line that a node holds, and did not hold before."""
        kept = self.verdict is Verdict.KEPT
        return self.after if self.after and self.after.state is State.HELD and not kept else None


class LockChange(Struct, frozen=True, kw_only=True):
    """The change from one lock to another."""

    lines: tuple[LineChange, ...]  # by family and address
    renumbered: frozenset[tuple[str, int]]  # nodes with the family, as of the law
    moving: frozenset[str]  # nodes that are renumbered, or are to be from now on
    changes_hands: bool  # a gate other than leave is about some addresses, or others have what was a node's


def renumbered(found: Sequence[Change[Line]]) -> set[tuple[str, int]]:
    """Return the nodes, with the family, that lose held addresses and hold some that they did not hold."""
    got = {(each.got, each.family) for each in found}
    return {(each.lost, each.family) for each in found if each.lost} & got


def line_changes(
    before: Sequence[Line], after: Sequence[Line], days: Days, elsewhere: Collection[str] = ()
) -> LockChange:
    """Return the lines that differ; the arguments are those of the law. O(n log n) in lines that differ."""
    found = changes(before, after, days, elsewhere)
    both = renumbered(found)
    lines = sorted(_lines(found), key=lambda each: (each.line.block, each.before is None))
    moving = {each.after.node for each in lines if each.begins and each.after} | {node for node, _ in both}
    return LockChange(
        lines=tuple(lines),
        renumbered=frozenset(both),
        moving=frozenset(moving),
        changes_hands=any(map(_changes_hands, found)),
    )


def _changes_hands(change: Change[Line]) -> bool:
    if change.verdict in UNLAWFUL or change.gate not in {None, Gate.LEAVE}:
        return True
    was, now = change.before, change.after
    given = change.verdict not in {Verdict.FREE, Verdict.GIVEN, Verdict.CANCELLED}
    return given and was is not None and now is not None and now.in_use and now.node != was.node


def _begins(change: Change[Line]) -> bool:
    pending = change.after is not None and change.after.state is State.PENDING
    return pending and change.gate is Gate.RENUMBER


_WEIGHT = {verdict: number for number, verdict in enumerate(Verdict)}


def _lines(found: Iterable[Change[Line]]) -> Iterator[LineChange]:
    was: dict[Line, list[Change[Line]]] = defaultdict(list)
    now: dict[Line, list[Change[Line]]] = defaultdict(list)
    for change in found:
        for line, parts in ((change.before, was), (change.after, now)):
            if line:
                parts[line].append(change)
    for line, changed in was.items():
        worst = max(changed, key=lambda change: _WEIGHT[change.verdict])
        over = next((change.after for change in changed if change.after), None)
        after = over if over and over.block == line.block else None
        # A move to a part of the line is of the node that moves there.
        gates = {each.gate for each in changed if each.gate and (after or not _begins(each))}
        yield LineChange(before=line, after=after, verdict=worst.verdict, gates=frozenset(gates), other=over)
    for line, changed in now.items():
        under = next((change.before for change in changed if change.before), None)
        if not under or under.block != line.block:
            # What became of lines that had its addresses is said of these.
            new = [change for change in changed if change.verdict in {Verdict.GIVEN, Verdict.FREE}]
            first = (new or changed)[0]
            kept = first.verdict if new or first.verdict is Verdict.KEPT else Verdict.GIVEN
            gates = {each.gate for each in changed if each.gate and _begins(each)}
            yield LineChange(before=None, after=line, verdict=kept, gates=frozenset(gates), other=under)
