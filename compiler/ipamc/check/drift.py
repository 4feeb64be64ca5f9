"""Rules about pins, and about the Nodes of a plan."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.diagnostics import Diagnostic, Related, count, error, names, warning
from ipamc.model.lock import State
from ipamc.model.plan import Plan


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
