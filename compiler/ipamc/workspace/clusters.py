"""From what the user typed to a cluster's folder, and from a folder to the cluster's name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath

from ipamc.workspace import disk
from ipamc.workspace.clusters_folder import folder_of
from ipamc.workspace.trouble import Misnamed, Trouble


def find(given: Sequence[str]) -> list[str]:
    """Return the folder of each CLUSTER, once, in order of name; of all below clusters/ where none is given.

    A link is a folder of its own, which is refused where it is read. Raises Misnamed.
    """
    folders = [_folder(text) for text in given] if given else disk.clusters()
    return sorted(
        {disk.identity(folder): folder for folder in reversed(folders)}.values(),
        key=lambda folder: (name_of(folder), folder),
    )


def name_of(folder: str) -> str:
    """Return a folder's own name, also of `.` and `..`; a link has the name that the user typed."""
    return (
        Path(folder).absolute().name
        if PurePath(folder).name not in {"", ".."}
        else Path(folder).resolve().name
    )


def known_names() -> list[str]:
    """Return the names of the clusters below clusters/; none where they cannot be listed."""
    try:
        return [PurePath(folder).name for folder in disk.clusters()]
    except (Trouble, OSError):
        return []


def _folder(text: str) -> str:
    """Return the folder that TEXT names: clusters/TEXT for a plain name, else TEXT itself."""
    below = folder_of(text)
    if text not in {"", ".", ".."} and PurePath(text).name == text and disk.is_folder(below):
        return below
    if text and disk.is_folder(text):
        above = PurePath(text).parent.as_posix()
        if name_of(text) == disk.RENDERED and disk.is_started(above):
            raise Misnamed(f"{text} is what ipamc writes: name the folder of its cluster, {above}", text)
        _refuse_parent(text)
        return PurePath(text).as_posix()
    if text and Path(text).is_file():
        raise Misnamed(
            f"{text} is a file: name the folder of its cluster, {PurePath(text).parent.as_posix()}", text
        )
    raise Misnamed(
        f"there is no cluster {text!r}: no such folder, and none in {disk.CLUSTERS}/{_hint(text)}", text
    )


def _refuse_parent(folder: str) -> None:
    """Raise Misnamed for a folder that is no cluster, but holds some: the top of a repository, or clusters/."""
    if disk.is_started(folder):
        return
    parents = (
        (folder, f"{folder}/{disk.CLUSTERS}")
        if name_of(folder) == disk.CLUSTERS
        else (f"{folder}/{disk.CLUSTERS}",)
    )
    within = [PurePath(path).as_posix() for parent in parents for path in disk.started_below(parent)]
    if within:
        names = [path.removeprefix(f"{disk.CLUSTERS}/") for path in within]
        raise Misnamed(
            f"{folder} is no cluster, but has clusters in it: name one of them: {', '.join(names[:10])}"
        )


def _hint(text: str) -> str:
    from ipamc.model.wording import nearest

    names = known_names()
    if not names:
        return disk.elsewhere()
    near = nearest(PurePath(text).name, names)
    return f"; did you mean {near!r}?" if near else f"; there are: {', '.join(names[:10])}"
