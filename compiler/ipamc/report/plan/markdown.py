"""A plan as a comment on a pull request: what must be read stands open, lists are folded, and nothing in a name is markup.

A comment has at most 65,536 characters on GitHub; LONGEST stays below, because bots add to it. What does not fit is cut from the lists, every list to
the same length, and the last line says how much.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ipamc.model.diagnostics import Diagnostic, Severity, count, names
from ipamc.report.plan.sections import ARROW, Section, headline, notes, quiet, sections
from ipamc.report.plan.text import aligned
from ipamc.report.terminal_text import visible, where
from ipamc.review.diff.document import Document, Planned, Status

LONGEST = 60_000
"""Characters."""

LIMITS = (100_000, 2_000, 1_000, 500, 200, 100, 50, 20, 10, 5, 2, 1, 0)
"""Rows of a list that are tried, one after the other, until all fits."""

LEAST = 5
"""Findings and names that are shown however little room there is."""

OPEN = 10
"""Rows of a table about flags, pools or room that is not folded away."""

_PLAIN = re.compile(r"[^A-Za-z0-9 .,:/()%→−+-]")  # noqa: RUF001 - arrows and minus signs are ours


def render(document: Document) -> str:
    """Give the comment, with a newline at the end. Its first line is a mark by which a bot finds the comment that it is to replace."""
    for limit in LIMITS:
        text, left_out = _render(document, document.clusters, limit)
        if len(text) <= LONGEST:
            return text if not left_out else _cut(document, text, count(left_out, "row"))
    shown = len(document.clusters)
    while len(text) > LONGEST and shown:  # many clusters, each with little
        shown //= 2
        text, left_out = _render(document, document.clusters[:shown], 0)
    return _cut(
        document, text, f"{count(len(document.clusters) - shown, 'cluster')} and {count(left_out, 'row')}"
    )


def _cut(document: Document, text: str, what: str) -> str:
    return f"{text}\n**Cut to fit into a comment: {what} left out.** All of it: {code(command(document))}\n"


def _render(document: Document, clusters: Sequence[Planned], limit: int) -> tuple[str, int]:
    """Give the comment with at most `limit` rows a list, and how many rows that leaves out."""
    cutter = _Cutter(limit, alone=len(document.clusters) == 1)
    parts = [mark(document), f"### {_sign(document.clusters)} {headline(document.clusters)}"]
    for each in clusters:
        parts += [] if quiet(each) else cutter.cluster(each)
    if same := [_with_warnings(each) for each in clusters if quiet(each)]:
        parts.append(f"No changes: {cutter.some(same)}")
    parts += cutter.notes(clusters)
    against = f" against {code(document.base)}" if document.base else ""
    parts.append(
        f"<sub>{count(len(document.clusters), 'cluster')}{against} · {code(command(document))}</sub>"
    )
    return "\n\n".join(parts) + "\n", cutter.left_out


def mark(document: Document) -> str:
    """Give an HTML comment that names the set of clusters: all, or those that were named."""
    scope = "".join(f" {re.sub('[^A-Za-z0-9.-]', '_', name)}" for name in document.scope)
    return f"<!-- ipamc:plan{scope.replace('--', '-%2D')} -->"


def command(document: Document) -> str:
    """Give what prints the whole plan."""
    return " ".join(("ipamc plan", *document.scope, *(["--base", document.base] if document.base else [])))


def _with_warnings(planned: Planned) -> str:
    warnings = sum(each.severity is Severity.WARNING for each in planned.findings)
    return code(planned.name) + (f" ({count(warnings, 'warning')})" if warnings else "")


def _sign(clusters: Sequence[Planned]) -> str:
    counts = [each.difference.lines.counts for each in clusters if each.difference]
    stop = any(each.failed or each.status is Status.DELETED for each in clusters) or any(
        each.renumbered for each in counts
    )
    return "⛔" if stop else "✅"


def plain(text: str) -> str:
    """Give text in which nothing is Markdown or HTML: what is neither a letter nor a digit, nor harmless, is a character reference."""
    return _PLAIN.sub(lambda found: f"&#{ord(found.group())};", visible(text))


def code(text: str) -> str:
    """Give text in a fixed font. Forges leave @names and #numbers in it alone."""
    return f"<code>{plain(text)}</code>"


