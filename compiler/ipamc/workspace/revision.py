"""Revisions of git, paths below a repository's top folder, `--at REV|DATE`, and the history of a lock.

A DATE is looked up in the history of HEAD, by first parents: on a trunk, these are the merges in their order.
Dates are UTC unless they say otherwise, as the days in the lock are. A day without a time is all of that day.

The versions of a lock, for trends and time sliders, are those of HEAD's first parents, too.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.limits import LARGEST_FILE, LARGEST_INPUTS, LONGEST_SUBJECT, MOST_LOCK_VERSIONS
from ipamc.model.wording import nearest
from ipamc.workspace import disk, git, git_tree
from ipamc.workspace.clusters import below, clusters_folder, find, folder_of, name_of
from ipamc.workspace.failure import EnvironmentFailure, Misnamed
from ipamc.workspace.git_run import must
from ipamc.workspace.source import Commit

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?)?", re.ASCII)


def commit_named(folder: str, revision: str) -> str:
    """Return the commit that a revision names in a folder's repository.
    Raises EnvironmentFailure without one.
    """
    commit = git.commit(folder, revision)
    if commit is None:
        raise unknown(folder, revision)
    return commit


def unknown(folder: str, revision: str, more: str = "") -> EnvironmentFailure:
    """Return the EnvironmentFailure for a revision that git does not know, with the command to run."""
    remote, slash, branch = revision.partition("/")
    if revision == "HEAD":
        start = "git add --all && git commit --message start, and run this again"
        return EnvironmentFailure(f"nothing is committed here yet: {start}")
    if slash and remote in git.remotes(folder):
        way_out = f"git fetch {remote}, and run this again"
    elif near := branch if branch in (there := git.names_of_revisions(folder)) else nearest(revision, there):
        way_out = f"did you mean {near!r}?"
    elif slash:
        way_out = f"this clone has no remote {remote!r}; git branch --all lists the branches that it has"
    else:
        way_out = "fetch it, or check its name: git branch --all lists the branches"
    return EnvironmentFailure(f"git does not know revision {revision!r} here: {way_out}{more}")


def last_change(folder: str, *files: str) -> int | None:
    """Return the second of the last commit to files of a cluster; None if git cannot tell."""
    top = git.root(folder)
    if top is None:
        return None
    within = PurePosixPath(below(top, folder))
    return git.last_change(top, *((within / path).as_posix() for path in files))


def require_top() -> None:
    """Raise EnvironmentFailure inside a repository but below its top: paths in pipelines start at the top."""
    top = git.root(".")
    if top is not None and Path(top).resolve() != Path.cwd():
        raise EnvironmentFailure(f"run this at the top of the repository: cd {top}")


class Rooted:
    """Paths relative to the top of our repository, else of their own, else to the working directory."""

    def __init__(self) -> None:
        self._roots = [Path(top).resolve()] if (top := git.root(".")) else []
        self._folders: dict[Path, Path] = {}

    def path(self, text: str) -> str:
        """Return a path relative to its top, with forward slashes; outside of all, the absolute path."""
        _, colon, below = text.partition(":")
        if colon and not Path(text).exists():  # REVISION:PATH is relative to the root already
            return below
        folder, name = Path(text).parent, Path(text).name
        if folder not in self._folders:
            self._folders[folder] = self._below(folder.resolve())
        return (self._folders[folder] / name).as_posix()

    def _below(self, folder: Path) -> Path:
        if not any(map(folder.is_relative_to, self._roots)) and (top := git.root(str(folder))):
            self._roots.append(Path(top).resolve())
        root = next(filter(folder.is_relative_to, (*self._roots, Path.cwd())), None)
        return folder.relative_to(root) if root else folder


def look_back(at: str, clusters: Sequence[str]) -> Commit:
    """Return the commit that REV or DATE means, with the named clusters, or all below clusters/.
    Its notes name the commit of a date and the clusters that it does not have. Raises EnvironmentFailure with
    a way out if git cannot answer, Misnamed for a date or a cluster that does not exist.
    """
    start = next((folder for folder in clusters if disk.is_folder(folder)), ".")
    top = git.root(start)
    if top is None:
        raise EnvironmentFailure(
            f"{'this folder' if start == '.' else start} is not in a git repository: --at needs one, "
            "and git; omit --at for the disk, or start a repository: "
            "git init && git add --all && git commit --message start"
        )
    notes = []
    if _DATE.fullmatch(at):
        commit = _of_date(top, at)
        revision = commit[:12]
        notes.append(f"{at}: commit {revision} of {_time(top, commit)}")
    else:
        commit, revision = git.commit(top, at) or "", at
        if not commit:
            shallow = "; this clone is shallow and may end before it: git fetch --unshallow"
            more = shallow if git.is_shallow(top) else ""
            raise unknown(top, at, f" (a date is written as 2026-11-21){more}")
    found = Commit(top=top, revision=revision, commit=commit, folders=())
    folders = _folders(found, clusters)
    there = [folder for folder in folders if _has_folder(found, folder)]
    notes += [f"{name_of(folder)}: not in {revision}, left out" for folder in folders if folder not in there]
    return replace(found, folders=tuple(there), notes=tuple(notes))


def _time(top: str, commit: str) -> str:
    time = datetime.datetime.fromtimestamp(git.committed(top, commit), datetime.UTC)
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def _of_date(top: str, text: str) -> str:
    """Return the last commit up to the last second of a date."""
    try:
        date = datetime.datetime.fromisoformat(text)
    except ValueError as problem:
        raise Misnamed(
            f"--at {text}: there is no such date; write it as 2026-11-21 or 2026-11-21T09:30"
        ) from problem
    if len(text) == len("2026-11-21"):
        date = date.replace(hour=23, minute=59, second=59)
    second = int((date if date.tzinfo else date.replace(tzinfo=datetime.UTC)).timestamp())
    if found := git.before(top, second):
        return found
    first = git.first(top)
    if first is None:
        raise EnvironmentFailure("nothing is committed here yet: --at needs a commit")
    begins = _time(top, first)
    if git.is_shallow(top):
        history = f"the history of this shallow clone, which begins at {begins}: git fetch --unshallow"
        raise EnvironmentFailure(f"{text} is before {history}")
    raise EnvironmentFailure(f"{text} is before the first commit, which is from {begins}: name a later date")


def _folders(commit: Commit, clusters: Sequence[str]) -> list[str]:
    """Return the chosen folders, in order of name, including those that the commit lacks."""
    if clusters:
        wanted = [_folder(commit, text) for text in clusters]
    else:
        where = clusters_folder()
        names = git_tree.folders(commit.top, commit.commit, below(commit.top, where))
        then = [folder_of(name) for name in names if not name.startswith(".")]
        if not then:
            later = "name a later revision, or a cluster's folder"
            raise EnvironmentFailure(f"{commit.revision} has no cluster below {disk.CLUSTERS}/: {later}")
        wanted = [*(find() if disk.is_folder(where) else []), *then]
    return sorted(dict.fromkeys(wanted), key=lambda folder: (name_of(folder), folder))


def _folder(commit: Commit, text: str) -> str:
    """Return the folder that TEXT names in the commit, or else on the disk. Raises Misnamed."""
    folder = folder_of(text)
    if PurePosixPath(text).name == text and _has_folder(commit, folder):
        return folder
    return text if not disk.is_folder(text) and _has_folder(commit, text) else find([text])[0]


def _has_folder(commit: Commit, folder: str) -> bool:
    path = PurePosixPath(below(commit.top, folder))
    parent = "" if path.parent == PurePosixPath() else path.parent.as_posix()
    return path.name in git_tree.folders(commit.top, commit.commit, parent)


LAST = 253_402_300_799
"""The last second of the year 9999, in seconds since 1970: dates of commits may be any number, or missing."""


class LockVersion(Struct, frozen=True, kw_only=True):
    """A commit that changed the lock."""

    commit: str
    second: int
    """When it was committed, in seconds since 1970, UTC. It may go back, if a clock was wrong.
    If the date of the commit is impossible, the date of the version before is used, else 0."""
    subject: str
    """The first paragraph of its message, cut to LONGEST_SUBJECT characters: untrusted text, in UTF-8."""
    blob: str  # the object name (hash) of the lock


class LockHistory(Struct, frozen=True, kw_only=True):
    """The commits of HEAD's first parents that changed a lock."""

    top: str  # the top folder of the repository; "" outside of one
    path: str  # the path of the lock below it
    versions: tuple[LockVersion, ...] = ()  # in the order of the history, the oldest first
    shallow: bool = False
    """The clone has only the newer history, so its oldest commit seems to have written every file."""
    cut: bool = False  # there are more than MOST_LOCK_VERSIONS versions, and the oldest are left out


