"""What a format is given: findings in order, what there is beside them, and the words that several formats share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ipamc.model.diagnostics import At, Diagnostic, Span
from ipamc.report.terminal_text import visible, where


class Rule(NamedTuple):
    """What the catalogue says of a code: one sentence, and why it matters."""

    title: str
    body: str


class Failure(NamedTuple):
    """The surroundings failed: a report that does not say so would pass for a clean one."""

    folder: str
    """The cluster's folder; "" where it was before any cluster."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Everything that a report may say."""

    findings: tuple[Diagnostic, ...] = ()
    """In order of path, line and column."""
    more: Mapping[str, int] = field(default_factory=dict)
    """How many more there are, by code in order."""
    failures: tuple[Failure, ...] = ()
    rules: Mapping[str, Rule] = field(default_factory=dict)
    """By code. Only for formats that ask for them."""
    colour: bool = False


_NUMBER = re.compile(r"(?<![\w.:/-])\d[\d,]*(?![\w.:/-])")
"""A count: no part of a name, an address or a day."""


def fingerprints(findings: Iterable[Diagnostic]) -> Iterator[str]:
    """Give each finding, in order of place, a text that no other one has and that stays when lines above it come and go.

    It is made of rule, file and message, the counts in it aside: `4 of 64 blocks are free` is tomorrow's finding too.
    """
    import hashlib  # noqa: PLC0415 - 4 ms, which nobody else has to wait for

    seen: Counter[str] = Counter()
    for each in findings:
        text = "\0".join((each.code, span_of(each.at).path, _NUMBER.sub("#", each.message)))
        seen[text] += 1
        yield hashlib.sha256(f"{text}\0{seen[text]}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def span_of(at: At) -> Span:
    """Give a place as a span, the file as a whole where no line is known."""
    return at if isinstance(at, Span) else Span(at.path)


def lines(finding: Diagnostic) -> list[str]:
    """Say all of a finding but where it is, in lines that print."""
    told = [visible(finding.message), *(f"{where(each.at)}: {visible(each.label)}" for each in finding.also)]
    if finding.help:
        told.append("help: " + "\n".join(map(visible, finding.help.split("\n"))))
    return told
