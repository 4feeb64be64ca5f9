"""Each object that ipamc owns, three ways: in the cluster, in git, and as it was applied last.

| cluster | applied | git | |
|---|---|---|---|
| A | A | B | pending |
| B | A | A or C | edited by hand |
| - | A | A | missing |
| A | A | - | stale |
| A | - | - | foreign |

What was never applied is pending, never missing. Where the last apply is not known, `_once_there` decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from ipamc.model.address_sets import blocks_over, outermost, without
from ipamc.model.admission import CLUSTER, POLICIES, label_of
from ipamc.model.cilium.operator_list import AGENT
from ipamc.model.diagnostics import At, Related, error, names, note, several, warning
from ipamc.model.dump import SeenNodeConfig, SeenObject, SeenPool
from ipamc.model.limits import MOST_PLACES, NAMES_SHOWN
from ipamc.model.node import CiliumNode, Node
from ipamc.read.dump.kinds import RenderedValue, read_object
from ipamc.read.syntax.document import member
from ipamc.review.audit.blocks import adopt
from ipamc.review.audit.context import Cause, Context, Fact, Make, Result, Suppressed
from ipamc.review.live.apply import unequal
from ipamc.review.live.objects import (
    CILIUM_NODE,
    NODE,
    NODE_CONFIG,
    POOL,
    Object,
    blocks_of,
    pod_cidr_annotations,
    rows_of,
    texts_of,
)

Fields = dict[str, list[str]]
"""The paths of fields by the object's identity; () stands for the whole object."""
Rule = Callable[[Context, Fields, Suppressed], Iterator[Result]]


