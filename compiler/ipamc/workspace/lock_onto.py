"""`ipamc lock --onto REV`: merge a lock with that of a revision, for forges, which run no merge drivers."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from ipamc.lock.file import dumps, parse
from ipamc.lock.merge import dated, merge
from ipamc.model.diagnostics import names
from ipamc.model.limits import DEEPEST_LOCK_SEARCH, MOST_COMMITS_SEARCHED
from ipamc.model.lock import Line, State
from ipamc.report.lock_lines import dropped_lines
from ipamc.workspace import disk, git
from ipamc.workspace.clusters import below
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.revision import commit_named


class Onto(Struct, frozen=True, kw_only=True):
    """The result of the merge. Nothing is written."""

    lock: bytes | None
    lines: tuple[str, ...]  # lines for the user: the origin of the lock, and the lines that were dropped
    rev: str
    newcomers: frozenset[str]  # nodes that hold blocks only in the revision's lock
    before: tuple[Line, ...]  # the revision's lines

    def refuse_unmerged(self, leavers: set[str]) -> None:
        """Raise EnvironmentFailure if a node that is new in the revision leaves here: its inventory is not
        merged.
        """
        if unmerged := leavers & self.newcomers:
            lacking = f"nodes of {self.rev} are not in the inventory here: {names(unmerged)}"
            raise EnvironmentFailure(f"{lacking}; merge the inputs first: git merge {self.rev}")


class _Merger(Struct):
    folder: str
    rev: str
    path: str  # of the lock, below the repository's top
    shown: str  # of the lock, as the user would type it
    other: bytes | None  # the lock of `rev`
    lines: list[str] = field(default_factory=list)
    done: bool = False  # our side already contains the revision's lock
    found: dict[str, bytes | None] = field(default_factory=dict)
    """The locks of commits, as a cache: merges of merges reach one commit on many paths."""
    looked: int = 0  # the number of them that are not intact

    def show(self, revision: str) -> bytes | None:
        return git.show(self.folder, revision, self.path)

    def ours(self) -> bytes | None:
        """Return the work tree's lock; if it is lost or damaged, rebuild one from what git has."""
        text = disk.read_lock(self.folder)
        if _is_sound(text, self.shown) and (text is not None or self.show("HEAD") is None):
            return text
        two, three = self.show(":2"), self.show(":3")
        if two is not None and three is not None:  # an unfinished merge, rebase or cherry-pick
            both = "both sides come from the unfinished merge of git"
            self.lines.append(f"{self.shown}: not sound; {both}")
            self.done = three == self.other
            return self.merged(self.show(":1"), two, three)
        return self.of_commit("HEAD", DEEPEST_LOCK_SEARCH)

    def of_commit(self, commit: str, steps: int) -> bytes | None:
        """Return a commit's lock, else its parents' locks, merged.
        Raises EnvironmentFailure after `steps` or MOST_COMMITS_SEARCHED.
        """
        if commit not in self.found:
            self.found[commit] = self._of_commit(commit, steps)
        return self.found[commit]

    def _of_commit(self, commit: str, steps: int) -> bytes | None:
        text = self.show(commit)
        if _is_sound(text, self.shown):
            self.lines.append(f"{self.shown}: not sound; taken from {commit[:12]}")
            return text
        parents = git.parents(self.folder, commit)
        self.looked += 1
        if not parents or len(parents) > 2 or not steps or self.looked > MOST_COMMITS_SEARCHED:
            before = "neither here nor in earlier commits: check out a revision in which it is"
            raise EnvironmentFailure(f"{self.shown} is not sound, {before}")
        locks = [self.of_commit(parent, steps - 1) for parent in parents]
        # After a squashed merge the history has one side only; the other side's additions are placed again.
        return locks[0] if len(locks) == 1 else self.merged(self.show(self.base(*parents)), *locks)

    def base(self, one: str, two: str) -> str:
        """Return the merge base of two commits. Raises EnvironmentFailure where there is none."""
        base = git.merge_base(self.folder, one, two)
        if base is None:
            more = "fetch more history (git fetch --unshallow)"
            raise EnvironmentFailure(f"{one} and {two} have no common ancestor here: {more}")
        return base

    def merged(self, base: bytes | None, ours: bytes | None, theirs: bytes | None) -> bytes | None:
        """Merge two locks. Lines of the trunk have priority, then those of the revision.
        Raises EnvironmentFailure.
        """
        if ours is None or theirs is None:
            return theirs if ours is None else ours
        done = merge(base, ours, theirs, self.show(git.trunk(self.folder)), self.other)
        if done.conflicts:
            raise EnvironmentFailure(f"{self.shown}: you must decide: {'; '.join(done.conflicts)}")
        self.lines += dropped_lines(self.shown, done.dropped, "the trunk", self.rev)
        return done.text


def onto(folder: str, rev: str, today: str) -> Onto:
    """Merge a cluster's lock with that of a revision. A quarantine that `rev` does not have begins `today`.
    The base is the merge base of HEAD and `rev`. If the work tree's lock is lost or damaged (by a text
    merge), the sides of git's unfinished merge are merged instead, or HEAD's lock is taken; if HEAD itself is
    that merge, the locks of its parents are merged first. Raises EnvironmentFailure if git lacks what this
    needs, or if a person must decide.
    """
    top = git.root(folder)
    if top is None:
        raise EnvironmentFailure(f"{folder} is not in a git repository: --onto needs one")
    commit = commit_named(folder, rev)
    path = f"{below(top, folder)}/{disk.LOCK}"
    merger = _Merger(folder, rev, path, disk.lock_path(folder), git.show(folder, commit, path))
    base = merger.base("HEAD", commit)
    ours = merger.ours()
    if base != commit and not _is_sound(merger.other, merger.shown):
        merger.other = merger.of_commit(commit, DEEPEST_LOCK_SEARCH)
    text, newcomers = ours, set[str]()
    if merger.other is not None and not merger.done and base != commit:
        parted = merger.show(base)
        text = merger.merged(parted, ours, merger.other)
        newcomers = _holders(merger.other) - _holders(parted) - _holders(ours)
    lock, other = (parse(each, "")[0] if each else None for each in (text, merger.other))
    if lock and other:
        lines = dated(lock.lines, [other.lines], today)
        text = dumps(replace(lock, lines=tuple(lines.values()))).encode()
    before = other.lines if other else ()
    said = tuple(merger.lines)
    return Onto(lock=text, lines=said, rev=rev, newcomers=frozenset(newcomers), before=before)


def _is_sound(text: bytes | None, path: str) -> bool:
    if text is None:
        return True
    lock, found = parse(text, path)
    return lock is not None and not found


def _holders(text: bytes | None) -> set[str]:
    lock = parse(text, "")[0] if text else None
    return {line.node for line in lock.lines if line.state is State.HELD} if lock else set()
