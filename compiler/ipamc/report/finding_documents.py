"""Located findings as one document: JSON, GitLab's Code Quality, SARIF and JUnit XML."""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from ipamc import __version__
from ipamc.model.diagnostics import Diagnostic, Located, Severity, Span
from ipamc.model.limits import SARIF_RESULTS
from ipamc.report.findings import Checked, Content, RuleText, lines, with_spans
from ipamc.report.terminal_text import visible, where

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

VERSION = 1


def json_document(content: Content) -> str:
    """For programs: every finding, indented; unknown `line`, `column` and `end_column` are 0."""
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


_NUMBER = re.compile(r"(?<![\w.:/-])\d[\d,]*(?![\w.:/-])")
"""Matches a count, but not a part of a name, an address or a day."""


def fingerprints(findings: Iterable[Located]) -> Iterator[str]:
    """Yield a unique text for each finding, in order of place.
    It does not change with the lines above the finding. It is made of rule, file and message without the
    counts in it: `4 of 64 blocks are free` is the same finding tomorrow.
    """
    import hashlib  # noqa: PLC0415 - 4 ms that other formats need not spend

    seen: Counter[str] = Counter()
    for finding in findings:
        text = "\0".join((finding.code, finding.at.path, _NUMBER.sub("#", finding.message)))
        seen[text] += 1
        yield hashlib.sha256(f"{text}\0{seen[text]}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


_WORDS = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}


def gitlab(content: Content) -> str:
    """GitLab's Code Quality report, an array: a merge request shows what differs by fingerprint.
    Fingerprints are unique, because GitLab shows only the first finding of one.
    """
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


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_WIDE = re.compile("[\U00010000-\U0010ffff]")
_IN_LINK = str.maketrans({each: f"\\{each}" for each in "\\[]"})
"""Characters that are escaped in the text of a link (SARIF 2.1.0, 3.11.6)."""
_ROOT = "%SRCROOT%"
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def sarif(content: Content) -> str:
    """SARIF 2.1.0, for code scanning: both ends of a conflict, and the rules, the worst findings first.
    If there are more than SARIF_RESULTS, it counts the omitted. Paths are relative to the repository's root.
    Columns count UTF-16 code units: readers that ignore `columnKind` expect that.
    """
    pairs = zip(content.findings, fingerprints(content.findings), strict=True)
    ranked = sorted(pairs, key=lambda pair: (pair[0].acknowledged != "", pair[0].severity))
    kept, left_out = ranked[:SARIF_RESULTS], [finding for finding, _ in ranked[SARIF_RESULTS:]]
    codes = sorted({finding.code for finding, _ in kept})
    hides = any(finding.acknowledged for finding in content.findings)
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
        "results": [_result(finding, mark, codes.index(finding.code), hides=hides) for finding, mark in kept],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(finding: Located, fingerprint: str, index: int, *, hides: bool) -> dict[str, object]:
    related = list(enumerate(finding.also, 1))
    links = [f"[{visible(place.label).translate(_IN_LINK)}]({number})" for number, place in related]
    # Related places are links, not texts: code scanning shows one only if the message links to it.
    first, *rest = lines(finding)
    reasons = [{"kind": "external", "justification": visible(finding.acknowledged)}]
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
        # If one result of a run has the field, all must (3.27.23).
        **({"suppressions": reasons if finding.acknowledged else []} if hides else {}),
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


T = TypeVar("T")

FAILED = "failed"


def junit(content: Content) -> str:
    """JUnit XML: a suite a file, a case a finding; for `ipamc test` a case for each test of a cluster.
    Errors are failures; warnings and notes are cases that pass, with their text, acknowledged ones skipped.
    Characters that XML forbids (control characters, lone surrogates, noncharacters) are spelled out by
    `visible`. Without findings it has one passing case: CI systems reject an empty document.
    """
    from xml.etree.ElementTree import Element, indent, tostring  # noqa: PLC0415 - 3 ms, for this format alone

    # The findings of a test are in its own case.
    of_tests = {finding for test in content.checked for finding in test.findings}
    findings = [finding for finding in content.findings if finding not in of_tests]
    failed = _failed(findings) + sum(test.status == FAILED for test in content.checked)
    tests = max(len(findings) + len(content.failures) + len(content.checked), 1)
    suites = Element("testsuites", _counts("ipamc", tests, failed, len(content.failures)))
    for failure in content.failures:
        name = visible(failure.folder) or "ipamc"
        suite = _add(suites, "testsuite", _counts(name, 1, 0, 1))
        case = _add(suite, "testcase", {"classname": name, "name": "ipamc runs"})
        _add(case, "error", {"message": visible(failure.text)})
    for (cluster, path), checked in groupby(content.checked, key=lambda test: (test.cluster, test.at.path)):
        _tests(suites, visible(cluster), visible(path), list(checked))
    for path, some in groupby(findings, key=lambda finding: finding.at.path):
        _findings(suites, visible(path), list(some))
    if not len(suites):
        suite = _add(suites, "testsuite", _counts("ipamc", 1, 0, 0))
        _add(suite, "testcase", {"classname": "ipamc", "name": "no findings"})
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, "unicode")}\n'


