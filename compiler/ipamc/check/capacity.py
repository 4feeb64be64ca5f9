"""Rules about capacity: free addresses of pools, addresses of nodes, entries of objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from operator import attrgetter

from ipamc.check.multi_pool import mask_size_changed
from ipamc.lock.file import first_shards
from ipamc.lock.utilisation import utilisation
from ipamc.model.cidr import Block
from ipamc.model.cilium.versions import pre_allocation, usable_in, usable_of
from ipamc.model.cluster import Cluster, Dialect, Node, Pool
from ipamc.model.diagnostics import Diagnostic, Related, count, error, names, note, warning
from ipamc.model.lock import Line, Lock
from ipamc.model.plan import Plan
from ipamc.model.pool_words import larger_block, larger_block_for_some, more_room, smaller_block

CRD_ENTRIES = 4096
"""The most addresses in one CiliumNode: a larger object is slow to patch, and nears etcd's 1.5 MiB."""

_kind = attrgetter("pool", "block.family", "block.prefix")

LOW = 10
"""Warn about a pool with less than this percentage of its addresses free."""


def nearly_full(cluster: Cluster, lock: Lock) -> Iterator[Diagnostic]:
    """IPC0215: a pool has less than 10 % of its addresses free, or in blocks whose quarantine is over.

    Blocks whose quarantine is over count as free.

    Why: nodes that join when the pool is full are refused, or get a block of its `overflow`. An autoscaler
    that adds nodes in the night finds the pool full.

    Run: add a CIDR at the end of its `cidrs`: no node moves. `ipamc suggest pool CLUSTER --pool POOL --size
    20` finds one. A pool of Calico and a ClusterCIDR have one CIDR of a family: add another pool with the
    same selector. `ipamc show CLUSTER --runway` shows how long the room lasts.
    """
    for pool_use in utilisation(cluster, lock):
        use, pool, part = pool_use.use, pool_use.pool, pool_use.family
        if not pool.disabled and not pool.unlisted and use.available * 100 < use.total * LOW:
            yield warning(
                "IPC0215",
                part.at / "cidrs" if pool.dialect is Dialect.NATIVE else part.ranges[0].at,
                f'pool "{pool.name}" has {use.available * 100 / use.total:.2g} % of its IPv{part.family} addresses free '
                f"({count(use.blocks_free, 'block')} of /{part.block_size})",
                help=more_room(cluster, pool, part.family, min(cidr.block.prefix for cidr in part.ranges)),
            )


