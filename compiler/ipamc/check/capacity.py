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
from ipamc.model.cluster import Cluster, Dialect, Pool, Scheme
from ipamc.model.diagnostics import Diagnostic, Related, count, error, names, note, several, warning
from ipamc.model.limits import LARGEST_CONFIG_MAP, MOST_CRD_ADDRESSES
from ipamc.model.lock import Line, Lock
from ipamc.model.node import Node
from ipamc.model.plan import Plan
from ipamc.model.pool_words import larger_block, larger_block_for_some, more_room, smaller_block

_kind = attrgetter("pool", "block.family", "block.prefix")

LOW = 10
"""Warn about a pool with less than this percentage of its addresses free."""


def nearly_full(cluster: Scheme, lock: Lock) -> Iterator[Diagnostic]:
    """IPC0215: a pool has at least 10 % of its addresses free."""
    for pool_use in utilisation(cluster, lock):
        use, pool, part = pool_use.use, pool_use.pool, pool_use.family
        if not pool.disabled and not pool.unlisted and use.available * 100 < use.total * LOW:
            at = part.at / "cidrs" if pool.dialect is Dialect.NATIVE else part.ranges[0].at
            share = f"{use.available * 100 / use.total:.2g} % of its IPv{part.family} addresses free"
            blocks = f"{count(use.blocks_free, 'block')} of /{part.block_size}"
            fix = more_room(cluster, pool, part.family, min(cidr.block.prefix for cidr in part.ranges))
            yield warning("IPC0215", at, f'pool "{pool.name}" has {share} ({blocks})', help=fix)


