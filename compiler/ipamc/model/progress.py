"""What a run is doing now, for whoever watches it: a phase, and how far it is. It decides nothing.

The core says what it begins; the command line, which alone knows a clock and a terminal, looks from time to
time. Where nobody watches, `track` returns its items as they are, and the rest is one look at a variable for
each phase.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


class Phase:
    """A part of the work. Another thread may look at it at any time."""

    __slots__ = ("at", "done", "noun", "text", "total")

    def __init__(
        self, text: str, total: int = 0, noun: str = "", at: Callable[[], int] | None = None
    ) -> None:
        self.text = text
        self.total = total
        """0: not known."""
        self.noun = noun
        """What is counted; "": a percentage is shown."""
        self.done = 0
        self.at = at
        """Tells how much is done, instead of `done`."""

    def __str__(self) -> str:
        """Return `reading nodes.yaml 61 %`, `placing 41,200 of 100,000 nodes`, or the text alone."""
        if not self.total:
            return self.text
        done = min(self.at() if self.at else self.done, self.total)
        if self.noun:
            return f"{self.text} {done:,} of {self.total:,} {self.noun}"
        return f"{self.text} {100 * done // self.total} %"


class Reading(Phase):
    """A file is read; how far, whoever knows its syntax tells."""

    __slots__ = ()


class Progress:
    """What one run is doing: the phase that it began last, and which of several clusters it is at."""

    __slots__ = ("clusters", "counts", "now")

    def __init__(self, *, counts: bool = False) -> None:
        self.now = Phase("")
        self.clusters: Phase | None = None
        self.counts = counts
        """Somebody looks at the numbers, too; else only at the phase, where a signal ends the run."""

    def __str__(self) -> str:
        """Return `37 of 100 clusters: reading nodes.yaml 61 %`, or the part of it that is known."""
        clusters = self.clusters
        return ": ".join(filter(None, (str(clusters).strip() if clusters else "", str(self.now))))


_CURRENT: ContextVar[Progress | None] = ContextVar("progress", default=None)


def current() -> Progress | None:
    """Return who watches this run; None where nobody does."""
    return _CURRENT.get()


@contextmanager
def watched(progress: Progress) -> Iterator[None]:
    """Let what the block does be seen in `progress`."""
    token = _CURRENT.set(progress)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def phase(text: str) -> None:
    """Begin a phase of which nothing is counted."""
    if progress := _CURRENT.get():
        progress.now = Phase(text)


def reading(name: str, size: int = 0) -> None:
    """Begin to read a file. Of `size`, `reached` says how much was read; else `share` or `measure` do."""
    if progress := _CURRENT.get():
        progress.now = Reading(f"reading {name}", size)


def reached(done: int) -> None:
    """Say how much of a file was read."""
    progress = _CURRENT.get()
    if progress and isinstance(progress.now, Reading):
        progress.now.done = done


def measure(total: int, at: Callable[[], int]) -> None:
    """Let `at` tell how much of a file was read. Who watches calls it: it is quick, and changes nothing."""
    if progress := _reader():
        progress.now = Reading(progress.now.text, total, at=at)


def share(items: Collection[T]) -> Iterable[T]:
    """Count the items of a file that is read. Return the items to take."""
    progress = _reader()
    if progress is None:
        return items
    progress.now = Reading(progress.now.text, len(items))
    return _counted(items, progress.now)


def _reader() -> Progress | None:
    """Return who watches how far the reading of a file is; None where nobody does."""
    progress = _CURRENT.get()
    return progress if progress and progress.counts and isinstance(progress.now, Reading) else None


def track(items: Collection[T], text: str, noun: str) -> Iterable[T]:
    """Begin a phase that takes items one by one, `placing 41,200 of 100,000 blocks`; return the items."""
    progress = _CURRENT.get()
    if progress is None:
        return items
    progress.now = Phase(text, len(items), noun)
    return _counted(items, progress.now) if progress.counts else items


def track_clusters(items: Collection[T]) -> Iterable[T]:
    """Count clusters, which have phases of their own, where there are several; return the items."""
    progress = _CURRENT.get()
    if progress is None or len(items) < 2:
        return items
    progress.clusters = Phase("", len(items), "clusters")
    return _counted(items, progress.clusters)


def _counted(items: Iterable[T], phase: Phase) -> Iterator[T]:
    for done, item in enumerate(items):
        phase.done = done
        yield item
    phase.done = phase.total
