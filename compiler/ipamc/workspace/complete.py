"""What the lock gives, told by the code that renders it, and whether `rendered/` has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.diagnostics import names
from ipamc.read.rendered import KUSTOMIZATION, Object, Rendered, identity
from ipamc.workspace.environment import today
from ipamc.workspace.source import Disk


class Given(Struct, frozen=True, kw_only=True):
    """What a cluster's lock gives, as it is."""

    rendered: Rendered
    """What a compile writes."""
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
    waiting = _rendered(emit(arrange_waiting(compilation.plan), inputs.templates))
    return Given(
        rendered=_rendered(compilation.files),
        waiting={part: waiting.documents(part) for part in waiting.texts},
    )


def _rendered(files: Mapping[str, str]) -> Rendered:
    return Rendered({path: text.encode() for path, text in files.items()})


def incomplete(there: Rendered, wanted: Rendered) -> Iterator[str]:
    """Yield where the parts of a cluster's `rendered/` (`there`) are others than its lock gives (`wanted`).

    Every part must be there, with the same kustomization and the same objects: a shard, an object or the name
    of a file that left the tree is missed here, whatever the header of the lock says, and so is an object that
    nobody compiled. What is in an object is not compared: `ipamc compile --locked --check` does that.
    """
    if missing := set(wanted.parts) - set(there.parts):
        yield f"there is no {names(missing)}"
    if more := set(there.parts) - set(wanted.parts):
        yield f"the lock gives no {names(more)}"
    for part in sorted(wanted.parts):
        if part in there.parts:
            yield from _differences(part, there, wanted)


def _differences(part: str, there: Rendered, wanted: Rendered) -> Iterator[str]:
    """Yield what a part has otherwise than it is compiled. Equal texts are not parsed."""
    path = f"{part}/{KUSTOMIZATION}"
    compiled = wanted.documents(path)
    if there.texts[path] != wanted.texts[path] and there.documents(path) != compiled:
        yield f"{path} is not as it is compiled"
        return
    for name in compiled[0].get("resources") or ():
        path = f"{part}/{name}"
        if there.texts.get(path) == wanted.texts[path]:
            continue
        meant, found = (
            Counter(map(identity, side.documents(path) if path in side.texts else ()))
            for side in (wanted, there)
        )
        if lost := meant - found:
            yield f"{path} lacks {names(lost)}"
        if strange := found - meant:
            yield f"{path} has {names(strange)}, which the lock does not give"
