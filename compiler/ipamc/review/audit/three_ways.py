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
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from ipamc.model.address_sets import blocks_over, outermost
from ipamc.model.cilium.operator_list import AGENT
from ipamc.model.diagnostics import At, Related, count, error, names, note, warning
from ipamc.review.audit.causes import Cause, Fact, Suppressed
from ipamc.review.audit.context import LISTED, Context, Make, Result
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


def three_ways(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """Yield findings about the objects that ipamc owns."""
    every = _Sorted()
    for name, document in context.git.objects.items():
        _sort(context, name, document, every)
    for name, document in context.live.items():
        kind = document["kind"]
        if name in context.git.objects or name in context.git.others or kind == NODE:
            continue
        if context.applied is not None and name in context.applied.objects:
            every.stale.append(name)
        elif kind in {POOL, NODE_CONFIG}:
            every.foreign.append(name)
    yield from pending(context, every.pending)
    yield from edited(context, every.edited, suppressed)
    yield from not_as_in_git(context, every.unknown, suppressed)
    yield from missing(context, every.missing, suppressed)
    yield from stale(context, every.stale, suppressed)
    yield from foreign(context, every.foreign)


def owned(document: Object) -> Object:
    """Return a rendered object as a dump can show it: a Node with no annotations but those of its blocks."""
    if document["kind"] != NODE:
        return document
    return {**document, "metadata": {**document["metadata"], "annotations": pod_cidr_annotations(document)}}


def _sort(context: Context, name: str, document: Object, every: _Sorted) -> None:
    """Put an object of git to its sort."""
    there, kind = context.live.get(name), document["kind"]
    before = context.applied.objects.get(name) if context.applied else None
    if kind == NODE and not context.shows_nodes and CILIUM_NODE not in context.dump.kinds:
        return  # beside a CiliumNode it decides about routes alone: IPC0950 tells which of the two is wrong
    if there is None:
        if kind == NODE:
            return  # it is never created
        waits = kind == CILIUM_NODE and context.waits_since_import(name.partition(" ")[2])
        if before is not None or (context.applied is None and not waits):
            every.missing.append(name)
        else:
            every.pending[name] = []
        return
    paths = differing(owned(document), there)
    if not paths:
        return
    if context.applied is None:
        every.unknown[name] = paths
        return
    if before is None and cidrs(there, document):
        before = document  # it was never applied, and has blocks already
    since = differing(owned(before), there) if before is not None else []
    if by_hand := [path for path in paths if path in since]:
        every.edited[name] = by_hand
    else:
        every.pending[name] = paths


def pending(context: Context, objects: Fields) -> Iterator[Result]:
    """IPC0940: what git has is applied."""
    if objects:
        text = f"pending: {_number(objects)} not applied yet: {names(objects)}"
        also = _git_places(context, list(objects))
        at = _first_place(context, objects)
        yield Result(note("IPC0940", at, text, also=also, help=context.apply))


def edited(context: Context, objects: Fields, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0941: nobody but ipamc changes the fields that it owns."""
    for kind, some in _by_kind(_unexplained("IPC0941", suppressed, objects, context)):
        by_severity: dict[Make, list[str]] = defaultdict(list)
        for name in some:
            by_severity[_severity(context, name, objects[name])].append(name)
        for make, alike in by_severity.items():
            text = f"edited by hand: {_values(context, alike, objects)}"
            also, way_out = _git_places(context, alike), _repair(context, kind, alike[0])
            finding = make("IPC0941", _first_place(context, alike), text, also=also, help=way_out)
            yield Result(finding, [_other_blocks(context, name) for name in alike])


def _severity(context: Context, name: str, paths: Sequence[str]) -> Make:
    """Return the severity of an edited object: of blocks of a node, as the law of ownership has them."""
    if all(path.startswith("metadata.labels") for path in paths):
        return warning
    kind, _, node = name.partition(" ")
    return (context.verdict(node) if kind in {NODE, CILIUM_NODE} else None) or error


def not_as_in_git(context: Context, objects: Fields, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0942: the cluster has what git has, where it is not known what was applied."""
    for kind, some in _by_kind(_unexplained("IPC0942", suppressed, objects, context)):
        text = _values(context, some, objects, " not as in git")
        also, way_out = _git_places(context, some), _repair(context, kind, some[0])
        finding = warning("IPC0942", _first_place(context, some), text, also=also, help=way_out)
        yield Result(finding, [_other_blocks(context, name) for name in some])


def _other_blocks(context: Context, name: str) -> Cause:
    """Return the proof that an object has the blocks that it has, and not those of git."""
    git = context.git.objects[name]
    return Cause(name, Fact.OTHER_BLOCKS, tuple(parsed(cidrs(context.live[name], git) | cidrs(git, git))))


def missing(context: Context, objects: Sequence[str], suppressed: Suppressed) -> Iterator[Result]:
    """IPC0943: what was applied is in the cluster."""
    cilium = context.config_map or context.dump.cilium_nodes or AGENT in context.pods_of
    for kind, some in _by_kind(_unexplained("IPC0943", suppressed, objects)):
        known = kind in context.dump.kinds
        if known:
            make, unknown = error, ""
        elif context.dump.calico_blocks and not cilium:
            make, unknown = note, ": the cluster runs Calico, and nothing of Cilium yet"
        else:
            unknown = f": the dump has no {kind} at all, so they may only not have been asked for"
            make = warning
        text = f"missing: {_number(some)} not in the dump: {names(map(_short, some))}{unknown}"
        also, at = [Related(context.dump.at, "the dump")], context.git.at(some[0])
        documents = {name: context.git.objects[name] for name in some if known}
        causes = [
            Cause(name, Fact.MISSING, tuple(parsed(cidrs(git, git)))) for name, git in documents.items()
        ]
        yield Result(make("IPC0943", at, text, also=also, help=f"{context.apply} --repair"), causes)


def stale(context: Context, objects: Sequence[str], suppressed: Suppressed) -> Iterator[Result]:
    """IPC0944: what left git is not in the cluster any more."""
    if objects := _unexplained("IPC0944", suppressed, objects):
        text = f"stale: {_number(objects)} that left git: {names(objects)}"
        applied = context.applied
        also = [Related(applied.at(name), f"{name} was applied") for name in objects[:LISTED] if applied]
        at = _place_in_dump(context, objects[0])
        yield Result(warning("IPC0944", at, text, also=also, help=f"{context.apply} --prune"))


def foreign(context: Context, objects: Sequence[str]) -> Iterator[Result]:
    """IPC0945: CiliumPodIPPools and CiliumNodeConfigs of others do not conflict with those in git."""
    ranges = outermost(cidr.block for pool in context.cluster.pools for cidr in pool.ranges)
    over: list[str] = []
    wins: list[str] = []
    rest: list[str] = []
    for name in objects:
        document = context.live[name]
        blocks = parsed(cidrs(document, document)) if document["kind"] == POOL else []
        if any(blocks_over(ranges, block) for block in blocks):
            over.append(name)
        elif "ipam-default-ip-pool" in ((document.get("spec") or {}).get("defaults") or {}):
            wins.append(name)
        else:
            rest.append(name)
    for some, make, what in (
        (over, error, "over ranges of our pools"),
        (wins, warning, "with a default pool"),
        (rest, note, "that git does not have"),
    ):
        if some:
            text = f"foreign: {_number(some)} {what}: {names(some)}"
            also = [Related(_place_in_dump(context, name), name) for name in some[1:LISTED]]
            kind, *namespace, short = some[0].split(" ")
            typed = " ".join([kind.lower(), short, *(["-n", *namespace] if namespace else [])])
            way_out = f"find out who made it; if nobody needs it: kubectl delete {typed}"
            at = _place_in_dump(context, some[0])
            yield Result(make("IPC0945", at, text, also=also, help=way_out))


def _unexplained(
    code: str, suppressed: Suppressed, objects: Iterable[str], shown: Context | None = None
) -> list[str]:
    """Return the objects that no earlier finding explains, in their order; by the blocks that `shown` has."""
    left = []
    for name in objects:
        kind, _, node = name.partition(" ")
        about = (name, f"{NODE} {node}") if kind == CILIUM_NODE else (name,)
        blocks = parsed(cidrs(shown.live[name], shown.git.objects[name])) if shown else ()
        if not any(suppressed.explains(code, each, blocks) for each in about):
            left.append(name)
    return left


def _by_kind(objects: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name in objects:
        groups[name.partition(" ")[0]].append(name)
    yield from sorted(groups.items())


def _number(objects: Sequence[str] | Fields) -> str:
    """Return how many objects of which kind there are."""
    kinds = {name.partition(" ")[0] for name in objects}
    return count(len(objects), kinds.pop() if len(kinds) == 1 else "object")


def _short(name: str) -> str:
    return name.rpartition(" ")[2]


def _values(
    context: Context, some: Sequence[str], fields: Mapping[str, Sequence[str]], words: str = ""
) -> str:
    """Return which fields of objects differ, what the objects have, and what git has, for a message."""
    paths = names({path for name in some for path in fields[name]})
    values = []
    for name in some:
        live, git = context.live[name], context.git.objects[name]
        there, wanted = sorted(cidrs(live, git)), sorted(cidrs(git, git))
        if there == wanted or len(there) + len(wanted) > LISTED:
            value = fields[name][0].rpartition(".")[2]
        else:
            value = f"{' '.join(there) or 'nothing'} in place of {' '.join(wanted) or 'nothing'}"
        values.append(f"{_short(name)} ({value})")
    return f"{paths} of {_number(some)}{words}: {names(values)}"


def _first_place(context: Context, objects: Sequence[str] | Fields) -> At:
    name = next(iter(objects))
    return _place_in_dump(context, name) if name in context.live else context.git.at(name)


def _place_in_dump(context: Context, name: str) -> At:
    kind, short = name.partition(" ")[0], _short(name)
    if kind in {NODE, CILIUM_NODE}:
        nodes = context.dump.nodes_by_name if kind == NODE else context.dump.cilium_nodes_by_name
        return nodes[short].at
    every = context.dump.pools if kind == POOL else context.dump.node_configs
    return next(item.at for item in every if item.name == short)


def _git_places(context: Context, objects: Sequence[str]) -> list[Related]:
    return [Related(context.git.at(name), f"{name} in git") for name in objects[:LISTED]]


def _repair(context: Context, kind: str, name: str) -> str:
    node = _short(name)
    if kind == NODE and context.cluster.patch_nodes == "podCIDRs":
        return f"podCIDRs are immutable; if git is right, drain {node}: {context.rejoin(node)}"
    again = f"if git is right: {context.apply} --repair"
    if kind == CILIUM_NODE:
        return f"{again}; if the operator keeps it, drain {node}: {context.rejoin(node)}"
    return f"{again}; else write it into git"
