"""Rules of multi-pool mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipamc.model.cilium.features import Capability
from ipamc.model.cilium.versions import can, since, text
from ipamc.model.cluster import Cluster, Mode, Node, Pool
from ipamc.model.diagnostics import Diagnostic, Related, error

HOSTNAME = "kubernetes.io/hostname"


def check_multi_pool(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield findings of multi-pool mode."""
    if cluster.mode is not Mode.MULTI_POOL:
        return
    yield from multi_pool_too_early(cluster)
    yield from multi_pool_tunnel(cluster)
    yield from pinning_too_early(cluster)
    yield from no_default_pool(cluster)
    if cluster.pinning == "none":
        yield from default_pool_lacks_family(
            cluster, (pool for pool in cluster.pools if pool.name == "default")
        )
    yield from one_size_a_pool(cluster)
    yield from dotted_pool_name(cluster)
    yield from auto_create_pinned(cluster)
    if cluster.pinning != "none":
        yield from one_hostname(cluster)
        yield from name_too_long(cluster)


def multi_pool_too_early(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0521: multi-pool mode needs Cilium 1.14.

    `ipam: multi-pool` and CiliumPodIPPool came with 1.14 (PR #25824); an older agent does not start with it (`Unknown IPAM backend`).
    """
    if not can(cluster.cilium, Capability.MULTI_POOL):
        yield error(
            "IPC0521",
            cluster.field("spec", "ipam", "mode"),
            f"multi-pool mode with Cilium {text(cluster.cilium)}, which has it from {text(since(Capability.MULTI_POOL))} on",
            also=[Related(cluster.field("spec", "cilium", "version"), "the version is named here")],
            help="use cluster-pool mode",
        )


def multi_pool_tunnel(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0522: multi-pool mode with tunnel routing needs Cilium 1.18.

    Before (PR #38483) the agent does not start with both (`Cannot specify IPAM mode multi-pool in tunnel mode`).
    """
    if cluster.routing_mode == "tunnel" and not can(cluster.cilium, Capability.MULTI_POOL_TUNNEL):
        yield error(
            "IPC0522",
            cluster.field("spec", "cilium", "routingMode"),
            f"routingMode tunnel in multi-pool mode with Cilium {text(cluster.cilium)}, which can do it from {text(since(Capability.MULTI_POOL_TUNNEL))} on",
            help="set routingMode: native",
        )


def pinning_too_early(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0523: `pinning` needs Cilium 1.15.

    A node's default pool is set with `ipam-default-ip-pool` in a CiliumNodeConfig, which agents read from 1.15 on (PR #28818).
    """
    if cluster.pinning != "none" and not can(cluster.cilium, Capability.DEFAULT_IP_POOL):
        yield error(
            "IPC0523",
            cluster.field("spec", "ipam", "pinning"),
            f"pinning: {cluster.pinning} with Cilium {text(cluster.cilium)}, which has ipam-default-ip-pool from {text(since(Capability.DEFAULT_IP_POOL))} on",
            help="set pinning: none",
        )


def no_default_pool(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0525: with `pinning: none` there is a pool named `default`.

    Agents take router, health and ingress addresses, and those of every pod without an annotation, from the pool `default`, and wait for it to exist.
    """
    if cluster.pinning == "none" and not any(pool.name == "default" for pool in cluster.pools):
        yield error(
            "IPC0525",
            cluster.field("spec", "ipam", "pinning"),
            'pinning: none without a pool "default"',
            help="name a pool default, or use pinning: pool",
        )


def default_pool_lacks_family(cluster: Cluster, defaults: Iterable[Pool]) -> Iterator[Diagnostic]:
    """IPC0526: a pool that is some node's default has every family of the cluster.

    The agent takes the node's own addresses (router, health, ingress) of each family from the default pool, and waits for ever for a missing one.
    """
    for pool in sorted(defaults, key=lambda pool: pool.name):
        missing = [family for family in cluster.families if family not in pool.families]
        if missing:
            yield error(
                "IPC0526",
                pool.at / "spec",
                f'default pool "{pool.name}" has no IPv{missing[0]} range',
                also=[Related(cluster.field("spec", "ipFamilies"), "the families are set here")],
                help=f"add ipv{missing[0]} to the pool",
            )


def one_size_a_pool(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0528: with `pinning: pool` a pool has one block size and one block a node.

    The operator hands out blocks of the pool's maskSize by itself, as many as a node asks for: other sizes, or a fixed number, cannot be kept. With
    `pinning: node` they can.
    """
    if cluster.pinning != "pool":
        return
    for pool in cluster.pools:
        if pool.block_sizes:
            yield error(
                "IPC0528",
                pool.at / "spec" / "blockSizes",
                f'blockSizes of pool "{pool.name}" with pinning: pool',
                help="set pinning: node, or make a pool for each size",
            )
        if pool.blocks_per_node > 1:
            yield error(
                "IPC0528",
                pool.at / "spec" / "blocksPerNode",
                f'blocksPerNode {pool.blocks_per_node} of pool "{pool.name}" with pinning: pool',
                help="set pinning: node, or blocksPerNode: 1",
            )


def dotted_pool_name(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0530: with `pinning: node` a pool's name has no dot.

    Each node gets a CiliumPodIPPool `<pool>.<node>`; a pool "a" of node "b.c" and a pool "a.b" of node "c" would be one object.
    """
    if not cluster.own_pools:
        return
    for pool in cluster.pools:
        if "." in pool.name:
            yield error(
                "IPC0530",
                pool.at / "metadata" / "name",
                f'pool "{pool.name}" has a dot in its name, with pinning: node',
                help=f"name it {pool.name.replace('.', '-')}",
            )


def mask_size_changed(pool: Pool, family: int, before: int, now: int, also: Related) -> Diagnostic:
    """IPC0524: in multi-pool mode a pool keeps its block size while it is rendered or has lines.

    `maskSize` of a CiliumPodIPPool cannot change: up to 1.19 the operator refuses the new one (`cannot change IPv4 mask size in existing pool`), from 1.20
    on the apiserver does. Make a new pool with the new size, and disable this one.
    """
    return error(
        "IPC0524",
        pool.families[family].at / "blockSize",
        f'blockSize of pool "{pool.name}" was {before} and would make a maskSize of {now}, which cannot change',
        also=[also],
        help=f"set blockSize: {before} again, and make a new pool for blocks of /{now}",
    )


def auto_create_pinned(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0533: with `pinning: node` no pool is created by the operator's flag.

    Every node has pools of its own, with exactly its blocks; a shared pool over the same ranges would hand them out a second time.
    """
    if cluster.own_pools and cluster.auto_create:
        yield error(
            "IPC0533",
            cluster.field("spec", "ipam", "autoCreate"),
            f"autoCreate {', '.join(cluster.auto_create)} with pinning: node, where no pool is shared",
            also=[Related(cluster.field("spec", "ipam", "pinning"), "pinning is set here")],
            help="drop autoCreate, or use pinning: pool",
        )


def one_hostname(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0534: with `pinning`, no two nodes have one `kubernetes.io/hostname`.

    A CiliumNodeConfig selects its node by that label. With two nodes of one value, both would get both configs, and the last name would win for both.
    """
    first: dict[str, Node] = {}
    for node in cluster.nodes:
        hostname = node.labels.get(HOSTNAME, node.name)
        before = first.setdefault(hostname, node)
        if before is not node:
            yield error(
                "IPC0534",
                node.at,
                f"node {node.name} has the {HOSTNAME} {hostname} of node {before.name}",
                also=[Related(before.at, "the other one")],
                help="give each node a hostname of its own, or set pinning: none",
            )


def name_too_long(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0535: names that `pinning` makes fit into Kubernetes' limits.

    A node without the label `kubernetes.io/hostname` is selected by its name, and a label value has at most 63 characters; a CiliumPodIPPool
    `<pool>.<node>` has at most 253.
    """
    longest = max((len(pool.name) for pool in cluster.pools), default=0)
    for node in cluster.nodes:
        if HOSTNAME not in node.labels and len(node.name) > 63:
            yield error(
                "IPC0535",
                node.at,
                f"node {node.name} has {len(node.name)} characters and no label {HOSTNAME}; 63 is the limit",
                help=f"add the label {HOSTNAME} that the node has",
            )
        elif cluster.own_pools and longest + 1 + len(node.name) > 253:
            yield error(
                "IPC0535",
                node.at,
                f"node {node.name} makes a pool name of {longest + 1 + len(node.name)} characters; 253 is the limit",
                help="use a shorter pool name",
            )
