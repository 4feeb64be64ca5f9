"""A cluster's `rendered/` for what applies it, or compares it with a cluster: nothing there may be damaged."""

from __future__ import annotations

from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from ipamc.lock.file import parse
from ipamc.model.cidr import Block
from ipamc.model.cilium.operator_list import Assumed
from ipamc.read.rendered import FLAGS, KUSTOMIZATION, VALUES, Rendered
from ipamc.read.syntax.document import Unreadable
from ipamc.workspace import disk, tree
from ipamc.workspace.shapes import ConfigMap, Kustomization, Values, checked
from ipamc.workspace.trouble import Trouble

_SHAPES = {
    PurePosixPath(FLAGS).name: ConfigMap,
    PurePosixPath(VALUES).name: Values,
    KUSTOMIZATION: Kustomization,
}
"""Of files by their names; every other file has objects."""


class Manifests(Rendered, frozen=True, dict=True):
    """What is rendered at one moment, each document of its shape. Everything of it raises Trouble where it is not."""

    def documents(self, path: str) -> list[Any]:
        """Return the documents of a file, but for empty ones. Raises Trouble."""
        where = f"{self.shown}/{path}"
        try:
            found = self.parse(path)
        except KeyError:
            raise Trouble(f"there is no {where}: run ipamc compile") from None
        except UnicodeDecodeError:
            raise Trouble(f"{where} is not UTF-8 text") from None
        except Unreadable as problem:
            raise Trouble(f"{where}: {problem.diagnostics[0].message}") from None
        shape = _SHAPES.get(PurePosixPath(path).name)
        return [checked(where, document, shape) for document in found if document is not None]

    @cached_property
    def flags(self) -> Assumed:
        """The flags that the compile assumed. Raises Trouble."""
        found = super().flags
        if not found.namespace:
            raise Trouble(f"there is no ConfigMap of a namespace in {self.shown}/{FLAGS}: run ipamc compile")
        return found


def manifests(folder: str) -> Manifests:
    """Read what is rendered for a cluster. Raises Trouble, as `tree.parts_of`."""
    tree.refuse_irregular(folder)
    return Manifests(tree.read(folder, tree.paths(folder)), f"{folder}/{disk.RENDERED}")


def former_blocks(folder: str) -> dict[str, list[Block]]:
    """Return the blocks that nodes moved away from, by node: the lock keeps them in quarantine."""
    path = disk.lock_path(folder)
    lock, _ = parse(disk.read_lock(folder) or b"", path)
    if lock is None:
        raise Trouble(f"{path} cannot be read: run ipamc compile")
    found: dict[str, list[Block]] = {}
    for line in lock.lines:
        if line.is_former:
            found.setdefault(line.node, []).append(line.block)
    return found
