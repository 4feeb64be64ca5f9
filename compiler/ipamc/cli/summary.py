"""What a run did to one cluster, in one line."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ipamc.lock.file import decode
from ipamc.model.diagnostics import count, names
from ipamc.review.diff.lock_lines import renumbered

if TYPE_CHECKING:
    from ipamc.model.plan import Plan
    from ipamc.workspace.output import Changes

LISTED = 5
"""Files that are named where something on the disk is out of date."""


def placed(before: bytes | None, after: str, plan: Plan) -> str:
    """Say what happened to blocks: nodes, blocks added and why, returned, left, renumbered."""
    origins = Counter(plan.origins.values())
    returned = origins.pop("returned", 0)
    origins.pop("renumber", 0)  # these nodes have a number of their own
    why = ", ".join(f"{number:,} {origin}" for origin, number in sorted(origins.items()))
    leavers = {each.node for each in plan.stale if each.reason == "leaver"}
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
    """Give the nodes whose blocks change: counted from the rows of the two texts that differ, not from intentions."""
    if before is None or before == after.encode():
        return set()
    old, new = before.splitlines()[1:], after.encode().splitlines()[1:]
    return renumbered(map(decode, set(old) - set(new)), map(decode, set(new) - set(old)), plan.held)


def written(changes: Changes) -> str:
    """Say what was done on the disk."""
    if not changes:
        return "unchanged"
    parts = (
        "lock written" if changes.lock else "",
        f"{count(len(changes.written), 'file')} written" if changes.written else "",
        f"{len(changes.removed):,} removed" if changes.removed else "",
    )
    return ", ".join(filter(None, parts))


def outdated(changes: Changes) -> str:
    """Say what a run would change on the disk."""
    paths = [
        *(["ipam.lock"] if changes.lock else []),
        *(f"rendered/{path}" for path in (*changes.written, *changes.removed)),
    ]
    return f"out of date: {names(paths, LISTED)}"
