"""The base of a plan: the clusters of a revision, what became of them, and each one's side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ipamc.lock.file import parse
from ipamc.model.lock import State
from ipamc.workspace import disk, git
from ipamc.workspace.clusters import name_of
from ipamc.workspace.disk import Trouble
from ipamc.workspace.revision import below, is_below, tree_at, unknown

if TYPE_CHECKING:
    from ipamc.model.lock import Lock
    from ipamc.pipeline import Compilation, Inputs
    from ipamc.review.diff import ClusterBase


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What a revision has below clusters/, against what is there now."""

    revision: str
    deleted: tuple[str, ...] = ()
    """Folders that are gone, and went nowhere; in order."""
    renamed: dict[str, str] = field(default_factory=dict)
    """The folder that it was, by the folder that it is."""


def look(revision: str, folders: list[str], deleted: list[str] | None) -> Base:
    """Look at a revision. `folders`: what is planned; `deleted`: folders to look for there, None for all that are gone.

    A folder that is new is another one's new name if a node holds a block in both locks. Raises Trouble where there is no repository or revision.
    """
    top = git.root(".")
    if top is None:
        raise Trouble(
            "this is no git repository, and --base needs one: leave it away to compare with the disk"
        )
    if git.commit(top, revision) is None:
        raise _shallow(revision) if git.is_shallow(top) else unknown(revision)
    where = below(top, disk.CLUSTERS) if is_below(top, disk.CLUSTERS) else None
    there = git.folders(top, revision, where) if where is not None else []
    gone = [
        f"{disk.CLUSTERS}/{name}"
        for name in there
        if not name.startswith(".") and not disk.is_folder(f"{disk.CLUSTERS}/{name}")
    ]
    locks = {
        each: found
        for each in gone
        if (found := git.show(top, revision, f"{where}/{name_of(each)}/{disk.LOCK}")) is not None
    }
    new = [folder for folder in folders if locks and name_of(folder) not in there] if locks else []
    renamed: dict[str, str] = {}
    for folder in new:
        holds = _holds(disk.read_lock(folder))
        shared = {
            old: len(holds & _holds(lock)) for old, lock in locks.items() if old not in renamed.values()
        }
        best = max(shared, key=lambda old: (shared[old], old), default="")
        if shared.get(best):
            renamed[folder] = best
    wanted = locks.keys() if deleted is None else locks.keys() & set(deleted)
    return Base(revision=revision, deleted=tuple(sorted(wanted - set(renamed.values()))), renamed=renamed)


def _shallow(revision: str) -> Trouble:
    return Trouble(
        f"this clone is shallow, and lacks {revision!r}: git fetch --unshallow, or git fetch origin with the branch, and compare again"
    )


def _holds(text: bytes | None) -> set[tuple[str, str]]:
    lock = parse(text, "")[0] if text else None
    return (
        {(line.node, str(line.block)) for line in lock.lines if line.state is State.HELD} if lock else set()
    )


def was_held(folder: str, revision: str) -> Lock | None:
    """Give the lock of a folder in a revision; None where there is none that can be read."""
    top = git.root(".") or "."
    text = git.show(top, revision, f"{below(top, folder)}/{disk.LOCK}")
    return parse(text, f"{revision}:{folder}/{disk.LOCK}")[0] if text is not None else None


def side_at(folder: str, revision: str, head: Inputs, compilation: Compilation) -> ClusterBase | None:
    """Give the base's side of a cluster from a revision; None where that has no such cluster. Raises Trouble where its lock cannot be read."""
    from ipamc.review.diff import UnreadableBase, read_base

    tree = tree_at(folder, revision)
    if not tree.files:
        return None
    inputs = tree.inputs()
    same = _texts(inputs) == _texts(head) and inputs.name == head.name
    try:
        return read_base(inputs, tree.rendered(), compilation.plan.cluster if same else None)
    except UnreadableBase as problem:
        raise Trouble(
            f"{inputs.lock_path} is not sound there ({problem}): compare with a revision before that, or after it was mended"
        ) from None


def _texts(inputs: Inputs) -> dict[str, bytes]:
    return {path.removeprefix(f"{inputs.folder}/"): text for path, text in inputs.sources.items()}


def side_on_disk(folder: str, head: Inputs, compilation: Compilation) -> ClusterBase:
    """Give the base's side of a cluster as it lies on the disk. Its pools are those of the head: nothing else remembers them."""
    from ipamc.review.diff import read_base

    changes = disk.compare(folder, None, compilation.files)
    found = {
        path: disk.read_bytes(f"{folder}/{disk.RENDERED}/{path}")
        for path in (*compilation.files, *changes.removed)
    }
    return read_base(
        head, {path: data for path, data in found.items() if data is not None}, compilation.plan.cluster
    )


def behind(revision: str) -> bool:
    """Tell whether a revision has commits that HEAD lacks: then what they added looks as if it had vanished."""
    commit = git.commit(".", revision)
    return commit is not None and git.merge_base(".", "HEAD", commit) != commit
