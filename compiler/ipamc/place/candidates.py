"""Decides which pools serve each node, in a total order, and which pools may replace a full one.

Selectors are evaluated once for each projection of a node's labels onto the keys that selectors name. An
offer is made once for each pool and class of nodes. Nodes with the same candidates share one `Offers`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ipamc.model.cidr import BITS
from ipamc.model.cluster import AddressSpace, Dialect, Pool, Scheme
from ipamc.model.diagnostics import Diagnostic, Refused, count, error, names, note, several
from ipamc.model.follows import networks
from ipamc.model.limits import KEYS_IN_TURN, MOST_BLOCKS, MOST_CANDIDATES, MOST_LABEL_TESTS, MOST_NODE_BLOCKS
from ipamc.model.node import Node
from ipamc.model.plan import Fallbacks, Offer, Offers, Want, by_place
from ipamc.model.pool_words import terms, why_only_pins
from ipamc.model.selector.selector import Selector, SelectorIndex
from ipamc.model.wording import cut


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
        parts = pool.families.values()
        blocks = min(
            sum(1 << max(part.block_size - cidr.block.prefix, 0) for cidr in part.ranges) for part in parts
        )
        addresses = min(1 << (BITS[family] - part.block_size) for family, part in pool.families.items())
    return Rank(-pool.priority, -pool.selector.requirements, blocks, addresses, pool.name)


def deciding(pool: Pool, later: Pool) -> tuple[str, int | str, int | str]:
    """Return the field of `Rank` that sorts one pool before another, and both values, not negated."""
    one, other = rank(pool), rank(later)
    name = next(name for name in Rank._fields if getattr(one, name) != getattr(other, name))
    sign = -1 if name in {"priority", "requirements"} else 1
    return name, sign * getattr(one, name), sign * getattr(other, name)


def assign(cluster: Scheme) -> tuple[Want, ...]:
    """Return the offers of every node, the first candidate first; wants come in name order.
    O(nodes + candidates + tests): 100,000 nodes in 40 racks with a pool each are 40 tests. A node without
    offers may still hold a block, or get one back. Raises Refused beyond MOST_CANDIDATES, MOST_LABEL_TESTS,
    or the most blocks.
    """
    pools = sorted(cluster.pools, key=rank)
    chooser = Chooser(pools)
    pinned: dict[str, list[Pool]] = {}
    for pool in pools:
        for name in pool.pins:
            pinned.setdefault(name, []).append(pool)
    wants = []
    for node in cluster.nodes:
        pinning = pinned.get(node.name)
        offers = chooser.with_pins(node, pinning) if pinning else chooser.choose(node)
        wants.append(
            Want(
                node, _asked(offers, cluster.asks[node.name]) if isinstance(cluster, AddressSpace) else offers
            )
        )
        if chooser.candidates > MOST_CANDIDATES or chooser.tests > MOST_LABEL_TESTS:
            raise Refused((too_many_candidates(cluster),))
    if not cluster.mode.one_block and (refused := list(too_many_blocks(cluster, wants))):
        raise Refused(tuple(refused))
    return tuple(wants)


def _asked(offers: Offers, sizes: Mapping[int, int]) -> Offers:
    """Return the first pool of an address space that has all requested families, with the requested sizes."""
    fitting = (offer for offer in offers if sizes.keys() <= offer.pool.families.keys())
    return Offers([Offer(offer.pool, dict(sizes), pinned=offer.pinned) for offer in fitting][:1])


def too_many_candidates(cluster: Scheme) -> Diagnostic:
    """IPC0312: ipamc can match all nodes and pools in bounded time."""
    both = f"{count(len(cluster.pools), 'pool')} and {count(len(cluster.nodes), 'node')}"
    pairs = f"{MOST_CANDIDATES:,} node-candidate pairs"
    message = f"{both} exceed {pairs} or {MOST_LABEL_TESTS:,} label tests"
    fix = 'select by label values that many nodes share, such as rack == "r1"'
    return error("IPC0312", cluster.at, message, help=fix)


def too_many_blocks(cluster: Scheme, wants: Iterable[Want]) -> Iterator[Diagnostic]:
    """IPC0313: a node gets at most 4,096 blocks, and a cluster at most 1,000,000."""
    known: dict[int, int] = {}
    total = 0
    for want in wants:
        number = known.get(id(want.offers))
        if number is None:
            giving = (offer for offer in want.offers if not (offer.pool.disabled or offer.pool.unlisted))
            number = sum(offer.pool.blocks_per_node * len(offer.sizes) for offer in giving)
            known[id(want.offers)] = number
        total += number
        if number > MOST_NODE_BLOCKS or total > MOST_BLOCKS:
            pool = max((offer.pool for offer in want.offers), key=lambda pool: pool.blocks_per_node)
            nodes = count(len(cluster.nodes), "node")
            message = f"{nodes} would get more than the limit of {MOST_BLOCKS:,} blocks"
            if number > MOST_NODE_BLOCKS:
                blocks = f"{number:,} blocks from {count(len(want.offers), 'pool')}"
                message = f"node {want.node.name} would get {blocks}; the limit is {MOST_NODE_BLOCKS:,}"
            larger = "use larger blocks (a shorter blockSize) and a smaller blocksPerNode"
            fix = f"{larger}, or let fewer pools select each node"
            yield error("IPC0313", pool.at / "spec" / "blocksPerNode", message, help=fix)
            return


def shared_pools(cluster: Scheme, wants: Sequence[Want], published: Iterable[str] = ()) -> frozenset[str]:
    """Return the names of the pools whose blocks Cilium's operator chooses, in multi-pool mode. O(nodes).
    With `pinning: node` these are further candidates of some node and first candidates of none: the first
    candidate is rendered as a pool of the node's own. A pool for pods alone is shared, too, and a pool that
    serves no node stays shared if it was `published` so.
    """
    if cluster.shared_pools:
        return frozenset(pool.name for pool in cluster.pools)
    if not cluster.own_pools:
        return frozenset()
    first, further = by_place(wants)
    names = {pool.name for pool in cluster.pools}
    of_pods = {pool.name for pool in cluster.pools if pool.pods_only}
    return frozenset({*further, *of_pods, *names.intersection(published)} - first.keys())


def unlisted_pools(cluster: Scheme) -> frozenset[str]:
    """Return the names of the pools whose blocks the operator chooses with `operator: adopt`."""
    return frozenset(pool.name for pool in cluster.pools if pool.unlisted and cluster.operator_adopts)


def unmatched_refused(cluster: Scheme, nodes: list[Node]) -> Iterator[Diagnostic]:
    """IPC0302: every node has a candidate pool."""
    if not nodes:
        return
    some = sorted(cluster.pools, key=rank)[:8]
    passed = [f"{one.name} {why_only_pins(one) or f'selects {cut(one.selector.canonical)}'}" for one in some]
    more = len(cluster.pools) - len(passed)
    seen = f"pools tried: {'; '.join(passed)}{f' and {more} more' if more else ''}"
    disabled = [pool for pool in cluster.pools if pool.disabled and not (pool.follows or pool.pods_only)]
    followed = [networks(pool) for pool in cluster.pools if pool.follows]
    selecting = SelectorIndex([pool.selector for pool in disabled])
    for group in _alike(nodes, cluster.pools):
        first = group[0]
        halted = [disabled[number].name for number in selecting.matching(first.labels, first.name)]
        enable = f"enable pool {names(halted)}, " if halted else ""
        labels = ", ".join(f"{key}={first.labels[key]}" for key in sorted(first.labels)[:6]) or "no labels"
        group_names = several([node.name for node in group], terms(cluster).unit, "without a candidate pool")
        message = f"{group_names} ({labels}); {seen if passed else 'there are no pools'}"
        label = f"{enable}label the node, widen a pool's nodeSelector"
        if followed and not any(node.internal_ips for node in group):
            lacks = f"add its InternalIP in {names(followed)} to the inventory (internalIPs)"
            label = f"{lacks}, {label}"
        fix = f"{label}, or set unmatchedNodes: skip on the Cluster"
        if not cluster.pools:
            fix = f"add a pool; if there is none, ipamc init {cluster.name} creates one"
        if isinstance(cluster, AddressSpace):
            fix = "label the cluster, widen a level's clusterSelector, or add a range for all clusters"
        yield error("IPC0302", first.at, message, help=fix)


def unmatched_skipped(cluster: Scheme, nodes: list[Node]) -> Iterator[Diagnostic]:
    """IPC0308: with `unmatchedNodes: skip`, ipamc skips nodes without a candidate pool."""
    if nodes:
        message = several([node.name for node in nodes], "node", "skipped without a candidate pool")
        yield note("IPC0308", cluster.field("spec", "unmatchedNodes"), message)


def _alike(nodes: list[Node], pools: tuple[Pool, ...]) -> list[list[Node]]:
    """Group nodes that no selector can tell apart, so that 500 unlabelled nodes are one finding."""
    selectors = {id(pool.selector): pool.selector for pool in pools}
    keys = frozenset().union(*(selector.keys for selector in selectors.values()))
    groups: dict[tuple[tuple[str, str], ...], list[Node]] = defaultdict(list)
    for node in nodes:
        groups[tuple(sorted([item for item in node.labels.items() if item[0] in keys]))].append(node)
    return list(groups.values())


Classes = Mapping[int, int | None]
"""The index of the class in each `blockSizes` that selects a node; None: no class does."""


class _SameSelector(NamedTuple):
    """The enabled pools of one selector, by rank: each may replace another."""

    pools: tuple[Pool, ...]
    sized: tuple[Pool, ...]
    """One pool for each `blockSizes` of these pools and of their `overflow`."""


class Chooser:
    """Chooses the candidates of nodes from the enabled pools."""

    def __init__(self, pools: Iterable[Pool]) -> None:
        """Group pools, which come by rank."""
        pools = list(pools)
        enabled = [pool for pool in pools if not pool.disabled and not pool.unlisted]
        self._enabled = {pool.name: pool for pool in enabled}
        numbers: dict[tuple[int, ...], int] = {}
        self._sizes_of: dict[str, int] = {}
        """By pool: the number of its `blockSizes`. Thousands of pools may have the same."""
        for pool in pools:
            same = tuple([id(size_class.selector) for size_class in pool.block_sizes])
            self._sizes_of[pool.name] = numbers.setdefault(same, len(numbers))
        self._rank = {pool.name: number for number, pool in enumerate(enabled)}
        alike: dict[Selector, list[Pool]] = {}
        for pool in enabled:
            alike.setdefault(pool.selector, []).append(pool)
        self._by_selector = [_SameSelector(tuple(some), self._sized(some)) for some in alike.values()]
        self._any_sized = any(some.sized for some in self._by_selector)
        self._index = SelectorIndex([some[0].selector for some in alike.values()])
        selectors = {id(pool.selector): pool.selector for pool in enabled}
        selectors |= {id(other.selector): other.selector for pool in enabled for other in pool.block_sizes}
        self._keys = frozenset().union(*(selector.keys for selector in selectors.values()))
        self._in_order = sorted(self._keys) if len(self._keys) <= KEYS_IN_TURN else None
        self._names = frozenset().union(*(selector.names for selector in selectors.values()))
        self._projected: dict[object, Offers] = {}
        self._known: dict[object, Offers] = {}
        self._offers_by_selector: dict[object, Sequence[Offer]] = {}
        self._plain: dict[tuple[str, int | None], Offer] = {}
        self._pinned_only: dict[object, Offer] = {}
        self._sized_of_one: dict[str, tuple[Pool, ...]] = {}
        self.candidates = 0
        """How many candidates were listed: those that nodes share count once."""
        self._tests = 0

    @property
    def tests(self) -> int:
        """Return the approximate number of label tests so far."""
        return self._tests + self._index.asked

    def choose(self, node: Node) -> Offers:
        """Return the offers of a node, the first candidate first."""
        labels, name = node.labels, node.name
        named = name if name in self._names else None
        projection: tuple[object, ...]
        if self._in_order is not None:
            projection = (*map(labels.get, self._in_order), named)
        else:
            keys = self._keys
            projection = (*sorted([item for item in labels.items() if item[0] in keys]), named)
        offers = self._projected.get(projection)
        if offers is None:
            offers = self._projected[projection] = self._offers_for(labels, name)
        return offers

    def with_pins(self, node: Node, pools: Iterable[Pool]) -> Offers:
        """Put the pools that pin a node before its other candidates, by rank, selected or not."""
        offers = self.choose(node)
        known = {offered.pool.name: offered for offered in offers}
        pinned = [known.get(pool.name) or self._not_selected(pool, node) for pool in pools]
        names = {offered.pool.name for offered in pinned}
        first = (Offer(offered.pool, offered.sizes, offered.instead, pinned=True) for offered in pinned)
        self.candidates += len(offers)
        return Offers((*first, *(other for other in offers if other.pool.name not in names)))

    def _sized(self, pools: Iterable[Pool]) -> tuple[Pool, ...]:
        """Return one pool for each `blockSizes` of some pools and of their `overflow`."""
        found: dict[int, Pool] = {}
        for pool in pools:
            others = (self._enabled[name] for name in pool.overflow if name in self._enabled)
            found |= {self._sizes_of[other.name]: other for other in (pool, *others) if other.block_sizes}
        return tuple(found.values())

    def _classes(self, pools: Iterable[Pool], labels: Mapping[str, str], name: str) -> dict[int, int | None]:
        found = {}
        for pool in pools:
            before = pool.class_index.asked
            found[self._sizes_of[pool.name]] = pool.class_index.first(labels, name)
            self._tests += pool.class_index.asked - before
        return found

    def _offers_for(self, labels: Mapping[str, str], name: str) -> Offers:
        numbers = self._index.matching(labels, name)
        # By selector: the classes of the node, if they matter.
        classes = {
            number: self._classes(self._by_selector[number].sized, labels, name)
            for number in (numbers if self._any_sized else ())
            if self._by_selector[number].sized
        }
        key = tuple(numbers), *((number, *some.values()) for number, some in classes.items())
        offers = self._known.get(key)
        if offers is None:
            groups = [self._offers_of(number, classes.get(number, {})) for number in numbers]
            every = [offer for group in groups for offer in group]
            if len(groups) > 1:
                every.sort(key=lambda offer: self._rank[offer.pool.name])
            offers = self._known[key] = Offers(every)
            self.candidates += len(offers)
        return offers

    def _offers_of(self, number: int, classes: Classes) -> Sequence[Offer]:
        """Return the offers of all pools of one selector, with replacements: others, then `overflow`."""
        key = number, *classes.values()
        offers = self._offers_by_selector.get(key)
        if offers is None:
            pools = self._by_selector[number].pools
            plain = tuple(self._offer(pool, classes) for pool in pools)
            names = {pool.name for pool in pools}
            offers = self._offers_by_selector[key] = []
            for place, offer in enumerate(plain):
                instead = Fallbacks(plain, place, self._overflow(offer.pool, classes, names))
                offers.append(Offer(offer.pool, offer.sizes, instead))
        return offers

    def _offer(self, pool: Pool, classes: Classes) -> Offer:
        """Return a pool with the block sizes for a class of nodes: its own, or those of the class."""
        key = pool.name, classes[self._sizes_of[pool.name]] if pool.block_sizes else None
        offer = self._plain.get(key)
        if offer is None:
            offer = self._plain[key] = Offer(pool, pool.sizes_of(key[1]))
        return offer

    def _overflow(self, full: Pool, classes: Classes, but: Iterable[str] = ()) -> tuple[Offer, ...]:
        """Return the pools of a pool's `overflow`, as written, even if they do not select the node."""
        return tuple(
            self._offer(self._enabled[name], classes)
            for name in full.overflow
            if name in self._enabled and name != full.name and name not in but
        )

    def _not_selected(self, pool: Pool, node: Node) -> Offer:
        """Return the offer of a pool that pins a node, but is disabled or does not select it."""
        sized = self._sized_of_one.get(pool.name)
        if sized is None:
            sized = self._sized_of_one[pool.name] = self._sized([pool])
        classes = self._classes(sized, node.labels, node.name)
        key = pool.name, *classes.values()
        offer = self._pinned_only.get(key)
        if offer is None:
            own = self._offer(pool, classes)
            offer = self._pinned_only[key] = Offer(pool, own.sizes, self._overflow(pool, classes))
        return offer
