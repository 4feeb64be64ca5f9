"""The input of all formats, and the texts that several formats share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from msgspec import Struct, field

from ipamc.model.diagnostics import At, Diagnostic, Located, Span, located
from ipamc.report.terminal_text import visible, where


class RuleText(Struct, frozen=True):
    """The catalogue's text for a code: one sentence, and why it matters."""

    title: str
    body: str


class Failure(Struct, frozen=True):
    """An I/O or environment error, or a bug of ipamc. Every report has it, so that none seems clean."""

    folder: str  # the cluster's folder; "" without a cluster
    text: str

    @property
    def line(self) -> str:
        """Return the text; if it does not name the cluster, with the folder before it."""
        named = self.folder in self.text or self.text.startswith(f"{PurePosixPath(self.folder).name}: ")
        return self.text if named else f"{self.folder}: {self.text}"


class Checked(Struct, frozen=True, kw_only=True):
    """A test of a cluster's address plan, and its result."""

    cluster: str
    name: str
    because: str
    status: str  # passed, failed, warned or skipped
    subjects: str  # the objects that it tested: `3 nodes`
    at: Span
    findings: tuple[Located, ...] = ()


class Content(Struct, frozen=True, kw_only=True):
    """The contents of a report."""

    findings: tuple[Located, ...] = ()  # in order of path, line and column
    more: Mapping[str, int] = field(default_factory=dict)
    """The number of omitted findings of each code, by code in order."""
    failures: tuple[Failure, ...] = ()
    checked: tuple[Checked, ...] = ()  # tests of `ipamc test`; their findings are in `findings`, too
    rules: Mapping[str, RuleText] = field(default_factory=dict)  # by code; empty unless the format needs them
    colour: bool = False


_NUMBER = re.compile(r"(?<![\w.:/-])\d[\d,]*(?![\w.:/-])")
"""Matches a count, but not a part of a name, an address or a day."""


def fingerprints(findings: Iterable[Located]) -> Iterator[str]:
    """Yield a unique text for each finding, in order of place.
    It does not change with the lines above the finding. It is made of rule, file and message without the
    counts in it: `4 of 64 blocks are free` is the same finding tomorrow.
    """
    import hashlib  # noqa: PLC0415 - 4 ms that other formats need not spend

    seen: Counter[str] = Counter()
    for finding in findings:
        text = "\0".join((finding.code, finding.at.path, _NUMBER.sub("#", finding.message)))
        seen[text] += 1
        yield hashlib.sha256(f"{text}\0{seen[text]}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def span_of(at: At) -> Span:
    """Return a place as a span: the file as a whole if its line is not known."""
    return at if isinstance(at, Span) else Span(at.path)


def with_spans(finding: Diagnostic) -> Located:
    """Return a finding ready to print; one without a location refers to its whole file."""
    return finding if isinstance(finding, Located) else located(finding, span_of)


def lines(finding: Located) -> list[str]:
    """Return a finding without its place, as printable texts: message, related places, help."""
    related = (f"{where(related.at)}: {visible(related.label)}" for related in finding.also)
    texts = [visible(finding.message), *related]
    if finding.help:
        texts.append("help: " + "\n".join(map(visible, finding.help.split("\n"))))
    return texts
