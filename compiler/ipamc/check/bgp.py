"""Rules about BGP: who announces the blocks to the fabric."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cilium.features import Capability
from ipamc.model.cilium.versions import can, since, text, until
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic, Related, error


def check_bgp(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield findings about `bgp`."""
    if cluster.bgp == "metallb":
        yield from metallb(cluster)
    if cluster.bgp == "control-plane":
        yield from control_plane(cluster)


def metallb(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0541: MetalLB in Cilium needs kubernetes or cluster-pool mode, and Cilium 1.16 or older."""
    at = cluster.field("spec", "bgp")
    version = Related(cluster.field("spec", "cilium", "version"), "the version is set here")
    if not can(cluster.cilium, Capability.METALLB):
        message = (
            f"bgp: metallb with Cilium {text(cluster.cilium)}: the last version with it is "
            f"{text(until(Capability.METALLB))}"
        )
        yield error("IPC0541", at, message, also=[version], help="use bgp: control-plane")
    elif not cluster.mode.one_block:
        message = f"bgp: metallb in {cluster.mode} mode: the agent does not start"
        also = [Related(cluster.field("spec", "ipam", "mode"), "the mode is set here")]
        fix = "use kubernetes or cluster-pool mode, or bgp: none"
        yield error("IPC0541", at, message, also=also, help=fix)
    elif _annotated(cluster):
        message = "bgp: metallb with patchNodes: annotations: it announces only the podCIDRs of Nodes"
        also = [Related(cluster.field("spec", "patchNodes"), "patchNodes is set here")]
        yield error("IPC0541", at, message, also=also, help="set patchNodes: podCIDRs")
    elif (
        cluster.mode is Mode.CLUSTER_POOL
        and cluster.patch_nodes != "podCIDRs"
        and not can(cluster.cilium, Capability.METALLB_CILIUM_NODE)
    ):
        message = (
            f"bgp: metallb in cluster-pool mode with Cilium {text(cluster.cilium)}: it announces the "
            "podCIDRs of Nodes, not of CiliumNodes"
        )
        yield error("IPC0541", at, message, also=[version], help="set patchNodes: podCIDRs")


def control_plane(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0542: the BGP control plane can announce the blocks in this mode and version."""
    at = cluster.field("spec", "bgp")
    mode = Related(cluster.field("spec", "ipam", "mode"), "the mode is set here")
    if cluster.mode is Mode.CRD:
        message = "bgp: control-plane in crd mode: Cilium announces no addresses there"
        fix = "use cluster-pool or multi-pool mode, or bgp: none"
        yield error("IPC0542", at, message, also=[mode], help=fix)
        return
    needed = Capability.BGP_POOL_ADVERTS if cluster.mode is Mode.MULTI_POOL else Capability.BGP_CONTROL_PLANE
    if not can(cluster.cilium, needed):
        message = (
            f"bgp: control-plane in {cluster.mode} mode with Cilium {text(cluster.cilium)}: it needs "
            f"{text(since(needed))} or newer"
        )
        also = [Related(cluster.field("spec", "cilium", "version"), "the version is set here")]
        yield error("IPC0542", at, message, also=also, help="use a newer Cilium, or bgp: none")
    elif _annotated(cluster) and not can(cluster.cilium, Capability.BGP_CILIUM_NODE):
        message = (
            f"bgp: control-plane with patchNodes: annotations and Cilium {text(cluster.cilium)}: before "
            f"{text(since(Capability.BGP_CILIUM_NODE))} it announces only the podCIDRs of Nodes"
        )
        also = [Related(cluster.field("spec", "patchNodes"), "patchNodes is set here")]
        yield error("IPC0542", at, message, also=also, help="set patchNodes: podCIDRs")


def _annotated(cluster: Cluster) -> bool:
    """Return whether the blocks of Nodes are in annotations, which only agents read."""
    return cluster.mode is Mode.KUBERNETES and cluster.patch_nodes == "annotations"
