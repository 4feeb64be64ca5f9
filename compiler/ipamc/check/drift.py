"""Rules that compare the live cluster with the plan."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Diagnostic, Related, count, error, names, warning
from ipamc.model.lock import State
from ipamc.model.plan import Plan


def pod_cidrs_differ(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0503: a Node's `spec.podCIDRs` are the blocks that the lock holds for it.

    The field is immutable: the apiserver answers 422 to other values, or Cilium uses the old ones. In
    kubernetes mode a node gets another block only if it is drained, deleted and joined again. In other modes
    this concerns clusters with `patchNodes: podCIDRs`.
    """
    cluster = plan.cluster
    if cluster.mode is not Mode.KUBERNETES and cluster.patch_nodes != "podCIDRs":
        return
    pending = {line.node for line in plan.lock.lines if line.state is State.PENDING}
    for node in cluster.nodes:
        if not node.pod_cidrs:
            continue
        lines = plan.held.get(node.name, ())
        wanted = tuple(
            line.block for family in cluster.families for line in lines if line.block.family == family
        )
        if wanted != node.pod_cidrs:
            shown = ", ".join(map(str, node.pod_cidrs))
            make = warning if node.name in pending else error
            yield make(
                "IPC0503",
                node.at,
                f"node {node.name} has podCIDRs {shown}, but the lock holds {', '.join(map(str, wanted)) or 'none'}; the field is immutable",
                help="write ipFamilies in the order of the Nodes' podCIDRs"
                if sorted(wanted) == sorted(node.pod_cidrs)
                else f"drain {node.name}, run kubectl delete node {node.name}, and let it join again",
            )


def cilium_node_differs(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0513: a CiliumNode shows the blocks that the lock holds for its node.

    In cluster-pool and crd mode the CiliumNode's `podCIDRs` are the blocks in use. If other blocks are
    applied to a running node, its agent ignores them until it restarts, and from 1.19 on the operator reverts
    them.
    """
    cluster = plan.cluster
    if cluster.mode not in {Mode.CLUSTER_POOL, Mode.CRD}:
        return
    known = {node.name: node for node in cluster.nodes}
    pending = {line.node for line in plan.lock.lines if line.state is State.PENDING}
    for seen in cluster.cilium_nodes:
        shown = sorted(block for block, _ in seen.blocks)
        held = sorted(line.block for line in plan.held.get(seen.name, ()))
        if seen.name in known and shown and shown != held:
            make = warning if seen.name in pending else error
            yield make(
                "IPC0513",
                seen.at,
                f"CiliumNode {seen.name} shows {', '.join(map(str, shown))}, but the lock holds {', '.join(map(str, held)) or 'nothing'}",
                also=[Related(known[seen.name].at, "the node is here")],
                help=f"drain {seen.name}, run kubectl delete ciliumnode {seen.name}, apply, and restart its agent; if the CiliumNode is out of date, remove it here",
            )


def several_pod_cidrs(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0505: a node whose Node object is rendered has one block of each family.

    `spec.podCIDRs` and Cilium's annotations allow one CIDR of each family (the apiserver: "may specify no
    more than one CIDR for each IP family").
    """
    if plan.cluster.patch_nodes == "none" or plan.cluster.mode.one_block:
        return
    several = [
        name for name, lines in plan.held.items() if len({line.block.family for line in lines}) < len(lines)
    ]
    if several:
        yield error(
            "IPC0505",
            plan.cluster.field("spec", "patchNodes"),
            f"{count(len(several), 'node')} with several blocks of one family, which patchNodes: {plan.cluster.patch_nodes} does not allow: {names(several)}",
            help="set patchNodes: none",
        )


def pin_not_held(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0309: a pinned node holds another block.

    A pin applies when a node gets a block; a node that holds another block keeps it. `ipamc lock --renumber
    NODE` moves it to its pin.
    """
    inventory = {node.name for node in plan.cluster.nodes}
    for pool in plan.cluster.pools:
        for name, pins in sorted(pool.pins.items()):
            blocks = {line.block for line in plan.held.get(name, ())} | {
                line.block for line in plan.lock.lines if line.state is State.PENDING and line.node == name
            }
            for pin in pins:
                others = sorted(block for block in blocks if block.family == pin.block.family)
                if name in inventory and others and pin.block not in blocks:
                    yield warning(
                        "IPC0309",
                        pin.at,
                        f"node {name} is pinned to {pin.block} but holds {', '.join(map(str, others))}",
                        help=f"move the node: ipamc lock {plan.cluster.name} --renumber {name}",
                    )


def node_without_uid(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0554: a node whose Node object is rendered has a uid.

    With `metadata.uid` the apiserver refuses to create a Node and to change a re-created one; without it a
    typo in a name creates a Node. Export the inventory with `kubectl get nodes -o yaml`, mark nodes that do
    not exist yet `planned: true`, or set `output.nodeObjects: create` if Nodes are to be created.
    """
    cluster = plan.cluster
    if cluster.patch_nodes == "none" or cluster.node_objects == "create":
        return
    without = [node for node in cluster.nodes if not node.uid and not node.planned and node.name in plan.held]
    if without:
        yield error(
            "IPC0554",
            without[0].at,
            f"{count(len(without), 'node')} without a uid, which rendered Node objects need: {names(node.name for node in without)}",
            also=[Related(cluster.field("spec", "patchNodes"), f"patchNodes is {cluster.patch_nodes}")],
            help="run kubectl get nodes -o yaml > nodes.yaml, or write planned: true for future nodes, or output: {nodeObjects: create}",
        )
