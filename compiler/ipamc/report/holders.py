"""The answer of `ipamc which`, who holds an address: as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
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

_HEAD = ("CLUSTER", "BLOCK", "POOL", "NODE", "STATE", "WHERE")


class LockAnswer(Struct, frozen=True, kw_only=True):
    """A line of a cluster's lock that matches the query."""

    cluster: str
    line: Line
    at: Span
    started: bool = False  # the node started with the block, and may no longer have it


class InputAnswer(Struct, frozen=True, kw_only=True):
    """What a cluster's input says about addresses that no line of its lock covers."""

    cluster: str
    unheld: UnheldBlock
    at: Span


def table(answers: Sequence[LockAnswer | InputAnswer], columns: int) -> str:
    """Return the table: a group of rows for each cluster, in the order given, without empty columns.
    If that is wider than `columns`, each answer is a paragraph: names of nodes have up to 253 characters.
    """
    rows = list(map(_row, answers))
    of_ranges = "NODE OR RANGE" if any("/" in row[3] for row in rows) else "NODE"
    head = (*_HEAD[:3], of_ranges, *_HEAD[4:])
    used = [number for number in range(len(_HEAD)) if any(row[number] for row in rows)]
    groups = groupby(zip(answers, rows, strict=True), key=lambda pair: pair[0].cluster)
    parts = [[tuple(row[number] for number in used) for _, row in group] for _, group in groups]
    drawn = box(tuple(head[number] for number in used), parts)
    if width(drawn.partition("\n")[0]) <= columns:
        return drawn
    paragraphs = []
    for row in rows:
        titles = (*_HEAD[:3], "RANGE" if "/" in row[3] else "NODE", *_HEAD[4:])
        cells = dict(zip(titles, row, strict=True))
        lines = [f"{cells.pop('BLOCK')}  {cells.pop('STATE')}\n"]
        lines += [f"  {name.lower():7}  {text}\n" for name, text in cells.items() if text]
        paragraphs.append("".join(lines))
    return "\n".join(paragraphs)


def _answer(answer: LockAnswer | InputAnswer) -> tuple[Block, str, str, str, dict[str, str | int]]:
    """Return block, pool and node of an answer, and its state as text and for JSON."""
    if isinstance(answer, LockAnswer):
        line, started = answer.line, answer.started
        record = {**state_record(line, started=started)}
        return line.block, line.pool, line.node, state(line, started=started), record
    block, pool, node, in_state, _, reason, address = answer.unheld
    if reason:
        return block, pool, node, f"{in_state}: {reason}", {"state": in_state, "reason": reason}
    return block, pool, node, in_state, {"state": in_state, **({"address": address} if address else {})}


def _row(answer: LockAnswer | InputAnswer) -> Cells:
    block, pool, node, in_state, _ = _answer(answer)
    cells = (answer.cluster, str(block), pool, node, in_state)
    return (*map(visible, cells), where(Span(answer.at.path, answer.at.line)))


def records(answers: Sequence[LockAnswer | InputAnswer]) -> dict[str, list[dict[str, str | int]]]:
    """Return the answers for JSON: `lines` of locks, and the inputs' texts about `vacant` addresses."""
    found: dict[str, list[dict[str, str | int]]] = {"lines": [], "vacant": []}
    for answer in answers:
        block, pool, node, _, record = _answer(answer)
        about = {"cluster": answer.cluster, "block": str(block), "pool": pool, "node": node}
        entry = {**about, **record, "file": answer.at.path, "line": answer.at.line}
        found["lines" if isinstance(answer, LockAnswer) else "vacant"].append(entry)
    return found
