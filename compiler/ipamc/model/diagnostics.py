"""Findings as data: what is wrong, where, what else it concerns, and a way out.

A stage reports everything it can see, then the compile stops: `Log.add` records and raises `Refused` if anything it received is an error.
A *rule* is a function that yields or returns `Diagnostic`s and whose docstring starts with its code (`IPC0207: …`): that docstring is what
`ipamc explain` prints.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


class Severity(enum.IntEnum):
    """How much a finding weighs; only errors stop a compile. The smaller, the worse."""

    ERROR = 0
    WARNING = 1
    NOTE = 2

    @property
    def word(self) -> str:
        """The word that users see: error, warning or note."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands, by its path inside a document. Cheap to make; `read.locate` turns it into a `Span` when a reader needs one."""

    path: str
    """The file, as the user would type it."""
    document: int = 0
    """Index of the document in a YAML stream, from 0."""
    keys: tuple[str | int, ...] = ()
    """Keys and indices from the document's root; a `List`'s items count as `("items", n)`."""
    key: bool = False
    """Point at the last key itself instead of its value."""
    offset: int = 0
    """Characters into the scalar, from 0: where a selector went wrong."""

    def __truediv__(self, key: str | int) -> Place:
        """Give the place of a member: `pool.at / "spec" / "cidr"`."""
        return Place(self.path, self.document, (*self.keys, key))


@dataclass(frozen=True, slots=True)
class Span:
    """Lines and columns from 1, in characters. `line` 0 is the file as a whole: said by choice, never by omission."""

    path: str
    line: int = 0
    column: int = 0
    end_column: int = 0
    """One past the last character on `line`; equal to `column` where only a point is known."""
    source: str = ""
    """The text of `line`, for the caret display."""


At = Place | Span


@dataclass(frozen=True, slots=True)
class Related:
    """The other end of a conflict."""

    at: At
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding. Messages are lower case, say the value before the rule, and end without a full stop."""

    severity: Severity
    code: str
    at: At
    message: str
    also: tuple[Related, ...] = ()
    help: str = ""


@dataclass(frozen=True, slots=True)
class RelatedSpan(Related):
    """The other end of a conflict, by line and column."""

    at: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Located(Diagnostic):
    """A finding whose places are lines and columns: this is what is printed. `read.locate` makes it."""

    at: Span
    also: tuple[RelatedSpan, ...] = ()


def error(code: str, at: At, message: str, *, also: Iterable[Related] = (), help: str = "") -> Diagnostic:  # noqa: A002 - the word that users see
    """Make a finding that stops the compile."""
    return Diagnostic(severity=Severity.ERROR, code=code, at=at, message=message, also=tuple(also), help=help)


def warning(code: str, at: At, message: str, *, also: Iterable[Related] = (), help: str = "") -> Diagnostic:  # noqa: A002 - as above
    """Make a finding that never drops output."""
    return Diagnostic(
        severity=Severity.WARNING, code=code, at=at, message=message, also=tuple(also), help=help
    )


def note(code: str, at: At, message: str, *, also: Iterable[Related] = (), help: str = "") -> Diagnostic:  # noqa: A002 - as above
    """Make a finding that only tells."""
    return Diagnostic(severity=Severity.NOTE, code=code, at=at, message=message, also=tuple(also), help=help)


def located(finding: Diagnostic, span: Callable[[At], Span]) -> Located:
    """Return the finding with what `span` makes of each of its places."""
    return Located(
        severity=finding.severity,
        code=finding.code,
        at=span(finding.at),
        message=finding.message,
        also=tuple(RelatedSpan(span(related.at), related.label) for related in finding.also),
        help=finding.help,
    )


class Refused(Exception):  # noqa: N818 - a verdict, not a failure of ours
    """The input was refused; `diagnostics` holds every finding so far, warnings included."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(f"{len(diagnostics)} findings")
        self.diagnostics = diagnostics


@dataclass(slots=True)
class Log:
    """The whole error protocol: stages hand over their findings, and an error ends the compile after its stage."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def add(self, found: Iterable[Diagnostic]) -> None:
        """Record findings of one stage; raise `Refused` with all so far if one of them is an error."""
        new = list(found)
        self.diagnostics.extend(new)
        if any(each.severity is Severity.ERROR for each in new):
            raise Refused(tuple(self.diagnostics))

    def keep(self, result: tuple[T, Iterable[Diagnostic]]) -> T:
        """Do `add` for a stage that returns its value beside its findings, and give the value."""
        value, found = result
        self.add(found)
        return value


def names(items: Iterable[str], limit: int = 5) -> str:
    """List names for a message, in order, honestly cut: `a, b, c and 4 more`."""
    every = sorted(set(items))
    if len(every) <= limit:
        return ", ".join(every)
    return f"{', '.join(every[:limit])} and {len(every) - limit:,} more"


def count(number: int, noun: str, plural: str = "") -> str:
    """Say how many: `1 node`, `4,987 nodes`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
