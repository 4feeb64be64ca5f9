"""Findings as data: the problem, its place, related places, and a fix.

A stage reports all its findings, then the compile stops: `Log.add` records them and raises `Refused` if one
of them is an error. A *rule* is a function that yields or returns `Diagnostic`s and whose docstring starts
with its code (`IPC0207: …`): `ipamc explain` prints it.
"""

from __future__ import annotations

import contextlib
import enum
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from ipamc.model.limits import MOST_FINDINGS

T = TypeVar("T")


class Severity(enum.IntEnum):
    """How severe a finding is; only errors stop a compile. The smallest value is the most severe."""

    ERROR = 0
    WARNING = 1
    NOTE = 2

    @property
    def word(self) -> str:
        """The word in messages: error, warning or note."""
        return self.name.lower()


class Place(Struct, frozen=True, gc=False):
    """The place of a value, by its path in a document; `read.locate` makes it a `Span` for a finding."""

    path: str
    """The file, as the user would type it."""
    document: int = 0
    """Index of the document in a YAML stream, from 0."""
    keys: tuple[str | int, ...] = ()
    """Keys and indices from the document's root; a `List`'s items count as `("items", n)`."""
    key: bool = False
    """The place is the last key itself, not its value."""
    offset: int = 0
    """Offset in characters, from 0, inside the scalar: the position of a syntax error in a selector."""

    def __truediv__(self, key: str | int) -> Place:
        """Return the place of a member: `pool.at / "spec" / "cidr"`."""
        return Place(self.path, self.document, (*self.keys, key))


class Span(Struct, frozen=True):
    """Lines and columns from 1, in characters. Line 0 is the whole file, if a finding has no line."""

    path: str
    line: int = 0
    column: int = 0
    end_column: int = 0
    """One past the last character on `line`; equal to `column` if only a point is known."""
    source: str = ""
    """The text of `line`, for the caret display."""

    def __truediv__(self, key: str | int) -> Span:
        """Return itself as the place of a member: members of a span are not located."""
        return self


At = Place | Span


class Related(Struct, frozen=True):
    """Another place that a finding concerns."""

    at: At
    label: str


class Diagnostic(Struct, frozen=True, kw_only=True):
    """One finding. Messages are in lower case, name the value before the rule, and have no full stop."""

    severity: Severity
    code: str
    at: At
    message: str
    also: tuple[Related, ...] = ()
    help: str = ""
    nodes: tuple[str, ...] = ()
    """All the nodes that it is about, if its rule gives them as data."""
    acknowledged: str = ""
    """The reason for which the cluster acknowledges it; "" if it does not."""

    def about(self, nodes: Iterable[str]) -> Diagnostic:
        """Return it with all the nodes that it is about."""
        return replace(self, nodes=tuple(sorted(set(nodes))))


class RelatedSpan(Related, frozen=True):
    """A related place, by line and column."""

    at: Span


class Located(Diagnostic, frozen=True, kw_only=True):
    """A finding whose places are lines and columns, ready to print. `read.locate` creates it."""

    at: Span
    also: tuple[RelatedSpan, ...] = ()

    @property
    def order(self) -> tuple[str, int, int, int, str, str]:
        """The key by which findings are sorted: their place first."""
        return self.at.path, self.at.line, self.at.column, self.severity, self.code, self.message


def error(code: str, at: At, message: str, *, also: Iterable[Related] = (), help: str = "") -> Diagnostic:  # noqa: A002 - the word that users see
    """Return a finding that stops the compile."""
    return Diagnostic(severity=Severity.ERROR, code=code, at=at, message=message, also=tuple(also), help=help)


def warning(code: str, at: At, message: str, *, also: Iterable[Related] = (), help: str = "") -> Diagnostic:  # noqa: A002 - as above
    """Return a finding that never drops output."""
    return Diagnostic(
        severity=Severity.WARNING, code=code, at=at, message=message, also=tuple(also), help=help
    )


def note(code: str, at: At, message: str, *, also: Iterable[Related] = (), help: str = "") -> Diagnostic:  # noqa: A002 - as above
    """Return a finding that is for information only."""
    return Diagnostic(severity=Severity.NOTE, code=code, at=at, message=message, also=tuple(also), help=help)


