"""Nodes that get more addresses, or give blocks back, because of their use: `ipamc resize` decided so."""

from __future__ import annotations

import msgspec

from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Diagnostic, Span, error
from ipamc.model.lock import Line
from ipamc.model.plan import Demand, NodeState, StaleReason, Want
from ipamc.place.reconcile.context import Run
from ipamc.place.reconcile.transitions import changed, quarantined


def resize(node: NodeState, run: Run) -> NodeState:
    """Quarantine the blocks that a node gives back, and change how many addresses of others it has.

    A block that is given back was the node's own: the line is as after a renumber, and never returns.
    """
    decided = run.consent.resize.get(node.name)
    if decided is None:
        return node
    held = {line.block: line for line in node.held}
    if any(block not in held for block in (*decided.reclaim, *decided.addresses)):
        return msgspec.structs.replace(node, found=(*node.found, lock_changed(run)))
    lines: dict[Block, Line] = {
        block: msgspec.structs.replace(held[block], addresses=number)
        for block, number in decided.addresses.items()
    }
    lines |= {block: quarantined(held[block], run.today, moved=True) for block in decided.reclaim}
    return changed(node, lines, StaleReason.RESIZED) if lines else node


def grow(node: NodeState, want: Want, run: Run) -> NodeState:
    """List what a node gets beside what its pools owe it."""
    decided = run.consent.resize.get(node.name)
    demands = [
        Demand(want, (more.family,), offer, {more.family: more.blocks}, more)
        for more in (decided.grow if decided else ())
        for offer in want.offers
        if offer.pool.name == more.pool
    ]
    if not demands:
        return node
    return msgspec.structs.replace(
        node, demands=(*node.demands, *demands), stale=(*node.stale, StaleReason.RESIZED)
    )


def lock_changed(run: Run) -> Diagnostic:
    """IPC0617: the lock is as it was when it was decided what to resize."""
    message = "the lock changed while the use of its blocks was looked at"
    return error("IPC0617", Span(run.lock.path), message, help="run ipamc resize again")
