"""One cluster's apply, step by step: build, compare with the cluster, send, judge, name what left the tree.

Every rendered object is applied, or the job fails; no block is taken away by force.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from ipamc.cli.ci.outcome import Nodes, name_left_over, operator_is_content, refusal, stays, written
from ipamc.cli.terminal import say
from ipamc.model.cidr import Block
from ipamc.model.cilium.flags import odd_values
from ipamc.model.cilium.operator_list import Assumed
from ipamc.model.diagnostics import count, names
from ipamc.model.evidence import every_block
from ipamc.model.limits import ERROR_WAITS, LINES_SHOWN
from ipamc.model.progress import phase
from ipamc.read.parts import ADMISSION, BEFORE_SHARDS, FIRST, KUSTOMIZATION
from ipamc.read.parts import parts as ordered
from ipamc.read.rendered import identity
from ipamc.review.live.apply import (
    Drift,
    Live,
    Withheld,
    drift,
    grows,
    held_by_others,
    moves,
    shared_pools_in_use,
    used_by_pods,
)
from ipamc.review.live.cilium import FlagDifference, Running, differences, running
from ipamc.review.live.objects import (
    CILIUM_NODE,
    NODE,
    Object,
    cilium_nodes,
    commit_of,
    is_late,
    name_of,
    naming,
    over,
    probes,
)
from ipamc.workspace import disk
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.kubectl import CRDS, LISTED, CiliumNodes, Kube, if_allowed, version_of
from ipamc.workspace.rendered import (
    Manifests,
    context_of,
    former_blocks,
    manifests,
    recompiled,
    rendered_differences,
)
from ipamc.workspace.revision import commit_named

Parts = Mapping[str, Sequence[Object]]  # objects by the part of the tree that has them
Send = Callable[[Sequence[Object]], set[str]]  # applies objects, and returns refused ones by identity


class Options(Struct, frozen=True, kw_only=True):
    """The options of `ipamc apply`."""

    wait: float
    timeout: int
    repair: bool
    prune: bool
    before_flags: bool
    context: str = ""  # of the kubeconfig; "": as the cluster says


class Seen(Struct, frozen=True, kw_only=True):
    """The state of the cluster before the apply."""

    live: Live  # its CiliumNodes, and its objects of the kinds that are rendered
    flags: Running
    nodes: Nodes  # reads the Nodes when it is first called
    version: str  # the version of its CiliumNodes, from which they can be watched; "" where they are not


def apply_cluster(name: str, given: Sequence[str], options: Options) -> bool:
    """Apply a cluster, or `cilium/` and the given parts. Print problems; return whether there are none."""
    phase(f"comparing {name} with the cluster")
    kube = Kube(name=name, context=options.context or context_of(f"{disk.CLUSTERS}/{name}"))
    there, waiting, built = _tree(kube, name, given)
    flags = there.flags
    kinds = {document["kind"] for objects in built.values() for document in objects}
    seen = _seen(kube, flags.namespace, kinds, options)
    parts = _parts(name, built, waiting, seen.live, whole=not given)
    every = [document for objects in parts.values() for document in objects]
    differ = _differ(name, flags, seen)
    if any(item.level == "refused" for item in differ) and not options.before_flags:
        say(f"error: {name}: nothing was applied; to apply before the flags match: --before-flags")
        return False
    withheld = _withheld(kube, name, every, seen, former_blocks(f"{disk.CLUSTERS}/{name}"))
    # Only a repair asks whether Nodes exist.
    nodes = seen.nodes() if options.repair else None
    drifts = list(drift(every, seen.live, None if nodes is None else set(map(name_of, nodes.values()))))
    drifted = {identity(item.document) for item in drifts}
    restart = any(item.level == "restart" for item in differ) and not options.before_flags
    refused: set[str] = set()
    late = functools.partial(is_late, policies=parts.get(ADMISSION, ()))
    send = functools.partial(_send, kube, name, late, options.timeout)
    for part, objects in parts.items():
        phase(f"applying {name}/{part}")
        if options.repair:
            refused |= _repair(send, name, part, objects, drifts, withheld)
        else:
            refused |= _apply(send, name, part, objects, withheld)
        # Shards need the policies, the flags and the pools.
        stops = part in BEFORE_SHARDS and refused and not options.repair
        if stops or (part == FIRST and restart):
            return False
        wrote = part == ADMISSION and (not options.repair or not drifted.isdisjoint(map(identity, objects)))
        if wrote and not refused and not _effective(kube, name, objects, options.timeout):
            return False
    if refused:
        say(f"error: {name}: {count(len(refused), 'object')} refused: {names(refused)}")
    elif not every:
        say(f"{name}: nothing to apply: ipamc renders no object for this lock")
    elif options.repair and not drifts:
        say(f"{name}: nothing to repair: {count(len(every), 'object')} as rendered")
    phase(f"watching {name}")
    changed = [item.document for item in drifts if identity(item.document) not in {*withheld, *refused}]
    ciliumnodes = {name_of(document) for document in every if document["kind"] == CILIUM_NODE}
    watched = ciliumnodes | there.nodes_of(given) if given else None
    after = CiliumNodes(kube, seen.live, seen.version)
    judged = written(every, changed, seen.live, flags)
    well = operator_is_content(after, name, watched, judged, options.wait) and stays(after, name, changed)
    if not given:
        phase(f"looking for what left the tree of {name}")
        wanted = {*map(identity, every), *there.others}
        read = functools.partial(if_allowed, kube.nodes)
        well &= name_left_over(kube, after, wanted, seen.live, read, prune=options.prune)
    return well and not withheld and not refused


def _tree(kube: Kube, name: str, given: Sequence[str]) -> tuple[Manifests, Parts, Parts]:
    """Return the manifests of a cluster, the CiliumNodes that a compile does not write, and the built objects
    of each part to apply. Policies name the commit. Raises EnvironmentFailure unless all files are as
    compiled.
    """
    folder = f"{disk.CLUSTERS}/{name}"
    there = manifests(folder)
    if FIRST not in there.parts:
        raise EnvironmentFailure(f"{folder} has no rendered files: run ipamc compile {name}")
    if missing := sorted(set(given) - set(there.parts)):
        raise EnvironmentFailure(f"{there.shown} has no {', '.join(missing)}")
    compiled = recompiled(folder)
    # Before kustomize builds: a kustomization that was not compiled may run and fetch anything.
    if found := list(rendered_differences(there, compiled.rendered)):
        for problem in found[:LINES_SHOWN]:
            say(f"error: {name}: {there.shown}: {problem}")
        raise EnvironmentFailure(
            f"{there.shown} does not match {disk.LOCK}: nothing was applied; "
            f"run ipamc compile {name}, and check what was lost"
        )
    commit = commit_named(".", "HEAD") if ADMISSION in there.parts else ""
    some = [part for part in there.parts if part in {*BEFORE_SHARDS, *given} or not given]
    return there, compiled.waiting, {part: naming(_built(kube, there, part), commit) for part in some}


def _built(kube: Kube, there: Manifests, part: str) -> list[Object]:
    """Build a part. Raises EnvironmentFailure unless it builds to exactly the objects of its files."""
    text = kube.build(f"{there.shown}/{part}")
    out = Manifests({f"{part}, built": text.encode()}, there.shown).documents(f"{part}, built")
    into = there.objects_of(part)
    came, meant = set(map(identity, out)), set(map(identity, into))
    if len(out) != len(into) or came != meant:
        lost = meant - came
        raise EnvironmentFailure(
            f"{there.shown}/{part}: {count(len(into), 'object')} in its files, {len(out)} built"
            f"{f'; lost: {names(lost)}' if lost else ''}; "
            "nothing was applied: undo edits in rendered/ with ipamc compile"
        )
    return out


def _parts(name: str, built: Parts, waiting: Parts, live: Live, *, whole: bool) -> Parts:
    """Return the objects of each part as they are applied in this cluster, in order.
    CiliumNodes that are not rendered, but that waiting agents have made, are added to their parts, which may
    have no other object. `whole`: these parts are all of the cluster.
    """
    objects = {part: [*some] for part, some in built.items()}
    absent: list[str] = []
    for part, later in waiting.items():
        if whole or part in objects:
            if there := [each for each in later if identity(each) in live]:
                objects[part] = objects.get(part, []) + there
            absent += (name_of(each) for each in later if identity(each) not in live)
    assigned = any(each["kind"] == "MutatingAdmissionPolicy" for each in built.get(ADMISSION, ()))
    if absent and not assigned:
        nodes = f"{count(len(absent), 'planned node')} without an agent: {names(absent)}"
        say(f"{name}: {nodes}; to give them their blocks, run this again after they join")
    return {
        part: [over(each, live.get(identity(each))) for each in objects[part]]
        for part in ordered(f"{part}/{KUSTOMIZATION}" for part in objects)
    }


def _seen(kube: Kube, namespace: str, kinds: Collection[str], options: Options) -> Seen:
    """Read the cluster, one list for each kind, after its CRDs are there."""
    config_map, deployment = kube.flags(namespace)
    kube.wait_for_crds(sorted(CRDS[kind] for kind in kinds & CRDS.keys()), options.timeout)
    version = version_of(kube) if options.wait else ""
    live: dict[str, Object] = {}
    for kind in sorted({CILIUM_NODE, *(kinds & LISTED.keys())}):
        live.update(kube.listed(kind))
    nodes: Nodes = functools.cache(functools.partial(if_allowed, kube.nodes))
    if NODE in kinds:
        live.update(kube.nodes())
    if config_map:
        live[identity(config_map)] = config_map
    return Seen(live=live, flags=running(config_map, deployment), nodes=nodes, version=version)


def _differ(name: str, flags: Assumed, seen: Seen) -> list[FlagDifference]:
    """Print and return the differences between the cluster's flags and those that the compile assumed."""
    if seen.flags.data is None and seen.flags.arguments is None:
        say(f"{name}: no ConfigMap cilium-config in {flags.namespace}: Cilium is not installed yet")
    elif seen.flags.arguments is None and flags.data.get("ipam") in {"cluster-pool", "multi-pool"}:
        where = f"no Deployment cilium-operator in {flags.namespace}"
        say(f"{name}: {where}: the operator's arguments are unknown")
    blocks = [block for each in cilium_nodes(seen.live.values()) for block in every_block(each)]
    for key, text in odd_values(seen.flags.values):
        say(f"warning: {name}: the cluster has {key}: {text}; correct it where {key} is set")
    found = differences(flags, seen.flags, blocks)
    for item in found:
        say(f"{'warning' if item.level == 'later' else 'error'}: {name}: {item.text}; {item.help}")
    return found


