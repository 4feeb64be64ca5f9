"""What a run is about to write of a cluster, and how much of that is there: what an interrupt tells.

The disk is asked, and no record of what was done: between a rename and a note of it, a signal may come.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from pathlib import Path

from msgspec import Struct

from ipamc.workspace.disk import LOCK, is_same


class Left(Struct, frozen=True):
    """What a run that was ended has changed."""

    lock: bool | None = None
    """The new lock is there; None: it was to stay as it was."""
    files: int = 0
    """Files below `rendered/` that are as they are to be, and were not before: written, or removed."""
    of: int = 0
    """Files to write or to remove."""

    @property
    def nothing(self) -> bool:
        """Tell whether everything is as it was."""
        return not (self.lock or self.files)

    @property
    def complete(self) -> bool:
        """Tell whether nothing is left to do."""
        return self.lock is not False and self.files == self.of

    def __str__(self) -> str:
        """Return what is there now, in words."""
        if self.nothing:
            return "nothing was written"
        lock = {True: "ipam.lock is written", False: "ipam.lock is as it was", None: "ipam.lock is unchanged"}
        if self.files == self.of:
            return f"{lock[self.lock]}{', rendered/ is complete' if self.of else ''}"
        return f"{lock[self.lock]}, rendered/ is incomplete: {self.files:,} of {self.of:,} files"


class _Intent(Struct, frozen=True):
    folder: str
    texts: Mapping[str, str]
    removed: Collection[str]


_INTENT: ContextVar[_Intent | None] = ContextVar("intent", default=None)


def begin() -> None:
    """Begin a run: it has not written anything."""
    _INTENT.set(None)


def intend(folder: str, texts: Mapping[str, str], removed: Collection[str]) -> None:
    """Say what is about to be written and removed, by path below a cluster's folder."""
    _INTENT.set(_Intent(folder, texts, removed))


def left(folder: str) -> Left:
    """Return how much of that is there. Reads the files again."""
    intent = _INTENT.get()
    if intent is None or intent.folder != folder:
        return Left()
    there = there_now(intent.folder, intent.texts)
    gone = sum(not os.path.lexists(Path(intent.folder, path)) for path in intent.removed)
    lock = LOCK in there if LOCK in intent.texts else None
    files = [path for path in intent.texts if path != LOCK]
    return Left(lock, sum(path in there for path in files) + gone, len(files) + len(intent.removed))


def there_now(folder: str, texts: Mapping[str, str]) -> set[str]:
    """Return the paths below a folder at which there is a file with this text."""
    return {path for path, text in texts.items() if is_same(Path(folder, path), text.encode())}
