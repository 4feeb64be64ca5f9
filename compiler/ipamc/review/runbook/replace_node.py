"""A machine is replaced: the new one gets the blocks of the old one, under the same or another name."""

from __future__ import annotations

import json
from collections.abc import Iterator

from msgspec.structs import replace

from ipamc.model.cluster import Cluster
from ipamc.model.lock import Line
from ipamc.model.plan import Plan
from ipamc.review.runbook.commands import Commands
from ipamc.review.runbook.common import (
    applied,
    audited,
    cordoned,
    drained,
    merged,
    refreshed,
    restarted,
    shown,
    uncordoned,
    up_to_date,
)
from ipamc.review.runbook.decommission import deleted
from ipamc.review.runbook.new_blocks import seeded
from ipamc.review.runbook.values import Check, Phase, Runbook, Step, Where, alone


def replace_node(plan: Plan, run: Commands, old: str, new: str) -> Runbook:
    """Return the steps for one node; `new` is the name of its replacement, or the same name."""
    same = old == new
    lines = plan.held.get(old, ())
    away = alone("Take the old machine out of the cluster", *_away(run, old, same=same))
    if same:
        steps = (
            alone("Let the new machine join", *_joins(run, new), *_gets_block(run, new, lines)),
            *([] if _has_uid(run.cluster) else [_up_to_date(run, new)]),
        )
    elif run.cluster.own_pools:
        steps = (
            alone("Give its blocks to the new name", *_planned(plan, run, old, new)),
            alone("Let the new machine join", *_joins(run, new), *_ends(run, new, {new: lines})),
            _up_to_date(run, new),
        )
    else:
        steps = (
            alone("Let the new machine join", *_joins(run, new)),
            alone("Give it the blocks of the old one", *_renamed(run, old, new, lines)),
        )
    return Runbook(
        cluster=run.name,
        change="replace-node",
        title=f"Replace {old} of {run.name}" if same else f"Replace {old} of {run.name} by {new}",
        about=(
            f"do not refresh the inventory before {new} has joined: {old} would leave it, and its blocks would be in quarantine"
            if same
            else f"{new} gets the blocks only by the consent --rename; without it, {old} leaves and {new} gets other blocks",
        ),
        phases=(away, *steps),
        way_back=f"the lines of {old} stay in the lock, held or in quarantine: whenever a node of this name is in the "
        "inventory again, it has its blocks",
    )


def _away(run: Commands, old: str, *, same: bool) -> Iterator[Step]:
    alive = "the old machine still runs"
    yield replace(cordoned(run, (old,)), title=f"Cordon {old}", only_if=alive, check=None)
    yield replace(drained(run, (old,), "their pods start elsewhere"), title=f"Drain {old}", only_if=alive)
    yield from deleted(run, (old,))
    if same and run.cluster.shared_pools:
        yield Step(
            key="note",
            title="Go on at once: with the CiliumNode the operator has freed the blocks, and may give them to others",
        )


def _joins(run: Commands, new: str) -> Iterator[Step]:
    yield Step(
        key="join",
        title=f"Let the new machine join as {new}, as your platform does it (kubeadm join, cluster-api, …)",
        where=Where.NODE,
        nodes=(new,),
        check=Check(command=run.columns("nodes", (new,), "NODE:.metadata.name"), expect=new),
        if_not="see the log of its kubelet",
    )
    yield replace(
        cordoned(run, (new,)),
        title=f"Cordon {new}",
        why="no pod may start before it has its block",
    )


