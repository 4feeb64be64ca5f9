"""A plan as a comment on a pull request: lists are folded except urgent ones; names are not markup.

In a plan longer than LONGEST_PLAN_COMMENT every list is cut to the same length, then the last clusters are
omitted; the last line says how much. The counts over all clusters come first, then the clusters, the worst
first.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ipamc.model.diagnostics import Diagnostic, Severity, count, errors_of, names
from ipamc.model.limits import LEAST_ROWS, LONGEST_PLAN_COMMENT, NAMES_IN_LINE, ROWS_TRIED
from ipamc.report.plan_text import (
    ARROW,
    Section,
    aligned,
    headline,
    notes,
    quiet,
    sections,
    stops,
    worst_first,
)
from ipamc.report.terminal_text import tally, visible, where
from ipamc.review.diff.plan_report import ClusterReport, PlanReport

NO_WIDTH = "\u200b"
_REFERENCE = re.compile(r"(?<=[@#!~%&$^])(?=[\w\"'])|(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
"""Matches where GitHub or GitLab would link a person, request, label, milestone, epic, snippet or URL."""
_PLAIN = re.compile(r"[^A-Za-z0-9 .,:/()%→−+-]")  # noqa: RUF001 - the plan's own arrows and minus signs


def render(report: PlanReport) -> str:
    """Return the comment; a bot finds the comment to replace by its first line."""
    clusters = worst_first(report.clusters)
    for limit in ROWS_TRIED:
        text, left_out = _render(report, clusters, limit)
        if len(text) <= LONGEST_PLAN_COMMENT:
            return text if not left_out else _cut(report, text, count(left_out, "row"))
    shown = len(clusters)
    while len(text) > LONGEST_PLAN_COMMENT and shown:  # many clusters, each with few rows
        shown //= 2
        text, left_out = _render(report, clusters[:shown], 0)
    left_out_clusters = count(len(report.clusters) - shown, "cluster")
    return _cut(report, text, f"{left_out_clusters} and {count(left_out, 'row')}")


def _cut(report: PlanReport, text: str, what: str) -> str:
    whole = f"The whole plan: {code(command(report))}"
    return f"{text}\n**Cut to fit into a comment: {what} left out.** {whole}\n"


def _render(report: PlanReport, clusters: Sequence[ClusterReport], limit: int) -> tuple[str, int]:
    """Return the comment with at most `limit` rows per list, and the number of omitted rows."""
    cutter = _Cutter(limit, alone=len(report.clusters) == 1)
    sign = "⛔" if any(map(stops, report.clusters)) else "✅"
    parts = [mark(report), f"### {sign} {headline(report.clusters)}"]
    size = 0
    for cluster in clusters:
        if size > LONGEST_PLAN_COMMENT:
            break  # nothing that follows makes it fit
        new = [] if quiet(cluster) else [*cutter.cluster(cluster)]
        parts += new
        size += sum(map(len, new))
    same = []
    for cluster in filter(quiet, clusters):
        said = tally(f for f in cluster.findings if f.severity is Severity.WARNING or f.acknowledged)
        same.append(code(cluster.name) + (f" ({said})" if said else ""))
    parts += [f"No changes: {cutter.some(same)}"] if same else []
    parts += cutter.notes(clusters)
    against = f" against {code(report.base)}" if report.base else ""
    parts.append(f"<sub>{count(len(report.clusters), 'cluster')}{against} · {code(command(report))}</sub>")
    return "\n\n".join(parts) + "\n", cutter.left_out


def mark(report: PlanReport) -> str:
    """Return an HTML comment that identifies the clusters of the plan, all or named, in a fixed length."""
    scope = hashlib.sha256("\0".join(report.scope).encode()).hexdigest()[:32] if report.scope else ""
    return f"<!-- ipamc:plan{scope and f' {scope}'} -->"


def command(report: PlanReport) -> str:
    """Return the command that prints the whole plan."""
    names = report.scope if sum(map(len, report.scope)) <= NAMES_IN_LINE else ("--clusters-from", "FILE")
    return " ".join(("ipamc plan", *names, *(["--base", report.base] if report.base else [])))


def plain(text: str) -> str:
    """Return text without Markdown or HTML: all but harmless characters are character references.
    Forges also decode references and look for @names, #numbers and URLs, and would notify people and other
    requests. So a zero-width space follows each character that begins one.
    """
    return _escaped(_REFERENCE.sub(NO_WIDTH, visible(text)))


def code(text: str) -> str:
    """Return text in a fixed font, where forges link URLs, but not @names and #numbers."""
    return f"<code>{_escaped(visible(text).replace('://', f':{NO_WIDTH}//'))}</code>"


