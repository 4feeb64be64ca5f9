"""What the lock gives, told by the code that renders it, and whether `rendered/` has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.diagnostics import names
from ipamc.render.parts import FIRST, KINDS
from ipamc.review.live.objects import Object, identity
from ipamc.workspace import disk
from ipamc.workspace.environment import today
from ipamc.workspace.rendered import KUSTOMIZATION, documents, parts_of
from ipamc.workspace.shapes import Kustomization
from ipamc.workspace.source import Disk


class Given(Struct, frozen=True, kw_only=True):
    """What a cluster's lock gives, as it is."""

    files: Mapping[str, str]
    """What a compile writes, by path below `rendered/`."""
    waiting: Mapping[str, Sequence[Object]]
    """The CiliumNodes that a compile does not write, by part: those of planned nodes that must not be there
    before their agents make them."""


def given(folder: str) -> Given:
    """Compile a cluster with its lock as it is.

    Raises Refused where a compile refuses the inputs or the lock; Trouble, OSError.
    """
    from ipamc.pipeline import compile_cluster
    from ipamc.render.arrange import arrange_waiting
    from ipamc.render.yaml import emit

    inputs = replace(Disk().inputs(folder), today=today(), locked=True, untested=True)
    compilation = compile_cluster(inputs)
    waiting = emit(arrange_waiting(compilation.plan), inputs.templates)
    return Given(
        files=compilation.files,
        waiting={part: documents(part, text) for part, text in waiting.items()},
    )


def incomplete(folder: str, files: Mapping[str, str]) -> Iterator[str]:
    """Yield where the parts of a cluster's `rendered/` are others than these files, which its lock gives.

    Every part must be there, with the same kustomization and the same objects: a shard, an object or the name
    of a file that left the tree is missed here, whatever the header of the lock says, and so is an object that
    nobody compiled. What is in an object is not compared: `ipamc compile --locked --check` does that.
    """
    wanted = {
        path.parent.as_posix(): path.as_posix()
        for path in map(PurePosixPath, files)
        if path.name == KUSTOMIZATION and (path.parent.as_posix() == FIRST or path.parts[0] in KINDS)
    }
    there = set(parts_of(folder))
    if missing := wanted.keys() - there:
        yield f"there is no {names(missing)}"
    if more := there - wanted.keys():
        yield f"the lock gives no {names(more)}"
    for part, kustomization in sorted(wanted.items()):
        if part in there:
            yield from _differences(folder, kustomization, files)


def _differences(folder: str, kustomization: str, files: Mapping[str, str]) -> Iterator[str]:
    """Yield what a part of the disk has otherwise than it is compiled. Equal texts are not parsed."""
    wanted, there = files[kustomization], _text(folder, kustomization)
    compiled = documents(kustomization, wanted, Kustomization)
    if there != wanted and documents(kustomization, there, Kustomization) != compiled:
        yield f"{kustomization} is not as it is compiled"
        return
    part = kustomization.removesuffix(KUSTOMIZATION)
    for name in compiled[0].get("resources") or ():
        path = part + name
        wanted, there = files[path], _text(folder, path)
        if there == wanted:
            continue
        meant, found = (Counter(map(identity, documents(path, text))) for text in (wanted, there))
        if lost := meant - found:
            yield f"{path} lacks {names(lost)}"
        if strange := found - meant:
            yield f"{path} has {names(strange)}, which the lock does not give"


def _text(folder: str, path: str) -> str:
    return disk.read_text(Path(folder, disk.RENDERED, path).as_posix())
