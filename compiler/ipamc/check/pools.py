"""Rules about pools: ranges are disjoint, lie outside of what is excluded, and hold at least one block."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ipamc.model.address_sets import blocks_over, covers, index_around, outermost, overlaps, shared
from ipamc.model.cidr import BITS, Block, address_text, around
from ipamc.model.cluster import Cluster, Dialect, Mode, Node, Pool, PoolFamily, Range
from ipamc.model.diagnostics import Diagnostic, Related, count, error, names, warning
from ipamc.model.pool_words import block_size, native_form, no_new_blocks, with_reserved
from ipamc.model.range_index import PoolRange, RangeIndex

CALICO_BOUNDS = {4: (20, 32), 6: (116, 128)}
"""Calico's bounds for `blockSize` (v3.34, api/pkg/apis/projectcalico/v3/ippool.go, XValidation)."""

IPV6_DIFFERENCE = 16
"""An IPv6 range has at most 2^16 blocks: Cilium and Kubernetes keep a bitmap (clusterSubnetMaxDiff)."""


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


def ranges_overlap(pools: Iterable[Pool]) -> Iterator[Diagnostic]:
    """IPC0207: no two ranges share an address.

    This holds for ranges of one pool and of two pools, in all dialects, enabled or disabled.

    Why: an address in two ranges would be given to two nodes, and packets for its pods would go to either.
    Cilium does not notice: it compares the CIDRs of one list only, and never those of two CiliumPodIPPools.

    Run: drop or shrink one of the two. `ipamc suggest pool CLUSTER --size 22` finds a CIDR that is free in
    all clusters of the address space. Then `ipamc compile CLUSTER`.
    """
    ranges = (PoolRange(pool=pool, range=cidr) for pool in pools for cidr in pool.ranges)
    for outer, inner in overlaps(ranges, lambda pool_range: pool_range.range.block):
        wide, block = outer.range.block, inner.range.block
        same_pool = outer.pool.name == inner.pool.name
        whose = "another range of its own" if same_pool else f'pool "{outer.pool.name}"'
        yield error(
            "IPC0207",
            inner.range.at,
            f'{block} of pool "{inner.pool.name}" overlaps {whose}',
            also=[Related(outer.range.at, f"{wide} is here")],
            help="drop one of the two"
            if wide == block
            else f"split {wide} around {block}, or drop one of the two",
        )


