"""SARIF 2.1.0, for code scanning: findings with both ends of a conflict, and the rules behind them.

Paths are relative to the repository's root. Columns count UTF-16 code units: readers that ignore `columnKind`
expect that.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from ipamc import __version__
from ipamc.model.diagnostics import Located, Span
from ipamc.report.findings.content import Content, RuleText, fingerprints, lines
from ipamc.report.terminal_text import visible

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MOST = 25_000  # the most results of a run: GitHub refuses a file with more, and shows the first 5,000

_WIDE = re.compile("[\U00010000-\U0010ffff]")
_IN_LINK = str.maketrans({each: f"\\{each}" for each in "\\[]"})
"""Characters that are escaped in the text of a link (SARIF 2.1.0, 3.11.6)."""
_ROOT = "%SRCROOT%"
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def render(content: Content) -> str:
    """Return the document, the worst findings first; if there are more than MOST, it counts the omitted."""
    pairs = zip(content.findings, fingerprints(content.findings), strict=True)
    ranked = sorted(pairs, key=lambda pair: pair[0].severity)
    kept, left_out = ranked[:MOST], [finding for finding, _ in ranked[MOST:]]
    codes = sorted({finding.code for finding, _ in kept})
    failures = [": ".join(filter(None, (failure.folder, failure.text))) for failure in content.failures]
    said = [("error", text) for text in failures]
    if left_out:
        numbers = sorted(Counter((finding.severity, finding.code) for finding in left_out).items())
        which = ", ".join(f"{number:,} {code} ({severity.word})" for (severity, code), number in numbers)
        said.append(("warning", f"{len(left_out):,} more findings are not in this report: {which}"))
    entries = [(code, content.rules.get(code) or RuleText(code, "")) for code in codes]
    rules = [
        {
            "id": code,
            "shortDescription": {"text": rule.title},
            "fullDescription": {"text": rule.body or rule.title},
            "help": {"text": f"{rule.title}\n\n{rule.body}".rstrip()},
        }
        for code, rule in entries
    ]
    notifications = [{"level": level, "message": {"text": visible(text)}} for level, text in said]
    ran = {"executionSuccessful": not content.failures, "toolExecutionNotifications": notifications}
    run = {
        "tool": {"driver": {"name": "ipamc", "semanticVersion": __version__, "rules": rules}},
        "invocations": [ran],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "the root of the repository"}}},
        "columnKind": "utf16CodeUnits",
        "results": [_result(finding, mark, codes.index(finding.code)) for finding, mark in kept],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(finding: Located, fingerprint: str, index: int) -> dict[str, object]:
    related = list(enumerate(finding.also, 1))
    links = [f"[{visible(place.label).translate(_IN_LINK)}]({number})" for number, place in related]
    # Related places are links, not texts: code scanning shows one only if the message links to it.
    first, *rest = lines(finding)
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": finding.severity.word,
        "message": {"text": "\n".join((first, *links, *rest[len(related) :]))},
        "locations": [{"physicalLocation": _physical(finding.at)}],
        "relatedLocations": [
            {"id": number, "message": {"text": visible(place.label)}, "physicalLocation": _physical(place.at)}
            for number, place in related
        ],
        "partialFingerprints": {"ipamc/v1": fingerprint},
    }


def _physical(span: Span) -> dict[str, object]:
    data = span.path.encode("utf-8", "surrogatepass")
    # All but unreserved characters (RFC 3986) are percent-encoded.
    uri = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in data)
    artifact = {"uri": f"file://{uri}"} if uri.startswith("/") else {"uri": uri, "uriBaseId": _ROOT}
    location: dict[str, object] = {"artifactLocation": artifact}
    if span.line:
        region = location["region"] = {"startLine": span.line}
        if span.column:  # in UTF-16 code units: a character above U+FFFF counts as two
            wide = _wide(span.source)
            start, end = (column + bisect_left(wide, column - 1) for column in (span.column, span.end_column))
            region |= {"startColumn": start, "endColumn": max(start, end)}
    return location


@lru_cache(maxsize=1)
def _wide(source: str) -> Sequence[int]:
    """Return the offsets of characters above U+FFFF in a line; findings of minified JSON share the result."""
    return () if source.isascii() else array("q", (found.start() for found in _WIDE.finditer(source)))
