"""Files that a stranger's branch may have: read whole, only if regular, through no link, within a limit.

A pipe would make a reader wait for ever, a device may have no end, and a link leads out of the repository.
None of them is opened for reading. Links above the top of the work tree (a home folder, /tmp on macOS) belong
to the machine, and are allowed. The top is the nearest folder above with `.git`, a file or a folder. Without
one, all typed parts of a relative path are checked, and only the last part of an absolute one. git is not
asked: it would read a configuration.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from ipamc.model.limits import LARGEST_FILE, LARGEST_INPUTS
from ipamc.workspace.failure import EnvironmentFailure

_PIECE = 1 << 18
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
)


class Irregular(EnvironmentFailure):
    """The reason why a file is not read: a failure of the environment, or a finding."""

    def __init__(self, path: str, problem: str, fix: str = "put a regular file there") -> None:
        super().__init__(f"{path} {problem}: {fix}")
        self.problem = problem
        self.fix = fix


Signature = tuple[int, int, int, int]
"""Values that tell whether a file was replaced or written again: device, inode, size, time in nanoseconds."""


def read(path: str, most: int | None = None) -> bytes | None:
    """Return a file's bytes, at most `most` (LARGEST_FILE); None if it does not exist. Raises Irregular."""
    found = read_signed(path, most)
    return found[0] if found else None


def read_signed(path: str, most: int | None = None) -> tuple[bytes, Signature] | None:
    """Return the bytes of a file, and its signature from before the read; otherwise as `read`."""
    most = LARGEST_FILE if most is None else most
    with _opened(path) as file:
        if file is None:
            return None
        now = os.fstat(file.fileno())
        if now.st_size > most:
            raise Irregular(path, f"has {now.st_size:,} bytes, more than {most:,}", "make it smaller")
        data = file.read(now.st_size + 1)
        # The size may be wrong: the file grows, or the kernel generates it.
        if len(data) > now.st_size:
            data += file.read(most + 1 - len(data))
        if len(data) > most:
            raise Irregular(path, f"has more than {most:,} bytes", "make it smaller")
    return data, signature(now)


def head(path: str, most: int) -> bytes:
    """Return the first bytes of a regular file; b"" for all else, and for an unreadable file."""
    try:
        with _opened(path) as file:
            return file.read(most) if file else b""
    except (Irregular, OSError):
        return b""


def has(path: str, data: bytes) -> bool:
    """Return whether a file has these bytes, without loading it whole. Raises Irregular."""
    with _opened(path) as file:
        if file is None:
            return False
        position = 0
        while piece := file.read(_PIECE):
            if data[position : position + len(piece)] != piece:
                return False
            position += len(piece)
        return position == len(data)


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO | None]:
    """Open a file for reading; None if it does not exist. Raises Irregular."""
    try:
        before = os.lstat(path)
        _check(path, before)
        handle = os.open(path, _FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        yield None
        return
    with open(handle, "rb") as file:  # noqa: PTH123 - pathlib opens no handles
        now = os.fstat(handle)
        _check(path, now)
        # If the system cannot refuse a link, the opened file may be another one.
        if not os.path.samestat(before, now):
            raise Irregular(path, "was replaced while it was opened", "run it again")
        yield file


def refuse(path: str) -> None:
    """Raise Irregular unless a path is a regular file, and no link."""
    _check(path, os.lstat(path))


def refuse_excess(path: str, total: int) -> None:
    """Raise Irregular if files have too many bytes together; `path` is the file to name."""
    if total > LARGEST_INPUTS:
        problem = f"has, together with the files read before it, more than {LARGEST_INPUTS:,} bytes"
        raise Irregular(path, problem, "make it smaller")


def signature(status: os.stat_result) -> Signature:
    """Return the signature of a file by its status."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _check(path: str, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise Irregular(path, "is a link")
    if not stat.S_ISREG(status.st_mode):
        raise Irregular(path, "is not a regular file")


def link_on_the_way(folder: str) -> str:
    """Return the first link in the path of a cluster's folder, itself included, as typed; "" without one."""
    top, inside = _inside(folder)
    if top is None and inside[0].is_absolute():
        inside = inside[:1]
    return next((path.as_posix() for path in reversed(inside) if path.is_symlink()), "")


def refuse_links(folder: str) -> None:
    """Raise EnvironmentFailure if a cluster's folder is a link, or is behind one inside the work tree."""
    if link := link_on_the_way(folder):
        raise EnvironmentFailure(
            f"{link} is a link, and ipamc neither reads nor writes a cluster through links: "
            "put the folder itself there, or remove the link"
        )


def refuse_way_out(path: str) -> None:
    """Raise EnvironmentFailure if a file to write is behind a link that leads out of the work tree."""
    top, inside = _inside(path)
    if top is None and Path(path).is_absolute():
        return
    whole = Path(top or ".").resolve()
    for folder in reversed(inside[1:]):
        if folder.is_symlink() and not _leads_below(folder, whole):
            link = f"{folder.as_posix()} is a link that leaves {whole.as_posix()}"
            raise EnvironmentFailure(f"{link}, so {path} is not written: put a folder there")


def _leads_below(link: Path, top: Path) -> bool:
    try:
        return link.resolve().is_relative_to(top)
    except (OSError, RuntimeError):  # RuntimeError: a link to itself, before Python 3.13
        return False


def _inside(path: str) -> tuple[Path | None, Sequence[Path]]:
    """Return the top of a path's work tree, and the path with its parent folders below that top.
    They are as typed, the deepest first. A top that is itself a link counts only if no other top is above it:
    a link inside a work tree may lead to another one.
    """
    ways = _ways(path)
    above = [*ways[1:], *(() if ways[0].is_absolute() else _ways(str(Path.cwd()))[1:])]
    tops = [folder for folder in above if os.path.lexists(f"{folder}/.git")]
    top = next((folder for folder in tops if not folder.is_symlink()), tops[-1] if tops else None)
    return top, ways[: ways.index(top)] if top in ways else ways


@lru_cache(maxsize=64)
def _ways(path: str) -> tuple[Path, ...]:
    """Return a path and its parent folders, the deepest first. Reads no file."""
    typed = Path(path)
    return (typed, *(() if typed.parent == typed else _ways(str(typed.parent))))
