"""`ipamc test`: the tests of clusters' address plans, alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from ipamc.cli.bugs import problem_of, tell_bugs
from ipamc.cli.command import BUG, DONE, REFUSED, Verb
from ipamc.cli.findings import format_option, print_findings, tell
from ipamc.cli.interrupted import NOTHING, accounted
from ipamc.cli.options import assume_option, clusters_argument, jobs_option, output_option
from ipamc.cli.terminal import colour, progress, show, show_record
from ipamc.model.diagnostics import Located, Refused, Severity, count
from ipamc.report.findings.content import Checked, Failure, with_spans
from ipamc.workspace.clusters import find, name_of
from ipamc.workspace.workers import run_all

if TYPE_CHECKING:
    from ipamc.model.cluster import Version


class Task(Struct, frozen=True, kw_only=True):
    """A cluster to test."""

    folder: str
    today: str
    assume: Version | None = None


class Shared(Struct, frozen=True, kw_only=True):
    """A test beside the clusters that is about nothing in one of them."""

    test: Checked
    idle: tuple[Located, ...]
    """What is wrong if it is so in all of them."""


class Outcome(Struct, frozen=True, kw_only=True):
    """The result for one cluster."""

    folder: str
    checked: tuple[Checked, ...] | None = None
    """None: there is no plan that could be tested."""
    idle: tuple[Shared, ...] = ()
    findings: tuple[Located, ...] = ()
    problem: str = ""
    """The environment failed, or ipamc itself."""
    bug: str = ""


@click.command(
    cls=Verb,
    examples=(
        ("ipamc test", "the tests of all clusters below clusters/, and those in clusters/tests.yaml"),
        ("ipamc test lab", "those that hold for one cluster"),
        ("ipamc test --report junit=tests.xml", "for CI: a test case for each, also those that pass"),
        ("ipamc test lab --output json", "for programs: schemas/test.output.json"),
    ),
    done="every test passed, or is only warned of",
    refused="a test failed, an input was refused, or an I/O or environment error",
)
@clusters_argument
@output_option("text", "json")
@jobs_option
@assume_option
@format_option
def command(
    *, clusters: tuple[str, ...], output: str, jobs: int | None, assume: Version | None, style: str
) -> int:
    """Make the tests of clusters, documents of kind Tests, on what a compile would give now. Writes nothing.

    CLUSTER is a folder, or a name below clusters/; without one, all of them. Then a test in clusters/tests.yaml
    that is about no node of any cluster fails, too. A compile makes the same tests, and is refused by one that
    fails.
    """
    from ipamc.cli.runner import compiling, prepare
    from ipamc.report import tests as report
    from ipamc.workspace.environment import today

    folders, day = find(clusters), today()
    with accounted(lambda: NOTHING), progress(compiling(folders)):
        tasks = [Task(folder=folder, today=day, assume=assume) for folder in folders]
        done = run_all(tasks, jobs, run, failed, prepare)
    if not clusters:
        done = with_idle(done)
    if output == "json":
        records = [report.record(name_of(outcome.folder), outcome.checked) for outcome in done]
        show_record({"version": report.VERSION, "clusters": records})
    else:
        paint = colour(sys.stdout)
        show(
            "".join(
                report.text(name_of(outcome.folder), outcome.checked, colour=paint)
                for outcome in done
                if outcome.checked is not None
            )
        )
    print_findings(
        list(dict.fromkeys(finding for outcome in done for finding in outcome.findings)),
        style,
        [Failure(outcome.folder, outcome.problem) for outcome in done if outcome.problem],
        [test for outcome in done for test in outcome.checked or ()],
    )
    for outcome in done:
        if outcome.checked is None and not outcome.problem:
            errors = sum(finding.severity is Severity.ERROR for finding in outcome.findings)
            tell(style, f"{name_of(outcome.folder)}: not tested: {count(errors, 'error')}")
    if tell_bugs([(name_of(outcome.folder), outcome.bug) for outcome in done], style):
        return BUG
    return REFUSED if any(map(_refused, done)) else DONE


def _refused(outcome: Outcome) -> bool:
    return outcome.checked is None or any(finding.severity is Severity.ERROR for finding in outcome.findings)


def run(task: Task) -> Outcome:
    """Test one cluster. A refusal ends in the result; of other exceptions `failed` makes one."""
    from ipamc.assertions.run import Status
    from ipamc.pipeline import make_tests
    from ipamc.workspace.source import Disk

    name = name_of(task.folder)
    try:
        made = make_tests(replace(Disk(assume=task.assume).inputs(task.folder), today=task.today))
    except Refused as refused:
        return Outcome(folder=task.folder, findings=tuple(map(with_spans, refused.diagnostics)))
    checked: list[Checked] = []
    idle: list[Shared] = []
    for result, at in zip(made.results, made.places, strict=True):
        test = Checked(
            cluster=name,
            name=result.test.name,
            because=result.test.because,
            status=result.status,
            subjects=f"{result.subjects:,} {result.noun}",
            at=at,
            findings=tuple(map(with_spans, result.findings)),
        )
        if result.status is not Status.ELSEWHERE:
            checked.append(test)
        if result.test.shared and result.status in {Status.ELSEWHERE, Status.SKIPPED}:
            idle.append(Shared(test=test, idle=tuple(map(with_spans, result.idle))))
    return Outcome(
        folder=task.folder,
        checked=tuple(checked),
        idle=tuple(idle),
        findings=tuple([finding for test in checked for finding in test.findings]),
    )


def failed(task: Task, exception: BaseException) -> Outcome:
    """Return the result of a cluster whose run raised."""
    problem = problem_of(exception)
    return Outcome(folder=task.folder, problem=problem.line, bug=problem.trace)


def with_idle(done: Sequence[Outcome]) -> list[Outcome]:
    """Let tests beside the clusters fail that are about nothing in any of them, in the first that tells why.

    Nothing is said where some cluster could not be tested: they may be about that one.
    """
    if any(outcome.checked is None for outcome in done):
        return list(done)
    every = [{shared.test.at for shared in outcome.idle} for outcome in done]
    nowhere = set.intersection(*every) if every else set()
    result = []
    for outcome in done:
        more = [shared for shared in outcome.idle if shared.test.at in nowhere and shared.idle]
        nowhere -= {shared.test.at for shared in more}
        found = {shared.test.at: shared.idle for shared in more}
        checked = [
            replace(test, status="failed", findings=found.pop(test.at)) if test.at in found else test
            for test in outcome.checked or ()
        ]
        checked += [
            replace(shared.test, status="failed", findings=found[shared.test.at])
            for shared in more
            if shared.test.at in found
        ]
        findings = (*outcome.findings, *(finding for shared in more for finding in shared.idle))
        result.append(replace(outcome, checked=tuple(checked), findings=findings))
    return result
