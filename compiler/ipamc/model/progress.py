"""The progress of a run for a watcher: its phase, and how far it is. It decides nothing.

The core reports the beginning of a phase; the command line, which alone has a clock and a terminal, polls
from time to time. Without a watcher, `track` returns its items unchanged, and the rest costs one read of a
variable per phase.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


class Phase:
    """A part of the work. Another thread may read it at any time."""

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
    """A file that is being read; its reader knows how far."""

    __slots__ = ()


class Progress:
    """The progress of one run: the latest phase, and the number of the present cluster."""

    __slots__ = ("clusters", "counts", "now")

    def __init__(self, *, counts: bool = False) -> None:
        self.now = Phase("")
        self.clusters: Phase | None = None
        self.counts = counts
        """Somebody looks at the numbers, too; else only at the phase, where a signal ends the run."""

    def __str__(self) -> str:
        """Return `37 of 100 clusters: reading nodes.yaml 61 %`, or the known part of it."""
        clusters = self.clusters
        return ": ".join(filter(None, (str(clusters).strip() if clusters else "", str(self.now))))


_CURRENT: ContextVar[Progress | None] = ContextVar("progress", default=None)


def current() -> Progress | None:
    """Return the watched progress of this run; None without a watcher."""
    return _CURRENT.get()


@contextmanager
def watched(progress: Progress) -> Iterator[None]:
    """Record the progress of the block in `progress`."""
    token = _CURRENT.set(progress)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def phase(text: str) -> None:
    """Begin a phase in which nothing is counted."""
    if progress := _CURRENT.get():
        progress.now = Phase(text)


def reading(name: str, size: int = 0) -> None:
    """Begin to read a file of `size` bytes, counted by `reached`; otherwise `share` or `measure` count."""
    if progress := _CURRENT.get():
        progress.now = Reading(f"reading {name}", size)


def reached(done: int) -> None:
    """Record how much of a file was read."""
    progress = _CURRENT.get()
    if progress and isinstance(progress.now, Reading):
        progress.now.done = done


def measure(total: int, at: Callable[[], int]) -> None:
    """Set the function that returns how much of a file was read; a watcher calls it. Quick and pure."""
    if progress := _reader():
        progress.now = Reading(progress.now.text, total, at=at)


def share(items: Collection[T]) -> Iterable[T]:
    """Count the items of a file that is read; return the items to iterate over."""
    progress = _reader()
    if progress is None:
        return items
    progress.now = Reading(progress.now.text, len(items))
    return _counted(items, progress.now)


def _reader() -> Progress | None:
    """Return the progress if a file is being read and somebody watches; else None."""
    progress = _CURRENT.get()
    return progress if progress and progress.counts and isinstance(progress.now, Reading) else None


def track(items: Collection[T], text: str, noun: str) -> Iterable[T]:
    """Begin a phase that counts its items, `placing 41,200 of 100,000 blocks`; return the items."""
    progress = _CURRENT.get()
    if progress is None:
        return items
    progress.now = Phase(text, len(items), noun)
    return _counted(items, progress.now) if progress.counts else items


def track_clusters(items: Collection[T]) -> Iterable[T]:
    """Count several clusters, which have phases of their own; return the items."""
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
