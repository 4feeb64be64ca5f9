"""GitHub's workflow commands: findings as annotations of the lines that they concern.

GitHub keeps 10 errors, 10 warnings and 10 notices of a step (50 of a job) and drops the others silently; the
log has all of them. So the tenth annotation of a kind says how many more there are, and the others follow for
the log.
"""

from __future__ import annotations

from ipamc.model.diagnostics import Severity
from ipamc.report.findings.content import Content, lines
from ipamc.report.terminal_text import visible

SHOWN = 10  # annotations of a kind that GitHub keeps of a step

_WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def render(content: Content) -> str:
    """Return a command per line: errors, then warnings and notes; "" without findings and failures."""
    kinds: dict[Severity, list[str]] = {severity: [] for severity in Severity}
    kinds[Severity.ERROR] += [command("error", failure.line, title="ipamc") for failure in content.failures]
    for finding in content.findings:
        at = finding.at
        place: dict[str, str | int] = {"file": visible(at.path)} | ({"line": at.line} if at.line else {})
        if at.line and at.column:
            place |= {"endLine": at.line, "col": at.column, "endColumn": max(at.end_column, at.column)}
        word, text = _WORDS[finding.severity], "\n".join(lines(finding))
        kinds[finding.severity].append(command(word, text, **place, title=f"ipamc {finding.code}"))
    rows: list[str] = []
    for kind, commands in kinds.items():
        if (more := len(commands) - SHOWN + 1) > 1:
            word = _WORDS[kind]
            text = f"and {more:,} more {word}s, which GitHub shows no annotation for: see the log"
            commands.insert(SHOWN - 1, command(word, text, title="ipamc"))
        rows += commands
    if left_out := sum(content.more.values()):
        codes = ", ".join(f"{number:,} {code}" for code, number in content.more.items())
        rows.append(f"and {left_out:,} more that are not in this log: {codes}\n")
    return "".join(rows)


def command(word: str, data: str, **properties: str | int) -> str:
    """Return one command on one line, escaped so that the runner reads the same words."""
    listed = ",".join(f"{name}={str(value).translate(_PROPERTY)}" for name, value in properties.items())
    return f"::{word} {listed}::{data.translate(_DATA)}\n"
