"""The outcome of an apply: refused objects, the operator's errors, and objects that left the tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from ipamc.cli.terminal import say
from ipamc.model.admission import POLICIES
from ipamc.model.cilium.operator_list import Assumed
from ipamc.model.diagnostics import count, names
from ipamc.model.limits import ERROR_WAITS, LINES_SHOWN
from ipamc.model.progress import phase
from ipamc.review.live.apply import ORDER, LeftOver, Live, drift, is_foreign_tree, left_over, pool_users
from ipamc.review.live.cilium import Run, judge
from ipamc.review.live.objects import (
    CILIUM_NODE,
    NODE,
    POOL,
    Object,
    cilium_nodes,
    name_of,
    node_of,
    reported_errors,
)
from ipamc.workspace.kubectl import LISTED, CiliumNodes, Forbidden, Kube, if_allowed

Nodes = Callable[[], Mapping[str, Object] | None]
"""The cluster's Nodes by identity; None where they cannot be read."""
ANEW = "drain the node, delete its CiliumNode, run this again, and restart the agent"
"""How a node gets a new block if the operator has recorded the old one for it."""
ADVICE = {
    "conflict with requested": ANEW,
    "since allocator for": "the operator does not know this family yet: roll out cilium/",
    "allocate from non-existing pool": "restart its agent, if that started before its CiliumNodeConfig",
}
"""What to do about an error of the operator, by a part of its text."""
ADVISES_FORCE = re.compile(r"\nPlease review the fields above.*?#conflicts", re.DOTALL)
"""The advice of kubectl after a conflict."""


def written(every: Sequence[Object], changed: Sequence[Object], live: Live, flags: Assumed) -> Run:
    """Return what this run wrote, to judge errors of the operator. `live` is the cluster before the apply."""
    pools = [document for document in every if document["kind"] == POOL and node_of(document)]
    return Run(
        before=reported_errors(live.values()),
        nodes={node_of(document) for document in changed if document["kind"] != NODE},
        pools={name_of(document) for document in changed if document["kind"] == POOL},
        own_pools=set(map(name_of, pools)),
        given={seen.name: seen.blocks for seen in cilium_nodes(every if flags.adopts else ())},
        operator_list=flags.operator_list if flags.adopts else (),
    )


def stays(after: CiliumNodes, name: str, changed: Sequence[Object]) -> bool:
    """Return whether CiliumNodes are as this run wrote them; print those that are not.
    Operators from 1.19 on restore the block that they have recorded, and clear their error.
    """
    nodes = [document for document in changed if document["kind"] == CILIUM_NODE]
    back = [name_of(item.document) for item in drift(nodes, after.live, None) if item.state == "differs"]
    if back:
        what = f"{count(len(back), 'CiliumNode')} changed back after the apply: {names(back)}"
        say(f"error: {name}: {what}; {ANEW}")
    return not back


def operator_is_content(
    after: CiliumNodes, name: str, only: Collection[str] | None, written: Run, wait: float
) -> bool:
    """Watch the CiliumNodes for `wait` seconds; print the operator's errors; return whether none is ours.
    Some errors go away by themselves: while there are failures, the watch repeats up to ERROR_WAITS times.
    """
    for _ in range(ERROR_WAITS if wait else 1):
        after.follow(wait)
        errors = reported_errors(after.live.values())
        found = judge({node: text for node, text in errors.items() if only is None or node in only}, written)
        if not found.failures:
            break
    if after.refused:
        roles = f"apply its roles again ('ipamc ci rbac {name}'): {after.refused}"
        say(f"{name}: read CiliumNodes again, because this job may not watch them: {roles}")
    for node, error in sorted(found.failures.items())[:LINES_SHOWN]:
        advice = (f"; {each}" for part, each in ADVICE.items() if part in error)
        say(f"error: {name}: CiliumNode {node}: {error}{''.join(advice)}")
    for node, error in sorted(found.before.items())[:LINES_SHOWN]:
        say(f"{name}: CiliumNode {node}: an earlier error, which this apply does not affect: {error}")
    if found.restart:
        lacks = f"lacks the blocks of {count(len(found.restart), 'node')}: {names(found.restart)}"
        say(
            f"{name}: the operator's list of CIDRs {lacks}; their agents use the blocks already\n"
            "  next: restart the operator with the rendered list"
        )
    if found.failures:
        nodes = f"{count(len(found.failures), 'node')}: {names(found.failures)}"
        say(f"error: {name}: the operator reports errors for {nodes}")
    return not found.failures


