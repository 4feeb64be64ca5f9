"""The files below a cluster's `rendered/`, and their bytes. No link to a folder is followed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from ipamc.read.parts import parts
from ipamc.workspace import safe_read
from ipamc.workspace.atomic_write import is_leftover
from ipamc.workspace.disk import RENDERED
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.safe_read import refuse_links

_SHARDS = (("nodes", "nodes.yaml"), ("pools", "ippools.yaml"))
"""Folders of shards, and the file in each shard that shows which blocks may be in use."""


def is_there(folder: str) -> bool:
    """Return whether a cluster has a folder `rendered/`.
    Raises EnvironmentFailure for anything else in its place.
    """
    refuse_links(folder)
    top = Path(folder, RENDERED)
    _refuse_link(top)
    if top.exists() and not top.is_dir():
        raise EnvironmentFailure(f"{top.as_posix()} is not a folder: remove it, and run ipamc compile")
    return top.is_dir()


def paths(folder: str) -> list[str]:
    """Return the files below `rendered/`, sorted, with .NAME files (Argo CD reads them), no leftovers."""
    return [path for path in entries(folder) if not path.endswith("/")]


def entries(folder: str) -> list[str]:
    """Return `paths`, then empty folders (FOLDER/), which git does not store, sorted."""
    top = Path(folder, RENDERED)
    files: list[str] = []
    empty: list[str] = []
    for above, within in _walk(folder):
        files += (one.relative_to(top).as_posix() for one in within if _is_leaf(one) and not is_leftover(one))
        if not within and above != top:  # perhaps a submodule that was not fetched
            empty.append(f"{above.relative_to(top).as_posix()}/")
    return [*sorted(files), *sorted(empty)]


def regular(folder: str) -> list[str]:
    """Return all paths below `rendered/` except folders.
    Raises EnvironmentFailure unless they are regular files.
    """
    found = [path.as_posix() for path in leaves(folder)]
    for path in found:
        safe_read.refuse(path)
    return found


def parts_of(folder: str) -> tuple[str, ...]:
    """Return the parts in the order of an apply.
    Raises EnvironmentFailure for links: kustomize follows them.
    """
    within = f"{Path(folder, RENDERED).as_posix()}/"
    return parts(path.removeprefix(within) for path in regular(folder))


def leaves(folder: str) -> Iterator[Path]:
    """Yield all paths below `rendered/` but folders, also links.
    Raises EnvironmentFailure for a link to a folder.
    """
    for _, within in _walk(folder):
        yield from filter(_is_leaf, within)


def _walk(folder: str) -> Iterator[tuple[Path, list[Path]]]:
    """Yield `rendered/` and each folder below with its entries, parents before children."""
    waiting = [Path(folder, RENDERED)] if is_there(folder) else []
    while waiting:
        above = waiting.pop()
        within = sorted(above.iterdir())
        yield above, within
        for path in within:
            if path.is_dir():
                _refuse_link(path)
                waiting.append(path)


def _is_leaf(path: Path) -> bool:
    return path.is_symlink() or not path.is_dir()


def read(folder: str, wanted: Iterable[str]) -> dict[str, bytes]:
    """Return the bytes of those wanted files that exist.
    Raises EnvironmentFailure for irregular or large ones.
    """
    top, total = Path(folder, RENDERED), 0
    found: dict[str, bytes] = {}
    checked: set[PurePosixPath] = set()
    for path in wanted:
        for above in PurePosixPath(path).parents:
            if above not in checked:
                _refuse_link(top / above)
                checked.add(above)
        if (data := safe_read.read((top / path).as_posix())) is not None:
            found[path] = data
            total += len(data)
            safe_read.refuse_excess(top.as_posix(), total)
    return found


def shards(folder: str) -> list[str]:
    """Return the paths, below `rendered/`, of all shards' files of Nodes and of nodes' own pools, sorted."""
    found = []
    for kind, name in _SHARDS if is_there(folder) else ():
        above = Path(folder, RENDERED, kind)
        _refuse_link(above)
        shards = filter(Path.is_dir, above.iterdir() if above.is_dir() else ())
        found += [f"{kind}/{shard.name}/{name}" for shard in shards]
    return sorted(found)


def _refuse_link(folder: Path) -> None:
    if folder.is_symlink():
        raise EnvironmentFailure(
            f"{folder.as_posix()} is a link, and ipamc neither reads nor writes through links: "
            "remove it, and run ipamc compile"
        )
