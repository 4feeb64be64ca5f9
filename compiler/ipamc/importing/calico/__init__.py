"""A cluster that runs Calico: its pools become ours, and its nodes keep every block that is affine to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ipamc.importing.calico import pool_rules, rules
from ipamc.importing.calico.about import about_blocks, about_nodes, about_pools, unselected
from ipamc.importing.calico.holdings import Claim, holdings
from ipamc.importing.calico.pools import (
    CalicoPool,
    Group,
    config_of,
    grouped,
    read_pools,
    read_reservations,
    strays,
)
from ipamc.importing.cilium import MASK
from ipamc.importing.draft import Blocks, Draft, DraftPool, DraftRange
from ipamc.model.address_sets import aggregated, blocks_over, index_around, outermost, shared
from ipamc.model.cidr import BITS, Block
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic, Severity, names
from ipamc.model.dump import Dump, SeenObject
from ipamc.model.selector.selector import EVERY

MOST_POOLS = 500
"""IPPools of a dump: each is compared with each other one. Calico itself goes through all of them for a pod."""


def tells_blocks(dump: Dump) -> bool:
    """Tell whether a dump has Calico's blocks: a node without one has none."""
    return bool(dump.calico_blocks or dump.affinities)


def is_calico(dump: Dump) -> bool:
    """Tell whether Calico's IPAM gives the nodes of a dump their blocks.

    With `host-local` in its CNI configuration Calico takes addresses of podCIDRs, and its pools mean nothing.
    """
    return tells_blocks(dump) or (bool(dump.of_kind("IPPool")) and not uses_pod_cidrs(dump))


def uses_pod_cidrs(dump: Dump) -> bool:
    """Tell whether Calico gives pods addresses of the podCIDRs of their Nodes."""
    return any(map(_is_host_local, dump.of_kind("ConfigMap")))


def _is_host_local(config: SeenObject) -> bool:
    data = config.value.get("data")
    text = data.get("cni_network_config") if isinstance(data, dict) else None
    return isinstance(text, str) and '"host-local"' in text


def two_sources(dump: Dump) -> Iterator[Diagnostic]:
    """Yield nodes with blocks of Calico alone, where other nodes have blocks of Cilium."""
    moved = {seen.name: seen for seen in dump.cilium_nodes if seen.blocks or seen.allocated}
    first = next((block for block in dump.calico_blocks if block.host and block.host not in moved), None)
    if moved and first:
        hosts = {block.host for block in dump.calico_blocks} & dump.nodes_by_name.keys() - moved.keys()
        if hosts:
            yield rules.two_sources(first.at, next(iter(moved.values())).at, sorted(hosts))


def draft(dump: Dump, mode: Mode = Mode.MULTI_POOL) -> Draft:
    """Return the cluster to be written for a dump of one that runs Calico.

    In multi-pool mode each node gets pools of its own (`pinning: node`): it keeps all its blocks, and Cilium's
    operator can give none of them to another node. In crd mode there is no operator at all. In kubernetes and
    cluster-pool mode a node has one block of each family, so a node with more is an error. Deterministic,
    whatever the order of the dump.
    """
    pools, found = read_pools(dump)
    if len(pools) > MOST_POOLS:
        found, pools = [pool_rules.too_many_pools(pools[MOST_POOLS].at, len(pools), MOST_POOLS)], []
    outside = [pool for pool in pools if not pool.workload]
    held = holdings(dump, outermost(pool.block for pool in outside))
    blocks = [claim.block for claim in held.claims]
    families = _families(dump, pools, blocks)
    ours = [pool for pool in pools if pool.workload and pool.block.family in families]
    # A block of no pool, or larger than its pool, is taken out of all pools: it gets one of its own.
    lost = strays(blocks, [pool.block for pool in ours])
    groups = grouped(ours, [*lost, *(pool.block for pool in outside)])
    drafts = _pools((*groups.active, *groups.halted))
    lost = strays(blocks, _ranges(drafts))
    drafts += _without_pool(lost, {pool.name for pool in drafts})
    reservations, unread = read_reservations(dump)
    drafts = _reserving(drafts, [*(block for block, _ in reservations), *held.reserved])
    found += [*unread, *held.findings]
    if overlaid := _overlaid(pools, blocks):
        found.append(rules.overlay(overlaid))
    found += about_pools(pools, groups, families)
    found += about_blocks(held, lost, reservations)
    found += about_nodes(dump, groups.active, held, mode)
    found += rules.not_frozen(dump, config_of(dump.of_kind("IPAMConfig", "IPAMConfiguration")))
    return Draft(
        mode=mode,
        families=families,
        pools=tuple(sorted(drafts, key=lambda pool: pool.name)),
        blocks=_blocks(
            held.claims, ((block, pool.name) for pool in drafts for block in _ranges([pool])), mode
        ),
        excluded=tuple(DraftRange(block=pool.block, why=f"Calico IPPool {pool.name}") for pool in outside),
        ipam={"pinning": "node"} if mode is Mode.MULTI_POOL else {},
        spec={"unmatchedNodes": "skip"} if unselected(dump, groups.active) else {},
        label_keys=frozenset().union(*(group.selector.keys for group in (*groups.active, *groups.halted))),
        decisions=tuple(found),
    )


