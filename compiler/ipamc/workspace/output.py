"""What ipamc writes of a cluster: its lock and the files below `rendered/`.

Somebody may change the folder while a run is at work: git checks another branch out, an editor saves. What was
read is compared with what is there right before the first file gets its name, and the lock again before each
of the others, so that the lock of one branch is not written into another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct

from ipamc.model.progress import phase, track
from ipamc.workspace import safe_read, tree
from ipamc.workspace.cluster_lock import Held, is_leftover, temporary
from ipamc.workspace.clusters import name_of
from ipamc.workspace.disk import LOCK, RENDERED, is_same, lock_path
from ipamc.workspace.trouble import Trouble
from ipamc.workspace.unfinished import intend

if TYPE_CHECKING:
    from ipamc.pipeline import Inputs


class Changes(Struct, frozen=True, kw_only=True):
    """What differs between the disk and a compile. Paths are below `rendered/`, sorted."""

    lock: bool = False
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.lock or bool(self.written) or bool(self.removed)


def compare(folder: str, lock: str | None, files: Mapping[str, str] | None) -> Changes:
    """Return what `write` would change; change nothing.

    A `lock` or `files` of None stays as it is on the disk. Raises Trouble for a link to a folder.
    """
    rendered = Path(folder, RENDERED)
    there = () if files is None else tree.entries(folder)
    wanted = files or {}
    return Changes(
        lock=lock is not None and not is_same(Path(folder, LOCK), lock.encode()),
        written=tuple(path for path in sorted(wanted) if not is_same(rendered / path, wanted[path].encode())),
        removed=tuple(path for path in there if path not in wanted),
    )


def write(held: Held, lock: str | None, files: Mapping[str, str] | None, read: Inputs) -> Changes:
    """Write the lock, then each file that changed; then remove what no longer belongs.

    Folders that are empty after that are removed, too. The lock comes first because addresses must not be
    forgotten. `read` is what the run read of this folder. Where it is not there any more as it was, Trouble is
    raised: nothing was written, except where the lock itself was replaced after we wrote it. After a kill
    every file is whole, and the next run completes the work. A file that has its text already is not touched.
    """
    phase("comparing with the disk")
    for path in files or {}:
        _check_path(path)
    _refuse_moved(held)
    changes = compare(held.folder, lock, files)
    _sweep(held, every_folder=files is not None)
    if not changes:
        return changes
    texts = {f"{RENDERED}/{path}": (files or {})[path] for path in changes.written}
    if changes.lock and lock is not None:
        texts = {LOCK: lock, **texts}
    intend(held.folder, texts, [f"{RENDERED}/{path}" for path in changes.removed])
    staged: dict[str, str] = {}
    try:
        for path in track(texts, "preparing", "files"):
            staged[path] = temporary()  # known before it is there: a signal may come in between
            held.stage(staged[path], path, texts[path].encode(), durable=path == LOCK)
        before = _Lock(held, read.lock)
        _refuse_changes(before, read)
        _place(before, staged, changes, lock)
    finally:
        for name in staged.values():
            held.remove(name)
    return changes


class _Lock(Struct):
    """The lock that must be there while files get their names."""

    held: Held
    text: bytes | None
    seen: safe_read.Signature | None = None
    """Of the lock when its bytes were compared last; they are not read again while it stays the same."""

    def check(self) -> None:
        """Raise Trouble unless it is still there."""
        if self.seen and self.held.signature(LOCK) == self.seen:
            return
        path = lock_path(self.held.folder)
        try:
            found = safe_read.read_signed(path)
        except (Trouble, OSError):
            raise _changed(self.held, path) from None
        if (found and found[0]) != self.text:
            raise _changed(self.held, path)
        self.seen = found and found[1]


def _refuse_changes(lock: _Lock, read: Inputs) -> None:
    """Compare the folder with what was read of it, the lock last. Raises Trouble where something was changed."""
    from ipamc.workspace.source import Disk

    if path := Disk().changed(read):
        raise _changed(lock.held, path)
    _refuse_moved(lock.held)
    lock.check()


def _refuse_moved(held: Held) -> None:
    if not held.is_in_place():
        raise _changed(held, held.folder)


def _place(lock: _Lock, staged: Mapping[str, str], changes: Changes, text: str | None) -> None:
    """Give the files their names, the lock first, and remove the others, as long as the lock stays as it is."""
    held = lock.held
    phase("writing")
    if text is not None and LOCK in staged:
        held.move(staged[LOCK], LOCK)
        lock = _Lock(held, text.encode())
    in_the_way = _in_the_way(changes)
    for path in in_the_way:
        lock.check()
        held.prune(f"{RENDERED}/{path}")
    for path in track(staged, "writing", "files"):
        if path != LOCK:
            lock.check()
            held.move(staged[path], path)
    for path in changes.removed:
        if path not in in_the_way:
            lock.check()
            held.prune(f"{RENDERED}/{path}")


def _changed(held: Held, path: str) -> Trouble:
    return Trouble(f"{name_of(held.folder)} changed while it was compiled: {path}; run it again")


def _check_path(path: str) -> None:
    parts = PurePosixPath(path).parts
    if (
        not parts
        or path != "/".join(parts)
        or any(part.startswith(".") or "\\" in part or "\0" in part for part in parts)
    ):
        raise ValueError(f"{path!r} is not a path below {RENDERED}/")


def _in_the_way(changes: Changes) -> frozenset[str]:
    """Return the files to remove before others are written.

    They are where a folder must be made, or inside a folder where a file must be written.
    """
    written = set(changes.written)
    above = {parent.as_posix() for path in written for parent in PurePosixPath(path).parents}
    return frozenset(
        path
        for path in changes.removed
        if path in above or any(parent.as_posix() in written for parent in PurePosixPath(path).parents)
    )


def _sweep(held: Held, *, every_folder: bool) -> None:
    """Remove the unfinished files of a run that was killed."""
    top = Path(held.folder)
    for path in (*top.iterdir(), *(tree.leaves(held.folder) if every_folder else ())):
        if is_leftover(path):
            held.remove(path.relative_to(top).as_posix())
