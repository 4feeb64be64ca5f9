"""One line about what a run did to a cluster."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ipamc.lock.transitions import renumbered
from ipamc.model.diagnostics import count, names
from ipamc.model.plan import Origin, Plan, StaleReason
from ipamc.model.wording import typed
from ipamc.review.diff.lock_lines import changes_of

if TYPE_CHECKING:
    from ipamc.workspace.output import Changes

LISTED = 5
"""How many files are named that are out of date on the disk."""


def placed(plan: Plan) -> str:
    """Count the nodes, the blocks added (and why) or returned, and the nodes that left or are renumbered."""
    origins = Counter(plan.origins.values())
    returned = origins.pop(Origin.RETURNED, 0)
    origins.pop(Origin.RENUMBER, 0)  # `renumbered` counts their nodes
    why = ", ".join(f"{number:,} {origin}" for origin, number in sorted(origins.items()))
    leavers = {stale.node for stale in plan.stale if stale.reason is StaleReason.LEAVER}
    moved = renumbered(changes_of(plan.lock.written, plan), plan.held)
    return ", ".join(
        (
            count(len(plan.cluster.nodes), "node"),
            f"{count(origins.total(), 'block')} added{f' ({why})' if why else ''}",
            f"{returned:,} returned",
            f"{len(leavers):,} left",
            f"{len(moved):,} renumbered",
        )
    )


def written(changes: Changes) -> str:
    """Say what was written to the disk."""
    if not changes:
        return "unchanged"
    parts = (
        "lock written" if changes.lock else "",
        f"{count(len(changes.written), 'file')} written" if changes.written else "",
        f"{len(changes.removed):,} removed" if changes.removed else "",
    )
    return ", ".join(filter(None, parts))


def outdated(changes: Changes, folder: str, name: str) -> str:
    """Say which files of a cluster are out of date on the disk, and what to run."""
    paths = [
        *(["ipam.lock"] if changes.lock else []),
        *(f"rendered/{path}" for path in (*changes.written, *changes.removed)),
    ]
    cluster = name if folder == f"clusters/{name}" else typed(folder)
    return f"out of date: {names(paths, LISTED)}\n  next: ipamc compile {cluster} && git add {typed(folder)}"
