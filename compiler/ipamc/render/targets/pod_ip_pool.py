"""CiliumPodIPPools: the pools from which the operator of multi-pool mode hands out blocks.

One that nodes share has a pool's ranges without what is reserved. With `pinning: node` there is one for each
node and pool, with exactly that node's blocks, and none is shared: whatever the order of events, the operator
can hand out nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ipamc.model.address_sets import blocks_over, lines_over, outermost, subtract
from ipamc.model.cidr import Block
from ipamc.model.cluster import Mode, Pool, PoolFamily
from ipamc.model.lock import Line
from ipamc.model.plan import Plan
from ipamc.render.targets.context import File, Layout, texts

TEMPLATE = "pod_ip_pool.yaml.j2"

Values = tuple[str, tuple[tuple[str, str], ...], tuple[tuple[str, tuple[str, ...], int], ...]]
"""Name, labels, (ipv4 or ipv6, CIDRs, maskSize)."""


def files(layout: Layout) -> Iterator[File]:
    """Yield `cilium/ippools.yaml`; with `pinning: node` `pools/<shard>/ippools.yaml`."""
    cluster = layout.plan.cluster
    if cluster.mode is not Mode.MULTI_POOL:
        return
    if cluster.shared_pools:
        shared = tuple(
            filter(
                None,
                (
                    _shared(layout.plan, pool)
                    for pool in cluster.pools
                    if pool.name not in cluster.auto_create
                ),
            )
        )
        if shared:
            yield File("cilium/ippools.yaml", TEMPLATE, {"pools": shared})
        return
    pools = {pool.name: pool for pool in cluster.pools}
    for shard, wants in layout.shards:
        pinned = tuple(
            values
            for want in wants
            for values in _pinned(pools, want.node.name, layout.held.get(want.node.name, ()))
        )
        if pinned:
            yield File(f"pools/{shard}/ippools.yaml", TEMPLATE, {"pools": pinned})


def pinned_name(pool: str, node: str) -> str:
    """Return the name of the CiliumPodIPPool of a node and pool. Unique: pool names have no dot (IPC0530)."""
    return f"{pool}.{node}"


def of_node(lines: Iterable[Line]) -> dict[str, dict[int, tuple[Block, ...]]]:
    """Return a node's blocks by pool and family: pools by name, blocks in the order of the lines."""
    groups: dict[str, dict[int, tuple[Block, ...]]] = {}
    for line in lines:
        families = groups.setdefault(line.pool, {})
        families[line.block.family] = (*families.get(line.block.family, ()), line.block)
    return groups if len(groups) == 1 else dict(sorted(groups.items()))


def pieces(pool: Pool, part: PoolFamily, lines: Sequence[Line]) -> tuple[Block, ...]:
    """Return a pool's ranges of one family without what is reserved, in the order as written.

    `lines` are the lock's: a block that was reserved after a node got it stays in the pool, or its node would
    lose it. A piece smaller than a block is of no use to the operator: it is left out, unless it belongs to a
    held or pending line. Without anything reserved this costs nothing; else O(reserved log lines).
    """
    reserved = outermost(cidr.block for cidr in pool.reserved if cidr.block.family == part.family)
    if not reserved:
        return tuple(cidr.block for cidr in part.ranges)

    def in_use(block: Block) -> list[Block]:
        return [line.block for line in lines_over(lines, block) if line.in_use]

    removed = [piece for block in reserved for piece in subtract(block, in_use(block))]
    return tuple(
        piece
        for cidr in part.ranges
        for piece in subtract(cidr.block, blocks_over(removed, cidr.block))
        if piece.prefix <= part.block_size or in_use(piece)
    )


def _shared(plan: Plan, pool: Pool) -> Values | None:
    """Return the CiliumPodIPPool of a whole pool; None if no address of it is left."""
    families = tuple(
        (f"ipv{family}", texts(blocks), part.block_size)
        for family, part, blocks in shared_families(plan, pool)
    )
    return (pool.name, _labels(pool), families) if families else None


def shared_families(plan: Plan, pool: Pool) -> Iterator[tuple[int, PoolFamily, tuple[Block, ...]]]:
    """Yield (family, part of the pool, blocks for Cilium), IPv4 first, for the cluster's families.

    A family in which no address is left is not among them.
    """
    for family, part in sorted(pool.families.items()):
        if family in plan.cluster.families and (blocks := pieces(pool, part, plan.lock.lines)):
            yield family, part, blocks


def _pinned(pools: Mapping[str, Pool], node: str, lines: tuple[Line, ...]) -> Iterator[Values]:
    """Yield the CiliumPodIPPools of one node, by pool name."""
    for name, families in of_node(lines).items():
        yield (
            pinned_name(name, node),
            _labels(pools[name]) if name in pools else (),
            tuple(
                (f"ipv{family}", texts(blocks), max(block.prefix for block in blocks))
                for family, blocks in sorted(families.items())
            ),
        )


def _labels(pool: Pool) -> tuple[tuple[str, str], ...]:
    """Return the labels by which BGP advertisements select a pool."""
    return tuple(sorted(pool.labels.items()))
