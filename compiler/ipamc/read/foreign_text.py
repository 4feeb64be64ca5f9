"""Text that another tool should have replaced, or another language understands: said in the help of a finding about it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from ipamc.model.diagnostics import Located, Severity, Span
from ipamc.model.wording import cut, typed

_SYNTAX = "IPC0001"
_LAST = "IPC02"
"""Codes up to this are about what is written; others are about what it means."""
_VARIABLE = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\$[A-Za-z_]\w*")
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|<%.*?%>")
_NO_BREAK = re.compile("[\u00a0\u2007\u202f]")
_COMMENT = re.compile(r"(?:^|(?<=\s))//.*")
_DIGEST = re.compile(r"\S*@sha256:[0-9a-f]+")
_AROUND = 256
"""Characters on both sides of a place that are looked at: a line can be a whole document, with a finding in each value."""
_IN_TEXT = (_TEMPLATE, _VARIABLE, _NO_BREAK, _COMMENT, _DIGEST)


def explained(finding: Located) -> Located:
    """Return a finding with a help that names foreign text where it is; another one as it is.

    A way out that the finding has is kept behind it, unless the text is the cause of a syntax error.
    """
    if finding.severity is not Severity.ERROR or finding.code[:5] > _LAST or "comments" in finding.help:
        return finding
    for span in (
        (finding.at, *(related.at for related in finding.also)) if finding.code == _SYNTAX else (finding.at,)
    ):
        for found in _foreign(span, near=finding.code == _SYNTAX):
            said = _said(found, span)
            kept = "" if finding.code == _SYNTAX or "template" in finding.help else finding.help
            return replace(finding, help=f"{said}; {kept}" if kept else said)
    return finding


def _foreign(span: Span, *, near: bool) -> Iterator[re.Match[str]]:
    """Yield foreign text of a span; with `near` also such that it lies in or behind, and of flow style its bracket."""
    start, end = span.column - 1, span.end_column - 1
    if span.source[start : start + 1] == "{" == span.source[start - 1 : start]:
        start, near = start - 1, True
    for pattern in _IN_TEXT:
        for found in pattern.finditer(
            span.source, max(0, start - _AROUND), min(end, start + _AROUND) + _AROUND
        ):
            if found.start() <= start <= found.end() if near else start <= found.start() < end:
                yield found


def _said(found: re.Match[str], span: Span) -> str:
    text = cut(found.group())
    if found.re is _VARIABLE:
        return f"{text} is a variable that nobody expanded, and ipamc expands none: write what it stands for"
    if found.re is _TEMPLATE:
        return f"{text} is a template that nobody rendered, and ipamc renders none: write what it stands for"
    if found.re is _NO_BREAK:
        spaces = rf"sed -i 's/\xc2\xa0/ /g' {typed(span.path)}" if text == "\u00a0" else "write blanks there"
        return f"it has a no-break space (U+{ord(text):04X}), which looks like a blank: {spaces}"
    if found.re is _COMMENT:
        return "a comment begins with #, not with //"
    return (
        "a digest alone names no version; kubectl -n kube-system exec ds/cilium -c cilium-agent -- "
        "cilium-agent --version tells it"
    )