def _withheld(
    kube: Kube, name: str, every: Sequence[Object], seen: Seen, former: Mapping[str, Sequence[Block]]
) -> dict[str, Withheld]:
    """Return the objects that must not be applied now, by identity; print the reasons."""
    found = [*shared_pools_in_use(every, seen.live), *held_by_others(every, seen.live)]
    if moved := moves(every, seen.live, former):
        pods = if_allowed(lambda: kube.pods({move.node for move in moved}))
        nodes = seen.nodes() or {}
        cordoned = {name_of(node) for node in nodes.values() if node["spec"]["unschedulable"]}
        found += used_by_pods(moved, pods, cordoned)
    withheld = {item.identity: item for item in found}
    for item in found[:LINES_SHOWN]:
        say(f"error: {name}: {item.identity}: not applied: {item.reason}; {item.help}")
    if withheld:
        say(f"error: {name}: {count(len(withheld), 'object')} not applied: {names(withheld)}")
    return withheld


def _apply(
    send: Send, name: str, part: str, objects: Sequence[Object], withheld: Collection[str]
) -> set[str]:
    """Apply a part except its withheld objects; print the result, and return refused objects."""
    free = [document for document in objects if identity(document) not in withheld]
    if not free:
        say(f"{name}/{part}: {'all objects are withheld' if objects else 'nothing to apply'}")
        return set()
    refused = send(free)
    say(f"{name}/{part}: {count(len(free) - len(refused), 'object')} applied")
    return refused


