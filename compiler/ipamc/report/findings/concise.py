"""One line a finding, for editors and for grep."""

from __future__ import annotations

from ipamc.report.findings.content import Content
from ipamc.report.terminal_text import paint, visible, where


def render(content: Content) -> str:
    """Return lines `file:line:col: error[CODE] message`, then one a code with more of them, one a failure."""
    lines = []
    for finding in content.findings:
        word = finding.severity.word
        head = paint(f"{word}[{finding.code}]", word, colour=content.colour)
        lines.append(f"{where(finding.at)}: {head} {visible(finding.message)}\n")
    lines += [f"... and {number:,} more {code}\n" for code, number in content.more.items()]
    return "".join([*lines, *(f"error: {visible(failure.line)}\n" for failure in content.failures)])
