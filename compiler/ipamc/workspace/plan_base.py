"""The base of a plan: the disk, or a revision with the clusters that were deleted or renamed since."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING

from msgspec import Struct, field

from ipamc.lock.file import parse
from ipamc.model.cluster import Cluster
from ipamc.model.lock import Line, Lock
from ipamc.read.space_index import Index, load_index
from ipamc.workspace import disk, git, git_tree, hiding
from ipamc.workspace.clusters import below, clusters_folder, folder_of, is_below, name_of, parent_of
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.revision import unknown
from ipamc.workspace.source import Commit, Disk, Source
from ipamc.workspace.spaces import index_path

if TYPE_CHECKING:
    from ipamc.model.diagnostics import Diagnostic
    from ipamc.model.plan import Plan
    from ipamc.pipeline import Compilation, Inputs
    from ipamc.review.diff import ClusterBase


class Base(Struct, frozen=True, kw_only=True):
    """The state that clusters are compared with."""

    source: Source
    deleted: Mapping[str, Lock | None] = field(default_factory=dict)
    """The locks of clusters that were deleted since, by folder, in order; None if a lock cannot be read."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """A cluster's folder in the base, by its present folder."""


def find_base(revision: str, folders: list[str], deleted: list[str] | None) -> Base:
    """Compare the planned folders with those of a revision.
    `deleted` are folders to look for in the revision; None means all that no longer exist. A new folder is
    taken for a renamed one if its lock has every line of the former one, unchanged. Raises EnvironmentFailure
    without repository or revision, and if HEAD has submodules in clusters/, or attributes that change bytes
    of these folders.
    """
    top = git.root(".")
    if top is None:
        raise EnvironmentFailure(
            "this is not a git repository, and --base needs one: omit --base to compare with the disk"
        )
    commit = git.commit(top, revision)
    if commit is None:
        if git.is_shallow(top):
            fetch = "git fetch --unshallow, or git fetch origin with the branch, and compare again"
            raise EnvironmentFailure(f"this clone is shallow and has no {revision!r}: {fetch}")
        raise unknown(top, revision)
    there: tuple[str, ...] = ()
    if is_below(top, clusters_folder()):
        where = below(top, clusters_folder())
        hiding.refuse_other_bytes(top, hiding.files_of_head(top, where), map(name_of, folders))
        there = git_tree.folders(top, commit, where)
    named = (folder_of(name) for name in there if not name.startswith("."))
    gone = [folder for folder in named if not disk.is_folder(folder)]
    source = Commit(top=top, revision=revision, commit=commit, folders=tuple(gone))
    files = [(folder, source.lock(folder)) for folder in gone]
    locks = {folder: parse(file.text, file.path)[0] for folder, file in files if file.text is not None}
    new = [folder for folder in folders if name_of(folder) not in there] if locks else []
    renamed: dict[str, str] = {}
    free = {old: _lines(lock) for old, lock in locks.items()} if new else {}
    for folder in new:
        text = None
        with suppress(EnvironmentFailure, OSError):  # it cannot be read: the cluster's own plan reports that
            text = disk.read_lock(folder)
        lines = _lines(parse(text, "")[0] if text else None)
        if old := max(((len(was), old) for old, was in free.items() if was and was <= lines), default=None):
            renamed[folder] = old[1]
            del free[old[1]]
    wanted = locks.keys() if deleted is None else locks.keys() & set(deleted)
    left = sorted(wanted - set(renamed.values()))
    return Base(source=source, deleted={folder: locks[folder] for folder in left}, renamed=renamed)


def _lines(lock: Lock | None) -> set[Line]:
    return set(lock.lines) if lock else set()


def cluster_base(source: Source, folder: str, head: Inputs, compilation: Compilation) -> ClusterBase | None:
    """Return the base of one cluster; None if the base has no such cluster.
    `head` was compiled to `compilation`. Documents or a lock that are equal in the base are not parsed again,
    and files that are equal in a commit are not read. With 100,000 nodes that saves half of the time that a
    plan takes beyond a compile. Raises EnvironmentFailure if the base's lock cannot be read.
    """
    from ipamc.review.diff import UnreadableBase, read_base

    rendered = {f"{disk.RENDERED}/{path}": text.encode() for path, text in compilation.files.items()}
    source = source.beside({**_texts(head), disk.LOCK: head.lock or b"", **rendered})
    if not source.has(folder):
        return None
    inputs, plan = source.inputs(folder), compilation.plan
    same = _texts(inputs) == _texts(head) and inputs.name == head.name
    same = same and [*inputs.shared.values()] == [*head.shared.values()]
    same = same and [*inputs.spaces.values()] == [*head.spaces.values()] and not head.surveyed
    same_lock = inputs.lock is not None and inputs.lock == head.lock
    try:
        return read_base(
            inputs,
            source.rendered(folder),
            plan.scheme if same else None,
            plan.lock if same_lock else None,
        )
    except UnreadableBase as problem:
        better = "compare with a revision in which it is sound"
        raise EnvironmentFailure(f"{inputs.lock_path} is not sound there ({problem}): {better}") from None


def taken_over(
    source: Source, head: Inputs, base: ClusterBase, plan: Plan, gone: Collection[str]
) -> list[Diagnostic]:
    """Return the findings about a cluster that left an address space and has addresses of a member now.
    Members are those of its index, and those of the index in the base, except `gone`, whose deletion the user
    allows, and those that are in the cluster's present space, which compares them.
    """
    from ipamc.check.address_space import held_lines, members_in, prefixes_of, taken_while_leaving

    was, cluster = base.cluster, plan.scheme
    if isinstance(source, Disk) or not isinstance(was, Cluster) or not isinstance(cluster, Cluster):
        return []
    if was.address_space in {"", cluster.address_space}:
        return []
    path = index_path(f"{parent_of(head.folder)}/{was.address_space}")
    there = below(source.top, path)
    text = git_tree.blobs(source.top, source.commit, [there]).get(there, b"")
    now = prefixes_of(cluster, held_lines(plan.lock), head.lock_path, head.lock)
    over = [prefix.block for prefix in now.prefixes]
    then = load_index(text, was.address_space)
    members = members_in(f"{source.revision}:{there}", then, over) if isinstance(then, Index) else {}
    after = head.index_of(was.address_space)
    others = {**members, **(members_in(path, after, over) if after else {})}
    joined = head.index_of(now.space)
    together = {line.cluster for _, line in joined.lines} if joined else set()
    for name in {was.name, now.cluster, *gone, *together}:
        others.pop(name, None)
    had = prefixes_of(was, held_lines(base.lock), base.lock.path, None)
    return list(taken_while_leaving(had, now, others.values(), members.values()))


def _texts(inputs: Inputs) -> dict[str, bytes]:
    return {path.removeprefix(f"{inputs.folder}/"): text for path, text in inputs.sources.items()}


def behind(revision: str) -> bool:
    """Return whether a revision has commits that HEAD lacks, whose additions would look deleted."""
    commit = git.commit(".", revision)
    return commit is not None and git.merge_base(".", "HEAD", commit) not in {commit, None}


def way_back(revision: str, lock: str, name: str) -> str:
    """Return how to restore lines of a lock that differ from a revision; "" is the disk."""
    if revision and behind(revision):
        return f"but first: git merge {revision}, which has commits that are not merged here"
    return f"to restore it: git checkout {revision or 'HEAD'} -- {quote(lock)}, then: ipamc compile {name}"
