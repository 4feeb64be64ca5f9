"""The format for programs: one JSON document with every finding. Text stands as it is in the input; JSON escapes what does not print."""

from __future__ import annotations

import json

from ipamc.model.diagnostics import At, Diagnostic, Severity
from ipamc.report.findings.content import Content, span_of

VERSION = 1
"""Grows when a field changes its meaning or goes; new fields may come without that."""


def render(content: Content) -> str:
    """Give the document, indented, with a newline at the end. `line`, `column` and `end_column` are 0 where they are not known."""
    counts = {
        f"{each.name.lower()}s": sum(finding.severity is each for finding in content.findings)
        for each in Severity
    }
    failures = [{"cluster": each.folder, "message": each.text} for each in content.failures]
    records = [record(each) for each in content.findings]
    return (
        json.dumps({"version": VERSION, "findings": records, **counts, "failures": failures}, indent=2) + "\n"
    )


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
    span = span_of(at)
    return {"file": span.path, "line": span.line, "column": span.column, "end_column": span.end_column}
