"""The format for programs: one JSON document with every finding. Text stands as it is in the input; JSON escapes what does not print."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ipamc.diagnostics import At, Diagnostic, Severity, Span

VERSION = 1
"""Grows when a field changes its meaning or goes; new fields may come without that."""


def render(findings: Sequence[Diagnostic], more: dict[str, int], colour: bool) -> str:  # noqa: ARG001, FBT001 - every format has this shape
    """Give the document, indented, with a newline at the end. `line`, `column` and `end_column` are 0 where they are not known."""
    counts = {f"{each.name.lower()}s": sum(finding.severity is each for finding in findings) for each in Severity}
    return json.dumps({"version": VERSION, "findings": [record(each) for each in findings], **counts}, indent=2) + "\n"


def record(finding: Diagnostic) -> dict[str, object]:
    """Give one finding."""
    return {
        "severity": finding.severity.name.lower(),
        "code": finding.code,
        "message": finding.message,
        **_position(finding.at),
        "help": finding.help,
        "related": [{"label": each.label, **_position(each.at)} for each in finding.also],
    }


def _position(at: At) -> dict[str, object]:
    span = at if isinstance(at, Span) else Span(at.path)
    return {"file": span.path, "line": span.line, "column": span.column, "end_column": span.end_column}
