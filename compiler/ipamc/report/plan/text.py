"""A plan for a terminal: every row of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipamc.model.diagnostics import names
from ipamc.report.plan.sections import Section, Sign, headline, notes, quiet, sections
from ipamc.report.terminal_text import paint, visible, width
from ipamc.review.diff.plan_report import ClusterReport, PlanReport


def render(report: PlanReport, *, colour: bool = False) -> str:
    """Return the whole plan: a paragraph a cluster with changes, a line for the others, a sum."""
    parts = [_cluster(cluster, colour=colour) for cluster in report.clusters if not quiet(cluster)]
    if same := [visible(cluster.name) for cluster in report.clusters if quiet(cluster)]:
        parts.append(f"no changes: {', '.join(same)}\n")
    if found := notes(report.clusters):
        rows = (
            f"  {note.code}: {visible(note.message)} ({names(map(visible, clusters))})\n"
            for note, clusters in found
        )
        parts.append(f"{paint('notes', 'strong', colour=colour)}\n{''.join(rows)}")
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
        rows += _section(section, colour=colour)
    return "".join(f"{row}\n" for row in rows)


def _section(section: Section, *, colour: bool) -> Iterator[str]:
    about = f" ({section.about})" if section.sign is Sign.CHANGED and section.about else ""
    title = f"{section.title}{about}"
    yield f"  {paint(title, 'error' if section.sign is Sign.URGENT else 'strong', colour=colour)}"
    yield from (f"    {row}" for row in aligned(section.rows, section.sign))


def aligned(rows: Sequence[Sequence[str]], sign: str) -> Iterator[str]:
    """Yield a line a row: its sign, then its cells in columns. Nothing in a line acts on a terminal."""
    cells = [tuple(map(visible, row)) for row in rows]
    widths = [max(width(row[column]) for row in cells) for column in range(len(cells[0]))] if cells else []
    for row in cells:
        line = " ".join(cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True))
        yield f"{sign} {line}".rstrip()
