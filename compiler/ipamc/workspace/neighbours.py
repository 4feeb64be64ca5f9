"""The other clusters of an address space: every compile is compared with them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.diagnostics import Diagnostic, Refused, Severity, Span
from ipamc.model.gc_pause import paused_collector
from ipamc.read.space_index import may_ask
from ipamc.workspace import disk
from ipamc.workspace.clusters import folder_of, name_of, parent_of
from ipamc.workspace.failure import EnvironmentFailure, one_line
from ipamc.workspace.inputs import read_sources
from ipamc.workspace.safe_read import link_on_the_way
from ipamc.workspace.source import Commit, Disk
from ipamc.workspace.spaces import spaces_in

if TYPE_CHECKING:
    from ipamc.address_space import Neighbours
    from ipamc.model.cluster import Cluster
    from ipamc.model.space import ClusterPrefixes, Unread
    from ipamc.pipeline import Compilation, Inputs


_NAMED = re.compile(rb"""\b(?:addressSpace|from)["']?\s*:\s*["']?([A-Za-z0-9.-]+)""")


class Folders(Struct, frozen=True, kw_only=True):
    """The folders of a cluster and its neighbours, now and in the base of a plan."""

    now: str
    was: str
    renamed: Mapping[str, str] = {}  # the clusters' former folders, by present folder
    agreed: Collection[str] = ()  # clusters whose deletion the user allows


def neighbours(
    folders: Sequence[str], progress: Callable[[str], AbstractContextManager[None]]
) -> dict[str, Neighbours]:
    """Return the addresses of the other clusters for each of these folders.
    Empty if no folder can belong to an address space without an index. The others are the sibling folders:
    all below `clusters/`, elsewhere those with a lock. A cluster without a lock is compared when it is
    compiled. They are read from the disk, not as this run is about to write them: additions are inside
    ranges, or are compared when that cluster is compiled. `progress` shows the work, which takes a while. All
    are compared with each other once; each gets only the others that it overlaps with.
    """
    spaces = {name_of(each).encode() for parent in set(map(parent_of, folders)) for each in spaces_in(parent)}
    if not any(_is_compared(folder, spaces) for folder in folders):
        return {}
    from ipamc.address_space import MOST, Neighbours, meetings, members_of

    with progress("reading the clusters of the address space"), paused_collector():
        read, unread = _surveyed((*beside(folders), *folders))
        clusters = list(read.values())
        met = dict(zip(read, meetings(clusters), strict=True))
        given = {}
        for folder in folders:
            me = disk.identity(folder)
            mine = read.get(me)
            others = [found for path, found in unread.items() if path != me]
            listed = mine and lists_others(read_sources(folder)[0])
            given[folder] = Neighbours(
                clusters=tuple([clusters[number] for number in met[me]] if mine else clusters),
                unread=tuple(others[:MOST]),
                known=frozenset(prefix.block for prefix in mine.prefixes) if mine else None,
                members=members_of(mine, clusters, others) if mine and listed else None,
            )
        return given


def _mentions(sources: Mapping[str, bytes]) -> bool:
    """Return whether documents may name an address space or request one. Misses escaped keys."""
    return any(b"addressSpace" in data or may_ask(data) for data in sources.values())


def _is_compared(folder: str, indexed: Collection[bytes]) -> bool:
    """Return whether a cluster may be in an address space other than the `indexed` ones."""
    try:
        sources = read_sources(folder)[0]
    except Exception:  # noqa: BLE001 - the cluster's own compile reports any error
        return False
    if not _mentions(sources):
        return False
    names = {name for data in sources.values() for name in _NAMED.findall(data)}
    return not (names and names <= set(indexed))


def with_members(inputs: Inputs, others: Neighbours | None = None) -> Inputs:
    """Add the addresses of the other clusters to the inputs if the rendered files depend on them.
    `others` is the result of `neighbours`, if known. Misses escaped keys; such a cluster is refused
    (IPC0582).
    """
    if not lists_others(inputs.sources):
        return inputs
    found = others or neighbours([inputs.folder], lambda _: nullcontext()).get(inputs.folder)
    return replace(inputs, members=found.members) if found else inputs


def lists_others(sources: Mapping[str, bytes]) -> bool:
    """Return whether the rendered files may depend on other clusters of the address space."""
    return _mentions(sources) and any(b"masquerade" in data for data in sources.values())


def beside(folders: Iterable[str]) -> Iterator[str]:
    """Yield the clusters' folders beside these: below `clusters/` all, elsewhere those with a lock."""
    # The cluster's own compile refuses a folder behind a link.
    for parent in sorted({parent_of(folder) for folder in folders if not link_on_the_way(folder)}):
        all_of_them = Path(parent).resolve().name == disk.CLUSTERS
        yield from (
            PurePath(folder).as_posix()
            for folder in disk.below(parent)
            if all_of_them or os.path.lexists(disk.lock_path(folder))
        )


def _surveyed(folders: Iterable[str]) -> tuple[dict[Path, ClusterPrefixes], dict[Path, Unread]]:
    """Return the clusters of address spaces among folders, and those that cannot be read, by folder."""
    from ipamc.model.space import ClusterPrefixes, Unread

    every = {disk.identity(folder): folder for folder in folders}
    surveyed = {path: survey_of(every[path]) for path in sorted(every)}
    return (
        {path: found for path, found in surveyed.items() if isinstance(found, ClusterPrefixes)},
        {path: found for path, found in surveyed.items() if isinstance(found, Unread)},
    )


def survey_of(folder: str, spaces: Mapping[str, bytes] | None = None) -> ClusterPrefixes | Unread | None:
    """Read the addresses of a cluster; None if it is in no address space. Never raises.
    `spaces` are indexes with the ranges of its pools, used instead of those on the disk.
    """
    from ipamc.address_space import survey
    from ipamc.model.space import Unread

    name = name_of(folder)
    try:
        sources, refused = read_sources(folder)
        if refused:
            return Unread(cluster=name, space="", at=refused[0].at, problem=refused[0].message)
        if not _mentions(sources):
            return None
        source = Disk(spaces=None if spaces is None else ())
        return survey(source.inputs(folder, rendered=False), spaces=spaces)
    except Exception as problem:  # noqa: BLE001 - even a bug must not hide the results of the others
        text = one_line(problem) or f"ipamc failed: {type(problem).__name__}"
        return Unread(cluster=name, space="", at=Span(folder), problem=text)


def refuse_overlaps(inputs: Inputs, compilation: Compilation, others: Neighbours) -> None:
    """Raise Refused if a compiled cluster shares addresses with another cluster of its address space."""
    from ipamc.address_space import check_neighbours, held_lines, prefixes_of
    from ipamc.read.locate import locate

    plan = compilation.plan
    mine = prefixes_of(plan.cluster, held_lines(plan.lock), inputs.lock_path, inputs.lock)
    if others.known is not None and not others.known.issuperset(prefix.block for prefix in mine.prefixes):
        # This compile has added addresses that the cluster did not have on the disk.
        me = disk.identity(inputs.folder)
        here = (folder for folder in beside([inputs.folder]) if disk.identity(folder) != me)
        read, unread = _surveyed(here)
        others = replace(others, clusters=tuple(read.values()), unread=tuple(unread.values()), known=None)
    found = list(check_neighbours(mine, others))
    if any(finding.severity is Severity.ERROR for finding in found):
        raise Refused((*compilation.diagnostics, *locate(found, {**_texts(found), **inputs.sources})))


def refuse_takeovers(
    inputs: Inputs, compilation: Compilation, before: Cluster | None, base: Commit, folders: Folders
) -> None:
    """Raise Refused if a cluster that left an address space since a commit now has addresses of a member."""
    if before is None or before.address_space in {"", compilation.plan.cluster.address_space}:
        return
    from ipamc.address_space import ClusterChange, held_lines, prefixes_of, taken_while_leaving
    from ipamc.read.locate import locate
    from ipamc.workspace import git_tree

    plan = compilation.plan
    now = prefixes_of(plan.cluster, held_lines(plan.lock), inputs.lock_path, inputs.lock)
    mine = ClusterChange(was=_read_in(base, folders.was), now=now)
    others = [
        ClusterChange(was=_read_in(base, then), now=_read_in(Disk(), here))
        for here, then in _others(base, folders)
    ]
    if found := list(taken_while_leaving(mine, others)):
        within = f"{base.revision}:"
        paths = [at.path for each in found for other in each.also if (at := other.at).path.startswith(within)]
        read = git_tree.blobs(base.top, base.commit, [path.removeprefix(within) for path in paths])
        there = {f"{within}{path}": text for path, text in read.items()}
        texts = {**_texts(found), **there, **inputs.sources}
        raise Refused((*compilation.diagnostics, *locate(found, texts)))


def _others(base: Commit, folders: Folders) -> Iterator[tuple[str, str]]:
    """Yield the folders of other clusters, on the disk and in a commit."""
    from ipamc.workspace.revision import clusters_below, folders_at

    me = disk.identity(folders.now)
    here = [folder for folder in beside([folders.now]) if disk.identity(folder) != me]
    known = {folders.was, *here, *folders.renamed.values(), *folders.agreed}
    where = clusters_below(base.top)
    names = folders_at(base.top, base.commit, where) if where is not None else ()
    gone = [folder for name in names if (folder := folder_of(name)) not in known]
    yield from ((folder, folders.renamed.get(folder, folder)) for folder in (*here, *gone))


def _read_in(source: Disk | Commit, folder: str) -> ClusterPrefixes | None:
    """Read the addresses of a cluster; None if it cannot be read: its own plan reports that."""
    from ipamc.address_space import survey
    from ipamc.model.space import ClusterPrefixes

    try:
        found = survey(source.inputs(folder, rendered=False), every=True) if source.has(folder) else None
    except (Refused, EnvironmentFailure, OSError):
        return None
    return found if isinstance(found, ClusterPrefixes) else None


def _texts(findings: Iterable[Diagnostic]) -> dict[str, bytes]:
    """Read the files of other clusters that findings quote."""
    paths = {other.at.path for finding in findings for other in finding.also}
    found: dict[str, bytes] = {}
    for path in sorted(paths):
        with suppress(EnvironmentFailure):  # a folder, or a file that may not be read
            if (data := disk.read_bytes(path)) is not None:
                found[path] = data
    return found


def members(folders: Iterable[str], space: str) -> list[str]:
    """Return the sibling folders that are or may be in an address space, in order of name."""
    from ipamc.model.space import Unread

    every = {disk.identity(folder): folder for folder in (*beside(folders), *folders)}
    found = []
    for folder in every.values():
        surveyed = survey_of(folder)
        if surveyed and (surveyed.space == space or (isinstance(surveyed, Unread) and not surveyed.space)):
            found.append(folder)
    return sorted(found, key=lambda folder: (name_of(folder), folder))
