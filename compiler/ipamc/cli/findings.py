"""Where the findings, failures and bugs of a run go: to stderr in one format, and to the files of `--report`.

A report is written once, when its verb ends, with everything that was found: also without findings, after a
refused compile, after an I/O or environment error, and after a bug of ipamc, which are failures in it. After
an interrupt none is written: a report without findings would say that all is well.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import click
from msgspec import Struct, field
from msgspec.structs import replace

from ipamc import __version__
from ipamc.cli.command import BUG, DONE, REFUSED
from ipamc.cli.options import Function
from ipamc.cli.terminal import colour, say, show
from ipamc.model.diagnostics import At, Diagnostic, Located, Refused, Span, located, names
from ipamc.report.findings import FORMATS, NAMES, Checked, Failure, RuleText, report, span_of, with_spans
from ipamc.report.terminal_text import harmless, harmless_json, tally, visible
from ipamc.workspace import disk
from ipamc.workspace.clusters import name_of
from ipamc.workspace.failure import one_line
from ipamc.workspace.safe_read import refuse_way_out
from ipamc.workspace.signals import ENDS

_KEY = "ipamc.cli.findings"


class Problem(Struct, frozen=True, kw_only=True):
    """An exception as text, which can be passed between processes and kept after the cluster is done."""

    line: str
    trace: str = ""  # the traceback of a bug of ipamc; "" where the environment failed


def problem_of(exception: BaseException) -> Problem:
    """Return the text of an exception that is not a refusal."""
    usage = isinstance(exception, click.ClickException)
    if text := visible(str(exception)) if usage else one_line(exception):
        return Problem(line=text)
    import traceback

    what = traceback.format_exception_only(exception)[-1].strip()
    frames = traceback.extract_tb(exception.__traceback__)
    where = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
    return Problem(
        line=visible(f"a bug in ipamc: {what}{where}; please report it"),
        trace="".join(traceback.format_exception(exception)),
    )


def tell_bugs(bugs: Iterable[tuple[str, str]], style: str = "full") -> bool:
    """Print each traceback once, unless the format is a document; return whether there is one.
    `bugs` are (cluster or "", traceback or "").
    """
    clusters: dict[str, set[str]] = {}
    for cluster, trace in bugs:
        if trace:
            clusters.setdefault(trace, set()).add(cluster)
    for trace, some in clusters.items() if not FORMATS[style].document else ():
        on = f" on {visible(names(some))}" if any(some) else ""
        failed = f"ipamc {__version__} failed{on}: this is a bug in ipamc, not in your input."
        show(f"{trace}\n{failed} Please report this with the lines above.\n", err=True)
    return bool(clusters)


class Reports(Struct):
    """The files that `--report` names, and the findings and failures so far."""

    files: tuple[tuple[str, str], ...]  # (format, path)
    findings: list[Located] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    checked: list[Checked] = field(default_factory=list)

    def write(self) -> None:
        """Write every report. Each file is replaced as a whole."""
        for name, path in self.files:
            disk.replace(path, _text(self.findings, name, self.failures, self.checked))


class Problems(Struct):
    """The findings and failures of several clusters. A failing cluster does not stop the next one."""

    findings: list[Located] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    bugs: list[tuple[str, str]] = field(default_factory=list)
    """(cluster, traceback) where ipamc itself failed; each is a failure, too."""

    def __bool__(self) -> bool:
        return bool(self.findings or self.failures)

    def conclude(self, style: str, *, answered: bool = True) -> int:
        """Print the findings, the failures and the bugs; return the exit code."""
        print_findings(list(dict.fromkeys(self.findings)), style, self.failures)
        if tell_bugs(self.bugs, style):
            return BUG
        return DONE if answered and not self else REFUSED

    @contextmanager
    def of(self, folder: str) -> Iterator[None]:
        """Run the block for one cluster; stop it at a refusal, environment error or bug, and record that."""
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
    """Add --report and, as `style`, --format of findings. The verb must print with `print_findings`."""

    @functools.wraps(function)
    def reporting(*args: Any, report: tuple[tuple[str, str], ...], **kwargs: Any) -> Any:
        reports = click.get_current_context().meta[_KEY] = Reports(report)
        try:
            code = function(*args, **kwargs)
        except Exception as exception:
            reports.failures.append(Failure("", problem_of(exception).line))
            reports.write()
            raise
        reports.write()
        return code

    help = "Also write the findings to this file, in this format. Repeatable."
    said = "The format of the findings on stderr."
    style = click.Choice(NAMES)
    option = click.option("--format", "style", type=style, default=NAMES[0], show_default=True, help=said)
    files = files_option("--report", "report", NAMES, help)
    return option(files(reporting))  # type: ignore[return-value]  # wraps keeps what click reads


def files_option(
    option: str, name: str, formats: Sequence[str], help: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds a repeatable option FORMAT=FILE, as pairs (format, path)."""

    def read(given: Sequence[str]) -> tuple[tuple[str, str], ...]:
        pairs = []
        for text in given:
            form, equals, path = text.partition("=")
            if form not in formats or not (equals and path):
                raise click.BadParameter(f"{text!r} is not FORMAT=FILE; the formats are {', '.join(formats)}")
            pairs.append((form, writable(path)))
        if len({disk.identity(path) for _, path in pairs}) < len(pairs):
            raise click.BadParameter("two reports name the same file")
        return tuple(pairs)

    def offer(_: click.Context, __: click.Parameter, start: str) -> list[str]:
        return [f"{form}=" for form in sorted(formats) if f"{form}=".startswith(start) and "=" not in start]

    return click.option(
        option,
        name,
        multiple=True,
        metavar="FORMAT=FILE",
        callback=lambda _, __, given: read(given),
        shell_complete=offer,
        help=help,
    )


