"""The file system: clusters' folders, their inputs and locks, and single files.

It does not look into the files. It reads through no link that leaves the cluster's folder, and writes through
no link; nothing but regular files is opened. A file is written beside its place and then renamed, so that it
is whole at any time. A failure of the environment (no permission, no space, no such folder) is raised as
OSError or as Trouble; the command line prints it as one line.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePath

from ipamc.model.diagnostics import Diagnostic, Place
from ipamc.workspace import safe_read
from ipamc.workspace.cluster_lock import is_leftover, temporary
from ipamc.workspace.clusters_folder import NAME, clusters_folder
from ipamc.workspace.links import refuse_links, refuse_way_out
from ipamc.workspace.trouble import Trouble

SCHEMA = ".schema.json"
"""The end of the name of a schema's file, behind the kind."""
CLUSTERS = NAME
LOCK = "ipam.lock"
RENDERED = "rendered"
SUFFIXES = frozenset({".yaml", ".yml", ".json"})


def clusters() -> list[str]:
    """Return the folders below clusters/, in order of name, and links, which are refused where they are read.

    Raises Trouble where there is none, and where clusters/ is a link itself.
    """
    where = clusters_folder()
    refuse_links(where)
    try:
        found = below(where)
    except (FileNotFoundError, NotADirectoryError):
        start = ": name a cluster's folder, or start a cluster with: ipamc init NAME"
        raise Trouble(f"there is no folder {CLUSTERS}/ here{elsewhere() or start}") from None
    if not found:
        raise Trouble(f"{CLUSTERS}/ has no cluster: start one with: ipamc init NAME")
    return found


def is_started(folder: str) -> bool:
    """Tell whether a folder has the lock of a cluster, or the file that `ipamc init` writes a Cluster into."""
    return any(Path(folder, name).is_file() for name in (LOCK, "cluster.yaml"))


def started_below(parent: str) -> list[str]:
    """Return the folders right below one that are clusters by `is_started`, in order of name; none if it cannot be read."""
    if Path(parent).is_symlink():
        return []
    try:
        return [folder for folder in below(parent) if is_started(folder)]
    except OSError:
        return []


def elsewhere() -> str:
    """Return where clusters are, one folder down, as the end of a sentence; "" where none is found."""
    try:
        found = next((folder for folder in below(".") if started_below(f"{folder}/{CLUSTERS}")), "")
    except OSError:
        return ""
    return (
        f", but in {found.removeprefix('./')}/: cd {shlex.quote(found.removeprefix('./'))}" if found else ""
    )


def below(parent: str) -> list[str]:
    """Return the folders and links right below a folder, in order of name; none that starts with a dot."""
    return [
        PurePath(parent, path.name).as_posix()
        for path in sorted(Path(parent).iterdir())
        if is_folder(str(path)) and not path.name.startswith(".")
    ]


def is_folder(path: str) -> bool:
    """Tell whether there is a folder at `path`, or a link, which is refused where it is read."""
    return Path(path).is_symlink() or Path(path).is_dir()


def identity(folder: str) -> Path:
    """Return what is the same for a folder, or a file, however it is typed; it need not exist.

    A link is not the folder that it leads to.
    """
    path = Path(folder)
    # Unlike Path.resolve, realpath does not mind a link to itself.
    if path.is_symlink():
        return Path(os.path.realpath(path.parent), path.name)
    return Path(os.path.realpath(path))


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
    with a dot. The second value is the findings about files that are no inputs; with one of them, there are
    no bytes. Raises Trouble where the folder is behind a link.
    """
    from ipamc.read.rules import not_a_regular_file

    found: dict[str, bytes] = {}
    refused: list[Diagnostic] = []
    total = 0
    for path in source_paths(folder):
        try:
            data = read_source(path, folder)
            total += len(data)
            safe_read.refuse_excess(path, total)
        except safe_read.Irregular as problem:
            place = Place(path)
            refused.append(not_a_regular_file(place, Path(path).name, problem.problem, problem.fix))
            if total > safe_read.TOTAL:
                break
        else:
            if not refused:
                found[path] = data
    return ({}, refused) if refused else (found, refused)


def source_paths(folder: str) -> list[str]:
    """Return the paths of all inputs of a cluster, sorted; also of those that are refused when they are read."""
    refuse_links(folder)
    return [path.as_posix() for path in sorted(_candidates(Path(folder)), key=Path.as_posix)]


def other_files(folder: str) -> list[Path]:
    """Return what in a cluster's folder is no input by its name, sorted; no folders, and not what ipamc writes."""
    files = (path for path in _files(Path(folder)) if not _is_candidate(path) and path != Path(folder, LOCK))
    return sorted(path for path in files if not is_leftover(path))


