"""A plan beside the pools that a cluster has: what is new, and what is not as planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipamc.importing.prefixes import Plan, PlannedPool, rules
from ipamc.model.address_sets import blocks_over, covers, outermost
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Pool
from ipamc.model.diagnostics import Diagnostic, Place, Related, names
from ipamc.model.wording import shown


def new_pools(plan: Plan, cluster: Cluster) -> tuple[PlannedPool, ...]:
    """Return the pools of a plan that a cluster does not have, by name."""
    return tuple(pool for pool in plan.pools if pool.draft.name not in cluster.pools_by_name)


def differences(plan: Plan, cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield a finding for each pool that is there and not as planned. Ranges count, not their order."""
    for planned in plan.pools:
        if pool := cluster.pools_by_name.get(planned.draft.name):
            yield from _of_pool(planned, pool)


def _of_pool(planned: PlannedPool, pool: Pool) -> Iterator[Diagnostic]:
    for family, ranges in sorted(planned.draft.ranges.items()):
        part = pool.families.get(family)
        there = [cidr.block for cidr in part.ranges] if part else []
        at = part.at if part else pool.at
        if missing := _beyond(there, ranges):
            way_out = "add it to the cidrs of the pool"
            yield _finding(planned, missing[0], at, f"has no {_list(missing)}, which is planned", way_out)
        if beyond := _beyond(ranges, there):
            way_out = "nothing, if only the plan is behind; to give it up: ipamc runbook CLUSTER --change decommission"
            yield _finding(planned, ranges[0], at, f"has {_list(beyond)}, which is not planned", way_out)
        size = planned.draft.sizes[family]
        if part and part.block_size != size:
            text = f"has the blockSize {part.block_size}, and {size} is planned"
            yield _finding(planned, ranges[0], at, text, "change one of the two")
    reserved = [cidr.block for cidr in pool.reserved]
    if left := _beyond(reserved, planned.draft.reserved):
        text = f"may give {_list(left)} to nodes, which the plan keeps free"
        way_out = "see who has it: ipamc which CIDR; then add it to the reserved of the pool"
        yield _finding(planned, next(iter(planned.at)), pool.at, text, way_out)


def _beyond(known: Iterable[Block], blocks: Iterable[Block]) -> list[Block]:
    """Return the blocks that have addresses which are not known. O(n log n)."""
    disjoint = outermost(known)
    return [block for block in blocks if not covers(blocks_over(disjoint, block), block)]


def _finding(planned: PlannedPool, block: Block, at: Place, text: str, way_out: str) -> Diagnostic:
    also = [Related(planned.at[block], "planned here")]
    return rules.not_as_planned(at, f"pool {shown(planned.draft.name)} {text}", also, way_out)


def _list(blocks: list[Block]) -> str:
    return names(map(str, blocks))