def located(finding: Diagnostic, span: Callable[[At], Span]) -> Located:
    """Return the finding with each of its places converted by `span`."""
    return Located(
        severity=finding.severity,
        code=finding.code,
        at=span(finding.at),
        message=finding.message,
        also=tuple(RelatedSpan(span(related.at), related.label) for related in finding.also),
        help=finding.help,
        acknowledged=finding.acknowledged,
    )


class Refused(Exception):  # noqa: N818 - a verdict on the input, not a failure of ipamc
    """The input was refused; `diagnostics` are all findings so far, with warnings."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(f"{len(diagnostics)} findings")
        self.diagnostics = diagnostics


def unlisted(last: Diagnostic, more: int = 0) -> Diagnostic:
    """IPC0013: one run lists at most 10,000 errors of a cluster, and 10,000 other findings of one code."""
    fix = "correct the first ones and run again: most findings usually have one cause"
    if last.severity is Severity.ERROR:
        message = f"stopped at error {MOST_FINDINGS:,}: the rest was not checked"
        return error("IPC0013", last.at, message, help=fix)
    return note("IPC0013", last.at, f"{count(more, 'more finding')} of {last.code} not listed", help=fix)


class Enough(Exception):  # noqa: N818 - the end of a stage, not a failure of ipamc
    """A stage has found MOST_FINDINGS errors."""


class Findings:
    """The findings of a stage, in order, at most MOST_FINDINGS: hostile input could cause any number."""

    def __init__(self) -> None:
        self._kept: list[Diagnostic] = []
        self._numbers: Counter[str] = Counter()
        self._cut: dict[str, Diagnostic] = {}
        self._errors = 0

    def append(self, finding: Diagnostic) -> None:
        """Add a finding. Raises Enough with the last error: the stage ends here."""
        if finding.severity is Severity.ERROR:
            self._kept.append(finding)
            self._errors += 1
            if self._errors == MOST_FINDINGS:
                self._kept.append(unlisted(finding))
                raise Enough
            return
        self._numbers[finding.code] += 1
        if self._numbers[finding.code] <= MOST_FINDINGS:
            self._kept.append(finding)
        else:
            self._cut.setdefault(finding.code, finding)

    def extend(self, findings: Iterable[Diagnostic]) -> None:
        """Add findings one by one. Raises Enough, and then reads no more of them."""
        for finding in findings:
            self.append(finding)

    @property
    def failed(self) -> bool:
        """Return whether one of the findings is an error."""
        return self._errors > 0

    def __iter__(self) -> Iterator[Diagnostic]:
        """Yield the findings, then, for each code that was cut, the number of the others."""
        yield from self._kept
        for code, finding in self._cut.items():
            yield unlisted(finding, self._numbers[code] - MOST_FINDINGS)


class Log(Struct):
    """Collects the findings of all stages; an error ends the compile after its stage."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    acknowledge: Callable[[Iterable[Diagnostic]], list[Diagnostic]] = list
    """Marks those that the cluster acknowledges, as soon as it is known."""

    def add(self, found: Iterable[Diagnostic]) -> None:
        """Record the findings of a stage, at most MOST_FINDINGS; raise `Refused` if one is an error."""
        new = Findings()
        with contextlib.suppress(Enough):
            new.extend(found)
        self.diagnostics.extend(new)
        if new.failed:
            raise Refused(tuple(self.diagnostics))

    def keep(self, result: tuple[T, Iterable[Diagnostic]]) -> T:
        """Add the findings of a stage that also returns a value, and return the value."""
        value, found = result
        self.add(found)
        return value


def names(items: Iterable[str], limit: int = 5) -> str:
    """Return names for a message, sorted, with the number of omitted ones: `a, b, c and 4 more`."""
    every = sorted(set(items))
    if len(every) <= limit:
        return ", ".join(every)
    return f"{', '.join(every[:limit])} and {len(every) - limit:,} more"


def several(items: Collection[str], noun: str, what: str = "", *, number: int | None = None) -> str:
    """Return a group as `3 nodes without a uid: a, b, c`. `number`: the size, if items share one."""
    size = count(len(items) if number is None else number, noun)
    return f"{size}{what and ' '}{what}: {names(items)}"


def and_others(nodes: Collection[str]) -> str:
    """Return the end of a message about the first of a group: `; 3 nodes: a, b, c`; "" for a group of one."""
    return f"; {len(nodes):,} nodes: {names(nodes)}" if len(nodes) > 1 else ""


def errors_of(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the findings that stop a compile."""
    return [finding for finding in findings if finding.severity is Severity.ERROR]


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 node`, `4,987 nodes`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
