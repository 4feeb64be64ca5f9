"""Findings to text: one module a format, and one entry of `FORMATS`. No other part formats findings for people.

A format takes findings in order and gives the whole text; what is shown first, and how much of it, is decided here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ipamc.diagnostics import At, Diagnostic, Span
from ipamc.report import concise, document, full

LIMIT = 20
"""Findings of one code that a person is shown."""


class Format(NamedTuple):
    """A way to print findings."""

    name: str
    render: Callable[[Sequence[Diagnostic], dict[str, int], bool], str]
    """(findings in order, how many more there are by code, colour) to text."""
    limit: int | None = LIMIT


FORMATS = (
    Format("full", full.render),
    Format("concise", concise.render),
    Format("json", document.render, None),
)
NAMES = tuple(each.name for each in FORMATS)


def report(findings: Iterable[Diagnostic], name: str, *, colour: bool = False) -> str:
    """Print findings in the format of that name: in order of file, line and column, for people the first 20 of a code and how many more."""
    chosen = next(each for each in FORMATS if each.name == name)
    shown, more = first_of_each(sorted(findings, key=_order), chosen.limit)
    return chosen.render(shown, more, colour)


def first_of_each(findings: Iterable[Diagnostic], limit: int | None) -> tuple[list[Diagnostic], dict[str, int]]:
    """Keep the first `limit` findings of each code; count the others, by code in order."""
    seen: Counter[str] = Counter()
    shown = []
    for each in findings:
        seen[each.code] += 1
        if limit is None or seen[each.code] <= limit:
            shown.append(each)
    return shown, {code: number - limit for code, number in sorted(seen.items()) if limit is not None and number > limit}


def _order(finding: Diagnostic) -> tuple[str, int, int, int, str, str]:
    path, line, column = _position(finding.at)
    return path, line, column, finding.severity, finding.code, finding.message


def _position(at: At) -> tuple[str, int, int]:
    return (at.path, at.line, at.column) if isinstance(at, Span) else (at.path, 0, 0)
