"""One cluster's apply, step by step: build, compare with the cluster, send, judge, name what left the tree.

Every rendered object is applied, or the job fails; no field is taken by force.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from ipamc.cli.ci.outcome import operator_is_content, stays, written
from ipamc.cli.ci.prune import name_left_over
from ipamc.cli.terminal import say
from ipamc.model.cidr import Block
from ipamc.model.cilium.operator_list import Assumed
from ipamc.model.diagnostics import count, names
from ipamc.model.progress import phase
from ipamc.read.parts import FIRST
from ipamc.read.rendered import identity
from ipamc.review.live.blocks import Live, Withheld, moves, shared_pools_in_use, taken, used_by_pods
from ipamc.review.live.config import Difference, Running, differences, running
from ipamc.review.live.drift import Drift, drift
from ipamc.review.live.objects import (
    CILIUM_NODE,
    NODE,
    Object,
    allocated,
    cidrs,
    name_of,
    parsed,
)
from ipamc.workspace import disk
from ipamc.workspace.cilium_nodes import CiliumNodes, version_of
from ipamc.workspace.complete import incomplete
from ipamc.workspace.kubectl import CRDS, Forbidden, Kube
from ipamc.workspace.rendered import Manifests, former_blocks, manifests
from ipamc.workspace.trouble import Trouble

SHOWN = 20
"""Lines of one sort; then a number."""


class Options(Struct, frozen=True, kw_only=True):
    """The options of `ipamc ci apply`."""

    wait: float
    timeout: int
    repair: bool
    prune: bool
    before_flags: bool


class Part(Struct, frozen=True, kw_only=True):
    """A part of the tree as kustomize builds it."""

    name: str
    text: str
    objects: Sequence[Object]


ADVISES_FORCE = re.compile(r"\nPlease review the fields above.*?#conflicts", re.DOTALL)
"""What kubectl says after a conflict."""

Nodes = Callable[[], Mapping[str, Object] | None]
"""The cluster's Nodes by identity, read when they are first asked for; None where they cannot be read."""


class Seen(Struct, frozen=True, kw_only=True):
    """What the cluster has before the apply."""

    live: Live
    """Its CiliumNodes, and its objects of the kinds that are rendered."""
    flags: Running
    nodes: Nodes
    version: str
    """The version of its CiliumNodes, from which they can be watched; "" where they are not."""


def apply_cluster(name: str, given: Sequence[str], options: Options, sent: dict[str, bool]) -> bool:
    """Apply a cluster, or some parts of it after `cilium/`. Return whether all is well; print what is not.

    `sent` gets the parts that were sent to the cluster: False while kubectl is at work, then True.
    """
    folder = f"{disk.CLUSTERS}/{name}"
    phase(f"comparing {name} with the cluster")
    kube = Kube(context=name)
    there = manifests(folder)
    chosen = _chosen(name, there, given)
    _refuse_incomplete(name, folder, there)
    parts = [_built(kube, there, part) for part in chosen]
    every = [document for part in parts for document in part.objects]
    flags = there.flags
    seen = _seen(kube, flags.namespace, {document["kind"] for document in every}, options)
    differ = _differ(name, flags, seen)
    if any(item.level == "refused" for item in differ) and not options.before_flags:
        say(f"error: {name}: nothing was applied; --before-flags applies what is rendered before the flags")
        return False
    withheld = _withheld(kube, name, every, seen, former_blocks(folder))
    drifts = _drifts(every, seen, options)
    restart = any(item.level == "restart" for item in differ) and not options.before_flags
    refused = []
    for part in parts:
        phase(f"applying {name}/{part.name}")
        sent[f"{name}/{part.name}"] = False
        fine = (
            _repair(kube, name, part, drifts, withheld)
            if options.repair
            else _apply(kube, name, part, withheld)
        )
        sent[f"{name}/{part.name}"] = True
        if not fine:
            refused.append(part.name)
        if part.name == FIRST and (restart or (not fine and not options.repair)):
            return False  # flags and pools, which the shards need
    if refused:
        say(f"error: {name}: {count(len(refused), 'part')} of {len(parts)} not applied: {', '.join(refused)}")
    elif not every:
        say(f"{name}: nothing to apply: the lock gives no object that ipamc applies")
    elif options.repair and not drifts:
        say(f"{name}: nothing to repair, {count(len(every), 'object')} as rendered")
    phase(f"watching {name}")
    changed = [item.document for item in drifts if identity(item.document) not in withheld]
    watched = there.nodes_of(given) if given else None
    after = CiliumNodes(kube, seen.live, seen.version)
    well = operator_is_content(
        after, name, watched, written(every, changed, seen.live, flags), options.wait
    ) and (bool(refused) or stays(after, name, changed))
    if not given:
        phase(f"looking for what left the tree of {name}")
        well &= name_left_over(
            kube, after, there.identities, seen.live, functools.partial(_nodes, kube), prune=options.prune
        )
    return well and not withheld and not refused


