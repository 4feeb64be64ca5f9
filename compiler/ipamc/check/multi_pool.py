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
    """IPC0521: multi-pool mode needs Cilium 1.14.

    `ipam: multi-pool` and CiliumPodIPPool are new in 1.14 (PR #25824).

    Why: an older agent does not start (`Unknown IPAM backend`), and an older operator drops the field that
    tells which blocks a node has: no pod of the cluster gets an address.

    Run: if 1.14 or newer runs on all nodes, write that in `spec.cilium.version`. Else set `ipam: {mode:
    cluster-pool}`, and `ipamc compile CLUSTER`: when Cilium is new enough, nodes can change the mode and
    keep their blocks.
    """
    if not can(cluster.cilium, Capability.MULTI_POOL):
        yield error(
            "IPC0521",
            cluster.field("spec", "ipam", "mode"),
            f"multi-pool mode with Cilium {text(cluster.cilium)}: it needs {text(since(Capability.MULTI_POOL))} or newer",
            also=[Related(cluster.field("spec", "cilium", "version"), "the version is set here")],
            help="use cluster-pool mode",
        )


def multi_pool_tunnel(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0522: multi-pool mode with tunnel routing needs Cilium 1.18.

    It counts where the Cluster says `routingMode: tunnel`.

    Why: an older agent does not start with both (`Cannot specify IPAM mode multi-pool in tunnel mode`, PR
    #38483): its node starts no pods.

    Run: set `routingMode: native`, if the network between the nodes knows the way to their blocks, or use
    cluster-pool mode, which has tunnels in every minor. If 1.18 or newer runs on all nodes, write that in
    `spec.cilium.version`. Then `ipamc compile CLUSTER`.
    """
    if cluster.routing_mode == "tunnel" and not can(cluster.cilium, Capability.MULTI_POOL_TUNNEL):
        yield error(
            "IPC0522",
            cluster.field("spec", "cilium", "routingMode"),
            f"routingMode: tunnel in multi-pool mode with Cilium {text(cluster.cilium)}: it needs {text(since(Capability.MULTI_POOL_TUNNEL))} or newer",
            help="set routingMode: native",
        )


def pinning_too_early(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0523: `pinning` needs Cilium 1.15.

    `ipam-default-ip-pool` in a CiliumNodeConfig sets a node's default pool; agents read it from 1.15 on (PR
    #28818).

    Why: an older agent takes its own addresses, and those of pods without an annotation, from the pool
    `default`, whatever the lock says of the node: blocks of racks and zones would stay unused.

    Run: set `pinning: none`, which needs a pool named `default` (IPC0525); or if 1.15 or newer runs on all
    nodes, write that in `spec.cilium.version`. Then `ipamc compile CLUSTER`.
    """
    if cluster.pinning != "none" and not can(cluster.cilium, Capability.DEFAULT_IP_POOL):
        yield error(
            "IPC0523",
            cluster.field("spec", "ipam", "pinning"),
            f"pinning: {cluster.pinning} with Cilium {text(cluster.cilium)}: it needs {text(since(Capability.DEFAULT_IP_POOL))} or newer",
            help="set pinning: none",
        )


def no_default_pool(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0525: `pinning: none` needs a pool named `default`.

    With `pinning: pool` or `node` each node has a default pool of its own choice.

    Why: agents take their router, health and ingress addresses, and those of every pod without an
    annotation, from the pool `default`. They wait until it exists, and start no pods. Up to 1.18 the
    operator also takes away what a node has of a pool that is gone.

    Run: name a pool `default`; or set `pinning: pool`, from 1.15 on, with which the first candidate of a
    node is its default pool. Then `ipamc compile CLUSTER`.
    """
    if cluster.pinning == "none" and not any(pool.name == "default" for pool in cluster.pools):
        yield error(
            "IPC0525",
            cluster.field("spec", "ipam", "pinning"),
            'pinning: none, but no pool has the name "default"',
            help="name a pool default, or set pinning: pool",
        )


def default_pool_lacks_family(cluster: Cluster, defaults: Iterable[Pool]) -> Iterator[Diagnostic]:
    """IPC0526: a node's default pool has every family of the cluster.

    A node's default pool is its first candidate, or with `pinning: none` the pool `default`.

    Why: the agent takes its own addresses (router, health, ingress) of each family from the default pool,
    and waits for ever for a missing one: the node starts no pods, although other pools have the family.

    Run: add the family to the pool, such as `ipv6: {cidrs: ["fd00:a::/104"], blockSize: 120}`; or let a
    pool with both be the first one, by a higher `priority`; `ipamc why NODE` shows the order for a node
    that was compiled. Then `ipamc compile CLUSTER`.
    """
    for pool in sorted(defaults, key=lambda pool: pool.name):
        missing = [family for family in cluster.families if family not in pool.families]
        if missing:
            yield error(
                "IPC0526",
                pool.at / "spec",
                f'default pool "{pool.name}" has no IPv{missing[0]} range',
                also=[Related(cluster.field("spec", "ipFamilies"), "the families are set here")],
                help=other_family(pool, missing[0]),
            )


def one_size_a_pool(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0528: with `pinning: pool` a pool has one block size and `blocksPerNode: 1`.

    With `pinning: node` other sizes (`blockSizes`, pins) and further blocks are possible, because each node
    has pools of its own.

    Why: from a shared pool the operator gives out blocks of one size, the pool's `maskSize`, as many as an
    agent asks for. A node that should have a /26 of a pool of /27 gets two of /27 instead, and the lock
    tells something else.

    Run: set `pinning: node`, in a cluster whose nodes have no blocks yet (IPC0536); or take `blocksPerNode`
    and `blockSizes` away, and write a pool for each size. Then `ipamc compile CLUSTER`.
    """
    if cluster.pinning != "pool":
        return
    for pool in cluster.pools:
        if pool.block_sizes:
            yield error(
                "IPC0528",
                pool.at / "spec" / "blockSizes",
                f'pool "{pool.name}" has blockSizes, which pinning: pool does not allow',
                help="set pinning: node, or write one pool for each size",
            )
        if pool.blocks_per_node > 1:
            yield error(
                "IPC0528",
                pool.at / "spec" / "blocksPerNode",
                f'pool "{pool.name}" has blocksPerNode {pool.blocks_per_node}, but pinning: pool allows 1',
                help="set pinning: node, or blocksPerNode: 1",
            )


def dotted_pool_name(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0530: with `pinning: node` a pool's name has no dot.

    Each node gets a CiliumPodIPPool `POOL.NODE`. Without `pinning: node` dots are allowed.

    Why: pool "a" of node "b.c" and pool "a.b" of node "c" would be the same object. `kustomize build`
    refuses two of one name (`may not add resource with an already registered id`), so that nothing could be
    applied.

    Run: write a dash for the dot, in the pool's name and wherever it is named: in `overflow`, and in
    annotations of pods. Then `ipamc compile CLUSTER`. A pool whose blocks nodes have cannot be renamed:
    write a new one, and disable this one.
    """
    if not cluster.own_pools:
        return
    for pool in cluster.pools:
        if "." in pool.name:
            yield error(
                "IPC0530",
                pool.at / "metadata" / "name",
                f'pool "{pool.name}" has a dot in its name, which pinning: node does not allow',
                help=f"name it {pool.name.replace('.', '-')}",
            )


def mask_size_changed(pool: Pool, family: int, before: int, now: int, also: Related) -> Diagnostic:
    """IPC0524: in multi-pool mode a pool keeps its block size while it is rendered or has lines in the lock.

    `maskSize` of a CiliumPodIPPool is what `blockSize` is here.

    Why: it is immutable. Up to 1.19 the apply is accepted, and the operator goes on with the old size
    (`cannot change IPv4 mask size in existing pool`); from 1.20 on the apiserver refuses the pool.

    Run: set the size again that the finding names. For blocks of another size write a new pool over free
    addresses, such as `ipamc suggest pool CLUSTER --size 20` finds, and set `disabled: true` on the old
    one: nodes keep what they have, and newcomers get blocks of the new pool. Then `ipamc compile CLUSTER`.
    """
    return error(
        "IPC0524",
        pool.families[family].at / "blockSize",
        f'maskSize of pool "{pool.name}" would change from {before} to {now}, but it is immutable',
        also=[also],
        help=f"set {block_size(pool, family, before)} again, and write a new pool for blocks of /{now}",
    )


def auto_create_pinned(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0533: with `pinning: node` there is no `autoCreate`.

    Further candidates of a node are shared pools, and rendered as manifests.

    Why: every node has a CiliumPodIPPool of its own with exactly its blocks. A shared one over the same
    ranges gives them out a second time: with both, the operator gave one block to two nodes, and no
    operator-status had an error.

    Run: remove `autoCreate`; or set `pinning: pool` in a cluster whose nodes have no blocks yet (IPC0536).
    Then `ipamc compile CLUSTER`.
    """
    if cluster.own_pools and cluster.auto_create:
        yield error(
            "IPC0533",
            cluster.field("spec", "ipam", "autoCreate"),
            f"autoCreate {', '.join(cluster.auto_create)} with pinning: node, where all pools are manifests",
            also=[Related(cluster.field("spec", "ipam", "pinning"), "pinning is set here")],
            help="remove autoCreate, or set pinning: pool",
        )


def first_and_further(cluster: Cluster, wants: Sequence[Want]) -> Iterator[Diagnostic]:
    """IPC0537: with `pinning: node` a pool is the first candidate of all its nodes or of none.

    The first candidate is divided among its nodes: each has a CiliumPodIPPool of its own. A further one is
    a CiliumPodIPPool that nodes share, under the name that pods' annotations use.

    Why: a shared pool over the ranges of own pools would give their blocks out a second time: two nodes
    with one address.

    Run: narrow the `nodeSelector` of one of the two pools, so that they share no node; or let one come
    first everywhere, by `priority`; or divide the pool in two. `ipamc why NODE` shows the order for a node
    that was compiled. Then `ipamc compile CLUSTER`.
    """
    if not cluster.own_pools:
        return
    first, further = by_place(wants)
    for pool in cluster.pools:
        if pool.name in first and pool.name in further:
            one, other = first[pool.name], further[pool.name]
            yield error(
                "IPC0537",
                pool.at / "metadata" / "name",
                f'pool "{pool.name}" is the first candidate of node {one.name} and a further one of node {other.name}',
                also=[Related(one.at, "first here"), Related(other.at, "further here")],
                help=f"narrow nodeSelector of {pool.name} or of the other pool so that they share no node, change priority, or split {pool.name} in two pools",
            )


def one_hostname(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0534: with `pinning: pool` or `node` no two nodes have the same `kubernetes.io/hostname`.

    A node's hostname is its label `kubernetes.io/hostname`, or without it its name.

    Why: a CiliumNodeConfig selects its node by that label. The apiserver accepts two for one value; both
    agents read both, and the last name wins: one of the nodes takes its addresses from the pool of the
    other one.

    Run: give each node a hostname of its own (the kubelet's `--hostname-override`, or the machine's name),
    and export the nodes again; or set `pinning: none`, which needs a pool named `default`. Then `ipamc
    compile CLUSTER`.
    """
    first: dict[str, Node] = {}
    for node in cluster.nodes:
        before = first.setdefault(node.hostname, node)
        if before is not node:
            yield error(
                "IPC0534",
                node.at,
                f"node {node.name} has the same {HOSTNAME} as node {before.name}: {node.hostname}",
                also=[Related(before.at, "the other node")],
                help="give each node a hostname of its own, or set pinning: none",
            )


def name_too_long(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0535: names that `pinning` derives from node names keep Kubernetes' limits.

    A node without the label `kubernetes.io/hostname` is selected by its name as label value, of at most 63
    characters. The name of a CiliumPodIPPool `POOL.NODE` has at most 253.

    Why: the apiserver accepts a CiliumNodeConfig for a longer value, which no node can carry: it selects
    nobody, and the node takes its addresses from another pool. A longer name of a pool is refused.

    Run: add the node's label to the inventory (`kubectl get nodes -o yaml` shows it), or shorten the pool's
    name. Then `ipamc compile CLUSTER`.
    """
    longest = max((len(pool.name) for pool in cluster.pools), default=0)
    for node in cluster.nodes:
        if HOSTNAME not in node.labels and len(node.name) > 63:
            yield error(
                "IPC0535",
                node.at,
                f"node {node.name} has no label {HOSTNAME}, and its name of {len(node.name)} characters is too long for one (63)",
                help=f"add the node's label {HOSTNAME} to the inventory",
            )
        elif cluster.own_pools and longest + 1 + len(node.name) > 253:
            yield error(
                "IPC0535",
                node.at,
                f"node {node.name} would get a pool with a name of {longest + 1 + len(node.name)} characters; the limit is 253",
                help="use a shorter pool name",
            )
