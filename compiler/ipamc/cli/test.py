"""`ipamc test`: the tests of clusters' address plans, alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
from msgspec import Struct
from msgspec.structs import replace

from ipamc.cli.command import BUG, DONE, REFUSED, Verb
from ipamc.cli.findings import format_option, print_findings, problem_of, tell, tell_bugs
from ipamc.cli.options import Minor, assume_option, clusters_argument, jobs_option, output_option
from ipamc.cli.runner import ClusterRun, compiling, prepare
from ipamc.cli.terminal import colour, progress, show, show_record
from ipamc.model.diagnostics import Located, Refused, Severity, count
from ipamc.report.findings import Checked, Failure, with_spans
from ipamc.workspace.clusters import find, name_of
from ipamc.workspace.source import fleet
from ipamc.workspace.workers import run_all


class Idle(Struct, frozen=True, kw_only=True):
    """A test outside the clusters' folders that matches nothing in one of them."""

    test: Checked
    findings: tuple[Located, ...]  # the errors if it is idle in all clusters


class Outcome(Struct, frozen=True, kw_only=True):
    """The result for one cluster."""

    folder: str
    checked: tuple[Checked, ...] | None = None  # None: there is no plan that could be tested
    idle: tuple[Idle, ...] = ()
    findings: tuple[Located, ...] = ()
    problem: str = ""  # the environment failed, or ipamc itself
    bug: str = ""


@click.command(cls=Verb)
@clusters_argument
@output_option("text", "json")
@jobs_option
@assume_option
@format_option
def command(
    *, clusters: tuple[str, ...], output: str, jobs: int | None, assume: Minor | None, style: str
) -> int:
    """Run only the address-plan tests, documents of kind Tests, on the result of a compile. Writes nothing.

    A compile runs the same tests, and is refused if one fails. CLUSTER is a name below clusters/ or a folder;
    by default all clusters. Then a test in clusters/tests.yaml that matches no node of any cluster also
    fails.

    Examples:
        ipamc test  # the tests of all clusters below clusters/, and those in clusters/tests.yaml
        ipamc test lab  # the tests that apply to one cluster
        ipamc test --report junit=tests.xml  # for CI: a test case for each test, also those that pass
        ipamc test lab --output json  # for programs: schemas/test.output.json
    Exit codes:
        0: every test passed, or only warned
        1: a test failed, an input was refused, or an I/O or environment error
    """
    from ipamc.report.finding_documents import TESTS_VERSION, tests_record
    from ipamc.report.findings import tests_text
    from ipamc.workspace.environment import today

    folders, day = find(clusters), today()
    known = fleet(folders)
    with progress(compiling(folders)):
        tasks = [
            ClusterRun(folder=folder, today=day, assume=assume, disk=known.only(folder)) for folder in folders
        ]
        done = run_all(tasks, jobs, run, failed, prepare)
    if not clusters:
        done = with_idle(done)
    if output == "json":
        records = [tests_record(name_of(outcome.folder), outcome.checked) for outcome in done]
        show_record({"version": TESTS_VERSION, "clusters": records})
    else:
        paint, tested = colour(sys.stdout), [outcome for outcome in done if outcome.checked is not None]
        show("".join(tests_text(name_of(each.folder), each.checked or (), colour=paint) for each in tested))
    print_findings(
        list(dict.fromkeys(finding for outcome in done for finding in outcome.findings)),
        style,
        [Failure(outcome.folder, outcome.problem) for outcome in done if outcome.problem],
        [test for outcome in done for test in outcome.checked or ()],
    )
    refused = False
    for outcome in done:
        errors = sum(finding.severity is Severity.ERROR for finding in outcome.findings)
        refused |= outcome.checked is None or errors > 0
        if outcome.checked is None and not outcome.problem:
            tell(style, f"{name_of(outcome.folder)}: not tested: {count(errors, 'error')}")
    if tell_bugs([(name_of(outcome.folder), outcome.bug) for outcome in done], style):
        return BUG
    return REFUSED if refused else DONE


def run(task: ClusterRun) -> Outcome:
    """Test one cluster. A refusal is a result, too; `failed` makes a result of other exceptions."""
    from ipamc.assertions.run import TestStatus
    from ipamc.pipeline import run_tests_only

    name = name_of(task.folder)
    try:
        read = replace(task.disk, assume=task.assume).inputs(task.folder)
        made = run_tests_only(replace(read, today=task.today))
    except Refused as refused:
        return Outcome(folder=task.folder, findings=tuple(map(with_spans, refused.diagnostics)))
    checked: list[Checked] = []
    idle: list[Idle] = []
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
        if result.status is not TestStatus.ELSEWHERE:
            checked.append(test)
        if result.test.shared and result.status in {TestStatus.ELSEWHERE, TestStatus.SKIPPED}:
            idle.append(Idle(test=test, findings=tuple(map(with_spans, result.idle))))
    findings = tuple([finding for test in checked for finding in test.findings])
    return Outcome(folder=task.folder, checked=tuple(checked), idle=tuple(idle), findings=findings)


def failed(task: ClusterRun, exception: BaseException) -> Outcome:
    """Return the result of a cluster whose run raised."""
    problem = problem_of(exception)
    return Outcome(folder=task.folder, problem=problem.line, bug=problem.trace)


def with_idle(done: Sequence[Outcome]) -> list[Outcome]:
    """Fail each test outside the clusters' folders that matches nothing in any, in the first with a reason.
    If a cluster could not be tested, no test fails for this: it might match there.
    """
    if any(outcome.checked is None for outcome in done):
        return list(done)
    every = [{idle.test.at for idle in outcome.idle} for outcome in done]
    nowhere = set.intersection(*every) if every else set()
    result = []
    for outcome in done:
        more = {idle.test.at: idle for idle in outcome.idle if idle.test.at in nowhere and idle.findings}
        nowhere -= more.keys()
        findings = (*outcome.findings, *(finding for idle in more.values() for finding in idle.findings))
        checked = []
        for test in outcome.checked or ():
            idle = more.pop(test.at, None)
            checked.append(replace(test, status="failed", findings=idle.findings) if idle else test)
        checked += [replace(idle.test, status="failed", findings=idle.findings) for idle in more.values()]
        result.append(replace(outcome, checked=tuple(checked), findings=findings))
    return result
