"""The files of a commit: their list, and the bytes of wanted files within a limit.

Only listed files are read. So a file that git lacks (a partial or damaged clone) is an error, and not a
missing file. A link is not a file: it may lead out of the cluster's folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import PurePosixPath

from msgspec import Struct

from ipamc.model.limits import LARGEST_FILE, LARGEST_INPUTS, PATHS_IN_COMMAND
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.git_run import must, started, text

FILE, LINK, FOLDER, SUBMODULE = "file", "link", "folder", "submodule"
_MODES = {b"120000": LINK, b"040000": FOLDER, b"160000": SUBMODULE}


class TreeEntry(Struct, frozen=True):
    """An entry of a commit's tree."""

    sort: str  # FILE, LINK, FOLDER or SUBMODULE
    blob: str  # the name of its object


@lru_cache(maxsize=64)
def _children(folder: str, commit: str, path: str) -> Mapping[str, TreeEntry]:
    return _below(folder, commit, path)


def folders(folder: str, commit: str, path: str) -> tuple[str, ...]:
    """Return the names of folders and links below a path ("" is the top), in order. One call of git.
    Raises EnvironmentFailure for a file.
    """
    return tuple(name for name, entry in _children(folder, commit, path).items() if entry.sort != FILE)


def files(
    folder: str, commit: str, path: str, wanted: Callable[[str], bool], known: Mapping[str, bytes] = {}
) -> dict[str, bytes]:
    """Return the wanted files of a commit below a folder ("" is the top), in order of path below it.
    Git does not unpack a file that is among the `known` with the same bytes: the name of an object is their
    hash. A missing folder has no files. A link to another file in the folder is followed; files of submodules
    are skipped. Raises EnvironmentFailure for a link that leads elsewhere, for a folder that is a link or a
    submodule itself, and for more than LARGEST_FILE bytes of a file or LARGEST_INPUTS bytes of all.
    """
    if not (below := _below(folder, commit, path, "-r")):
        return {}  # no process to read nothing
    within = f"{path}/" if path else ""
    chosen: dict[str, str] = {}
    with reader(folder) as read:
        for name, entry in below.items():
            if entry.sort == SUBMODULE or not wanted(name):
                continue
            shown = f"{commit[:12]}:{within}{name}"
            there: TreeEntry | None = entry
            if entry.sort == LINK:
                there = below.get(_target(name, text(read(entry.blob, 4096, shown))))
            if there is None or there.sort != FILE:
                raise EnvironmentFailure(_no_file(shown, LINK))
            chosen[name] = there.blob
        found: dict[str, bytes] = {}
        size = 0
        for name, blob in chosen.items():
            data, most = known.get(name), min(LARGEST_FILE, LARGEST_INPUTS - size)
            if data is None or len(data) > most or name_of(data, blob) != blob:
                data = read(blob, most, f"{commit[:12]}:{within}{name}")
            found[name] = data
            size += len(data)
    return found


def name_of(data: bytes, like: str) -> str:
    """Return the object name (hash) of these bytes, SHA-1 or SHA-256 like the name `like`."""
    digest = hashlib.sha1(usedforsecurity=False) if len(like) == 40 else hashlib.sha256()
    digest.update(b"blob %d\0" % len(data))
    digest.update(data)
    return digest.hexdigest()


def blobs(folder: str, commit: str, paths: Sequence[str]) -> dict[str, bytes]:
    """Return files of a commit by path, with two processes.
    Raises EnvironmentFailure for links and large files.
    """
    found: dict[str, bytes] = {}
    with reader(folder) as read:
        for path, entry in entries(folder, commit, paths).items():
            shown = f"{commit[:12]}:{path}"
            if entry.sort != FILE:
                raise EnvironmentFailure(_no_file(shown, entry.sort))
            found[path] = read(entry.blob, LARGEST_FILE, shown)
    return found


def entries(folder: str, commit: str, paths: Sequence[str]) -> dict[str, TreeEntry]:
    """Return the entries of a commit at these paths. One process for PATHS_IN_COMMAND of them."""
    starts = range(0, len(paths), PATHS_IN_COMMAND)
    chunks = [listed(folder, commit, paths[start : start + PATHS_IN_COMMAND]) for start in starts]
    return {path: entry for chunk in chunks for path, entry in chunk.items()}


