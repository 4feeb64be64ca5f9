"""One line about what a run did to a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ipamc.lock.record import decode
from ipamc.model.diagnostics import count, names
from ipamc.model.lock import Line
from ipamc.model.plan import Origin, Plan, StaleReason
from ipamc.model.wording import typed
from ipamc.review.renumbered import renumbered

if TYPE_CHECKING:
    from ipamc.workspace.output import Changes

LISTED = 5
"""How many files are named that are out of date on the disk."""


def placed(before: bytes | None, after: str, plan: Plan) -> str:
    """Count the nodes, the blocks added (and why) or returned, and the nodes that left or are renumbered."""
    origins = Counter(plan.origins.values())
    returned = origins.pop(Origin.RETURNED, 0)
    origins.pop(Origin.RENUMBER, 0)  # `renumbered` counts their nodes
    why = ", ".join(f"{number:,} {origin}" for origin, number in sorted(origins.items()))
    leavers = {stale.node for stale in plan.stale if stale.reason is StaleReason.LEAVER}
    return ", ".join(
        (
            count(len(plan.cluster.nodes), "node"),
            f"{count(origins.total(), 'block')} added{f' ({why})' if why else ''}",
            f"{returned:,} returned",
            f"{len(leavers):,} left",
            f"{len(_renumbered(before, after, plan)):,} renumbered",
        )
    )


def _renumbered(before: bytes | None, after: str, plan: Plan) -> set[str]:
    """Return the nodes whose blocks change, from the lines in which the two texts differ."""
    if before == after.encode():
        return set()
    old: Iterable[Line]
    new: Iterable[Line]
    if before is None:  # a node that is adopted may be renumbered in the same run
        old, new = (), plan.lock.lines
    elif before == plan.lock.text:
        old, new = _differing(plan.lock.written, plan.lock.lines)
    else:  # the lock of another revision was merged in
        rows, now = before.splitlines()[1:], after.encode().splitlines()[1:]
        old, new = map(decode, set(rows) - set(now)), map(decode, set(now) - set(rows))
    return renumbered(old, new, plan.held, plan.operator_pools, one_block=plan.cluster.mode.one_block)


def _differing(old: Iterable[Line], new: Iterable[Line]) -> tuple[list[Line], list[Line]]:
    """Return the lines that are not the same object on both sides; few may be equal all the same."""
    known, kept = set(map(id, old)), set(map(id, new))
    return [line for line in old if id(line) not in kept], [line for line in new if id(line) not in known]


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
