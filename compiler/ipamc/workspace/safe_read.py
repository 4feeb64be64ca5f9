"""Files that somebody else's branch may have shaped: read whole, only if regular, through no link, within a limit.

A pipe would keep a reader waiting for ever, a device may have no end, and a link leads out of the repository.
None of them is opened for reading.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from ipamc.workspace.trouble import Trouble

LARGEST = 256 << 20
"""The most bytes of a file: an inventory of some 600,000 nodes."""
TOTAL = 1 << 30
"""The most bytes of the inputs of a cluster together, and of its rendered files."""

_PIECE = 1 << 18
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
)


class Irregular(Trouble):
    """A file that is not read, and why. The environment's failure, unless the caller makes a finding of it."""

    def __init__(self, path: str, problem: str, fix: str = "put a regular file there") -> None:
        super().__init__(f"{path} {problem}: {fix}")
        self.problem = problem
        self.fix = fix


class Signature(NamedTuple):
    """What tells a file from one that took its place, or was written again."""

    device: int
    inode: int
    size: int
    modified: int
    """Nanoseconds since 1970."""


def read(path: str, most: int | None = None) -> bytes | None:
    """Return the bytes of a file; None where there is none. Raises Irregular.

    The file is of at most `most` bytes, LARGEST by default.
    """
    found = read_signed(path, most)
    return found[0] if found else None


def read_signed(path: str, most: int | None = None) -> tuple[bytes, Signature] | None:
    """Return the bytes of a file with its signature from before they were read, else as `read`."""
    most = LARGEST if most is None else most
    with _opened(path) as file:
        if file is None:
            return None
        now = os.fstat(file.fileno())
        if now.st_size > most:
            raise Irregular(path, f"has {now.st_size:,} bytes, more than {most:,}", "make it smaller")
        data = file.read(now.st_size + 1)
        # A size may be untrue: the file grows, or it is one of the kernel's.
        if len(data) > now.st_size:
            data += file.read(most + 1 - len(data))
        if len(data) > most:
            raise Irregular(path, f"has more than {most:,} bytes", "make it smaller")
    return data, signature(now)


def head(path: str, most: int) -> bytes:
    """Return the first bytes of a regular file; none of anything else, and of a file that cannot be read."""
    try:
        with _opened(path) as file:
            return file.read(most) if file else b""
    except (Irregular, OSError):
        return b""


def has(path: str, data: bytes) -> bool:
    """Tell whether a file has these bytes, without another copy of them. Raises Irregular."""
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
    """Open a file for reading; None where there is none. Raises Irregular."""
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
        # Where the system cannot refuse a link, what was opened may be another file.
        if not os.path.samestat(before, now):
            raise Irregular(path, "was replaced while it was opened", "run it again")
        yield file


def refuse(path: str) -> None:
    """Raise Irregular unless a path is a regular file, and no link."""
    _check(path, os.lstat(path))


def refuse_excess(path: str, total: int) -> None:
    """Raise Irregular where files have too many bytes together; `path` is the one that is shown."""
    if total > TOTAL:
        raise Irregular(path, f"has, with what was read before, more than {TOTAL:,} bytes", "make it smaller")


def signature(status: os.stat_result) -> Signature:
    """Return the signature of a file by its status."""
    return Signature(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _check(path: str, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise Irregular(path, "is a link")
    if not stat.S_ISREG(status.st_mode):
        raise Irregular(path, "is not a regular file")