def staged(folder: str, stage: int, path: str) -> bytes | None:
    """Return the base (1), ours (2) or theirs (3) of a file that git could not merge, or None."""
    for row in must(folder, "ls-files", "--stage", "--full-name", "-z", "--", path).output.split(b"\0")[:-1]:
        mode, blob, number = row.partition(b"\t")[0].split()
        if int(number) == stage and mode not in _MODES:
            with reader(folder) as read:
                return read(blob.decode(), LARGEST_FILE, f":{stage}:{path}")
    return None


def _no_file(shown: str, sort: str) -> str:
    what = "a link that leads to no file in the cluster's folder" if sort == LINK else f"a {sort}"
    return f"{shown} is {what}, not a file: name a revision in which it is a file"


def _target(name: str, link: str) -> str:
    """Return the path that a link leads to, below the same folder; "" if it leads out of it."""
    parts: list[str] = list(PurePosixPath(name).parent.parts)
    for part in link.split("/"):
        if part == ".." and not parts:
            return ""
        if part == "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "" if link.startswith("/") else "/".join(parts)


def _below(folder: str, commit: str, path: str, *options: str) -> dict[str, TreeEntry]:
    """List the entries below a path ("" is the top), by path below it.
    Raises EnvironmentFailure for a file.
    """
    if not path:
        return listed(folder, commit, [], *options)
    found = listed(folder, commit, [f"{path}/"], *options)
    if not found:  # git has no empty folders
        above, _, name = path.rpartition("/")
        if entry := _children(folder, commit, above).get(name):
            said = f"is a {entry.sort}, not a folder of clusters"
            raise EnvironmentFailure(f"{commit[:12]}:{path} {said}")
    return {name.removeprefix(f"{path}/"): entry for name, entry in found.items()}


def listed(folder: str, commit: str, paths: Iterable[str], *options: str) -> dict[str, TreeEntry]:
    """List the entries of a commit at these paths; FOLDER/ lists its contents. Raises EnvironmentFailure."""
    output = must(folder, "ls-tree", "-z", "--full-tree", *options, commit, "--", *paths).output
    rows = output.split(b"\0")[:-1]
    found: dict[str, TreeEntry] = {}
    for row in rows:
        head, name = row.split(b"\t", 1)
        mode, _, blob = head.split()
        found[text(name)] = TreeEntry(_MODES.get(mode, FILE), blob.decode())
    if len(found) < len(rows):
        raise EnvironmentFailure(f"{commit[:12]} is damaged, with two entries of one name: run git fsck")
    return found


def sizes(folder: str, blobs: Iterable[str]) -> dict[str, int]:
    """Return the size of each blob in bytes, by name, if git has it. One process; no blob is read."""
    asked = "".join(f"{blob}\n" for blob in blobs).encode()
    rows = must(folder, "cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=asked).text.split("\n")
    return {row[0]: int(row[1]) for row in map(str.split, rows) if len(row) == 2 and row[1].isdecimal()}


@contextmanager
def reader(folder: str) -> Iterator[Callable[[str, int, str], bytes]]:
    """Return a function (object, most bytes, path) that reads a blob. One process serves all calls."""
    with started(folder, "cat-file", "--batch") as git:

        def read(blob: str, most: int, shown: str) -> bytes:
            git.stdin.write(f"{blob}\n".encode())
            git.stdin.flush()
            head = git.stdout.readline().split()
            if len(head) != 3 or head[1] != b"blob":
                lacks = "this clone is partial or damaged, and lacks a file of the commit"
                raise EnvironmentFailure(f"{lacks}: clone again without --filter")
            size = int(head[2])
            if size > most:
                large = f"{shown} has {size:,} bytes, more than {most:,}"
                raise EnvironmentFailure(f"{large}: name a revision in which it is smaller")
            data = git.stdout.read(size + 1)[:size]
            if len(data) < size:
                raise EnvironmentFailure("git ended before it printed a file: run git fsck")
            return data

        yield read
