"""One line a finding, for editors and for grep."""

from __future__ import annotations

from ipamc.model.diagnostics import Diagnostic
from ipamc.report.findings.content import Content
from ipamc.report.terminal_text import paint, visible, where


def render(content: Content) -> str:
    """Give `file:line:col: error[CODE] message` for each finding, and lines for codes that have more of them, and for failures."""
    lines = [
        f"{where(each.at)}: {_head(each, colour=content.colour)} {visible(each.message)}\n"
        for each in content.findings
    ]
    lines += [f"... and {number:,} more {code}\n" for code, number in content.more.items()]
    return "".join([*lines, *(f"error: {visible(each.text)}\n" for each in content.failures)])


def _head(finding: Diagnostic, *, colour: bool) -> str:
    word = finding.severity.name.lower()
    return paint(f"{word}[{finding.code}]", word, colour=colour)
