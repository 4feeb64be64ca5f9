"""Rules of multi-pool mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ipamc.model.cilium.features import Capability
from ipamc.model.cilium.versions import can, since, text
from ipamc.model.cluster import HOSTNAME, Cluster, Mode, Node, Pool
from ipamc.model.diagnostics import Diagnostic, Related, error
from ipamc.model.plan import Want, by_place
from ipamc.model.pool_words import block_size, other_family


def check_multi_pool(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield findings about multi-pool mode."""
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
    """IPC0521: multi-pool mode needs Cilium 1.14."""
    if not can(cluster.cilium, Capability.MULTI_POOL):
        at = cluster.field("spec", "ipam", "mode")
        message = (
            f"multi-pool mode with Cilium {text(cluster.cilium)}: it needs "
            f"{text(since(Capability.MULTI_POOL))} or newer"
        )
        also = [Related(cluster.field("spec", "cilium", "version"), "the version is set here")]
        yield error("IPC0521", at, message, also=also, help="use cluster-pool mode")


def multi_pool_tunnel(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0522: multi-pool mode with tunnel routing needs Cilium 1.18."""
    if cluster.routing_mode == "tunnel" and not can(cluster.cilium, Capability.MULTI_POOL_TUNNEL):
        at = cluster.field("spec", "cilium", "routingMode")
        message = (
            f"routingMode: tunnel in multi-pool mode with Cilium {text(cluster.cilium)}: it needs "
            f"{text(since(Capability.MULTI_POOL_TUNNEL))} or newer"
        )
        yield error("IPC0522", at, message, help="set routingMode: native")


def pinning_too_early(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0523: `pinning` needs Cilium 1.15."""
    if cluster.pinning != "none" and not can(cluster.cilium, Capability.DEFAULT_IP_POOL):
        message = (
            f"pinning: {cluster.pinning} with Cilium {text(cluster.cilium)}: it needs "
            f"{text(since(Capability.DEFAULT_IP_POOL))} or newer"
        )
        yield error("IPC0523", cluster.field("spec", "ipam", "pinning"), message, help="set pinning: none")


def no_default_pool(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0525: `pinning: none` needs a pool named `default`."""
    if cluster.pinning == "none" and not any(pool.name == "default" for pool in cluster.pools):
        at = cluster.field("spec", "ipam", "pinning")
        message = 'pinning: none, but no pool has the name "default"'
        yield error("IPC0525", at, message, help="name a pool default, or set pinning: pool")


def default_pool_lacks_family(cluster: Cluster, defaults: Iterable[Pool]) -> Iterator[Diagnostic]:
    """IPC0526: a node's default pool has every family of the cluster."""
    for pool in sorted(defaults, key=lambda pool: pool.name):
        missing = [family for family in cluster.families if family not in pool.families]
        if missing:
            message = f'default pool "{pool.name}" has no IPv{missing[0]} range'
            also = [Related(cluster.field("spec", "ipFamilies"), "the families are set here")]
            yield error("IPC0526", pool.at / "spec", message, also=also, help=other_family(pool, missing[0]))


def one_size_a_pool(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0528: with `pinning: pool` a pool has one block size and `blocksPerNode: 1`."""
    if cluster.pinning != "pool":
        return
    for pool in cluster.pools:
        if pool.block_sizes:
            at = pool.at / "spec" / "blockSizes"
            message = f'pool "{pool.name}" has blockSizes, which pinning: pool does not allow'
            yield error("IPC0528", at, message, help="set pinning: node, or write one pool for each size")
        if pool.blocks_per_node > 1:
            at = pool.at / "spec" / "blocksPerNode"
            message = (
                f'pool "{pool.name}" has blocksPerNode {pool.blocks_per_node}, but pinning: pool allows 1'
            )
            yield error("IPC0528", at, message, help="set pinning: node, or blocksPerNode: 1")


def dotted_pool_name(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0530: with `pinning: node` a pool's name has no dot."""
    if not cluster.own_pools:
        return
    for pool in cluster.pools:
        if "." in pool.name:
            at = pool.at / "metadata" / "name"
            message = f'pool "{pool.name}" has a dot in its name, which pinning: node does not allow'
            yield error("IPC0530", at, message, help=f"name it {pool.name.replace('.', '-')}")


def mask_size_changed(pool: Pool, family: int, before: int, now: int, also: Related) -> Diagnostic:
    """IPC0524: in multi-pool mode a pool keeps its block size while it is rendered or has lines in the lock."""
    message = f'maskSize of pool "{pool.name}" would change from {before} to {now}, but it is immutable'
    fix = f"set {block_size(pool, family, before)} again, and write a new pool for blocks of /{now}"
    return error("IPC0524", pool.families[family].at / "blockSize", message, also=[also], help=fix)


def auto_create_pinned(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0533: with `pinning: node` there is no `autoCreate`."""
    if cluster.own_pools and cluster.auto_create:
        yield error(
            "IPC0533",
            cluster.field("spec", "ipam", "autoCreate"),
            f"autoCreate {', '.join(cluster.auto_create)} with pinning: node, where all pools are manifests",
            also=[Related(cluster.field("spec", "ipam", "pinning"), "pinning is set here")],
            help="remove autoCreate, or set pinning: pool",
        )


def first_and_further(cluster: Cluster, wants: Sequence[Want]) -> Iterator[Diagnostic]:
    """IPC0537: with `pinning: node` a pool is the first candidate of all its nodes or of none."""
    if not cluster.own_pools:
        return
    first, further = by_place(wants)
    for pool in cluster.pools:
        if pool.name in first and pool.name in further:
            one, other = first[pool.name], further[pool.name]
            message = (
                f'pool "{pool.name}" is the first candidate of node {one.name} and a further one of node '
                f"{other.name}"
            )
            also = [Related(one.at, "first here"), Related(other.at, "further here")]
            fix = (
                f"narrow nodeSelector of {pool.name} or of the other pool so that they share no node, change "
                f"priority, or split {pool.name} in two pools"
            )
            yield error("IPC0537", pool.at / "metadata" / "name", message, also=also, help=fix)


def one_hostname(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0534: with `pinning: pool` or `node` no two nodes have the same `kubernetes.io/hostname`."""
    first: dict[str, Node] = {}
    for node in cluster.nodes:
        before = first.setdefault(node.hostname, node)
        if before is not node:
            message = f"node {node.name} has the same {HOSTNAME} as node {before.name}: {node.hostname}"
            fix = "give each node a hostname of its own, or set pinning: none"
            yield error("IPC0534", node.at, message, also=[Related(before.at, "the other node")], help=fix)


def name_too_long(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0535: names that `pinning` derives from node names keep Kubernetes' limits."""
    longest = max((len(pool.name) for pool in cluster.pools), default=0)
    for node in cluster.nodes:
        if HOSTNAME not in node.labels and len(node.name) > 63:
            message = (
                f"node {node.name} has no label {HOSTNAME}, and its name of {len(node.name)} characters is "
                "too long for one (63)"
            )
            yield error("IPC0535", node.at, message, help=f"add the node's label {HOSTNAME} to the inventory")
        elif cluster.own_pools and longest + 1 + len(node.name) > 253:
            message = (
                f"node {node.name} would get a pool with a name of {longest + 1 + len(node.name)} "
                "characters; the limit is 253"
            )
            yield error("IPC0535", node.at, message, help="use a shorter pool name")
