"""A cluster's rendered files on the disk, as a compile of its lock writes them, and as they were applied.

Jobs of one cluster run side by side, so none of them alone knows whether the whole cluster is applied. Each
writes a receipt, a small file; the last job reads them all.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import Annotated, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ipamc.lock.file import parse
from ipamc.model.cidr import Block
from ipamc.model.cilium.operator_list import Assumed
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import names
from ipamc.model.lock import Lock
from ipamc.read.parts import FLAGS, KUSTOMIZATION, VALUES
from ipamc.read.rendered import Object, Rendered, identity
from ipamc.read.syntax.document import Unreadable
from ipamc.workspace import disk, git, tree
from ipamc.workspace.clusters import below, name_of
from ipamc.workspace.environment import today, utc
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.revision import commit_named, last_change
from ipamc.workspace.shapes import ConfigMap, Kustomization, Values, checked
from ipamc.workspace.source import Commit, Disk

_SHAPES = {
    PurePosixPath(FLAGS).name: ConfigMap,
    PurePosixPath(VALUES).name: Values,
    KUSTOMIZATION: Kustomization,
}
"""The shape of a file by its name; all other files contain objects."""


class Manifests(Rendered, frozen=True, dict=True):
    """The rendered files at one moment.
    Each document must have its shape; else its methods raise EnvironmentFailure.
    """

    def documents(self, path: str) -> list[Any]:
        """Return the documents of a file, without empty ones. Raises EnvironmentFailure."""
        where = f"{self.shown}/{path}"
        try:
            found = self.parse(path)
        except KeyError:
            raise EnvironmentFailure(f"there is no {where}: run ipamc compile") from None
        except UnicodeDecodeError:
            raise EnvironmentFailure(f"{where} is not UTF-8 text") from None
        except Unreadable as problem:
            raise EnvironmentFailure(f"{where}: {problem.diagnostics[0].message}") from None
        shape = _SHAPES.get(PurePosixPath(path).name)
        return [checked(where, document, shape) for document in found if document is not None]

    @cached_property
    def flags(self) -> Assumed:
        """The flags that the compile assumed. Raises EnvironmentFailure."""
        found = super().flags
        if not found.namespace:
            raise EnvironmentFailure(
                f"there is no ConfigMap of a namespace in {self.shown}/{FLAGS}: run ipamc compile"
            )
        return found


def manifests(folder: str) -> Manifests:
    """Read a cluster's rendered files. Raises EnvironmentFailure for links and irregular files."""
    tree.regular(folder)
    return Manifests(tree.read(folder, tree.paths(folder)), f"{folder}/{disk.RENDERED}")


def former_blocks(folder: str) -> dict[str, list[Block]]:
    """Return the blocks that nodes moved away from, by node, from the quarantine of the lock."""
    path = disk.lock_path(folder)
    lock, _ = parse(disk.read_lock(folder) or b"", path)
    if lock is None:
        raise EnvironmentFailure(f"{path} cannot be read: run ipamc compile")
    found: dict[str, list[Block]] = {}
    for line in lock.lines:
        if line.moved:
            found.setdefault(line.node, []).append(line.block)
    return found


def context_of(folder: str) -> str:
    """Return the context of the kubeconfig that leads to a cluster: `spec.context`, or the folder's name.
    Raises Refused where the cluster may name one and cannot be read; EnvironmentFailure, OSError.
    """
    from ipamc.pipeline import load_cluster

    inputs = Disk().inputs(folder)
    named = any(b"context" in data for data in inputs.sources.values())
    return load_cluster(inputs)[0].kube_context if named else name_of(folder)


class Recompiled(Struct, frozen=True, kw_only=True):
    """The objects that a cluster's present lock calls for."""

    rendered: Rendered  # the files that a compile writes
    waiting: Mapping[str, Sequence[Object]]
    """CiliumNodes that a compile does not write, by part: those of planned nodes, which must not exist
    before their agents make them."""


def recompiled(folder: str) -> Recompiled:
    """Compile a cluster without changing its lock.
    Raises Refused as a compile does; EnvironmentFailure, OSError.
    """
    from ipamc.pipeline import compile_cluster
    from ipamc.render.arrange import arrange_waiting
    from ipamc.render.yaml import emit

    inputs = replace(Disk().inputs(folder), today=today(), locked=True, skip_tests=True)
    compilation = compile_cluster(inputs)
    files = compilation.files, emit(arrange_waiting(compilation.plan), inputs.templates)
    rendered, waiting = (Rendered({path: text.encode() for path, text in each.items()}) for each in files)
    return Recompiled(rendered=rendered, waiting={part: waiting.documents(part) for part in waiting.texts})


def rendered_differences(there: Rendered, wanted: Rendered) -> Iterator[str]:
    """Yield differences between a cluster's `rendered/` (`there`) and a compile of its lock (`wanted`).
    Every part must exist, with the same kustomization and the same objects. This finds a lost shard, object
    or name of a file, whatever the header of the lock says, and an object that no compile wrote. The contents
    of objects are not compared: `ipamc compile --locked --check` does that.
    """
    if missing := set(wanted.parts) - set(there.parts):
        yield f"there is no {names(missing)}"
    if more := set(there.parts) - set(wanted.parts):
        yield f"the lock does not contain {names(more)}"
    for part in sorted(set(wanted.parts) & set(there.parts)):
        path = f"{part}/{KUSTOMIZATION}"
        compiled = wanted.documents(path)
        if there.texts[path] != wanted.texts[path] and there.documents(path) != compiled:
            yield f"{path} does not match a compile of the lock"
            continue
        paths = [f"{part}/{name}" for name in compiled[0].get("resources") or ()]
        # Equal texts are not parsed.
        for path in (each for each in paths if there.texts.get(each) != wanted.texts[each]):
            meant, found = (
                Counter(map(identity, side.documents(path) if path in side.texts else ()))
                for side in (wanted, there)
            )
            if lost := meant - found:
                yield f"{path} lacks {names(lost)}"
            if strange := found - meant:
                yield f"{path} has {names(strange)}, which the lock does not contain"


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
        return "this is not a commit of a git repository"
    path = f"{disk.CLUSTERS}/{cluster}"
    if not git.is_clean(".", path):
        return f"{path} does not match the commit"
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
            raise EnvironmentFailure(f"{path} is not a receipt of ipamc apply: {problem}") from None
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
    spaces: Mapping[str, bytes]  # the indexes of address spaces beside the cluster, by path


def load_sides(folder: str, revision: str | None) -> Sides:
    """Read a cluster from the disk, and from a revision or one of REFS.
    Raises Refused, EnvironmentFailure.
    """
    from ipamc.pipeline import load_cluster

    source = Disk()
    inputs = source.inputs(folder)
    if inputs.lock is None or not inputs.rendered:
        compiled = f"run ipamc compile {quote(folder)}"
        raise EnvironmentFailure(f"{folder} has no lock or no rendered files: {compiled}")
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
        spaces=inputs.spaces,
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
    last = "name the revision that was applied last"
    raise EnvironmentFailure(f"{revision} has no rendered files of {folder}: {last}")
