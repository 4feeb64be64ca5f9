"""Located findings as text: the formats, what they may say, and those that are lines.

Changes no finding, and writes to no file. A format renders findings in the order given: `report` decides on
the order, and on the number of findings of one code. The formats that are one document are in
`finding_documents`, which is imported when one of them is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import PurePosixPath

from msgspec import Struct, field

from ipamc.model.diagnostics import At, Diagnostic, Located, Severity, Span, count, located
from ipamc.model.limits import FINDINGS_SHOWN, GITHUB_ANNOTATIONS
from ipamc.report.terminal_text import excerpt, paint, visible, where


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


class Format(Struct, frozen=True):
    """A way to print findings."""

    document: bool = True
    """The text is one document: it is printed without findings, too, and nothing else is printed."""
    rooted: bool = False  # paths are relative to the repository's root; False: as the user would type them
    rules: bool = False  # it contains the catalogue's entries
    acknowledged: bool = False  # it has what is acknowledged, marked; others leave it out


FORMATS = {
    "full": Format(document=False),
    "concise": Format(document=False),
    "json": Format(),
    "github": Format(document=False, rooted=True),
    "gitlab": Format(rooted=True),
    "sarif": Format(rooted=True, rules=True, acknowledged=True),
    "junit": Format(rooted=True, acknowledged=True),
}
NAMES = tuple(FORMATS)


def report(
    findings: Iterable[Diagnostic],
    name: str,
    *,
    colour: bool = False,
    failures: Iterable[Failure] = (),
    checked: Iterable[Checked] = (),
    rules: Mapping[str, RuleText] | None = None,
) -> str:
    """Render findings in a format, in order of file, line and column.
    For people, only FINDINGS_SHOWN findings of a code and the number of the others. A finding without
    a location refers to its whole file. `checked` are the tests; their findings are among `findings`.
    """
    document = FORMATS[name].document
    chosen = (each for each in findings if FORMATS[name].acknowledged or not each.acknowledged)
    in_order = sorted(map(with_spans, chosen), key=attrgetter("order"))
    shown, more = first_of_each(in_order, len(in_order) if document else FINDINGS_SHOWN)
    content = Content(
        findings=tuple(shown),
        more=more,
        failures=tuple(failures),
        checked=tuple(checked),
        rules=rules or {},
        colour=colour,
    )
    if not document:
        return LINES[name](content)
    from ipamc.report.finding_documents import DOCUMENTS  # noqa: PLC0415 - most runs need none

    return DOCUMENTS[name](content)


def first_of_each(findings: Iterable[Located], most: int) -> tuple[list[Located], dict[str, int]]:
    """Keep the first findings of each code, at most `most`; count the others, by code in order."""
    seen, shown = Counter[str](), []
    for finding in findings:
        seen[finding.code] += 1
        if seen[finding.code] <= most:
            shown.append(finding)
    return shown, {code: number - most for code, number in sorted(seen.items()) if number > most}


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


def full(content: Content) -> str:
    """For people at a terminal: a paragraph for each finding, with its line and a caret, places and help."""
    paragraphs = ["\n".join(_paragraph(each, colour=content.colour)) + "\n" for each in content.findings]
    return "\n".join([*paragraphs, *_below(content)])


def _below(content: Content) -> Iterator[str]:
    """Yield a line for each code with omitted findings, and for each failure."""
    yield from (f"... and {number:,} more {code}\n" for code, number in content.more.items())
    yield from (f"error: {visible(failure.line)}\n" for failure in content.failures)


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
        yield f"{frame(f'{at.line} |')} {cut.text}".rstrip()
        if at.column:
            yield f"{frame(f'{gutter} |')} {' ' * cut.indent}{paint('^' * cut.carets, word, colour=colour)}"
    for related in finding.also:
        yield f"{gutter}{frame(':::')} {where(related.at)}: {visible(related.label)}"
    if finding.help:
        first, *rest = finding.help.split("\n")
        yield f"{gutter}{frame('=')} help: {visible(first)}"
        yield from (f"{gutter}        {visible(row)}" for row in rest)


def concise(content: Content) -> str:
    """For editors and for grep: a line `file:line:col: error[CODE] message` for each finding."""
    lines = []
    for finding in content.findings:
        word = finding.severity.word
        head = paint(f"{word}[{finding.code}]", word, colour=content.colour)
        lines.append(f"{where(finding.at)}: {head} {visible(finding.message)}\n")
    return "".join([*lines, *_below(content)])


_WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def github(content: Content) -> str:
    """GitHub's workflow commands, which annotate lines: errors, then warnings and notes; "" without any.
    GitHub keeps 10 errors, 10 warnings and 10 notices of a step (50 of a job) and drops the others silently;
    the log has all of them. So the tenth annotation of a kind says how many more there are, and the others
    follow for the log.
    """
    kinds: dict[Severity, list[str]] = {severity: [] for severity in Severity}
    kinds[Severity.ERROR] += [command("error", failure.line, title="ipamc") for failure in content.failures]
    for finding in content.findings:
        at = finding.at
        place: dict[str, str | int] = {"file": visible(at.path)} | ({"line": at.line} if at.line else {})
        if at.line and at.column:
            place |= {"endLine": at.line, "col": at.column, "endColumn": max(at.end_column, at.column)}
        word, text = _WORDS[finding.severity], "\n".join(lines(finding))
        kinds[finding.severity].append(command(word, text, **place, title=f"ipamc {finding.code}"))
    rows: list[str] = []
    for kind, commands in kinds.items():
        if (more := len(commands) - GITHUB_ANNOTATIONS + 1) > 1:
            word = _WORDS[kind]
            text = f"and {more:,} more {word}s, without an annotation on GitHub: see the log"
            commands.insert(GITHUB_ANNOTATIONS - 1, command(word, text, title="ipamc"))
        rows += commands
    if left_out := sum(content.more.values()):
        codes = ", ".join(f"{number:,} {code}" for code, number in content.more.items())
        rows.append(f"and {left_out:,} more that are not in this log: {codes}\n")
    return "".join(rows)


def command(word: str, data: str, **properties: str | int) -> str:
    """Return one command on one line, escaped so that the runner reads the same words."""
    listed = ",".join(f"{name}={str(value).translate(_PROPERTY)}" for name, value in properties.items())
    return f"::{word} {listed}::{data.translate(_DATA)}\n"


_STYLES = {"passed": "dim", "failed": "error", "warned": "warning", "skipped": "note"}


def tests_text(cluster: str, checked: Sequence[Checked], *, colour: bool) -> str:
    """Return a line with the cluster and the number of passed tests, then a line for each test in order."""
    if not checked:
        way_out = "write a document of kind Tests beside the Cluster (ipamc schema Tests)"
        return f"{visible(cluster)}: no tests: {way_out}\n"
    of_status = Counter(test.status for test in checked)
    numbers = [f"{of_status[status]:,} {status}" for status in _STYLES if of_status[status]]
    lines = [f"{visible(cluster)}: {count(len(checked), 'test')}, {', '.join(numbers)}"]
    for test in checked:
        status = paint(f"{test.status:<7}", _STYLES[test.status], colour=colour)
        about = "applies to no node here" if test.status == "skipped" else test.subjects
        lines.append(f"  {status}  {visible(test.name)} ({about})")
    return "\n".join(lines) + "\n"


LINES = {"full": full, "concise": concise, "github": github}
"""The formats that are lines, by name."""
