"""What is left to do for a node whose renumber was settled, by mode; the same for every minor.

tests/e2e/test_renumber.py runs the commands of each mode on real operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import names


def after_settle(cluster: Cluster, nodes: Sequence[str]) -> tuple[str, ...]:
    """Return the steps for drained nodes, each a command and why, in order; () for no nodes.

    They come after the lock and what it renders were merged and applied.
    """
    if not nodes:
        return ()
    node = nodes[0] if len(nodes) == 1 else "NODE"
    each = f", then for each of {names(nodes)}" if len(nodes) > 1 else ""
    steps = enumerate(after_apply(cluster, node), 1)
    return (f"next: compile, merge and apply this{each}:", *(f"{number}. {step}" for number, step in steps))


def after_apply(cluster: Cluster, node: str) -> Iterator[str]:
    """Yield the steps for a drained node, after its new block was applied."""
    if cluster.patch_nodes == "podCIDRs":
        yield f"kubectl delete node {node}, and restart its kubelet: podCIDRs cannot be changed, so it joins again"
        yield f"export the inventory again (kubectl get nodes -o yaml), then ipamc compile {cluster.name}, merge and apply"
    if cluster.mode is Mode.KUBERNETES and cluster.patch_nodes == "podCIDRs":
        return
    yield from _of_cilium_node(cluster, node)
    yield f"kubectl -n {cluster.namespace} delete pod -l k8s-app=cilium --field-selector spec.nodeName={node}: agents read their block at their start"
    yield f"kubectl delete pods -A --field-selector spec.nodeName={node}, once the agent is ready: DaemonSets' pods, which a drain leaves, have addresses of the old block"
    yield f"kubectl uncordon {node}"


def _of_cilium_node(cluster: Cluster, node: str) -> Iterator[str]:
    """Yield why and when the CiliumNode is deleted before the agent restarts."""
    delete = f"kubectl delete ciliumnode {node}"
    again = f"{delete} && ipamc ci apply {cluster.name}"
    if cluster.operator_adopts:
        yield "roll out cilium/ and restart the operator, if cluster-pool-ipv4-cidr changes: it loses the old block, and ipamc ci apply refuses while the operator may give that out"
    if cluster.mode is Mode.CLUSTER_POOL:
        yield f"{again}, if the apply is refused as a conflict: an operator wrote the podCIDRs, as of adopted nodes"
    elif cluster.mode is Mode.CRD:
        yield f"{again}: addresses that others wrote, as of adopted nodes, would stay beside the new ones"
    elif cluster.own_pools:
        yield f"{delete}: the agent asks anew, and the operator gives what the node's CiliumPodIPPool has"
    elif cluster.shared_pools:
        yield f"{delete}, and apply its document of rendered/seeds/ at once: else the operator gives it any block"
