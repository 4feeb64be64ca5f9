"""JUnit XML: a suite a file, a test case a finding. Errors are failures; warnings and notes are cases that pass, with their text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from ipamc.model.diagnostics import Diagnostic, Severity
from ipamc.report.findings.content import Content, Failure, lines, span_of
from ipamc.report.terminal_text import visible, where


def render(content: Content) -> str:
    """Give the document. Without findings it has one case, which passes: CI systems take an empty one for a mistake."""
    suites = [_failure(each) for each in content.failures]
    for path, group in groupby(content.findings, key=lambda each: each.at.path):
        suites.append(_suite(visible(path), list(group)))
    if not suites:
        suites.append(
            '  <testsuite name="ipamc" tests="1" failures="0" errors="0"><testcase classname="ipamc" name="no findings"/></testsuite>\n'
        )
    failed = sum(each.severity is Severity.ERROR for each in content.findings)
    tests = max(len(content.findings) + len(content.failures), 1)
    head = f'<testsuites name="ipamc" tests="{tests}" failures="{failed}" errors="{len(content.failures)}">'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{"".join(suites)}</testsuites>\n'


def _suite(path: str, findings: list[Diagnostic]) -> str:
    failed = sum(each.severity is Severity.ERROR for each in findings)
    cases = "".join(f"    {case}\n" for case in _cases(path, findings))
    return f'  <testsuite name={_attribute(path)} tests="{len(findings)}" failures="{failed}" errors="0">\n{cases}  </testsuite>\n'


def _cases(path: str, findings: Iterable[Diagnostic]) -> Iterator[str]:
    """Give the cases of a file. Their names have no lines in them: CI systems follow a case by its name from run to run."""
    seen: Counter[str] = Counter()
    for each in findings:
        message = visible(each.message)
        name = f"{each.code}: {message}"
        seen[name] += 1
        again = f" ({seen[name]})" if seen[name] > 1 else ""
        line = f' line="{span_of(each.at).line}"' if span_of(each.at).line else ""
        text = _escaped("\n".join((where(each.at), *lines(each), f"docs: ipamc explain {each.code}")))
        body = (
            f'<failure type="{each.code}" message={_attribute(message)}>{text}</failure>'
            if each.severity is Severity.ERROR
            else f"<system-out>{each.severity.name.lower()}: {text}</system-out>"
        )
        yield f"<testcase classname={_attribute(path)} name={_attribute(name + again)} file={_attribute(path)}{line}>{body}</testcase>"


def _failure(failure: Failure) -> str:
    name, text = _attribute(visible(failure.folder) or "ipamc"), _attribute(visible(failure.text))
    case = f'<testcase classname={name} name="ipamc runs"><error message={text}/></testcase>'
    return f'  <testsuite name={name} tests="1" failures="0" errors="1">{case}</testsuite>\n'


def _attribute(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    from html import escape  # noqa: PLC0415 - 2 ms, which nobody else has to wait for

    return escape(text)
