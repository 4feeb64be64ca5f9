"""The format for people at a terminal: the message, the line with a caret, related places, the help."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.diagnostics import Located
from ipamc.report.findings.content import Content
from ipamc.report.terminal_text import excerpt, paint, visible, where


def render(content: Content) -> str:
    """Return a paragraph per finding, and a line per code with omitted findings and per failure."""
    paragraphs = ["\n".join(_paragraph(each, colour=content.colour)) + "\n" for each in content.findings]
    paragraphs += [f"... and {number:,} more {code}\n" for code, number in content.more.items()]
    paragraphs += [f"error: {visible(failure.line)}\n" for failure in content.failures]
    return "\n".join(paragraphs)


def _paragraph(finding: Located, *, colour: bool) -> Iterator[str]:
    def frame(text: str) -> str:
        return paint(text, "frame", colour=colour)

    at, word = finding.at, finding.severity.word
    gutter = " " * len(str(at.line))
    head = paint(f"{word}[{finding.code}]", word, colour=colour)
    yield head + paint(f": {visible(finding.message)}", "strong", colour=colour)
    yield f"{gutter}{frame('-->')} {where(at)}"
    if at.line and at.source.strip():
        cut = excerpt(at)
        yield frame(f"{gutter} |")
        yield f"{frame(f'{at.line} |')} {cut.text}".rstrip()
        if at.column:
            yield f"{frame(f'{gutter} |')} {' ' * cut.indent}{paint('^' * cut.carets, word, colour=colour)}"
    for related in finding.also:
        yield f"{gutter}{frame(':::')} {where(related.at)}: {visible(related.label)}"
    if finding.help:
        first, *rest = finding.help.split("\n")
        yield f"{gutter}{frame('=')} help: {visible(first)}"
        yield from (f"{gutter}        {visible(row)}" for row in rest)
    yield f"{gutter}{frame('=')} docs: ipamc explain {finding.code}"
