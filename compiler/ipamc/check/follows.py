"""Rules about pools whose blocks follow the addresses of nodes."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.lock.file import line_at
from ipamc.model.address_sets import blocks_over, covers, lines_over, outermost, overlaps, shared
from ipamc.model.cidr import Block, OverlapIndex, Range
from ipamc.model.cluster import Cluster, Mode, Pool, PoolFamily
from ipamc.model.diagnostics import Diagnostic, Related, error, several, warning
from ipamc.model.follows import address_for, area_of, networks, room_for
from ipamc.model.limits import FOLLOWED_IPV6
from ipamc.model.plan import Plan
from ipamc.model.pool_words import suggest_pool, with_reserved


def check_follows(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield every finding about `follows` that needs no lock."""
    pools = [pool for pool in cluster.pools if pool.follows]
    yield from mode_without_follows(cluster, pools)
    for pool in pools:
        for part in pool.families.values():
            if part.follows:
                yield from room_for_network(cluster, pool, part, part.follows)
    yield from networks_overlap(cluster, pools)
    for pool in pools:
        yield from several_addresses(pool)


def mode_without_follows(cluster: Cluster, pools: list[Pool]) -> Iterator[Diagnostic]:
    """IPC0224: the cluster's mode supports `follows`."""
    if cluster.mode is Mode.CRD:
        why, way_out = "crd mode gives a node single addresses", "use another mode, or remove follows"
    elif cluster.shared_pools:
        why = f"with pinning: {cluster.pinning} Cilium's operator chooses the blocks"
        way_out = "write pinning: node, or remove follows"
    else:
        return
    for pool in pools:
        message = f'pool "{pool.name}" follows {pool.follows[0].block}, but {why}'
        yield error("IPC0224", pool.follows[0].at, message, also=[cluster.mode_here], help=way_out)


def room_for_network(cluster: Cluster, pool: Pool, part: PoolFamily, network: Range) -> Iterator[Diagnostic]:
    """IPC0225: a pool that follows a network has one range, with a block for each address of the network."""
    follows, size = f'pool "{pool.name}" follows {network.block}', part.block_size
    if part.family == 6 and network.block.prefix < FOLLOWED_IPV6:
        message = f"{follows}, but an IPv6 network must be a /{FOLLOWED_IPV6} or longer"
        why = "the admission policy counts only in the last group of the address"
        fix = f"write only the part that the nodes use, a /{FOLLOWED_IPV6} or longer: {why}"
        yield error("IPC0225", network.at, message, help=fix)
        return
    also = [Related(network.at, "follows is here")]
    if len(part.ranges) > 1:
        message = f"{follows} but has {len(part.ranges)} ranges: the order of its blocks is ambiguous"
        fix = "write one range, and a separate pool for another network of nodes"
        yield error("IPC0225", part.ranges[1].at, message, also=also, help=fix)
    for cidr in part.ranges[:1]:
        prefix, there = room_for(part, network.block), max(size - cidr.block.prefix, -1)
        if cidr.block.prefix <= prefix:
            continue
        has = f"{cidr.block} has {1 << there:,}" if there >= 0 else f"{cidr.block} has none"
        needs = f"its {network.block.size:,} addresses need {network.block.size:,} blocks of /{size}"
        fix = "follow a smaller network, or use smaller blocks (a longer blockSize)"
        if prefix >= 8:
            fix = f"write a range of /{prefix}: {suggest_pool(cluster, pool, part.family, prefix)}; or {fix}"
        yield error("IPC0225", cidr.at, f"{follows}: {needs}, but {has}", also=also, help=fix)


def networks_overlap(cluster: Cluster, pools: list[Pool]) -> Iterator[Diagnostic]:
    """IPC0226: the networks that pools follow share no address with each other, nor with a range."""
    pairs = [(pool, network) for pool in pools for network in pool.follows]
    for (outer, wide), (inner, network) in overlaps(pairs, lambda pair: pair[1].block):
        text = f'network {network.block} of pool "{inner.name}" overlaps {wide.block} of pool "{outer.name}"'
        also = [Related(wide.at, f"{wide.block} is here")]
        fix = "let each pool follow a separate network: a node has one block of each family"
        yield error("IPC0226", network.at, text, also=also, help=fix)
    ranges = OverlapIndex(
        ((pool, cidr) for pool in cluster.pools for cidr in pool.ranges), lambda pair: pair[1].block
    )
    for follower, network in pairs:
        for pool, cidr in ranges.over(network.block):
            both = shared(cidr.block, network.block)
            if not covers(blocks_over(outermost(each.block for each in pool.reserved), both), both):
                whose = f'network {network.block} of pool "{follower.name}" overlaps {cidr.block}'
                also = [Related(cidr.at, f'pool "{pool.name}" has this range')]
                reserve = "" if pool.follows else f", or {with_reserved(pool, both, 'the node network')}"
                text = f'{whose} of pool "{pool.name}": a pod could get the address of a node'
                yield error("IPC0226", network.at, text, also=also, help=f"move the range{reserve}")


def several_addresses(pool: Pool) -> Iterator[Diagnostic]:
    """IPC0227: a node has one address of a network that a pool follows, and no other node has it."""
    first: dict[Block, tuple[str, Range]] = {}
    for node, pins in pool.pins.items():
        by_family: dict[int, Range] = {}
        for pin in pins:
            other, theirs = first.setdefault(pin.block, (node, pin))
            before = by_family.setdefault(pin.block.family, pin)
            if other != node:
                address = address_for(pool, pin.block)
                message = f"nodes {other} and {node} both have {address}, so both get block {pin.block}"
                also = [Related(theirs.at, f"{other} is here")]
                fix = "remove the node that is gone from the inventory, or correct its InternalIP"
                yield error("IPC0227", pin.at, message, also=also, help=fix)
            if before is not pin:
                both = " and ".join(address_for(pool, each.block) for each in (before, pin))
                message = f"node {node} has {both}: its block is ambiguous"
                also = [Related(network.at, f'pool "{pool.name}" follows it') for network in pool.follows]
                fix = "follow a network in which each node has one InternalIP, or correct the inventory"
                yield error("IPC0227", pin.at, message, also=also, help=fix)


def held_by_another(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0314: only nodes with an address in the network that a pool follows hold its blocks."""
    for pool in (pool for pool in plan.cluster.pools if pool.follows):
        own = {(node, pin.block.family) for node, pins in pool.pins.items() for pin in pins}
        areas = [area for part in pool.families.values() if (area := area_of(part))]
        over = (line for area in areas for line in lines_over(plan.lock.lines, area) if line.in_use)
        if lines := [line for line in over if (line.node, line.block.family) not in own]:
            first, blocks = lines[0], [f"{line.node} ({line.block})" for line in lines]
            number = len({line.node for line in lines})
            held = several(blocks, "node", "without an address there", number=number)
            message = f'pool "{pool.name}" follows {networks(pool)}, but its blocks are held by {held}'
            address = address_for(pool, first.block)
            waits = f"; until then admission gives no block to a node with {address}" if address else ""
            fix = f"move {first.node}: ipamc lock {plan.cluster.name} --renumber {first.node}{waits}"
            found = warning("IPC0314", line_at(plan.lock, first, otherwise=pool.at), message, help=fix)
            yield found.about(line.node for line in lines)
