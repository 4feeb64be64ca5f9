"""Rules about pools: that ranges are disjoint, lie where they may, and hold at least one block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Dialect, Mode, Node, Pool, Range
from ipamc.model.diagnostics import Diagnostic, Related, count, error, names, warning
from ipamc.model.range_index import RangeIndex, first_overlap

CALICO_BOUNDS = {4: (20, 32), 6: (116, 128)}
"""Calico's limits for `blockSize` (v3.34, api/pkg/apis/projectcalico/v3/ippool.go, XValidation)."""

IPV6_DIFFERENCE = 16
"""Cilium's and Kubernetes' CIDR sets are bitmaps: IPv6 ranges may have 2^16 blocks (cidr_set.go, clusterSubnetMaxDiff)."""


def check_pools(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield every finding about pools, whatever the mode."""
    yield from ranges_overlap(cluster.pools)
    yield from over_excluded_world(cluster)
    yield from node_inside_range(cluster)
    for pool in cluster.pools:
        yield from block_larger_than_range(pool)
        yield from dialect_bounds(pool)
        yield from reserved_outside(pool)
        yield from impossible_selector(pool)
    yield from unknown_overflow(cluster)
    yield from outside_native_routing(cluster)


def covered(block: Block, by: Iterable[Block]) -> bool:
    """Tell whether every address of `block` is in one of `by`. O(n log n) of those that overlap it."""
    reached = block.first
    for each in sorted(other for other in by if other.overlaps(block)):
        if each.first > reached:
            return False
        reached = max(reached, each.last + 1)
    return reached > block.last


def ranges_overlap(pools: Iterable[Pool]) -> Iterator[Diagnostic]:
    """IPC0207: no two ranges share an address.

    Whether of one pool or of two, enabled or disabled: two ranges that share an address would give it to two nodes. Cilium looks for overlap inside
    one list only, and never across CiliumPodIPPools.
    """
    ranges = sorted(
        (
            (each, part.at / "cidrs", pool)
            for pool in pools
            for part in pool.families.values()
            for each in part.ranges
        ),
        key=lambda each: (each[0].block, each[2].name),
    )
    widest: tuple[Range, Pool] | None = None
    for each, _, pool in ranges:
        if widest and widest[0].block.overlaps(each.block):
            outer, owner = widest
            whose = f'pool "{owner.name}"' if owner.name != pool.name else "another range of its own"
            yield error(
                "IPC0207",
                each.at,
                f'{each.block} of pool "{pool.name}" overlaps {whose}',
                also=[Related(outer.at, f"{outer.block} claimed here")],
                help=f"split {outer.block} around {each.block}, or drop one of the two"
                if outer.block != each.block
                else "drop one of the two",
            )
        else:
            widest = (each, pool)


def over_excluded_world(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0208: no range shares an address with an excluded CIDR, unless `reserved` covers what they share.

    `excludedCIDRs` is the outside world: the service range, node networks, other clusters; CIDRs of Calico pools that are not for workloads count too.
    Pods in such a range would shadow it.
    """
    for pool in cluster.pools:
        reserved = [each.block for each in pool.reserved]
        for part in pool.families.values():
            for each in part.ranges:
                for excluded in cluster.excluded:
                    if not each.block.overlaps(excluded.block):
                        continue
                    shared = max(each.block, excluded.block, key=lambda block: block.prefix)
                    if not covered(shared, reserved):
                        yield error(
                            "IPC0208",
                            each.at,
                            f'{each.block} of pool "{pool.name}" overlaps excluded {excluded.block}',
                            also=[Related(excluded.at, f"{excluded.block} excluded here")],
                            help=f"add {shared} to the pool's reserved, or take one of the two away"
                            if shared != each.block
                            else "use another range, or take the excluded CIDR away",
                        )


def node_inside_range(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0209: no node's InternalIP lies in a range, unless it is reserved.

    A pod could get the address of a node, and routes to the node would lead to the pod. Reserve the node network inside the pool, or move the range.
    """
    range_index = RangeIndex(cluster.pools)
    found: dict[Range, list[tuple[Node, Block]]] = {}
    owners: dict[Range, Pool] = {}
    for node in cluster.nodes:
        for family, number in node.internal_ips:
            address = Block(family, number, 32 if family == 4 else 128)
            ground = range_index.of(address)
            if ground and first_overlap(ground.pool.reserved, address) is None:
                found.setdefault(ground.range, []).append((node, address))
                owners[ground.range] = ground.pool
    for each, nodes in found.items():
        first, address = nodes[0]
        text = str(address).partition("/")[0]
        yield error(
            "IPC0209",
            each.at,
            f'{each.block} of pool "{owners[each].name}" contains the InternalIP of {count(len(nodes), "node")}: {names(node.name for node, _ in nodes)}',
            also=[Related(first.at, f"{first.name} has {text}")],
            help="add the node network to the pool's reserved, or move the range",
        )


def block_larger_than_range(pool: Pool) -> Iterator[Diagnostic]:
    """IPC0210: every range holds at least one block.

    A `blockSize` shorter than the range's prefix length asks for a block larger than the range. Cilium takes such a range and reports it as full for ever.
    """
    for family, part in pool.families.items():
        for each in part.ranges:
            if part.block_size < each.block.prefix and not (pool.dialect is Dialect.CALICO and pool.disabled):
                yield error(
                    "IPC0210",
                    each.at,
                    f'{each.block} of pool "{pool.name}" holds no block of /{part.block_size}',
                    also=[Related(part.at / "blockSize", "the block size is set here")],
                    help=f"set blockSize to {each.block.prefix} or more, or drop the range",
                )
        for index, each_class in enumerate(pool.block_sizes):
            size = each_class.sizes.get(family)
            if size is not None and all(size < each.block.prefix for each in part.ranges):
                yield error(
                    "IPC0210",
                    each_class.at / f"ipv{family}",
                    f'no range of pool "{pool.name}" holds a block of /{size}, the size of class {index + 1}',
                    help=f"set it to {min(each.block.prefix for each in part.ranges)} or more",
                )


def dialect_bounds(pool: Pool) -> Iterator[Diagnostic]:
    """IPC0212: a pool keeps the bounds of the language that it is written in.

    Calico allows a `blockSize` of 20 to 32 and of 116 to 128; a ClusterCIDR's `perNodeHostBits` is at least 4. A file that Calico or
    node-ipam-controller would refuse is refused here too; write a native IPPool for other sizes.
    """
    for family, part in pool.families.items():
        low, high = CALICO_BOUNDS[family]
        if pool.dialect is Dialect.CALICO and not low <= part.block_size <= high:
            yield error(
                "IPC0212",
                part.at / "blockSize",
                f"blockSize {part.block_size} is not one of {low} to {high}, which Calico allows for IPv{family}",
                help=f"use {min(max(part.block_size, low), high)}, or write a native IPPool (apiVersion: ipamc/v1alpha1)",
            )
        host_bits = (32 if family == 4 else 128) - part.block_size
        if pool.dialect is Dialect.CLUSTER_CIDR and host_bits < 4:
            yield error(
                "IPC0212",
                part.at / "perNodeHostBits",
                f"perNodeHostBits {host_bits} is less than 4, which ClusterCIDR asks for",
                help="use 4 or more, or write a native IPPool (apiVersion: ipamc/v1alpha1)",
            )


def reserved_outside(pool: Pool) -> Iterator[Diagnostic]:
    """IPC0213: reserved CIDRs and pins lie in a range of their pool.

    A reservation or pin outside every range does nothing, which is never what was meant: most often a digit is wrong, or the range was moved.
    """
    ranges = [each.block for part in pool.families.values() for each in part.ranges]
    for each in pool.reserved:
        if not any(block.overlaps(each.block) for block in ranges):
            yield error(
                "IPC0213",
                each.at,
                f'reserved {each.block} lies outside pool "{pool.name}"',
                also=[Related(pool.at / "spec", "the pool is here")],
                help="move it into a range, or drop it",
            )
    for node, pins in sorted(pool.pins.items()):
        for each in pins:
            if not any(block.contains(each.block) for block in ranges):
                yield error(
                    "IPC0213",
                    each.at,
                    f'pin {each.block} of node {node} lies in no range of pool "{pool.name}"',
                    also=[Related(pool.at / "spec", "the pool is here")],
                    help="pin a block inside a range, or add the range",
                )


def impossible_selector(pool: Pool) -> Iterator[Diagnostic]:
    """IPC0214: a selector that no node can match serves nobody.

    It asks for a label that Kubernetes does not allow, for two values of one label, or for a value out of an empty set.
    """
    if why := pool.selector.impossible():
        yield warning(
            "IPC0214",
            pool.selector_at,
            f'no node can match the selector of pool "{pool.name}": {why}',
            help="mend the selector, or set disabled: true",
        )
    for each in pool.block_sizes:
        if why := each.selector.impossible():
            yield warning(
                "IPC0214",
                each.at / "nodeSelector",
                f'no node can match this size class of pool "{pool.name}": {why}',
                help="mend the selector, or drop the class",
            )


def unknown_overflow(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0219: `overflow` and `autoCreate` name pools that exist.

    A name that matches no pool is a typo; the nodes that were to overflow would be refused on the day on which the pool is full.
    """
    known = {pool.name for pool in cluster.pools}
    for pool in cluster.pools:
        for index, name in enumerate(pool.overflow):
            if name not in known or name == pool.name:
                what = "is the pool itself" if name == pool.name else "names no pool"
                yield error(
                    "IPC0219",
                    pool.at / "spec" / "overflow" / index,
                    f'overflow {name!r} of pool "{pool.name}" {what}',
                    help=f"one of: {names(known - {pool.name}, 8) or 'none'}",
                )
    for index, name in enumerate(cluster.auto_create):
        if name not in known:
            yield error(
                "IPC0219",
                cluster.field("spec", "ipam", "autoCreate") / index,
                f"autoCreate {name!r} names no pool",
                help=f"one of: {names(known, 8) or 'none'}",
            )


def outside_native_routing(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0216: ranges lie inside `nativeRoutingCIDR`.

    With native routing Cilium leaves traffic inside that CIDR alone and masquerades the rest: pods of a range outside it reach each other with a node's
    address as their source.
    """
    routed = cluster.native_routing
    if routed is None or cluster.routing_mode == "tunnel":
        return
    for pool in cluster.pools:
        for part in pool.families.values():
            for each in part.ranges:
                if each.block.family == routed.block.family and not routed.block.contains(each.block):
                    yield warning(
                        "IPC0216",
                        each.at,
                        f'{each.block} of pool "{pool.name}" lies outside nativeRoutingCIDR {routed.block}',
                        also=[Related(routed.at, "the routed CIDR is set here")],
                        help="widen nativeRoutingCIDR, or use ip-masq-agent",
                    )


def ipv6_too_wide(cluster: Cluster, masks: dict[int, int]) -> Iterator[Diagnostic]:
    """IPC0211: an IPv6 range has at most 2^16 blocks for the program that reads it.

    Cilium's operator and node-ipam-controller keep a bitmap of the blocks of a range and refuse one of more than 16 bits: the operator does not start (a
    bystander only once it is to adopt). The mask is in cluster-pool mode the longest prefix length of the cluster, in multi-pool mode the pool's own.
    """
    parts = [pool.families[6] for pool in cluster.pools if 6 in pool.families]
    for pool in cluster.pools:
        part = pool.families.get(6)
        if part is None:
            continue
        if pool.dialect is Dialect.CLUSTER_CIDR or cluster.mode is Mode.MULTI_POOL:
            mask = part.block_size
        elif cluster.mode is Mode.CLUSTER_POOL:
            mask = masks.get(6, part.block_size)
        else:
            continue
        for each in part.ranges:
            if mask - each.block.prefix > IPV6_DIFFERENCE:
                sized = next((other for other in (part, *parts) if other.block_size == mask), part)
                where = "here" if sized is part else "here, for the whole cluster"
                yield error(
                    "IPC0211",
                    each.at,
                    f'{each.block} of pool "{pool.name}" has 2^{mask - each.block.prefix} blocks of /{mask}; 2^{IPV6_DIFFERENCE} is the limit',
                    also=[Related(sized.at / "blockSize", f"the block size is set {where}")],
                    help=f"use a range of /{mask - IPV6_DIFFERENCE} or longer, or blocks of /{each.block.prefix + IPV6_DIFFERENCE} or shorter",
                )
