"""Lines of locks as text and as JSON: their states, those that hold an address, those that a merge drops."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct

from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Span, count, several
from ipamc.model.lock import Line, State
from ipamc.report.terminal_text import Cells, box, visible, where, width

if TYPE_CHECKING:  # importing them takes longer than an answer from the locks
    from ipamc.lock.merge import Dropped
    from ipamc.review.explain_pools import UnheldBlock


def state(line: Line, *, started: bool = False) -> str:
    """Return the state of a line as text; for quarantine with the day, and whether its node moved.
    `started`: the node started with the block, and may no longer have it.
    """
    day = f" {line.since}" if line.since else ""
    part = f", {line.addresses:,} addresses" if line.addresses else ""
    return f"{line.state}{day}{', moved' if line.moved else ''}{' at start' if started else ''}{part}"


def about_started(name: str, started: Collection[Block]) -> str:
    """Return the line that explains `held at start`."""
    held = f"{visible(name)}: {count(len(started), 'block')} held at start, which a node started with"
    shown = "no CiliumNode of the input shows the blocks that the nodes hold now"
    return f"{held}. Cilium's operator gives out the blocks of such pools, and {shown}"


def about_disputed(name: str, nodes: Collection[str]) -> str:
    """Return the line about disputed nodes."""
    shown = visible(name)
    return f"{shown}: {several(sorted(nodes), 'node', 'disputed')}; for fixes: ipamc compile {shown} --check"


def state_record(line: Line, *, started: bool = False) -> dict[str, str | bool | int]:
    """Return the state of a line for JSON; the arguments are those of `state`."""
    record: dict[str, str | bool | int] = {"state": str(line.state)}
    record |= {"since": line.since} if line.since else {}
    record |= {"moved": True} if line.moved else {}
    record |= {"addresses": line.addresses} if line.addresses else {}
    return record | ({"atStart": True} if started else {})


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


def dropped_lines(path: str, dropped: tuple[Dropped, ...], *trunks: str) -> list[str]:
    """Return a row for each dropped line: what replaced it, on which merged trunk, and what to do."""
    rows = []
    for each in dropped:
        line, holder = each.line, each.holder
        has = f"{holder.node} {f'left on {holder.since}' if holder.since else 'has'}"
        why = f"has {holder.block}" if holder.node == line.node else has
        on = "" if each.trunk is None else f" on {trunks[each.trunk]}"
        moves = f"to move {line.node} anyway: ipamc lock --renumber {line.node}"
        again = moves if line.state is State.PENDING else "the next compile places it again"
        rows.append(visible(f"{path}: dropped {line.block} of node {line.node}, which {why}{on}; {again}"))
    return rows
