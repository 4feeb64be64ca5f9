"""The door to the file system: the only module that opens files.

Nothing here knows what is in them. Reading follows no link that leaves the cluster's folder; writing goes through no link at all, and puts whole
files in place: beside, then renamed. What the surroundings refuse (no permission, no space, no such folder) leaves as an OSError or as Trouble, and
the command line makes one line of it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ipamc.model.diagnostics import Diagnostic, Place, error

CLUSTERS = "clusters"
LOCK = "ipam.lock"
RENDERED = "rendered"
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
LARGEST = 256 << 20
"""Bytes that one input file may have: some 600,000 nodes."""

_LEFTOVER = re.compile(r"\.ipamc-\d+\.tmp").fullmatch


class Trouble(Exception):  # noqa: N818 - a fact about the surroundings, told in one line
    """The surroundings do not let us work; the text is one sentence for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What differs between the disk and what belongs there. Paths are below `rendered/`, sorted."""

    lock: bool = False
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.lock or bool(self.written) or bool(self.removed)


def clusters(parent: str = CLUSTERS) -> list[str]:
    """Give the folders below `parent`, by name; raise Trouble where there is none."""
    try:
        found = sorted(
            path.name for path in Path(parent).iterdir() if path.is_dir() and not path.name.startswith(".")
        )
    except (FileNotFoundError, NotADirectoryError):
        raise Trouble(
            f"there is no folder {parent}/ here; name a cluster's folder, or start one with: ipamc init NAME"
        ) from None
    if not found:
        raise Trouble(f"{parent}/ holds no cluster; start one with: ipamc init NAME")
    return [f"{parent}/{name}" for name in found]


def is_folder(path: str) -> bool:
    """Tell whether there is a folder at `path`."""
    return Path(path).is_dir()


def read_sources(folder: str) -> tuple[dict[str, bytes], list[Diagnostic]]:
    """Read every input document of a cluster: by path as the user would type it, in order of path.

    That is each `*.yaml`, `*.yml` and `*.json` below the folder, save `rendered/` and whatever starts with a dot. Bytes as they are on the disk.
    """
    paths = sorted(_candidates(Path(folder)), key=Path.as_posix)
    refused = [found for path in paths for found in check_file(path, Path(folder))]
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


def check_file(path: Path, folder: Path) -> Iterator[Diagnostic]:
    """IPC0107: an input is a regular file inside its cluster's folder, of at most 256 MiB.

    Clusters stand alone: what a folder holds is all that decides its addresses, so that a review sees every cause of a change. A link may point to
    another file of the same cluster's folder. Links that leave it, links to folders, links to nothing, pipes and devices are refused; put a copy of
    the file there instead.
    """
    problem = _problem(path, folder)
    if problem:
        yield error(
            "IPC0107", Place(path.as_posix()), f"{path.name!r} {problem}", help="put a regular file there"
        )


def _problem(path: Path, folder: Path) -> str:
    if path.is_symlink():
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):  # RuntimeError: a link that leads to itself, before Python 3.13
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
    path = Path(folder, LOCK)
    if path.is_symlink():
        raise Trouble(f"{path.as_posix()} is a link: the lock must be a regular file in the cluster's folder")
    return read_bytes(str(path))


def read_bytes(path: str) -> bytes | None:
    """Read a file; None where there is none."""
    return Path(path).read_bytes() if Path(path).exists() else None


def read_text(path: str) -> str:
    """Read a small text file, UTF-8; "" where there is none."""
    try:
        return (read_bytes(path) or b"").decode()
    except UnicodeDecodeError:
        raise Trouble(f"{path} is not UTF-8 text") from None


def assets(kind: str) -> dict[str, str]:
    """Give the texts of `schemas` or `templates` by file name, sorted: in the package if it is installed, at the top of a checkout."""
    package = Path(__file__).parents[1]
    folder = next((each for each in (package / kind, package.parents[1] / kind) if each.is_dir()), None)
    if folder is None:
        raise Trouble(f"this installation is incomplete: it has no {kind}/; install ipamc again")
    return {
        path.name: path.read_bytes().decode()
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".")
    }


def create(path: str, text: str) -> bool:
    """Write a new file, with its folders. Tell whether it was written: never over anything that is there."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    try:
        with Path(path).open("xb") as file:
            file.write(text.encode())
    except FileExistsError:
        return False
    return True


