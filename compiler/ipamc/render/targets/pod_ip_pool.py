"""CiliumPodIPPools: the pools from which the operator of multi-pool mode hands out blocks.

A shared one has a pool's ranges without reserved CIDRs; published CIDRs stay unchanged, and the rest is
appended (`model/pool_ranges.py`). With `pinning: node` there is also one for each node and first candidate,
with exactly that node's blocks: in any order of events, the operator can hand out nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from ipamc.model.bgp import pool_labels
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Mode, Pool
from ipamc.model.lock import Line
from ipamc.model.plan import Want
from ipamc.model.pool_ranges import Given, pool_ranges
from ipamc.model.selector.selector import Selector as Condition
from ipamc.render.targets.context import File, Layout, texts

TEMPLATE = "pod_ip_pool.yaml.j2"

Expression = tuple[str, str, tuple[str, ...]]
"""Key, operator, values."""
Selector = tuple[str, tuple[Expression, ...], tuple[tuple[str, str], ...]]
"""podSelector or namespaceSelector, matchExpressions, matchLabels."""
Values = tuple[
    str,
    tuple[tuple[str, str], ...],
    bool,
    tuple[str, ...],
    tuple[tuple[str, tuple[str, ...], int], ...],
    tuple[Selector, ...],
]
"""Name, labels, whether its pods are never masqueraded, the fields of `allowed`, (ipv4 or
ipv6, CIDRs, maskSize), selectors of pods."""


class LabelSelector(NamedTuple):
    """A LabelSelector in the form for templates, in a fixed order."""

    expressions: tuple[Expression, ...]
    labels: tuple[tuple[str, str], ...]


def files(layout: Layout) -> Iterator[File]:
    """Yield `cilium/ippools.yaml`; with `pinning: node` `pools/<shard>/ippools.yaml`."""
    cluster = layout.plan.cluster
    if cluster.mode is not Mode.MULTI_POOL:
        return
    given = Given(cluster, layout.plan.lock)
    shared = tuple(
        (
            pool.name,
            _labels(cluster, pool),
            pool.skip_masquerade,
            allowed(pool),
            families,
            tuple(_selectors(pool)),
        )
        for pool in cluster.pools
        if pool.name in layout.plan.operator_pools
        and pool.name not in cluster.auto_create
        and (
            families := tuple(
                (f"ipv{family}", cidrs, size) for family, cidrs, size in shared_families(layout, pool, given)
            )
        )
    )
    if shared:
        yield File("cilium/ippools.yaml", TEMPLATE, {"pools": shared})
    if not cluster.own_pools:
        return

    def values(want: Want, lines: tuple[Line, ...]) -> tuple[Values, ...] | None:
        return tuple(_pinned(layout, want.node.name, lines)) or None

    for shard, nodes in layout.by_shard(values):
        yield File(f"pools/{shard}/ippools.yaml", TEMPLATE, {"pools": tuple(chain.from_iterable(nodes))})


def pinned_name(pool: str, node: str) -> str:
    """Return the name of the CiliumPodIPPool of a node and pool. Unique: pool names have no dot (IPC0530)."""
    return f"{pool}.{node}"


def of_node(lines: Iterable[Line]) -> dict[str, dict[int, tuple[Block, ...]]]:
    """Return a node's blocks by pool and family: pools by name, blocks in the order of the lines."""
    found: dict[str, dict[int, list[Block]]] = {}
    for line in lines:
        found.setdefault(line.pool, {}).setdefault(line.block.family, []).append(line.block)
    return {
        pool: {family: tuple(each) for family, each in some.items()} for pool, some in sorted(found.items())
    }


def shared_families(layout: Layout, pool: Pool, given: Given) -> Iterator[tuple[int, tuple[str, ...], int]]:
    """Yield (family, CIDRs for Cilium, block size) of families with an address left, IPv4 first."""
    cluster, before = layout.plan.cluster, layout.before.pools.get(pool.name)
    for family, part in sorted(pool.families.items()):
        if family in cluster.families:
            published = before.cidrs.get(family, ()) if before else ()
            if cidrs := pool_ranges(cluster, pool, part, given, published).cidrs:
                yield family, texts(cidrs), part.block_size


def _pinned(layout: Layout, node: str, lines: tuple[Line, ...]) -> Iterator[Values]:
    """Yield the CiliumPodIPPools of one node, by pool name."""
    pools = layout.plan.cluster.pools_by_name
    for name, families in of_node(lines).items():
        if name not in layout.plan.operator_pools:
            yield (
                pinned_name(name, node),
                _labels(layout.plan.cluster, pools[name]) if name in pools else (),
                name in pools and pools[name].skip_masquerade,
                allowed(pools.get(name)),
                tuple(
                    (f"ipv{family}", texts(blocks), max(block.prefix for block in blocks))
                    for family, blocks in sorted(families.items())
                ),
                (),  # every node's own pool would select the same pods (IPC0564)
            )


def allowed(pool: Pool | None) -> tuple[str, ...]:
    """Return the fields that let pods have the first or the last address of a pool's blocks."""
    return tuple(name for name, allows in pool.allows.items() if allows) if pool else ()


def _selectors(pool: Pool) -> Iterator[Selector]:
    """Yield the selectors of pods, by name. Those that are no LabelSelector were refused (IPC0563)."""
    for name, selector in sorted(pool.by_pods.items()):
        found = label_selector(selector)
        yield name, found.expressions, found.labels


def label_selector(selector: Condition | None, also: Mapping[str, str] = {}) -> LabelSelector:
    """Return a selector in the form for templates, with the values of further labels; None selects all."""
    written: Mapping[str, Any] = (selector and selector.label_selector) or {}
    return LabelSelector(
        expressions=tuple(map(expression_of, written.get("matchExpressions", ()))),
        labels=tuple(sorted({**written.get("matchLabels", {}), **also}.items())),
    )


def expression_of(entry: Mapping[str, Any]) -> Expression:
    """Return an entry of `matchExpressions` in the form for templates."""
    return entry["key"], entry["operator"], tuple(entry.get("values", ()))


def _labels(cluster: Cluster, pool: Pool) -> tuple[tuple[str, str], ...]:
    """Return the labels by which BGP advertisements select a pool."""
    return tuple(sorted(pool_labels(cluster, pool).items()))