def lock_history(folder: str, revision: str = "HEAD") -> LockHistory:
    """List the versions of a cluster's lock, up to a revision, without reading the locks.
    There are none outside of a repository, before the first commit, and if the lock was never committed. A
    commit that removed the lock, or replaced it by a link, is no version. The history of a renamed folder
    begins with its new name. Raises EnvironmentFailure where git cannot answer.
    """
    top = git.root(folder)
    if top is None:
        return LockHistory(top="", path="")
    path = (PurePosixPath(below(top, folder)) / disk.LOCK).as_posix()
    commit = git.commit(top, revision)
    if commit is None:
        return LockHistory(top=top, path=path)
    rows = list(_rows(top, commit, path))
    versions: list[LockVersion] = []
    before = 0
    for name, date, subject, blob in reversed(rows[:MOST_LOCK_VERSIONS]):
        known = date.isascii() and date.isdecimal() and len(date) <= len(str(LAST)) and int(date) <= LAST
        second = int(date) if known else before  # `git hash-object` checks no date
        short = f"{subject[:LONGEST_SUBJECT]}…" if len(subject) > LONGEST_SUBJECT else subject
        text = short.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        versions.append(LockVersion(commit=name, second=second, subject=text, blob=blob))
        before = second or before
    shallow, cut = git.is_shallow(top), len(rows) > MOST_LOCK_VERSIONS
    return LockHistory(top=top, path=path, versions=tuple(versions), shallow=shallow, cut=cut)


