"""A plan for a terminal: every row of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence

from ipamc.model.diagnostics import names
from ipamc.report.plan.sections import Sign, headline, notes, quiet, sections
from ipamc.report.terminal_text import paint, visible, width
from ipamc.review.diff.plan_report import ClusterReport, PlanReport

WIDE = 140  # the most cells of a line; a longer one is wrapped
_INDENT = "    "
_UNITS = re.compile(
    r"\(?(?:ipamc|kubectl|helm|git|sudo|calicoctl|kustomize) (?:'[^']*'|[^';,]|[;,](?=\S))*[;,]?|\S+"
).findall


def render(report: PlanReport, *, colour: bool = False) -> str:
    """Return the whole plan: a paragraph for each changed cluster, a line for each other, and a sum."""
    parts = [_cluster(cluster, colour=colour) for cluster in report.clusters if not quiet(cluster)]
    if same := [visible(cluster.name) for cluster in report.clusters if quiet(cluster)]:
        parts.append(f"no changes: {', '.join(same)}\n")
    if found := notes(report.clusters):
        rows = [paint("notes", "strong", colour=colour)]
        rows += [f"  {note.code}: {visible(note.message)} ({names(map(visible, of))})" for note, of in found]
        parts.append("".join(f"{row}\n" for row in rows))
    if len(report.clusters) > 1:
        parts.append(f"{len(report.clusters):,} clusters: {headline(report.clusters)}\n")
    return "\n".join(parts)


def _cluster(cluster: ClusterReport, *, colour: bool) -> str:
    title = f"{visible(cluster.name)}: "
    if cluster.difference is None:
        return f"{paint(title + cluster.status, 'error', colour=colour)}: {visible(cluster.said)}\n"
    said = f"; {cluster.status}: {visible(cluster.said)}" if cluster.said else ""
    rows = [f"{paint(title, 'strong', colour=colour)}{headline((cluster,))}{said}"]
    for section in sections(cluster.difference):
        about = f" ({section.about})" if section.sign is Sign.CHANGED and section.about else ""
        style = "error" if section.sign is Sign.URGENT else "strong"
        rows.append(f"  {paint(f'{section.title}{about}', style, colour=colour)}")
        rows += [f"    {row}" for row in aligned(section.rows, section.sign, WIDE - 4)]
    return "".join(f"{row}\n" for row in rows)


def aligned(rows: Sequence[Sequence[str]], sign: str, limit: int = sys.maxsize) -> Iterator[str]:
    """Yield a line for each row: its sign, then its cells in columns, without control sequences.
    A row that is wider than the limit, in cells, is wrapped instead, and ignored for the columns' widths.
    """
    cells = [tuple(map(visible, row)) for row in rows]
    narrow = [row for row in cells if 2 + len(row) + sum(map(width, row)) <= limit]
    widths = [max(map(width, column)) for column in zip(*narrow, strict=True)] or [0] * len(cells[0])
    for row in cells:
        padded = " ".join(cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True))
        line = f"{sign} {padded}".rstrip()
        yield from [line] if width(line) <= limit else _folded(f"{sign} {' '.join(filter(None, row))}", limit)


def _folded(text: str, limit: int) -> Iterator[str]:
    """Yield the lines of a text wrapped between words; a command stays in one piece for pasting."""
    line = ""
    for unit in _UNITS(text):
        if line and width(line) + 1 + width(unit) > limit:
            yield line
            line = f"{_INDENT}{unit}"
        else:
            line = f"{line} {unit}" if line else unit
    yield line
