"""The order in which a change is brought to a running cluster: of settings, and of blocks that move.

With another `mode`, `operator` or `pinning`, what is read then must be there before the flags, because an operator or an agent that starts without it
takes or gives another block. tests/e2e/test_mode_change.py runs these orders on real operators; the pairs of
modes without such an order are refused (`check.mode_change`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import names
from ipamc.model.lock import Lock
from ipamc.model.plan import Plan
from ipamc.review.after_settle import after_apply

SEEDS = "ipamc-seeds"
"""The field manager of seeds. Under the one of the tree, the seeds would take a CiliumNode's podCIDRs away."""


def steps(lock: Lock, before: Cluster | None, plan: Plan) -> tuple[str, ...]:
    """Return the steps, each a sentence with its commands; () where no order matters.

    `lock` and `before` are of the base; `before` is None if its documents cannot be read.
    """
    after = plan.cluster
    if not lock.shards:
        return ()
    if lock.mode is not after.mode:
        return tuple(_of_mode(lock.mode, before, plan))
    return tuple(_of_settings(before, after)) if before else ()


def moves(cluster: Cluster, nodes: Sequence[str]) -> tuple[str, ...]:
    """Return the steps for nodes whose renumber is settled, and that are still to move; () for no nodes."""
    if not nodes:
        return ()
    return (
        f"drain {names(nodes)}, if that was not done before: kubectl drain NODE --ignore-daemonsets --delete-emptydir-data",
        "merge, and let ipamc ci apply run; podCIDRs of a Node cannot change, so nothing moves yet"
        if cluster.mode is Mode.KUBERNETES and cluster.patch_nodes == "podCIDRs"
        else "merge, and let ipamc ci apply write the new block; it withholds it from a node that still runs pods of the old one",
        *after_apply(cluster, nodes[0] if len(nodes) == 1 else "NODE"),
    )


def _of_mode(old: Mode, before: Cluster | None, plan: Plan) -> Iterator[str]:
    cluster = plan.cluster
    yield "between these steps restart no agent and no operator, and apply nothing else (a pipeline's apply refuses until the flags are there): in this order every node keeps its block"
    if before and before.operator_adopts:
        yield "list every node that is not in the inventory, with its CiliumNode: the new mode knows no block that is not in the lock"
    if cluster.mode is Mode.KUBERNETES:
        yield from _to_kubernetes(cluster)
    elif cluster.mode is Mode.MULTI_POOL:
        yield from _to_multi_pool(old, plan)
    else:
        yield from _to_cluster_pool(cluster)


def _to_cluster_pool(cluster: Cluster) -> Iterator[str]:
    yield f"CiliumNodes before the flags: ipamc ci apply {cluster.name} --before-flags; agents have written the same podCIDRs there"
    yield f"check that every node has its block: {_show('podCIDRs')}"
    yield _flags(cluster)
    yield f"{_restart(cluster)}; no drain: both modes give addresses out of the same block"


def _to_kubernetes(cluster: Cluster) -> Iterator[str]:
    field = "podCIDRs" if cluster.patch_nodes == "podCIDRs" else "annotations"
    column = ".spec.podCIDRs" if cluster.patch_nodes == "podCIDRs" else ".metadata.annotations"
    yield "kube-controller-manager must run with --allocate-node-cidrs=false before anything else"
    yield f"{field} of Nodes before the flags: ipamc ci apply {cluster.name} --before-flags; agents do not read them yet"
    yield f"check that every Node has its block: kubectl get nodes -o custom-columns=NODE:.metadata.name,BLOCKS:{column}"
    yield _flags(cluster)
    yield f"{_restart(cluster)}; no drain: both modes give addresses out of the same block"
    yield "leave the CiliumNodes as they are: they leave the tree, and their agents go on with them"


