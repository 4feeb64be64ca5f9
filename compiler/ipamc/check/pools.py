"""Rules about pools: their ranges, selectors, pins and `usage`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from ipamc.model.address_sets import blocks_over, covers, index_around, outermost, overlaps, shared
from ipamc.model.cidr import BITS, Block, Range, address_text, around
from ipamc.model.cluster import Cluster, Dialect, Mode, Pool, Usage
from ipamc.model.diagnostics import Diagnostic, Place, Related, count, error, note, several, warning
from ipamc.model.limits import IPV6_BLOCK_BITS, LEAST_HOST_BITS
from ipamc.model.node import Node
from ipamc.model.ownership import PoolRange, nodes_in_pools
from ipamc.model.pool_words import block_size, native_form, no_new_blocks, with_reserved
from ipamc.model.wording import nearest_name, shown

CALICO_BOUNDS = {4: (20, 32), 6: (116, 128)}
"""Calico's bounds for `blockSize` (v3.34, api/pkg/apis/projectcalico/v3/ippool.go, XValidation)."""


def check_pools(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield every finding about pools in any mode."""
    yield from not_given(cluster)
    yield from over_excluded_world(cluster)
    yield from node_inside_range(cluster)
    yield from check_ranges(cluster.pools)
    yield from unknown_overflow(cluster)
    yield from outside_native_routing(cluster)


def check_ranges(pools: Sequence[Pool]) -> Iterator[Diagnostic]:
    """Yield every finding about pools by themselves, of a cluster or of an address space."""
    yield from ranges_overlap(pools)
    for pool in pools:
        yield from block_larger_than_range(pool)
        yield from dialect_bounds(pool)
        yield from reserved_outside(pool)
        yield from impossible_selector(pool)


def not_given(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0704: a pool gets the ranges that it requests from an address space."""
    for pool in cluster.networks:
        for family, part in pool.families.items():
            if (ask := part.ask) and len(part.ranges) < ask.ranges:
                wants = count(ask.ranges, f"IPv{family} range")
                has = f"but has {len(part.ranges):,}" if part.ranges else "but has none"
                fix = f"compile the space: ipamc compile {ask.space}; then compile this cluster again"
                if ask.space not in ask.beside:
                    has = "but the space has no index here"
                    if near := nearest_name(ask.space, ask.beside):
                        fix = f"did you mean {near}? If not, {fix}"
                text = f'pool "{pool.name}" requests {wants} from address space {shown(ask.space)}, {has}'
                yield error("IPC0704", ask.at, text, help=fix)


def ranges_overlap(pools: Iterable[Pool]) -> Iterator[Diagnostic]:
    """IPC0207: no two ranges share an address."""
    ranges = (PoolRange(pool=pool, range=cidr) for pool in pools for cidr in pool.ranges)
    for outer, inner in overlaps(ranges, lambda pool_range: pool_range.range.block):
        wide, block = outer.range.block, inner.range.block
        same_pool = outer.pool.name == inner.pool.name
        whose = "another range of the pool" if same_pool else f'pool "{outer.pool.name}"'
        message = f'{block} of pool "{inner.pool.name}" overlaps {whose}'
        also = [Related(outer.range.at, f"{wide} is here")]
        fix = f"{'' if wide == block else f'split {wide} around {block}, or '}remove one of the two"
        if outer.pool.dialect is inner.pool.dialect is Dialect.CLUSTER_CIDR and wide == block:
            sizes = " and ".join(f"/{each.pool.families[block.family].block_size}" for each in (outer, inner))
            fix = f"write both as one IPPool with blockSizes ({sizes}, each with its nodeSelector); or {fix}"
        yield error("IPC0207", inner.range.at, message, also=also, help=fix)


def over_excluded_world(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0208: no range shares an address with an excluded CIDR, unless it is reserved."""
    for pool in cluster.pools:
        reserved = outermost(cidr.block for cidr in pool.reserved)
        for cidr in pool.ranges:
            for excluded in cluster.excluded_index.over(cidr.block) if cluster.excluded else ():
                both = shared(cidr.block, excluded.block)
                if not covers(blocks_over(reserved, both), both):
                    message = f'{cidr.block} of pool "{pool.name}" overlaps excluded {excluded.block}'
                    also = [Related(excluded.at, f"{excluded.block} is excluded here")]
                    fix = "use another range, or remove the excluded CIDR"
                    if both != cidr.block:
                        fix = f"remove one of the two, or {with_reserved(pool, both, str(both))}"
                    yield error("IPC0208", cidr.at, message, also=also, help=fix)


def node_inside_range(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0209: no node's InternalIP lies in a range, unless it is reserved."""
    found: dict[Range, list[tuple[Pool, Node, Block]]] = {}
    for pool, cidr, node, address in nodes_in_pools(cluster):
        reserved = pool.reserved_over(address)
        if reserved is None or reserved.node:
            found.setdefault(cidr, []).append((pool, node, address))
    for cidr, nodes in found.items():
        pool, first, address = nodes[0]
        numbers = [each.first for _, _, each in nodes]
        network = around(cidr.block.family, min(numbers), max(numbers))
        those = several([node.name for _, node, _ in nodes], "node")
        message = f'{cidr.block} of pool "{pool.name}" contains the InternalIP of {those}'
        also = [Related(first.at, f"{first.name} has {address_text(address.family, address.first)}")]
        reserve = f"move the range, or {with_reserved(pool, network, 'the node network')}"
        if pool.reserved_over(address) is None:
            message += "; Cilium's operator may give it to a pod"
            yield warning("IPC0209", cidr.at, message, also=also, help=reserve)
        else:
            message += "; no node gets a block with such an address"
            yield note("IPC0209", cidr.at, message, also=also, help=reserve)


def _meant_size(pool: Pool, family: int, cidr: Block) -> str:
    """Return the size that host bits, or an IPv4 size, probably mean, with the text that follows; or ""."""
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
                message = f'{cidr.block} of pool "{pool.name}" is smaller than a block of /{part.block_size}'
                also = [Related(part.at / "blockSize", "the block size is set here")]
                whole = f"{block_size(pool, family, cidr.block.prefix)}, for a block as large as the range"
                fix = f"set {_meant_size(pool, family, cidr.block)}{whole}, or remove the range"
                yield error("IPC0210", cidr.at, message, also=also, help=fix)
        least = min((cidr.block.prefix for cidr in part.ranges), default=0)
        for number, size_class in enumerate(pool.block_sizes, 1):
            size = size_class.sizes.get(family)
            if size is not None and size < least:
                at = size_class.at / f"ipv{family}"
                block = f"a block of /{size}, the size of class {number}"
                message = f'no range of pool "{pool.name}" holds {block}'
                yield error("IPC0210", at, message, help=f"set it to {least} or more")


def dialect_bounds(pool: Pool) -> Iterator[Diagnostic]:
    """IPC0212: a block size is valid in the format of its pool (Calico or ClusterCIDR)."""
    for family, part in pool.families.items():
        low, high = CALICO_BOUNDS[family]
        if pool.dialect is Dialect.CALICO and not low <= part.block_size <= high:
            bounds = f"{low} to {high}, the bounds of Calico for IPv{family}"
            message = f"blockSize {part.block_size} is outside {bounds}"
            best = min(max(part.block_size, low), high)
            fix = f"use {best}, or write the pool in the native form: {native_form(pool, {})}"
            yield error("IPC0212", part.at / "blockSize", message, help=fix)
        host_bits = BITS[family] - part.block_size
        if pool.dialect is Dialect.CLUSTER_CIDR and host_bits < LEAST_HOST_BITS:
            least = f"{LEAST_HOST_BITS}, the minimum of ClusterCIDR"
            fix = f"use {LEAST_HOST_BITS} or more, or write the pool in the native form: "
            fix += native_form(pool, {})
            message = f"perNodeHostBits {host_bits} is less than {least}"
            yield error("IPC0212", part.at / "perNodeHostBits", message, help=fix)


def reserved_outside(pool: Pool) -> Iterator[Diagnostic]:
    """IPC0213: reserved CIDRs and pins lie in a range of their pool."""
    ranges = outermost(cidr.block for cidr in pool.ranges)
    for reserved in pool.reserved:
        if not blocks_over(ranges, reserved.block):
            message = f'reserved {reserved.block} lies outside pool "{pool.name}"'
            also = [Related(pool.at / "spec", "the pool is here")]
            yield error("IPC0213", reserved.at, message, also=also, help="move it into a range, or remove it")
    for node, pins in sorted(pool.pins.items()) if not pool.follows else ():
        for pin in pins:
            if index_around(ranges, pin.block) is None:
                message = f'pin {pin.block} of node {node} lies outside pool "{pool.name}"'
                also = [Related(pool.at / "spec", "the pool is here")]
                fix = "pin a block inside a range, or add the range"
                yield error("IPC0213", pin.at, message, also=also, help=fix)


def impossible_selector(pool: Pool) -> Iterator[Diagnostic]:
    """IPC0214: a selector can match a node."""
    if pool.disabled:
        return
    if why := pool.selector.impossible:
        message = f'no node can match the selector of pool "{pool.name}": {why}'
        fix = f"correct the selector, or {no_new_blocks(pool)}"
        yield warning("IPC0214", pool.selector_at, message, help=fix)
    for size_class in pool.block_sizes:
        if why := size_class.selector.impossible:
            at = size_class.at / "nodeSelector"
            message = f'no node can match this size class of pool "{pool.name}": {why}'
            yield warning("IPC0214", at, message, help="correct the selector, or remove the class")


def unknown_overflow(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0219: `overflow` and `autoCreate` name pools that exist."""
    known = {pool.name for pool in cluster.pools}
    in_order = sorted(known)
    for pool in cluster.pools:
        for index, name in enumerate(pool.overflow):
            if name not in known or name == pool.name:
                what = "is the pool itself" if name == pool.name else "names no pool"
                at = pool.at / "spec" / "overflow" / index
                message = f'overflow {name!r} of pool "{pool.name}" {what}'
                yield error("IPC0219", at, message, help=f"one of: {_names_except(in_order, pool.name)}")
    for index, name in enumerate(cluster.auto_create):
        if name not in known:
            at = cluster.field("spec", "ipam", "autoCreate") / index
            message = f"autoCreate {name!r} names no pool"
            yield error("IPC0219", at, message, help=f"one of: {_names_except(in_order)}")


def _names_except(known: list[str], but: str = "") -> str:
    """Return the first of sorted names without one of them, and the number of the others."""
    first = [name for name in known[:9] if name != but]
    others = len(known) - bool(but)
    return ", ".join(first[:8]) + f" and {others - 8:,} more" if others > 8 else ", ".join(first) or "none"


def outside_native_routing(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0216: ranges lie inside `nativeRoutingCIDR`."""
    routed = cluster.native_routing
    if routed is None or cluster.routing_mode == "tunnel" or cluster.masquerade:
        return  # with `masquerade` all pools are in a list, or IPC0583 reports it
    for pool in cluster.pools:
        for cidr in pool.ranges:
            if cidr.block.family == routed.block.family and not routed.block.contains(cidr.block):
                message = f'{cidr.block} of pool "{pool.name}" lies outside nativeRoutingCIDR {routed.block}'
                also = [Related(routed.at, "the routed CIDR is set here")]
                fix = "write masquerade: {} beside it, for a list of all pools; or widen nativeRoutingCIDR"
                yield warning("IPC0216", cidr.at, message, also=also, help=fix)


def ipv6_too_wide(
    cluster: Cluster, masks: dict[int, int], shared_pools: Collection[str] = ()
) -> Iterator[Diagnostic]:
    """IPC0211: an IPv6 range has at most 2^16 blocks of the operator's block size."""
    parts = [pool.families[6] for pool in cluster.pools if 6 in pool.families]
    first = {part.block_size: part for part in reversed(parts)}
    for pool in cluster.pools:
        part, by_spec = pool.families.get(6), pool.dialect is Dialect.CLUSTER_CIDR
        own = cluster.own_pools and pool.name not in shared_pools
        if part and (by_spec or (cluster.mode is Mode.MULTI_POOL and not own)):
            mask = part.block_size
        elif part and cluster.mode is Mode.CLUSTER_POOL:
            mask = masks.get(6, part.block_size)
        else:
            continue
        for cidr in part.ranges:
            if mask - cidr.block.prefix > IPV6_BLOCK_BITS:
                sized = part if part.block_size == mask else first.get(mask, part)
                where = "here" if sized is part else "here, for the whole cluster"
                has = f"has 2^{mask - cidr.block.prefix} blocks of /{mask}; the limit is 2^{IPV6_BLOCK_BITS}"
                message = f'{cidr.block} of pool "{pool.name}" {has}'
                also = [Related(sized.at / "blockSize", f"the block size is set {where}")]
                larger = block_size(pool, 6, cidr.block.prefix + IPV6_BLOCK_BITS)
                fix = f"use a range of /{mask - IPV6_BLOCK_BITS} or longer, or larger blocks: {larger}"
                yield error("IPC0211", cidr.at, message, also=also, help=fix)


class Pin(Struct, frozen=True):
    """A block that a pool keeps for a node."""

    block: Block
    node: str
    at: Place
    pool: Pool


def check_pins(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield every finding about pins that needs no lock; `check/follows.py` has those about `follows`."""
    written = [pool for pool in cluster.pools if not pool.follows]
    by_node = ((pool, node, pins) for pool in written for node, pins in pool.pins.items())
    pins = [Pin(pin.block, node, pin.at, pool) for pool, node, some in by_node for pin in some]
    yield from pins_overlap(sorted(pins, key=lambda pin: pin.node))
    yield from pin_over_reserved(cluster, pins)
    yield from several_pins(cluster, pins)
    yield from pin_in_unlisted(pins)


def pins_overlap(pins: list[Pin]) -> Iterator[Diagnostic]:
    """IPC0217: no two pins share an address."""
    for outer, pin in overlaps(pins, lambda pin: pin.block):
        message = f"pin {pin.block} of node {pin.node} overlaps pin {outer.block} of node {outer.node}"
        also = [Related(outer.at, f"{outer.node} is pinned here")]
        yield error("IPC0217", pin.at, message, also=also, help="pin one of them elsewhere")


def pin_over_reserved(cluster: Cluster, pins: list[Pin]) -> Iterator[Diagnostic]:
    """IPC0218: a pin shares no address with a reserved or excluded CIDR."""
    for pin in pins:
        for what, field, under in (
            ("reserved", "reserved", pin.pool.reserved_over(pin.block)),
            ("excluded", "excludedCIDRs", cluster.excluded_over(pin.block)),
        ):
            if under and not under.node:
                message = f"pin {pin.block} of node {pin.node} overlaps {what} {under.block}"
                fix = f"pin another block, or remove {shared(under.block, pin.block)} from {field}"
                yield error("IPC0218", pin.at, message, also=[Related(under.at, f"{what} here")], help=fix)


def several_pins(cluster: Cluster, pins: list[Pin]) -> Iterator[Diagnostic]:
    """IPC0502: in kubernetes and cluster-pool mode, a node has one block per IP family."""
    if not cluster.mode.one_block:
        return
    first: dict[tuple[str, int], Pin] = {}
    for pin in sorted(pins, key=lambda pin: (pin.node, pin.block)):
        before = first.setdefault((pin.node, pin.block.family), pin)
        if before is not pin:
            blocks = f"several IPv{pin.block.family} blocks"
            message = f"node {pin.node} is pinned to {blocks}, but {cluster.mode} mode allows one"
            also = [Related(before.at, f"{before.block} is pinned here")]
            fix = "pin one larger block, or use multi-pool mode"
            yield error("IPC0502", pin.at, message, also=also, help=fix)
    for pool in cluster.pools:
        if pool.blocks_per_node > 1:
            at, gives = pool.at / "spec" / "blocksPerNode", f"has blocksPerNode: {pool.blocks_per_node}"
            message = f'pool "{pool.name}" {gives}, but {cluster.mode} mode allows one block a family'
            fix = "use a larger block (a shorter blockSize), or multi-pool mode"
            yield error("IPC0502", at, message, also=[cluster.mode_here], help=fix)


def pin_in_unlisted(pins: list[Pin]) -> Iterator[Diagnostic]:
    """IPC0222: no node is pinned to a block of an `unlisted` pool."""
    for pin in pins:
        if pin.pool.unlisted:
            pool = f'unlisted pool "{pin.pool.name}", whose blocks the operator hands out'
            message = f"pin {pin.block} of node {pin.node} is in {pool}"
            also = [Related(pin.pool.at / "spec" / "unlisted", "the pool is unlisted here")]
            yield error("IPC0222", pin.at, message, also=also, help="pin a block of another pool")


def check_usage(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield findings about `usage` of pools."""
    for pool in cluster.pools:
        if pool.usage:
            yield from usage_apart(pool, pool.usage)
            yield from usage_of_mode(cluster, pool, pool.usage)


def usage_apart(pool: Pool, usage: Usage) -> Iterator[Diagnostic]:
    """IPC0602: the limits of `usage` do not contradict each other."""
    if usage.low >= usage.high:
        message = f'usage of pool "{pool.name}": low {usage.low} is not below high {usage.high}'
        fix = "leave about 40 percent between the two: {high: 85, low: 40}"
        yield error("IPC0602", usage.at, message, help=fix)
    if not usage.least <= pool.blocks_per_node <= usage.most:
        number, bounds = pool.blocks_per_node, f"between minBlocks {usage.least} and maxBlocks {usage.most}"
        message = f'usage of pool "{pool.name}": blocksPerNode {number} is not {bounds}'
        fix = f"write minBlocks: {min(usage.least, number)}, maxBlocks: {max(usage.most, number)}"
        yield error("IPC0602", usage.at, message, help=fix)


def usage_of_mode(cluster: Cluster, pool: Pool, usage: Usage) -> Iterator[Diagnostic]:
    """IPC0603: `usage` has only fields that the mode supports."""
    grows = cluster.mode is Mode.CRD or cluster.own_pools
    fields = {
        "minBlocks": not grows and usage.least != 1,
        "maxBlocks": not grows and usage.most != 1,
        "addresses": cluster.mode is not Mode.CRD and usage.addresses > 0,
    }
    for name in (name for name, refused in fields.items() if refused):
        pinning = f" with pinning: {cluster.pinning}" if cluster.mode is Mode.MULTI_POOL else ""
        unsupported = f"{cluster.mode} mode{pinning} does not support"
        message = f'usage of pool "{pool.name}" has {name}, which {unsupported}'
        yield error("IPC0603", usage.at / name, message, also=[cluster.mode_here], help=f"remove {name}")
