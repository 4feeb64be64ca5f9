"""Nodes to which nothing can happen: nearly all nodes, in most compiles."""

from __future__ import annotations

from collections.abc import Sequence

from ipamc.check.held_blocks import Fault, classify
from ipamc.model.cluster import Pool
from ipamc.model.lock import Line, State
from ipamc.model.plan import ShownBlock, Want
from ipamc.place.reconcile.context import Run
from ipamc.place.reconcile.transitions import needs

InPool = tuple[Line, Pool | None]
"""A line, and the pool whose range contains its block."""


def is_settled(want: Want, lines: Sequence[InPool], run: Run) -> bool:
    """Tell whether a node has one line, and `faults_if_idle` finds it idle and without a fault; False: ask that.

    Nearly all nodes of a one-block mode come no further: 100,000 of them take a third of the time.
    """
    line, pool = lines[0]
    offers, block = want.offers, line.block
    return (
        block.family == run.plain_family
        and len(lines) == 1
        and line.state is State.HELD
        and pool is not None
        and pool.name == line.pool
        and bool(offers)
        and offers[0].pool is pool
        and not pool.reserved
        and offers[0].sizes[block.family] == block.prefix
    )


def faults_if_idle(
    want: Want, shown: tuple[ShownBlock, ...], lines: Sequence[InPool], run: Run
) -> list[tuple[Line, Fault]] | None:
    """Return what is wrong with the blocks of a node to which nothing can happen; None where something can.

    Such a node has held lines and no pending one, shows no other blocks, left none of another family, and
    needs nothing: most nodes, in most compiles.
    """
    faults: list[tuple[Line, Fault]] = []
    held: list[Line] = []
    for line, pool in lines:
        state = line.state
        if state is State.PENDING or (pool.name if pool else line.pool) != line.pool:
            return None
        if state is State.HELD:
            if pool is None:
                return None
            held.append(line)
            if found := classify(run.cluster, want, line, pool):
                faults += [(line, fault) for fault in found]
    if not held or needs(want, held, (), run, follows=run.decides(want, shown, held)):
        return None
    if len(held) < len(lines):
        families = {line.block.family for line in held}
        if any(line.block.family not in families and line.state is State.QUARANTINED for line, _ in lines):
            return None
    if shown and not run.agrees(shown, held):
        return None
    consent = run.consent
    asked = consent.renumber and any(scope.matches(line) for scope in consent.renumber for line in held)
    return None if asked or want.node.name in consent.resize else faults