def _to_multi_pool(old: Mode, plan: Plan) -> Iterator[str]:
    cluster = plan.cluster
    yield f"CiliumPodIPPools before the seeds: ipamc ci apply {cluster.name} --before-flags; in {old} mode nobody reads them yet"
    yield f"seeds before the flags, by hand, once, and under another field manager (under ipamc they would take the podCIDRs away): kubectl apply --server-side --field-manager={SEEDS} -f rendered/seeds/"
    yield f"check that every node has its block in both: {_show('podCIDRs,POOLS:.spec.ipam.pools.allocated[*].cidrs')}"
    if cluster.bgp == "control-plane":
        yield "announce CiliumPodIPPools beside PodCIDRs before agents restart: in multi-pool mode Cilium announces no PodCIDR"
    yield _flags(cluster)
    if cluster.shared_pools and all(line.pool == "default" for lines in plan.held.values() for line in lines):
        yield f"{_restart(cluster)}; no drain: every block is in the pool default, where agents look for the addresses of running pods"
    else:
        yield f"node by node: drain it, restart its agent, uncordon it: kubectl -n {cluster.namespace} delete pod -l k8s-app=cilium --field-selector spec.nodeName=NODE; an agent looks for the addresses of running pods in the pool default only, and these blocks are in others"


def _flags(cluster: Cluster) -> str:
    """Say how the flags come into the cluster, by the owner of `cilium-config`."""
    if cluster.managed_by == "helm":
        return "then the flags: helm upgrade with rendered/cilium/helm-values.yaml and rollOutCiliumPods: false; the operator restarts by itself"
    if cluster.managed_by == "kustomize":
        return (
            "then the flags: build and apply your kustomization with rendered/cilium/component; the operator restarts by itself. "
            "If a pipeline does so at the merge, stop it until the steps above are done"
        )
    argument = (
        ", with --ipam=kubernetes among its arguments"
        if cluster.bystander
        else ", without --ipam=kubernetes among its arguments"
    )
    return f"then the operator, which reads the new cilium-config at its start{argument}: kubectl -n {cluster.namespace} rollout restart deployment/cilium-operator"


def _restart(cluster: Cluster) -> str:
    return f"then the agents: kubectl -n {cluster.namespace} rollout restart daemonset/cilium"


def _show(columns: str) -> str:
    return f"kubectl get ciliumnodes -o custom-columns=NODE:.metadata.name,BLOCKS:.spec.ipam.{columns}"


def _of_settings(before: Cluster, after: Cluster) -> Iterator[str]:
    yield from _of_operator(before, after)
    yield from _of_pinning(before, after)
    yield from _of_nodes(before, after)


def _of_operator(before: Cluster, after: Cluster) -> Iterator[str]:
    if before.bystander and after.operator_adopts:
        yield f"CiliumNodes before the flags: ipamc ci apply {after.name} --before-flags; an operator that adopts gives a block to every CiliumNode without one"
        yield f"check that every node of the inventory has its block: {_show('podCIDRs')}"
        yield f"{_flags(after)}; agents do not restart"
    if before.operator_adopts and after.bystander:
        yield "list every node that is not in the inventory, with its CiliumNode, and compile again: a bystander gives no blocks, and ipamc gives a block away that it does not know"
        yield f"{_flags(after)}; agents do not restart"


def _of_pinning(before: Cluster, after: Cluster) -> Iterator[str]:
    if (before.pinning, after.pinning) == ("pool", "none"):
        yield f"CiliumNodeConfigs are to be deleted, because they win as long as they exist: ipamc ci apply {after.name} --prune"
        yield f"{_restart(after)}; new pods then get addresses of the pool default, and running pods keep theirs"
    if (before.pinning, after.pinning) == ("none", "pool"):
        yield f"CiliumNodeConfigs before agents restart: ipamc ci apply {after.name}"
        yield f"{_restart(after)}; new pods then get addresses of their node's pool, and running pods keep theirs"


def _of_nodes(before: Cluster, after: Cluster) -> Iterator[str]:
    if before.patch_nodes == after.patch_nodes:
        return
    if after.patch_nodes == "podCIDRs":
        yield "podCIDRs of a Node are for good: from now on a node gets another block only if it is deleted and joins again"
    elif after.patch_nodes == "annotations" and after.mode is Mode.KUBERNETES:
        yield "annotations do not count on Nodes that have podCIDRs: those keep their blocks until they are deleted and join again"
    elif before.patch_nodes == "podCIDRs":
        yield "Nodes keep the podCIDRs that they have: nothing takes them away"
