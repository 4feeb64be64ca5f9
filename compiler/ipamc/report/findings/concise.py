"""One line a finding, for editors and for grep."""

from __future__ import annotations

from ipamc.report.findings.content import Content
from ipamc.report.terminal_text import paint, visible, where


def render(content: Content) -> str:
    """Return a line `file:line:col: error[CODE] message` for each finding.
    Then a line for each code with more findings, and one for each failure.
    """
    lines = []
    for finding in content.findings:
        word = finding.severity.word
        head = paint(f"{word}[{finding.code}]", word, colour=content.colour)
        lines.append(f"{where(finding.at)}: {head} {visible(finding.message)}\n")
    lines += [f"... and {number:,} more {code}\n" for code, number in content.more.items()]
    return "".join([*lines, *(f"error: {visible(failure.line)}\n" for failure in content.failures)])
