"""Runs the tests of a cluster against its plan, and returns each with its result."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ipamc.model.assertion import Assertion
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Diagnostic, Severity
from ipamc.model.plan import Plan

if TYPE_CHECKING:
    from ipamc.assertions.blocks import Judgement

MOST = 1000
"""The most tests of a cluster."""


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


def elsewhere(cluster: Cluster, shared: Sequence[Assertion]) -> list[TestResult]:
    """Return the tests of files beside a cluster that apply to others."""
    from ipamc.assertions import assertion_rules as rules  # noqa: PLC0415 - only `ipamc test` needs it

    status, noun = TestStatus.ELSEWHERE, "clusters"
    return [
        TestResult(test=test, status=status, subjects=0, noun=noun, idle=(rules.no_cluster(test),))
        for test in shared
        if not _holds(test, cluster)
    ]


def _holds(test: Assertion, cluster: Cluster) -> bool:
    """Return whether a shared test applies to a cluster; none applies to an address space."""
    return not cluster.is_space and test.space in {"", cluster.address_space}


def of_cluster(cluster: Cluster, shared: Sequence[Assertion]) -> tuple[list[Assertion], list[Diagnostic]]:
    """Return the tests for a cluster: its own, and those of files beside it for its address space."""
    if not (cluster.tests or shared):
        return [], []
    from ipamc.assertions import assertion_rules as rules  # noqa: PLC0415 - few clusters have tests

    own = cluster.tests
    strangers = [test for test in own if test.space not in {"", cluster.address_space}]
    tests = [*own, *(test for test in shared if _holds(test, cluster))]
    by_path = {test.at.path: rules.other_space(test, cluster.address_space) for test in strangers}
    found = list(by_path.values())
    if len(tests) > MOST:
        found.append(rules.too_much(tests[MOST].at, f"{len(tests):,} tests, and {MOST:,} is the limit"))
    return tests, found


def run_tests(plan: Plan, today: str) -> tuple[tuple[TestResult, ...], list[Diagnostic]]:
    """Run the tests of a plan, in their order; return also their findings, and why some could not run.
    O(nodes + lines) for all of them together, plus the costs in the modules. Does nothing without tests.
    """
    if not plan.cluster.tests:
        return (), []
    from ipamc.assertions.judge import judged  # noqa: PLC0415 - few clusters have tests

    found: list[Diagnostic] = []
    results = tuple(_result(test, judgement, plan) for test, judgement in judged(plan, today, found))
    return results, [*(finding for result in results for finding in result.findings), *found]


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