def _escaped(text: str) -> str:
    return _PLAIN.sub(lambda found: f"&#{ord(found.group())};", text)


class _Cutter(Struct):
    """Renders clusters with a limited number of rows per list, and counts the omitted rows."""

    limit: int
    alone: bool
    left_out: int = 0

    def cut(self, items: Sequence[str]) -> tuple[Sequence[str], int]:
        shown = items[: max(self.limit, LEAST_ROWS)]
        more = len(items) - len(shown)
        self.left_out += more
        return shown, more

    def some(self, items: Sequence[str]) -> str:
        shown, more = self.cut(items)
        return ", ".join(shown) + (f" and {more:,} more" if more else "")

    def cluster(self, cluster: ClusterReport) -> Iterator[str]:
        said = f"\n\n{cluster.status.value}: {plain(cluster.said)}" if cluster.said else ""
        if cluster.difference is None:
            yield f"#### ⛔ {code(cluster.name)}{said}"
        else:
            yield f"#### {code(cluster.name)}{'' if self.alone else f' · {headline((cluster,))}'}{said}"
            for section in sections(cluster.difference, cluster.name):
                yield from self.section(section)
        yield from self.findings(cluster.findings)

    def section(self, section: Section) -> Iterator[str]:
        about = f": {plain(section.about)}" if section.about else ""
        rows, more = section.rows[: self.limit], max(len(section.rows) - self.limit, 0)
        self.left_out += more
        cut = f"\n\n… and {more:,} more" if more else ""
        title = section.counted_title
        if section.open:
            yield f"**{title}**{about}\n\n{_table(section.head, rows)}{cut}"
        else:
            yield _folded(f"{title}{about}", f"{_block(rows, section.sign)}{cut}")

    def findings(self, findings: Sequence[Diagnostic]) -> Iterator[str]:
        errors = [_finding(finding) for finding in errors_of(findings)]
        shown = (finding for finding in findings if not finding.acknowledged)
        warnings = [_finding(finding) for finding in shown if finding.severity is Severity.WARNING]
        if errors:
            yield f"**{count(len(errors), 'error')}**\n\n{self.items(errors)}"
        if warnings:
            yield _folded(count(len(warnings), "warning"), self.items(warnings))
        yield from filter(None, [tally(finding for finding in findings if finding.acknowledged)])

    def notes(self, clusters: Sequence[ClusterReport]) -> Iterator[str]:
        if found := notes(clusters):
            items = [f"{note.code} {plain(note.message)} ({plain(names(about))})" for note, about in found]
            yield f"**{count(len(found), 'note')}**\n\n{self.items(items)}"

    def items(self, items: Sequence[str]) -> str:
        shown, more = self.cut(items)
        return "\n".join(f"- {item}" for item in (*shown, *([f"… and {more:,} more"] if more else [])))


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _finding(finding: Diagnostic) -> str:
    fix = f"<br>help: {plain(finding.help)}" if finding.help else ""
    return f"{finding.code} {code(where(finding.at))} {plain(finding.message)}{fix}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    cells = ([code(cell) if cell not in {"", ARROW} else cell for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *cells))


def _block(rows: Sequence[Sequence[str]], sign: str) -> str:
    """Return rows in a code fence that is longer than any run of backticks in them."""
    if not rows:
        return ""
    body = "\n".join(aligned(rows, sign))
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", body)), 3)
    return f"{fence}diff\n{body}\n{fence}"
