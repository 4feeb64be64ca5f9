"""The parts of a cluster's `rendered/` and the objects in their files, for what applies them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from ipamc.lock.file import parse
from ipamc.model.cidr import Block
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.yaml import yaml_documents
from ipamc.render.parts import FIRST, KINDS, parts
from ipamc.render.targets.component import OPERATOR_ARGUMENT
from ipamc.review.live.config import Assumed
from ipamc.review.live.objects import POOL, identity, name_of
from ipamc.workspace import disk, tree
from ipamc.workspace.shapes import ConfigMap, Kustomization, Values, checked
from ipamc.workspace.trouble import Trouble

KUSTOMIZATION = "kustomization.yaml"
CONFIG_MAP = "configmap.yaml"
VALUES = "helm-values.yaml"


def parts_of(folder: str) -> tuple[str, ...]:
    """Return the parts of a cluster's `rendered/`, in the order in which they are applied.

    Raises Trouble where anything there is a link or no file: kustomize must not find it.
    """
    tree.refuse_irregular(folder)
    found = map(PurePosixPath, tree.paths(folder))
    return parts(path.parent.as_posix() for path in found if path.name == KUSTOMIZATION and path.parent.name)


def objects_of(folder: str, part: str) -> list[dict[str, Any]]:
    """Return the objects in the files of a part: what its kustomization must build to.

    A shard consists of all its files; `cilium/` of those that its kustomization names, because flags may go
    to Helm or to another kustomization.
    """
    where = Path(folder, disk.RENDERED, part)
    files = sorted(path.name for path in where.glob("*.yaml") if path.name != KUSTOMIZATION)
    if part.partition("/")[0] not in KINDS:
        path = (where / KUSTOMIZATION).as_posix()
        named = {
            name
            for document in documents(path, disk.read_text(path), Kustomization)
            for name in document.get("resources") or ()
        }
        files = [name for name in files if name in named]
    return [document for name in files for document in _documents_of((where / name).as_posix())]


def assumed(folder: str) -> Assumed:
    """Return the flags that the compile assumed, as they are rendered for review. Raises Trouble without."""
    where = f"{folder}/{disk.RENDERED}/{FIRST}"
    return assumed_in(
        where,
        disk.read_text(f"{where}/{CONFIG_MAP}"),
        disk.read_text(f"{where}/{VALUES}"),
        applied=any(document["kind"] == "ConfigMap" for document in objects_of(folder, FIRST)),
    )


def assumed_in(where: str, config_map: str, values: str, *, applied: bool) -> Assumed:
    """Return the flags of two texts of `cilium/`; `where` is for the message. Raises Trouble."""
    found = documents(f"{where}/{CONFIG_MAP}", config_map, ConfigMap)
    namespace = found[0]["metadata"].get("namespace") if found else ""
    if not namespace:
        raise Trouble(f"there is no ConfigMap of a namespace in {where}/{CONFIG_MAP}: run ipamc compile")
    helm = helm_values(where, values)
    return Assumed(
        namespace=namespace,
        data=found[0].get("data") or {},
        bystander=OPERATOR_ARGUMENT in ((helm.get("operator") or {}).get("extraArgs") or ()),
        applied=applied,
    )


def helm_values(where: str, text: str) -> dict[str, Any]:
    """Return the Helm values of `cilium/`; `where` is for the message. Raises Trouble."""
    found = documents(f"{where}/{VALUES}", text, Values)
    return found[0] if found else {}


def created_pools(values: dict[str, Any]) -> set[str]:
    """Return the CiliumPodIPPools that the operator creates by its flag, from the Helm values."""
    return set(((values.get("ipam") or {}).get("operator") or {}).get("autoCreateCiliumPodIPPools") or {})


def former_blocks(folder: str) -> dict[str, list[Block]]:
    """Return the blocks that nodes moved away from, by node: the lock keeps them in quarantine."""
    path = disk.lock_path(folder)
    lock, _ = parse(disk.read_lock(folder) or b"", path)
    if lock is None:
        raise Trouble(f"{path} cannot be read: run ipamc compile")
    found: dict[str, list[Block]] = {}
    for line in lock.lines:
        if line.moved:
            found.setdefault(line.node, []).append(line.block)
    return found


def by_others(folder: str) -> set[str]:
    """Return the objects of a cluster that somebody else applies: seeds by hand, pools by a flag (autoCreate)."""
    seeds = sorted(Path(folder, disk.RENDERED, "seeds").glob("*.yaml"))
    found = [document for path in seeds for document in _documents_of(path.as_posix())]
    where = f"{folder}/{disk.RENDERED}/{FIRST}"
    created = created_pools(helm_values(where, disk.read_text(f"{where}/{VALUES}")))
    return {*map(identity, found), *(f"{POOL} {name}" for name in created)}


def seeded(folder: str, chosen: Iterable[str]) -> set[str]:
    """Return the nodes that have a seed in these shards."""
    shards = {part.partition("/")[2] for part in chosen}
    return {
        name_of(document)
        for shard in shards
        for document in _documents_of(f"{folder}/{disk.RENDERED}/seeds/{shard}.yaml")
    }


def _documents_of(path: str) -> list[dict[str, Any]]:
    return documents(path, disk.read_text(path))


def documents(where: str, text: str, shape: Any = None) -> list[dict[str, Any]]:
    """Read a YAML stream of Kubernetes objects, or of documents of one shape; `where` is for the message.

    It is read as inputs are: no depth, alias, tag or date brings the reader down, and a text that readers of
    YAML 1.1 and 1.2 take differently stays a text. Raises Trouble for a document of another shape.
    """
    try:
        found = [document.value for document in yaml_documents(where, text)]
    except Unreadable as problem:
        raise Trouble(f"{where}: {problem.diagnostics[0].message}") from None
    return [checked(where, document, shape) for document in found if document is not None]