def _overlaid(pools: Iterable[CalicoPool], blocks: Iterable[Block]) -> list[CalicoPool]:
    """Return the pools with an overlay of which nodes have blocks, or would get some."""
    held = outermost(blocks)
    return [
        pool
        for pool in pools
        if pool.workload and pool.overlay and (not pool.halted or blocks_over(held, pool.block))
    ]


def distinct_draft(dump: Dump, ranges: Sequence[Block], mode: Mode = Mode.CLUSTER_POOL) -> Draft:
    """Return a cluster whose nodes get blocks of ranges that Calico has not, while its pods run (Cilium's own guide)."""
    pools, found = read_pools(dump)
    held = holdings(dump, ())
    theirs = outermost(
        [*(pool.block for pool in pools), *(claim.block for claim in held.claims), *held.reserved]
    )
    if mode is Mode.KUBERNETES:
        problem = "--distinct in kubernetes mode: podCIDRs of Nodes cannot be changed while both networks run"
        found.append(rules.not_distinct(dump.at, problem, "use --mode cluster-pool or multi-pool"))
    for block in ranges:
        if over := blocks_over(theirs, block):
            problem = f"--distinct {block} shares addresses with Calico: {names(map(str, over))}"
            way_out = "name a range that neither Calico nor the network uses"
            found.append(rules.not_distinct(dump.at, problem, way_out))
    families = tuple(dict.fromkeys(block.family for block in ranges))
    by_family = {
        family: tuple(block for block in ranges if block.family == family) for family in sorted(families)
    }
    nodes = len(dump.nodes)
    return Draft(
        mode=mode,
        families=families,
        pools=(
            DraftPool(
                name="default",
                ranges=by_family,
                sizes={family: _size(some, nodes) for family, some in by_family.items()},
            ),
        ),
        blocks={},
        fresh=True,
        excluded=tuple(DraftRange(block=block, why="Calico") for block in theirs),
        decisions=tuple(found),
    )


def _size(ranges: Iterable[Block], nodes: int) -> int:
    """Return the prefix length of blocks: Cilium's default, or a longer one so that there are twice as many as nodes."""
    known = tuple(ranges)
    size = MASK[known[0].family]
    while (
        size < BITS[known[0].family] - 4
        and sum(1 << size - block.prefix for block in known if block.prefix <= size) < 2 * nodes
    ):
        size += 1
    return size


def _families(dump: Dump, pools: Iterable[CalicoPool], blocks: Iterable[Block]) -> tuple[int, ...]:
    """Return the families of which nodes have blocks, the primary one first; without blocks those of pools.

    Calico has no primary family: it is that of the first InternalIP of most nodes.
    """
    found = {block.family for block in blocks} or {
        pool.block.family for pool in pools if pool.workload and not pool.halted
    }
    first = Counter(node.internal_ips[0][0] for node in dump.nodes if node.internal_ips)
    return tuple(sorted(found or {4}, key=lambda family: (-first[family], family)))


