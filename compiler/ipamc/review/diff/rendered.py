"""Two rendered trees: which files differ, and which of Cilium's flags."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from ipamc.check.published import FLAGS
from ipamc.model.cidr import Block, readable_blocks
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.yaml import yaml_documents
from ipamc.render.parts import KINDS
from ipamc.render.targets.component import OPERATOR_ARGUMENT

OPERATOR = "cilium/component/kustomization.yaml"
_CIDR = re.compile(rb"[0-9a-fA-F.:]+/[0-9]{1,3}")


class Flag(Struct, frozen=True, kw_only=True):
    """A key of ConfigMap cilium-config, or the operator's argument. None: it is not set."""

    name: str
    old: str | None
    new: str | None


class Files(Struct, frozen=True, kw_only=True):
    """Paths below `rendered/`, sorted: files that are new or differ, and files that are removed."""

    written: tuple[str, ...]
    removed: tuple[str, ...]


class Trees(Struct, frozen=True, kw_only=True):
    """Two rendered trees, by path."""

    before: Mapping[str, bytes]
    after: Mapping[str, bytes]
    """Only the files that differ, the kustomization of `cilium/`, and the ConfigMap that it may list."""
    files: Files


def compare_files(before: Mapping[str, bytes], after: Mapping[str, str]) -> Files:
    """Return the files that differ."""
    return Files(
        written=tuple(path for path, text in sorted(after.items()) if before.get(path) != text.encode()),
        removed=tuple(sorted(before.keys() - after.keys())),
    )


def compare_flags(before: Mapping[str, bytes], after: Mapping[str, str]) -> tuple[Flag, ...]:
    """Return the flags that differ, by name."""
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
    """Return the flags that one tree sets. A damaged file sets none: it is about to be written again."""
    try:
        documents = [document.value for document in yaml_documents(FLAGS, files.get(FLAGS, b"").decode())]
    except (Unreadable, UnicodeDecodeError):
        documents = []
    data: dict[str, object] = next(
        (
            found["data"]
            for found in documents
            if isinstance(found, dict) and isinstance(found.get("data"), dict)
        ),
        {},
    )
    flags = {str(key): str(value) for key, value in data.items()}
    return (
        {**flags, "cilium-operator --ipam": "kubernetes"}
        if OPERATOR_ARGUMENT.encode() in files.get(OPERATOR, b"")
        else flags
    )


def given_blocks(tree: Mapping[str, bytes]) -> frozenset[Block]:
    """Return the blocks that a rendered tree gives to nodes: all CIDRs in its shards. O(bytes)."""
    shards = (text for path, text in tree.items() if path.partition("/")[0] in KINDS)
    return frozenset(readable_blocks(found.decode() for text in shards for found in _CIDR.findall(text)))
