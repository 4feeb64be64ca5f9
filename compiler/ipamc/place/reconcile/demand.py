"""What nodes still need: the difference between what pools owe them and what they hold."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from ipamc.model.cluster import Cluster, Pool
from ipamc.model.lock import Key, Line, State
from ipamc.model.plan import Demand, Stale, Want
from ipamc.model.range_index import RangeIndex

_node = operator.attrgetter("node")


def needed(pool: Pool, node: str, family: int) -> int:
    """Count the blocks that a pool owes a node: `blocksPerNode`, or its pins if they are more; of a disabled pool the pins alone."""
    pins = sum(each.block.family == family for each in pool.pins.get(node, ()))
    return pins if pool.disabled or pool.unlisted else max(pool.blocks_per_node, pins)


def held_by_node(lines: Iterable[Line]) -> dict[str, tuple[Line, ...]]:
    """Give the held lines by node, in the order of `lines`. O(lines)."""
    live = [line for line in lines if line.state is State.HELD]
    held: dict[str, tuple[Line, ...]] = dict(zip(map(_node, live), zip(live, strict=True), strict=True))
    if len(held) < len(live):
        several: dict[str, list[Line]] = defaultdict(list)
        for line in live:
            several[line.node].append(line)
        held = {node: tuple(some) for node, some in several.items()}
    return held


def lacks(
    cluster: Cluster,
    wants: Iterable[Want],
    held: Mapping[str, tuple[Line, ...]],
    range_index: RangeIndex,
    moving: Collection[Key],
) -> Iterator[Demand]:
    """Yield what each node still needs, in name order. What is `moving` gets its blocks as pending lines, and nothing beside them."""
    for want in wants:
        blocks = [line.block for line in held.get(want.node.name, ())]
        if cluster.mode.one_block:
            families = tuple(
                family for family in cluster.families if all(block.family != family for block in blocks)
            )
            if families and (want.offers or blocks):  # who has neither was told of above
                yield Demand(want, families)
            continue
        have: dict[tuple[str, int], int] = defaultdict(int)
        for block in blocks:
            if ground := range_index.of(block):
                have[ground.pool.name, block.family] += 1
        for offer in want.offers:
            owed = {
                family: needed(offer.pool, want.node.name, family) - have[offer.pool.name, family]
                for family in cluster.families
                if family in offer.pool.families and (want.node.name, family, offer.pool.name) not in moving
            }
            missing = {family: number for family, number in owed.items() if number > 0}
            if missing:
                yield Demand(want, tuple(missing), offer, missing)


def why_lacking(lacking: Demand, known: set[str]) -> Stale:
    """Name the reason why a lock without these blocks is stale. `known` are the nodes that hold any."""
    node = lacking.want.node.name
    needs = " and ".join(f"IPv{family}" for family in lacking.families)
    if node not in known:
        return Stale("newcomer", node, f"has no {needs} block")
    return Stale(
        "lacking",
        node,
        f"has no {needs} block"
        if lacking.offer is None
        else f"wants more of pool {lacking.offer.pool.name} ({needs})",
    )
