"""Two rendered trees: which files differ, and which of Cilium's flags."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ipamc.read.rendered import Rendered


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
    """Two rendered trees."""

    before: Rendered
    after: Rendered
    files: Files


def compare_trees(before: Rendered, after: Mapping[str, str]) -> Trees:
    """Return what was rendered beside what is rendered now, by path."""
    now = {path: text.encode() for path, text in after.items()}
    files = Files(
        written=tuple(path for path, text in sorted(now.items()) if before.texts.get(path) != text),
        removed=tuple(sorted(before.texts.keys() - now.keys())),
    )
    return Trees(before=before, after=Rendered(now), files=files)


def compare_flags(trees: Trees) -> tuple[Flag, ...]:
    """Return the flags that differ, by name."""
    old, new = _flags(trees.before), _flags(trees.after)
    return tuple(
        Flag(name=name, old=old.get(name), new=new.get(name))
        for name in sorted({**old, **new})
        if old.get(name) != new.get(name)
    )


def _flags(tree: Rendered) -> Mapping[str, str]:
    """Return the flags that a tree sets. A damaged file sets none."""
    flags = tree.flags
    return {**flags.data, "cilium-operator --ipam": "kubernetes"} if flags.bystander else flags.data