def fewer_than_max_pods(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0551: a node's blocks have an address for each of its `maxPods`."""
    if plan.cluster.shared_pools:
        return  # the operator gives a node more blocks when its pods need them
    # Pod addresses per block, by pool, family and prefix length: few keys, for 100,000 lines.
    rooms = {
        (pool, family, prefix): usable_in(plan.cluster, Block(family, 0, prefix), pool)
        for pool, family, prefix in set(map(_kind, plan.lock.lines))
    }
    known = {node.max_pods for node in plan.cluster.nodes} - {0}
    if min(rooms.values(), default=0) >= max(known, default=0):
        return  # each block has enough addresses for the pods of any node
    fewest = min(known)  # of a node of which it is not known, such as a planned one
    short: dict[tuple[str, int], list[tuple[Node, int, int]]] = defaultdict(list)
    pools = plan.cluster.pools_by_name
    for node in plan.cluster.nodes:
        lines, pods = plan.held.get(node.name, ()), node.max_pods or fewest
        for family in plan.cluster.families:
            mine = [line for line in lines if line.block.family == family]
            room = sum(rooms[_kind(line)] for line in mine)
            usage = pools[mine[0].pool].usage if mine and mine[0].pool in pools else None
            if usage and usage.most > len(mine):  # it gets more blocks when it uses these
                room += (usage.most - len(mine)) * rooms[_kind(mine[0])]
            if mine and room < pods:
                short[mine[0].pool, family].append((node, room, pods))
    for (name, family), nodes in sorted(short.items()):
        way_out = larger_block_for_some(pools[name]) if name in pools else "use a larger block"
        node, room, pods = min(nodes, key=lambda found: (found[1] - found[2], found[0].name))
        every = f"; {names(node.name for node, *_ in nodes)}" if len(nodes) > 1 else ""
        of_others = "" if node.max_pods else ", the lowest known value"
        have = count(len(nodes), f'node of pool "{name}" has', f'nodes of pool "{name}" have')
        those = f"{have} fewer IPv{family} addresses than pods"
        message = f"{those}: {node.name} has {room} for maxPods {pods}{of_others}{every}"
        found = warning("IPC0551", node.at, message, help=f"{way_out}, or lower maxPods")
        yield found.about(node.name for node, *_ in nodes)


def too_many_routes(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0558: the cluster has at most `cloudRoutes` blocks, each with a route in the cloud."""
    cluster, most = plan.cluster, plan.cluster.cloud_routes
    planned = {node.name for node in cluster.nodes if node.planned} if most else set()
    nodes = sorted(plan.held if most else (), key=lambda name: (name in planned, name))
    lines = [*(line for name in nodes for line in plan.held[name]), *(plan.more if most else ())]
    if len(lines) > most:
        over = list(dict.fromkeys(line.node for line in lines[most:]))
        further = f" ({len(plan.more):,} for nodes that maximum allows)" if plan.more else ""
        needed = f"{len(lines):,} blocks need a route each{further}, but cloudRoutes is {most:,}"
        fix = "raise the limit at the cloud, then cloudRoutes; or remove it, and write routingMode: tunnel"
        if cluster.routing_mode == "tunnel":
            fix = "set --configure-cloud-routes=false for the cloud's controller, and remove cloudRoutes"
        message = f"{needed}: {over[0]} is the first node without a route"
        yield warning("IPC0558", cluster.field("spec", "cloudRoutes"), message, help=fix).about(over)


def too_many_shards_needed(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0555: the lock has enough shards for `output.shardSize`."""
    wanted = first_shards(len(plan.cluster.nodes), plan.cluster.shard_size)
    if wanted >= plan.lock.shards * 4:
        now = f"{count(len(plan.cluster.nodes), 'node')} in {count(plan.lock.shards, 'shard')}"
        message = f"{now}; shardSize {plan.cluster.shard_size} would make {wanted}"
        fix = f"run once: ipamc lock {plan.cluster.name} --reshard (every object moves to another file)"
        yield warning("IPC0555", plan.cluster.field("spec", "output", "shardSize"), message, help=fix)


def too_many_entries(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0531: a CiliumNode of crd mode has at most 4,096 addresses."""
    over: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, lines in sorted(plan.held.items()):
        entries = sum(line.addresses or usable_of(plan.cluster, line) for line in lines)
        if entries > MOST_CRD_ADDRESSES:
            over[lines[0].pool].append((name, entries))
    for name, nodes in sorted(over.items()):
        at, way_out = plan.cluster.at, "use a smaller block"
        if pool := plan.cluster.pools_by_name.get(name):
            at, way_out = next(iter(pool.families.values())).at / "blockSize", smaller_block(pool)
        limit = f"the limit is {MOST_CRD_ADDRESSES:,}: {names(node for node, _ in nodes)}"
        message = f"{nodes[0][1]:,} addresses in one CiliumNode, but {limit}"
        yield error("IPC0531", at, message, help=f"{way_out}, or cluster-pool mode")


def room_for_unlisted(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0516: an `unlisted` pool has room for nodes outside the inventory."""
    if not plan.cluster.operator_adopts:
        return
    for pool_use in utilisation(plan.cluster, plan.lock):
        pool, part = pool_use.pool, pool_use.family
        at, what = part.at / "cidrs", f"has room for {count(pool_use.use.blocks_free, 'more node')}"
        if pool.disabled:
            at = pool.at / "spec" / "disabled"
            what = "is disabled: the operator hands out none of its blocks"
        if pool.unlisted:
            yield note("IPC0516", at, f'unlisted pool "{pool.name}" {what} (IPv{part.family})')


def pre_allocation_too_large(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0527: with `pinning: node` a node's blocks are large enough for a pre-allocation of 1."""
    tiny: dict[str, list[tuple[str, Pool]]] = defaultdict(list)
    pools = plan.cluster.pools_by_name
    for want in plan.wants:
        by_pool: dict[str, list[Block]] = defaultdict(list)
        for line in plan.held.get(want.node.name, ()):
            by_pool[line.pool].append(line.block)
        for name in sorted((by_pool.keys() & pools.keys()) - plan.operator_pools):
            blocks, pool = by_pool[name], pools[name]
            if pre_allocation(plan.cluster.cilium, blocks, pool, default=pool is want.first) is None:
                tiny[name].append((want.node.name, pool))
    for nodes in tiny.values():
        pool = nodes[0][1]
        at = next(iter(pool.families.values())).at / "blockSize"
        those = several([name for name, _ in nodes], "node")
        message = f'the blocks of pool "{pool.name}" are too small for a pre-allocation of 1 on {those}'
        yield error("IPC0527", at, message, help=larger_block(pool))


def pinned_mask_changed(plan: Plan) -> Iterator[Diagnostic]:
    """Yield nodes whose own CiliumPodIPPool would get a longer maskSize because of a new block."""
    pools = plan.cluster.pools_by_name
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
                also = Related(places.get(node, plan.cluster.at), f"node {node} holds {held.block}")
                yield mask_size_changed(pools[key[0]], key[1], before, now, also)


def config_map_too_large(cluster: Cluster, files: Mapping[str, str]) -> Iterator[Diagnostic]:
    """IPC0529: cilium-config is at most 1 MiB."""
    size = len(files.get("cilium/configmap.yaml", "").encode())
    if size > LARGEST_CONFIG_MAP:
        at = cluster.field("spec", "ipam", "autoCreate")
        message = f"cilium-config has {size:,} bytes; the limit is {LARGEST_CONFIG_MAP:,}"
        yield error("IPC0529", at, message, help="remove pools from autoCreate: they become manifests")