class _Cutter:
    """Lays clusters out with so many rows a list, and counts what it leaves out."""

    def __init__(self, limit: int, *, alone: bool) -> None:
        self.limit = limit
        self.alone = alone
        self.left_out = 0

    def rows(self, section: Section) -> Sequence[tuple[str, ...]]:
        self.left_out += max(len(section.rows) - self.limit, 0)
        return section.rows[: self.limit]

    def some(self, items: Sequence[str]) -> str:
        shown = items[: max(self.limit, LEAST)]
        self.left_out += len(items) - len(shown)
        return ", ".join(shown) + (
            f" and {len(items) - len(shown):,} more" if len(items) > len(shown) else ""
        )

    def cluster(self, planned: Planned) -> Iterator[str]:
        said = f"\n\n{planned.status.value}: {plain(planned.said)}" if planned.said else ""
        if planned.difference is None:
            yield f"#### ⛔ {code(planned.name)}{said}"
        else:
            yield f"#### {code(planned.name)}{'' if self.alone else f' · {headline((planned,))}'}{said}"
            for section in sections(planned.difference):
                yield from self.section(section)
        yield from self.findings(planned.findings)

    def section(self, section: Section) -> Iterator[str]:
        title = f"{len(section.rows):,} {section.title}" if section.sign in "!+- " else section.title
        about = f": {plain(section.about)}" if section.about else ""
        rows = self.rows(section)
        cut = "" if len(rows) == len(section.rows) else f"\n\n… and {len(section.rows) - len(rows):,} more"
        if section.loud or (section.sign == "~" and not section.folded and len(section.rows) <= OPEN):
            yield f"**{title}**{about}\n\n{_table(section.head, rows)}{cut}"
        else:
            yield f"<details><summary>{title}{about}</summary>\n\n{_block(rows, section.sign)}{cut}\n\n</details>"

    def findings(self, findings: Sequence[Diagnostic]) -> Iterator[str]:
        errors, warnings = (
            [each for each in findings if each.severity is severity]
            for severity in (Severity.ERROR, Severity.WARNING)
        )
        if errors:
            yield f"**{count(len(errors), 'error')}**\n\n{self.items(list(map(_finding, errors)))}"
        if warnings:
            yield (
                f"<details><summary>{count(len(warnings), 'warning')}</summary>\n\n"
                f"{self.items(list(map(_finding, warnings)))}\n\n</details>"
            )

    def notes(self, clusters: Sequence[Planned]) -> Iterator[str]:
        if found := notes(clusters):
            items = [f"{note.code} {plain(note.message)} ({plain(names(about))})" for note, about in found]
            yield f"**{count(len(found), 'note')}**\n\n{self.items(items)}"

    def items(self, items: Sequence[str]) -> str:
        shown = items[: max(self.limit, LEAST)]
        self.left_out += len(items) - len(shown)
        more = [f"… and {len(items) - len(shown):,} more"] if len(items) > len(shown) else []
        return "\n".join(f"- {each}" for each in (*shown, *more))


def _finding(finding: Diagnostic) -> str:
    fix = f"<br>help: {plain(finding.help)}" if finding.help else ""
    return f"{finding.code} {code(where(finding.at))} {plain(finding.message)}{fix}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [
        head,
        ["---"] * len(head),
        *([code(cell) if cell not in {"", ARROW} else cell for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _block(rows: Sequence[Sequence[str]], sign: str) -> str:
    """Give rows in a fence that nothing in them closes."""
    if not rows:
        return ""
    body = "\n".join(aligned(rows, sign))
    fence = "`" * max(3, *(len(each) + 1 for each in re.findall("`+", body)), 3)
    return f"{fence}diff\n{body}\n{fence}"
