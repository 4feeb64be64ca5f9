"""What a run did to one cluster, in one line."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from ipamc.diagnostics import count, names

if TYPE_CHECKING:
    from ipamc.disk import Changes
    from ipamc.model import Plan

LISTED = 5
"""Files that are named where something on the disk is out of date."""


def placed(before: bytes | None, after: str, plan: Plan) -> str:
    """Say what happened to blocks: nodes, blocks added and why, returned, left, renumbered."""
    origins = Counter(plan.origins.values())
    returned = origins.pop("returned", 0)
    why = ", ".join(f"{number:,} {origin}" for origin, number in sorted(origins.items()))
    leavers = {each.node for each in plan.stale if each.reason == "leaver"}
    return ", ".join(
        (
            count(len(plan.cluster.nodes), "node"),
            f"{count(origins.total(), 'block')} added{f' ({why})' if why else ''}",
            f"{returned:,} returned",
            f"{len(leavers):,} left",
            f"{len(renumbered(before, after, plan)):,} renumbered",
        )
    )


def renumbered(before: bytes | None, after: str, plan: Plan) -> set[str]:
    """Give the nodes of the inventory that had a live block before and do not have it now: counted from the two texts, not from intentions."""
    if before is None or before == after.encode():
        return set()
    present = {node.name for node in plan.cluster.nodes}
    gone = [json.loads(row) for row in set(before.splitlines()[1:]) - set(after.encode().splitlines())]
    live = [row for row in gone if row["node"] in present and not row.keys() & {"left", "next", "released"}]
    return {row["node"] for row in live if row["block"] not in {str(line.block) for line in plan.held.get(row["node"], ())}}


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
    paths = [*(["ipam.lock"] if changes.lock else []), *(f"rendered/{path}" for path in (*changes.written, *changes.removed))]
    return f"out of date: {names(paths, LISTED)}"
