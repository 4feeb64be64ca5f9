"""One cluster's apply, step by step: build, compare with the cluster, send, judge, name what left the tree.

Every rendered object is applied, or the job fails; no field is taken by force.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ipamc.cli.ci.prune import name_left_over
from ipamc.cli.terminal import say
from ipamc.model.diagnostics import count, names
from ipamc.render.parts import FIRST
from ipamc.review.live.blocks import Live, Withheld, moves, shared_pools_in_use, taken, used_by_pods
from ipamc.review.live.config import Assumed, differences, running
from ipamc.review.live.drift import Drift, drift
from ipamc.review.live.objects import (
    CILIUM_NODE,
    NODE,
    POOL,
    Object,
    allocated,
    cidrs,
    identity,
    name_of,
    node_of,
    parsed,
)
from ipamc.review.live.verdict import Verdict, Written, judge
from ipamc.workspace import disk
from ipamc.workspace.kubectl import CRDS, Forbidden, Kube
from ipamc.workspace.rendered import assumed, documents, nodes_of, objects_of, parts_of
from ipamc.workspace.trouble import Trouble

SHOWN = 20
"""Lines of one sort; then a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `ipamc ci apply`."""

    wait: float
    timeout: int
    repair: bool
    prune: bool
    before_flags: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the tree as kustomize builds it."""

    name: str
    text: str
    objects: Sequence[Object]


Nodes = Callable[[], Mapping[str, Object] | None]
"""The cluster's Nodes by identity, read when they are first asked for; None where they cannot be read."""


def apply_cluster(name: str, given: Sequence[str], options: Options) -> bool:
    """Apply a cluster, or some parts of it after `cilium/`. Return whether all is well; print what is not."""
    folder = f"{disk.CLUSTERS}/{name}"
    there = parts_of(folder)
    if FIRST not in there:
        raise Trouble(f"nothing is rendered in {folder}: run ipamc compile {name}")
    if missing := sorted(set(given) - set(there)):
        raise Trouble(f"there is no {', '.join(missing)} in {folder}/{disk.RENDERED}")
    kube = Kube(context=name)
    built = [_built(kube, folder, part) for part in there if part in {FIRST, *given} or not given]
    every = [document for part in built for document in part.objects]
    kinds = {document["kind"] for document in every}
    flags = assumed(folder)
    config_map, deployment = kube.flags(flags.namespace)
    kube.wait_for_crds(sorted(CRDS[kind] for kind in kinds & CRDS.keys()), options.timeout)
    nodes: Nodes = functools.cache(functools.partial(_nodes, kube))
    live: dict[str, Object] = {}
    for kind in sorted({CILIUM_NODE, *kinds & CRDS.keys()}):
        live.update(kube.listed(kind))
    if NODE in kinds:
        live.update(kube.nodes())
    if config_map:
        live[identity(config_map)] = config_map
    stop, restart = _flags(name, flags, config_map, deployment, live, options)
    if stop:
        return False
    withheld = _withheld(kube, every, live, nodes)
    for item in list(withheld.values())[:SHOWN]:
        say(f"error: {name}: {item.identity}: not applied: {item.reason}; {item.help}")
    if withheld:
        say(f"error: {name}: {count(len(withheld), 'object')} not applied: {names(withheld)}")
    known = nodes() if options.repair else None
    drifts = list(drift(every, live, None if known is None else {name_of(node) for node in known.values()}))
    done = not withheld
    refused = []
    for part in built:
        if options.repair:
            fine = _repair(kube, name, part, drifts, withheld)
        else:
            fine = _apply(kube, name, part, withheld)
        if not fine:
            refused.append(part.name)
        if part.name == FIRST and (restart or (not fine and not options.repair)):
            return False  # flags and pools, which the shards need
    if refused:
        say(f"error: {name}: {count(len(refused), 'part')} of {len(built)} not applied: {', '.join(refused)}")
    if options.repair and done and not drifts:
        say(f"{name}: nothing to repair, {count(len(every), 'object')} as rendered")
    changed = [item.document for item in drifts if identity(item.document) not in withheld]
    written = Written(
        before=_errors(live),
        nodes={node_of(document) for document in changed},
        pools={name_of(document) for document in changed if document["kind"] == POOL},
        own_pools={name_of(document) for document in every if document["kind"] == POOL and node_of(document)},
        operator_list=flags.operator_list if flags.adopts else (),
    )
    well = _operator_is_content(kube, name, nodes_of(folder, given) if given else None, written, options.wait)
    if not given:
        well &= name_left_over(kube, name, folder, live, nodes, prune=options.prune)
    return well and done and not refused


