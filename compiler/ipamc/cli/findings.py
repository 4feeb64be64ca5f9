"""Where the findings of a run go: to stderr in one format, and to the files of `--report` in others.

A report is written once, when its verb ends, with everything that was found: also without findings, after a
refused compile, after an I/O or environment error, and after a bug of ipamc, which are failures in it. After
an interrupt none is written: a report without findings would say that all is well.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct, field
from msgspec.structs import replace

from ipamc.cli.bugs import problem_of, tell_bugs
from ipamc.cli.command import BUG, DONE, REFUSED
from ipamc.cli.terminal import colour, say
from ipamc.model.diagnostics import At, Diagnostic, Located, Refused, Span, located
from ipamc.workspace import disk
from ipamc.workspace.clusters import name_of
from ipamc.workspace.safe_read import refuse_way_out

if TYPE_CHECKING:
    from ipamc.report.findings.content import Checked, Failure, Rule

Function = TypeVar("Function", bound=Callable[..., Any])

_KEY = "ipamc.cli.findings"


class Reports(Struct):
    """The files that `--report` names, and what was found so far."""

    files: tuple[tuple[str, str], ...]
    """(format, path)."""
    findings: list[Located] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    checked: list[Checked] = field(default_factory=list)

    def write(self) -> None:
        """Write every report. Each file is replaced as a whole."""
        for name, path in self.files:
            disk.replace(path, _text(self.findings, name, self.failures, self.checked))


class Problems(Struct):
    """The findings and failures of several clusters, read one after the other.

    One does not stop the others.
    """

    findings: list[Located] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    bugs: list[tuple[str, str]] = field(default_factory=list)
    """(cluster, traceback) where ipamc itself failed; each is a failure, too."""

    def __bool__(self) -> bool:
        """Return whether some cluster did not answer."""
        return bool(self.findings or self.failures)

    def conclude(self, style: str, *, answered: bool = True) -> int:
        """Print the findings, the failures and the bugs; return the exit code."""
        print_findings(list(dict.fromkeys(self.findings)), style, self.failures)
        if tell_bugs(self.bugs, style):
            return BUG
        return DONE if answered and not self else REFUSED

    @contextmanager
    def of(self, folder: str) -> Iterator[None]:
        """Run the block for one cluster.

        A refusal, an I/O or environment error and a bug end the block and are kept.
        """
        from ipamc.report.findings.content import Failure, with_spans
        from ipamc.workspace.signals import ENDS

        try:
            yield
        except Refused as refused:
            self.findings += map(with_spans, refused.diagnostics)
        except ENDS:
            raise
        except BaseException as exception:  # noqa: BLE001 - a panic of a library in Rust is no Exception
            problem = problem_of(exception)
            failure = Failure(folder, problem.line)
            if failure not in self.failures:  # a verb may read a cluster twice
                self.failures.append(failure)
                self.bugs.append((name_of(folder), problem.trace))


def format_option(function: Function) -> Function:
    """Add --format for findings, as `style`, and --report. The verb must print its findings with `print_findings`."""
    from ipamc.report.findings import NAMES

    @functools.wraps(function)
    def reporting(*args: Any, report: tuple[tuple[str, str], ...], **kwargs: Any) -> Any:
        from ipamc.report.findings.content import Failure

        reports = click.get_current_context().meta[_KEY] = Reports(report)
        try:
            code = function(*args, **kwargs)
        except Exception as exception:
            reports.failures.append(Failure("", problem_of(exception).line))
            reports.write()
            raise
        reports.write()
        return code

    style = click.option(
        "--format",
        "style",
        type=click.Choice(NAMES),
        default=NAMES[0],
        show_default=True,
        help="Format of the findings on stderr.",
    )
    files = click.option(
        "--report",
        multiple=True,
        metavar="FORMAT=FILE",
        callback=lambda _, __, given: named_files(given, NAMES),
        help="Also write the findings to this file, in this format. Repeatable.",
    )
    return style(files(reporting))  # type: ignore[return-value]  # wraps keeps what click reads


def named_files(given: Sequence[str], formats: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Read the values FORMAT=FILE of an option. Raises BadParameter for what cannot be written."""
    pairs = []
    for text in given:
        name, equals, path = text.partition("=")
        if name not in formats or not (equals and path):
            raise click.BadParameter(f"{text!r} is not FORMAT=FILE; formats are {', '.join(formats)}")
        pairs.append((name, writable(path)))
    if len({disk.identity(path) for _, path in pairs}) < len(pairs):
        raise click.BadParameter("two reports name the same file")
    return tuple(pairs)


