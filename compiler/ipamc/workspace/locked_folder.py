"""An exclusively locked cluster folder: all files of a run are written to it, or none.

The folder is open from the first read to the last write, and each name is looked up from it, step by step and
through no link. If the folder is moved or removed meanwhile, nothing appears in its old place.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct

from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.safe_read import Signature, refuse_links, signature

_BY_HANDLE = {os.open, os.mkdir, os.rename, os.rmdir, os.stat, os.unlink} <= os.supports_dir_fd
"""Whether the system opens folders and looks up names relative to them. Windows does not."""
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class LockedFolder(Struct, frozen=True):
    """An exclusively locked folder. Paths are below it, with forward slashes."""

    folder: str  # as the user would type it
    handle: int | None  # None if the system has no such handles: then paths are used

    def is_in_place(self) -> bool:
        """Return whether the folder's path still leads to it."""
        if self.handle is None:
            return Path(self.folder).is_dir()
        try:
            there = Path(self.folder).lstat()
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self.handle))

    def stage(self, name: str, path: str, data: bytes, *, durable: bool = False) -> None:
        """Write bytes to the temporary file `name`; `durable`: wait until they are on the disk."""
        with self._above(name, shown=path) as (handle, last):
            opened = os.open(last, _NEW, 0o666, dir_fd=handle)
            with open(opened, "wb") as file:  # noqa: PTH123 - pathlib opens no handles
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(opened)

    def move(self, name: str, path: str) -> None:
        """Rename a temporary file to a path; create the folders above it."""
        with self._above(path, make=True) as (handle, last):
            source = name if self.handle is not None else f"{self.folder}/{name}"
            os.replace(source, last, src_dir_fd=self.handle, dst_dir_fd=handle)

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        with contextlib.suppress(FileNotFoundError), self._above(path) as (handle, last):
            os.unlink(last, dir_fd=handle)

    def prune(self, path: str) -> None:
        """Remove a file, or an empty folder (FOLDER/), and each folder above that is then empty."""
        if not path.endswith("/"):
            self.remove(path)
        where = PurePosixPath(path)
        for folder in (*((where,) if path.endswith("/") else ()), *where.parents[:-1]):
            try:
                with self._above(folder.as_posix()) as (handle, last):
                    os.rmdir(last, dir_fd=handle)
            except OSError:  # not empty
                return

    def signature(self, path: str) -> Signature | None:
        """Return the signature of a file; None if it does not exist."""
        try:
            with self._above(path) as (handle, last):
                return signature(os.stat(last, dir_fd=handle, follow_symlinks=False))
        except FileNotFoundError:
            return None

    @contextlib.contextmanager
    def _above(self, path: str, *, make: bool = False, shown: str = "") -> Iterator[tuple[int | None, str]]:
        """Open or `make` the folder of a path; yield it and the last name. Errors show `shown`."""
        *folders, last = path.split("/")
        try:
            if self.handle is None:
                where = Path(self.folder, path)
                if make and folders:
                    where.parent.mkdir(parents=True, exist_ok=True)
                yield None, str(where)
                return
            with contextlib.ExitStack() as opened:
                handle = self.handle
                for name in folders:
                    handle = _open(name, handle, make=make)
                    opened.callback(os.close, handle)
                yield handle, last
        except OSError as problem:
            problem.filename, problem.filename2 = f"{self.folder}/{shown or path}", None
            raise


def _open(name: str, above: int, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except FileNotFoundError:
        if not make:
            raise
    os.mkdir(name, dir_fd=above)
    return os.open(name, _FOLDER, dir_fd=above)


@contextlib.contextmanager
def lock_folder(folder: str, *, wait: bool = False) -> Iterator[LockedFolder]:
    """Open and lock a cluster's folder. Raises EnvironmentFailure behind a link, or, without `wait`, if
    another run has it.
    """
    refuse_links(folder)
    if not _BY_HANDLE:
        yield LockedFolder(folder, None)
        return
    handle = os.open(folder, _FOLDER)
    try:
        with contextlib.suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                said = f"another ipamc is running in {folder}: run this again when it is done"
                raise EnvironmentFailure(said) from None
            except OSError:  # a file system without locks
                pass
        yield LockedFolder(folder, handle)
    finally:
        os.close(handle)
