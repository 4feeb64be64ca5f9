"""Finds the clusters' folders, resolves what the user typed, and names clusters.

`clusters/` is in the working directory or above it, so that a verb works in every folder of a repository.
Paths stay relative to the working directory, like typed paths: findings and commands name files so.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePath

from ipamc.workspace import disk
from ipamc.workspace.disk import CLUSTERS, is_folder
from ipamc.workspace.failure import EnvironmentFailure, Misnamed
from ipamc.workspace.safe_read import refuse_links


def clusters_folder() -> str:
    """Return the path of `clusters/` from the working directory: `clusters`, `../clusters`, `.` inside of it.
    It is the one here, else the nearest above, up to the top of the work tree: a folder with `.git`, as in
    `safe_read`. Outside of a work tree, the working directory itself counts if it has this name. One that
    belongs to another user than the working directory is skipped: in a folder where everybody may write, it
    would be a stranger's. If there is none, the path here is returned.
    """
    if os.path.lexists(CLUSTERS):
        return CLUSTERS
    here = Path.cwd()
    ways = [here, *here.parents]
    top = next((number for number, folder in enumerate(ways) if os.path.lexists(folder / ".git")), None)
    if top is None:
        found = next((folder for folder in ways if folder.name == CLUSTERS), None)
    else:
        found = next(filter(Path.is_dir, (folder / CLUSTERS for folder in ways[: top + 1])), None)
    try:
        if found is None or found.stat().st_uid != here.stat().st_uid:
            return CLUSTERS
    except OSError:
        return CLUSTERS
    return Path(os.path.relpath(found, here)).as_posix()


def top_of(folder: str) -> str | None:
    """Return the top folder of the work tree that contains a folder; None outside of one. Runs no program.
    It is the nearest folder above with `.git`, which no branch can forge: no commit can have that name.
    """
    start = Path(folder).resolve()  # links are followed
    return next((str(path) for path in (start, *start.parents) if os.path.lexists(path / ".git")), None)


def is_below(top: str, folder: str) -> bool:
    """Return whether a folder is in a repository; a link counts by its own place, not its target."""
    return disk.identity(folder).is_relative_to(Path(top).resolve())


def below(top: str, folder: str) -> str:
    """Return a folder's path below the repository's top, "" for the top.
    Raises EnvironmentFailure elsewhere.
    """
    if not is_below(top, folder):
        raise EnvironmentFailure(
            f"{folder} is not in the git repository {top}: run ipamc once for each repository"
        )
    path = disk.identity(folder).relative_to(Path(top).resolve())
    return path.as_posix() if path.name else ""


def folder_of(name: str) -> str:
    """Return the path of a cluster's folder in `clusters/`, which need not exist."""
    return Path(clusters_folder(), name).as_posix()


def find(given: Sequence[str] = ()) -> list[str]:
    """Return the folder of each CLUSTER, once, in order of name; without arguments, of all below clusters/.
    A link counts as a folder; reading it raises. Raises Misnamed; EnvironmentFailure if clusters/ is empty or
    missing and no CLUSTER is given, or if clusters/ is itself a link.
    """
    if not given:
        return _all_names()
    folders = {disk.identity(folder): folder for folder in map(_typed, reversed(given))}
    return sorted(folders.values(), key=lambda folder: (name_of(folder), folder))


def name_of(folder: str) -> str:
    """Return the name of a folder, also for `.` and `..`; for a link, the name that the user typed."""
    name = PurePath(folder).name
    return Path(folder).resolve().name if name in {"", ".."} else name


def parent_of(folder: str) -> str:
    """Return the path of a folder's parent, as typed."""
    path = PurePath(folder)
    return f"{folder}/.." if path.name in {"", ".."} else path.parent.as_posix()


def known_names() -> list[str]:
    """Return the names of the clusters below clusters/; none where they cannot be listed."""
    try:
        return [PurePath(folder).name for folder in _all_names()]
    except (EnvironmentFailure, OSError):
        return []


def _all_names() -> list[str]:
    where = clusters_folder()
    refuse_links(where)
    try:
        found = disk.below(where)
    except (FileNotFoundError, NotADirectoryError):
        start = ": name a cluster's folder, or start a cluster with: ipamc init NAME"
        raise EnvironmentFailure(f"there is no folder {CLUSTERS}/ here{_elsewhere() or start}") from None
    if not found:
        raise EnvironmentFailure(f"{CLUSTERS}/ has no cluster: start one with: ipamc init NAME")
    return found


def _typed(text: str) -> str:
    """Return the folder that TEXT names: clusters/TEXT for a plain name, else TEXT itself."""
    below = folder_of(text)
    if text not in {"", ".", ".."} and PurePath(text).name == text and is_folder(below):
        return below
    if text and is_folder(text):
        above = PurePath(text).parent.as_posix()
        if name_of(text) == disk.RENDERED and _is_started(above):
            raise Misnamed(f"{text} is an output of ipamc: name the folder of its cluster, {above}", text)
        _refuse_parent(text)
        return PurePath(text).as_posix()
    if text and Path(text).is_file():
        folder = PurePath(text).parent.as_posix()
        raise Misnamed(f"{text} is a file: name the folder of its cluster, {folder}", text)
    from ipamc.model.wording import nearest_name

    if not (names := known_names()):
        hint = _elsewhere()
    elif near := nearest_name(PurePath(text).name, names):
        hint = f"; did you mean {near!r}?"
    else:
        hint = f"; there are: {', '.join(names[:10])}"
    raise Misnamed(f"there is no cluster {text!r}: no such folder here or in {CLUSTERS}/{hint}", text)


def _refuse_parent(folder: str) -> None:
    """Raise Misnamed for a folder that contains clusters and is none: a repository's top, clusters/."""
    if _is_started(folder):
        return
    parents = (folder,) if name_of(folder) == CLUSTERS else ()
    within = [
        PurePath(one).as_posix() for top in (*parents, f"{folder}/{CLUSTERS}") for one in _started_below(top)
    ]
    if within:
        names = ", ".join([path.removeprefix(f"{CLUSTERS}/") for path in within][:10])
        raise Misnamed(f"{folder} is not a cluster but contains clusters; name one of them: {names}")


def _is_started(folder: str) -> bool:
    """Return whether a folder has a lock, or the file that `ipamc init` writes a Cluster into."""
    return any(Path(folder, name).is_file() for name in (disk.LOCK, "cluster.yaml"))


def _started_below(parent: str) -> list[str]:
    """Return the clusters directly below a folder, in order of name; none if it cannot be read."""
    try:
        return [] if Path(parent).is_symlink() else [path for path in disk.below(parent) if _is_started(path)]
    except OSError:
        return []


def _elsewhere() -> str:
    """Return a phrase that says where clusters are, one folder down; "" if none is found."""
    try:
        found = next((folder for folder in disk.below(".") if _started_below(f"{folder}/{CLUSTERS}")), "")
    except OSError:
        return ""
    folder = found.removeprefix("./")
    return f", but in {folder}/: cd {shlex.quote(folder)}" if found else ""