def fewer_than_max_pods(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0551: a node's blocks have an address for each of its `maxPods`.

    Pods on the host network need none, so this is a warning. Two or three addresses of the blocks are
    Cilium's own. Where the pool has `usage`, blocks up to its `maxBlocks` count: `ipamc resize` gives them
    when they are needed. Of shared pools nothing is said: the operator gives nodes more blocks.

    Why: the kubelet accepts up to `maxPods` pods, whatever the network has. Those that get no address stay
    in ContainerCreating, and the scheduler goes on sending pods there.

    Run: use a larger block for these nodes, such as `blockSizes: [{nodeSelector: 'rack == "a"', ipv4: 25}]`
    in the pool, and renumber those that hold one; or lower `maxPods` of the kubelet, and export the nodes
    again. `ipamc show CLUSTER` shows how much room larger blocks leave.
    """
    if plan.cluster.shared_pools:
        return  # the operator gives a node more blocks as its pods need them
    rooms = _rooms(plan)
    if min(rooms.values(), default=0) >= max((node.max_pods for node in plan.cluster.nodes), default=0):
        return  # every block has an address for each pod of every node
    short: dict[tuple[str, int], list[tuple[Node, int]]] = defaultdict(list)
    pools = {pool.name: pool for pool in plan.cluster.pools}
    for node in plan.cluster.nodes:
        lines = plan.held.get(node.name, ())
        for family in plan.cluster.families if node.max_pods else ():
            mine = [line for line in lines if line.block.family == family]
            room = sum(rooms[_kind(line)] for line in mine)
            usage = pools[mine[0].pool].usage if mine and mine[0].pool in pools else None
            if usage and usage.most > len(mine):  # it gets more when it uses them
                room += (usage.most - len(mine)) * rooms[_kind(mine[0])]
            if mine and room < node.max_pods:
                short[mine[0].pool, family].append((node, room))
    for (name, family), nodes in sorted(short.items()):
        way_out = larger_block_for_some(pools[name]) if name in pools else "use a larger block"
        node, room = min(nodes, key=lambda found: (found[1] - found[0].max_pods, found[0].name))
        every = f"; {names(node.name for node, _ in nodes)}" if len(nodes) > 1 else ""
        yield warning(
            "IPC0551",
            node.at,
            f'{count(len(nodes), "node")} of pool "{name}" with fewer IPv{family} addresses than pods: '
            f"{node.name} has {room} for maxPods {node.max_pods}{every}",
            help=f"{way_out}, or lower maxPods",
        )


def _rooms(plan: Plan) -> dict[tuple[str, int, int], int]:
    """Return the addresses for pods of a block, by pool, family and prefix length: few, of 100,000 lines."""
    return {
        (pool, family, prefix): usable_in(plan.cluster, Block(family, 0, prefix), pool)
        for pool, family, prefix in set(map(_kind, plan.lock.lines))
    }


def too_many_shards_needed(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0555: the shard count keeps up with `output.shardSize`.

    It warns where `shardSize` would make at least four times as many shards as there are.

    Why: the time of `kustomize build` grows with the square of the number of objects in a folder: with
    shards that are too large each plan and each apply takes longer. The count stands in the lock's header
    and never changes by itself, because every object's file would move.

    Run: `ipamc lock CLUSTER --reshard`, once, in a change of its own, then `ipamc compile CLUSTER`. Objects
    stay the same; only their files move. With Flux write its Kustomizations again: `ipamc ci flux CLUSTER`.
    """
    wanted = first_shards(len(plan.cluster.nodes), plan.cluster.shard_size)
    if wanted >= plan.lock.shards * 4:
        yield warning(
            "IPC0555",
            plan.cluster.field("spec", "output", "shardSize"),
            f"{count(len(plan.cluster.nodes), 'node')} in {count(plan.lock.shards, 'shard')}; shardSize {plan.cluster.shard_size} would make {wanted}",
            help=f"ipamc lock {plan.cluster.name} --reshard, once: every object's file moves",
        )


def too_many_entries(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0531: a CiliumNode of crd mode has at most 4,096 addresses.

    `spec.ipam.pool` has an entry for every single address of all blocks of a node, in both families
    together.

    Why: the agent rewrites the object's status for each pod. The apiserver accepts a whole /17 of entries,
    but then refuses the status with the pods that use them: the object has become too large. What is in use
    is no longer written down.

    Run: use a smaller block: a /20 has 4,094 usable addresses; with `usage` and `maxBlocks` in the pool
    `ipamc resize CLUSTER FILE` gives further ones where they are used. Or use cluster-pool mode, in which
    blocks are CIDRs. Then `ipamc compile CLUSTER`.
    """
    over: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, lines in sorted(plan.held.items()):
        entries = sum(line.addresses or usable_of(plan.cluster, line) for line in lines)
        if entries > CRD_ENTRIES:
            over[lines[0].pool].append((name, entries))
    pools = {pool.name: pool for pool in plan.cluster.pools}
    for pool, nodes in sorted(over.items()):
        at, way_out = plan.cluster.at, "use a smaller block"
        if pool in pools:
            at = next(iter(pools[pool].families.values())).at / "blockSize"
            way_out = smaller_block(pools[pool])
        name, entries = nodes[0]
        yield error(
            "IPC0531",
            at,
            f"{entries:,} addresses in one CiliumNode, and {CRD_ENTRIES:,} is the limit: {names(node for node, _ in nodes)}",
            help=f"{way_out}, or cluster-pool mode",
        )


def room_for_unlisted(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0516: how many blocks the operator has for nodes outside the inventory.

    With `operator: adopt` the operator gives these nodes blocks of the `unlisted` pool. Nodes whose
    CiliumNodes are not in the input are not counted.

    Why: when the pool is full, or disabled, such a node gets no block: its operator-status says `allocator
    full`, and its pods wait.

    Run: before that, append a CIDR to the pool: `ipamc suggest pool CLUSTER --size 20` finds a free one; or
    write the nodes into the inventory: they get blocks of other pools. `ipamc show CLUSTER` shows how full
    the pools are. After a change of the list restart cilium-operator.
    """
    if not plan.cluster.operator_adopts:
        return
    for pool_use in utilisation(plan.cluster, plan.lock):
        pool, family = pool_use.pool, pool_use.family
        if pool.unlisted and pool.disabled:
            yield note(
                "IPC0516",
                pool.at / "spec" / "disabled",
                f'unlisted pool "{pool.name}" is disabled: the operator gives out none of its blocks (IPv{family.family})',
            )
        elif pool.unlisted:
            yield note(
                "IPC0516",
                family.at / "cidrs",
                f'unlisted pool "{pool.name}" has room for {count(pool_use.use.blocks_free, "node")} more (IPv{family.family})',
            )


def pre_allocation_too_large(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0527: with `pinning: node` a node's blocks are large enough for a pre-allocation of 1.

    An agent asks for more addresses than it uses: with a pre-allocation of 1 and its own router, health and
    ingress addresses, for 4 of the default pool in each family.

    Why: with `pinning: node` there are only the node's own blocks. The operator writes `pool empty` into
    operator-status, and the agent waits for ever for the fourth address.

    Run: use a larger block: a /29 has 6 addresses that pods can use, a /30 has 2. Or set `pinning: pool`:
    then the operator gives such a node a second block. Then `ipamc compile CLUSTER`.
    """
    tiny: dict[str, list[tuple[str, Pool]]] = defaultdict(list)
    pools = {pool.name: pool for pool in plan.cluster.pools}
    for want in plan.wants:
        lines = plan.held.get(want.node.name, ())
        default = want.offers[0].pool.name if want.offers else ""
        by_pool: dict[str, list[Block]] = defaultdict(list)
        for line in lines:
            by_pool[line.pool].append(line.block)
        for name in sorted((by_pool.keys() & pools.keys()) - plan.operator_pools):
            blocks = by_pool[name]
            if pre_allocation(plan.cluster.cilium, blocks, pools[name], default=name == default) is None:
                tiny[name].append((want.node.name, pools[name]))
    for nodes in tiny.values():
        pool = nodes[0][1]
        yield error(
            "IPC0527",
            next(iter(pool.families.values())).at / "blockSize",
            f'the blocks of pool "{pool.name}" are too small for a pre-allocation of 1 on {count(len(nodes), "node")}: {names(name for name, _ in nodes)}',
            help=larger_block(pool),
        )


def pinned_mask_changed(plan: Plan) -> Iterator[Diagnostic]:
    """Yield the nodes whose own CiliumPodIPPool would get a longer maskSize by a block that is new."""
    pools = {pool.name: pool for pool in plan.cluster.pools}
    places = {node.name: node.at for node in plan.cluster.nodes}
    reported: set[tuple[str, int]] = set()
    for node, lines in sorted(plan.held.items()):
        if not any(line.block in plan.origins for line in lines):
            continue
        by_key: dict[tuple[str, int], list[Line]] = defaultdict(list)
        for line in lines:
            if line.pool not in plan.operator_pools and line.pool in pools:
                by_key[line.pool, line.block.family].append(line)
        for key in sorted(by_key.keys() - reported):
            mine = by_key[key]
            before = max((line.block.prefix for line in mine if line.block not in plan.origins), default=0)
            now = max((line.block.prefix for line in mine), default=0)
            if before and before != now:
                reported.add(key)
                held = next(line for line in mine if line.block not in plan.origins)
                yield mask_size_changed(
                    pools[key[0]],
                    key[1],
                    before,
                    now,
                    Related(places.get(node, plan.cluster.at), f"node {node} holds {held.block}"),
                )


CONFIG_MAP = 1 << 20
"""Bytes of a ConfigMap (Kubernetes: MaxSecretSize, 1 MiB)."""


def config_map_too_large(cluster: Cluster, files: Mapping[str, str]) -> Iterator[Diagnostic]:
    """IPC0529: cilium-config is at most 1 MiB.

    All values together count. Only `auto-create-cilium-pod-ip-pools` can grow so large: a pool with many
    CIDRs after `reserved` was taken out of them, or very many pools.

    Why: the apiserver refuses a larger ConfigMap (`Too long: may not be more than 1048576 bytes`): the
    apply fails, and agents and operator go on with the old flags.

    Run: take pools out of `autoCreate` in the Cluster: they are rendered as manifests, each an object of
    its own. Then `ipamc compile CLUSTER`.
    """
    size = len(files.get("cilium/configmap.yaml", "").encode())
    if size > CONFIG_MAP:
        yield error(
            "IPC0529",
            cluster.field("spec", "ipam", "autoCreate"),
            f"cilium-config has {size:,} bytes; the limit is {CONFIG_MAP:,}",
            help="remove pools from autoCreate: they become manifests",
        )
