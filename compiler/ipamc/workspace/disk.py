"""Single files and folders: read if regular, written through no link, and stdin.

A failure of the environment (no permission, no space, no such folder) is raised as OSError or as
EnvironmentFailure; the command line prints it as one line.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path, PurePath

from ipamc.model.limits import LARGEST_FILE
from ipamc.workspace import safe_read
from ipamc.workspace.atomic_write import put
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.safe_read import refuse_links, refuse_way_out

read_bytes = safe_read.read

SCHEMA = ".schema.json"  # the end of the name of a schema's file, behind the kind
CLUSTERS = "clusters"  # the folder of all clusters
LOCK = "ipam.lock"
RENDERED = "rendered"
SUFFIXES = frozenset({".yaml", ".yml", ".json"})


def below(parent: str) -> list[str]:
    """Return the folders and links directly below a folder, in order of name, without hidden (.NAME) ones."""
    with os.scandir(parent) as entries:
        names = [each.name for each in entries if each.is_symlink() or each.is_dir()]
    return [PurePath(parent, name).as_posix() for name in sorted(names) if not name.startswith(".")]


def is_folder(path: str) -> bool:
    """Return whether there is a folder at `path`, or a link, which is refused where it is read."""
    return Path(path).is_symlink() or Path(path).is_dir()


def identity(folder: str) -> Path:
    """Return one canonical path for a file or folder, however it is typed; a final link is not followed."""
    path = Path(folder)
    # Unlike Path.resolve, realpath raises nothing for a link to itself.
    if path.is_symlink():
        return Path(os.path.realpath(path.parent), path.name)
    return Path(os.path.realpath(path))


def is_replaceable(path: str) -> bool:
    """Return whether `replace` can write `path`: there is nothing, or a regular file that is no link."""
    where = Path(path)
    return not where.is_symlink() and (where.is_file() or not where.exists())


def lock_path(folder: str) -> str:
    """Return the path of a cluster's lock."""
    return (PurePath(folder) / LOCK).as_posix()


def read_lock(folder: str) -> bytes | None:
    """Read a cluster's lock; None without one.
    Raises EnvironmentFailure if it, or a folder above, is a link.
    """
    refuse_links(folder)
    return read_bytes(lock_path(folder))


def read_text(path: str) -> str:
    """Read a small UTF-8 text file; "" if there is none."""
    return _decoded(path, read_bytes(path) or b"")


def read_stdin() -> str:
    """Return all of stdin. Raises EnvironmentFailure where it is too long, or not UTF-8 text."""
    data = sys.stdin.buffer.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise EnvironmentFailure(f"stdin has more than {LARGEST_FILE >> 20} MiB")
    return _decoded("stdin", data)


def read_argument(path: str) -> str:
    """Return a text file that the user names; `-` is stdin. Raises EnvironmentFailure where there is none."""
    if path == "-":
        return read_stdin()
    data = read_bytes(path)
    if data is None:
        raise EnvironmentFailure(f"there is no file {path}")
    return _decoded(path, data)


def _decoded(shown: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        where = f"byte {problem.start} is {data[problem.start]:#04x}"
        raise EnvironmentFailure(f"{shown} is not UTF-8 text: {where}") from None


def assets(kind: str) -> dict[str, str]:
    """Return the texts of a folder of ipamc itself, such as `schemas`, in the package or a checkout."""
    package = Path(__file__).parents[1]
    folder = next((path for path in (package / kind, package.parents[1] / kind) if path.is_dir()), None)
    if folder is None:
        raise EnvironmentFailure(f"this installation is incomplete: it has no {kind}/; install ipamc again")
    return dict(_texts(folder))


def schemas() -> dict[str, str]:
    """Return the JSON Schemas of the inputs by kind, in lower case."""
    files = assets("schemas").items()
    return {name.removesuffix(SCHEMA): text for name, text in files if name.endswith(SCHEMA)}


@lru_cache(maxsize=8)
def _texts(folder: Path) -> tuple[tuple[str, str], ...]:
    """Read the files of one of ipamc's own folders: once in a process, for any number of clusters."""
    return tuple(
        (path.name, path.read_bytes().decode())
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".")
    )


def create(path: str, text: str) -> bool:
    """Write a new file, and its folders; return whether it was new.
    Raises EnvironmentFailure as `replace`.
    """
    refuse_way_out(path)
    return not os.path.lexists(path) and _write(Path(path), text)


def replace(path: str, text: str) -> bool:
    """Write a file, and its folders, unless it has this text already; return whether it was written.
    Raises EnvironmentFailure for something other than a regular file, or behind a link out of the work tree.
    """
    where = Path(path)
    refuse_way_out(path)
    if not is_replaceable(path):
        raise safe_read.Irregular(path, "is a link" if where.is_symlink() else "is not a regular file")
    return not is_same(where, text.encode()) and _write(where, text)


def _write(path: Path, text: str) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    put(str(path), text.encode())
    return True


def is_same(path: Path, data: bytes) -> bool:
    """Return whether a path is a regular file with these bytes."""
    try:
        return safe_read.has(str(path), data)
    except safe_read.Irregular:
        return False
