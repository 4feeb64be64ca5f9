"""Findings to text: one module a format, and one entry of `FORMATS`. No other part formats findings for people.

A format takes findings in order and gives the whole text; what is shown first, and how much of it, is decided here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ipamc.model.diagnostics import Diagnostic
from ipamc.report.findings import concise, document, full, github, gitlab, junit, sarif
from ipamc.report.findings.content import Content, Failure, Rule, span_of

__all__ = ["FORMATS", "LIMIT", "NAMES", "Failure", "Format", "Rule", "first_of_each", "format_of", "report"]

LIMIT = 20
"""Findings of one code that a person is shown."""


class Format(NamedTuple):
    """A way to print findings."""

    name: str
    render: Callable[[Content], str]
    limit: int | None = None
    """Findings of one code that are shown; None: all."""
    document: bool = True
    """The text is one document, which nothing may stand beside; where there are no findings, it says so."""
    rooted: bool = False
    """A platform reads it, which knows files by their paths below the repository's root; else paths are as the user would type them."""
    rules: bool = False
    """It has the catalogue's entries in it."""


FORMATS = (
    Format("full", full.render, LIMIT, document=False),
    Format("concise", concise.render, LIMIT, document=False),
    Format("json", document.render),
    Format("github", github.render, LIMIT, document=False, rooted=True),
    Format("gitlab", gitlab.render, rooted=True),
    Format("sarif", sarif.render, rooted=True, rules=True),
    Format("junit", junit.render, rooted=True),
)
NAMES = tuple(each.name for each in FORMATS)


def format_of(name: str) -> Format:
    """Give the format of that name."""
    return next(each for each in FORMATS if each.name == name)


def report(
    findings: Iterable[Diagnostic],
    name: str,
    *,
    colour: bool = False,
    failures: Iterable[Failure] = (),
    rules: Mapping[str, Rule] | None = None,
) -> str:
    """Print findings in the format of that name: in order of file, line and column, for people the first 20 of a code and how many more."""
    chosen = format_of(name)
    shown, more = first_of_each(sorted(findings, key=_order), chosen.limit)
    return chosen.render(
        Content(findings=tuple(shown), more=more, failures=tuple(failures), rules=rules or {}, colour=colour)
    )


def first_of_each(
    findings: Iterable[Diagnostic], limit: int | None
) -> tuple[list[Diagnostic], dict[str, int]]:
    """Keep the first `limit` findings of each code; count the others, by code in order."""
    seen: Counter[str] = Counter()
    shown = []
    for each in findings:
        seen[each.code] += 1
        if limit is None or seen[each.code] <= limit:
            shown.append(each)
    return shown, {
        code: number - limit for code, number in sorted(seen.items()) if limit is not None and number > limit
    }


def _order(finding: Diagnostic) -> tuple[str, int, int, int, str, str]:
    at = span_of(finding.at)
    return at.path, at.line, at.column, finding.severity, finding.code, finding.message
