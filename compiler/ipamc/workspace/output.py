"""Writes a cluster's lock and the files below `rendered/`, and reports what changed.

The folder may change while a run is at work: git checks another branch out, an editor saves. Right before the
first file gets its name, the files that were read are compared with the disk, and before each further file
the lock is. So the lock of one branch is not written into another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct

from ipamc.model.progress import phase, track
from ipamc.workspace import safe_read, tree
from ipamc.workspace.atomic_write import is_leftover, temporary
from ipamc.workspace.clusters import name_of
from ipamc.workspace.disk import LOCK, RENDERED, is_same, lock_path
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.locked_folder import LockedFolder

if TYPE_CHECKING:
    from ipamc.pipeline import Inputs


class Changes(Struct, frozen=True, kw_only=True):
    """What differs between the disk and a compile. Paths are below `rendered/`, sorted."""

    lock: bool = False
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.lock or bool(self.written) or bool(self.removed)


def there_now(folder: str, texts: Mapping[str, str]) -> set[str]:
    """Return the paths below a folder whose file has this text."""
    return {path for path, text in texts.items() if is_same(Path(folder, path), text.encode())}


def compare(folder: str, lock: str | None, files: Mapping[str, str] | None) -> Changes:
    """Return what `write` would change; None: no change wanted.
    Raises EnvironmentFailure for a link to a folder.
    """
    there, wanted = () if files is None else tree.entries(folder), files or {}
    same = there_now(f"{folder}/{RENDERED}", wanted)
    return Changes(
        lock=lock is not None and not is_same(Path(folder, LOCK), lock.encode()),
        written=tuple(sorted(wanted.keys() - same)),
        removed=tuple(path for path in there if path not in wanted),
    )


def write(held: LockedFolder, lock: str | None, files: Mapping[str, str] | None, read: Inputs) -> Changes:
    """Write the lock, then each file that changed; then remove files that no longer belong.
    Folders that become empty are removed, too. The lock comes first because addresses must not be forgotten.
    `read` is what the run read of this folder. If the disk differs from it, EnvironmentFailure is raised, and
    nothing is written, unless the lock was replaced after this run wrote it. After a kill every file is
    whole, and the next run completes the work. A file that already has its text is not touched.
    """
    from ipamc.workspace.source import Disk

    phase("comparing with the disk")
    for path in files or {}:
        parts = PurePosixPath(path).parts
        odd = any(part.startswith(".") or "\\" in part or "\0" in part for part in parts)
        if not parts or path != "/".join(parts) or odd:
            raise ValueError(f"{path!r} is not a path below {RENDERED}/")
    _refuse_moved(held)
    changes = compare(held.folder, lock, files)
    top = Path(held.folder)
    for path in (*top.iterdir(), *(tree.leaves(held.folder) if files is not None else ())):
        if is_leftover(path):
            held.remove(path.relative_to(top).as_posix())
    if not changes:
        return changes
    texts = {f"{RENDERED}/{path}": (files or {})[path] for path in changes.written}
    if changes.lock and lock is not None:
        texts = {LOCK: lock, **texts}
    staged: dict[str, str] = {}
    try:
        for path in track(texts, "preparing", "files"):
            staged[path] = temporary()  # recorded before it exists: a signal may come in between
            held.stage(staged[path], path, texts[path].encode(), durable=path == LOCK)
        before = _Lock(held, read.lock)
        if changed := Disk().changed(read):
            raise _changed(held, changed)
        _refuse_moved(held)
        before.check()
        _place(before, staged, changes, lock)
    finally:
        for name in staged.values():
            held.remove(name)
    return changes


class _Lock(Struct):
    """The lock that must stay unchanged while files get their names."""

    held: LockedFolder
    text: bytes | None
    seen: safe_read.Signature | None = None
    """The lock's signature when its bytes were last compared; they are read again only if it changes."""

    def check(self) -> None:
        """Raise EnvironmentFailure if the lock has changed."""
        if self.seen and self.held.signature(LOCK) == self.seen:
            return
        path = lock_path(self.held.folder)
        try:
            found = safe_read.read_signed(path)
        except (EnvironmentFailure, OSError):
            raise _changed(self.held, path) from None
        if (found and found[0]) != self.text:
            raise _changed(self.held, path)
        self.seen = found and found[1]


def _place(lock: _Lock, staged: Mapping[str, str], changes: Changes, text: str | None) -> None:
    """Give the files their names, the lock first, and remove others, as long as the lock stays unchanged."""
    held = lock.held
    phase("writing")
    if text is not None and LOCK in staged:
        held.move(staged[LOCK], LOCK)
        lock = _Lock(held, text.encode())

    def prune(paths: Iterable[str]) -> None:
        for path in paths:
            lock.check()
            held.prune(f"{RENDERED}/{path}")

    # Removed first: files in the way of a new folder, or in a folder in the way of a new file.
    written = set(changes.written)
    folders = {above for path in written for above in _above(path)}
    in_the_way = {path for path in changes.removed if path in folders or not written.isdisjoint(_above(path))}
    prune(sorted(in_the_way))
    for path in track(staged, "writing", "files"):
        if path != LOCK:
            lock.check()
            held.move(staged[path], path)
    prune(path for path in changes.removed if path not in in_the_way)


def _above(path: str) -> Iterable[str]:
    return map(PurePosixPath.as_posix, PurePosixPath(path).parents)


def _refuse_moved(held: LockedFolder) -> None:
    if not held.is_in_place():
        raise _changed(held, held.folder)


def _changed(held: LockedFolder, path: str) -> EnvironmentFailure:
    return EnvironmentFailure(f"{name_of(held.folder)} changed while it was compiled: {path}; run it again")
