"""What is done with nodes that are drained, so that they come up with another block: by mode, the same for every minor.

Node podCIDRs are immutable, so such a Node is deleted and joins again. A CiliumNode is deleted where somebody
else than ipamc wrote its block: an operator that gave it out books it on, and from 1.19 on writes it back.
tests/e2e/test_renumber.py runs these steps on real operators, and tests/e2e/test_runbook.py as they are printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from msgspec.structs import replace

from ipamc.model.cluster import Cluster, Mode
from ipamc.model.lock import Line
from ipamc.review.runbook.commands import Commands
from ipamc.review.runbook.common import restarted
from ipamc.review.runbook.values import Check, Step, Where

WELL_KNOWN = (
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
)
"""Labels that every kubelet sets by itself."""


def is_made_anew(cluster: Cluster) -> bool:
    """Return whether a Node is deleted when its node gets another block."""
    return cluster.patch_nodes == "podCIDRs"


def agents_read_nodes(cluster: Cluster) -> bool:
    """Return whether agents read `podCIDRs` of Nodes, so that nothing is left to do for the CiliumNode."""
    return cluster.mode is Mode.KUBERNETES and is_made_anew(cluster)


def joined_again(run: Commands, nodes: Sequence[str]) -> Iterator[Step]:
    """Yield the steps that delete drained Nodes and let them join again; the inventory is refreshed after it."""
    yield Step(
        key="save-node",
        title="Save the Nodes",
        why="labels and taints that were set by hand go with a Node",
        nodes=tuple(nodes),
        commands=tuple(
            f"{run.kubectl('get', 'node', node, '--output=yaml')} > {quote(node + '.saved.yaml')}"
            for node in nodes
        ),
    )
    yield Step(
        key="delete-node",
        title="Delete the Nodes",
        why="podCIDRs of a Node cannot be changed",
        nodes=tuple(nodes),
        commands=tuple(run.kubectl("delete", "node", node) for node in nodes),
    )
    yield Step(
        key="restart-kubelet",
        title="Restart their kubelets: they join again",
        where=Where.NODE,
        nodes=tuple(nodes),
        commands=("sudo systemctl restart kubelet",),
        check=Check(command=run.columns("nodes", nodes, "NODE:.metadata.name"), expect="\n".join(nodes)),
        if_not="a kubelet registers once: see its log on the node",
    )
    if labels := labels_of(run, nodes):
        yield Step(
            key="label-node",
            title="Give them the labels of the inventory, and the taints that you saved",
            why="pools and workloads select nodes by them",
            nodes=tuple(nodes),
            commands=labels,
        )


def labels_of(run: Commands, nodes: Sequence[str]) -> tuple[str, ...]:
    """Return how Nodes get the labels of the inventory again that their kubelets do not set."""
    known = {node.name: node.labels for node in run.cluster.nodes}
    found = []
    for node in nodes:
        labels = sorted(set(known.get(node, {}).items()))
        pairs = [f"{key}={value}" for key, value in labels if key not in WELL_KNOWN]
        found += [run.kubectl("label", "node", node, "--overwrite", *pairs)] if pairs else []
    return tuple(found)


def moved(run: Commands, blocks: Mapping[str, Sequence[Line]]) -> Iterator[Step]:
    """Yield the steps from the apply of new blocks to the restart of pods; `blocks` by node, () if not known."""
    yield from of_cilium_nodes(run, blocks)
    yield from restarted(run, sorted(blocks))


def of_cilium_nodes(run: Commands, blocks: Mapping[str, Sequence[Line]]) -> Iterator[Step]:
    """Yield why, when and how CiliumNodes are deleted before agents restart; nothing where they stay."""
    cluster, nodes = run.cluster, tuple(sorted(blocks))
    if agents_read_nodes(cluster):
        return
    delete = run.kubectl("delete", "ciliumnode", *nodes)
    if cluster.operator_adopts:
        yield Step(
            key="roll-out",
            title="Roll out cilium/ and restart the operator",
            why="the operator's list loses the old blocks, and ipamc ci apply refuses while it may give them out",
            only_if="cluster-pool-ipv4-cidr changes",
        )
    step = Step(
        key="delete-ciliumnode",
        title="Delete their CiliumNodes, and apply again",
        nodes=nodes,
        commands=(f"{delete} && {run.apply}",),
    )
    if cluster.mode is Mode.CLUSTER_POOL:
        why = "an operator wrote the podCIDRs, as of adopted nodes"
        yield replace(step, why=why, only_if="the apply is refused as a conflict")
    elif cluster.mode is Mode.CRD:
        yield replace(
            step, why="addresses that others wrote, as of adopted nodes, would stay beside the new ones"
        )
    elif cluster.own_pools:
        yield replace(
            step,
            title="Delete their CiliumNodes",
            why="each agent asks anew, and the operator gives what the node's CiliumPodIPPool has",
            commands=(delete,),
            if_not="a node that shows its old block again was deleted before the apply: delete its CiliumNode again",
        )
    elif cluster.shared_pools:
        yield seeded(run, blocks)


def seeded(run: Commands, blocks: Mapping[str, Sequence[Line]]) -> Step:
    """Return the step that deletes CiliumNodes and applies their seeds before anybody else gives them blocks."""
    return Step(
        key="seed",
        title="Delete their CiliumNodes, and apply their seeds at once",
        why="without its seed a node gets any block from the operator",
        nodes=tuple(sorted(blocks)),
        commands=tuple(
            f"{run.kubectl('delete', 'ciliumnode', '--ignore-not-found', node)} && {run.seed(node, lines)}"
            for node, lines in sorted(blocks.items())
            if lines
        ),
        if_not="the operator was quicker, and the CiliumNode has another block: do it again; if another node has "
        "the block meanwhile, the lock follows: refresh the inventory",
    )