def _gets_block(run: Commands, new: str, lines: tuple[Line, ...]) -> Iterator[Step]:
    cluster, blocks = run.cluster, {new: lines}
    if _has_uid(cluster):
        why = "the new Node has another uid"
        yield from merged(run, "replace-node", f"{new} joined again", *refreshed(run), why=why)
    if cluster.shared_pools:
        yield seeded(run, blocks)
    elif cluster.operator_adopts:
        yield Step(
            key="delete-ciliumnode",
            title="Delete its CiliumNode, and apply it again at once",
            why="the operator has given it a block of the unlisted pool",
            nodes=(new,),
            commands=(
                f"{run.kubectl('delete', 'ciliumnode', '--ignore-not-found', new)} && {run.apply} --repair",
            ),
        )
    elif _has_uid(cluster):
        yield applied(run)
    elif not cluster.own_pools:
        yield Step(
            key="apply",
            title="Apply what the new node lacks",
            why="its CiliumNode is empty, and git has not changed",
            nodes=(new,),
            commands=(f"{run.apply} --repair",),
        )
    yield from _ends(run, new, blocks)


def _has_uid(cluster: Cluster) -> bool:
    """Return whether Nodes are rendered, with their uids."""
    return cluster.patch_nodes != "none"


def _ends(run: Commands, new: str, blocks: dict[str, tuple[Line, ...]]) -> Iterator[Step]:
    if run.cluster.shared_pools or run.cluster.operator_adopts or run.cluster.own_pools:
        yield from restarted(run, (new,))
    yield from shown(
        run, blocks, f"Look at the blocks of {new}", if_not="it waits for its blocks: apply again"
    )
    yield uncordoned(run, (new,))


def _up_to_date(run: Commands, new: str) -> Phase:
    return up_to_date(run, "replaced-node", f"{new} was replaced", "the new Node has another uid")


def _planned(plan: Plan, run: Commands, old: str, new: str) -> Iterator[Step]:
    """Yield the steps for nodes with pools of their own: an agent that starts before its pool is there asks for another."""
    refresh = Step(key="refresh", title=f"Take {old} out of the inventory", commands=refreshed(run))
    labels = next((node.labels for node in plan.cluster.nodes if node.name == old), {})
    edit = Step(
        key="edit-inventory",
        title=f"Add {new} to the inventory ({run.where}/nodes.yaml), as a node that is planned",
        why="its pool and its CiliumNodeConfig are then there before its agent starts",
        where=Where.EDITOR,
        edit=f"nodes:\n- {json.dumps({'name': new, 'labels': dict(sorted(labels.items())), 'planned': True})}",
    )
    rename = run.lock("--rename", f"{old}={new}")
    yield from merged(run, "replace-node", f"{new} replaces {old}", rename, edits=[refresh, edit])
    yield applied(
        run,
        "--prune",
        why=f"the pool of {old} has the same blocks, and goes before {new} asks for them",
    )


def _renamed(run: Commands, old: str, new: str, lines: tuple[Line, ...]) -> Iterator[Step]:
    cluster = run.cluster
    refresh = Step(
        key="refresh",
        title="Take the new node over into the inventory",
        commands=refreshed(run),
        if_not="the old Node is still there: delete it again",
    )
    forget = Step(
        key="forget-evidence",
        title=f"Remove the CiliumNode of {new} from the refreshed inputs",
        why="the operator has given it a block already, which would be adopted",
        where=Where.EDITOR,
        edit=f"remove: kind CiliumNode, metadata.name {new}",
    )
    yield from merged(
        run,
        "replace-node",
        f"{new} replaces {old}",
        run.lock("--rename", f"{old}={new}"),
        edits=[refresh, forget] if cluster.shared_pools or cluster.operator_adopts else [refresh],
        if_not=f"refused while {old} is in the inventory, or {new} holds a block: was {new} compiled before? Then "
        f"{run.lock('--leave', new)} on a copy of the trunk before that",
    )
    if cluster.operator_adopts:
        yield Step(
            key="delete-ciliumnode",
            title="Delete its CiliumNode, and apply at once",
            nodes=(new,),
            commands=(f"{run.kubectl('delete', 'ciliumnode', '--ignore-not-found', new)} && {run.apply}",),
        )
    else:
        yield applied(run)
    if cluster.shared_pools:
        yield seeded(run, {new: lines})
    yield from _ends(run, new, {new: lines})
    yield audited(run)