def three_ways(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """Yield findings about the objects that ipamc owns. At most one rule applies to each object."""
    rules = (pending, edited, not_as_in_git, missing, stale, foreign)
    objects: dict[Rule | None, Fields] = defaultdict(dict)
    once_there = _once_there(context)
    for name, document in context.git.objects.items():
        rule, paths = _rule_for(context, name, document, once_there)
        objects[rule][name] = paths
    for name, there in context.live.items():
        kind = name.partition(" ")[0]
        if name in context.git.objects or name in context.git.others or kind == NODE:
            continue
        if context.applied is not None and name in context.applied.objects:
            objects[stale][name] = []
        elif kind in {POOL, NODE_CONFIG}:
            objects[foreign][name] = []
        elif isinstance(there, SeenObject) and (label := member(there.value, "metadata", "labels", CLUSTER)):
            objects[stale if label == label_of(context.cluster.name) else foreign][name] = []
    for rule in rules:
        yield from rule(context, objects[rule], suppressed)


def _rule_for(
    context: Context, name: str, document: Object, once_there: Collection[str]
) -> tuple[Rule | None, list[str]]:
    """Return the rule that applies to an object of git, or None, and the paths of fields that differ."""
    there, kind = context.live.get(name), document["kind"]
    before = context.applied.objects.get(name) if context.applied else None
    if kind == NODE and not context.shows_nodes and CILIUM_NODE not in context.dump.kinds:
        return None, []  # beside a CiliumNode it decides only about routes: IPC0950 says which is wrong
    if there is None:
        if kind == NODE:
            return None, []  # an apply never creates a Node
        if name in once_there:
            return missing, []
        asked = context.applied or kind == CILIUM_NODE or _is_listed(context, _group(name))
        return pending if asked else None, []
    paths = _differing(document, there)
    if not paths or context.applied is None:
        return not_as_in_git if paths else None, paths
    if before is None and texts_of(there, read_object(document)):
        before = document  # it was never applied, and has blocks already
    since = _differing(before, there) if before is not None else []
    by_hand = [path for path in paths if path in since]
    return (edited, by_hand) if by_hand else (pending, paths)


def _once_there(context: Context) -> Collection[str]:
    """Return the objects of git that were in the cluster: those of the last apply, or what something proves.
    That is for a CiliumNode its node, if it runs or showed a block; for a pool a block of it that a node has;
    for a kind that only an apply creates another object of git in the cluster. While no agent runs yet,
    nothing was there: the input has the blocks that CiliumNodes will show.
    """
    if context.applied:
        return context.applied.objects
    dump, git = context.dump, context.git.objects
    if dump.calico_blocks and not (dump.cilium_nodes or AGENT in context.pods_of):
        return ()
    seen = (*dump.cilium_nodes, *context.cluster.cilium_nodes)
    proofs = {f"{POOL} {pool}" for each in seen for _, pool in each.allocated}
    proofs |= {_group(name) for name in context.live.keys() & git} - {POOL, CILIUM_NODE}
    nodes = (name for name in git if _group(name) == CILIUM_NODE)
    proofs |= {name for name in nodes if not context.waits_since_import(name.partition(" ")[2])}
    return {name for name in git if proofs & {name, _group(name)}}


def _differing(document: Object, there: RenderedValue) -> list[str]:
    """Return the paths of fields that ipamc owns and whose live value differs from the rendered one.
    Of Nodes and CiliumNodes these are the blocks that are rendered.
    """
    match there, read_object(document):
        case CiliumNode(), CiliumNode() as git:
            same = {
                "spec.ipam.podCIDRs": not git.blocks or git.blocks == there.blocks,
                "spec.ipam.pool": not without(git.addresses, there.addresses),
            }
            if all(same.values()) and any(not pool for _, pool in there.unreadable):
                same["spec.ipam.pool" if git.addresses else "spec.ipam.podCIDRs"] = False
        case Node(), Node() as git:
            same = {
                f"metadata.annotations.{key}": there.annotations.get(key) == text
                for key, text in pod_cidr_annotations(git).items()
            }
            if git.pod_cidrs:
                same["spec.podCIDR"] = git.pod_cidrs[:1] == there.pod_cidrs[:1]
                same["spec.podCIDRs"] = git.pod_cidrs == there.pod_cidrs
        case SeenPool() | SeenNodeConfig() | SeenObject(), _:
            return unequal(document, there.value)
    return [path for path, is_same in same.items() if not is_same]


def pending(context: Context, objects: Fields, _: Suppressed) -> Iterator[Result]:
    """IPC0940: every change in git is applied."""
    if objects:
        text = f"pending: {several(objects, _kind_of(objects), 'not applied yet')}"
        also, at = _git_places(context, list(objects)), _first_place(context, objects)
        yield Result(note("IPC0940", at, text, also=also, help=context.apply))


def edited(context: Context, objects: Fields, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0941: only ipamc changes the fields that it owns."""
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
    """Return the severity of an edited object; for blocks of a node, by who owns the blocks."""
    if all(path.startswith("metadata.labels") for path in paths):
        return warning
    kind, _, node = name.partition(" ")
    return (context.verdict(node) if kind in {NODE, CILIUM_NODE} else None) or error


def not_as_in_git(context: Context, objects: Fields, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0942: the cluster matches git if the last apply is unknown."""
    for kind, some in _by_kind(_unexplained("IPC0942", suppressed, objects, context)):
        text = _values(context, some, objects, "different from git")
        also, way_out = _git_places(context, some), _repair(context, kind, some[0])
        finding = warning("IPC0942", _first_place(context, some), text, also=also, help=way_out)
        yield Result(finding, [_other_blocks(context, name) for name in some])


def _other_blocks(context: Context, name: str) -> Cause:
    """Return the fact that an object has its present blocks instead of those in git."""
    git = read_object(context.git.objects[name])
    return Cause(name, Fact.OTHER_BLOCKS, (*blocks_of(context.live[name], git), *blocks_of(git)))


def missing(context: Context, objects: Fields, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0943: every applied object is in the cluster."""
    for kind, some in _by_kind(_unexplained("IPC0943", suppressed, objects)):
        make, unknown = error, ""
        if not (known := _is_listed(context, kind)):
            unknown = f"; the dump has no {kind} at all, so the kind may not have been requested"
            make = warning
        text = f"missing: {several([*map(_short_name, some)], _kind_of(some), 'not in the dump')}{unknown}"
        also, at = [Related(context.dump.at, "the dump")], context.git.at(some[0])
        git = {name: read_object(context.git.objects[name]) for name in some if known}
        causes = [Cause(name, Fact.MISSING, tuple(blocks_of(each))) for name, each in git.items()]
        yield Result(make("IPC0943", at, text, also=also, help=f"{context.apply} --repair"), causes)


def stale(context: Context, objects: Fields, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0944: objects that were removed from git are removed from the cluster."""
    if some := _unexplained("IPC0944", suppressed, objects):
        text = f"stale: {several(some, _kind_of(some), 'no longer in git')}"
        applied, at = context.applied, context.live[some[0]].at
        also = [
            Related(applied.at(name), f"{name} was applied")
            for name in some[:MOST_PLACES]
            if applied and name in applied.objects
        ]
        yield Result(warning("IPC0944", at, text, also=also, help=f"{context.apply} --prune"))


def foreign(context: Context, objects: Fields, _: Suppressed) -> Iterator[Result]:
    """IPC0945: foreign pools, settings and admission policies do not conflict with those in git."""
    ranges = outermost(cidr.block for pool in context.cluster.pools for cidr in pool.ranges)
    groups: dict[tuple[Make, str], list[str]] = {}
    for name in objects:
        there = context.live[name]
        wins = isinstance(there, SeenNodeConfig) and "ipam-default-ip-pool" in there.defaults
        over = any(blocks_over(ranges, block) for block in blocks_of(there))
        why: tuple[Make, str] = (note, "not in git")
        if isinstance(there, SeenObject):
            why = (error, "of another cluster")
        elif over:
            why = (error, "with addresses of pools in git")
        elif wins:
            why = (warning, "with a default pool")
        groups.setdefault(why, []).append(name)
    for (make, what), some in groups.items():
        text = f"foreign: {several(some, _kind_of(some), what)}"
        also = [Related(context.live[name].at, name) for name in some[1:MOST_PLACES]]
        kind, *namespace, short = some[0].split(" ")
        typed = " ".join([kind.lower(), short, *(["-n", *namespace] if namespace else [])])
        way_out = f"find out who made it; if it is not needed: kubectl delete {typed}"
        yield Result(make("IPC0945", context.live[some[0]].at, text, also=also, help=way_out))


def _unexplained(code: str, suppressed: Suppressed, objects: Fields, at: Context | None = None) -> list[str]:
    """Return the objects, in their order, whose blocks no earlier finding explains."""
    left = []
    for name in objects:
        kind, _, node = name.partition(" ")
        about = (name, f"{NODE} {node}") if kind == CILIUM_NODE else (name,)
        blocks = blocks_of(at.live[name], read_object(at.git.objects[name])) if at else ()
        if not any(suppressed.explains(code, each, blocks) for each in about):
            left.append(name)
    return left


def _by_kind(objects: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name in objects:
        groups[_group(name)].append(name)
    yield from sorted(groups.items())


def _group(name: str) -> str:
    kind = name.partition(" ")[0]
    return _POLICY if kind in POLICIES else kind


def _is_listed(context: Context, group: str) -> bool:
    """Return whether the dump has a kind: else nobody may have asked for it, which IPC0904 says."""
    return context.has_policies if group == _POLICY else group in context.dump.kinds


_POLICY = "admission policy"
"""The kind of policies and bindings in findings: a dump has all of them or none."""


def _kind_of(objects: Sequence[str] | Fields) -> str:
    """Return the kind if all objects have the same one, else "object"."""
    kinds = {name.partition(" ")[0] for name in objects}
    return kinds.pop() if len(kinds) == 1 else "object"


def _short_name(name: str) -> str:
    """Return the name of an object in findings: a policy and its binding share one."""
    return name if name.partition(" ")[0] in POLICIES else name.rpartition(" ")[2]


def _values(context: Context, some: Sequence[str], fields: Fields, words: str = "") -> str:
    """Return the text of a message that lists differing fields with the values in the cluster and in git."""
    paths = names({path for name in some for path in fields[name]})
    values = []
    for name in some:
        live, document = context.live[name], context.git.objects[name]
        git = read_object(document)
        there, wanted = texts_of(live, git), texts_of(git, git)
        if isinstance(live, SeenObject) and (rows := _rows(rows_of(live.value), rows_of(document))):
            value = names(rows, limit=NAMES_SHOWN)
        elif there == wanted or len(there) + len(wanted) > MOST_PLACES:
            value = fields[name][0].rpartition(".")[2]
        else:
            value = f"{' '.join(there) or 'nothing'} instead of {' '.join(wanted) or 'nothing'}"
        values.append(f"{_short_name(name)} ({value})")
    return f"{paths} of {several(values, _kind_of(some), words)}"


def _rows(live: Mapping[str, str], git: Mapping[str, str]) -> list[str]:
    """Return the nodes whose blocks in a policy differ from git."""
    return [
        f"{node} {live.get(node, 'nothing')} instead of {git.get(node, 'nothing')}"
        for node in live.keys() | git.keys()
        if live.get(node) != git.get(node)
    ]


def _first_place(context: Context, objects: Sequence[str] | Fields) -> At:
    name = next(iter(objects))
    return context.live[name].at if name in context.live else context.git.at(name)


def _git_places(context: Context, objects: Sequence[str]) -> list[Related]:
    return [Related(context.git.at(name), f"{name} in git") for name in objects[:MOST_PLACES]]


def _repair(context: Context, kind: str, name: str) -> str:
    node = _short_name(name)
    if kind == _POLICY:
        (typed, called) = name.split(" ")
        first = f"if the apply is refused, run first: kubectl delete {typed.lower()} {called}"
        return f"if git is right: {context.apply} --repair\n{first}"
    if kind == NODE and context.cluster.patch_nodes == "podCIDRs":
        git = f"if git is right, drain {node} (podCIDRs are immutable): {context.rejoin(node)}"
        return f"{adopt(context, node)}{git}"
    again = f"if git is right: {context.apply} --repair"
    if kind == CILIUM_NODE:
        git = f"{again}\nif the operator then keeps its block, drain {node}: {context.rejoin(node)}"
        return f"{adopt(context, node)}{git}"
    return f"{again}; otherwise write it into git"
