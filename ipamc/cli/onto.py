"""`ipamc lock --onto REV`: the merge of a lock as a command, for forges that run no merge drivers."""

from __future__ import annotations

from pathlib import Path

from ipamc import disk, git
from ipamc.cli.merge_driver import told
from ipamc.disk import Trouble
from ipamc.lock import parse
from ipamc.merge import Merged, merge


def onto(folder: str, rev: str) -> tuple[bytes | None, list[str]]:
    """Merge a cluster's lock with that of a revision; give the text, and a line for each newcomer that gave way. Nothing is written.

    The base is the merge base of HEAD and `rev`. Where the work tree's lock is not sound (a textual merge went wrong), HEAD's is taken; where HEAD is itself
    that merge, its parents' are merged first. Raises Trouble where git cannot tell, or where a person has to decide.
    """
    top = git.root(folder)
    if top is None:
        raise Trouble(f"{folder} is not in a git repository: --onto needs one")
    theirs = git.commit(folder, rev)
    if theirs is None:
        raise Trouble(f"git knows no revision {rev!r} here: fetch it, or check its name")
    path = (Path(folder).resolve() / disk.LOCK).relative_to(Path(top).resolve()).as_posix()
    shown = f"{folder}/{disk.LOCK}"
    lines: list[str] = []

    ours = disk.read_lock(folder)
    if not _sound(ours, shown):
        ours = git.show(folder, "HEAD", path)
    if not _sound(ours, shown):
        parents = git.parents(folder, "HEAD")
        if len(parents) != 2:
            raise Trouble(f"{shown} is not sound, and HEAD is no merge whose sides could be taken: git checkout a revision in which it is")
        one, two = (git.show(folder, each, path) for each in parents)
        ours = _merged(shown, git.show(folder, _base(folder, *parents), path), one, two, lines, git.show(folder, git.trunk(folder), path))
    other = git.show(folder, theirs, path)
    base = _base(folder, "HEAD", theirs)
    if other is None or base == theirs:
        return ours, lines
    return _merged(shown, git.show(folder, base, path), ours, other, lines, git.show(folder, git.trunk(folder), path), other), lines


def _sound(text: bytes | None, path: str) -> bool:
    if text is None:
        return True
    lock, found = parse(text, path)
    return lock is not None and not found


def _base(folder: str, one: str, two: str) -> str:
    base = git.merge_base(folder, one, two)
    if base is None:
        raise Trouble(f"{one} and {two} have no common ancestor here: fetch more history (git fetch --unshallow)")
    return base


def _merged(
    path: str, base: bytes | None, ours: bytes | None, theirs: bytes | None, lines: list[str], *trunks: bytes | None
) -> bytes | None:
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    merged: Merged = merge(base, ours, theirs, *trunks)
    if merged.conflicts:
        raise Trouble(f"{path}: a person has to decide: {'; '.join(merged.conflicts)}")
    lines += told(path, merged.dropped)
    return merged.text
