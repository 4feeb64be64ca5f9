"""A cluster's `rendered/` on the disk, and as a compile of its lock writes it, to apply or compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ipamc.lock.file import parse
from ipamc.model.cidr import Block
from ipamc.model.cilium.operator_list import Assumed
from ipamc.model.diagnostics import names
from ipamc.read.parts import FLAGS, KUSTOMIZATION, VALUES
from ipamc.read.rendered import Object, Rendered, identity
from ipamc.read.syntax.document import Unreadable
from ipamc.workspace import disk, tree
from ipamc.workspace.environment import today
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.shapes import ConfigMap, Kustomization, Values, checked
from ipamc.workspace.source import Disk

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
        yield f"the lock gives no {names(more)}"
    for part in sorted(set(wanted.parts) & set(there.parts)):
        path = f"{part}/{KUSTOMIZATION}"
        compiled = wanted.documents(path)
        if there.texts[path] != wanted.texts[path] and there.documents(path) != compiled:
            yield f"{path} is not as it is compiled"
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
                yield f"{path} has {names(strange)}, which the lock does not give"
