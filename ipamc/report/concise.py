"""One line a finding, for editors and for grep."""

from __future__ import annotations

from collections.abc import Sequence

from ipamc.diagnostics import Diagnostic
from ipamc.report.text import paint, visible, where


def render(findings: Sequence[Diagnostic], more: dict[str, int], colour: bool) -> str:  # noqa: FBT001 - every format has this shape
    """Give `file:line:col: error[CODE] message` for each finding, and a line for each code that has more of them."""
    lines = [f"{where(each.at)}: {_head(each, colour=colour)} {visible(each.message)}\n" for each in findings]
    return "".join([*lines, *(f"... and {number:,} more {code}\n" for code, number in more.items())])


def _head(finding: Diagnostic, *, colour: bool) -> str:
    word = finding.severity.name.lower()
    return paint(f"{word}[{finding.code}]", word, colour=colour)
