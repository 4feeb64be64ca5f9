"""The versions of a cluster's lock that git has, for trends and time sliders.

The history follows HEAD's first parents. On a trunk these are the merges in their order, without unpublished
commits of branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from msgspec import Struct

from ipamc.workspace import disk, git, git_tree
from ipamc.workspace.git_run import must
from ipamc.workspace.safe_read import LARGEST, TOTAL
from ipamc.workspace.source import below

MOST = 5000  # the most versions that are listed, the newest
LONGEST = 200  # characters of a subject; longer ones are cut
LAST = 253_402_300_799
"""The last second of the year 9999, in seconds since 1970: dates of commits may be any number, or missing."""


class LockVersion(Struct, frozen=True, kw_only=True):
    """A commit that changed the lock."""

    commit: str
    second: int
    """When it was committed, in seconds since 1970, UTC. It may go back, if a clock was wrong.
    If the date of the commit is impossible, the date of the version before is used, else 0."""
    subject: str
    """The first paragraph of its message, cut to LONGEST characters: untrusted text, in UTF-8."""
    blob: str  # the object name (hash) of the lock


class LockHistory(Struct, frozen=True, kw_only=True):
    """The commits of HEAD's first parents that changed a lock."""

    top: str  # the top folder of the repository; "" outside of one
    path: str  # the path of the lock below it
    versions: tuple[LockVersion, ...] = ()  # in the order of the history, the oldest first
    shallow: bool = False
    """The clone has only the newer history, so its oldest commit seems to have written every file."""
    cut: bool = False  # there are more than MOST versions, and the oldest are left out


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
    for name, date, subject, blob in reversed(rows[:MOST]):
        known = date.isascii() and date.isdecimal() and len(date) <= len(str(LAST)) and int(date) <= LAST
        second = int(date) if known else before  # `git hash-object` checks no date
        short = f"{subject[:LONGEST]}…" if len(subject) > LONGEST else subject
        text = short.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        versions.append(LockVersion(commit=name, second=second, subject=text, blob=blob))
        before = second or before
    shallow, cut = git.is_shallow(top), len(rows) > MOST
    return LockHistory(top=top, path=path, versions=tuple(versions), shallow=shallow, cut=cut)


def _rows(top: str, commit: str, path: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield commit, date, subject and blob of the commits that changed a file, the newest first."""
    shape = ("--first-parent", "-m", "--raw", "--no-abbrev", "--no-renames", f"--max-count={MOST + 1}")
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
    history: LockHistory, versions: Iterable[LockVersion], most: int = TOTAL
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
            if size > min(LARGEST, most):
                yield version, b""
                continue
            most -= size
            yield version, read(version.blob, LARGEST, f"{version.commit[:12]}:{history.path}")


def is_last(history: LockHistory, text: bytes | None) -> bool:
    """Return whether a lock equals the last version, by its object name in git."""
    if text is None or not history.versions:
        return False
    blob = history.versions[-1].blob
    return git_tree.name_of(text, blob) == blob