def _effective(kube: Kube, name: str, objects: Sequence[Object], seconds: int) -> bool:
    """Wait up to `seconds` until the applied policies work; print those that do not; return whether all do.
    Each kube-apiserver loads policies by itself. This tests only the one that answers; see `_send`.
    """
    commit = commit_of(objects)
    for document in probes(objects):
        kind = document["kind"]
        answer = kube.dry_run(document, commit, seconds)
        if "(Forbidden)" in answer or "no matches for kind" in answer:
            reason = answer.strip().splitlines()[-1]
            say(f"{name}: could not test the policies for a {kind}: {reason}")
        elif commit not in answer:
            what = f"the policies for a {kind} do not work {seconds} seconds after the apply"
            say(f"error: {name}: {what}; enable MutatingAdmissionPolicy in each kube-apiserver")
            return False
    return True


def _repair(
    send: Send,
    name: str,
    part: str,
    objects: Sequence[Object],
    drifts: Iterable[Drift],
    withheld: Collection[str],
) -> set[str]:
    """Apply the objects of a part that are missing or differ; print the result, and return refused objects.
    If one policy is sent, all are: their answers must name one commit.
    """
    here = set(map(identity, objects)) - set(withheld)
    found = {key: item for item in drifts if (key := identity(item.document)) in here}
    refused = set()
    states = {}
    for key, item in found.items():
        match item.state:
            case "gone":
                say(f"{name}: {key}: the cluster has no such Node; if it left, refresh the inventory")
            case "re-created":
                refused.add(key)
                uid = "the node was re-created with another uid: refresh the inventory"
                say(f"error: {name}: {key}: {uid}")
            case "missing" | "differs":
                states[key] = item.state
    if states:
        some = [found[key].document for key in states]
        refused |= send(objects if part == ADMISSION else some)
    for key, state in states.items():
        if key not in refused:
            say(f"{name}: {key}: {'was missing' if state == 'missing' else 'differed'}, repaired")
    return refused


