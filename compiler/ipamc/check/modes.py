"""Rules about versions, modes, block sizes and BGP that need no plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipamc.check.pools import ipv6_too_wide
from ipamc.model.cidr import BITS
from ipamc.model.cilium.operator_list import longest_prefix, sizes_of
from ipamc.model.cilium.support import FIRST, LAST, READ_AT, Capability
from ipamc.model.cilium.versions import can, since, text, until, waits_for_agent
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic, Related, error, note, several, warning
from ipamc.model.limits import LEAST_BITS
from ipamc.model.lock import Line


def check_modes(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield findings about the Cluster document with its pools and nodes."""
    yield from unknown_version(cluster)
    yield from assumed_version(cluster)
    yield from family_without_pool(cluster)
    yield from adopt_without_unlisted(cluster)
    yield from unlisted_elsewhere(cluster)
    yield from field_of_another_mode(cluster)
    yield from crd_tunnel(cluster)
    yield from tiny_blocks(cluster)
    if not cluster.admission.assign:
        yield from planned_before_do_not_gc(cluster)
        yield from not_rendered_yet(cluster)
    yield from ipv6_too_wide(cluster, {6: mask} if (mask := longest_prefix(cluster, 6)) else {})
    yield from controller_manager(cluster)
    yield from flag_by_hand(cluster)