def refusal(problem: str, cluster: str, document: Object) -> str:
    """Return the error of kubectl about one object, and what to do about it."""
    if not problem:
        return "kubectl reports neither an error nor an apply"
    if "onflict with " not in problem:
        # A re-created Node comes first: its block may be right. No job may create a Node.
        if "uid" in problem or 'cannot create resource "nodes"' in problem:
            help_ = "; a Node was re-created or left after the last refresh: refresh the inventory"
        elif "may not change podCIDR" in problem:
            help_ = "; podCIDRs of a Node cannot change: drain it, delete the Node, and join it again"
        else:
            help_ = ""
        return problem + help_
    said = ADVISES_FORCE.sub("", problem)
    if document["kind"] in POLICIES:
        typed = str(document["kind"]).lower()
        help_ = f"kubectl delete {typed} {name_of(document)} && ipamc apply {cluster} --repair"
    elif ".spec.ipam." in said:
        node = name_of(document)
        delete = f"kubectl delete ciliumnode {node} && ipamc apply {cluster} --repair"
        help_ = f"drain {node}, stop the operator, {delete}, start the operator, restart {node}'s agent"
    elif ".spec.ipv4." in said or ".spec.ipv6." in said:
        apply = "kubectl apply --server-side --field-manager=ipamc --force-conflicts"
        help_ = (
            "compare the cidrs: kubectl get ciliumpodippools -o yaml; if the change only appends some, run "
            f"once: {apply} -f clusters/{cluster}/rendered/cilium/ippools.yaml"
        )
    else:
        help_ = "find it, and remove the fields there"
    return f"{said}; another field manager owns these fields, and ipamc does not use force: {help_}"


def name_left_over(
    kube: Kube, after: CiliumNodes, wanted: Collection[str], before: Live, nodes: Nodes, *, prune: bool
) -> bool:
    """Print objects that left the tree; with `prune`, delete the unused ones; return whether that worked.
    `wanted` are identities of objects that must stay. `before` are the objects before the apply: if none
    of them is wanted, they may be another cluster's, and nothing is deleted.
    """
    name = kube.name
    live: dict[str, Object] = dict(after.live)
    for kind in sorted(LISTED.keys() - {CILIUM_NODE}):
        try:
            live.update(kube.listed(kind))
        except Forbidden as problem:
            if kind in POLICIES and not any(about.startswith(f"{kind} ") for about in wanted):
                continue  # older roles may not read policies, and the tree has none
            say(f"{name}: could not look for {kind} objects that left the tree: {problem}")
    found = left_over(wanted, live, None, None)
    if leavers := {item.name for item in found if item.kind == CILIUM_NODE}:
        there, busy = nodes(), if_allowed(lambda: kube.pods(leavers))
        found = left_over(wanted, live, None if there is None else set(map(name_of, there.values())), busy)
    for kind in ORDER:
        groups: dict[tuple[str, str], list[str]] = {}
        for item in found:
            if item.kind == kind:
                groups.setdefault((item.effect, item.kept), []).append(item.name)
        for (effect, kept), some in groups.items():
            left = f"{count(len(some), kind)} left the tree: {names(some)}; {effect}"
            say(f"{name}: {left}{f'; kept: {kept}' if kept else ''}")
    free = [item for item in found if not item.kept]
    if not free:
        return True
    if not prune:
        say(f"{name}: --prune deletes {count(len(free), 'object')} that nothing uses")
        return True
    if is_foreign_tree(wanted, before):
        strange = "the tree has none of the objects that ipamc applied in this cluster"
        say(f"error: {name}: {strange}; nothing is deleted, because they may belong to another cluster")
        return False
    phase(f"deleting what left the tree of {name}")
    # Pools are decided again after CiliumNodes: a deleted one may have been the last user of a pool.
    chosen = {
        kind: [one for one in found if one.kind == kind and (kind == POOL or one in free)] for kind in ORDER
    }
    return all(_deleted(kube, kind, chosen[kind]) for kind in ORDER)


def _deleted(kube: Kube, kind: str, items: list[LeftOver]) -> bool:
    """Delete objects of one kind, pools after a new look at CiliumNodes; return whether that worked."""
    if kind == POOL and items:
        users = pool_users(kube.listed(CILIUM_NODE).values())
        items = [item for item in items if item.name not in users]
    done = True
    for namespace in dict.fromkeys(item.namespace for item in items):
        some = [item.name for item in items if item.namespace == namespace]
        if problem := kube.delete(kind, namespace, some):
            say(f"error: {kube.name}: {kind} not deleted: {problem}")
            done = False
        else:
            say(f"{kube.name}: {count(len(some), kind)} deleted: {names(some)}")
    return done
