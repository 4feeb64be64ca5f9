"""Blocks that their nodes hold where they would not get them today: told in every plan, because nothing else reminds of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ipamc.model.lock import Line
from ipamc.model.plan import Plan
from ipamc.model.range_index import RangeIndex, first_overlap
from ipamc.place.reconcile.held_blocks import expected_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Misplaced:
    """Live and pending lines that stand where rule 2 of the lock would refuse a new one, or in a pool that does not select their node."""

    why: str
    lines: tuple[Line, ...]
    """By family and address."""
    illegal: bool
    """Not merely of another pool: held by `unpooled: hold`, or on its way out."""


def misplaced(plan: Plan) -> tuple[Misplaced, ...]:
    """Give them by reason, the illegal ones first. O(lines)."""
    cluster, range_index = plan.cluster, RangeIndex(plan.cluster.pools)
    wants = {want.node.name: want for want in plan.wants}
    groups: dict[tuple[bool, str], list[Line]] = defaultdict(list)
    for line in plan.lock.lines:
        if not line.in_use or line.node not in wants:
            continue
        ground = range_index.of(line.block)
        if line.block.family not in cluster.families:
            groups[False, f"IPv{line.block.family} is not in ipFamilies"].append(line)
        elif excluded := first_overlap(cluster.excluded, line.block):
            groups[False, f"overlaps excluded {excluded.block}"].append(line)
        elif ground is None:
            groups[False, "outside every pool"].append(line)
        elif expected_size(ground.pool, wants[line.node], line.block.family) is None:
            groups[True, f"pool {ground.pool.name} no longer selects the node"].append(line)
    return tuple(
        Misplaced(why=why, lines=tuple(lines), illegal=not legal)
        for (legal, why), lines in sorted(groups.items())
    )
