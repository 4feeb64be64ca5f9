"""Rules about what the running cluster shows, against plan and lock, and about the Nodes of a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ipamc.lock.file import line_at
from ipamc.model.address_sets import overlaps
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic, Related, count, error, names, warning
from ipamc.model.lock import Line, Lock, State
from ipamc.model.plan import Plan, ShownBlock


def pod_cidrs_differ(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0503: a Node's `spec.podCIDRs` are the blocks that the lock holds for it.

    The field is immutable: the apiserver answers 422 to other values, or Cilium uses the old ones. In
    kubernetes mode a node gets another block only if it is drained, deleted and joined again, and if
    kube-controller-manager does not set the field first (IPC0504). In other modes this concerns clusters with
    `patchNodes: podCIDRs`.
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


def cilium_node_without_node(cluster: Cluster, unheld: Sequence[ShownBlock]) -> Iterator[Diagnostic]:
    """IPC0424: a CiliumNode without a node keeps its blocks.

    A CiliumNode was read whose node is not in the inventory. Its blocks count as taken: the operator books
    them until it collects the object. Add the node to the inventory, or delete the CiliumNode. Blocks of an
    `unlisted` pool are as they should be.
    """
    if not unheld:
        return
    nodes = {node.name for node in cluster.nodes}
    families = [family for pool in cluster.pools if pool.unlisted for family in pool.families.values()]
    unlisted = [cidr.block for family in families for cidr in family.ranges]
    found = [
        shown
        for shown in unheld
        if shown.node not in nodes and not any(block.contains(shown.block) for block in unlisted)
    ]
    if found:
        yield warning(
            "IPC0424",
            found[0].at,
            f"{count(len({shown.node for shown in found}), 'CiliumNode')} without a node in the inventory, blocks taken: "
            f"{names(f'{shown.node} ({shown.block})' for shown in found)}",
            help="add the node to the inventory, or kubectl delete ciliumnode",
        )


def several_blocks(cluster: Cluster, adopted: Sequence[ShownBlock]) -> Iterator[Diagnostic]:
    """IPC0425: a node shows one block a family where the mode gives it one.

    Cilium routes every podCIDR of a node, but gives pods addresses of the first one of a family only. ipamc
    does not guess which of several blocks a running node uses: leave the one in use, or name it in the lock.
    """
    if not cluster.mode.one_block:
        return
    by_family: dict[tuple[str, int], list[ShownBlock]] = defaultdict(list)
    for shown in adopted:
        by_family[shown.node, shown.block.family].append(shown)
    for (node, family), blocks in by_family.items():
        if len(blocks) > 1:
            yield error(
                "IPC0425",
                blocks[0].at,
                f"node {node} shows {len(blocks)} IPv{family} blocks where {cluster.mode} mode gives one: "
                f"{', '.join(str(shown.block) for shown in blocks)}",
                help="keep the block that its pods use, or use a larger block, or multi-pool mode",
            )


def shown_twice(adopted: Sequence[ShownBlock]) -> Iterator[Diagnostic]:
    """IPC0426: no two nodes show the same addresses.

    Two running nodes carry overlapping blocks: the cluster is broken already, and adopting both would write
    that down. Renumber one of them first.
    """
    for outer, inner in overlaps(adopted, lambda shown: shown.block):
        yield error(
            "IPC0426",
            inner.at,
            f"node {inner.node} shows {inner.block}, which overlaps {outer.block} of node {outer.node}",
            also=[Related(outer.at, f"{outer.node} shows {outer.block} here")],
            help="drain one of the two, delete its Node and CiliumNode, and let it join again",
        )


def already_given(lock: Lock, shown: ShownBlock, line: Line) -> Diagnostic:
    """IPC0423: a block that a running node shows is not another node's in the lock.

    The running cluster and the lock disagree about who has these addresses. The lock is not changed; find out
    which is right. A line that waits in quarantine can be released once the old node is really gone.
    """
    state = "quarantined, of" if line.since else "held by"
    way_out = (
        f"if {line.node} is really gone: ipamc lock {lock.cluster} --release {line.block}"
        if line.since
        else "find out which of the two nodes uses it; drain the other, delete its Node and CiliumNode, and let it join again"
    )
    return error(
        "IPC0423",
        shown.at,
        f"node {shown.node} shows {shown.block}, which overlaps {line.block} {state} {line.node}",
        also=[Related(line_at(lock, line, otherwise=shown.at), f"{state} {line.node} here")],
        help=way_out,
    )
