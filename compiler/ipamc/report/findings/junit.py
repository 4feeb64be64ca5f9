"""JUnit XML: a suite a file, a test case a finding.

Errors are failures; warnings and notes are cases that pass, with their text. What XML cannot hold (control
characters, lone surrogates, noncharacters) does not print either: `visible` spells it out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from ipamc.model.diagnostics import Located, Severity
from ipamc.report.findings.content import Content, Failure, lines
from ipamc.report.terminal_text import visible, where

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


def render(content: Content) -> str:
    """Return the document.

    Without findings it has one case, which passes: CI systems take an empty document for a mistake.
    """
    from xml.etree.ElementTree import Element, indent, tostring  # noqa: PLC0415 - 3 ms, for this format alone

    failed = sum(finding.severity is Severity.ERROR for finding in content.findings)
    tests = max(len(content.findings) + len(content.failures), 1)
    suites = Element("testsuites", _counts("ipamc", tests, failed, len(content.failures)))
    for failure in content.failures:
        _failure(suites, failure)
    for path, findings in groupby(content.findings, key=lambda finding: finding.at.path):
        _suite(suites, visible(path), list(findings))
    if not len(suites):
        suite = _add(suites, "testsuite", _counts("ipamc", 1, 0, 0))
        _add(suite, "testcase", {"classname": "ipamc", "name": "no findings"})
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, "unicode")}\n'


def _suite(suites: Element, path: str, findings: list[Located]) -> None:
    failed = sum(finding.severity is Severity.ERROR for finding in findings)
    suite = _add(suites, "testsuite", _counts(path, len(findings), failed, 0))
    for name, finding in _named(findings):
        line = {"line": str(finding.at.line)} if finding.at.line else {}
        case = _add(suite, "testcase", {"classname": path, "name": name, "file": path, **line})
        text = "\n".join((where(finding.at), *lines(finding), f"docs: ipamc explain {finding.code}"))
        if finding.severity is Severity.ERROR:
            _add(case, "failure", {"type": finding.code, "message": visible(finding.message)}, text)
        else:
            _add(case, "system-out", {}, f"{finding.severity.word}: {text}")


def _named(findings: Iterable[Located]) -> Iterable[tuple[str, Located]]:
    """Yield the findings of a file, each with a name of its own.

    It has no line: CI systems follow a case by its name from run to run.
    """
    seen: Counter[str] = Counter()
    for finding in findings:
        name = f"{finding.code}: {visible(finding.message)}"
        seen[name] += 1
        yield (f"{name} ({seen[name]})" if seen[name] > 1 else name), finding


def _failure(suites: Element, failure: Failure) -> None:
    name = visible(failure.folder) or "ipamc"
    case = _add(
        _add(suites, "testsuite", _counts(name, 1, 0, 1)),
        "testcase",
        {"classname": name, "name": "ipamc runs"},
    )
    _add(case, "error", {"message": visible(failure.text)})


def _counts(name: str, tests: int, failures: int, errors: int) -> dict[str, str]:
    return {"name": name, "tests": str(tests), "failures": str(failures), "errors": str(errors)}


def _add(parent: Element, tag: str, attributes: dict[str, str], text: str | None = None) -> Element:
    child = parent.makeelement(tag, attributes)
    child.text = text
    parent.append(child)
    return child
