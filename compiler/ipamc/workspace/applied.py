"""What was applied: receipts of the jobs of one pipeline, and the commit that was applied last.

Jobs of one cluster run side by side, so none of them alone knows whether the whole cluster is applied. Each
writes a receipt, a small file; the last job reads them all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated

import msgspec
from msgspec import Struct

from ipamc.model.cluster import Cluster
from ipamc.model.lock import Lock
from ipamc.workspace import disk, git
from ipamc.workspace.clusters import name_of
from ipamc.workspace.environment import utc
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.rendered import Manifests
from ipamc.workspace.revision import commit_named, last_change
from ipamc.workspace.source import Commit, Disk, below

REFS = (git.APPLIED, "refs/remotes/origin/ipamc/applied/")
"""Prefixes of the ref of the applied commit, before a cluster's name; the first existing ref counts."""

Sha = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{40,64}\Z")]


class Receipt(Struct, forbid_unknown_fields=True):
    """The parts of one cluster that one job applied without an error of the operator."""

    cluster: str
    commit: Sha
    parts: list[str]  # empty: the whole cluster


def write_receipt(folder: str, cluster: str, parts: Sequence[str]) -> str:
    """Write a receipt for parts that were applied as HEAD has them; return why none is written, or ""."""
    if git.root(".") is None or not (commit := git.commit(".", "HEAD")):
        return "this is no commit of a git repository"
    path = f"{disk.CLUSTERS}/{cluster}"
    if not git.is_clean(".", path):
        return f"{path} is not as it is committed"
    receipt = Receipt(cluster=cluster, commit=commit, parts=sorted(parts))
    name = hashlib.sha256("\n".join([cluster, *receipt.parts]).encode()).hexdigest()[:40]
    disk.replace(str(Path(folder, f"{name}.json")), msgspec.json.encode(receipt).decode() + "\n")
    return ""


def read_receipts(folder: str) -> list[Receipt]:
    """Return the receipts in a folder, if it exists, by name.
    Raises EnvironmentFailure for a file of another kind.
    """
    found = []
    for path in sorted(Path(folder).glob("*.json")):
        try:
            if (data := disk.read_bytes(str(path))) is not None:
                found.append(msgspec.json.decode(data, type=Receipt))
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
            raise EnvironmentFailure(f"{path} is no receipt of ipamc ci apply: {problem}") from None
    return found


def lacking(receipts: Iterable[Receipt], cluster: str, commit: str, parts: Iterable[str]) -> list[str]:
    """Return the parts of a cluster for which a commit has no receipt."""
    ours = [receipt for receipt in receipts if (receipt.cluster, receipt.commit) == (cluster, commit)]
    done = {part for receipt in ours for part in receipt.parts}
    return [part for part in parts if part not in done and all(receipt.parts for receipt in ours)]


class Sides(Struct, frozen=True, kw_only=True, dict=True):
    """A cluster as git has it and as it was last applied: an audit compares the live cluster with both."""

    cluster: Cluster
    lock: Lock
    sources: Mapping[str, bytes]  # the inputs by path, to find places in them
    git: Manifests
    applied: Manifests | None  # None: it is not known
    changed: str  # when the lock was committed last, RFC 3339 in UTC; "": it is not committed
    applied_at: str  # when the applied commit was made; "" where it is not known


def load_sides(folder: str, revision: str | None) -> Sides:
    """Read a cluster from the disk, and from a revision or one of REFS.
    Raises Refused, EnvironmentFailure.
    """
    from ipamc.pipeline import load_cluster

    source = Disk()
    inputs = source.inputs(folder)
    if inputs.lock is None or not inputs.rendered:
        compiled = f"run ipamc compile {quote(folder)}"
        raise EnvironmentFailure(f"there is no lock, or nothing rendered, in {folder}: {compiled}")
    cluster, lock = load_cluster(inputs)
    here = Manifests(source.rendered(folder), f"{folder}/{disk.RENDERED}")
    applied, commit = None, _applied(folder, revision)
    if commit:
        path = f"{commit.revision}:{below(commit.top, folder)}/{disk.RENDERED}"
        applied = Manifests(commit.rendered(folder), path, commit.revision, here.parsed)
    changed = last_change(folder, disk.LOCK)
    return Sides(
        cluster=cluster,
        lock=lock,
        sources=inputs.sources,
        git=here,
        applied=applied,
        changed="" if changed is None else utc(changed),
        applied_at=utc(git.committed(commit.top, commit.commit)) if commit else "",
    )


def _applied(folder: str, revision: str | None) -> Commit | None:
    """Return the commit that was applied last; None where no ref says so."""
    top = git.root(folder)
    if top is None:
        if revision is None:
            return None
        raise EnvironmentFailure(f"{folder} is not in a git repository: --applied needs one, and git")
    if revision is None:
        commit = next(filter(None, (git.commit(top, f"{ref}{name_of(folder)}") for ref in REFS)), None)
    else:
        commit = commit_named(top, revision)
    if commit is None:
        return None
    found = Commit(top=top, revision=revision or commit[:12], commit=commit, folders=(folder,))
    if found.rendered(folder):
        return found
    if revision is None:
        return None
    raise EnvironmentFailure(f"{revision} has nothing rendered of {folder}: name what was applied last")
