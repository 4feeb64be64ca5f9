"""The parts of a cluster's `rendered/` and the objects in their files, for what applies them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ipamc.render.parts import KINDS, parts
from ipamc.workspace import disk
from ipamc.workspace.trouble import Trouble

KUSTOMIZATION = "kustomization.yaml"


def parts_of(folder: str) -> tuple[str, ...]:
    """Return the parts of a cluster's `rendered/`, in the order in which they are applied."""
    top = Path(folder, disk.RENDERED)
    return parts(path.parent.relative_to(top).as_posix() for path in top.glob(f"*/**/{KUSTOMIZATION}"))


def objects_of(folder: str, part: str) -> list[dict[str, Any]]:
    """Return the objects in the files of a part: what its kustomization must build to.

    A shard consists of all its files; `cilium/` of those that its kustomization names, because flags may go
    to Helm or to another kustomization.
    """
    where = Path(folder, disk.RENDERED, part)
    files = sorted(path.name for path in where.glob("*.yaml") if path.name != KUSTOMIZATION)
    if part.partition("/")[0] not in KINDS:
        named = {
            name
            for document in documents(disk.read_text(str(where / KUSTOMIZATION)))
            for name in document.get("resources", ())
        }
        files = [name for name in files if name in named]
    return [document for name in files for document in documents(disk.read_text(str(where / name)))]


def nodes_of(folder: str, chosen: Iterable[str]) -> set[str]:
    """Return the nodes whose CiliumNodes belong to these shards, also those that are in a seed only."""
    shards = {part.partition("/")[2] for part in chosen}
    found = [
        document
        for shard in shards
        for document in documents(disk.read_text(f"{folder}/{disk.RENDERED}/seeds/{shard}.yaml"))
    ]
    found += [document for part in chosen for document in objects_of(folder, part)]
    return {document["metadata"]["name"] for document in found if document["kind"] == "CiliumNode"}


def documents(text: str) -> list[dict[str, Any]]:
    """Read a YAML stream of Kubernetes objects. Raises Trouble for a document that is not a mapping."""
    import yaml

    try:
        found = [
            document
            for document in yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            if document is not None
        ]
    except yaml.YAMLError as problem:
        raise Trouble(f"not YAML: {problem}") from None
    if odd := next((document for document in found if not isinstance(document, dict)), None):
        raise Trouble(f"{odd!r:.80} is not an object")
    return found
