"""The other clusters of an address space, which a compile has to know of even where it was not asked to compile them."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from ipamc.cli.terminal import progress, trouble
from ipamc.model.diagnostics import Diagnostic, Refused, Severity, Span
from ipamc.workspace import disk
from ipamc.workspace.clusters import name_of

if TYPE_CHECKING:
    from ipamc.address_space import Claims, Neighbours, Unread
    from ipamc.pipeline import Compilation, Inputs


def neighbours(folders: Sequence[str]) -> dict[str, Neighbours]:
    """Give what the other clusters claim, by each of these folders; nothing where none of these may be of an address space.

    The others are the folders beside, below a folder `clusters/` all of them, elsewhere those that have a lock: one that has none yet is compared once it
    is compiled. What is on the disk counts, not what this run is about to write: whatever that adds lies in ranges, or is compared by its own cluster.
    """
    from ipamc.address_space import Claims, Neighbours, Unread

    if not any(map(_may_be_of_a_space, folders)):
        return {}
    every = {Path(folder).resolve(): folder for folder in (*_beside(folders), *folders)}
    gc.disable()  # as in a compile: many objects, no cycles
    try:
        with progress("reading the clusters of the address space"):
            surveyed = {path: _survey(every[path]) for path in sorted(every)}
    finally:
        gc.enable()
    given = {}
    for folder in folders:
        others = [found for path, found in surveyed.items() if path != Path(folder).resolve()]
        given[folder] = Neighbours(
            claims=tuple(each for each in others if isinstance(each, Claims)),
            unread=tuple(each for each in others if isinstance(each, Unread)),
        )
    return given


def _may_be_of_a_space(folder: str) -> bool:
    from ipamc.address_space import mentions

    try:
        return mentions(disk.read_sources(folder)[0])
    except (disk.Trouble, OSError):  # its own compile says so
        return False


def _beside(folders: Iterable[str]) -> Iterator[str]:
    parents = {
        (f"{folder}/.." if PurePath(folder).name in {"", ".."} else PurePath(folder).parent.as_posix())
        for folder in folders
    }
    for parent in sorted(parents):
        all_of_them = Path(parent).resolve().name == disk.CLUSTERS
        yield from (
            PurePath(each).as_posix()
            for each in disk.clusters(parent)
            if all_of_them or Path(each, disk.LOCK).exists()
        )


def _survey(folder: str) -> Claims | Unread | None:
    from ipamc.address_space import Unread, mentions, survey

    name = name_of(folder)
    lock_path = f"{folder}/{disk.LOCK}"
    try:
        sources, refused = disk.read_sources(folder)
        if refused:
            return Unread(cluster=name, space="", at=refused[0].at, problem=refused[0].message)
        if not mentions(sources):
            return None
        rendered = disk.is_folder(f"{folder}/{disk.RENDERED}")
        return survey(
            name,
            folder,
            sources,
            disk.assets("schemas"),
            disk.read_lock(folder),
            lock_path,
            rendered=rendered,
        )
    except Exception as problem:
        if text := trouble(problem):
            return Unread(cluster=name, space="", at=Span(folder), problem=text)
        raise


def refuse_overlaps(inputs: Inputs, compilation: Compilation, others: Neighbours) -> None:
    """Raise Refused where a cluster, as it was compiled, shares addresses with another one of its address space."""
    from ipamc.address_space import check_neighbours, claims, lines_of
    from ipamc.read.locate import locate

    mine = claims(compilation.plan.cluster, lines_of(compilation.plan.lock), inputs.lock_path, inputs.lock)
    found = list(check_neighbours(mine, others))
    if any(each.severity is Severity.ERROR for each in found):
        raise Refused((*compilation.diagnostics, *locate(found, {**_texts(found), **inputs.sources})))


def _texts(findings: Iterable[Diagnostic]) -> dict[str, bytes]:
    """Give the files of other clusters that findings show."""
    paths = {other.at.path for each in findings for other in each.also}
    return {
        path: data
        for path in sorted(paths)
        if Path(path).is_file() and (data := disk.read_bytes(path)) is not None
    }
