"""Rules about versions, modes and block sizes that need no plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipamc.check.pools import ipv6_too_wide
from ipamc.model.cidr import BITS
from ipamc.model.cilium.features import FIRST, LAST, Capability
from ipamc.model.cilium.operator_list import longest_prefix, sizes_of
from ipamc.model.cilium.support import READ_AT
from ipamc.model.cilium.versions import can, since, text, waits_for_agent
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic, Related, count, error, names, note, warning
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
    yield from planned_before_do_not_gc(cluster)
    yield from not_rendered_yet(cluster)
    yield from ipv6_too_wide(cluster, {6: mask} if (mask := longest_prefix(cluster, 6)) else {})
    yield from controller_manager(cluster)
    yield from flag_by_hand(cluster)


def unknown_version(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0501: the Cilium version is one that ipamc supports.

    1.11 to 1.20 are supported; the newest whose source was read is 1.20.2. Of 1.21 only plans are known
    (CiliumPodIPPool `cilium.io/v2` with `reservedRanges`). The version in the Cluster is the lowest minor
    that runs.

    Why: the rendered manifests depend on what a minor does with them. In one that was not examined a field
    may be gone, or mean something else.

    Run: where you have read its upgrade notes, and what `ipamc explain versions` says of 1.20 still holds,
    let it be taken for 1.20: `assume: "1.20"` beside the version, which every verb and pipeline follows, or
    `ipamc compile CLUSTER --assume 1.20` for one run.
    """
    at = cluster.field("spec", "cilium", "version")
    known = f"{text(FIRST)} to {text(LAST)}"
    if cluster.cilium > LAST:
        if cluster.assume and not FIRST <= cluster.assume <= LAST:
            at, wrong = cluster.field("spec", "cilium", "assume"), text(cluster.assume)
            yield error(
                "IPC0501",
                at,
                f"Cilium {wrong} is not known either: {known} are",
                help=f'write "{text(LAST)}"',
            )
            return
        yield error(
            "IPC0501",
            at,
            f"Cilium {text(cluster.cilium)} is not known: {known} are, and {READ_AT[LAST[1]]} is the newest that was read",
            help=f'write the lowest minor that runs in the cluster; or take it for {text(LAST)}: assume: "{text(LAST)}" beside version, or --assume {text(LAST)} for one run',
        )
    elif cluster.cilium < FIRST:
        yield error(
            "IPC0501",
            at,
            f"Cilium {text(cluster.cilium)} is not supported: {known} are",
            help="write the lowest minor that runs in the cluster",
        )


