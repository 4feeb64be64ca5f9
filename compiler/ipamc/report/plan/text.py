"""A plan for a terminal: every row of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipamc.model.diagnostics import names
from ipamc.report.plan.sections import Section, headline, notes, quiet, sections
from ipamc.report.terminal_text import paint, visible, width
from ipamc.review.diff.document import Document, Planned


def render(document: Document, *, colour: bool = False) -> str:
    """Give the whole plan: a paragraph a cluster with changes, one line for all the others, and a sum where there are several."""
    parts = [_cluster(each, colour=colour) for each in document.clusters if not quiet(each)]
    if same := [visible(each.name) for each in document.clusters if quiet(each)]:
        parts.append(f"no changes: {', '.join(same)}\n")
    if found := notes(document.clusters):
        rows = (
            f"  {note.code}: {visible(note.message)} ({names(map(visible, clusters))})\n"
            for note, clusters in found
        )
        parts.append(f"{paint('notes', 'strong', colour=colour)}\n{''.join(rows)}")
    if len(document.clusters) > 1:
        parts.append(f"{len(document.clusters):,} clusters: {headline(document.clusters)}\n")
    return "\n".join(parts)


def _cluster(planned: Planned, *, colour: bool) -> str:
    title = f"{visible(planned.name)}: "
    if planned.difference is None:
        return f"{paint(title + planned.status, 'error', colour=colour)}: {visible(planned.said)}\n"
    said = f"; {planned.status}: {visible(planned.said)}" if planned.said else ""
    rows = [f"{paint(title, 'strong', colour=colour)}{headline((planned,))}{said}"]
    for section in sections(planned.difference):
        rows += _section(section, colour=colour)
    return "".join(f"{row}\n" for row in rows)


def _section(section: Section, *, colour: bool) -> Iterator[str]:
    title = (
        section.title if section.sign in "!+- " or not section.about else f"{section.title} ({section.about})"
    )
    yield f"  {paint(title, 'error' if section.loud else 'strong', colour=colour)}"
    yield from (f"    {row}" for row in aligned(section.rows, section.sign))


def aligned(rows: Sequence[Sequence[str]], sign: str) -> Iterator[str]:
    """Give rows as lines with their cells under each other, each after its sign. Nothing in a line acts on a terminal."""
    cells = [tuple(map(visible, row)) for row in rows]
    widths = [max(width(row[column]) for row in cells) for column in range(len(cells[0]))] if cells else []
    for row in cells:
        line = " ".join(cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True))
        yield f"{sign} {line}".rstrip()