def _rows(top: str, commit: str, path: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield commit, date, subject and blob of the commits that changed a file, the newest first."""
    most = f"--max-count={MOST_LOCK_VERSIONS + 1}"
    shape = ("--first-parent", "-m", "--raw", "--no-abbrev", "--no-renames", most)
    plain = ("--encoding=UTF-8", "--no-show-signature", "--no-notes", "--no-color", "--format=%H %ct %s")
    options = ("-c", "log.follow=false", "-c", "log.showRoot=true")
    name = date = subject = ""
    for row in must(top, "log", *shape, *plain, commit, "--", path, options=options).text.split("\n"):
        if row.startswith(":"):  # the difference to the first parent, after the line for the commit
            _, mode, _, blob, _ = row.split(maxsplit=4)
            if mode.startswith("100"):
                yield name, date, subject, blob
        elif row:
            name, date, subject = [*row.split(" ", 2), ""][:3]


def texts(
    history: LockHistory, versions: Iterable[LockVersion], most: int = LARGEST_INPUTS
) -> Iterator[tuple[LockVersion, bytes]]:
    """Yield the locks of these versions one by one, so that one text is in memory at a time.
    The text is b"", which readers skip, for a lock above 256 MiB, and for all after `most` bytes in sum. Two
    git processes serve all of them. Raises EnvironmentFailure if git lacks one.
    """
    wanted = list(versions)
    if not wanted:
        return
    sizes = git_tree.sizes(history.top, [version.blob for version in wanted])
    with git_tree.reader(history.top) as read:
        for version in wanted:
            size = sizes.get(version.blob, 0)
            if size > min(LARGEST_FILE, most):
                yield version, b""
                continue
            most -= size
            yield version, read(version.blob, LARGEST_FILE, f"{version.commit[:12]}:{history.path}")


def is_last(history: LockHistory, text: bytes | None) -> bool:
    """Return whether a lock equals the last version, by its object name in git."""
    if text is None or not history.versions:
        return False
    blob = history.versions[-1].blob
    return git_tree.name_of(text, blob) == blob