def _candidates(folder: Path) -> Iterator[Path]:
    return filter(_is_candidate, _files(folder))


def _is_candidate(path: Path) -> bool:
    return path.suffix in SUFFIXES or path.is_dir()


def _files(folder: Path) -> Iterator[Path]:
    """Yield what is below a cluster's folder and may be its input, links to folders too."""
    waiting = [folder]
    while waiting:
        for path in waiting.pop().iterdir():
            if path.name.startswith(".") or path == folder / RENDERED:
                continue
            if path.is_dir() and not path.is_symlink():
                waiting.append(path)
            else:
                yield path


def read_source(path: str, folder: str) -> bytes:
    """Read an input. It may be a link to another file of the cluster's folder. Raises Irregular."""
    data = safe_read.read(_followed(path, folder))
    if data is None:
        raise safe_read.Irregular(path, "was removed while it was read", "run it again")
    return data


def is_source(path: str, folder: str, data: bytes) -> bool:
    """Tell whether an input has these bytes. Raises Irregular, and takes no memory for a large dump."""
    return safe_read.has(_followed(path, folder), data)


def _followed(path: str, folder: str) -> str:
    where = Path(path)
    return (_target(where, Path(folder)) if where.is_symlink() else where).as_posix()


def _target(link: Path, folder: Path) -> Path:
    path = link.as_posix()
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: a link to itself, before Python 3.13
        raise safe_read.Irregular(path, "is a link to nothing") from None
    if not target.is_relative_to(folder.resolve()):
        raise safe_read.Irregular(path, "is a link that leaves the cluster's folder")
    if target.is_dir():
        raise safe_read.Irregular(path, "is a link to a folder")
    return target


def read_lock(folder: str) -> bytes | None:
    """Read the lock of a cluster; None where there is none. Raises Trouble for a link, and behind one."""
    refuse_links(folder)
    return read_bytes(lock_path(folder))


def read_bytes(path: str) -> bytes | None:
    """Read a file; None where there is none. Raises Trouble unless it is a regular one, and no link."""
    return safe_read.read(path)


def read_text(path: str) -> str:
    """Read a small text file, UTF-8; "" where there is none."""
    try:
        return (read_bytes(path) or b"").decode()
    except UnicodeDecodeError:
        raise Trouble(f"{path} is not UTF-8 text") from None


def assets(kind: str) -> dict[str, str]:
    """Return the texts of `examples`, `page`, `rules`, `schemas`, `templates` or `words` by file name, sorted.

    They are in the installed package, or at the top of a checkout.
    """
    package = Path(__file__).parents[1]
    folder = next((path for path in (package / kind, package.parents[1] / kind) if path.is_dir()), None)
    if folder is None:
        raise Trouble(f"this installation is incomplete: it has no {kind}/; install ipamc again")
    return dict(_texts(folder))


def schemas() -> dict[str, str]:
    """Return the JSON Schemas of the inputs by kind, in lower case."""
    files = assets("schemas").items()
    return {name.removesuffix(SCHEMA): text for name, text in files if name.endswith(SCHEMA)}


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

    Anything that is already there stays. Raises Trouble behind a link out of the work tree.
    """
    refuse_way_out(path)
    if os.path.lexists(path):
        return False
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    put(path, text.encode())
    return True


def replace(path: str, text: str) -> bool:
    """Write a file, and its folders, unless it has this text already; tell whether it was written.

    Raises Trouble where there is something else than a regular file, or behind a link out of the work tree.
    """
    where = Path(path)
    refuse_way_out(path)
    if not is_replaceable(path):
        raise safe_read.Irregular(path, "is a link" if where.is_symlink() else "is not a regular file")
    if is_same(where, text.encode()):
        return False
    where.parent.mkdir(parents=True, exist_ok=True)
    put(path, text.encode())
    return True


def is_same(path: Path, data: bytes) -> bool:
    """Tell whether a path is a regular file with these bytes."""
    try:
        return safe_read.has(str(path), data)
    except safe_read.Irregular:
        return False


def put(path: str, data: bytes) -> None:
    """Write a file beside its place, then rename it."""
    where = Path(path)
    beside = where.with_name(temporary())
    with _writing_in(where.parent):
        try:
            with beside.open("xb") as file:  # x: not through a link
                file.write(data)
            beside.replace(where)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _writing_in(folder: Path) -> Iterator[None]:
    """Tell other runs that one writes in a folder; first remove what runs that were killed left there.

    An unfinished file of a run that goes on stays: only who is alone in the folder removes anything.
    """
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
