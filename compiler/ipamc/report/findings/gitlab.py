"""GitLab's Code Quality report: a JSON array, which the widget of a merge request compares with that of the target branch by fingerprint."""

from __future__ import annotations

import json

from ipamc.model.diagnostics import Diagnostic, Severity
from ipamc.report.findings.content import Content, Failure, fingerprints, lines, span_of

_WORDS = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}


def render(content: Content) -> str:
    """Give the document: every finding, since GitLab shows only the first of a fingerprint and these are all different."""
    pairs = zip(content.findings, fingerprints(content.findings), strict=True)
    records = [*map(_failure, content.failures), *(_record(each, fingerprint) for each, fingerprint in pairs)]
    return json.dumps(records, indent=2) + "\n"


def _record(finding: Diagnostic, fingerprint: str) -> dict[str, object]:
    at = span_of(finding.at)
    return {
        "description": "; ".join(line for text in lines(finding) for line in text.split("\n")),
        "check_name": finding.code,
        "fingerprint": fingerprint,
        "severity": _WORDS[finding.severity],
        "location": {"path": at.path, "lines": {"begin": max(at.line, 1)}},
    }


def _failure(failure: Failure) -> dict[str, object]:
    """Write an entry for it: a run that failed is not one without findings."""
    return {
        "description": failure.text,
        "check_name": "ipamc",
        "fingerprint": f"failure:{failure.folder}",
        "severity": "blocker",
        "location": {"path": failure.folder or ".", "lines": {"begin": 1}},
    }
