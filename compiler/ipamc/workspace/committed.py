"""What the last commit has of a cluster, where the disk may have lost it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from ipamc.model.diagnostics import Diagnostic
from ipamc.workspace import disk
from ipamc.workspace.clusters import below, name_of, parent_of, top_of

_SCHEME = re.compile(rb"kind\W+(Cluster|AddressSpace)\b")


def lost_cluster(folder: str, sources: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    """Yield a finding where only a commit has the document of a folder's Cluster."""
    path = f"{folder}/cluster.yaml"
    missing = path not in sources and not any(map(_SCHEME.search, sources.values()))
    if missing and (top := top_of(folder)):
        from ipamc.model.diagnostics import Span
        from ipamc.model.wording import typed
        from ipamc.read.rules import no_cluster
        from ipamc.workspace import git

        in_git = (PurePosixPath(below(top, folder)) / "cluster.yaml").as_posix()
        there = committed(folder, ["cluster.yaml"])
        if had := "HEAD" if there else git.before_deletion(top, in_git):
            lost = f"{had} has one: git checkout {had} -- {typed(path)}"
            yield no_cluster(Span(folder), name_of(folder), folder, "Cluster", lost)


def committed_lock(folder: str) -> bytes | None:
    """Return a cluster's lock in the last commit, or None."""
    return committed(folder, [disk.LOCK]).get(disk.LOCK)


def is_deleted(folder: str, name: str) -> bool:
    """Return whether the last commit has a missing file of a folder, and no `git rm` took it away."""
    top = top_of(folder)
    if top is None or not committed(folder, [name]):
        return False
    from ipamc.workspace import git

    return git.is_staged(top, (PurePosixPath(below(top, folder)) / name).as_posix())


def committed(folder: str, paths: Sequence[str]) -> Mapping[str, bytes]:
    """Return files of the last commit, by path below the folder: the cluster may still run with them."""
    from ipamc.workspace import git, git_tree

    top = git.root(folder)
    head = git.commit(top, "HEAD") if top else None
    if top is None or head is None:
        return {}
    within = PurePosixPath(below(top, folder))
    names = {path: (within / path).as_posix() for path in paths}
    found = git_tree.blobs(top, head, list(names.values()))
    return {path: found[name] for path, name in names.items() if name in found}


def never_committed(paths: Sequence[str]) -> frozenset[str]:
    """Return those files of clusters in one repository that the last commit does not have."""
    from ipamc.workspace import git, git_tree

    top = top_of(parent_of(paths[0]))
    head = git.commit(top, "HEAD") if top else None
    if top is None or head is None:
        return frozenset(paths)
    within = {(PurePosixPath(below(top, parent_of(each))) / name_of(each)).as_posix(): each for each in paths}
    return frozenset(paths) - {within[path] for path in git_tree.entries(top, head, list(within))}
