"""The file system: clusters' folders, their inputs and locks, and single files.

It does not look into the files. It reads through no link that leaves the cluster's folder, and writes through
no link. A file is written beside its place and then renamed, so that it is whole at any time. A failure of
the environment (no permission, no space, no such folder) is raised as OSError or as Trouble; the command line
prints it as one line.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePath

from ipamc.model.diagnostics import Diagnostic, Place
from ipamc.workspace.trouble import Trouble

CLUSTERS = "clusters"
LOCK = "ipam.lock"
RENDERED = "rendered"
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
LARGEST = 256 << 20
"""The most bytes of an input file: some 600,000 nodes."""


def clusters(parent: str = CLUSTERS) -> list[str]:
    """Return the folders below `parent`, in order of name. Raises Trouble where there is none."""
    try:
        found = sorted(
            path.name for path in Path(parent).iterdir() if path.is_dir() and not path.name.startswith(".")
        )
    except (FileNotFoundError, NotADirectoryError):
        raise Trouble(
            f"there is no folder {parent}/ here: name a cluster's folder, or start a cluster with: ipamc init NAME"
        ) from None
    if not found:
        raise Trouble(f"{parent}/ has no cluster: start one with: ipamc init NAME")
    return [f"{parent}/{name}" for name in found]


def is_folder(path: str) -> bool:
    """Tell whether there is a folder at `path`."""
    return Path(path).is_dir()


def is_replaceable(path: str) -> bool:
    """Tell whether `replace` can write `path`: there is nothing, or a regular file that is no link."""
    where = Path(path)
    return not where.is_symlink() and (where.is_file() or not where.exists())


def lock_path(folder: str) -> str:
    """Return the path of a cluster's lock."""
    return (PurePath(folder) / LOCK).as_posix()


def read_sources(folder: str) -> tuple[dict[str, bytes], list[Diagnostic]]:
    """Read every input file of a cluster: bytes by path as the user would type it, in order of path.

    Inputs are all `*.yaml`, `*.yml` and `*.json` below the folder, except `rendered/` and names that start
    with a dot. The second value is the findings about files that are no inputs; with one of them, nothing is
    read.
    """
    paths = sorted(_candidates(Path(folder)), key=Path.as_posix)
    refused = [found for path in paths for found in _check_file(path, Path(folder))]
    if refused:
        return {}, refused
    return {path.as_posix(): path.read_bytes() for path in paths}, []


def _candidates(folder: Path) -> Iterator[Path]:
    waiting = [folder]
    while waiting:
        for path in waiting.pop().iterdir():
            if path.name.startswith(".") or path == folder / RENDERED:
                continue
            if path.is_dir() and not path.is_symlink():
                waiting.append(path)
            elif path.suffix in SUFFIXES or path.is_dir():
                yield path


def _check_file(path: Path, folder: Path) -> Iterator[Diagnostic]:
    if problem := _problem(path, folder):
        from ipamc.read.rules import not_a_regular_file

        yield not_a_regular_file(Place(path.as_posix()), path.name, problem)


def _problem(path: Path, folder: Path) -> str:
    if path.is_symlink():
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):  # RuntimeError: a link to itself, before Python 3.13
            return "is a link to nothing"
        if not target.is_relative_to(folder.resolve()):
            return "is a link that leaves the cluster's folder"
        if target.is_dir():
            return "is a link to a folder"
    if not path.is_file():
        return "is not a regular file"
    size = path.stat().st_size
    return f"has {size:,} bytes, more than {LARGEST:,}" if size > LARGEST else ""


def read_lock(folder: str) -> bytes | None:
    """Read the lock of a cluster; None where there is none. Raises Trouble for a link."""
    path = lock_path(folder)
    if Path(path).is_symlink():
        raise Trouble(f"{path} is a link: the lock must be a regular file in the cluster's folder")
    return read_bytes(path)


def read_bytes(path: str) -> bytes | None:
    """Read a file; None where there is none."""
    return Path(path).read_bytes() if Path(path).exists() else None


def rendered_nodes(folder: str) -> list[str]:
    """Return the paths below a cluster's `rendered/` of the Nodes of all shards, sorted."""
    top = Path(folder) / RENDERED
    return sorted(path.relative_to(top).as_posix() for path in top.glob("nodes/*/nodes.yaml"))


def read_text(path: str) -> str:
    """Read a small text file, UTF-8; "" where there is none."""
    try:
        return (read_bytes(path) or b"").decode()
    except UnicodeDecodeError:
        raise Trouble(f"{path} is not UTF-8 text") from None


def assets(kind: str) -> dict[str, str]:
    """Return the texts of `schemas` or `templates` by file name, sorted.

    They are in the installed package, or at the top of a checkout.
    """
    package = Path(__file__).parents[1]
    folder = next((path for path in (package / kind, package.parents[1] / kind) if path.is_dir()), None)
    if folder is None:
        raise Trouble(f"this installation is incomplete: it has no {kind}/; install ipamc again")
    return dict(_texts(folder))


@lru_cache(maxsize=8)
def _texts(folder: Path) -> tuple[tuple[str, str], ...]:
    """Read the files of a folder of ipamc itself: once in a process, however many clusters there are."""
    return tuple(
        (path.name, path.read_bytes().decode())
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".")
    )


def create(path: str, text: str) -> bool:
    """Write a new file, and its folders; tell whether it was written.

    Anything that is already there stays.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    try:
        with Path(path).open("xb") as file:
            file.write(text.encode())
    except FileExistsError:
        return False
    return True


def replace(path: str, text: str) -> bool:
    """Write a file, and its folders, unless it has this text already; tell whether it was written."""
    where = Path(path)
    if is_same(where, text.encode()):
        return False
    where.parent.mkdir(parents=True, exist_ok=True)
    put(path, text.encode())
    return True


@contextlib.contextmanager
def alone(folder: str) -> Iterator[None]:
    """Keep a second run of ipamc out of a cluster's folder, where the system can.

    Raises Trouble if another run is there already.
    """
    try:
        import fcntl  # only POSIX systems have it
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise Trouble(f"another ipamc is at work in {folder}: run this again when it is done") from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(handle)


def is_same(path: Path, data: bytes) -> bool:
    """Tell whether a regular file has these bytes."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size != len(data):
        return False
    return path.read_bytes() == data


def put(path: str, data: bytes, *, durable: bool = False) -> None:
    """Write a file beside its place, then rename it; `durable`: only once its bytes are on the disk."""
    where = Path(path)
    beside = where.with_name(f".ipamc-{os.getpid()}.tmp")
    beside.unlink(missing_ok=True)
    try:
        with beside.open("xb") as file:  # x: not through a link
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        beside.replace(where)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
