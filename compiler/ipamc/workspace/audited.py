"""The two sides that a running cluster is compared with: what git has, and what was applied last."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from pathlib import PurePosixPath
from shlex import quote
from typing import Any

from msgspec import Struct

from ipamc.model.cluster import Cluster
from ipamc.model.lock import Lock
from ipamc.render.parts import FIRST, KINDS
from ipamc.review.audit.tree import Tree
from ipamc.review.live.objects import POOL, Object, identity
from ipamc.workspace import disk, git
from ipamc.workspace.clusters import name_of
from ipamc.workspace.environment import utc
from ipamc.workspace.rendered import (
    CONFIG_MAP,
    KUSTOMIZATION,
    VALUES,
    assumed_in,
    created_pools,
    documents,
    helm_values,
)
from ipamc.workspace.revision import below, known
from ipamc.workspace.shapes import Kustomization
from ipamc.workspace.source import Commit, Disk
from ipamc.workspace.trouble import Trouble

REFS = (git.APPLIED, "refs/remotes/origin/ipamc/applied/")
"""Where the ref of what was applied last may be, before the name of a cluster; the first that there is counts."""

Parsed = MutableMapping[bytes, list[dict[str, Any]]]
"""The documents of files, by their bytes."""


class Sides(Struct, frozen=True, kw_only=True, dict=True):
    """A cluster as git has it, and as it was applied last."""

    cluster: Cluster
    lock: Lock
    sources: Mapping[str, bytes]
    """The inputs by path, to find places in them."""
    git: Tree
    applied: Tree | None
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
    parsed: Parsed = {}
    here = tree_of(source.rendered(folder), f"{folder}/{disk.RENDERED}", "", parsed)
    commit = _applied(folder, applied)
    there = None
    if commit:
        path = f"{commit.revision}:{below(commit.top, folder)}/{disk.RENDERED}"
        there = tree_of(commit.rendered(folder), path, commit.revision, parsed)
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


def tree_of(texts: Mapping[str, bytes], shown: str, revision: str, parsed: Parsed) -> Tree:
    """Return what the files of a `rendered/` apply, by path below it. Raises Trouble.

    Files with the same bytes are parsed once: `parsed` has what was parsed before.
    """

    def text(path: str) -> str:
        if path not in texts:
            raise Trouble(f"there is no {shown}/{path}: run ipamc compile")
        return texts[path].decode(errors="replace")

    def read(path: str) -> list[dict[str, Any]]:
        if texts[path] not in parsed:
            parsed[texts[path]] = documents(f"{shown}/{path}", text(path))
        return parsed[texts[path]]

    kustomization = f"{FIRST}/{KUSTOMIZATION}"
    named = {
        f"{FIRST}/{name}"
        for document in documents(f"{shown}/{kustomization}", text(kustomization), Kustomization)
        for name in document.get("resources") or ()
    }
    objects: dict[str, Object] = {}
    places: dict[str, tuple[str, int]] = {}
    applied = False
    for path in sorted(texts):
        parts = PurePosixPath(path).parts
        if path not in named and (parts[0] not in KINDS or parts[-1] == KUSTOMIZATION):
            continue
        for number, document in enumerate(read(path)):
            if document["kind"] == "ConfigMap":
                applied = True
                continue
            name = identity(document)
            objects[name], places[name] = document, (path, number)
    where = f"{shown}/{FIRST}"
    values = text(f"{FIRST}/{VALUES}")
    seeds = {identity(item) for path in texts if path.startswith("seeds/") for item in read(path)}
    created = {f"{POOL} {name}" for name in created_pools(helm_values(where, values))}
    return Tree(
        shown=shown,
        revision=revision,
        objects=objects,
        places=places,
        others=frozenset(seeds | created),
        flags=assumed_in(where, text(f"{FIRST}/{CONFIG_MAP}"), values, applied=applied),
        texts=texts,
    )
