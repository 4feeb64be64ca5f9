"""Whether a plan does nothing but give blocks to nodes that had none: then nobody has to decide."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.lock.transitions import REFUSED, Reason
from ipamc.model.diagnostics import count, names
from ipamc.review.diff import Difference
from ipamc.review.diff.plan_report import ClusterReport, Status


def beyond_additions(report: ClusterReport) -> Iterator[str]:
    """Yield what a plan does beside adding nodes and uids, one line each; nothing where it only adds.

    What was pending before and is still pending is no change. A re-created node has the block that it had:
    only its uid is another one, and the plan shows nothing.
    """
    if report.status is not Status.PLANNED or report.difference is None:
        yield f"the cluster is {report.status}: {report.said}"
        return
    yield from _lines(report.difference)
    difference = report.difference
    if difference.settings:
        yield f"it changes {names(setting.name for setting in difference.settings)} of the lock"
    if difference.flags:
        yield f"it changes {count(len(difference.flags), 'flag')}: {names(flag.name for flag in difference.flags)}"
    if difference.pools or not difference.pools_known:
        changed = names(pool.name for pool in difference.pools)
        yield f"it changes pools: {changed}" if difference.pools else "what it does to pools is not known"
    if difference.steps:
        yield "it must be brought to the cluster in steps"
    if difference.restarts:
        yield f"it needs a restart of {names(restart.who for restart in difference.restarts)}"
    if difference.leaving:
        left = names(f"{group.kind} {name}" for group in difference.leaving for name in group.names)
        yield f"objects leave the tree: {left}"


def _lines(difference: Difference) -> Iterator[str]:
    lines = difference.lines
    moved = {move.node for move in (*lines.pending, *lines.completed)}
    if moved:
        yield f"it renumbers {count(len(moved), 'node')}: {names(moved)}"
    for what, changes in (
        ("quarantined", lines.of(Reason.LEFT)),
        ("released", lines.released),
        ("no longer shown by the operator", lines.of(Reason.TAKEN_BACK)),
        ("given back by use", lines.of(Reason.GIVEN_BACK)),
        ("with other single addresses", lines.of(Reason.RESIZED)),
        ("changed as no verb changes them", lines.of(*REFUSED)),
    ):
        if changes:
            found = names(f"{each.line.node} ({each.line.block})" for each in changes)
            yield f"{count(len(changes), 'block')} {what}: {found}"
    if again := [added for added in lines.added if added.of]:
        found = names(f"{added.line.node} ({added.line.block}, of {added.of})" for added in again)
        yield f"{count(len(again), 'block')} given again: {found}"
    if lines.pool_transfers:
        yield "ranges belong to other pools now"
