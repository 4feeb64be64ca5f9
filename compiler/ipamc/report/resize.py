"""The use of blocks, and the decisions about them: a table for people, records for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipamc.model.diagnostics import count
from ipamc.place.resize.decide import Sized, Verdict
from ipamc.report.terminal_text import box, visible

VERSION = 1

_HEAD = ("NODE", "POOL", "BLOCKS", "USED", "USABLE", "IN USE", "DECISION")
_NUMBERS = range(2, 6)  # right-aligned columns


def table(rows: Sequence[Sized], *, every: bool) -> str:
    """Return the rows that change or cannot change, or `every` row; and the number of omitted rows."""
    some = [row for row in rows if every or row.verdict not in {Verdict.KEPT, Verdict.REPORTED}]
    kept = len(rows) - len(some)
    last = f"{count(kept, 'row')} more without a change: --all\n" if kept else ""
    cells = []
    for row in some:
        numbers = (f"{len(row.blocks):,}", f"{row.used:,}", f"{row.usable:,}", f"{row.percent:.1f} %")
        cells.append((visible(row.node), f"{visible(row.pool)} IPv{row.family}", *numbers, decision(row)))
    return (box(_HEAD, [cells], numbers=_NUMBERS) if some else "") + last


def decision(row: Sized) -> str:
    """Return the decision for a block as a phrase."""
    parts = []
    for block, number in sorted(row.addresses.items()):
        parts.append(f"{number:,} addresses of {block}" if number else f"all of {block}")
    if row.growth:
        part = f", {row.growth.addresses:,} addresses of the last" if row.growth.addresses else ""
        parts.append(f"{count(row.growth.blocks, 'block')} more{part}")
    parts += [f"gives back {block}" for block in row.reclaimed]
    if row.prefix:
        parts.append(f"a /{row.prefix} is enough")
    words = ", ".join(parts)
    if row.verdict in {Verdict.GROWS, Verdict.GIVES_BACK}:
        return f"{words} ({row.why})" if row.why else words
    return f"{row.verdict}{': ' if row.why else ''}{row.why}{'; ' if words else ''}{words}"


def record(row: Sized) -> dict[str, Any]:
    """Return a row for programs."""
    return {
        "node": row.node,
        "pool": row.pool,
        "family": row.family,
        "blocks": [str(block) for block in row.blocks],
        "used": row.used,
        "usable": row.usable,
        "percent": row.percent,
        "decision": row.verdict.value,
        "why": row.why,
        "grow": {"blocks": row.growth.blocks, "addresses": row.growth.addresses} if row.growth else None,
        "addresses": {str(block): number for block, number in sorted(row.addresses.items())},
        "reclaim": [str(block) for block in row.reclaimed],
        "blockSize": row.prefix or None,
    }
