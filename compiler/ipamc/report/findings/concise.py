"""One line a finding, for editors and for grep."""

from __future__ import annotations

from ipamc.model.diagnostics import Located
from ipamc.report.findings.content import Content
from ipamc.report.terminal_text import paint, visible, where


def render(content: Content) -> str:
    """Return a line `file:line:col: error[CODE] message` for each finding.

    Then a line for each code with more findings, and one for each failure.
    """
    lines = [
        f"{where(finding.at)}: {_head(finding, colour=content.colour)} {visible(finding.message)}\n"
        for finding in content.findings
    ]
    lines += [f"... and {number:,} more {code}\n" for code, number in content.more.items()]
    return "".join([*lines, *(f"error: {visible(failure.line)}\n" for failure in content.failures)])


def _head(finding: Located, *, colour: bool) -> str:
    word = finding.severity.word
    return paint(f"{word}[{finding.code}]", word, colour=colour)
