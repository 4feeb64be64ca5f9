"""SARIF 2.1.0, for code scanning: findings with both ends of a conflict, and the rules behind them.

Paths are relative to the repository's root, columns count UTF-16 code units, as readers expect that do not look at `columnKind`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from ipamc import __version__
from ipamc.model.diagnostics import At, Diagnostic, Related, Severity, Span
from ipamc.report.findings.content import Content, Rule, fingerprints, lines, span_of
from ipamc.report.terminal_text import visible

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MOST = 25_000
"""Results of a run; GitHub refuses a file with more, and shows the first 5,000."""

_ROOT = "%SRCROOT%"
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def render(content: Content) -> str:
    """Give the document, the worst findings first; beyond MOST it says what was left out."""
    ranked = sorted(
        zip(content.findings, fingerprints(content.findings), strict=True), key=lambda pair: pair[0].severity
    )
    kept, left = ranked[:MOST], [each for each, _ in ranked[MOST:]]
    codes = sorted({each.code for each, _ in kept})
    notifications = [_notification("error", ": ".join(filter(None, each))) for each in content.failures]
    if left:
        notifications.append(
            _notification("warning", f"{len(left):,} more findings are not in this report: {_counted(left)}")
        )
    run = {
        "tool": {
            "driver": {
                "name": "ipamc",
                "semanticVersion": __version__,
                "rules": [_rule(code, content.rules.get(code)) for code in codes],
            }
        },
        "invocations": [
            {"executionSuccessful": not content.failures, "toolExecutionNotifications": notifications}
        ],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "the root of the repository"}}},
        "columnKind": "utf16CodeUnits",
        "results": [_result(each, fingerprint, codes.index(each.code)) for each, fingerprint in kept],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(code: str, rule: Rule | None) -> dict[str, object]:
    title, body = rule or Rule(code, "")
    return {
        "id": code,
        "shortDescription": {"text": title},
        "fullDescription": {"text": body or title},
        "help": {"text": f"{title}\n\n{body}".rstrip()},
    }


def _result(finding: Diagnostic, fingerprint: str, index: int) -> dict[str, object]:
    related = list(enumerate(finding.also, 1))
    links = [f"[{_link(visible(each.label))}]({number})" for number, each in related]
    # The others are links and not the texts that `lines` has for them: code scanning shows a related place only where the message links to it.
    first, *rest = lines(finding)
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": finding.severity.name.lower(),
        "message": {"text": "\n".join((first, *links, *rest[len(related) :]))},
        "locations": [{"physicalLocation": _physical(finding.at)}],
        "relatedLocations": [_related(number, each) for number, each in related],
        "partialFingerprints": {"ipamc/v1": fingerprint},
    }


def _link(text: str) -> str:
    """Escape the text of a link (SARIF 2.1.0, 3.11.6)."""
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _related(number: int, each: Related) -> dict[str, object]:
    return {"id": number, "message": {"text": visible(each.label)}, "physicalLocation": _physical(each.at)}


def _physical(at: At) -> dict[str, object]:
    span = span_of(at)
    location: dict[str, object] = {"artifactLocation": {"uri": _uri(span.path), "uriBaseId": _ROOT}}
    if span.path.startswith("/"):
        location = {"artifactLocation": {"uri": f"file://{_uri(span.path)}"}}
    if span.line:
        location["region"] = {"startLine": span.line, **_columns(span)}
    return location


def _columns(span: Span) -> dict[str, int]:
    """Give a span's columns in UTF-16 code units: a character beyond the Basic Multilingual Plane counts two."""
    if not span.column:
        return {}
    start, end = (
        column + sum(char > "\uffff" for char in span.source[: column - 1])
        for column in (span.column, span.end_column)
    )
    return {"startColumn": start, "endColumn": max(start, end)}


def _uri(path: str) -> str:
    """Write a path as a relative reference; whatever is not unreserved is spelled in UTF-8."""
    return "".join(
        chr(each) if each in _PLAIN else f"%{each:02X}" for each in path.encode("utf-8", "surrogatepass")
    )


def _notification(level: str, text: str) -> dict[str, object]:
    return {"level": level, "message": {"text": visible(text)}}


def _counted(findings: Iterable[Diagnostic]) -> str:
    numbers = Counter((each.severity, each.code) for each in findings)
    return ", ".join(
        f"{number:,} {code} ({Severity(severity).name.lower()})"
        for (severity, code), number in sorted(numbers.items())
    )
