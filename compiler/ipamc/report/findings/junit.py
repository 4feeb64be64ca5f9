"""JUnit XML: a suite a file, a test case a finding; and for `ipamc test` a case for each test of a cluster.

Errors are failures; warnings and notes are cases that pass, with their text. Characters that XML forbids
(control characters, lone surrogates, noncharacters) are spelled out by `visible`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from ipamc.model.diagnostics import Located, Severity
from ipamc.report.findings.content import Checked, Content, lines
from ipamc.report.terminal_text import visible, where

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

T = TypeVar("T")

FAILED = "failed"


def render(content: Content) -> str:
    """Return the document; without findings it has one passing case: CI systems reject an empty one."""
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
            _add(case, "skipped", {"message": "it is about no node here"})
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
        if finding.severity is Severity.ERROR:
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