def unknown_version(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0501: the Cilium version is one that ipamc supports."""
    at = cluster.field("spec", "cilium", "version")
    version, last, known = text(cluster.cilium), text(LAST), f"supported: {text(FIRST)} to {text(LAST)}"
    lowest = "write the lowest minor that runs in the cluster"
    if cluster.cilium < FIRST:
        yield error("IPC0501", at, f"Cilium {version} is not supported ({known})", help=lowest)
    elif cluster.cilium > LAST and cluster.assume and not FIRST <= cluster.assume <= LAST:
        message = f'assume: "{text(cluster.assume)}" is not supported ({known})'
        yield error("IPC0501", cluster.field("spec", "cilium", "assume"), message, help=f'write "{last}"')
    elif cluster.cilium > LAST:
        message = f"Cilium {version} is unknown ({known}, checked up to {READ_AT[LAST[1]]})"
        assume = f'write assume: "{last}" beside version, or --assume {last} for one run'
        yield error("IPC0501", at, message, help=f"{lowest}; or treat it as {last}: {assume}")


def assumed_version(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0507: `assume` treats an unknown Cilium version as a known one."""
    if cluster.written:
        message = f"Cilium {text(cluster.written)} is unknown and treated as {text(cluster.cilium)}"
        fix = "read its upgrade notes, and check operator-status of the CiliumNodes after the first apply"
        yield warning("IPC0507", cluster.field("spec", "cilium", "version"), message, help=fix)


def family_without_pool(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0511: in cluster-pool and crd mode, every IP family of the cluster has a pool."""
    if cluster.mode not in {Mode.CLUSTER_POOL, Mode.CRD}:
        return
    for index, family in enumerate(cluster.families):
        if not any(family in pool.families for pool in cluster.pools):
            message = f"IPv{family} is in ipFamilies, but no pool has an IPv{family} range"
            fix = f"add a pool with an IPv{family} range, or remove IPv{family} from ipFamilies"
            yield error("IPC0511", cluster.field("spec", "ipFamilies") / index, message, help=fix)


def adopt_without_unlisted(cluster: Cluster, lines: Iterable[Line] = ()) -> Iterator[Diagnostic]:
    """IPC0512: `operator: adopt` needs an `unlisted` pool with the operator's block size."""
    if not cluster.operator_adopts:
        return
    at = cluster.field("spec", "ipam", "operator")
    for family in cluster.families:
        unlisted = [pool for pool in cluster.pools if pool.unlisted and family in pool.families]
        if not unlisted:
            message = f"operator: adopt needs an IPv{family} pool with unlisted: true"
            fix = "add a native IPPool with unlisted: true, or use operator: bystander"
            yield error("IPC0512", at, message, help=fix)
        mask = longest_prefix(cluster, family, lines)
        for pool in unlisted:
            part = pool.families[family]
            if mask and part.block_size != mask:
                size = f"blockSize {part.block_size}"
                message = f'{size} of unlisted pool "{pool.name}" does not match the operator\'s mask {mask}'
                also, fix = [Related(at, "the operator hands out blocks here")], f"set blockSize: {mask}"
                yield error("IPC0512", part.at / "blockSize", message, also=also, help=fix)


def unlisted_elsewhere(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0221: an `unlisted` pool needs cluster-pool mode with `operator: adopt`."""
    if cluster.operator_adopts:
        return
    for pool in cluster.pools:
        if pool.unlisted:
            gives = f"no operator hands out its blocks in {cluster.mode} mode with operator"
            message = f'pool "{pool.name}" has unlisted: true, but {gives}: {cluster.operator}'
            fix = "remove unlisted, or use cluster-pool mode with operator: adopt"
            yield error("IPC0221", pool.at / "spec" / "unlisted", message, help=fix)


def field_of_another_mode(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0546: fields of `spec.ipam` apply to the mode that is set."""
    of_others = (
        ("operator", cluster.operator, Mode.CLUSTER_POOL, cluster.operator == "adopt"),
        ("pinning", cluster.pinning, Mode.MULTI_POOL, cluster.pinning == "node"),
        ("autoCreate", ", ".join(cluster.auto_create), Mode.MULTI_POOL, bool(cluster.auto_create)),
    )
    for name, value, mode, is_set in of_others:
        if is_set and cluster.mode is not mode:
            at = cluster.field("spec", "ipam", name)
            message = f"{name}: {value} has no effect in {cluster.mode} mode: it is for {mode} mode"
            fix = f"remove {name}, or set mode: {mode}"
            yield warning("IPC0546", at, message, also=[cluster.mode_here], help=fix)


def crd_tunnel(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0532: crd mode has no tunnel routing."""
    if cluster.mode is Mode.CRD and cluster.routing_mode == "tunnel":
        at = cluster.field("spec", "cilium", "routingMode")
        message = "routingMode: tunnel does not work in crd mode, which supports only native routing"
        yield error("IPC0532", at, message, help="set routingMode: native")


def tiny_blocks(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0552: blocks of one or two addresses need Cilium 1.17."""
    if cluster.mode is Mode.CRD or can(cluster.cilium, Capability.TINY_BLOCKS):
        return
    first = text(since(Capability.TINY_BLOCKS))
    for pool in cluster.pools:
        for family in pool.families:
            for size, at in sizes_of(pool, family):
                if size > BITS[family] - LEAST_BITS:
                    message = f'/{size} of pool "{pool.name}" has no usable address before Cilium {first}'
                    fix = f"use /{BITS[family] - LEAST_BITS} or a larger block"
                    yield error("IPC0552", at, message, also=[cluster.version_here], help=fix)


def planned_before_do_not_gc(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0553: with `operator: adopt`, planned nodes need Cilium 1.18."""
    planned = [node for node in cluster.nodes if waits_for_agent(cluster, node)]
    if planned and cluster.operator_adopts:
        what = f"with operator: adopt, which needs Cilium {text(since(Capability.DO_NOT_GC))} or newer"
        message = several([node.name for node in planned], "planned node", what)
        also = [Related(cluster.field("spec", "ipam", "operator"), "the operator hands out blocks here")]
        fix = "use operator: bystander, or remove the planned nodes until they join"
        yield error("IPC0553", planned[0].at / "planned", message, also=also, help=fix)


def not_rendered_yet(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0568: before Cilium 1.18, planned nodes get their blocks after they join."""
    if cluster.mode not in {Mode.CLUSTER_POOL, Mode.CRD} or cluster.operator_adopts:
        return
    planned = [node for node in cluster.nodes if waits_for_agent(cluster, node)]
    if planned:
        older = f"operators before Cilium {text(since(Capability.DO_NOT_GC))}"
        because = f"because {older} delete a CiliumNode without a Node"
        gets = "gets its block at the first apply after it joins"
        get = "get their blocks at the first apply after they join"
        what = f"{gets if len(planned) == 1 else get}, {because}"
        message = several([node.name for node in planned], "planned node", what)
        joined = f"when they have joined: ipamc apply {cluster.name}"
        fix = f"{joined}; where Argo CD or Flux applies, refresh, compile and merge then"
        found = note("IPC0568", planned[0].at / "planned", message, also=[cluster.version_here], help=fix)
        yield found.about(node.name for node in planned)


def controller_manager(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0504: kube-controller-manager does not set podCIDRs of Nodes if ipamc sets them."""
    gives = any(pool.follows or not pool.disabled for pool in cluster.pools)
    if gives and (cluster.mode is Mode.KUBERNETES or cluster.patch_nodes == "podCIDRs"):
        keys = ("ipam", "mode") if cluster.mode is Mode.KUBERNETES else ("patchNodes",)
        message = "kube-controller-manager must run with --allocate-node-cidrs=false"
        arguments = '{extraArgs: [{name: allocate-node-cidrs, value: "false"}]}'
        fix = f"with kubeadm write controllerManager: {arguments}"
        yield note("IPC0504", cluster.field("spec", *keys), message, help=fix)


def flag_by_hand(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0515: with `operator: bystander` the operator must run with `--ipam=kubernetes`."""
    if cluster.bystander and cluster.managed_by == "none":
        message = "cilium-operator must run with --ipam=kubernetes; with managedBy: none you must set it"
        edit = f"kubectl -n {cluster.namespace} edit deployment cilium-operator"
        fix = f"run {edit}, and add --ipam=kubernetes to args"
        yield note("IPC0515", cluster.field("spec", "ipam", "operator"), message, help=fix)


def metallb(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0541: MetalLB in Cilium needs kubernetes or cluster-pool mode, and Cilium 1.16 or older."""
    version, also, fix = text(cluster.cilium), cluster.version_here, "set patchNodes: podCIDRs"
    adopted = cluster.mode is Mode.CLUSTER_POOL and cluster.patch_nodes != "podCIDRs"
    if not can(cluster.cilium, Capability.METALLB):
        problem = f"with Cilium {version}: only {text(until(Capability.METALLB))} and older have MetalLB"
        fix = "use bgp: control-plane"
    elif not cluster.mode.one_block:
        problem, also = f"in {cluster.mode} mode: the agent does not start", cluster.mode_here
        fix = "use kubernetes or cluster-pool mode, or bgp: none"
    elif _annotated(cluster):
        problem = "with patchNodes: annotations: it announces only the podCIDRs of Nodes"
        also = Related(cluster.field("spec", "patchNodes"), "patchNodes is set here")
    elif adopted and not can(cluster.cilium, Capability.METALLB_CILIUM_NODE):
        mode = f"in cluster-pool mode with Cilium {version}"
        problem = f"{mode}: it announces the podCIDRs of Nodes, not of CiliumNodes"
    else:
        return
    yield error("IPC0541", cluster.field("spec", "bgp"), f"bgp: metallb {problem}", also=[also], help=fix)


def control_plane(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0542: the BGP control plane can announce blocks in the cluster's mode and version."""
    version, also = text(cluster.cilium), cluster.version_here
    needed = Capability.BGP_POOL_ADVERTS if cluster.mode is Mode.MULTI_POOL else Capability.BGP_CONTROL_PLANE
    if cluster.mode is Mode.CRD:
        problem, also = "in crd mode: Cilium announces no addresses there", cluster.mode_here
        fix = "use cluster-pool or multi-pool mode, or bgp: none"
    elif not can(cluster.cilium, needed):
        problem = f"in {cluster.mode} mode with Cilium {version}: it needs {text(since(needed))} or newer"
        fix = "use a newer Cilium, or bgp: none"
    elif _annotated(cluster) and not can(cluster.cilium, Capability.BGP_CILIUM_NODE):
        first = text(since(Capability.BGP_CILIUM_NODE))
        before = f"with patchNodes: annotations and Cilium {version}: before {first}"
        problem, fix = f"{before} it announces only the podCIDRs of Nodes", "set patchNodes: podCIDRs"
        also = Related(cluster.field("spec", "patchNodes"), "patchNodes is set here")
    else:
        return
    at, message = cluster.field("spec", "bgp"), f"bgp: control-plane {problem}"
    yield error("IPC0542", at, message, also=[also], help=fix)


def _annotated(cluster: Cluster) -> bool:
    """Return whether the blocks of Nodes are in annotations, which only agents read."""
    return cluster.mode is Mode.KUBERNETES and cluster.patch_nodes == "annotations"
