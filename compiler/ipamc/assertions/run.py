"""Runs the tests of a cluster against its plan, and returns each with its result."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ipamc.assertions import assertion_rules as rules
from ipamc.assertions.blocks import (
    Aparts,
    Judgement,
    check_blocks,
    check_node,
    check_nothing,
    check_renumbers,
)
from ipamc.assertions.rooms import Rooms
from ipamc.assertions.subjects import Subjects, TooMany
from ipamc.model.assertion import Apart, Assertion, BlocksOf, NodeHas, NothingIn, Room
from ipamc.model.cluster import Cluster, Scheme
from ipamc.model.diagnostics import Diagnostic, Severity
from ipamc.model.limits import MOST_TESTS
from ipamc.model.plan import Plan


class TestStatus(enum.StrEnum):
    """The result of a test."""

    PASSED = "passed"
    FAILED = "failed"
    WARNED = "warned"
    """It failed, and has `warn`; or it will hold after nodes have moved."""
    SKIPPED = "skipped"
    """It matches no node here, which it allows."""
    ELSEWHERE = "elsewhere"
    """It applies to the clusters of another address space."""


class TestResult(Struct, frozen=True, kw_only=True):
    """A test, and its result."""

    test: Assertion
    status: TestStatus
    subjects: int
    """The number of nodes, pools or CIDRs that it tested."""
    noun: str
    """The noun for these, in singular or plural."""
    findings: tuple[Diagnostic, ...] = ()
    idle: tuple[Diagnostic, ...] = ()
    """For a shared test that matches nothing here: a finding in case that is so in every cluster."""


def elsewhere(cluster: Scheme, shared: Sequence[Assertion]) -> list[TestResult]:
    """Return the tests of files beside a cluster that apply to others."""
    status, noun = TestStatus.ELSEWHERE, "clusters"
    return [
        TestResult(test=test, status=status, subjects=0, noun=noun, idle=(rules.no_cluster(test),))
        for test in shared
        if not _holds(test, cluster)
    ]


def _holds(test: Assertion, cluster: Scheme) -> bool:
    """Return whether a shared test applies to a cluster; none applies to an address space."""
    return isinstance(cluster, Cluster) and test.space in {"", cluster.address_space}


def of_cluster(cluster: Scheme, shared: Sequence[Assertion]) -> tuple[list[Assertion], list[Diagnostic]]:
    """Return the tests for a cluster: its own, and those of files beside it for its address space."""
    if not (cluster.tests or shared):
        return [], []
    own = cluster.tests
    strangers = [test for test in own if test.space not in {"", cluster.address_space}]
    tests = [*own, *(test for test in shared if _holds(test, cluster))]
    by_path = {test.at.path: rules.other_space(test, cluster.address_space) for test in strangers}
    found = list(by_path.values())
    if len(tests) > MOST_TESTS:
        problem = f"{len(tests):,} tests, but the limit is {MOST_TESTS:,}"
        found.append(rules.too_much(tests[MOST_TESTS].at, problem))
    return tests, found


def run_tests(plan: Plan, today: str) -> tuple[tuple[TestResult, ...], list[Diagnostic]]:
    """Run the tests of a plan, in their order; return also their findings, and why some could not run.
    O(nodes + lines) for all of them together, plus the costs in the modules. Does nothing without tests.
    """
    if not plan.scheme.tests:
        return (), []
    found: list[Diagnostic] = []
    results = tuple(_result(test, judgement, plan) for test, judgement in _judged(plan, today, found))
    return results, [*(finding for result in results for finding in result.findings), *found]


def _judged(plan: Plan, today: str, found: list[Diagnostic]) -> Iterator[tuple[Assertion, Judgement]]:
    """Yield each test of a plan with its verdict, in order. Adds to `found` why others could not be made."""
    tests, number = plan.scheme.tests, 0
    try:
        subjects = Subjects(plan)
        rooms, aparts = Rooms(subjects, today), Aparts(subjects)
        for number, test in enumerate(tests):  # noqa: B007 - of the test that fails
            yield test, _judgement(test, subjects, rooms, aparts, today)
    except TooMany as problem:
        found.append(rules.too_much(tests[number].at, str(problem)))


def _judgement(test: Assertion, subjects: Subjects, rooms: Rooms, aparts: Aparts, today: str) -> Judgement:
    match test.asserts:
        case BlocksOf() as asserts:
            return check_blocks(test, asserts, subjects)
        case NodeHas() as asserts:
            return check_node(test, asserts, subjects)
        case Room() as asserts:
            return rooms.check(test, asserts)
        case Apart() as asserts:
            return aparts.check(test, asserts)
        case NothingIn() as asserts:
            return check_nothing(test, asserts, subjects)
        case asserts:
            return check_renumbers(test, asserts, subjects, today)


def _result(test: Assertion, judgement: Judgement, plan: Plan) -> TestResult:
    noun = judgement.noun if judgement.subjects == 1 else judgement.plural
    findings, status = judgement.findings, TestStatus.PASSED
    idle: tuple[Diagnostic, ...] = ()
    if judgement.empty and (test.allow_empty or test.shared or not plan.wants):
        findings, status = (), TestStatus.SKIPPED
        idle = judgement.findings if test.shared and not test.allow_empty and plan.wants else ()
    elif any(finding.severity is Severity.ERROR for finding in findings):
        status = TestStatus.FAILED
    elif findings:
        status = TestStatus.WARNED
    return TestResult(
        test=test, status=status, subjects=judgement.subjects, noun=noun, findings=findings, idle=idle
    )
