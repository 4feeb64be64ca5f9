"""Address spaces on the disk: folders beside the clusters', with a document, a lock and an index."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from ipamc.lock.file import mode_of
from ipamc.model.cluster import SpaceMode
from ipamc.read import space_index
from ipamc.read.parts import INDEX
from ipamc.workspace import disk, safe_read
from ipamc.workspace.clusters import name_of, parent_of
from ipamc.workspace.failure import EnvironmentFailure, Misnamed
from ipamc.workspace.inputs import may_mention, read_sources

if TYPE_CHECKING:
    from ipamc.model.cidr import Block
    from ipamc.read.space_index import IndexLine

_document = re.compile(rb"kind[\"']?\s*:[^#\n,]{0,99}AddressSpace").search
"""Matches no comment. It ends soon, because a line may be a whole inventory."""


def of_space(lock: bytes | None, sources: Mapping[str, bytes]) -> bool:
    """Return whether a lock belongs to an address space; without a lock, whether a document does."""
    if lock:
        return mode_of(lock) == SpaceMode.SPACE
    return any(map(_document, sources.values()))


def is_space(folder: str) -> bool:
    """Return whether a folder is that of an address space."""
    try:
        lock = disk.read_lock(folder)
        return of_space(lock, {} if lock else read_sources(folder)[0])
    except (EnvironmentFailure, OSError):  # its own compile reports why
        return False


def not_space(folder: str) -> str:
    """Return the folder of a cluster. Raises Misnamed for the folder of an address space."""
    if is_space(folder):
        raise Misnamed(f"{name_of(folder)} is an address space without nodes: name a cluster")
    return folder


def index_path(folder: str) -> str:
    """Return the path of the index of an address space."""
    return (PurePath(folder) / disk.RENDERED / INDEX).as_posix()


def own_index(folder: str) -> dict[str, bytes]:
    """Read the index of an address space's folder, by a path with its name.
    Raises EnvironmentFailure for a link.
    """
    text = safe_read.read(index_path(folder))
    return {} if text is None else {index_path(name_of(folder)): text}  # the folder may be "."


def indexes_beside(folder: str, spaces: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
    """Read the indexes of address spaces beside a cluster's folder, by path. Raises EnvironmentFailure for a
    link. `spaces` are the folders with an index, by parent, where they are known.
    """
    parent = parent_of(folder)
    known = spaces[parent] if parent in spaces else spaces_in(parent)
    paths = [index_path(space) for space in known if name_of(space) != name_of(folder)]
    return {path: text for path in paths if (text := safe_read.read(path)) is not None}


def spaces_in(parent: str) -> tuple[str, ...]:
    """Return the folders below one that have an index. O(folders)."""
    try:
        return tuple(folder for folder in disk.below(parent) if Path(folder, disk.RENDERED, INDEX).is_file())
    except OSError:
        return ()


def members_without(folders: Iterable[str], spaces: Iterable[str], block: Block) -> frozenset[str]:
    """Return those folders of address spaces and their members that certainly say nothing about a block:
    neither an index nor their own files have an address of it. They take a twentieth of what reading takes.
    """
    silent, over = set[str](), set[str]()
    try:
        for space in spaces:
            index = space_index.load_index(safe_read.read(index_path(space)) or b"", name_of(space))
            if isinstance(index, space_index.Index):
                silent |= {index.space, *(line.cluster for _, line in index.lines)}
                lines = [line for found, line in index.lines if found and found.overlaps(block)]
                over |= {line.cluster for line in lines} | ({index.space} if lines else set())
        silent -= over
        return frozenset(each for each in folders if name_of(each) in silent and not may_mention(each, block))
    except (EnvironmentFailure, OSError):  # whatever it is, who reads the cluster reports it
        return frozenset()


def may_be_member(sources: Mapping[str, bytes]) -> bool:
    """Return whether documents may name an address space or request one. Misses escaped keys."""
    return any(b"addressSpace" in data or space_index.may_ask(data) for data in sources.values())


def write_indexes(changed: Iterable[tuple[str, str, Sequence[IndexLine]]]) -> None:
    """Write lines of clusters into indexes; lines that others wrote there meanwhile stay.
    `changed` yields a path, a cluster, and its lines.
    """
    from ipamc.workspace.locked_folder import lock_folder

    by_path: dict[str, dict[str, Sequence[IndexLine]]] = {}
    for path, cluster, lines in changed:
        by_path.setdefault(path, {})[cluster] = lines
    for path, clusters in by_path.items():
        # A compile of the space has it locked, and so has every other run that writes lines here.
        with lock_folder(PurePath(path).parent.parent.as_posix(), wait=True):
            found = space_index.load_index(safe_read.read(path) or b"", space_index.space_of(path))
            if isinstance(found, space_index.Index):
                kept = [line for _, line in found.lines if line.cluster not in clusters]
                new = [line for lines in clusters.values() for line in lines]
                disk.replace(path, space_index.dump_index(found.space, [*kept, *new]))