def over_excluded_world(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0208: no range shares an address with an excluded CIDR, unless `reserved` covers what they share.

    `excludedCIDRs` are addresses of the outside world: the service range, node networks, other clusters.
    CIDRs of Calico pools that are not for workloads count too.

    Why: a block of such addresses would be given to a node. Traffic for a service or for a server outside
    would go to a pod.

    Run: use another range (`ipamc suggest pool CLUSTER --size 20` finds a free one), or add what both share
    to `reserved` of the pool: it is given to no node. Then `ipamc compile CLUSTER`.
    """
    for pool in cluster.pools:
        reserved = outermost(cidr.block for cidr in pool.reserved)
        for cidr in pool.ranges:
            for excluded in cluster.excluded_index.over(cidr.block) if cluster.excluded else ():
                both = shared(cidr.block, excluded.block)
                if not covers(blocks_over(reserved, both), both):
                    yield error(
                        "IPC0208",
                        cidr.at,
                        f'{cidr.block} of pool "{pool.name}" overlaps excluded {excluded.block}',
                        also=[Related(excluded.at, f"{excluded.block} excluded here")],
                        help=f"remove one of the two, or {with_reserved(pool, both, str(both))}"
                        if both != cidr.block
                        else "use another range, or remove the excluded CIDR",
                    )


def node_inside_range(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0209: no node's InternalIP lies in a range, unless it is reserved.

    The addresses are those of the Node objects in the cluster's folder.

    Why: a pod could get the address of a node, and routes to the node would lead to the pod.

    Run: move the range (`ipamc suggest pool CLUSTER --size 20` keeps away from the addresses of nodes), or
    add the node network to `reserved` of the pool. Then `ipamc compile CLUSTER`.
    """
    ranges = RangeIndex(cluster.pools)
    found: dict[Range, list[tuple[Pool, Node, int]]] = {}
    for node in cluster.nodes:
        for family, number in node.internal_ips:
            address = Block(family, number, BITS[family])
            inside = ranges.of(address)
            if inside and inside.pool.reserved_over(address) is None:
                found.setdefault(inside.range, []).append((inside.pool, node, number))
    for cidr, nodes in found.items():
        pool, first, number = nodes[0]
        numbers = [number for _, _, number in nodes]
        network = around(cidr.block.family, min(numbers), max(numbers))
        yield error(
            "IPC0209",
            cidr.at,
            f'{cidr.block} of pool "{pool.name}" contains the InternalIP of {count(len(nodes), "node")}: {names(node.name for _, node, _ in nodes)}',
            also=[Related(first.at, f"{first.name} has {address_text(cidr.block.family, number)}")],
            help=f"move the range, or {with_reserved(pool, network, 'the node network')}",
        )


def _meant_size(pool: Pool, family: int, cidr: Block) -> str:
    """Return the size for which the host bits, or a size of IPv4, was written, with what follows; or ""."""
    size = pool.families[family].block_size
    meant = 64 if family == 6 else BITS[4] - size
    if size > 32 or not cidr.prefix < meant:
        return ""
    room = f"{1 << (BITS[family] - meant):,} addresses" if family == 4 else f"/{meant}"
    return f"{block_size(pool, family, meant)}, for blocks of {room}; or "


def block_larger_than_range(pool: Pool) -> Iterator[Diagnostic]:
    """IPC0210: every range holds at least one block.

    This holds for `blockSize` and for each class of `blockSizes`.

    Why: a block size below the range's prefix length asks for a block larger than the range. Cilium accepts
    such a range, and reports it as full for ever: no node gets an address of it.

    Run: use a longer prefix length as `blockSize`, or a wider range; then `ipamc compile CLUSTER`.
    """
    for family, part in pool.families.items():
        for cidr in part.ranges:
            if part.block_size < cidr.block.prefix and not (pool.dialect is Dialect.CALICO and pool.disabled):
                yield error(
                    "IPC0210",
                    cidr.at,
                    f'{cidr.block} of pool "{pool.name}" holds no block of /{part.block_size}',
                    also=[Related(part.at / "blockSize", "the block size is set here")],
                    help=f"set {_meant_size(pool, family, cidr.block)}{block_size(pool, family, cidr.block.prefix)}, for a block as large as the range, or drop the range",
                )
        least = min((cidr.block.prefix for cidr in part.ranges), default=0)
        for number, size_class in enumerate(pool.block_sizes, 1):
            size = size_class.sizes.get(family)
            if size is not None and size < least:
                yield error(
                    "IPC0210",
                    size_class.at / f"ipv{family}",
                    f'no range of pool "{pool.name}" holds a block of /{size}, the size of class {number}',
                    help=f"set it to {least} or more",
                )


def dialect_bounds(pool: Pool) -> Iterator[Diagnostic]:
    """IPC0212: a pool keeps the bounds of the dialect that it is written in.

    Calico allows a `blockSize` of 20 to 32 and of 116 to 128; a ClusterCIDR's `perNodeHostBits` is at least
    4.

    Why: Calico or node-ipam-controller would refuse the file, so it is not the one that a cluster has: most
    often a digit is wrong.

    Run: write the value that the cluster has, or write the pool as an IPPool of ipamc/v1alpha1, which has
    no such bounds: `ipamc schema IPPool`. Then `ipamc compile CLUSTER`.
    """
    for family, part in pool.families.items():
        low, high = CALICO_BOUNDS[family]
        if pool.dialect is Dialect.CALICO and not low <= part.block_size <= high:
            yield error(
                "IPC0212",
                part.at / "blockSize",
                f"blockSize {part.block_size} is not one of {low} to {high}, which Calico allows for IPv{family}",
                help=f"use {min(max(part.block_size, low), high)}, or write the pool in the native form: {native_form(pool, {})}",
            )
        host_bits = BITS[family] - part.block_size
        if pool.dialect is Dialect.CLUSTER_CIDR and host_bits < 4:
            yield error(
                "IPC0212",
                part.at / "perNodeHostBits",
                f"perNodeHostBits {host_bits} is less than 4, the least that ClusterCIDR allows",
                help=f"use 4 or more, or write the pool in the native form: {native_form(pool, {})}",
            )


def reserved_outside(pool: Pool) -> Iterator[Diagnostic]:
    """IPC0213: reserved CIDRs and pins lie in a range of their pool.

    Why: a reservation or pin outside every range has no effect. Most often a digit is wrong, or the range
    was moved: addresses that were to be kept for a router are then given to pods.

    Run: correct the CIDR, or remove it; the finding shows the pool, whose `cidrs` are its ranges. Then
    `ipamc compile CLUSTER`.
    """
    ranges = outermost(cidr.block for cidr in pool.ranges)
    for reserved in pool.reserved:
        if not blocks_over(ranges, reserved.block):
            yield error(
                "IPC0213",
                reserved.at,
                f'reserved {reserved.block} lies outside pool "{pool.name}"',
                also=[Related(pool.at / "spec", "the pool is here")],
                help="move it into a range, or drop it",
            )
    for node, pins in sorted(pool.pins.items()):
        for pin in pins:
            if index_around(ranges, pin.block) is None:
                yield error(
                    "IPC0213",
                    pin.at,
                    f'pin {pin.block} of node {node} lies in no range of pool "{pool.name}"',
                    also=[Related(pool.at / "spec", "the pool is here")],
                    help="pin a block inside a range, or add the range",
                )


def impossible_selector(pool: Pool) -> Iterator[Diagnostic]:
    """IPC0214: a selector can match a node.

    A selector cannot match if it asks for a label that Kubernetes does not allow, for two values of one
    label, or for a value out of an empty set.

    Why: the pool, or the size class, serves no node. Its nodes have no block, or one of another pool or
    another size.

    Run: correct the selector; `ipamc why NODE` shows which pools select a node. Then `ipamc compile
    CLUSTER`.
    """
    if pool.disabled:
        return
    if why := pool.selector.impossible():
        yield warning(
            "IPC0214",
            pool.selector_at,
            f'no node can match the selector of pool "{pool.name}": {why}',
            help=f"correct the selector, or {no_new_blocks(pool)}",
        )
    for size_class in pool.block_sizes:
        if why := size_class.selector.impossible():
            yield warning(
                "IPC0214",
                size_class.at / "nodeSelector",
                f'no node can match this size class of pool "{pool.name}": {why}',
                help="correct the selector, or drop the class",
            )


def unknown_overflow(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0219: `overflow` and `autoCreate` name pools that exist.

    A pool cannot overflow into itself.

    Why: a name that matches no pool is a typing error. Nodes that should overflow would be refused on the
    day on which the pool is full.

    Run: write one of the names that the finding shows, or add the pool; then `ipamc compile CLUSTER`.
    """
    known = {pool.name for pool in cluster.pools}
    in_order = sorted(known)
    for pool in cluster.pools:
        for index, name in enumerate(pool.overflow):
            if name not in known or name == pool.name:
                what = "is the pool itself" if name == pool.name else "names no pool"
                yield error(
                    "IPC0219",
                    pool.at / "spec" / "overflow" / index,
                    f'overflow {name!r} of pool "{pool.name}" {what}',
                    help=f"one of: {_some(in_order, pool.name)}",
                )
    for index, name in enumerate(cluster.auto_create):
        if name not in known:
            yield error(
                "IPC0219",
                cluster.field("spec", "ipam", "autoCreate") / index,
                f"autoCreate {name!r} names no pool",
                help=f"one of: {_some(in_order)}",
            )


def _some(known: list[str], but: str = "") -> str:
    """Return the first names but one of them, and how many others there are.

    `known` are sorted: each finding would sort them again.
    """
    first = [name for name in known[:9] if name != but]
    others = len(known) - bool(but)
    return f"{', '.join(first[:8])} and {others - 8:,} more" if others > 8 else ", ".join(first) or "none"


def outside_native_routing(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0216: ranges lie inside `nativeRoutingCIDR`.

    This holds where `routingMode` is native.

    Why: with native routing Cilium masquerades all traffic to addresses outside this CIDR. Pods of a range
    outside it reach each other with the address of a node as their source, so logs and firewalls show the
    wrong sender.

    Run: widen `nativeRoutingCIDR` so that it covers all ranges, or use ip-masq-agent; then `ipamc compile
    CLUSTER`.
    """
    routed = cluster.native_routing
    if routed is None or cluster.routing_mode == "tunnel":
        return
    for pool in cluster.pools:
        for cidr in pool.ranges:
            if cidr.block.family == routed.block.family and not routed.block.contains(cidr.block):
                yield warning(
                    "IPC0216",
                    cidr.at,
                    f'{cidr.block} of pool "{pool.name}" lies outside nativeRoutingCIDR {routed.block}',
                    also=[Related(routed.at, "the routed CIDR is set here")],
                    help="widen nativeRoutingCIDR, or use ip-masq-agent",
                )


def ipv6_too_wide(
    cluster: Cluster, masks: dict[int, int], shared_pools: Collection[str] = ()
) -> Iterator[Diagnostic]:
    """IPC0211: an IPv6 range has at most 2^16 blocks for the program that reads it.

    The mask is the longest prefix length of the cluster in cluster-pool mode, and the pool's own in
    multi-pool mode. With `pinning: node` only the ranges of pools that are further candidates of nodes are
    read (`shared_pools`). There is no limit for IPv4.

    Why: Cilium's operator and node-ipam-controller keep a bitmap of the blocks of a range, and refuse a
    bitmap of more than 2^16: the operator does not start (with `operator: bystander` only once it is to
    adopt), and no new node gets addresses.

    Run: use a narrower range or larger blocks, as the finding says; then `ipamc compile CLUSTER`.
    """
    first: dict[int, PoolFamily] = {}
    for pool in cluster.pools:
        if 6 in pool.families:
            first.setdefault(pool.families[6].block_size, pool.families[6])
    for pool in cluster.pools:
        part = pool.families.get(6)
        if part is None:
            continue
        if cluster.own_pools and pool.name not in shared_pools and pool.dialect is not Dialect.CLUSTER_CIDR:
            continue
        if pool.dialect is Dialect.CLUSTER_CIDR or cluster.mode is Mode.MULTI_POOL:
            mask = part.block_size
        elif cluster.mode is Mode.CLUSTER_POOL:
            mask = masks.get(6, part.block_size)
        else:
            continue
        for cidr in part.ranges:
            if mask - cidr.block.prefix > IPV6_DIFFERENCE:
                sized = part if part.block_size == mask else first.get(mask, part)
                where = "here" if sized is part else "here, for the whole cluster"
                yield error(
                    "IPC0211",
                    cidr.at,
                    f'{cidr.block} of pool "{pool.name}" has 2^{mask - cidr.block.prefix} blocks of /{mask}; 2^{IPV6_DIFFERENCE} is the limit',
                    also=[Related(sized.at / "blockSize", f"the block size is set {where}")],
                    help=f"use a range of /{mask - IPV6_DIFFERENCE} or longer, or larger blocks: {block_size(pool, 6, cidr.block.prefix + IPV6_DIFFERENCE)}",
                )
