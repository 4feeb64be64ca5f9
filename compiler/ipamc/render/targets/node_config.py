"""CiliumNodeConfigs: the default pool of nodes in multi-pool mode, for pods that name no pool.

If two CiliumNodeConfigs select one node, the last name wins in Cilium, so their selectors are disjoint for
any names. With `pinning: node` each node has its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct

from ipamc.model.cilium.versions import node_config_api, pre_allocation
from ipamc.model.cluster import Cluster, Mode, Pool
from ipamc.model.limits import MOST_COMPARED_SELECTORS, MOST_OPPOSITE_VALUES
from ipamc.model.lock import Line
from ipamc.model.node import HOSTNAME
from ipamc.model.plan import Want
from ipamc.model.selector.normal_form import Outcomes, apart
from ipamc.place.candidates import rank
from ipamc.render.targets.context import File, Layout
from ipamc.render.targets.pod_ip_pool import (
    LabelSelector,
    expression_of,
    label_selector,
    of_node,
    pinned_name,
)

TEMPLATE = "node_config.yaml.j2"

Values = tuple[
    str,
    tuple[tuple[str, str], ...],
    tuple[tuple[str, str, tuple[str, ...]], ...],
    tuple[tuple[str, str], ...],
]
"""Name, defaults, matchExpressions, matchLabels."""


def files(layout: Layout) -> Iterator[File]:
    """Yield `cilium/nodeconfigs.yaml`, or with `pinning: node` `pools/<shard>/nodeconfigs.yaml`."""
    cluster = layout.plan.cluster
    if cluster.mode is Mode.MULTI_POOL and cluster.pinning == "pool":
        configs = tuple(
            (name, (("ipam-default-ip-pool", name),), selector.expressions, selector.labels)
            for name, selector in selectors(layout.plan.wants)
        )
        if configs:
            yield _file(cluster, "cilium/nodeconfigs.yaml", configs)
    elif cluster.own_pools:
        for shard, nodes in layout.by_shard(partial(_of_node, layout)):
            yield _file(cluster, f"pools/{shard}/nodeconfigs.yaml", nodes)


def _file(cluster: Cluster, path: str, configs: Sequence[Values]) -> File:
    api = node_config_api(cluster.cilium)
    return File(path, TEMPLATE, {"api": api, "namespace": cluster.namespace, "configs": configs})


def _of_node(layout: Layout, want: Want, lines: tuple[Line, ...]) -> Values | None:
    """Return the config of one node, or None if it holds no block of a pool of its own.
    Its default pool is the first candidate of which it holds blocks. By default an agent requests 8 more
    addresses than it uses, and the operator reports `pool empty` where its blocks have fewer; a smaller
    pre-allocation requests no more than they have. For shared pools it pre-allocates nothing: blocks come as
    pods need them.
    """
    name, version = want.node.name, layout.plan.cluster.cilium
    groups = {pool: some for pool, some in of_node(lines).items() if pool not in layout.plan.operator_pools}
    if not groups:
        return None
    default = next(
        (offer.pool.name for offer in want.offers if offer.pool.name in groups), next(iter(groups))
    )
    settings = []
    for pool, families in groups.items():
        number = pre_allocation(
            version,
            (block for blocks in families.values() for block in blocks),
            layout.plan.cluster.pools_by_name.get(pool),
            default=pool == default,
        )
        settings.append(f"{pinned_name(pool, name)}={number or 0}")
    defaults = (
        ("ipam-default-ip-pool", pinned_name(default, name)),
        ("ipam-multi-pool-pre-allocation", ",".join(settings)),
    )
    return name, defaults, (), ((HOSTNAME, want.node.hostname),)


def selectors(wants: Sequence[Want]) -> Iterator[tuple[str, LabelSelector]]:
    """Yield (pool, selector) for every pool that is the first candidate of a node, by name.
    A pool's own selector is used if it is a LabelSelector, is disjoint from those of all higher-ranked pools
    (because of one label, or with their opposite added), and then selects exactly the nodes whose first
    candidate the pool is. Otherwise the selector lists hostnames, and also if the opposites would have more
    values than `MOST_OPPOSITE_VALUES`, or take more than `MOST_COMPARED_SELECTORS`. O(nodes + candidates +
    pairs of pools that may select one node).
    """
    hostnames: dict[str, set[str]] = defaultdict(set)
    pools: dict[str, Pool] = {}
    for want in wants:
        if pool := want.first:
            pools[pool.name] = pool
            hostnames[pool.name].add(want.node.hostname)
    found = _ByLabels(sorted(pools.values(), key=rank)).found(wants)
    for name in sorted(found):
        yield name, found[name] or LabelSelector(((HOSTNAME, "In", tuple(sorted(hostnames[name]))),), ())


class _ByLabels:
    """Selectors by labels of the nodes with a first candidate, as far as they can be proved.
    Pools are processed by rank; the ones before a pool are *higher*. If a node is selected by a pool and a
    higher one, these are not disjoint, so the higher one's opposite keeps the pool from selecting it. Only
    pins can make another pool than the highest one the first candidate: see `_misled`.
    """

    def __init__(self, ranked: Sequence[Pool]) -> None:
        self._ranked = ranked
        self._own = {id(pool.selector): _own(pool) for pool in ranked}
        often = Counter(key for own in self._own.values() for key in _values(own))
        self._common = {key for key, number in often.items() if 2 * number >= len(self._own)}
        """Labels of which at least half of the selectors name values."""
        self._higher: dict[int, Pool] = {}
        """By selector: an enabled pool."""
        self._by_value: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._without: dict[str, list[int]] = defaultdict(list)
        """By common label: the selectors that name no values of it."""
        self._compared = self._written = 0

    def found(self, wants: Iterable[Want]) -> dict[str, LabelSelector | None]:
        """Return the selector of each pool, or None if none can be proved."""
        misled = set(self._misled(wants))
        result: dict[str, LabelSelector | None] = {}
        for pool in self._ranked:
            result[pool.name] = None
            if not pool.disabled:  # else it is the first candidate by pins alone, and lists hostnames
                if pool.name not in misled:
                    result[pool.name] = self._selector_of(pool)
                self._add(pool)
        return result

    def _misled(self, wants: Iterable[Want]) -> Iterator[str]:
        """Yield pools that would select a node that a pin gives to another, and the pools of such pins."""
        ranks = {pool.name: place for place, pool in enumerate(self._ranked)}
        for want in wants:
            wanted, node = want.first, want.node
            if wanted is None or not want.offers[0].pinned:
                continue
            selecting = (
                offer.pool
                for offer in want.offers
                if offer.pool.name in ranks
                and not offer.pool.disabled
                and (not offer.pinned or offer.pool.selector.matches(node.labels, node.name))
            )
            highest = min(selecting, key=lambda pool: ranks[pool.name], default=None)
            if highest is not wanted:
                yield wanted.name
                if highest:
                    yield highest.name

    def _add(self, pool: Pool) -> None:
        number = id(pool.selector)
        if number in self._higher:
            return
        self._higher[number] = pool
        named = _values(self._own[number])
        for key in self._common:
            if key not in named:
                self._without[key].append(number)
            for value in named.get(key, ()):
                self._by_value[key, value].append(number)

    def _selector_of(self, pool: Pool) -> LabelSelector | None:
        mine = self._own[id(pool.selector)]
        if mine is None:
            return None
        # The higher selectors that may not be disjoint from this one, and few of those that are.
        candidates: Collection[int] = self._higher.keys()
        for key, values in _values(mine).items():
            if key in self._common:
                hits = {number for value in values for number in self._by_value.get((key, value), ())}
                candidates = min(candidates, hits.union(self._without.get(key, ())), key=len)
        self._compared += len(candidates)
        if self._compared > MOST_COMPARED_SELECTORS:
            self._compared -= len(candidates)
            return None
        expressions = set(mine.selector.expressions)
        written = 0
        for number in candidates:
            theirs = self._own[number]
            if theirs is not None and apart(mine.outcomes, theirs.outcomes):
                continue
            opposite = self._higher[number].selector.negated_requirement
            if opposite is None:
                return None
            expression = expression_of(opposite)
            written += 1 + len(expression[-1])
            if self._written + written > MOST_OPPOSITE_VALUES:
                return None
            expressions.add(expression)
        self._written += written
        return mine.selector._replace(expressions=tuple(sorted(expressions)))


def _values(own: OwnSelector | None) -> dict[str, frozenset[str]]:
    """Return, by key, the values of which a label must have one."""
    outcomes = own.outcomes.items() if own else ()
    return {key: found.members for key, found in outcomes if found.listed and not found.absent}


class OwnSelector(Struct, frozen=True):
    """A pool's own selector as a LabelSelector, and the values that it requires of each label."""

    selector: LabelSelector
    outcomes: Mapping[str, Outcomes]


def _own(pool: Pool) -> OwnSelector | None:
    """Return a pool's own selector; None if there is no equivalent LabelSelector."""
    if pool.selector.label_selector is None:
        return None
    return OwnSelector(label_selector(pool.selector), pool.selector.outcomes)
