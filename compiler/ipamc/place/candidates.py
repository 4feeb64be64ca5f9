"""Which pools serve which node, in a total order. `choose` makes the offers of one node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ipamc.model.cidr import BITS
from ipamc.model.cluster import Cluster, Dialect, Node, Pool
from ipamc.model.diagnostics import Diagnostic, Refused, count, error, names, note
from ipamc.model.plan import Want, by_place
from ipamc.model.selector.selector import SelectorIndex
from ipamc.model.wording import cut
from ipamc.place.choose import Chooser


class Rank(NamedTuple):
    """The smallest rank is the first candidate; each field only breaks ties left by those above it."""

    priority: int
    """Negated: the highest first."""
    requirements: int
    """Negated: the most specific selector first."""
    blocks: int
    """ClusterCIDR only, else 0: fewer blocks in total first (KEP-2593)."""
    addresses: int
    """ClusterCIDR only, else 0: smaller blocks first (KEP-2593)."""
    name: str
    """Unique, so the order is total; compared by code point."""


def rank(pool: Pool) -> Rank:
    """Return the rank of a pool among the candidates of any node that it selects."""
    blocks = addresses = 0
    if pool.dialect is Dialect.CLUSTER_CIDR:
        totals = [
            sum(1 << max(part.block_size - pool_range.block.prefix, 0) for pool_range in part.ranges)
            for part in pool.families.values()
        ]
        blocks = min(totals)
        addresses = min(1 << (BITS[family] - part.block_size) for family, part in pool.families.items())
    return Rank(-pool.priority, -pool.selector.requirements, blocks, addresses, pool.name)


def deciding(pool: Pool, later: Pool) -> tuple[str, int | str, int | str]:
    """Return the field of `Rank` that puts one pool before another, and both values, not negated."""
    one, other = rank(pool), rank(later)
    name = next(name for name in Rank._fields if getattr(one, name) != getattr(other, name))
    if name in {"priority", "requirements"}:
        return name, -getattr(one, name), -getattr(other, name)
    return name, getattr(one, name), getattr(other, name)


MOST_CANDIDATES = 5_000_000
"""Candidates of all nodes; those that nodes share count once."""
MOST_TESTS = 5_000_000
"""Tests of labels, beside those that say at once which selectors cannot match."""
MOST_OF_A_NODE = 4096
"""Blocks of a node in modes with several: they stand in one object (see IPC0531)."""
MOST_BLOCKS = 1_000_000
"""Blocks of all nodes in these modes."""


def assign(cluster: Cluster) -> tuple[Want, ...]:
    """Return the offers of every node, the first candidate first; wants come in name order.

    O(nodes + candidates + tests): 100,000 nodes in 40 racks with a pool each are 40 tests. A node without a
    candidate has a want without offers: it may still hold a block, or get one back. Raises Refused where there
    would be more than MOST_CANDIDATES or MOST_TESTS, or more blocks than allowed.
    """
    pools = sorted(cluster.pools, key=rank)
    chooser = Chooser(pools)
    pinned = _pinned(pools)
    wants = []
    for node in cluster.nodes:
        pinning = pinned.get(node.name)
        wants.append(Want(node, chooser.with_pins(node, pinning) if pinning else chooser.choose(node)))
        if chooser.candidates > MOST_CANDIDATES or chooser.tests > MOST_TESTS:
            raise Refused((too_many_candidates(cluster),))
    if not cluster.mode.one_block and (refused := list(too_many_blocks(cluster, wants))):
        raise Refused(tuple(refused))
    return tuple(wants)


def too_many_candidates(cluster: Cluster) -> Diagnostic:
    """IPC0312: the candidates of all nodes can be found in bounded time."""
    message = (
        f"{count(len(cluster.pools), 'pool')} and {count(len(cluster.nodes), 'node')} have more than "
        f"{MOST_CANDIDATES:,} pairs of a node and a candidate, or take more than {MOST_TESTS:,} tests of "
        "labels"
    )
    fix = (
        'let each selector name values that its nodes have, as in rack == "r1", and labels that few nodes '
        "differ in"
    )
    return error("IPC0312", cluster.at, message, help=fix)


def too_many_blocks(cluster: Cluster, wants: Iterable[Want]) -> Iterator[Diagnostic]:
    """IPC0313: a node gets at most 4,096 blocks, and a cluster at most 1,000,000."""
    known: dict[int, int] = {}
    total = 0
    for want in wants:
        number = known.get(id(want.offers))
        if number is None:
            number = known[id(want.offers)] = sum(
                offer.pool.blocks_per_node * len(offer.sizes)
                for offer in want.offers
                if not (offer.pool.disabled or offer.pool.unlisted)
            )
        total += number
        if number > MOST_OF_A_NODE or total > MOST_BLOCKS:
            pool = max((offer.pool for offer in want.offers), key=lambda pool: pool.blocks_per_node)
            message = (
                f"node {want.node.name} would get {number:,} blocks of {count(len(want.offers), 'pool')}; {MOST_OF_A_NODE:,} is the limit"
                if number > MOST_OF_A_NODE
                else f"{count(len(cluster.nodes), 'node')} would get more than {MOST_BLOCKS:,} blocks, the limit"
            )
            fix = (
                "use larger blocks (a shorter blockSize) and a smaller blocksPerNode, or let fewer pools "
                "select each node"
            )
            yield error("IPC0313", pool.at / "spec" / "blocksPerNode", message, help=fix)
            return


def shared_pools(cluster: Cluster, wants: Sequence[Want], published: Iterable[str] = ()) -> frozenset[str]:
    """Return the names of the pools whose blocks Cilium's operator chooses, in multi-pool mode.

    All pools are shared, but with `pinning: node` only those that are a further candidate of some node and
    the first candidate of none: a node's first candidate is rendered as a CiliumPodIPPool of its own. A pool
    that serves no node any more stays shared where it was `published` so. O(nodes).
    """
    if cluster.shared_pools:
        return frozenset(pool.name for pool in cluster.pools)
    if not cluster.own_pools:
        return frozenset()
    first, further = by_place(wants)
    names = {pool.name for pool in cluster.pools}
    return frozenset({*further, *names.intersection(published)} - first.keys())


def unlisted_pools(cluster: Cluster) -> frozenset[str]:
    """Return the names of the pools whose blocks the operator chooses with `operator: adopt`."""
    return frozenset(pool.name for pool in cluster.pools if pool.unlisted and cluster.operator_adopts)


def unmatched(cluster: Cluster, nodes: list[Node]) -> Iterator[Diagnostic]:
    """Yield the finding about nodes that need a block and have no candidate."""
    yield from (unmatched_skipped if cluster.unmatched_nodes == "skip" else unmatched_refused)(cluster, nodes)


def unmatched_refused(cluster: Cluster, nodes: list[Node]) -> Iterator[Diagnostic]:
    """IPC0302: every node has a candidate pool."""
    if not nodes:
        return
    passed = [_passed_over(pool) for pool in sorted(cluster.pools, key=rank)[:8]]
    more = len(cluster.pools) - len(passed)
    seen = (
        f"; pools seen: {'; '.join(passed)}{f' and {more} more' if more else ''}"
        if passed
        else "; there are no pools"
    )
    disabled = [pool for pool in cluster.pools if pool.disabled]
    selecting = SelectorIndex([pool.selector for pool in disabled])
    for group in _alike(nodes, cluster.pools):
        first = group[0]
        halted = [disabled[number].name for number in selecting.matching(first.labels, first.name)]
        enable = f"enable pool {names(halted)}, " if halted else ""
        labels = ", ".join(f"{key}={first.labels[key]}" for key in sorted(first.labels)[:6]) or "no labels"
        message = (
            f"{count(len(group), 'node')} without a candidate pool: {names(node.name for node in group)} "
            f"({labels}){seen}"
        )
        fix = (
            f"{enable}label the node, widen a pool's nodeSelector, or set unmatchedNodes: skip on the Cluster"
            if cluster.pools
            else f"write a pool; ipamc init {cluster.name} writes one to start from, where there is none"
        )
        yield error("IPC0302", first.at, message, help=fix)


def unmatched_skipped(cluster: Cluster, nodes: list[Node]) -> Iterator[Diagnostic]:
    """IPC0308: nodes that no pool selects are skipped on request."""
    if nodes:
        message = (
            f"{count(len(nodes), 'node')} without a candidate pool skipped: "
            f"{names(node.name for node in nodes)}"
        )
        yield note("IPC0308", cluster.field("spec", "unmatchedNodes"), message)


def _passed_over(pool: Pool) -> str:
    if pool.unlisted:
        return f"{pool.name} is for unlisted nodes"
    if pool.disabled:
        return f"{pool.name} is disabled"
    return f"{pool.name} selects {cut(pool.selector.canonical)}"


def _alike(nodes: list[Node], pools: tuple[Pool, ...]) -> list[list[Node]]:
    """Group nodes that no selector can tell apart, so that 500 unlabelled nodes are one finding."""
    selectors = {id(pool.selector): pool.selector for pool in pools}
    keys = frozenset().union(*(selector.keys for selector in selectors.values()))
    groups: dict[tuple[tuple[str, str], ...], list[Node]] = defaultdict(list)
    for node in nodes:
        groups[tuple(sorted([item for item in node.labels.items() if item[0] in keys]))].append(node)
    return list(groups.values())


def _pinned(pools: list[Pool]) -> Mapping[str, list[Pool]]:
    found: dict[str, list[Pool]] = {}
    for pool in pools:
        for node in pool.pins:
            found.setdefault(node, []).append(pool)
    return found
