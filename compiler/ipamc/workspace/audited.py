"""The two sides that a running cluster is compared with: what git has, and what was applied last."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from shlex import quote

from msgspec import Struct

from ipamc.model.cluster import Cluster
from ipamc.model.lock import Lock
from ipamc.workspace import disk, git
from ipamc.workspace.clusters import name_of
from ipamc.workspace.environment import utc
from ipamc.workspace.rendered import Manifests
from ipamc.workspace.revision import below, known
from ipamc.workspace.source import Commit, Disk
from ipamc.workspace.trouble import Trouble

REFS = (git.APPLIED, "refs/remotes/origin/ipamc/applied/")
"""Where the ref of what was applied last may be, before the name of a cluster; the first that there is counts."""


class Sides(Struct, frozen=True, kw_only=True, dict=True):
    """A cluster as git has it, and as it was applied last."""

    cluster: Cluster
    lock: Lock
    sources: Mapping[str, bytes]
    """The inputs by path, to find places in them."""
    git: Manifests
    applied: Manifests | None
    """None: it is not known."""
    changed: str
    """When the lock was committed last, RFC 3339 in UTC; "": it is not committed."""
    applied_at: str
    """When what was applied was committed; "" where it is not known."""


def load_sides(folder: str, applied: str | None) -> Sides:
    """Read a cluster on the disk, and as a revision has it that was applied.

    Without a revision the REFS are looked for. Raises Refused where a compile would refuse the
    inputs or the lock, Trouble where nothing was compiled, or where git does not know the revision.
    """
    from ipamc.pipeline import load_cluster

    source = Disk()
    inputs = source.inputs(folder)
    if inputs.lock is None or not inputs.rendered:
        raise Trouble(
            f"there is no lock, or nothing rendered, in {folder}: run ipamc compile {quote(folder)}"
        )
    cluster, lock = load_cluster(inputs)
    here = Manifests(source.rendered(folder), f"{folder}/{disk.RENDERED}")
    commit = _applied(folder, applied)
    there = None
    if commit:
        path = f"{commit.revision}:{below(commit.top, folder)}/{disk.RENDERED}"
        there = Manifests(commit.rendered(folder), path, commit.revision, here.parsed)
    return Sides(
        cluster=cluster,
        lock=lock,
        sources=inputs.sources,
        git=here,
        applied=there,
        changed=_changed(folder),
        applied_at=utc(git.committed(commit.top, commit.commit)) if commit else "",
    )


def _applied(folder: str, revision: str | None) -> Commit | None:
    """Return the commit that was applied last; None where no ref says so."""
    top = git.root(folder)
    if revision is not None:
        if top is None:
            raise Trouble(f"{folder} is not in a git repository: --applied needs one, and git")
        found = Commit(top=top, revision=revision, commit=known(top, revision), folders=(folder,))
        if not found.rendered(folder):
            raise Trouble(f"{revision} has nothing rendered of {folder}: name what was applied last")
        return found
    for ref in REFS if top is not None else ():
        commit = git.commit(str(top), f"{ref}{name_of(folder)}")
        if commit is not None:
            found = Commit(top=str(top), revision=commit[:12], commit=commit, folders=(folder,))
            return found if found.rendered(folder) else None
    return None


def _changed(folder: str) -> str:
    top = git.root(folder)
    if top is None:
        return ""
    second = git.last_change(top, (PurePosixPath(below(top, folder)) / disk.LOCK).as_posix())
    return "" if second is None else utc(second)
