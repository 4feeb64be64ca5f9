"""Address spaces on the disk: folders beside the clusters' with a document, a lock and an index of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from ipamc.model.diagnostics import Span
from ipamc.read.parts import INDEX
from ipamc.workspace import disk, safe_read
from ipamc.workspace.clusters import name_of, parent_of
from ipamc.workspace.inputs import read_sources
from ipamc.workspace.trouble import Trouble, one_line

if TYPE_CHECKING:
    from ipamc.model.space import ClusterPrefixes, Surveyed, Unread
    from ipamc.read.space_index import IndexLine

_KIND = b"AddressSpace"
_OF_A_SPACE = (b"addressSpace", b"from")
"""One of these is in the documents of every member: an escaped key is not found here."""


def mentions_space(sources: Mapping[str, bytes]) -> bool:
    """Tell whether documents may have an AddressSpace."""
    return any(_KIND in data for data in sources.values())


def is_space(folder: str) -> bool:
    """Tell whether a folder is, or may be, that of an address space. Reads its lock, or else its documents."""
    try:
        if lock := disk.read_lock(folder):
            from ipamc.lock.file import mode_of

            return mode_of(lock) == "address-space"
        return mentions_space(read_sources(folder)[0])
    except (Trouble, OSError):  # its own compile says why
        return False


def index_path(folder: str) -> str:
    """Return the path of the index of an address space."""
    return (PurePath(folder) / disk.RENDERED / INDEX).as_posix()


def indexes_beside(folder: str) -> dict[str, bytes]:
    """Read the indexes of address spaces beside a cluster's folder, by path. Raises Trouble for a link."""
    me = name_of(folder)
    paths = [index_path(space) for space in spaces_in(parent_of(folder)) if name_of(space) != me]
    return {path: text for path in paths if (text := safe_read.read(path)) is not None}


@lru_cache(maxsize=4)
def spaces_in(parent: str) -> Sequence[str]:
    """Return the folders with an index; a compile of 1,000 clusters asks this once."""
    try:
        return tuple(folder for folder in disk.below(parent) if Path(index_path(folder)).is_file())
    except OSError:
        return ()


def survey_members(folder: str, lock: bytes | None) -> Surveyed:
    """Read what the clusters beside a space occupy, and what they ask for."""
    from ipamc.address_space import known_ranges
    from ipamc.workspace.neighbours import beside

    index = safe_read.read(index_path(folder))
    path, me = index_path(folder), disk.identity(folder)
    known = known_ranges(lock, index, name_of(folder))
    others = (other for other in beside([folder]) if disk.identity(other) != me)
    found = (_survey(other, {path: known[name]} if (name := name_of(other)) in known else {}) for other in others)
    return tuple(each for each in found if each is not None)


def _survey(folder: str, spaces: Mapping[str, bytes]) -> ClusterPrefixes | Unread | None:
    """Read the addresses of a cluster; None where it is of no address space. Never raises."""
    from ipamc.address_space import survey
    from ipamc.model.space import Unread
    from ipamc.workspace.source import Disk

    name = name_of(folder)
    try:
        sources, refused = read_sources(folder)
        if refused:
            return Unread(cluster=name, space="", at=refused[0].at, problem=refused[0].message)
        if not any(word in data for data in sources.values() for word in _OF_A_SPACE):
            return None
        return survey(Disk().inputs(folder, rendered=False), spaces=spaces)
    except Exception as problem:  # noqa: BLE001 - a bug, too, must not hide what becomes of the others
        text = one_line(problem) or f"ipamc failed: {type(problem).__name__}"
        return Unread(cluster=name, space="", at=Span(folder), problem=text)


def write_indexes(changed: Iterable[tuple[str, str, Sequence[IndexLine]]]) -> Iterator[str]:
    """Write lines of clusters into indexes; yield the path of each file that changed.
    `changed` are a path, a cluster, and its lines. What others have written there meanwhile stays.
    """
    from ipamc.read.space_index import Index, dump_index, load_index

    by_path: dict[str, dict[str, Sequence[IndexLine]]] = {}
    for path, cluster, lines in changed:
        by_path.setdefault(path, {})[cluster] = lines
    for path, clusters in by_path.items():
        found = load_index(safe_read.read(path) or b"")
        if isinstance(found, Index):
            kept = [line for _, line in found.lines if line.cluster not in clusters]
            new = [line for lines in clusters.values() for line in lines]
            if disk.replace(path, dump_index(found.space, [*kept, *new])):
                yield path