def writable(path: str) -> str:
    """Return the path of a file that an option names. Raises BadParameter for a folder, a pipe or a link.
    An option whose `-` means stdout handles it before; for other options `-` is an error, not a file name.
    """
    refuse_way_out(path)
    if path == "-":
        raise click.BadParameter("- is not a file here: write ./- for a file with this name")
    if not disk.is_replaceable(path):
        raise click.BadParameter(f"{path!r} is not a regular file: name another file")
    return path


def print_findings(
    findings: Sequence[Diagnostic],
    style: str,
    failures: Sequence[Failure] = (),
    checked: Sequence[Checked] = (),
) -> None:
    """Print findings to stderr, and for people how many there are; keep them for the reports.
    `checked` are all tests that ran: some formats also list those that passed. If the format is a document,
    nothing else is printed. Only the format `github` may print lines that are commands of a CI system.
    """
    context = click.get_current_context(silent=True)
    if context and _KEY in context.meta:
        context.meta[_KEY].findings.extend(findings)
        context.meta[_KEY].failures.extend(failures)
        context.meta[_KEY].checked.extend(checked)
    document = FORMATS[style].document
    if findings or failures or document:
        text = _text(findings, style, failures, checked, colour=colour(sys.stderr))
        if style == "junit":
            text = text.replace("##", "#&#35;")
        elif style in {"json", "gitlab", "sarif"}:
            text = harmless_json(text)
        elif style != "github":
            text = harmless(text)
        click.echo(text, err=True, color=True, nl=False)
    if style == "full" and not all(finding.acknowledged for finding in findings):
        say("")
    if findings and not document:
        shown = [finding for finding in findings if not finding.acknowledged]
        worst = min(shown, key=attrgetter("severity"), default=None)
        more = f"; for details: ipamc explain {worst.code}" if worst and style == "full" else ""
        say(f"{tally(findings)}{more}")


def tell(style: str, *lines: str) -> None:
    """Print lines for people, unless the format is a document."""
    for line in lines if not FORMATS[style].document else ():
        say(line)


def _text(
    findings: Sequence[Diagnostic],
    name: str,
    failures: Sequence[Failure],
    checked: Sequence[Checked],
    *,
    colour: bool = False,
) -> str:
    chosen = FORMATS[name]
    if chosen.rooted:
        from ipamc.workspace.revision import Rooted

        rooted = Rooted()

        def span(at: At) -> Span:
            return replace(span_of(at), path=rooted.path(at.path))

        findings = [located(finding, span) for finding in findings]
        failures = [replace(each, folder=each.folder and rooted.path(each.folder)) for each in failures]
        checked = [
            replace(test, at=span(test.at), findings=tuple([located(each, span) for each in test.findings]))
            for test in checked
        ]
    rules: dict[str, RuleText] = {}
    if chosen.rules:
        from ipamc.catalogue import catalogue

        entries = catalogue(disk.assets("rules"))
        rules = {code: RuleText(entry.title, entry.text) for code, entry in entries.items()}
    return report(findings, name, colour=colour, failures=failures, checked=checked, rules=rules)
