"""GitLab's Code Quality report: a JSON array.

A merge request shows the difference to the report of the target branch, by fingerprint.
"""

from __future__ import annotations

import json

from ipamc.model.diagnostics import Severity
from ipamc.report.findings.content import Content, fingerprints, lines

_WORDS = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}


def render(content: Content) -> str:
    """Return the document. Fingerprints are unique: GitLab shows only the first finding of one."""
    records: list[dict[str, object]] = [
        {
            "description": failure.text,
            "check_name": "ipamc",
            "fingerprint": f"failure:{failure.folder}",
            "severity": "blocker",
            "location": {"path": failure.folder or ".", "lines": {"begin": 1}},
        }
        for failure in content.failures
    ]
    records += [
        {
            "description": "; ".join(line for text in lines(finding) for line in text.split("\n")),
            "check_name": finding.code,
            "fingerprint": fingerprint,
            "severity": _WORDS[finding.severity],
            "location": {"path": finding.at.path, "lines": {"begin": max(finding.at.line, 1)}},
        }
        for finding, fingerprint in zip(content.findings, fingerprints(content.findings), strict=True)
    ]
    return json.dumps(records, indent=2) + "\n"
