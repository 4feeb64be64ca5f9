"""The versions of a cluster's lock that git has, for trends and time sliders.

The history is that of HEAD's first parents: on a trunk, these are the merges in their order, and no commit of
a branch that was never published alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from msgspec import Struct

from ipamc.workspace import disk, git, git_tree
from ipamc.workspace.git_run import must
from ipamc.workspace.safe_read import LARGEST, TOTAL
from ipamc.workspace.source import below

MOST = 5000  # how many versions are listed: the newest ones
LONGEST = 200  # characters of a subject; longer ones are cut
LAST = 253_402_300_799
"""The last second of the year 9999, in seconds since 1970: dates of commits may be any number, or none."""


class LockVersion(Struct, frozen=True, kw_only=True):
    """A commit that changed the lock."""

    commit: str
    second: int
    """When it was committed, in seconds since 1970, UTC. A clock may have been wrong: it may go back.
    Where the commit has no date of a calendar, it is that of the version before, else 0."""
    subject: str
    """The first paragraph of its message, of at most LONGEST characters: anybody's text, in UTF-8."""
    blob: str  # the name of the object that the lock is


class LockHistory(Struct, frozen=True, kw_only=True):
    """The commits of HEAD's first parents that changed a lock."""

    top: str  # the top folder of the repository; "" outside of one
    path: str  # the lock below it
    versions: tuple[LockVersion, ...] = ()  # the oldest first, as the history has them
    shallow: bool = False
    """The clone has only the newer history. Its oldest commit seems to have written every file."""
    cut: bool = False  # there are more than MOST versions, and the oldest are left out


def lock_history(folder: str, revision: str = "HEAD") -> LockHistory:
    """List the versions of the lock of a cluster's folder, up to a revision. It reads no lock.
    There are none outside of a repository, before the first commit, and where the lock was never committed.
    A commit that took the lock away, or made a link of it, is no version. A cluster's folder that was renamed
    has a history from then on. Raises Trouble where git cannot tell.
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
    """Yield the locks of these versions, one after the other, so that one text is in memory at a time.
    A lock of more than 256 MiB is b"", and so are those that come after `most` bytes: b"" is no lock, which
    readers pass over. Two processes of git for all of them. Raises Trouble where git lacks one.
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
    """Tell whether a lock is the last version, by the name that git would give it."""
    if text is None or not history.versions:
        return False
    blob = history.versions[-1].blob
    return git_tree.name_of(text, blob) == blob
