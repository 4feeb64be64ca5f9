"""GitHub's workflow commands: findings as annotations of the lines that they concern.

Of one step GitHub keeps 10 errors, 10 warnings and 10 notices (50 of a job) and drops the others without a word; the log shows all of them. So the
tenth of a kind says how many there are beside, and the others follow for the log.
"""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.diagnostics import Diagnostic, Severity, Span
from ipamc.report.findings.content import Content, lines
from ipamc.report.terminal_text import visible

SHOWN = 10
"""Annotations of a kind that GitHub keeps of a step."""

_WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def render(content: Content) -> str:
    """Give a command a line: errors first, then warnings and notes. Nothing where there is nothing to say."""
    kinds: dict[Severity, list[str]] = {each: [] for each in Severity}
    kinds[Severity.ERROR] += [command("error", each.text, title="ipamc") for each in content.failures]
    for each in content.findings:
        kinds[each.severity].append(_command(each))
    left = sum(content.more.values())
    told = [line for kind, commands in kinds.items() for line in _kind(kind, commands)]
    if left:
        codes = ", ".join(f"{number:,} {code}" for code, number in content.more.items())
        told.append(f"and {left:,} more that are not in this log: {codes}\n")
    return "".join(told)


def _kind(kind: Severity, commands: list[str]) -> Iterator[str]:
    if len(commands) <= SHOWN:
        yield from commands
        return
    yield from commands[: SHOWN - 1]
    number = len(commands) - SHOWN + 1
    yield command(
        _WORDS[kind],
        f"and {number:,} more {_WORDS[kind]}s, which GitHub shows no annotation for: see the log",
        title="ipamc",
    )
    yield from commands[SHOWN - 1 :]


def _command(finding: Diagnostic) -> str:
    at = finding.at
    place: dict[str, str | int] = {"file": visible(at.path)}
    if isinstance(at, Span) and at.line:
        place["line"] = at.line
        if at.column:
            place |= {"endLine": at.line, "col": at.column, "endColumn": max(at.end_column, at.column)}
    return command(
        _WORDS[finding.severity], "\n".join(lines(finding)), **place, title=f"ipamc {finding.code}"
    )


def command(word: str, data: str, **properties: str | int) -> str:
    """Write one command; whatever its words are, it is one line, and the runner reads the same words back."""
    listed = ",".join(f"{name}={str(value).translate(_PROPERTY)}" for name, value in properties.items())
    return f"::{word} {listed}::{data.translate(_DATA)}\n"