def writable(path: str) -> str:
    """Return the path of a file that an option names. Raises BadParameter for a folder, a pipe or a link.

    An option for which - is stdout asks for it before; for others it would be a file that nobody expects.
    """
    refuse_way_out(path)
    if path == "-":
        raise click.BadParameter("- is no file here; a file of that name is ./-")
    if not disk.is_replaceable(path):
        raise click.BadParameter(f"{path!r} is not a regular file: name another one")
    return path


def print_findings(
    findings: Sequence[Diagnostic],
    style: str,
    failures: Sequence[Failure] = (),
    checked: Sequence[Checked] = (),
) -> None:
    """Print findings to stderr, and for people how many there are; keep them for the reports.

    `checked` are the tests of which some findings are: for formats that list those that passed, too. Beside a document nothing else is printed.
    """
    from ipamc.report.findings import format_of
    from ipamc.report.terminal_text import tally

    context = click.get_current_context(silent=True)
    if context and _KEY in context.meta:
        context.meta[_KEY].findings.extend(findings)
        context.meta[_KEY].failures.extend(failures)
        context.meta[_KEY].checked.extend(checked)
    document = format_of(style).document
    if findings or failures or document:
        _print(_text(findings, style, failures, checked, colour=colour(sys.stderr)), style)
    if findings and style == "full":
        say("")
    if findings and not document:
        say(tally(findings))


def tell(style: str, *lines: str) -> None:
    """Print lines for people; none beside a document."""
    from ipamc.report.findings import format_of

    for line in lines if not format_of(style).document else ():
        say(line)


def _print(text: str, style: str) -> None:
    """Print findings to stderr. Only in the format `github` may a line be a command of a CI system."""
    from ipamc.report.terminal_text import harmless, harmless_json

    if style == "junit":
        text = text.replace("##", "#&#35;")
    elif style in {"json", "gitlab", "sarif"}:
        text = harmless_json(text)
    elif style != "github":
        text = harmless(text)
    click.echo(text, err=True, color=True, nl=False)


def _text(
    findings: Sequence[Diagnostic],
    name: str,
    failures: Sequence[Failure],
    checked: Sequence[Checked],
    *,
    colour: bool = False,
) -> str:
    from ipamc.report.findings import format_of, report
    from ipamc.report.findings.content import span_of

    chosen = format_of(name)
    if chosen.rooted:
        from ipamc.workspace.revision import Rooted

        rooted = Rooted()

        def span(at: At) -> Span:
            return replace(span_of(at), path=rooted.path(at.path))

        findings = [located(finding, span) for finding in findings]
        failures = [
            replace(failure, folder=failure.folder and rooted.path(failure.folder)) for failure in failures
        ]
        checked = [
            replace(test, at=span(test.at), findings=tuple([located(each, span) for each in test.findings]))
            for test in checked
        ]
    rules: dict[str, Rule] = {}
    if chosen.rules:
        from ipamc.catalogue import catalogue
        from ipamc.report.findings.content import Rule
        from ipamc.workspace.disk import assets

        rules = {code: Rule(entry.title, entry.text) for code, entry in catalogue(assets("rules")).items()}
    return report(findings, name, colour=colour, failures=failures, checked=checked, rules=rules)