def _failed(findings: Iterable[Located]) -> int:
    return sum(finding.severity is Severity.ERROR for finding in findings)


def _tests(suites: Element, cluster: str, path: str, checked: list[Checked]) -> None:
    """Add a cluster's tests from one file. Equal names get different suffixes, as for findings."""
    failed = sum(test.status == FAILED for test in checked)
    suite = _add(suites, "testsuite", _counts(f"{cluster}: {path}", len(checked), failed, 0))
    for name, test in _numbered((visible(test.name), test) for test in checked):
        attributes = {"classname": cluster, "name": name, "file": path, "line": str(test.at.line)}
        case = _add(suite, "testcase", attributes)
        text = "\n\n".join(map(_text, test.findings))
        if test.status == FAILED:
            worst = min(test.findings, key=lambda finding: finding.severity)
            _add(case, "failure", {"type": worst.code, "message": visible(worst.message)}, text)
        elif test.status == "skipped":
            _add(case, "skipped", {"message": "it applies to no node here"})
        elif text:
            _add(case, "system-out", {}, text)


def _text(finding: Located) -> str:
    return "\n".join((where(finding.at), *lines(finding), f"docs: ipamc explain {finding.code}"))


def _findings(suites: Element, path: str, findings: list[Located]) -> None:
    suite = _add(suites, "testsuite", _counts(path, len(findings), _failed(findings), 0))
    for name, finding in _numbered((f"{f.code}: {visible(f.message)}", f) for f in findings):
        line = {"line": str(finding.at.line)} if finding.at.line else {}
        case = _add(suite, "testcase", {"classname": path, "name": name, "file": path, **line})
        text = _text(finding)
        if finding.acknowledged:
            _add(case, "skipped", {"message": visible(f"acknowledged: {finding.acknowledged}")}, text)
        elif finding.severity is Severity.ERROR:
            _add(case, "failure", {"type": finding.code, "message": visible(finding.message)}, text)
        else:
            _add(case, "system-out", {}, f"{finding.severity.word}: {text}")


def _numbered(cases: Iterable[tuple[str, T]]) -> Iterable[tuple[str, T]]:
    """Yield cases with unique names without lines: CI systems follow a case by its name."""
    seen: Counter[str] = Counter()
    for name, case in cases:
        seen[name] += 1
        yield (f"{name} ({seen[name]})" if seen[name] > 1 else name), case


def _counts(name: str, tests: int, failures: int, errors: int) -> dict[str, str]:
    return {"name": name, "tests": str(tests), "failures": str(failures), "errors": str(errors)}


def _add(parent: Element, tag: str, attributes: dict[str, str], text: str | None = None) -> Element:
    child = parent.makeelement(tag, attributes)
    child.text = text
    parent.append(child)
    return child


TESTS_VERSION = 1


def tests_record(cluster: str, checked: Sequence[Checked] | None) -> dict[str, object]:
    """Return the JSON object of one cluster; `tests` is null if it was refused before its tests ran."""
    tests = [
        {
            "name": test.name,
            "because": test.because,
            "status": test.status,
            "subjects": test.subjects,
            "file": test.at.path,
            "line": test.at.line,
            "column": test.at.column,
            "findings": list(map(record, test.findings)),
        }
        for test in checked or ()
    ]
    return {"name": cluster, "tests": None if checked is None else tests}


DOCUMENTS = {"json": json_document, "gitlab": gitlab, "sarif": sarif, "junit": junit}
"""The formats of this module, by name."""
