"""`--at REV|DATE`: the commit that is meant, and the clusters that it has.

A DATE is looked up in the history of HEAD, by first parents: on a trunk, these are the merges in their order.
Dates are UTC unless they say otherwise, as the days in the lock are. A day without a time includes everything
that was committed on it.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from msgspec.structs import replace

from ipamc.workspace import disk, git
from ipamc.workspace.clusters import find, name_of
from ipamc.workspace.clusters_folder import clusters_folder, folder_of
from ipamc.workspace.revision import below, folders_at, unknown
from ipamc.workspace.source import Commit
from ipamc.workspace.trouble import Misnamed, Trouble

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?)?", re.ASCII)


def look_back(at: str, clusters: Sequence[str]) -> Commit:
    """Return the commit that REV or DATE means, with the clusters that are named, or all below clusters/.

    Its notes name the commit of a date and the clusters that it does not have. Raises Trouble with a way out
    where git cannot tell, Misnamed for a date or a cluster that does not exist.
    """
    start = next((folder for folder in clusters if disk.is_folder(folder)), ".")
    top = git.root(start)
    if top is None:
        raise Trouble(
            f"{'this folder' if start == '.' else start} is not in a git repository: --at needs one, and git; omit it for the disk, or begin one: git init && git add --all && git commit --message start"
        )
    dated = _DATE.fullmatch(at) is not None
    commit = _dated(top, at) if dated else _revision(top, at)
    revision = commit[:12] if dated else at
    found = Commit(top=top, revision=revision, commit=commit, folders=())
    folders = _folders(found, clusters)
    had = [_had(found, folder) for folder in folders]
    return replace(
        found,
        folders=tuple(folder for folder, there in zip(folders, had, strict=True) if there),
        notes=(
            *([f"{at}: commit {revision} of {_time(top, commit)}"] if dated else []),
            *(
                f"{name_of(folder)}: not in {revision}, left out"
                for folder, there in zip(folders, had, strict=True)
                if not there
            ),
        ),
    )


def _time(top: str, commit: str) -> str:
    return (
        f"{datetime.datetime.fromtimestamp(git.committed(top, commit), datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"
    )


def _dated(top: str, text: str) -> str:
    if found := git.before(top, _second(text)):
        return found
    first = git.first(top)
    if first is None:
        raise Trouble("nothing is committed here yet: --at needs a commit")
    begins = _time(top, first)
    if git.is_shallow(top):
        raise Trouble(
            f"{text} is before the history of this shallow clone, which begins at {begins}: git fetch --unshallow"
        )
    raise Trouble(f"{text} is before the first commit, which is of {begins}: name a later date")


def _second(text: str) -> int:
    """Return the last second of a date that counts, since 1970."""
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError as problem:
        raise Misnamed(
            f"--at {text}: there is no such date; write it as 2026-11-21 or 2026-11-21T09:30"
        ) from problem
    if len(text) == len("2026-11-21"):
        found = found.replace(hour=23, minute=59, second=59)
    return int((found if found.tzinfo else found.replace(tzinfo=datetime.UTC)).timestamp())


def _revision(top: str, text: str) -> str:
    found = git.commit(top, text)
    if found is None:
        shallow = (
            "; this clone is shallow and may end before it: git fetch --unshallow"
            if git.is_shallow(top)
            else ""
        )
        raise unknown(top, text, f" (a date is written as 2026-11-21){shallow}")
    return found


def _folders(commit: Commit, clusters: Sequence[str]) -> list[str]:
    """Return the folders that are meant, in order of name, also those that the commit does not have."""
    if clusters:
        wanted = [_folder(commit, text) for text in clusters]
    else:
        today = disk.clusters() if disk.is_folder(clusters_folder()) else []
        then = [
            folder_of(name)
            for name in folders_at(commit.top, commit.commit, below(commit.top, clusters_folder()))
            if not name.startswith(".")
        ]
        if not then:
            raise Trouble(
                f"{commit.revision} has no cluster below {disk.CLUSTERS}/: name a later revision, or a cluster's folder"
            )
        wanted = [*today, *then]
    return sorted(dict.fromkeys(wanted), key=lambda folder: (name_of(folder), folder))


def _folder(commit: Commit, text: str) -> str:
    """Return the folder that TEXT names: by what the commit has, else by what is on the disk.

    Raises Misnamed where it is in neither.
    """
    folder = folder_of(text)
    if PurePosixPath(text).name == text and _had(commit, folder):
        return folder
    return text if not disk.is_folder(text) and _had(commit, text) else find([text])[0]


def _had(commit: Commit, folder: str) -> bool:
    path = PurePosixPath(below(commit.top, folder))
    parent = "" if path.parent == PurePosixPath() else path.parent.as_posix()
    return path.name in folders_at(commit.top, commit.commit, parent)
