"""Objects that ipamc applied once and that left the tree: named after each apply, deleted by consent."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ipamc.cli.terminal import say
from ipamc.model.diagnostics import count, names
from ipamc.model.progress import phase
from ipamc.review.live.drift import ORDER, LeftOver, is_strange, left_over, pool_users
from ipamc.review.live.objects import CILIUM_NODE, POOL, Object, name_of
from ipamc.workspace.cilium_nodes import CiliumNodes
from ipamc.workspace.kubectl import CRDS, Forbidden, Kube

Nodes = Callable[[], Mapping[str, Object] | None]


def name_left_over(
    kube: Kube,
    after: CiliumNodes,
    wanted: Collection[str],
    before: Mapping[str, Object],
    nodes: Nodes,
    *,
    prune: bool,
) -> bool:
    """Print what left the tree, and delete what nothing uses if that is wanted; return whether it went well.

    `wanted` is what must stay, by identity. `before` are the objects as they were before the apply: if not one
    of them is wanted, they may be another cluster's, and nothing is deleted.
    """
    name = kube.context
    live: dict[str, Object] = dict(after.live)
    for kind in sorted(CRDS.keys() - {CILIUM_NODE}):
        try:
            live.update(kube.listed(kind))
        except Forbidden as problem:
            say(f"{name}: objects of kind {kind} that left the tree are not looked for: {problem}")
    found = left_over(wanted, live, None, None)
    leavers = {item.name for item in found if item.kind == CILIUM_NODE}
    if leavers:
        found = left_over(wanted, live, _names(nodes()), _busy(kube, leavers))
    for kind in ORDER:
        _say(name, [item for item in found if item.kind == kind])
    free = [item for item in found if not item.kept]
    if not free:
        return True
    if not prune:
        say(f"{name}: --prune deletes {count(len(free), 'object')} that nothing uses")
        return True
    if is_strange(wanted, before):
        say(
            f"error: {name}: none of the objects that ipamc applied in this cluster is in the tree; they may be another cluster's: nothing is deleted"
        )
        return False
    phase(f"deleting what left the tree of {name}")
    # A CiliumNode that goes may be the last user of a pool: which pools are free is asked again, after it.
    chosen = {
        kind: [item for item in found if item.kind == kind and (kind == POOL or item in free)]
        for kind in ORDER
    }
    return all(_deleted(kube, name, kind, chosen[kind]) for kind in ORDER)


def _names(nodes: Mapping[str, Object] | None) -> set[str] | None:
    return None if nodes is None else {name_of(node) for node in nodes.values()}


def _busy(kube: Kube, nodes: set[str]) -> set[str] | None:
    try:
        return set(kube.pods(nodes))
    except Forbidden:
        return None


def _say(name: str, items: list[LeftOver]) -> None:
    """Print objects of one kind: a line for each effect and each reason to keep them."""
    groups: dict[tuple[str, str], list[str]] = {}
    for item in items:
        groups.setdefault((item.effect, item.kept), []).append(item.name)
    for (effect, kept), found in groups.items():
        which = f"{count(len(found), items[0].kind)} left the tree: {names(found)}"
        say(f"{name}: {which}; {effect}{f'; kept: {kept}' if kept else ''}")


def _deleted(kube: Kube, name: str, kind: str, items: list[LeftOver]) -> bool:
    """Delete objects of one kind. Pools are compared with the CiliumNodes of this moment."""
    if kind == POOL and items:
        users = pool_users(kube.listed(CILIUM_NODE).values())
        items = [item for item in items if item.name not in users]
    spaces: dict[str, list[str]] = {}
    for item in items:
        spaces.setdefault(item.namespace, []).append(item.name)
    done = True
    for namespace, found in spaces.items():
        if problem := kube.delete(kind, namespace, found):
            say(f"error: {name}: {kind} not deleted: {problem}")
            done = False
        else:
            say(f"{name}: {count(len(found), kind)} deleted: {names(found)}")
    return done
