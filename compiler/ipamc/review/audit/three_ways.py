"""Each object that ipamc owns, three ways: in the cluster, in git, and as it was applied last.

| cluster | applied | git | |
|---|---|---|---|
| A | A | B | pending |
| B | A | A or C | edited by hand |
| - | A | A | missing |
| A | A | - | stale |
| A | - | - | foreign |
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from ipamc.model.address_sets import blocks_over, outermost
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import At, Related, count, error, names, note, warning
from ipamc.review.audit.causes import Cause, Fact, Suppressed
from ipamc.review.audit.context import SHOWN, Found, Make, Scene
from ipamc.review.live.drift import differing
from ipamc.review.live.objects import (
    CILIUM_NODE,
    NODE,
    NODE_CONFIG,
    POOL,
    Object,
    cidrs,
    parsed,
    pod_cidr_annotations,
)

Fields = dict[str, list[str]]
"""The paths of fields by the identity of the object."""


class _Sorted(Struct, dict=True):
    """The objects of each sort, by identity; of those that differ, with the paths of their fields."""

    pending: Fields = field(default_factory=dict)
    edited: Fields = field(default_factory=dict)
    unknown: Fields = field(default_factory=dict)
    """They differ from git, and it is not known what was applied."""
    missing: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


def three_ways(scene: Scene, told: Suppressed) -> Iterator[Found]:
    """Yield findings about the objects that ipamc owns."""
    found = _Sorted()
    for name, document in scene.git.objects.items():
        _of_git(scene, name, document, found)
    for name, document in scene.live.items():
        if name not in scene.git.objects and name not in scene.git.others:
            _of_nobody(scene, name, document, found)
    yield from pending(scene, found.pending)
    yield from edited(scene, found.edited, told)
    yield from not_as_in_git(scene, found.unknown, told)
    yield from missing(scene, found.missing, told)
    yield from stale(scene, found.stale, told)
    yield from foreign(scene, found.foreign)


def owned(document: Object) -> Object:
    """Return a rendered object as a dump can show it: of the annotations of a Node only those with its blocks."""
    if document["kind"] != NODE:
        return document
    return {**document, "metadata": {**document["metadata"], "annotations": pod_cidr_annotations(document)}}


def _of_git(scene: Scene, name: str, document: Object, found: _Sorted) -> None:
    there = scene.live.get(name)
    before = scene.applied.objects.get(name) if scene.applied else None
    kind = document["kind"]
    if kind == NODE and not scene.shows_nodes and CILIUM_NODE not in scene.dump.kinds:
        return  # beside a CiliumNode it decides about routes alone: IPC0950 tells which of the two is wrong
    if there is None:
        if kind == NODE:
            return  # it is never created
        waits = kind == CILIUM_NODE and scene.waits_since_import(name.partition(" ")[2])
        if before is not None or (scene.applied is None and not waits):
            found.missing.append(name)
        else:
            found.pending[name] = []
        return
    paths = differing(owned(document), there)
    if not paths:
        return
    if scene.applied is None:
        found.unknown[name] = paths
        return
    since = differing(owned(before), there) if before is not None else _written(document, there)
    if by_hand := [path for path in paths if path in since]:
        found.edited[name] = by_hand
    else:
        found.pending[name] = paths


def _written(document: Object, there: Object) -> list[str]:
    """Return the fields in which an object that was never applied has something already."""
    return differing(owned(document), there) if cidrs(there, document) else []


def _of_nobody(scene: Scene, name: str, document: Object, found: _Sorted) -> None:
    kind = document["kind"]
    if kind == NODE or name in scene.git.others:
        return
    if scene.applied is not None and name in scene.applied.objects:
        found.stale.append(name)
    elif kind in {POOL, NODE_CONFIG}:
        found.foreign.append(name)


def pending(scene: Scene, objects: Fields) -> Iterator[Found]:
    """IPC0940: what git has is applied."""
    if objects:
        yield Found(
            note(
                "IPC0940",
                _first_place(scene, objects),
                f"pending: {_objects(objects)} not applied yet: {names(objects)}",
                also=_git_places(scene, list(objects)),
                help=f"ipamc ci apply {scene.cluster.name}",
            )
        )


def edited(scene: Scene, objects: Fields, told: Suppressed) -> Iterator[Found]:
    """IPC0941: nobody but ipamc changes the fields that it owns."""
    for kind, some in _by_kind(_unexplained("IPC0941", told, objects, scene)):
        by_severity: dict[Make, list[str]] = defaultdict(list)
        for name in some:
            by_severity[_severity(scene, name, objects[name])].append(name)
        for make, alike in by_severity.items():
            paths = sorted({path for name in alike for path in objects[name]})
            yield Found(
                make(
                    "IPC0941",
                    _first_place(scene, alike),
                    f"edited by hand: {names(paths)} of {_objects(alike)}: {names(_values(scene, name, objects[name]) for name in alike)}",
                    also=_git_places(scene, alike),
                    help=_repair(scene, kind, alike[0]),
                ),
                [_other_blocks(scene, name) for name in alike],
            )


def _severity(scene: Scene, name: str, paths: Sequence[str]) -> Make:
    """Return how severe it is that somebody edited an object: of blocks of a node, as the law of ownership has them."""
    if all(path.startswith("metadata.labels") for path in paths):
        return warning
    kind, _, node = name.partition(" ")
    return (scene.verdict(node) if kind in {NODE, CILIUM_NODE} else None) or error


def not_as_in_git(scene: Scene, objects: Fields, told: Suppressed) -> Iterator[Found]:
    """IPC0942: the cluster has what git has, where it is not known what was applied."""
    for kind, some in _by_kind(_unexplained("IPC0942", told, objects, scene)):
        paths = sorted({path for name in some for path in objects[name]})
        yield Found(
            warning(
                "IPC0942",
                _first_place(scene, some),
                f"{names(paths)} of {_objects(some)} not as in git: {names(_values(scene, name, objects[name]) for name in some)}",
                also=_git_places(scene, some),
                help=_repair(scene, kind, some[0]),
            ),
            [_other_blocks(scene, name) for name in some],
        )


def _other_blocks(scene: Scene, name: str) -> Cause:
    """Return the proof that an object has the blocks that it has, and not those of git."""
    git = scene.git.objects[name]
    return Cause(name, Fact.OTHER_BLOCKS, tuple(parsed(cidrs(scene.live[name], git) | cidrs(git, git))))


def missing(scene: Scene, objects: Sequence[str], told: Suppressed) -> Iterator[Found]:
    """IPC0943: what was applied is in the cluster."""
    for kind, some in _by_kind(_unexplained("IPC0943", told, objects)):
        known = kind in scene.dump.kinds
        make = error if known else note if scene.before_cilium else warning
        if known:
            unknown = ""
        elif scene.before_cilium:
            unknown = ": the cluster runs Calico, and nothing of Cilium yet"
        else:
            unknown = f": the dump has no {kind} at all, so they may only not have been asked for"
        yield Found(
            make(
                "IPC0943",
                scene.git.at(some[0]),
                f"missing: {_objects(some)} not in the dump: {names(map(_short, some))}{unknown}",
                also=[Related(scene.dump.at, "the dump")],
                help=f"ipamc ci apply {scene.cluster.name} --repair",
            ),
            [
                Cause(name, Fact.MISSING, tuple(parsed(cidrs(git, git))))
                for name in some
                if known and (git := scene.git.objects[name])
            ],
        )


def stale(scene: Scene, objects: Sequence[str], told: Suppressed) -> Iterator[Found]:
    """IPC0944: what left git is not in the cluster any more."""
    if objects := _unexplained("IPC0944", told, objects):
        yield Found(
            warning(
                "IPC0944",
                _seen_at(scene, objects[0]),
                f"stale: {_objects(objects)} that left git: {names(objects)}",
                also=[
                    Related(scene.applied.at(name), f"{name} was applied")
                    for name in objects[:SHOWN]
                    if scene.applied
                ],
                help=f"ipamc ci apply {scene.cluster.name} --prune",
            )
        )


def foreign(scene: Scene, objects: Sequence[str]) -> Iterator[Found]:
    """IPC0945: CiliumPodIPPools and CiliumNodeConfigs of others do not get in the way."""
    ranges = outermost(
        cidr.block for pool in scene.cluster.pools for part in pool.families.values() for cidr in part.ranges
    )
    over: list[str] = []
    wins: list[str] = []
    rest: list[str] = []
    for name in objects:
        document = scene.live[name]
        blocks: list[Block] = parsed(cidrs(document, document)) if document["kind"] == POOL else []
        if any(blocks_over(ranges, block) for block in blocks):
            over.append(name)
        elif "ipam-default-ip-pool" in ((document.get("spec") or {}).get("defaults") or {}):
            wins.append(name)
        else:
            rest.append(name)
    for some, make, words in (
        (over, error, "over ranges of our pools"),
        (wins, warning, "with a default pool"),
        (rest, note, "that git does not have"),
    ):
        if some:
            yield Found(
                make(
                    "IPC0945",
                    _seen_at(scene, some[0]),
                    f"foreign: {_objects(some)} {words}: {names(some)}",
                    also=[Related(_seen_at(scene, name), name) for name in some[1:SHOWN]],
                    help="find out who made it; if nobody needs it: kubectl delete "
                    + " ".join(_typed(some[0])),
                )
            )


def _unexplained(
    code: str, told: Suppressed, objects: Iterable[str], shown: Scene | None = None
) -> list[str]:
    """Return the objects of which no earlier finding tells, in their order; by the blocks that they show, if asked for."""
    found = []
    for name in objects:
        kind, _, node = name.partition(" ")
        about = (name, f"{NODE} {node}") if kind == CILIUM_NODE else (name,)
        blocks = parsed(cidrs(shown.live[name], shown.git.objects[name])) if shown else ()
        if not any(told.explains(code, each, blocks) for each in about):
            found.append(name)
    return found


def _by_kind(objects: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name in objects:
        found[name.partition(" ")[0]].append(name)
    yield from sorted(found.items())


def _objects(objects: Sequence[str] | Fields) -> str:
    kinds = {name.partition(" ")[0] for name in objects}
    return count(len(objects), kinds.pop() if len(kinds) == 1 else "object")


def _short(name: str) -> str:
    return name.rpartition(" ")[2]


def _typed(name: str) -> list[str]:
    """Return an object as kubectl takes it."""
    kind, *namespace, short = name.split(" ")
    return [kind.lower(), short, *(["-n", *namespace] if namespace else [])]


def _values(scene: Scene, name: str, paths: Sequence[str]) -> str:
    """Return what an object has, and what git has, for a message."""
    live, git = scene.live[name], scene.git.objects[name]
    there, wanted = sorted(cidrs(live, git)), sorted(cidrs(git, git))
    if there == wanted or len(there) + len(wanted) > SHOWN:
        return f"{_short(name)} ({paths[0].rpartition('.')[2]})"
    return f"{_short(name)} ({' '.join(there) or 'nothing'} in place of {' '.join(wanted) or 'nothing'})"


def _first_place(scene: Scene, objects: Sequence[str] | Fields) -> At:
    name = next(iter(objects))
    return _seen_at(scene, name) if name in scene.live else scene.git.at(name)


def _seen_at(scene: Scene, name: str) -> At:
    kind, short = name.partition(" ")[0], _short(name)
    if kind in {NODE, CILIUM_NODE}:
        nodes = scene.dump.nodes_by_name if kind == NODE else scene.dump.cilium_nodes_by_name
        return nodes[short].at
    every = scene.dump.pools if kind == POOL else scene.dump.node_configs
    return next(item.at for item in every if item.name == short)


def _git_places(scene: Scene, objects: Sequence[str]) -> list[Related]:
    return [Related(scene.git.at(name), f"{name} in git") for name in objects[:SHOWN]]


def _repair(scene: Scene, kind: str, name: str) -> str:
    again = f"ipamc ci apply {scene.cluster.name} --repair"
    if kind == NODE and scene.cluster.patch_nodes == "podCIDRs":
        return f"podCIDRs are immutable; if git is right, drain {_short(name)}: {scene.anew(_short(name))}"
    if kind == CILIUM_NODE:
        return f"if git is right: {again}; if the operator keeps it, drain {_short(name)}: {scene.anew(_short(name))}"
    return f"if git is right: {again}; else write it into git"
