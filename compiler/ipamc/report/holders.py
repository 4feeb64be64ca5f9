"""Who holds an address: the answer of `ipamc which`, as a table and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Span
from ipamc.model.lock import Line
from ipamc.report.box_table import Row, box
from ipamc.report.terminal_text import visible, where
from ipamc.report.utilisation import state, state_record

if TYPE_CHECKING:  # what it imports takes longer to load than an answer from the locks
    from ipamc.review.explain_address import Vacancy

VERSION = 1
"""Grows when a field of `records` changes its meaning or goes."""

_HEAD = ("CLUSTER", "BLOCK", "POOL", "NODE", "STATE", "WHERE")


class Holding(NamedTuple):
    """A line of a cluster's lock that answers."""

    cluster: str
    line: Line
    at: Span


class Vacant(NamedTuple):
    """What a cluster's input says of addresses that no line lies over."""

    cluster: str
    vacancy: Vacancy
    at: Span


def table(answers: Sequence[Holding | Vacant]) -> str:
    """Give the table: a group of rows a cluster, in the order given."""
    return box(
        _HEAD,
        [[_row(each) for each in group] for _, group in groupby(answers, key=lambda each: each.cluster)],
    )


def _row(answer: Holding | Vacant) -> Row:
    if isinstance(answer, Holding):
        line = answer.line
        block, pool, node, told = line.block, line.pool, line.node, state(line)
    else:
        block, pool, node, told, _ = answer.vacancy
    return (
        *map(visible, (answer.cluster, str(block), pool, node, told)),
        where(Span(answer.at.path, answer.at.line)),
    )


def records(answers: Sequence[Holding | Vacant]) -> dict[str, list[dict[str, str | int]]]:
    """Give the same for programs: `lines` of locks, and what is `vacant`."""
    return {
        "lines": [
            _record(each, each.line.block, each.line.pool, each.line.node, state_record(each.line))
            for each in answers
            if isinstance(each, Holding)
        ],
        "vacant": [
            _record(
                each, each.vacancy.block, each.vacancy.pool, each.vacancy.node, {"state": each.vacancy.state}
            )
            for each in answers
            if isinstance(each, Vacant)
        ],
    }


def _record(
    answer: Holding | Vacant, block: Block, pool: str, node: str, state_of: Mapping[str, str | bool]
) -> dict[str, str | int]:
    place: dict[str, str | int] = {"file": answer.at.path, "line": answer.at.line}
    return {"cluster": answer.cluster, "block": str(block), "pool": pool, "node": node, **state_of, **place}
