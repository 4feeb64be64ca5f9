"""Rules about pools: ranges are disjoint, lie outside of what is excluded, and hold at least one block."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ipamc.model.address_sets import blocks_over, covers, index_around, outermost, overlaps, shared
from ipamc.model.cidr import BITS, Block, Range, address_text, around
from ipamc.model.cluster import Cluster, Dialect, Mode, Node, Pool, PoolFamily
from ipamc.model.diagnostics import Diagnostic, Related, count, error, names, warning
from ipamc.model.ownership import PoolRange, RangeIndex
from ipamc.model.pool_words import block_size, native_form, no_new_blocks, with_reserved

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
    """IPC0207: no two ranges share an address."""
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
    """IPC0208: no range shares an address with an excluded CIDR, unless `reserved` covers what they share."""
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
    """IPC0209: no node's InternalIP lies in a range, unless it is reserved."""
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
    """IPC0210: every range holds at least one block."""
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
    """IPC0212: a pool keeps the bounds of the dialect that it is written in."""
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
    """IPC0213: reserved CIDRs and pins lie in a range of their pool."""
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
    """IPC0214: a selector can match a node."""
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
    """IPC0219: `overflow` and `autoCreate` name pools that exist."""
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
    """IPC0216: ranges lie inside `nativeRoutingCIDR`."""
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
    """IPC0211: an IPv6 range has at most 2^16 blocks for the program that reads it."""
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