def _pools(groups: Iterable[Group]) -> list[DraftPool]:
    """Return groups as pools. `pinning: node` allows no dot in a name."""
    names: set[str] = set()
    drafts = []
    for group in groups:
        name = _free(group.name.replace(".", "-"), names)
        names.add(name)
        comment = (
            f"Calico IPPool{'s' if group.pools[1:] else ''} {', '.join(pool.name for pool in group.pools)}"
        )
        drafts.append(
            DraftPool(
                name=name,
                ranges=group.ranges,
                sizes=group.sizes,
                selector=None if group.selector == EVERY else group.selector.canonical,
                disabled=bool(group.halted),
                labels={key: value for pool in reversed(group.pools) for key, value in pool.labels.items()},
                comment=f"{comment}: {group.halted}" if group.halted else comment,
            )
        )
    return drafts


def _free(name: str, names: Iterable[str]) -> str:
    while name in names:
        name += "-x"
    return name


def _ranges(pools: Iterable[DraftPool]) -> Iterator[Block]:
    return (block for pool in pools for some in pool.ranges.values() for block in some)


def _without_pool(lost: Iterable[Block], names: set[str]) -> Iterator[DraftPool]:
    """Yield a pool for each size of the blocks that are in no pool: their nodes keep them, nobody gets more."""
    by_size: dict[tuple[int, int], list[Block]] = {}
    for block in lost:
        by_size.setdefault((block.family, block.prefix), []).append(block)
    for (family, size), blocks in sorted(by_size.items()):
        yield DraftPool(
            name=_free(f"no-pool-{size}" if family == 4 else f"no-pool-v6-{size}", names),
            ranges={family: tuple(aggregated(blocks))},
            sizes={family: size},
            disabled=True,
            comment="blocks that nodes have, and that are in no Calico IPPool",
        )


def _reserving(pools: Iterable[DraftPool], blocks: Iterable[Block]) -> list[DraftPool]:
    """Return the pools with what of these blocks is in their ranges."""
    every = outermost(blocks)
    return [
        replace(
            pool,
            reserved=tuple(
                aggregated(
                    shared(block, each) for block in _ranges([pool]) for each in blocks_over(every, block)
                )
            ),
        )
        for pool in pools
    ]


def shown(dump: Dump, cluster: Cluster) -> tuple[Mapping[str, Blocks], list[Diagnostic]]:
    """Return the blocks of Calico of each node, as its CiliumNode will show them in a cluster that was imported.

    For a refresh, before the last node has moved: a node that joined Calico keeps its blocks, too. With what
    forbids it. Afterwards Calico's pools may be left, without a block.
    """
    if not (dump.calico_blocks or dump.affinities):
        return {}, []
    pools, found = read_pools(dump)
    # Of a cluster on a distinct range they are excluded: nodes do not keep them.
    outside = [
        *(pool.block for pool in pools if not pool.workload),
        *(cidr.block for cidr in cluster.excluded),
    ]
    held = holdings(dump, outermost(outside))
    ranges = [(cidr.block, pool.name) for pool in cluster.pools for cidr in pool.ranges]
    found += held.findings
    blocks = _blocks(held.claims, ranges, cluster.mode, own=cluster.own_pools)
    return blocks, [finding for finding in found if finding.severity is Severity.ERROR]


def _blocks(
    claims: Iterable[Claim], pools: Iterable[tuple[Block, str]], mode: Mode, *, own: bool = True
) -> Mapping[str, Blocks]:
    """Return the blocks of each node, in multi-pool mode each with the CiliumPodIPPool that will have it.

    `pools` are ranges with the names of their pools; with `own` each node has pools of its own.
    """
    ranges = sorted(pools)
    starts = [block for block, _ in ranges]
    found: dict[str, list[tuple[Block, str]]] = {}
    for claim in claims:
        index = index_around(starts, claim.block) if mode is Mode.MULTI_POOL else None
        pool = "" if index is None else ranges[index][1]
        found.setdefault(claim.node, []).append(
            (claim.block, f"{pool}.{claim.node}" if own and pool else pool)
        )
    return {node: tuple(found[node]) for node in sorted(found)}