def assumed_version(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0507: a Cilium that ipamc does not know is taken for one that it knows.

    `assume` in the Cluster, or `--assume`, says so.

    Why: nothing was run or read of the newer minor. The manifests are those of the other one, and so are
    all rules: what is accepted here may be refused there, or mean something else.

    Run: try them on a cluster where nothing can be lost, and after the first apply look for errors:
    `kubectl get ciliumnodes -o yaml | grep error`. Take `assume` away when ipamc knows the minor: `ipamc
    explain versions` lists those that it knows.
    """
    if cluster.written:
        yield warning(
            "IPC0507",
            cluster.field("spec", "cilium", "version"),
            f"Cilium {text(cluster.written)} is not known, and taken for {text(cluster.cilium)}",
            help="read its upgrade notes, and look at operator-status of the CiliumNodes after the first apply",
        )


def family_without_pool(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0511: in cluster-pool and crd mode every family of the cluster has a pool.

    Other modes have rules of their own: for the default pool in multi-pool mode (IPC0526), for each node in
    kubernetes mode.

    Why: an agent waits for ever for an address of each family: its node starts no pods. In cluster-pool
    mode the operator does not even start without CIDRs of an enabled family (`cluster-pool-ipv6-cidr must
    be provided`).

    Run: add the family to a pool, such as `ipv6: {cidrs: ["fd00:a::/104"], blockSize: 120}`, or take it out
    of `ipFamilies`. Then `ipamc compile CLUSTER`. In a cluster whose nodes run, set `ipFamilies` back
    first: `ipamc runbook CLUSTER --change dual-stack` prints the steps that bring them a second family.
    """
    if cluster.mode not in {Mode.CLUSTER_POOL, Mode.CRD}:
        return
    for index, family in enumerate(cluster.families):
        if not any(family in pool.families for pool in cluster.pools):
            yield error(
                "IPC0511",
                cluster.field("spec", "ipFamilies") / index,
                f"IPv{family} is in ipFamilies, but no pool has an IPv{family} range",
                help=f"add a pool with an IPv{family} range, or remove IPv{family} from ipFamilies",
            )


def adopt_without_unlisted(cluster: Cluster, lines: Iterable[Line] = ()) -> Iterator[Diagnostic]:
    """IPC0512: `operator: adopt` needs an `unlisted` pool with the operator's block size.

    The operator has one mask for all CIDRs, the longest prefix length of the cluster, so the pool's
    `blockSize` must be that length. It needs CIDRs of each family.

    Why: without CIDRs it does not start. Of the ranges of other pools it would give the next free block to
    a node outside the inventory, and ipamc the same block to a newcomer. With another mask it would book
    other addresses than the pool has blocks.

    Run: set the `blockSize` that the finding names, or write a pool with `unlisted: true`. One that is
    `disabled`, too, is enough: then the operator gives out nothing. Then `ipamc compile CLUSTER`.
    """
    if not cluster.operator_adopts:
        return
    at = cluster.field("spec", "ipam", "operator")
    for family in cluster.families:
        unlisted = [pool for pool in cluster.pools if pool.unlisted and family in pool.families]
        if not unlisted:
            yield error(
                "IPC0512",
                at,
                f"operator: adopt, but no IPv{family} pool has unlisted: true",
                help="add a native IPPool with unlisted: true, or use operator: bystander",
            )
        mask = longest_prefix(cluster, family, lines)
        for pool in unlisted:
            part = pool.families[family]
            if mask and part.block_size != mask:
                yield error(
                    "IPC0512",
                    part.at / "blockSize",
                    f'blockSize {part.block_size} of unlisted pool "{pool.name}" is not the operator\'s mask {mask}',
                    also=[Related(at, "the operator hands out blocks here")],
                    help=f"set blockSize: {mask}",
                )


def unlisted_elsewhere(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0221: an `unlisted` pool needs cluster-pool mode with `operator: adopt`.

    An `unlisted` pool is for nodes that are not in the inventory, such as those of an autoscaler.

    Why: only the operator gives out blocks of such a pool, and with `operator: bystander` it gives out
    none. In other modes no node would ever get one.

    Run: remove `unlisted`, or let the operator give out blocks: `operator: adopt` in the Cluster. `ipamc
    plan CLUSTER` shows what changes in the cluster; then `ipamc compile CLUSTER`.
    """
    if cluster.operator_adopts:
        return
    for pool in cluster.pools:
        if pool.unlisted:
            yield error(
                "IPC0221",
                pool.at / "spec" / "unlisted",
                f'pool "{pool.name}" has unlisted: true, but no operator gives out its blocks in {cluster.mode} mode with operator: {cluster.operator}',
                help="remove unlisted, or use cluster-pool mode with operator: adopt",
            )


def field_of_another_mode(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0546: fields of `spec.ipam` are for the mode that is set.

    `operator: adopt` is for cluster-pool mode, `pinning: node` and `autoCreate` are for multi-pool mode.

    Why: nothing reads the field in another mode. Who wrote it expects blocks that are pinned, or an operator
    that goes on, and gets neither.

    Run: remove the field from the Cluster, or set the mode that it is for; then `ipamc plan CLUSTER` shows
    what changes in the cluster.
    """
    of_others = (
        ("operator", cluster.operator, Mode.CLUSTER_POOL, cluster.operator == "adopt"),
        ("pinning", cluster.pinning, Mode.MULTI_POOL, cluster.pinning == "node"),
        ("autoCreate", ", ".join(cluster.auto_create), Mode.MULTI_POOL, bool(cluster.auto_create)),
    )
    for name, value, mode, is_set in of_others:
        if is_set and cluster.mode is not mode:
            yield warning(
                "IPC0546",
                cluster.field("spec", "ipam", name),
                f"{name}: {value} has no effect in {cluster.mode} mode: it is for {mode} mode",
                also=[Related(cluster.field("spec", "ipam", "mode"), "the mode is set here")],
                help=f"remove {name}, or set mode: {mode}",
            )


def crd_tunnel(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0532: crd mode has no tunnel routing.

    It counts where the Cluster says `routingMode: tunnel`.

    Why: Cilium's feature table (Documentation/network/concepts/ipam/index.rst, from 1.14 on) lists only
    native routing for `ipam: crd`. Nothing shows that pods of different nodes reach each other through
    tunnels.

    Run: set `routingMode: native`, if the network between the nodes knows the way to their blocks. Else use
    cluster-pool mode, in a cluster without nodes yet: nodes in crd mode cannot leave it (IPC0543). Then
    `ipamc compile CLUSTER`.
    """
    if cluster.mode is Mode.CRD and cluster.routing_mode == "tunnel":
        yield error(
            "IPC0532",
            cluster.field("spec", "cilium", "routingMode"),
            "routingMode: tunnel in crd mode, which supports native routing only",
            help="set routingMode: native",
        )


def tiny_blocks(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0552: blocks of one or two addresses need Cilium 1.17.

    In crd mode every address of such a block is usable, in every minor.

    Why: before 1.17 Cilium counts no usable address in a /31, /32, /127 or /128 (PR #34618): a node with
    such a block starts no pod. In multi-pool mode the operator gives it one block after the other, until
    the pool is empty.

    Run: use a /30, or a larger block; a /126 in IPv6. If 1.17 or newer runs on all nodes, write that in
    `spec.cilium.version`. Then `ipamc compile CLUSTER`.
    """
    if cluster.mode is Mode.CRD or can(cluster.cilium, Capability.TINY_BLOCKS):
        return
    for pool in cluster.pools:
        for family in pool.families:
            bits = BITS[family]
            for size, at in sizes_of(pool, family):
                if size >= bits - 1:
                    yield error(
                        "IPC0552",
                        at,
                        f'/{size} of pool "{pool.name}" has no usable address before Cilium {text(since(Capability.TINY_BLOCKS))}',
                        also=[Related(cluster.field("spec", "cilium", "version"), "the version is set here")],
                        help=f"use /{bits - 2} or a larger block",
                    )


def planned_before_do_not_gc(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0553: with `operator: adopt`, planned nodes need Cilium 1.18.

    The CiliumNode of a planned node must exist before the node joins. With `operator: bystander` there is
    no such race.

    Why: the operator deletes a CiliumNode without a Node (by default from 1.13 on, in 1.12 with
    `nodes-gc-interval`; a cluster that names 1.11 may already run a newer one), and only from 1.18 on does
    `cilium.io/do-not-gc` prevent it. If the node joins without it, the operator gives it a block of an
    `unlisted` pool at once.

    Run: add such nodes to the inventory when they have joined, with their CiliumNodes. Or set `operator:
    bystander` and take the `unlisted` pool away: then a node that is in no inventory gets no block. Then
    `ipamc compile CLUSTER`.
    """
    if not cluster.operator_adopts or can(cluster.cilium, Capability.DO_NOT_GC):
        return
    planned = [node for node in cluster.nodes if node.planned]
    if planned:
        yield error(
            "IPC0553",
            planned[0].at / "planned",
            f"{count(len(planned), 'planned node')} with operator: adopt before Cilium {text(since(Capability.DO_NOT_GC))}: {names(node.name for node in planned)}",
            also=[Related(cluster.field("spec", "ipam", "operator"), "the operator hands out blocks here")],
            help="use operator: bystander, or remove the planned nodes until they join",
        )


def not_rendered_yet(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0568: before Cilium 1.18, planned nodes get their blocks when they have joined.

    This concerns the modes cluster-pool and crd. The block waits in the lock, and no CiliumNode is rendered.
    The agent makes one when it starts, and waits.

    Why: the operator deletes a CiliumNode without a Node, and only from 1.18 on does `cilium.io/do-not-gc`
    prevent it. A node that joined runs no pods until its CiliumNode has a block.

    Run: when they have joined, `ipamc ci apply CLUSTER`: it gives each the block that the lock has for it, and
    so does the scheduled job with `--repair`. Where Argo CD or Flux applies: `ipamc import CLUSTER --refresh
    dump.json`, `ipamc compile CLUSTER`, and merge.
    """
    if cluster.mode not in {Mode.CLUSTER_POOL, Mode.CRD} or cluster.operator_adopts:
        return
    planned = [node for node in cluster.nodes if waits_for_agent(cluster, node)]
    if planned:
        yield note(
            "IPC0568",
            planned[0].at / "planned",
            f"{count(len(planned), 'planned node')} to get blocks by the first apply after joining, because operators before Cilium {text(since(Capability.DO_NOT_GC))} delete a CiliumNode without a Node: {names(node.name for node in planned)}",
            also=[Related(cluster.field("spec", "cilium", "version"), "the version is set here")],
            help=f"when they have joined: ipamc ci apply {cluster.name}; where Argo CD or Flux applies, refresh, compile and merge then",
        )


def controller_manager(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0504: where Nodes have podCIDRs of ipamc, kube-controller-manager must not set them.

    These are kubernetes mode, and `patchNodes: podCIDRs` in any other, unless every pool is disabled.

    A node gets its block of ipamc there. With kubeadm the flag is set in the ClusterConfiguration:
    `controllerManager: {extraArgs: [{name: allocate-node-cidrs, value: "false"}]}`.

    Why: with `--allocate-node-cidrs=true` it sets the field within a second of a Node's creation, for ever:
    other podCIDRs are refused. It knows no lock: blocks of planned nodes, in quarantine, or of nodes that
    are away go to the next node that joins. It does not start beside podCIDRs outside `--cluster-cidr`.

    Run: set the flag before the next node joins: `kubectl -n kube-system get pods -o yaml | grep
    allocate-node-cidrs` shows it where kubeadm runs the control plane. The message is a reminder, and
    stays.
    """
    gives = any(not pool.disabled for pool in cluster.pools)
    if gives and (cluster.mode is Mode.KUBERNETES or cluster.patch_nodes == "podCIDRs"):
        yield note(
            "IPC0504",
            cluster.field(
                *(("spec", "ipam", "mode") if cluster.mode is Mode.KUBERNETES else ("spec", "patchNodes"))
            ),
            "kube-controller-manager must run with --allocate-node-cidrs=false",
            help='with kubeadm write controllerManager: {extraArgs: [{name: allocate-node-cidrs, value: "false"}]}',
        )


def flag_by_hand(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0515: with `operator: bystander` the operator must run with `--ipam=kubernetes`.

    With `managedBy: helm` or `kustomize` the flag is rendered. With `managedBy: none` you must set it
    yourself, and every run says so.

    Why: an operator without the flag gives every CiliumNode without podCIDRs a block of its own choice,
    which the lock does not know. With it the operator has no allocator, whatever the ConfigMap says, and
    changes no CiliumNode.

    Run: `kubectl -n kube-system edit deployment cilium-operator`, and add `--ipam=kubernetes` as the last
    of the container's args. `ipamc audit CLUSTER FILE` finds it in a dump with Deployments.
    """
    if cluster.bystander and cluster.managed_by == "none":
        yield note(
            "IPC0515",
            cluster.field("spec", "ipam", "operator"),
            "cilium-operator must run with --ipam=kubernetes; with managedBy: none you must set it",
            help=f"run kubectl -n {cluster.namespace} edit deployment cilium-operator, and add --ipam=kubernetes to args",
        )
