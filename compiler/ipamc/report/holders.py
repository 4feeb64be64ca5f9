"""Who holds an address: the answer of `ipamc which`, as a table and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct

from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Span
from ipamc.model.lock import Line
from ipamc.report.terminal_text import Cells, box, visible, where, width
from ipamc.report.utilisation import state, state_record

if TYPE_CHECKING:  # importing it takes longer than an answer from the locks
    from ipamc.review.explain_address import UnheldBlock

VERSION = 1
"""Grows when a field of `records` changes its meaning or is removed."""

_HEAD = ("CLUSTER", "BLOCK", "POOL", "NODE", "STATE", "WHERE")


class LockAnswer(Struct, frozen=True, kw_only=True):
    """A line of a cluster's lock that answers the question."""

    cluster: str
    line: Line
    at: Span
    started: bool = False
    """The node started with the block, and may not have it any more."""


class InputAnswer(Struct, frozen=True, kw_only=True):
    """What a cluster's input says about addresses that no line of its lock covers."""

    cluster: str
    unheld: UnheldBlock
    at: Span


def table(answers: Sequence[LockAnswer | InputAnswer], columns: int) -> str:
    """Return the table: a group of rows a cluster, in the order given, without empty columns.
    Where that is wider than `columns`, each answer is a paragraph: names of nodes have up to 253 characters.
    """
    rows = list(map(_row, answers))
    used = [number for number in range(len(_HEAD)) if any(row[number] for row in rows)]
    groups = groupby(zip(answers, rows, strict=True), key=lambda pair: pair[0].cluster)
    parts = [[tuple(row[number] for number in used) for _, row in group] for _, group in groups]
    drawn = box(tuple(_HEAD[number] for number in used), parts)
    if width(drawn.partition("\n")[0]) <= columns:
        return drawn
    paragraphs = []
    for row in rows:
        cells = dict(zip(_HEAD, row, strict=True))
        lines = [f"{cells.pop('BLOCK')}  {cells.pop('STATE')}\n"]
        lines += [f"  {name.lower():7}  {text}\n" for name, text in cells.items() if text]
        paragraphs.append("".join(lines))
    return "\n".join(paragraphs)


def _row(answer: LockAnswer | InputAnswer) -> Cells:
    if isinstance(answer, LockAnswer):
        line = answer.line
        block, pool, node = line.block, line.pool, line.node
        in_state = state(line, started=answer.started)
    else:
        block, pool, node, in_state, _, reason = answer.unheld
        in_state = f"{in_state}: {reason}" if reason else in_state
    cells = (answer.cluster, str(block), pool, node, in_state)
    return (*map(visible, cells), where(Span(answer.at.path, answer.at.line)))


def records(answers: Sequence[LockAnswer | InputAnswer]) -> dict[str, list[dict[str, str | int]]]:
    """Return the answers for JSON: `lines` of locks, and what the input says of `vacant` addresses."""
    lines: list[dict[str, str | int]] = []
    unheld: list[dict[str, str | int]] = []
    for answer in answers:
        if isinstance(answer, LockAnswer):
            line, words = answer.line, state_record(answer.line, started=answer.started)
            lines.append(_record(answer, line.block, line.pool, line.node, words))
        else:
            block, pool, node, in_state, _, reason = answer.unheld
            why = {"reason": reason} if reason else {}
            unheld.append(_record(answer, block, pool, node, {"state": in_state, **why}))
    return {"lines": lines, "vacant": unheld}


def _record(
    answer: LockAnswer | InputAnswer, block: Block, pool: str, node: str, state: Mapping[str, str | int]
) -> dict[str, str | int]:
    of: dict[str, str | int] = {"cluster": answer.cluster, "block": str(block), "pool": pool, "node": node}
    return {**of, **state, "file": answer.at.path, "line": answer.at.line}
