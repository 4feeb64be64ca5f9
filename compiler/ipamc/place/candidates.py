"""Which pools serve which node, in a total order.

Selectors are evaluated once per distinct projection of a node's labels onto the keys that selectors name:
100,000 nodes in 40 racks are 40 evaluations, not 100,000.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ipamc.model.cidr import BITS
from ipamc.model.cluster import Cluster, Dialect, Node, Pool
from ipamc.model.diagnostics import Diagnostic, count, error, names, note
from ipamc.model.plan import Offer, Want, by_place
from ipamc.model.selector.selector import Selector


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


def assign(cluster: Cluster) -> tuple[Want, ...]:
    """Return the offers of every node, the first candidate first; wants come in name order.

    O(distinct projections x pools + nodes). A node without a candidate has a want without offers: it may
    still hold a block, or get one back.
    """
    pools = sorted(cluster.pools, key=rank)
    enabled = {pool.name: pool for pool in pools if not pool.disabled and not pool.unlisted}
    choose = _chooser(enabled)
    pinned = _pinned(pools)
    return tuple(
        Want(
            node,
            with_pins(node, choose(node), pinned[node.name], enabled)
            if node.name in pinned
            else choose(node),
        )
        for node in cluster.nodes
    )


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
    """IPC0302: every node has a candidate pool.

    No enabled pool's nodeSelector selects the node, and no pin names it. Its pods would wait for ever for an
    address. Label the node, widen a selector, or pin it; `unmatchedNodes: skip` on the Cluster turns this
    into a note.
    """
    if not nodes:
        return
    passed = [_passed_over(pool) for pool in sorted(cluster.pools, key=rank)]
    seen = (
        f"; pools seen: {'; '.join(passed[:8])}{f' and {len(passed) - 8} more' if len(passed) > 8 else ''}"
        if passed
        else "; there are no pools"
    )
    for group in _alike(nodes, cluster.pools):
        first = group[0]
        halted = [
            pool.name
            for pool in cluster.pools
            if pool.disabled and pool.selector.matches(first.labels, first.name)
        ]
        enable = f"enable pool {names(halted)}, " if halted else ""
        labels = ", ".join(f"{key}={first.labels[key]}" for key in sorted(first.labels)[:6]) or "no labels"
        yield error(
            "IPC0302",
            first.at,
            f"{count(len(group), 'node')} without a candidate pool: {names(node.name for node in group)} ({labels}){seen}",
            help=f"{enable}label the node, widen a pool's nodeSelector, or set unmatchedNodes: skip on the Cluster",
        )


def unmatched_skipped(cluster: Cluster, nodes: list[Node]) -> Iterator[Diagnostic]:
    """IPC0308: nodes that no pool selects are skipped on request.

    `unmatchedNodes: skip` is set, so a node without a candidate pool gets no new block; nothing but
    this note reports it.
    """
    if nodes:
        yield note(
            "IPC0308",
            cluster.field("spec", "unmatchedNodes"),
            f"{count(len(nodes), 'node')} without a candidate pool skipped: {names(node.name for node in nodes)}",
        )


def _passed_over(pool: Pool) -> str:
    if pool.unlisted:
        return f"{pool.name} is for unlisted nodes"
    if pool.disabled:
        return f"{pool.name} is disabled"
    return f"{pool.name} selects {pool.selector.canonical}"


def _alike(nodes: list[Node], pools: tuple[Pool, ...]) -> list[list[Node]]:
    """Group nodes that no selector can tell apart, so that 500 unlabelled nodes are one finding."""
    keys = sorted({key for pool in pools for key in pool.selector.keys})
    groups: dict[tuple[str | None, ...], list[Node]] = defaultdict(list)
    for node in nodes:
        groups[tuple(node.labels.get(key) for key in keys)].append(node)
    return list(groups.values())


def _pinned(pools: list[Pool]) -> Mapping[str, list[Pool]]:
    found: dict[str, list[Pool]] = {}
    for pool in pools:
        for node in pool.pins:
            found.setdefault(node, []).append(pool)
    return found


def offer(pool: Pool, labels: Mapping[str, str], name: str) -> Offer:
    """Return a pool with the block sizes for a node: its own, or those of the first class that selects it."""
    return Offer(pool, pool.sizes(labels, name))


def overflow(
    full: Pool, enabled: Mapping[str, Pool], labels: Mapping[str, str], name: str
) -> Iterator[Offer]:
    """Yield the pools that a pool's `overflow` names, as written, whether or not they select the node."""
    for other in full.overflow:
        if other in enabled and other != full.name:
            yield offer(enabled[other], labels, name)


def with_pins(
    node: Node, offers: tuple[Offer, ...], pools: list[Pool], enabled: Mapping[str, Pool]
) -> tuple[Offer, ...]:
    """Put the pools that pin a node, by rank, before its other candidates, whatever their selectors say."""

    def uninvited(pool: Pool) -> Offer:
        instead = tuple(overflow(pool, enabled, node.labels, node.name))
        return Offer(pool, pool.sizes(node.labels, node.name), instead)

    known = {offered.pool.name: offered for offered in offers}
    pinned = [known.get(pool.name) or uninvited(pool) for pool in pools]
    names_of_pinned = {offered.pool.name for offered in pinned}
    return (
        *(Offer(first.pool, first.sizes, first.instead, pinned=True) for first in pinned),
        *(other for other in offers if other.pool.name not in names_of_pinned),
    )


def _chooser(enabled: Mapping[str, Pool]) -> Callable[[Node], tuple[Offer, ...]]:
    """Return the function from a node to its offers; it remembers those of each projection of labels.

    `enabled` pools come by rank.
    """
    selectors: list[Selector] = [pool.selector for pool in enabled.values()]
    selectors += [other.selector for pool in enabled.values() for other in pool.block_sizes]
    keys = sorted({key for selector in selectors for key in selector.keys})
    mentioned = frozenset(name for selector in selectors for name in selector.names)
    remembered: dict[tuple[str | None, ...], tuple[Offer, ...]] = {}

    def look(labels: Mapping[str, str], name: str) -> tuple[Offer, ...]:
        candidates = [
            offer(pool, labels, name) for pool in enabled.values() if pool.selector.matches(labels, name)
        ]
        return tuple(
            Offer(full.pool, full.sizes, tuple(instead(full, candidates, labels, name)))
            for full in candidates
        )

    def instead(
        full: Offer, candidates: list[Offer], labels: Mapping[str, str], name: str
    ) -> Iterator[Offer]:
        """Yield the pools that may take a full pool's place: its twins, then its `overflow`.

        A rack never spills into another by accident.
        """
        twins = [
            other
            for other in candidates
            if other is not full
            and other.pool.selector.language == full.pool.selector.language
            and other.pool.selector.canonical == full.pool.selector.canonical
        ]
        yield from twins
        given = {twin.pool.name for twin in twins}
        yield from (
            other for other in overflow(full.pool, enabled, labels, name) if other.pool.name not in given
        )

    def choose(node: Node) -> tuple[Offer, ...]:
        labels = node.labels
        projection = (*(labels.get(key) for key in keys), node.name if node.name in mentioned else None)
        offers = remembered.get(projection)
        if offers is None:
            offers = remembered[projection] = look(labels, node.name)
        return offers

    return choose
