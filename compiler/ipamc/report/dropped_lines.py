"""Lines that a merge of locks dropped, as text: which line replaced each, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipamc.model.lock import State
from ipamc.report.terminal_text import visible

if TYPE_CHECKING:
    from ipamc.lock.merge import Dropped


def dropped_lines(path: str, dropped: tuple[Dropped, ...], *trunks: str) -> list[str]:
    """Return a row for each dropped line: the line that replaced it, and what to do.
    `trunks` are the names of the trunks that were merged.
    """
    return [visible(f"{path}: dropped {_row(line, trunks)}") for line in dropped]


def _row(dropped: Dropped, trunks: tuple[str, ...]) -> str:
    line, holder = dropped.line, dropped.holder
    if holder.node == line.node:
        why = f"which has {holder.block}"
    else:
        why = f"which {holder.node} {f'left on {holder.since}' if holder.since else 'has'}"
    if dropped.trunk is not None:
        why += f" on {trunks[dropped.trunk]}"
    again = (
        f"to move {line.node} nevertheless: ipamc lock --renumber {line.node}"
        if line.state is State.PENDING
        else "compile places it again"
    )
    return f"{line.block} of node {line.node}, {why}; {again}"