def _chosen(name: str, there: Manifests, given: Sequence[str]) -> list[str]:
    """Return the parts to apply, in order; `cilium/` is always one."""
    if FIRST not in there.parts:
        raise Trouble(f"nothing is rendered in {disk.CLUSTERS}/{name}: run ipamc compile {name}")
    if missing := sorted(set(given) - set(there.parts)):
        raise Trouble(f"there is no {', '.join(missing)} in {there.shown}")
    return [part for part in there.parts if part in {FIRST, *given} or not given]


def _refuse_incomplete(name: str, folder: str, there: Manifests) -> None:
    """Raise Trouble unless all parts of the cluster have what its lock gives.

    Before kustomize builds them: of a kustomization that was not compiled, it may run and fetch anything.
    """
    if found := list(incomplete(folder, there)):
        for problem in found[:SHOWN]:
            say(f"error: {name}: {there.shown}: {problem}")
        raise Trouble(
            f"{there.shown} has not what {disk.LOCK} says should be there: nothing was applied; "
            f"run ipamc compile {name}, and look for what was lost"
        )


def _built(kube: Kube, there: Manifests, part: str) -> Part:
    """Build a part. Raises Trouble unless it builds to exactly the objects of its files."""
    text = kube.build(f"{there.shown}/{part}")
    out = Manifests({f"{part}, built": text.encode()}, there.shown).documents(f"{part}, built")
    into = there.objects_of(part)
    came, meant = set(map(identity, out)), set(map(identity, into))
    if len(out) != len(into) or came != meant:
        raise Trouble(
            f"{there.shown}/{part}: {count(len(into), 'object')} in its files, {len(out)} built"
            + (f"; lost: {names(meant - came)}" if meant - came else "")
            + ". Nothing was applied: run ipamc compile, and keep everybody from editing rendered/"
        )
    return Part(name=part, text=text, objects=out)


def _seen(kube: Kube, namespace: str, kinds: Collection[str], options: Options) -> Seen:
    """Read what the cluster has, one list for each kind, after its CRDs are there."""
    config_map, deployment = kube.flags(namespace)
    kube.wait_for_crds(sorted(CRDS[kind] for kind in kinds & CRDS.keys()), options.timeout)
    version = version_of(kube) if options.wait else ""
    live: dict[str, Object] = {}
    for kind in sorted({CILIUM_NODE, *(kinds & CRDS.keys())}):
        live.update(kube.listed(kind))
    nodes: Nodes = functools.cache(functools.partial(_nodes, kube))
    if NODE in kinds:
        live.update(kube.nodes())
    if config_map:
        live[identity(config_map)] = config_map
    return Seen(live=live, flags=running(config_map, deployment), nodes=nodes, version=version)


def _nodes(kube: Kube) -> Mapping[str, Object] | None:
    try:
        return kube.nodes()
    except Forbidden:
        return None


def _differ(name: str, flags: Assumed, seen: Seen) -> list[Difference]:
    """Compare the flags of the cluster with those that the compile assumed, and print what differs."""
    if seen.flags.data is None and seen.flags.arguments is None:
        say(f"{name}: no cilium-config in {flags.namespace}: Cilium is not installed yet")
    elif seen.flags.arguments is None and flags.data.get("ipam") in {"cluster-pool", "multi-pool"}:
        say(
            f"{name}: no Deployment cilium-operator in {flags.namespace}: the operator's arguments are not known"
        )
    given = (
        block
        for document in seen.live.values()
        if document["kind"] == CILIUM_NODE
        for block in (*parsed(cidrs(document, document)), *(block for _, block in allocated(document)))
    )
    found = differences(flags, seen.flags, given)
    for item in found:
        say(f"{'warning' if item.level == 'later' else 'error'}: {name}: {item.text}; {item.help}")
    return found


