"""Blocks that their nodes would not get today. Every plan lists them, because nothing else does."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ipamc.check.held_blocks import (
    ILLEGAL,
    Fault,
    classify,
    no_longer_selected,
    other_family,
    over_excluded,
)
from ipamc.model.lock import Line
from ipamc.model.plan import Plan
from ipamc.model.range_index import RangeIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Misplaced:
    """Held and pending lines where the lock's rule 2 would refuse new ones, or in a pool that does not select
    their node.
    """

    why: str
    lines: tuple[Line, ...]
    """By family and address."""
    illegal: bool
    """Rule 2 refuses the place; else only the pool is another one."""


def misplaced(plan: Plan) -> tuple[Misplaced, ...]:
    """Return the misplaced lines by reason, the illegal ones first. O(lines)."""
    cluster, ranges = plan.cluster, RangeIndex(plan.cluster.pools)
    wants = {want.node.name: want for want in plan.wants}
    groups: dict[tuple[bool, str], list[Line]] = defaultdict(list)
    for line in plan.lock.lines:
        if line.in_use and line.node in wants:
            found = ranges.of(line.block)
            for fault in classify(cluster, wants[line.node], line, found.pool if found else None):
                if why := _why(fault):
                    groups[fault.rule not in ILLEGAL, why].append(line)
    return tuple(
        Misplaced(why=why, lines=tuple(lines), illegal=not legal)
        for (legal, why), lines in sorted(groups.items())
    )


def _why(fault: Fault) -> str:
    """Say what is wrong with a block; "" where the plan does not repeat it."""
    if fault.rule is other_family:
        return f"IPv{fault.family} is not in ipFamilies"
    if fault.rule is over_excluded:
        return f"overlaps excluded {fault.ranges[0].block}"
    if fault.rule is no_longer_selected:
        return f"pool {fault.pool} no longer selects the node"
    return "outside every pool" if fault.rule in ILLEGAL else ""
