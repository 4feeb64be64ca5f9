"""Two rendered trees: which files differ, and which flags of Cilium."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ipamc.check.published import FLAGS
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.yaml import yaml_documents
from ipamc.render.targets.component import OPERATOR_ARGUMENT

OPERATOR = "cilium/component/kustomization.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A key of ConfigMap cilium-config, or the operator's own argument. None: it is not set there."""

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Paths below `rendered/`, sorted."""

    written: tuple[str, ...]
    removed: tuple[str, ...]


def compare_files(before: Mapping[str, bytes], after: Mapping[str, str]) -> Files:
    """Tell what differs."""
    return Files(
        written=tuple(path for path, text in sorted(after.items()) if before.get(path) != text.encode()),
        removed=tuple(sorted(before.keys() - after.keys())),
    )


def compare_flags(before: Mapping[str, bytes], after: Mapping[str, str]) -> tuple[Flag, ...]:
    """Tell which flags differ, by name."""
    old, new = (
        _flags(before),
        _flags({path: after[path].encode() for path in (FLAGS, OPERATOR) if path in after}),
    )
    return tuple(
        Flag(name=name, old=old.get(name), new=new.get(name))
        for name in sorted({**old, **new})
        if old.get(name) != new.get(name)
    )


def _flags(files: Mapping[str, bytes]) -> dict[str, str]:
    """Read what one side sets. A file that was damaged sets nothing: it is about to be written anew."""
    try:
        documents = [each.value for each in yaml_documents(FLAGS, files.get(FLAGS, b"").decode())]
    except (Unreadable, UnicodeDecodeError):
        documents = []
    data: dict[str, object] = next(
        (each["data"] for each in documents if isinstance(each, dict) and isinstance(each.get("data"), dict)),
        {},
    )
    flags = {str(key): str(value) for key, value in data.items()}
    return (
        {**flags, "cilium-operator --ipam": "kubernetes"}
        if OPERATOR_ARGUMENT.encode() in files.get(OPERATOR, b"")
        else flags
    )
