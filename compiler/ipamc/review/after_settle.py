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
    return (
        f"next: compile, merge and apply this{each}; the apply may fail for the node until step 1 is done",
        *(f"{number}. {step}" for number, step in enumerate(_steps(cluster, node), 1)),
    )


def _steps(cluster: Cluster, node: str) -> Iterator[str]:
    if cluster.mode is Mode.KUBERNETES and cluster.patch_nodes == "podCIDRs":
        yield f"kubectl delete node {node}, and restart its kubelet: podCIDRs cannot be changed, so it joins again"
        yield f"export the inventory again (kubectl get nodes -o yaml), then ipamc compile {cluster.name}, merge and apply"
        return
    if cluster.mode is not Mode.KUBERNETES:
        yield f"kubectl delete ciliumnode {node}{_then(cluster)}"
    yield f"kubectl -n {cluster.namespace} delete pod -l k8s-app=cilium --field-selector spec.nodeName={node}: agents read their block at their start"
    yield f"kubectl delete pods -A --field-selector spec.nodeName={node}, once the agent is ready: DaemonSets' pods, which a drain leaves, have addresses of the old block"
    yield f"kubectl uncordon {node}"


def _then(cluster: Cluster) -> str:
    """Return what follows the deletion of a CiliumNode, and why it is deleted."""
    if cluster.own_pools:
        return ": the agent asks anew, and the operator gives what the node's CiliumPodIPPool has"
    if cluster.shared_pools:
        return ", and apply its document of rendered/seeds/ at once: else the operator gives it any block"
    again = f" && ipamc ci apply {cluster.name}"
    if cluster.mode is Mode.CRD:
        return f"{again}: addresses that others wrote would stay beside the new ones"
    if not cluster.operator_adopts:
        return f"{again}: podCIDRs that an operator wrote once are not changed by an apply"
    return f"{again}: as long as the operator knows the CiliumNode it books the old block, and from 1.19 on writes it back"
