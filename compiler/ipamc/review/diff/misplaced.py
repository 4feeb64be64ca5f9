"""Blocks that their nodes would not get today. Every plan lists them, because nothing else does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from ipamc.check.held_blocks import (
    ILLEGAL,
    Fault,
    classify,
    no_longer_selected,
    other_family,
    over_excluded,
)
from ipamc.model.cluster import Cluster, Pool
from ipamc.model.lock import Line, State
from ipamc.model.ownership import RangeIndex
from ipamc.model.plan import Plan, Want

_MOST = 20
"""Nodes that a command names."""


class Misplaced(Struct, frozen=True, kw_only=True):
    """Held and pending lines where the lock's rule 2 would refuse new ones, or in a pool that does not select
    their node, or in another pool than the first candidate of their node.
    """

    why: str
    lines: tuple[Line, ...]
    """By family and address."""
    illegal: bool
    """Rule 2 refuses the place; else only the pool is another one."""
    move: str = ""
    """The command that gives them other blocks; "" where a renumber leads nowhere."""


def misplaced(plan: Plan, full: Collection[tuple[str, int]] = ()) -> tuple[Misplaced, ...]:
    """Return the misplaced lines by reason, the illegal ones first. O(lines).

    `full` are the pools without a free block, with the family. Nearly all lines are in the first candidate of
    their node: what `_is_at_home` finds is asked nothing else, which takes 100,000 lines a third of the time.
    """
    cluster, ranges = plan.cluster, RangeIndex(plan.cluster.pools)
    wants = {want.node.name: want for want in plan.wants}
    moving = {(line.node, line.block.family) for line in plan.lock.lines if line.state is State.PENDING}
    groups: dict[tuple[bool, str], list[Line]] = defaultdict(list)
    movable: set[Line] = set()
    firsts: dict[tuple[int, int], Pool | None] = {}
    lines = plan.lock.lines
    for line, pool in zip(lines, ranges.pools_of([line.block for line in lines]), strict=True):
        want = wants.get(line.node)
        if want is None or _is_at_home(cluster, want, line, pool) or not line.in_use:
            continue
        faults = [
            (fault.rule not in ILLEGAL, why)
            for fault in classify(cluster, want, line, pool)
            if (why := _why(fault))
        ]
        key = id(want.offers), line.block.family
        if key not in firsts:
            firsts[key] = _first_candidate(cluster, want, line)
        first = firsts[key]
        waits = line.state is State.PENDING or (line.node, line.block.family) in moving
        if first and first is not pool and not waits:
            movable.add(line)
            no_room = ", which has no free block" if (first.name, line.block.family) in full else ""
            if pool and not faults:
                faults = [(True, f"in pool {pool.name}; the first candidate is {first.name}{no_room}")]
        for fault in faults:
            groups[fault].append(line)
    held = _by_pool(line for lines in plan.held.values() for line in lines) if movable else {}
    whole = {pool for pool, lines in held.items() if all(line in movable for line in lines)}
    return tuple(
        Misplaced(why=why, lines=tuple(lines), illegal=not legal, move=_move(cluster, lines, movable, whole))
        for (legal, why), lines in sorted(groups.items())
    )


def _is_at_home(cluster: Cluster, want: Want, line: Line, pool: Pool | None) -> bool:
    """Tell whether a block lies in its node's first candidate, so that `_why` says nothing of its faults.

    `pool` is the one whose range contains the block. False where CIDRs are excluded: ask `classify`.
    """
    offers, family = want.offers, line.block.family
    return (
        bool(offers)
        and offers[0].pool is pool
        and family in offers[0].sizes
        and family in cluster.families
        and not cluster.excluded
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


def _first_candidate(cluster: Cluster, want: Want, line: Line) -> Pool | None:
    """Return the pool that a node without a block would try first.

    None in modes where every pool that selects a node gives it blocks: there none comes first, and a block of
    another pool has nothing to move to.
    """
    if not cluster.mode.one_block:
        return None
    return next((offer.pool for offer in want.offers if line.block.family in offer.sizes), None)


def _by_pool(lines: Iterable[Line]) -> Mapping[str, list[Line]]:
    found: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        found[line.pool].append(line)
    return found


def _move(cluster: Cluster, lines: list[Line], movable: Collection[Line], whole: Collection[str]) -> str:
    """Return the renumber of these lines: of their whole pool if all of it is to move, else one by one.

    `whole` are the pools of which every held line is to move.
    """
    mine = [line for line in lines if line in movable]
    if not mine:
        return ""
    pools = sorted({line.pool for line in mine})
    if all(pool and pool in whole for pool in pools):
        scopes = [f"pool/{pool}" for pool in pools]
    elif len(cluster.families) > 1:  # a node's other family stays
        scopes = [str(line.block) for line in mine]
    else:
        scopes = [line.node for line in mine]
    more = f" and {len(scopes) - _MOST:,} more" if len(scopes) > _MOST else ""
    return (
        " ".join((f"ipamc lock {cluster.name}", *(f"--renumber {scope}" for scope in scopes[:_MOST]))) + more
    )
