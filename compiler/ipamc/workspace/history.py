"""`--at REV|DATE`: the clusters as they were in a commit, read from git; the work tree is not looked at.

A DATE is looked up in the history of HEAD, by first parents: on a trunk, that is what was merged when. Dates are UTC unless they say otherwise, as the
days in the lock are, and a day without a time is taken to its end: what was published on it counts.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ipamc.cli.terminal import say
from ipamc.workspace import disk
from ipamc.workspace.clusters import find, name_of
from ipamc.workspace.revision import below, inputs_at, unknown

if TYPE_CHECKING:
    from ipamc.pipeline import Inputs

Function = TypeVar("Function", bound=Callable[..., Any])

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?)?", re.ASCII)


def at_option(function: Function) -> Function:
    """Add the option --at, as `at`; "" where it is not given."""
    text = "Look at the past: a git revision, or a date (2026-11-21, 2026-11-21T09:30), UTC: the last commit of HEAD's first parents until then."
    return click.option("--at", "at", metavar="REV|DATE", default="", help=text)(function)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A commit, and the clusters that it had."""

    top: str
    """The top folder of the repository."""
    revision: str
    """As it is shown: what the user typed, or the commit that a date led to."""
    commit: str
    day: str
    """The day on which it was committed, ISO 8601 in UTC."""
    folders: tuple[str, ...]
    """As the user would type them, in order of name; those that the commit has."""

    def locks(self) -> dict[str, tuple[str, bytes | None]]:
        """Give each cluster's lock by folder: its path as git understands it, and its bytes, None where there was none. One process."""
        paths = {folder: f"{below(self.top, folder)}/{disk.LOCK}" for folder in self.folders}
        from ipamc.workspace import git

        found = git.blobs(self.top, self.commit, list(paths.values()))
        return {folder: (f"{self.revision}:{path}", found.get(path)) for folder, path in paths.items()}

    def inputs(self, folder: str) -> Inputs:
        """Give what a compile of a cluster depended on."""
        found = inputs_at(folder, self.revision)
        if found is None:  # `folders` has what the commit has
            raise disk.Trouble(f"{self.revision} has no files of {folder}")
        return found

    def record(self) -> dict[str, str]:
        """Give what was looked at, for programs."""
        return {"revision": self.revision, "commit": self.commit}


def look_back(at: str, clusters: Sequence[str]) -> Past:
    """Find the commit that REV or DATE means, and the clusters that it had: those that are named, or all below clusters/.

    Those that it did not have are told on stderr. Raises Trouble with a way out where git cannot tell, UsageError for a date that is none.
    """
    from ipamc.workspace import git

    start = next((each for each in clusters if disk.is_folder(each)), ".")
    top = git.root(start)
    if top is None:
        raise disk.Trouble(
            f"{'this folder' if start == '.' else start} is not in a git repository: --at needs one, and git"
        )
    commit = _dated(top, at) if _DATE.fullmatch(at) else _revision(top, at)
    second = datetime.datetime.fromtimestamp(git.committed(top, commit), datetime.UTC)
    revision = commit[:12] if _DATE.fullmatch(at) else at
    if revision != at:
        say(f"{at}: commit {revision} of {second:%Y-%m-%d %H:%M:%S} UTC")
    return Past(
        top=top,
        revision=revision,
        commit=commit,
        day=second.date().isoformat(),
        folders=_folders(top, commit, revision, clusters),
    )


def _dated(top: str, text: str) -> str:
    from ipamc.workspace import git

    second = _second(text)
    if found := git.before(top, second):
        return found
    first = git.first(top)
    if first is None:
        raise disk.Trouble("nothing is committed here yet: --at needs a commit")
    begins = (
        f"{datetime.datetime.fromtimestamp(git.committed(top, first), datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"
    )
    if git.is_shallow(top):
        raise disk.Trouble(
            f"{text} is before all that this shallow clone has, which begins at {begins}: git fetch --unshallow"
        )
    raise disk.Trouble(f"{text} is before the first commit, which is of {begins}: name a later date")


def _second(text: str) -> int:
    """Read a date: the last second that counts."""
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError as problem:
        raise click.UsageError(
            f"--at {text}: no such date; write it as 2026-11-21 or 2026-11-21T09:30",
            click.get_current_context(silent=True),
        ) from problem
    if len(text) == len("2026-11-21"):
        found = found.replace(hour=23, minute=59, second=59)
    return int((found if found.tzinfo else found.replace(tzinfo=datetime.UTC)).timestamp())


def _revision(top: str, text: str) -> str:
    from ipamc.workspace import git

    found = git.commit(top, text)
    if found is None:
        shallow = (
            "; this clone is shallow, perhaps it ends before: git fetch --unshallow"
            if git.is_shallow(top)
            else ""
        )
        raise unknown(text, f" (a date is written as 2026-11-21){shallow}")
    return found


def _folders(top: str, commit: str, revision: str, clusters: Sequence[str]) -> tuple[str, ...]:
    if clusters:
        wanted = [_folder(top, commit, each) for each in clusters]
    else:
        today = disk.clusters() if disk.is_folder(disk.CLUSTERS) else []
        then = [
            f"{disk.CLUSTERS}/{name}"
            for name in _names(top, commit, below(top, disk.CLUSTERS))
            if not name.startswith(".")
        ]
        if not then:
            raise disk.Trouble(
                f"{revision} has no cluster below {disk.CLUSTERS}/: name a later revision, or a cluster's folder"
            )
        wanted = [*today, *then]
    wanted = sorted(dict.fromkeys(wanted), key=lambda folder: (name_of(folder), folder))
    for folder in wanted:
        if not _had(top, commit, folder):
            say(f"{name_of(folder)}: not in {revision}, left out")
    return tuple(folder for folder in wanted if _had(top, commit, folder))


def _folder(top: str, commit: str, text: str) -> str:
    """Give the folder that is meant, by what the commit has, else by what is there today. One that is in neither is a usage error."""
    below = f"{disk.CLUSTERS}/{text}"
    if PurePosixPath(text).name == text and _had(top, commit, below):
        return below
    return text if not disk.is_folder(text) and _had(top, commit, text) else find([text])[0]


def _had(top: str, commit: str, folder: str) -> bool:
    path = PurePosixPath(below(top, folder))
    return path.name in _names(top, commit, "" if path.parent == PurePosixPath() else path.parent.as_posix())


@cache
def _names(top: str, commit: str, path: str) -> list[str]:
    """Give the folders below a path: a commit never changes."""
    from ipamc.workspace import git

    return git.folders(top, commit, path)
