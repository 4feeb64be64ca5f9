"""Reasons why no node can satisfy a selector.

Only certain reasons, from the names, label keys and label values that Kubernetes allows.
"""

from __future__ import annotations

import re

from ipamc.model.selector.error import shown
from ipamc.model.selector.expression import Always, Named, Never, Operator, Test, matcher
from ipamc.model.selector.label_syntax import label_key_problem, label_value_problem, subdomain_problem
from ipamc.model.selector.normal_form import ANYTHING, Condition, Joint, Normal, OtherTest, Outcomes

_MOST_TESTS = 100_000
"""A label with more tests of its values counts as possible; no real selector has so many."""

_INT64_MAX = (1 << 63) - 1

_valid_part = {  # what a valid label value can contain, begin with and end with
    Operator.CONTAINS: re.compile(r"[-A-Za-z0-9_.]{0,63}").fullmatch,
    Operator.STARTS_WITH: re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]{0,62})?").fullmatch,
    Operator.ENDS_WITH: re.compile(r"(?:[-A-Za-z0-9_.]{0,62}[A-Za-z0-9])?").fullmatch,
}


def impossible(form: Normal) -> str:
    """Return why no node satisfies an expression of this normal form, or "" if one may."""
    match form:
        case Always():
            return ""
        case Never(why):
            return why
        case Joint(every=False, parts=parts):
            reasons = [impossible(part) for part in parts]
            return reasons[0] if all(reasons) else ""
        case Joint(parts=parts):
            reasons = [impossible(part) for part in parts if isinstance(part, Joint)]
            return next(filter(None, [_conjunction(parts), *reasons]), "")
        case Condition() | OtherTest():
            return _conjunction((form,))


def _conjunction(parts: tuple[Normal, ...]) -> str:
    """Return why parts of one conjunction exclude each other: the node's name first, then the labels."""
    outcomes = {part.key: part.outcomes for part in parts if isinstance(part, Condition)}
    tests: dict[str, list[tuple[Test, bool]]] = {key: [] for key in outcomes}
    wanted, unwanted = set[str](), set[str]()
    for part in parts:
        match part:
            case OtherTest(Named(name), negated):
                (unwanted if negated else wanted).add(name)
            case OtherTest(Test(key) as test, negated):
                tests.setdefault(key, []).append((test, negated))
            case _:
                pass
    reasons = (_label(key, outcomes.get(key, ANYTHING), tests[key]) for key in sorted(tests))
    return next(filter(None, [_name(wanted, unwanted), *reasons]), "")


def _name(wanted: set[str], unwanted: set[str]) -> str:
    for name in sorted(wanted):
        if problem := subdomain_problem(name):
            return f"no node can have the name {shown(name)}, which {problem}"
        if name in unwanted:
            return f"a node cannot have the name {name} and not have it"
    if len(wanted) > 1:
        first, second = sorted(wanted)[:2]
        return f"a node cannot have the names {first} and {second}"
    return ""


def _label(key: str, outcomes: Outcomes, tests: list[tuple[Test, bool]]) -> str:
    """Return why no value of a label passes its (test, negated) pairs and is one of its outcomes."""
    needed = [test for test, negated in tests if not negated]
    if outcomes.absent and not needed:
        return ""  # a node without the label passes: a negated test is true there
    if problem := label_key_problem(key):
        return f"no node can have the label {shown(key)}, which {problem}"
    for test in needed:
        allowed = _valid_part.get(test.operator)
        if allowed and not allowed(test.values[0]):
            return f"no label value {test.operator} {shown(test.values[0])}"
    if outcomes.listed:
        values = sorted(outcomes.members)
        legal = [value for value in values if not label_value_problem(value)]
        if values and not legal:
            return f"no label can have the value {shown(values[0])}, which {label_value_problem(values[0])}"
        if len(legal) * len(tests) > _MOST_TESTS:
            return ""
        passes = [(matcher(test), negated) for test, negated in tests]
        if any(all(test({key: value}, "") is not negated for test, negated in passes) for value in legal):
            return ""
        return f"no value of {key} satisfies all its conditions"
    return _interval(key, needed) or _affixes(key, needed)


def _interval(key: str, needed: list[Test]) -> str:
    """Return why no int64 is between the bounds. No label value begins with a sign: none is negative."""
    above = [int(test.values[0]) for test in needed if test.operator is Operator.ABOVE]
    below = [int(test.values[0]) for test in needed if test.operator is Operator.BELOW]
    if max([-1, *above]) + 1 < min([_INT64_MAX + 1, *below]):
        return ""
    bounds = [f"above {max(above)}"] if above else []
    bounds += [f"below {min(below)}"] if below else []
    return f"no value of {key} is an integer {' and '.join(bounds)}"


def _affixes(key: str, needed: list[Test]) -> str:
    for operator, fits in ((Operator.STARTS_WITH, str.startswith), (Operator.ENDS_WITH, str.endswith)):
        wanted = sorted((test.values[0] for test in needed if test.operator is operator), key=len)
        for shorter in wanted[:-1]:
            if not fits(wanted[-1], shorter):
                return f"no value of {key} {operator} both {shown(shorter)} and {shown(wanted[-1])}"
    return ""