def replace(path: str, text: str) -> bool:
    """Make a file have this text, with its folders; tell whether it was touched."""
    where = Path(path)
    if _same(where, text.encode()):
        return False
    where.parent.mkdir(parents=True, exist_ok=True)
    put(where, text.encode())
    return True


def compare(folder: str, lock: str | None, files: Mapping[str, str] | None) -> Changes:
    """Tell what `write` would do, and do nothing. A `lock` or `files` of None stays as it is on the disk."""
    rendered = Path(folder, RENDERED)
    there = () if files is None else _tree(rendered)
    wanted = files or {}
    return Changes(
        lock=lock is not None and not _same(Path(folder, LOCK), lock.encode()),
        written=tuple(path for path in sorted(wanted) if not _same(rendered / path, wanted[path].encode())),
        removed=tuple(path for path in there if path not in wanted),
    )


def write(folder: str, lock: str | None, files: Mapping[str, str] | None) -> Changes:
    """Put the lock in place, then each file that changed, then remove those that no longer belong, and folders that this empties.

    The lock first: it is the memory. After a kill every file is whole, and the next run finishes. What is the same already is not touched.
    """
    for path in files or {}:
        _check_path(path)
    changes = compare(folder, lock, files)
    rendered = Path(folder, RENDERED)
    _sweep([Path(folder)] if files is None else [Path(folder), rendered, *_folders(rendered)])
    if changes.lock and lock is not None:
        put(Path(folder, LOCK), lock.encode(), durable=True)
    in_the_way = _in_the_way(changes)
    _remove(rendered, in_the_way)
    for path in changes.written:
        where = rendered / path
        where.parent.mkdir(parents=True, exist_ok=True)
        put(where, (files or {})[path].encode())
    _remove(rendered, [path for path in changes.removed if path not in in_the_way])
    return changes


@contextlib.contextmanager
def alone(folder: str) -> Iterator[None]:
    """Hold a cluster's folder against a second run, where the system can do that; raise Trouble if one is at work already."""
    try:
        import fcntl  # POSIX systems have it
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise Trouble(f"another ipamc is at work in {folder}; run it again when that one is done") from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(handle)


def _check_path(path: str) -> None:
    parts = PurePosixPath(path).parts
    if (
        not parts
        or path != "/".join(parts)
        or any(part.startswith(".") or "\\" in part or "\0" in part for part in parts)
    ):
        raise ValueError(f"{path!r} is no path below {RENDERED}/")


def _folders(top: Path) -> Iterator[Path]:
    """Give every folder below `top`, each before those inside it; refuse links to folders."""
    if top.is_symlink():
        raise Trouble(f"{top.as_posix()} is a link: ipamc writes through none; put a folder there")
    waiting = [top] if top.is_dir() else []
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            if path.is_dir():
                if path.is_symlink():
                    raise Trouble(f"{path.as_posix()} is a link: ipamc writes through none; remove it")
                waiting.append(path)
                yield path


def _tree(top: Path) -> list[str]:
    """Give the files below `top` by path, sorted; dot-files are nobody's."""
    found = [
        path
        for folder in (top, *_folders(top))
        if folder.is_dir()
        for path in folder.iterdir()
        if path.is_symlink() or not path.is_dir()
    ]
    return sorted(path.relative_to(top).as_posix() for path in found if not path.name.startswith("."))


def _same(path: Path, data: bytes) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size != len(data):
        return False
    return path.read_bytes() == data


def put(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a file whole: beside, then renamed; `durable`: on the disk before it is."""
    beside = path.with_name(f".ipamc-{os.getpid()}.tmp")
    beside.unlink(missing_ok=True)
    try:
        with beside.open("xb") as file:  # x: never through a link
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _in_the_way(changes: Changes) -> frozenset[str]:
    """Give the files to remove that stand where a folder is to be, or inside a folder where a file is to be."""
    written = set(changes.written)
    above = {parent.as_posix() for path in written for parent in PurePosixPath(path).parents}
    return frozenset(
        path
        for path in changes.removed
        if path in above or any(each.as_posix() in written for each in PurePosixPath(path).parents)
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
    """Remove what a killed run left beside the files that it was writing."""
    for folder in folders:
        for path in folder.iterdir() if folder.is_dir() else ():
            if _LEFTOVER(path.name) and not path.is_dir():
                path.unlink()
