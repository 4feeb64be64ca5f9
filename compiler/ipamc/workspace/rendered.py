"""What a cluster's `rendered/` holds, for those who hand it on: its parts, and the objects in their files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ipamc.render.parts import KINDS, parts
from ipamc.workspace import disk
from ipamc.workspace.disk import Trouble

KUSTOMIZATION = "kustomization.yaml"


def parts_of(folder: str) -> tuple[str, ...]:
    """Give the parts of a cluster's `rendered/`, in the order in which they are applied."""
    top = Path(folder, disk.RENDERED)
    return parts(path.parent.relative_to(top).as_posix() for path in top.glob(f"*/**/{KUSTOMIZATION}"))


def objects_of(folder: str, part: str) -> list[dict[str, Any]]:
    """Give the objects in the files of a part, which are what its kustomization has to build to.

    In a shard that is every file; in `cilium/` what its kustomization names, because flags may go to Helm or to another kustomization.
    """
    where = Path(folder, disk.RENDERED, part)
    files = sorted(path.name for path in where.glob("*.yaml") if path.name != KUSTOMIZATION)
    if part.partition("/")[0] not in KINDS:
        named = {
            each
            for document in documents(disk.read_text(str(where / KUSTOMIZATION)))
            for each in document.get("resources", ())
        }
        files = [name for name in files if name in named]
    return [document for name in files for document in documents(disk.read_text(str(where / name)))]


def nodes_of(folder: str, chosen: Iterable[str]) -> set[str]:
    """Give the nodes whose CiliumNodes belong to shards, also where only a seed says so."""
    shards = {part.partition("/")[2] for part in chosen}
    found = [
        each
        for shard in shards
        for each in documents(disk.read_text(f"{folder}/{disk.RENDERED}/seeds/{shard}.yaml"))
    ]
    found += [each for part in chosen for each in objects_of(folder, part)]
    return {each["metadata"]["name"] for each in found if each["kind"] == "CiliumNode"}


def documents(text: str) -> list[dict[str, Any]]:
    """Read a YAML stream of Kubernetes objects; what is no mapping is no object and raises Trouble."""
    import yaml

    try:
        found = [
            each
            for each in yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            if each is not None
        ]
    except yaml.YAMLError as problem:
        raise Trouble(f"no YAML: {problem}") from None
    if odd := next((each for each in found if not isinstance(each, dict)), None):
        raise Trouble(f"{odd!r:.80} is no object")
    return found
