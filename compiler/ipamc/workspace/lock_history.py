"""The versions of a cluster's lock that git has: what a trend and a time slider are made of.

The history is that of HEAD's first parents: on a trunk, these are the merges in their order, and no commit of a
branch that was never published alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from ipamc.workspace import disk, git, git_tree
from ipamc.workspace.git_run import must
from ipamc.workspace.revision import below
from ipamc.workspace.safe_read import LARGEST, TOTAL

MOST = 5000
"""How many versions are listed: the newest ones."""
LONGEST = 200
"""Characters of a subject; longer ones are cut."""
LAST = 253_402_300_799
"""The last second of the year 9999, in seconds since 1970: dates of commits may be any number, or none."""
SHA1 = 40
"""Characters of a name of an object, in repositories that have no longer ones."""


class LockVersion(Struct, frozen=True, kw_only=True):
    """A commit that changed the lock."""

    commit: str
    second: int
    """When it was committed, in seconds since 1970, UTC. A clock may have been wrong: it may go back.

    Where the commit has no date of a calendar, it is that of the version before, else 0.
    """
    subject: str
    """The first paragraph of its message, as one line of at most LONGEST characters. Anybody's text; it is UTF-8."""
    blob: str
    """The name of the object that the lock is."""


class LockHistory(Struct, frozen=True, kw_only=True):
    """The commits of HEAD's first parents that changed a lock."""

    top: str
    """The top folder of the repository; "" outside of one."""
    path: str
    """The lock below it."""
    versions: tuple[LockVersion, ...] = ()
    """The oldest first, as the history has them."""
    shallow: bool = False
    """The clone has only the newer part of the history. Its oldest commit seems to have written every file."""
    cut: bool = False
    """There are more than MOST versions, and the oldest are left out."""


def lock_history(folder: str, revision: str = "HEAD") -> LockHistory:
    """List the versions of the lock of a cluster's folder, up to a revision. It reads no lock.

    There are none outside of a repository, before the first commit, and where the lock was never committed.
    A commit that took the lock away, or made a link of it, is no version.
    A cluster's folder that was renamed has a history from then on. Raises Trouble where git cannot tell.
    """
    top = git.root(folder)
    if top is None:
        return LockHistory(top="", path="")
    path = (PurePosixPath(below(top, folder)) / disk.LOCK).as_posix()
    commit = git.commit(top, revision)
    if commit is None:
        return LockHistory(top=top, path=path)
    found = [version for version in _listed(top, commit, path) if version.blob]
    return LockHistory(
        top=top,
        path=path,
        versions=tuple(_dated(found[:MOST][::-1])),
        shallow=git.is_shallow(top),
        cut=len(found) > MOST,
    )


def _listed(top: str, commit: str, path: str) -> Iterator[LockVersion]:
    """Yield the commits that changed a file, the newest first.

    git prints a line for the commit and, for its difference to the first parent, a line with modes and blobs.
    """
    shape = ("--first-parent", "-m", "--raw", "--no-abbrev", "--no-renames", f"--max-count={MOST + 1}")
    plain = ("--encoding=UTF-8", "--no-show-signature", "--no-notes", "--no-color", "--format=%H %ct %s")
    options = ("-c", "log.follow=false", "-c", "log.showRoot=true")
    head = ["", "", ""]
    for row in must(top, "log", *shape, *plain, commit, "--", path, options=options).text.split("\n"):
        if row.startswith(":"):
            _, mode, _, blob, _ = row.split(maxsplit=4)
            yield LockVersion(
                commit=head[0],
                second=_second(head[1]),
                subject=_subject(head[2]),
                blob=blob if mode.startswith("100") else "",
            )
        elif row:
            head = [*row.split(" ", 2), ""][:3]


def _second(written: str) -> int:
    """Read the date of a commit as git prints it; -1 if it is none: `git hash-object` checks no date."""
    known = written.isascii() and written.isdecimal() and len(written) <= len(str(LAST))
    return second if known and (second := int(written)) <= LAST else -1


def _subject(written: str) -> str:
    short = f"{written[:LONGEST]}…" if len(written) > LONGEST else written
    return short.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _dated(versions: Iterable[LockVersion]) -> Iterator[LockVersion]:
    """Yield versions, the oldest first, with a date for those that have none."""
    before = 0
    for version in versions:
        yield version if version.second >= 0 else replace(version, second=before)
        before = max(version.second, 0) or before


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
    name = hashlib.new("sha1" if len(blob) == SHA1 else "sha256", usedforsecurity=False)
    name.update(b"blob %d\0" % len(text) + text)
    return name.hexdigest() == blob