def _withheld(
    kube: Kube, name: str, every: Sequence[Object], seen: Seen, former: Mapping[str, Sequence[Block]]
) -> dict[str, Withheld]:
    """Return the objects that must not be applied now, by identity, and print why."""
    found = [*shared_pools_in_use(every, seen.live), *taken(every, seen.live)]
    if moved := moves(every, seen.live, former):
        try:
            pods = kube.pods({move.node for move in moved})
        except Forbidden:
            pods = None
        nodes = seen.nodes() or {}
        cordoned = {name_of(node) for node in nodes.values() if node["spec"]["unschedulable"]}
        found += used_by_pods(moved, pods, cordoned)
    withheld = {item.identity: item for item in found}
    for item in found[:SHOWN]:
        say(f"error: {name}: {item.identity}: not applied: {item.reason}; {item.help}")
    if withheld:
        say(f"error: {name}: {count(len(withheld), 'object')} not applied: {names(withheld)}")
    return withheld


def _drifts(every: Sequence[Object], seen: Seen, options: Options) -> list[Drift]:
    """Return what the cluster does not have as it is rendered. Whether Nodes are there only a repair asks."""
    nodes = seen.nodes() if options.repair else None
    return list(drift(every, seen.live, None if nodes is None else set(map(name_of, nodes.values()))))


def _apply(kube: Kube, name: str, part: Part, withheld: Collection[str]) -> bool:
    """Apply a part without what is withheld; print and return how it went.

    Each part is a stream of its own, so that no object of another part is lost.
    """
    objects = [document for document in part.objects if identity(document) not in withheld]
    if not objects:
        say(f"{name}/{part.name}: {'all of it is withheld' if part.objects else 'nothing to apply'}")
        return True
    done = kube.apply(part.text if len(objects) == len(part.objects) else _stream(objects))
    if done.problem:
        say(f"error: {name}/{part.name}: {_refusal(done.problem, name)}")
    elif done.objects != len(objects):
        say(f"error: {name}/{part.name}: {count(len(objects), 'object')} sent, {done.objects} applied")
    else:
        say(f"{name}/{part.name}: {count(len(objects), 'object')} applied")
        return True
    return False


def _repair(kube: Kube, name: str, part: Part, drifts: Iterable[Drift], withheld: Collection[str]) -> bool:
    """Apply what the cluster lacks of a part. What is refused is sent again alone, so that it says why."""
    here = set(map(identity, part.objects))
    found = [item for item in drifts if identity(item.document) in here - set(withheld)]
    fine = True
    for item in found:
        if item.state == "gone":
            say(
                f"{name}: {identity(item.document)}: its Node is not in the cluster; if it left, refresh the inventory"
            )
        elif item.state == "re-created":
            say(
                f"error: {name}: {identity(item.document)}: the node was re-created, its uid is another one: refresh the inventory"
            )
            fine = False
    states = {identity(item.document): item.state for item in found if item.state in {"missing", "differs"}}
    wanted = [item.document for item in found if identity(item.document) in states]
    done = kube.apply(_stream(wanted)) if wanted else None
    for document in wanted if done else ():
        if done and (str(document["kind"]).lower(), name_of(document)) in done.taken:
            say(
                f"{name}: {identity(document)}: {'was missing' if states[identity(document)] == 'missing' else 'differed'}, repaired"
            )
            continue
        alone = kube.apply(_stream([document]))
        if alone.problem or not alone.objects:
            say(f"error: {name}: {identity(document)}: {_refusal(alone.problem, name)}")
            fine = False
    return fine


def _stream(objects: Iterable[Object]) -> str:
    return "---\n".join(json.dumps(document) + "\n" for document in objects)


def _refusal(problem: str, cluster: str) -> str:
    """Return a complaint of kubectl, and what to do about it."""
    if "onflict with " not in problem:
        return problem + _advice(problem)
    said = ADVISES_FORCE.sub("", problem)
    if ".spec.ipam." in said:
        repair = f"ipamc ci apply {cluster} --repair"
        help_ = f"{repair} names the nodes; drain each, kubectl delete ciliumnode NODE && {repair}, restart its agent"
    elif ".spec.ipv4." in said or ".spec.ipv6." in said:
        help_ = (
            "compare the cidrs: kubectl get ciliumpodippools -o yaml; if all of them stay and others are appended, "
            f"kubectl apply --server-side --field-manager=ipamc --force-conflicts -f clusters/{cluster}/rendered/cilium/ippools.yaml once"
        )
    else:
        help_ = "find out which one, and remove the fields there"
    return f"{said}; another field manager owns these fields, and ipamc does not use force: {help_}"


def _advice(problem: str) -> str:
    """Return what to do about a complaint of the apiserver. A re-created Node comes first: its block may be right."""
    if "uid" in problem or 'cannot create resource "nodes"' in problem:  # no job may create a Node
        return "; a Node was re-created or left since the inventory was made: refresh the inventory"
    if "may not change podCIDR" in problem:
        return "; podCIDRs of a Node cannot change: drain it, delete the Node, and let it join again"
    return ""
