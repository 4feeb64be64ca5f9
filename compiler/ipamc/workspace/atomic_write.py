"""The atomic write: a file is written beside its place and then renamed, so it is whole at any time.

`LockedFolder` does the same with all files of a run; their temporary files have these names, too.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

_TEMPORARY = re.compile(r"\.ipamc-[0-9a-f]+\.tmp").fullmatch


def put(path: str, data: bytes) -> None:
    """Write a temporary file in the same folder, then rename it."""
    where = Path(path)
    beside = where.with_name(temporary())
    with _writing_in(where.parent):
        try:
            with beside.open("xb") as file:  # x: fails for a link
                file.write(data)
            beside.replace(where)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _writing_in(folder: Path) -> Iterator[None]:
    """Lock a folder together with other writers; the first one removes what killed runs left there."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with contextlib.suppress(OSError):  # another run writes there, or the file system has no locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in folder.iterdir():
                if is_leftover(path):
                    path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def temporary() -> str:
    """Return a random name for a temporary file."""
    return f".ipamc-{os.urandom(8).hex()}.tmp"


def is_leftover(path: Path) -> bool:
    """Return whether a path is a temporary file. If no other run writes, a killed run left it."""
    return bool(_TEMPORARY(path.name)) and (path.is_symlink() or not path.is_dir())
