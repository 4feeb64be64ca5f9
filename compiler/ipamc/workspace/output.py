"""What ipamc writes of a cluster: its lock and the files below `rendered/`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ipamc.workspace.disk import LOCK, RENDERED, is_same, lock_path, put, read_bytes
from ipamc.workspace.trouble import Trouble

_LEFTOVER = re.compile(r"\.ipamc-\d+\.tmp").fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What differs between the disk and a compile. Paths are below `rendered/`, sorted."""

    lock: bool = False
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.lock or bool(self.written) or bool(self.removed)


def read_rendered(folder: str) -> dict[str, bytes]:
    """Read every file below a cluster's `rendered/`, by path below it, in order.

    Raises Trouble for a link to a folder.
    """
    top = f"{folder}/{RENDERED}"
    found = ((path, read_bytes(f"{top}/{path}")) for path in _tree(Path(top)))
    return {path: data for path, data in found if data is not None}


def compare(folder: str, lock: str | None, files: Mapping[str, str] | None) -> Changes:
    """Return what `write` would change; change nothing.

    A `lock` or `files` of None stays as it is on the disk.
    """
    rendered = Path(folder, RENDERED)
    there = () if files is None else _tree(rendered)
    wanted = files or {}
    return Changes(
        lock=lock is not None and not is_same(Path(folder, LOCK), lock.encode()),
        written=tuple(path for path in sorted(wanted) if not is_same(rendered / path, wanted[path].encode())),
        removed=tuple(path for path in there if path not in wanted),
    )


def write(folder: str, lock: str | None, files: Mapping[str, str] | None) -> Changes:
    """Write the lock, then each file that changed; then remove what no longer belongs.

    Folders that are empty after that are removed, too. The lock comes first because addresses must not be
    forgotten. After a kill every file is whole, and the next run completes the work. A file that has its text
    already is not touched.
    """
    for path in files or {}:
        _check_path(path)
    changes = compare(folder, lock, files)
    rendered = Path(folder, RENDERED)
    _sweep([Path(folder)] if files is None else [Path(folder), rendered, *_folders(rendered)])
    if changes.lock and lock is not None:
        put(lock_path(folder), lock.encode(), durable=True)
    in_the_way = _in_the_way(changes)
    _remove(rendered, in_the_way)
    for path in changes.written:
        where = rendered / path
        where.parent.mkdir(parents=True, exist_ok=True)
        put(str(where), (files or {})[path].encode())
    _remove(rendered, [path for path in changes.removed if path not in in_the_way])
    return changes


def _check_path(path: str) -> None:
    parts = PurePosixPath(path).parts
    if (
        not parts
        or path != "/".join(parts)
        or any(part.startswith(".") or "\\" in part or "\0" in part for part in parts)
    ):
        raise ValueError(f"{path!r} is not a path below {RENDERED}/")


def _folders(top: Path) -> Iterator[Path]:
    """Yield every folder below `top`, each before the folders inside it.

    Raises Trouble for a link to a folder.
    """
    if top.is_symlink():
        raise Trouble(
            f"{top.as_posix()} is a link, and ipamc does not write through links: put a folder there"
        )
    waiting = [top] if top.is_dir() else []
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            if path.is_dir():
                if path.is_symlink():
                    raise Trouble(
                        f"{path.as_posix()} is a link, and ipamc does not write through links: remove it"
                    )
                waiting.append(path)
                yield path


def _tree(top: Path) -> list[str]:
    """Return the paths of the files below `top`, sorted; names that start with a dot are not ipamc's."""
    found = [
        path
        for folder in (top, *_folders(top))
        if folder.is_dir()
        for path in folder.iterdir()
        if path.is_symlink() or not path.is_dir()
    ]
    return sorted(path.relative_to(top).as_posix() for path in found if not path.name.startswith("."))


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


def _remove(rendered: Path, paths: Iterable[str]) -> None:
    for path in paths:
        (rendered / path).unlink()
        for folder in (rendered / path).parents:
            try:
                folder.rmdir()
            except OSError:  # not empty
                break
            if folder == rendered:
                break


def _sweep(folders: Iterable[Path]) -> None:
    """Remove the unfinished files of a run that was killed."""
    for folder in folders:
        for path in folder.iterdir() if folder.is_dir() else ():
            if _LEFTOVER(path.name) and not path.is_dir():
                path.unlink()