def _send(
    kube: Kube, name: str, late: Callable[[str], bool], seconds: int, objects: Sequence[Object]
) -> set[str]:
    """Apply objects of a part as one list; print why some are refused, and return these.
    For up to `seconds`, objects are sent again that a kube-apiserver refuses by a policy as it was before.
    A refused object is sent again alone: kubectl names no object in the error of a conflict.
    """
    done = kube.apply(objects, late, seconds)
    left = _grown(kube, name, done.refused) if "onflict with " in done.problem else done.refused
    refused = set(map(identity, left))
    for document in left[:LINES_SHOWN]:
        alone = kube.apply([document])
        if alone.refused:
            say(f"error: {name}: {identity(document)}: {refusal(alone.problem, name, document)}")
        else:
            refused.discard(identity(document))
    if done.problem and not done.refused:
        say(f"error: {name}: {done.problem}")
        refused.update(map(identity, objects))
    return refused


def _grown(kube: Kube, name: str, refused: Sequence[Object]) -> Sequence[Object]:
    """Apply CiliumNodes that keep their blocks and get more, whoever wrote the first ones; return the others.
    Only the version that was compared is written: nobody's change is lost.
    """
    for _ in range(ERROR_WAITS):
        live = kube.listed(CILIUM_NODE) if any(each["kind"] == CILIUM_NODE for each in refused) else {}
        grown = [
            {**each, "metadata": {**each["metadata"], "resourceVersion": version}}
            for each in refused
            if (there := live.get(identity(each)))
            and (version := there["metadata"].get("resourceVersion"))
            and grows(there, each)
        ]
        if not grown:
            break
        done = {*map(identity, grown)} - {*map(identity, kube.apply(grown, force=True).refused)}
        if done:
            nodes = count(len(done), "CiliumNode")
            say(f"{name}: {nodes} got more blocks, although another field manager wrote the first ones")
        refused = [each for each in refused if identity(each) not in done]
    return refused
