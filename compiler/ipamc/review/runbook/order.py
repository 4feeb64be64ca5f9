"""The order in which another mode, operator, pinning or patchNodes is brought to a running cluster.

What is read then must be there before the flags, because an operator or an agent that starts without it takes
or gives another block. tests/e2e/test_mode_change.py runs these orders on real operators; the pairs of modes
without such an order are refused (`check.mode_change`).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ipamc.lock.file_rules import ONLINE
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.lock import Lock
from ipamc.model.plan import Plan
from ipamc.review.runbook.commands import Commands
from ipamc.review.runbook.common import FEW, applied
from ipamc.review.runbook.values import Check, Step, Where

BEFORE = "--before-flags"
NODE_BY_NODE = "node-by-node"
SAME_BLOCK = "no drain: both modes give addresses out of the same block"


def order(lock: Lock, before: Cluster | None, plan: Plan, run: Commands) -> tuple[Step, ...]:
    """Return the steps from the base to a plan; () where no order matters.

    `lock` and `before` are of the base; `before` is None if its documents cannot be read. For modes between
    which nodes cannot keep their blocks there is no order.
    """
    if not lock.shards:
        return ()
    if lock.mode is not plan.cluster.mode:
        online = (lock.mode.value, plan.cluster.mode.value) in ONLINE
        return tuple(_of_mode(lock.mode, before, plan, run)) if online else ()
    return tuple(_of_settings(before, plan, run)) if before else ()


def _of_mode(old: Mode, before: Cluster | None, plan: Plan, run: Commands) -> Iterator[Step]:
    cluster = plan.cluster
    from_bystander = old is Mode.CLUSTER_POOL and not (before and before.operator_adopts)
    yield Step(
        key="warn",
        title="between these steps restart no agent and no operator, and apply nothing else (a pipeline's apply refuses until the flags are there): in this order every node keeps its block",
    )
    if before and before.operator_adopts:
        yield _listed("the new mode knows no block that is not in the lock")
    if cluster.mode is Mode.KUBERNETES:
        yield from _to_kubernetes(plan, run, from_bystander=from_bystander)
    elif cluster.mode is Mode.MULTI_POOL:
        yield from _to_multi_pool(old, plan, run, from_bystander=from_bystander)
    else:
        yield from _to_cluster_pool(plan, run)


def _listed(why: str) -> Step:
    return Step(
        key="list-strangers",
        title="List every node that is not in the inventory, with its CiliumNode, and compile again",
        why=why,
        where=Where.EDITOR,
        edit="kubectl get nodes,ciliumnodes shows them; ipamc import CLUSTER --refresh takes them in",
    )


def _before_flags(run: Commands, title: str, why: str) -> Step:
    step = applied(run, BEFORE)
    return Step(
        key="apply",
        title=title,
        why=why,
        commands=step.commands,
        if_not=f"{step.if_not}. Before the flags, 'allocator not configured for the requested CIDR' of our own blocks is what an operator that adopts says",
    )


def _blocks(plan: Plan, run: Commands, title: str, *fields: str, kind: str = "ciliumnodes") -> Step:
    """Return the step that shows the blocks of all nodes; with a check if there are few."""
    held = {node: lines for node, lines in plan.held.items() if lines}
    planned = {node.name for node in plan.cluster.nodes if node.planned}
    nodes = sorted(set(held) - planned)
    command = run.columns(kind, nodes if len(nodes) <= FEW else (), "NODE:.metadata.name", *fields)
    rows = (f"{node} {' '.join([run.in_order(held[node])] * len(fields))}" for node in nodes)
    check = Check(command=command, expect="\n".join(rows)) if 0 < len(nodes) <= FEW else None
    return Step(
        key="shown",
        title=title,
        commands=() if check else (command,),
        check=check,
        if_not="stop: a node without its block here gets another one when its agent restarts. Apply again, and compare with ipamc show",
    )


def _to_cluster_pool(plan: Plan, run: Commands) -> Iterator[Step]:
    yield _before_flags(
        run, "Apply the CiliumNodes before the flags", "agents have written the same podCIDRs there"
    )
    yield _blocks(plan, run, "Check that every node has its block", "BLOCKS:.spec.ipam.podCIDRs[*]")
    yield flags(run)
    yield agents(run, SAME_BLOCK)


def _to_kubernetes(plan: Plan, run: Commands, *, from_bystander: bool) -> Iterator[Step]:
    pod_cidrs = plan.cluster.patch_nodes == "podCIDRs"
    field = "podCIDRs" if pod_cidrs else "annotations"
    yield Step(
        key="controller-manager",
        title="kube-controller-manager must run with --allocate-node-cidrs=false before anything else",
        why="it would give Nodes podCIDRs of its own, which cannot be changed",
        where=Where.NODE,
        commands=(
            "sudo grep --quiet -e --allocate-node-cidrs=false /etc/kubernetes/manifests/kube-controller-manager.yaml",
        ),
    )
    yield _before_flags(run, f"Apply the {field} of Nodes before the flags", "agents do not read them yet")
    title = "Check that every Node has its block"
    if pod_cidrs:
        yield _blocks(plan, run, title, "BLOCKS:.spec.podCIDRs[*]", kind="nodes")
    else:
        yield Step(
            key="shown",
            title=title,
            commands=(run.columns("nodes", (), "NODE:.metadata.name", "BLOCKS:.metadata.annotations"),),
        )
    yield flags(run, from_bystander=from_bystander)
    yield agents(run, SAME_BLOCK)
    yield Step(
        key="leave-ciliumnodes",
        title="Leave the CiliumNodes as they are",
        why="they leave the tree, and their agents go on with them",
    )


def _to_multi_pool(old: Mode, plan: Plan, run: Commands, *, from_bystander: bool) -> Iterator[Step]:
    cluster = plan.cluster
    yield _before_flags(
        run,
        "Apply the CiliumPodIPPools before the seeds and the flags",
        f"in {old} mode nobody reads them yet",
    )
    yield Step(
        key="seeds",
        title="Apply the seeds before the flags, by hand and once, under another field manager",
        why="under ipamc they would take the podCIDRs away",
        commands=(run.seeds(f"{run.where}/rendered/seeds/"),),
        if_not="a conflict means that the node has other blocks already: compare with ipamc show",
    )
    yield _blocks(
        plan,
        run,
        "Check that every node has its block in both places",
        "BLOCKS:.spec.ipam.podCIDRs[*]",
        "POOLS:.spec.ipam.pools.allocated[*].cidrs[*]",
    )
    if cluster.bgp == "control-plane":
        yield Step(
            key="announce",
            title="Announce CiliumPodIPPools beside PodCIDRs before agents restart",
            why="in multi-pool mode Cilium announces no PodCIDR",
            where=Where.EDITOR,
            edit="a CiliumBGPAdvertisement of type CiliumPodIPPool beside the one of type PodCIDR; up to 1.15 podIPPoolSelector in the CiliumBGPPeeringPolicy",
        )
    yield flags(run, from_bystander=from_bystander)
    if cluster.shared_pools and all(line.pool == "default" for lines in plan.held.values() for line in lines):
        yield agents(
            run,
            "no drain: every block is in the pool default, where agents look for the addresses of running pods",
        )
        return
    nodes = sorted(plan.held)
    yield Step(
        key=NODE_BY_NODE,
        title="One node after the other: drain it, restart its agent, uncordon it",
        why="an agent looks for the addresses of running pods in the pool default only, and these blocks are in others",
        nodes=tuple(nodes),
    )


def flags(run: Commands, *, from_bystander: bool = False) -> Step:
    """Return the step that brings the flags into the cluster, by the owner of `cilium-config`.

    `from_bystander`: until now the operator ran with `--ipam=kubernetes`. Values that Helm reuses have it, and
    an operator that keeps it gives out nothing in any mode; so the list is emptied where it has to go.
    """
    cluster, where = run.cluster, f"{run.where}/rendered/cilium"
    if cluster.managed_by == "helm":
        leaves = from_bystander and not cluster.bystander
        and_more = ", rollOutCiliumPods: false and operator.extraArgs without --ipam=kubernetes"
        return Step(
            key="flags",
            title=f"Then the flags: helm upgrade with rendered/cilium/helm-values.yaml{and_more if leaves else ' and rollOutCiliumPods: false'}; the operator restarts by itself",
            why="reused values would keep that argument, and with it the operator gives out nothing; arguments of your own go into the list"
            if leaves
            else "",
            commands=(
                run.helm(
                    "--reuse-values",
                    run.values,
                    "--set=rollOutCiliumPods=false",
                    *(["--set-json=operator.extraArgs=[]"] if leaves else []),
                ),
            ),
            if_not=f"helm --namespace={cluster.namespace} rollback cilium, and look at what it says",
        )
    if cluster.managed_by == "kustomize":
        return Step(
            key="flags",
            title="Then the flags: build and apply your kustomization with rendered/cilium/component; the operator restarts by itself",
            why="if a pipeline does so at the merge, stop it until the steps above are done",
            where=Where.EDITOR,
            edit=f"components:\n- {where}/component",
        )
    argument = (
        ", with --ipam=kubernetes among its arguments"
        if cluster.bystander
        else ", without --ipam=kubernetes among its arguments"
    )
    return Step(
        key="flags",
        title=f"Then the operator, which reads the new cilium-config at its start{argument}",
        commands=(run.restart_operator,),
    )


def agents(run: Commands, why: str) -> Step:
    """Return the step that restarts all agents, one after the other."""
    return Step(
        key="agents",
        title="Then the agents",
        why=why,
        commands=(run.restart_agents,),
        if_not="an agent that does not start says in its log what it waits for",
    )


def _of_settings(before: Cluster, plan: Plan, run: Commands) -> Iterator[Step]:
    after = plan.cluster
    if before.bystander and after.operator_adopts:
        yield _before_flags(
            run,
            "Apply the CiliumNodes before the flags",
            "an operator that adopts gives a block to every CiliumNode without one",
        )
        yield _blocks(
            plan, run, "Check that every node of the inventory has its block", "BLOCKS:.spec.ipam.podCIDRs[*]"
        )
        step = flags(run, from_bystander=True)
        yield replace(step, why="; ".join(filter(None, (step.why, "agents do not restart"))))
    if before.operator_adopts and after.bystander:
        yield _listed("a bystander gives no blocks, and ipamc gives a block away that it does not know")
        yield replace(flags(run), why="agents do not restart")
    if (before.pinning, after.pinning) == ("pool", "none"):
        yield Step(
            key="prune",
            title="Delete the CiliumNodeConfigs",
            why="they win as long as they exist",
            commands=(f"{run.apply} --prune",),
        )
        yield agents(run, "new pods then get addresses of the pool default, and running pods keep theirs")
    if (before.pinning, after.pinning) == ("none", "pool"):
        yield Step(
            key="apply", title="Apply the CiliumNodeConfigs before agents restart", commands=(run.apply,)
        )
        yield agents(run, "new pods then get addresses of their node's pool, and running pods keep theirs")
    yield from _of_nodes(before, after)


def _of_nodes(before: Cluster, after: Cluster) -> Iterator[Step]:
    if before.patch_nodes == after.patch_nodes:
        return
    note = ""
    if after.patch_nodes == "podCIDRs":
        note = "podCIDRs of a Node are for good: from now on a node gets another block only if it is deleted and joins again"
    elif after.patch_nodes == "annotations" and after.mode is Mode.KUBERNETES:
        note = "annotations do not count on Nodes that have podCIDRs: those keep their blocks until they are deleted and join again"
    elif before.patch_nodes == "podCIDRs":
        note = "Nodes keep the podCIDRs that they have: nothing takes them away"
    if note:
        yield Step(key="note", title=note)
