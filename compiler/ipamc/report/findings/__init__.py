"""Renders located findings as text: one module for each format, and one entry of `FORMATS`.

Changes no finding, and writes to no file. A format renders findings in the order given: `report` decides on
the order, and on the number of findings of one code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from operator import attrgetter

from msgspec import Struct

from ipamc.model.diagnostics import Diagnostic, Located
from ipamc.report.findings.content import Checked, Content, Failure, RuleText, with_spans

LIMIT = 20  # the most findings of one code in a text for people


class Format(Struct, frozen=True):
    """A way to print findings."""

    name: str  # also the name of its module, which is imported at first use
    limit: int | None = None  # the most findings of one code; None: all
    document: bool = True
    """The text is one document: it is printed without findings, too, and nothing else is printed."""
    rooted: bool = False  # paths are relative to the repository's root; False: as the user would type them
    rules: bool = False  # it contains the catalogue's entries


FORMATS = (
    Format("full", LIMIT, document=False),
    Format("concise", LIMIT, document=False),
    Format("json"),
    Format("github", LIMIT, document=False, rooted=True),
    Format("gitlab", rooted=True),
    Format("sarif", rooted=True, rules=True),
    Format("junit", rooted=True),
)
NAMES = tuple(known.name for known in FORMATS)


def format_of(name: str) -> Format:
    """Return the format of that name."""
    return next(known for known in FORMATS if known.name == name)


def report(
    findings: Iterable[Diagnostic],
    name: str,
    *,
    colour: bool = False,
    failures: Iterable[Failure] = (),
    checked: Iterable[Checked] = (),
    rules: Mapping[str, RuleText] | None = None,
) -> str:
    """Render findings in a format, in order of file, line and column.
    For people, only the first LIMIT findings of a code and the number of the others. A finding without a
    location refers to its whole file. `checked` are the tests; their findings are among `findings`.
    """
    chosen = format_of(name)
    shown, more = first_of_each(sorted(map(with_spans, findings), key=attrgetter("order")), chosen.limit)
    render: Callable[[Content], str] = import_module(f"{__name__}.{chosen.name}").render
    content = Content(
        findings=tuple(shown),
        more=more,
        failures=tuple(failures),
        checked=tuple(checked),
        rules=rules or {},
        colour=colour,
    )
    return render(content)


def first_of_each(findings: Iterable[Located], limit: int | None) -> tuple[list[Located], dict[str, int]]:
    """Keep the first `limit` findings of each code; count the others, by code in order."""
    every, seen, shown = list(findings), Counter[str](), []
    most = len(every) if limit is None else limit
    for finding in every:
        seen[finding.code] += 1
        if seen[finding.code] <= most:
            shown.append(finding)
    return shown, {code: number - most for code, number in sorted(seen.items()) if number > most}
