"""Text of other tools in an input: the help of a finding names it, and only where it is the cause."""

from __future__ import annotations

import pytest

from ipamc.model.diagnostics import Located, Severity, Span
from ipamc.read.locate import with_template_hint


def help_of(source: str, at: str, code: str = "IPC0007", was: str = "") -> str:
    """Return the help of a finding about a piece of a line."""
    column = source.index(at) + 1
    span = Span("a b.yaml", 1, column, column + len(at), source)
    finding = Located(severity=Severity.ERROR, code=code, at=span, message="x", help=was)
    return with_template_hint(finding).help


@pytest.mark.parametrize(
    ("source", "at", "code", "named"),
    [
        ("mode: ${MODE}", "${MODE}", "IPC0007", "${MODE} is a variable"),
        ("mode: x-$MODE", "x-$MODE", "IPC0007", "$MODE is a variable"),
        ("a: [${A}]", "{", "IPC0001", "${A} is a variable"),
        ("a: [{{ .A }}]", "{ .A }", "IPC0007", "{{ .A }} is a template"),
        ("a: '{% if b %}'", "'{% if b %}'", "IPC0206", "{% if b %} is a template"),
        ("a: b\u00a0", "b\u00a0", "IPC0006", r"sed -i 's/\xc2\xa0/ /g' 'a b.yaml'"),
        ("a: b // c", "b // c", "IPC0007", "a comment begins with #"),
        ("// c", "// c", "IPC0001", "a comment begins with #"),
        ("v: q.io/c@sha256:0af", "q.io/c@sha256:0af", "IPC0007", "a digest does not name a version"),
    ],
)
def test_it_is_named(source: str, at: str, code: str, named: str) -> None:
    assert named in help_of(source, at, code)


def test_what_the_finding_says_is_kept() -> None:
    assert help_of("mode: $M", "$M", was="write mode: crd").endswith("; write mode: crd")
    assert "bracket" not in help_of("a: [${A}]", "{", "IPC0001", was="close the bracket")


@pytest.mark.parametrize(
    ("source", "at", "code"),
    [
        ("mode: ${MODE} # x: y", "x", "IPC0001"),  # the error is elsewhere
        ("mode: a # ${MODE}", "a", "IPC0007"),
        ("url: http://a", "http://a", "IPC0007"),
        ("mode: ${MODE}", "${MODE}", "IPC0303"),  # about the meaning
        ("cost: 5$", "5$", "IPC0007"),
    ],
)
def test_other_findings_stay(source: str, at: str, code: str) -> None:
    assert help_of(source, at, code, was="as it was") == "as it was"
