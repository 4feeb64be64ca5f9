"""Whether `rendered/` has what the lock says should be there, told by the code that renders it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from ipamc.model.diagnostics import names
from ipamc.render.parts import FIRST, KINDS
from ipamc.review.live.objects import identity
from ipamc.workspace import disk
from ipamc.workspace.environment import today
from ipamc.workspace.rendered import KUSTOMIZATION, documents, parts_of
from ipamc.workspace.shapes import Kustomization
from ipamc.workspace.source import Disk


def incomplete(folder: str) -> Iterator[str]:
    """Compile a cluster with its lock as it is; yield where the parts of its `rendered/` are others.

    Every part must be there, with the same kustomization and the same objects: a shard, an object or the name
    of a file that left the tree is missed here, whatever the header of the lock says, and so is an object that
    nobody compiled. What is in an object is not compared: `ipamc compile --locked --check` does that.
    Raises Refused where a compile refuses the inputs or the lock; Trouble, OSError.
    """
    from ipamc.pipeline import compile_cluster

    files = compile_cluster(replace(Disk().inputs(folder), today=today(), locked=True, untested=True)).files
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
