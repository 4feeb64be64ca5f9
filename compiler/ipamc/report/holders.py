"""Who holds an address: the answer of `ipamc which`, as a table and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct

from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Span
from ipamc.model.lock import Line
from ipamc.report.terminal_text import Row, box, visible, where
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


def table(answers: Sequence[LockAnswer | InputAnswer]) -> str:
    """Return the table: a group of rows a cluster, in the order given."""
    groups = groupby(answers, key=lambda answer: answer.cluster)
    return box(_HEAD, [list(map(_row, group)) for _, group in groups])


def _row(answer: LockAnswer | InputAnswer) -> Row:
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
    """Return the answers for JSON: `lines` of locks, and what the input says of addresses that are `vacant`."""
    lines: list[dict[str, str | int]] = []
    unheld: list[dict[str, str | int]] = []
    for answer in answers:
        if isinstance(answer, LockAnswer):
            line = answer.line
            in_state_of = state_record(line, started=answer.started)
            lines.append(_record(answer, line.block, line.pool, line.node, in_state_of))
        else:
            block, pool, node, in_state, _, reason = answer.unheld
            why = {"reason": reason} if reason else {}
            unheld.append(_record(answer, block, pool, node, {"state": in_state, **why}))
    return {"lines": lines, "vacant": unheld}


def _record(
    answer: LockAnswer | InputAnswer,
    block: Block,
    pool: str,
    node: str,
    in_state: Mapping[str, str | bool | int],
) -> dict[str, str | int]:
    place: dict[str, str | int] = {"file": answer.at.path, "line": answer.at.line}
    return {"cluster": answer.cluster, "block": str(block), "pool": pool, "node": node, **in_state, **place}
