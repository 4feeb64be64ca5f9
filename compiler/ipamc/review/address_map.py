"""The map of a cluster's addresses: what each range of each pool is used for, and why nodes get blocks of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ipamc.lock.utilisation import PoolUse
from ipamc.model.address_sets import blocks_over, outermost
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Node
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Lock
from ipamc.model.plan import Want
from ipamc.review.explain_pools import Verdict, explain_pools
from ipamc.review.shown_pools import rooms, uses_on

MOST_REASONS = 200_000
"""Above this product of pools and groups of nodes, reasons are left out: `ipamc why` tells them for one node."""
MOST_OFFERS = 20
"""Pools of a group whose reasons are left out."""


class PoolMap(Struct, frozen=True, kw_only=True):
    """A pool in one family, and what in it is in no line of the lock."""

    use: PoolUse
    reserved: tuple[Block, ...]
    """Reserved in the pool, as far as they are in its ranges; disjoint, by address."""
    excluded: tuple[Block, ...]
    """Excluded in the cluster, likewise."""
    without_line: tuple[Block, ...]
    """Shown by CiliumNodes that have no node: taken, and in no line."""
    first: int
    """How many nodes have the pool as first candidate."""
    room: int
    """For how many more nodes the pool has blocks, in each family that it has, as `ipamc show` says it."""
    further: int
    """How many nodes have it as a further candidate, or to stand in."""


class Reason(Struct, frozen=True, kw_only=True):
    """What a pool is to a group of nodes."""

    pool: str
    verdict: Verdict
    why: str


class ClusterMap(Struct, frozen=True, kw_only=True):
    """A cluster's pools and nodes, as a map needs them."""

    cluster: Cluster
    lock: Lock
    pools: tuple[PoolMap, ...]
    """By name, IPv4 before IPv6."""
    groups: Sequence[Sequence[Reason]]
    """For each group of nodes with the same candidates: its pools in order; of many, some, and without reasons."""
    group_of: Mapping[str, int]
    """The group of each node of the inventory."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the inventory, by name."""
        return self.cluster.nodes


def map_of(cluster: Cluster, lock: Lock, wants: Sequence[Want], today: str) -> ClusterMap:
    """Return the map of a cluster as its lock has it; nothing is compiled. O(n log n).

    `wants` are those of `assign`. Reasons are told for one node of each group, as `ipamc why` does before
    anything is placed.
    """
    groups: dict[int, int] = {}
    alike: list[Want] = []
    group_of: dict[str, int] = {}
    first: Counter[str] = Counter()
    further: Counter[str] = Counter()
    for want in wants:
        number = groups.get(id(want.offers))
        if number is None:
            number = groups[id(want.offers)] = len(alike)
            alike.append(want)
        group_of[want.node.name] = number
    members = Counter(group_of.values())
    for number, want in enumerate(alike):
        for place, offer in enumerate(want.offers):
            (further if place else first)[offer.pool.name] += members[number]
    told = len(alike) * len(cluster.pools) <= MOST_REASONS
    taken = outermost(shown.block for shown in Evidence(cluster).without_node())
    excluded = outermost(cidr.block for cidr in cluster.excluded)
    uses = uses_on(cluster, lock, today)
    room = rooms(cluster, uses)
    return ClusterMap(
        cluster=cluster,
        lock=lock,
        pools=tuple(
            PoolMap(
                use=use,
                reserved=_inside(use, outermost(cidr.block for cidr in use.pool.reserved)),
                excluded=_inside(use, excluded),
                without_line=_inside(use, taken),
                room=room[use.pool.name],
                first=first[use.pool.name],
                further=further[use.pool.name],
            )
            for use in uses
        ),
        groups=[list(_reasons(cluster, want, today) if told else _offers(cluster, want)) for want in alike],
        group_of=group_of,
    )


def _inside(use: PoolUse, blocks: Sequence[Block]) -> tuple[Block, ...]:
    return tuple(found for part in use.ranges for found in blocks_over(blocks, part.range.block))


def _offers(cluster: Cluster, want: Want) -> Iterable[Reason]:
    """Yield the pools that may serve a node, in order, without a reason."""
    other = Verdict.STANDS_IN if cluster.mode.one_block else Verdict.SERVES
    for place, offer in enumerate(want.offers[:MOST_OFFERS]):
        yield Reason(pool=offer.pool.name, verdict=other if place else Verdict.FIRST, why="")


def _reasons(cluster: Cluster, want: Want, today: str) -> Iterable[Reason]:
    """Yield what the pools that may serve a node are to it."""
    for explained in explain_pools(cluster, want, None, today):
        if explained.verdict is not Verdict.PASSED_OVER:
            yield Reason(pool=explained.pool.name, verdict=explained.verdict, why=explained.why)