def _built(kube: Kube, folder: str, part: str) -> Part:
    """Build a part. Raises Trouble unless it builds to exactly the objects of its files."""
    text = kube.build(f"{folder}/{disk.RENDERED}/{part}")
    out, into = documents(text), objects_of(folder, part)
    came, meant = set(map(identity, out)), set(map(identity, into))
    if len(out) != len(into) or came != meant:
        raise Trouble(
            f"{folder}/{disk.RENDERED}/{part}: {count(len(into), 'object')} in its files, {len(out)} built"
            + (f"; lost: {names(meant - came)}" if meant - came else "")
            + ". Nothing was applied: run ipamc compile, and keep everybody from editing rendered/"
        )
    return Part(name=part, text=text, objects=out)


def _nodes(kube: Kube) -> Mapping[str, Object] | None:
    try:
        return kube.nodes()
    except Forbidden:
        return None


def _flags(
    name: str,
    flags: Assumed,
    config_map: Object | None,
    deployment: Object | None,
    live: Live,
    options: Options,
) -> tuple[bool, bool]:
    """Compare the flags; return whether nothing may be applied, and whether the operator must restart first."""
    if config_map is None and deployment is None:
        say(
            f"{name}: no cilium-config and no cilium-operator in {flags.namespace}: Cilium is not installed yet"
        )
        return False, False
    if deployment is None and flags.data.get("ipam") in {"cluster-pool", "multi-pool"}:
        say(
            f"{name}: there is no Deployment cilium-operator in {flags.namespace}: its arguments are not known"
        )
    given = [
        block for document in live.values() if document["kind"] == CILIUM_NODE for block in _blocks(document)
    ]
    found = differences(flags, running(config_map, deployment), given)
    refused = [item for item in found if item.level == "refused"]
    restart = [item for item in found if item.level == "restart"]
    for item in found:
        fatal = item.level != "later" and not options.before_flags
        say(f"{'error' if fatal else 'warning'}: {name}: {item.text}; {item.help}")
    stop = bool(refused) and not options.before_flags
    if stop:
        say(f"error: {name}: nothing was applied; --before-flags applies what is rendered before the flags")
    return stop, bool(restart) and not options.before_flags


def _blocks(document: Object) -> list[Any]:
    return [*parsed(cidrs(document, document)), *(block for _, block in allocated(document))]


def _withheld(kube: Kube, every: Sequence[Object], live: Live, nodes: Nodes) -> dict[str, Withheld]:
    """Return the objects that must not be applied now, by identity."""
    found = [*shared_pools_in_use(every, live), *taken(every, live)]
    if moved := moves(every, live):
        try:
            pods = kube.pods({move.node for move in moved})
        except Forbidden:
            pods = None
        cordoned = {name_of(node) for node in (nodes() or {}).values() if node["spec"]["unschedulable"]}
        found += used_by_pods(moved, pods, cordoned)
    return {item.identity: item for item in found}


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
        say(f"error: {name}/{part.name}: {done.problem}{_advice(done.problem)}")
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
            say(f"error: {name}: {identity(document)}: {alone.problem}{_advice(alone.problem)}")
            fine = False
    return fine


def _stream(objects: Iterable[Object]) -> str:
    return "---\n".join(json.dumps(document) + "\n" for document in objects)


def _advice(problem: str) -> str:
    """Return what to do about a complaint of the apiserver."""
    if "onflict" in problem:
        return "; another field manager owns these fields, and ipamc does not use force: find out which one, and remove the fields there"
    if "may not change podCIDR" in problem:
        return "; podCIDRs of a Node cannot change: drain it, delete the Node, and let it join again"
    if "uid" in problem:
        return "; a Node was re-created or left since the inventory was made: refresh the inventory"
    return ""


def _errors(live: Live) -> dict[str, str]:
    """Return the operator's errors as they were before."""
    found = {}
    for document in live.values():
        status = ((document.get("status") or {}).get("ipam") or {}).get("operator-status") or {}
        if document["kind"] == CILIUM_NODE and status.get("error"):
            found[name_of(document)] = str(status["error"])
    return found


def _operator_is_content(
    kube: Kube, name: str, only: Collection[str] | None, written: Written, wait: float
) -> bool:
    """Watch the CiliumNodes for `wait` seconds; print the operator's errors; return whether none is ours."""

    def verdict(errors: Mapping[str, str]) -> Verdict:
        return judge({node: text for node, text in errors.items() if only is None or node in only}, written)

    found = verdict(kube.watch(lambda errors: verdict(errors).failures, wait))
    for node, error in sorted(found.failures.items())[:SHOWN]:
        say(f"error: {name}: CiliumNode {node}: {error}")
    for node, error in sorted(found.before.items())[:SHOWN]:
        say(f"{name}: CiliumNode {node}: was there before, and this apply changed nothing of it: {error}")
    if found.restart:
        say(
            f"{name}: the operator reads its list of CIDRs when it starts, and lacks the blocks of {count(len(found.restart), 'node')} until then: {names(found.restart)}. Their agents use them; restart the operator with the rendered list"
        )
    if found.failures:
        say(
            f"error: {name}: the operator reports errors for {count(len(found.failures), 'node')}: {names(found.failures)}"
        )
    return not found.failures
