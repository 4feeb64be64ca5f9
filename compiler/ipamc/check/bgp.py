"""Rules about who tells the fabric where the blocks are."""

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
    """IPC0541: MetalLB in Cilium announces podCIDRs in kubernetes and cluster-pool mode, up to Cilium 1.16.

    Other modes end the agent at start, and 1.17 removed it. In kubernetes mode it reads the podCIDRs of Nodes and never their annotations. Before 1.12 it
    does so in cluster-pool mode too (#18852): the routes would be wrong unless Nodes carry the same blocks (`patchNodes: podCIDRs`).
    """
    at = cluster.field("spec", "bgp")
    version = Related(
        cluster.field("spec", "cilium", "version"), f"Cilium {text(cluster.cilium)} is named here"
    )
    if not can(cluster.cilium, Capability.METALLB):
        yield error(
            "IPC0541",
            at,
            f"bgp: metallb with Cilium {text(cluster.cilium)}, which had it until {text(until(Capability.METALLB))}",
            also=[version],
            help="use bgp: control-plane",
        )
    elif not cluster.mode.one_block:
        yield error(
            "IPC0541",
            at,
            f"bgp: metallb in {cluster.mode} mode, where the agent does not start with it",
            also=[Related(cluster.field("spec", "ipam", "mode"), "the mode is set here")],
            help="use kubernetes or cluster-pool mode",
        )
    elif _annotated(cluster):
        yield error(
            "IPC0541",
            at,
            "bgp: metallb with patchNodes: annotations, and it announces the Nodes' podCIDRs",
            also=[Related(cluster.field("spec", "patchNodes"), "the Nodes get annotations here")],
            help="set patchNodes: podCIDRs",
        )
    elif (
        cluster.mode is Mode.CLUSTER_POOL
        and cluster.patch_nodes != "podCIDRs"
        and not can(cluster.cilium, Capability.METALLB_CILIUM_NODE)
    ):
        yield error(
            "IPC0541",
            at,
            f"bgp: metallb in cluster-pool mode with Cilium {text(cluster.cilium)}, which announces the Nodes' podCIDRs and not the CiliumNodes'",
            also=[version],
            help="set patchNodes: podCIDRs",
        )


def control_plane(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0542: the BGP control plane has something to announce in this mode and version.

    `PodCIDR` adverts work in kubernetes and cluster-pool mode only, from Cilium 1.12 on; in multi-pool mode pools are announced with
    `CiliumPodIPPool` adverts, from 1.15 on; in crd mode nothing is. In kubernetes mode it is the Nodes' podCIDRs up to 1.14, and what CiliumNodes say from
    1.15 on: before, blocks in annotations are not announced.
    """
    at = cluster.field("spec", "bgp")
    mode = Related(cluster.field("spec", "ipam", "mode"), "the mode is set here")
    if cluster.mode is Mode.CRD:
        yield error(
            "IPC0542",
            at,
            "bgp: control-plane in crd mode, where PodCIDR adverts are off",
            also=[mode],
            help="use cluster-pool or multi-pool mode, or bgp: none",
        )
        return
    needed = Capability.BGP_POOL_ADVERTS if cluster.mode is Mode.MULTI_POOL else Capability.BGP_CONTROL_PLANE
    if not can(cluster.cilium, needed):
        yield error(
            "IPC0542",
            at,
            f"bgp: control-plane in {cluster.mode} mode with Cilium {text(cluster.cilium)}, which can do it from {text(since(needed))} on",
            also=[Related(cluster.field("spec", "cilium", "version"), "the version is named here")],
            help="name a newer version, or use bgp: none",
        )
    elif _annotated(cluster) and not can(cluster.cilium, Capability.BGP_CILIUM_NODE):
        yield error(
            "IPC0542",
            at,
            f"bgp: control-plane with patchNodes: annotations and Cilium {text(cluster.cilium)}, which announces the Nodes' podCIDRs, "
            f"and from {text(since(Capability.BGP_CILIUM_NODE))} on the CiliumNodes'",
            also=[Related(cluster.field("spec", "patchNodes"), "the Nodes get annotations here")],
            help="set patchNodes: podCIDRs",
        )


def _annotated(cluster: Cluster) -> bool:
    """Tell whether Nodes have their blocks in annotations, where agents alone look for them."""
    return cluster.mode is Mode.KUBERNETES and cluster.patch_nodes == "annotations"
