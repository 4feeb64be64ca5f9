"""The format for programs: one JSON document with every finding; unprintable characters are escaped."""

from __future__ import annotations

import json

from ipamc.model.diagnostics import Diagnostic, Severity, Span
from ipamc.report.findings.content import Content, with_spans

VERSION = 1


def render(content: Content) -> str:
    """Return the document, indented; unknown `line`, `column` and `end_column` are 0."""
    counts = {f"{kind.word}s": sum(each.severity is kind for each in content.findings) for kind in Severity}
    failures = [{"cluster": failure.folder, "message": failure.text} for failure in content.failures]
    records = [record(finding) for finding in content.findings]
    document = {"version": VERSION, "findings": records, **counts, "failures": failures}
    return json.dumps(document, indent=2) + "\n"


def record(finding: Diagnostic) -> dict[str, object]:
    """Return the JSON object of one finding."""
    shown = with_spans(finding)
    return {
        "severity": finding.severity.word,
        "code": finding.code,
        "message": finding.message,
        **_position(shown.at),
        "help": finding.help,
        "related": [{"label": related.label, **_position(related.at)} for related in shown.also],
    }


def _position(span: Span) -> dict[str, object]:
    return {"file": span.path, "line": span.line, "column": span.column, "end_column": span.end_column}
