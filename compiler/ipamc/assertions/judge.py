"""The result of each test. Only clusters with tests load these modules: a tenth of a small compile."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.assertions import assertion_rules as rules
from ipamc.assertions.apart import Aparts
from ipamc.assertions.blocks import Judgement, check_blocks, check_node, check_nothing, check_renumbers
from ipamc.assertions.rooms import Rooms
from ipamc.assertions.subjects import Subjects, TooMany
from ipamc.model.assertion import Apart, Assertion, BlocksOf, NodeHas, NothingIn, Room
from ipamc.model.diagnostics import Diagnostic
from ipamc.model.plan import Plan


def judged(plan: Plan, today: str, found: list[Diagnostic]) -> Iterator[tuple[Assertion, Judgement]]:
    """Yield each test of a plan with its result, in order. Adds to `found` why others could not run."""
    tests, number = plan.cluster.tests, 0
    try:
        subjects = Subjects(plan)
        rooms, aparts = Rooms(subjects, today), Aparts(subjects)
        for number, test in enumerate(tests):  # noqa: B007 - used for the test that fails
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
