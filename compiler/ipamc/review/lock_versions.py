"""Several versions of one lock as a table of lines and, for each version, what it added and removed.

Versions of a lock have nearly all lines in common. They are compared as text, so that a line which did not
change is decoded once, however many versions have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from ipamc.lock.file import dumps
from ipamc.lock.record import HEADER, decode_records, line_of
from ipamc.lock.transitions import Known, Reason, transitions
from ipamc.model.cluster import Mode
from ipamc.model.lock import Line, Lock, State


class Step(Struct, frozen=True, kw_only=True):
    """A version of the lock, by what it changed against the version before: indexes of lines, ascending."""

    commit: str
    """"" for what is not committed."""
    second: int
    """Seconds since 1970, UTC; 0 for what is not committed."""
    subject: str
    added: Sequence[int]
    removed: Sequence[int]
    reasons: Sequence[Reason]
    """Why each of `added` came."""


class Versions(Struct):
    """The lines of all versions, and the steps from one to the next: the first one adds to nothing.

    The lines of the current lock come first, in its order: index 0 is its second row.
    """

    lines: list[Line]
    current: int
    """How many lines the current lock has."""
    steps: list[Step] = field(default_factory=list)
    passed_over: int = 0
    """How many versions are no sound lock."""
    _index: dict[bytes, int] = field(default_factory=dict)
    _now: frozenset[bytes] = frozenset()
    _holding: Counter[str] = field(default_factory=Counter)
    """How many blocks each node holds now."""

    def add(self, text: bytes, *, commit: str = "", second: int = 0, subject: str = "") -> None:
        """Append a version. One whose rows cannot be read is passed over and counted. O(rows).

        What has no header is no lock, however few rows it has: it took no block away from anybody.
        """
        header, _, _ = text.partition(b"\n")
        rows = frozenset(_rows(text))
        added, removed = rows - self._now, self._now - rows
        new = [row for row in sorted(added) if row not in self._index]
        try:
            mode = Mode(HEADER.decode(header).mode)
            records = decode_records(b"\n".join(new) + b"\n") if new else []
            lines: list[Line] | None = [line_of(record) for record in records]
        except ValueError:
            lines = None
        if lines is None or len(lines) != len(new):  # a row with two records
            self.passed_over += 1
            return
        self._index.update(zip(new, range(len(self.lines), len(self.lines) + len(new)), strict=True))
        self.lines += lines
        come, gone = (sorted([self._index[row] for row in some]) for some in (added, removed))
        step = Step(
            commit=commit,
            second=second,
            subject=subject,
            added=come,
            removed=gone,
            reasons=self._reasons(come, gone, mode),
        )
        self._now = rows
        self.steps.append(step)

    def _reasons(self, come: Sequence[int], gone: Sequence[int], mode: Mode) -> list[Reason]:
        before, after = (
            sorted([self.lines[number] for number in numbers], key=lambda line: line.block)
            for numbers in (gone, come)
        )
        self._holding.update(line.node for line in after if line.state is State.HELD)
        self._holding -= Counter(line.node for line in before if line.state is State.HELD)
        if not self.steps:
            return [Reason.ADDED] * len(come)
        known = Known(one_block=mode.one_block, present=self._holding)
        why = {each.after: each.reason for each in transitions(before, after, known)}
        return [why[self.lines[number]] for number in come]

    def add_current(self, lock: Lock, subject: str = "") -> None:
        """Append the current lock, if it differs from the last version."""
        text = lock_text(lock)
        if not self.steps or frozenset(_rows(text)) != self._now:
            self.add(text, subject=subject)


def versions_of(lock: Lock) -> Versions:
    """Return the table with the lines of the current lock, and no version."""
    rows = list(_rows(lock_text(lock)))
    return Versions(
        lines=list(lock.lines),
        current=len(rows),
        _index=dict(zip(rows, range(len(rows)), strict=True)),
    )


def lock_text(lock: Lock) -> bytes:
    """Return the lock as it is written."""
    return dumps(lock).encode()


def _rows(text: bytes) -> Iterator[bytes]:
    return iter(text.split(b"\n")[1:-1])


def chosen(number: int, most: int) -> list[int]:
    """Return which of a number of versions are shown, at most so many, ascending: the first and the newest.

    Half of them are the newest, the others are spread evenly over the rest.
    """
    if number <= most:
        return list(range(number))
    newest = most // 2
    older = most - newest
    rest = number - newest
    return [*(index * rest // older for index in range(older)), *range(rest, number)]
