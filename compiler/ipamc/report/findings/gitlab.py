"""GitLab's Code Quality report: a JSON array.

A merge request shows how it differs from that of the target branch, by fingerprint.
"""

from __future__ import annotations

import json

from ipamc.model.diagnostics import Located, Severity
from ipamc.report.findings.content import Content, Failure, fingerprints, lines

_WORDS = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}


def render(content: Content) -> str:
    """Return the document with every finding.

    Fingerprints are unique: GitLab shows only the first finding of one fingerprint.
    """
    records = [*map(_failure, content.failures)]
    records += map(_record, content.findings, fingerprints(content.findings))
    return json.dumps(records, indent=2) + "\n"


def _record(finding: Located, fingerprint: str) -> dict[str, object]:
    return {
        "description": "; ".join(line for text in lines(finding) for line in text.split("\n")),
        "check_name": finding.code,
        "fingerprint": fingerprint,
        "severity": _WORDS[finding.severity],
        "location": {"path": finding.at.path, "lines": {"begin": max(finding.at.line, 1)}},
    }


def _failure(failure: Failure) -> dict[str, object]:
    """Return a record of it: a run that failed is not a run without findings."""
    return {
        "description": failure.text,
        "check_name": "ipamc",
        "fingerprint": f"failure:{failure.folder}",
        "severity": "blocker",
        "location": {"path": failure.folder or ".", "lines": {"begin": 1}},
    }
