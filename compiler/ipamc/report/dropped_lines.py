"""Reports lines that a merge of locks dropped: the line that replaced each, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipamc.model.lock import State
from ipamc.report.terminal_text import visible

if TYPE_CHECKING:
    from ipamc.lock.merge import Dropped


def dropped_lines(path: str, dropped: tuple[Dropped, ...], *trunks: str) -> list[str]:
    """Return a row for each dropped line: what replaced it, on which merged trunk, and what to do."""
    rows = []
    for each in dropped:
        line, holder = each.line, each.holder
        has = f"{holder.node} {f'left on {holder.since}' if holder.since else 'has'}"
        why = f"has {holder.block}" if holder.node == line.node else has
        on = "" if each.trunk is None else f" on {trunks[each.trunk]}"
        moves = f"to move {line.node} nevertheless: ipamc lock --renumber {line.node}"
        again = moves if line.state is State.PENDING else "compile places it again"
        rows.append(visible(f"{path}: dropped {line.block} of node {line.node}, which {why}{on}; {again}"))
    return rows
