"""Why no node can satisfy a selector: only what is certain, from what a node's name, label keys and label values can be."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ipamc.model.selector.error import shown
from ipamc.model.selector.expression import Always, Expression, Named, Never, Operator, Test, matcher
from ipamc.model.selector.label_syntax import label_key_problem, label_value_problem, node_name_problem
from ipamc.model.selector.normal_form import ANYTHING, Condition, Joint, Literal, Normal, Outcomes, normal

_PATIENCE = 100_000
"""Looks at one label after which a selector counts as possible; nobody writes such a one."""

_INT64_MAX = (1 << 63) - 1

_affix = {  # what a piece of a label value may be, at its place in the value
    Operator.CONTAINS: re.compile(r"[-A-Za-z0-9_.]{0,63}").fullmatch,
    Operator.STARTS_WITH: re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]{0,62})?").fullmatch,
    Operator.ENDS_WITH: re.compile(r"(?:[-A-Za-z0-9_.]{0,62}[A-Za-z0-9])?").fullmatch,
}


def impossible(expression: Expression) -> str:
    """Say why no node satisfies the expression, or "" where one may."""
    return _why(normal(expression))


def _why(form: Normal) -> str:
    match form:
        case Always():
            return ""
        case Never(why):
            return why
        case Joint(every=False, parts=parts):
            reasons = [_why(part) for part in parts]
            return reasons[0] if all(reasons) else ""
        case Joint(parts=parts):
            reasons = [_why(part) for part in parts if isinstance(part, Joint)]
            return next(filter(None, [_together(parts), *reasons]), "")
        case Condition() | Literal():
            return _together((form,))


def _together(parts: tuple[Normal, ...]) -> str:
    """Weigh the conditions of one conjunction, label by label."""
    outcomes = {part.key: part.outcomes for part in parts if isinstance(part, Condition)}
    literals: dict[str, list[Literal]] = {key: [] for key in outcomes}
    names: list[Literal] = []
    for part in parts:
        match part:
            case Literal(Named()):
                names.append(part)
            case Literal(Test(key)):
                literals.setdefault(key, []).append(part)
            case _:
                pass
    reasons = (_label(key, outcomes.get(key, ANYTHING), literals[key]) for key in sorted(literals))
    return next(filter(None, [_name(names), *reasons]), "")


def _name(literals: Iterable[Literal]) -> str:
    wanted, unwanted = set[str](), set[str]()
    for literal in literals:
        if isinstance(literal.test, Named):
            (unwanted if literal.negated else wanted).add(literal.test.name)
    for name in sorted(wanted):
        if problem := node_name_problem(name):
            return f"no node can have the name {shown(name)}, which {problem}"
        if name in unwanted:
            return f"a node cannot have the name {name} and not have it"
    if len(wanted) > 1:
        first, second = sorted(wanted)[:2]
        return f"a node cannot have the names {first} and {second}"
    return ""


def _label(key: str, outcomes: Outcomes, literals: list[Literal]) -> str:
    needed = [literal.test for literal in literals if not literal.negated and isinstance(literal.test, Test)]
    if outcomes.absent and not needed:
        return ""  # a node without the label will do: the opposite of a test is true there
    if problem := label_key_problem(key):
        return f"no node can have the label {shown(key)}, which {problem}"
    for test in needed:
        allowed = _affix.get(test.operator)
        if allowed and not allowed(test.values[0]):
            return f"no label value {test.operator} {shown(test.values[0])}"
    if outcomes.listed:
        return _listed(key, outcomes, literals)
    return _interval(key, needed) or _affixes(key, needed)


def _listed(key: str, outcomes: Outcomes, literals: list[Literal]) -> str:
    values = sorted(outcomes.members)
    legal = [value for value in values if not label_value_problem(value)]
    if values and not legal:
        return f"no label can have the value {shown(values[0])}, which {label_value_problem(values[0])}"
    tests = [(matcher(literal.test), literal.negated) for literal in literals]
    if len(legal) * len(tests) > _PATIENCE or any(
        all(test({key: value}, "") is not negated for test, negated in tests) for value in legal
    ):
        return ""
    return f"no value of {key} satisfies all its conditions"


def _interval(key: str, needed: list[Test]) -> str:
    above = max((int(test.values[0]) for test in needed if test.operator is Operator.ABOVE), default=None)
    below = min((int(test.values[0]) for test in needed if test.operator is Operator.BELOW), default=None)
    low = (
        0 if above is None else max(above + 1, 0)
    )  # a label value begins with a letter or digit: it is never negative
    high = _INT64_MAX if below is None else below - 1
    if low <= high:
        return ""
    bounds = [f"above {above}"] * (above is not None) + [f"below {below}"] * (below is not None)
    return f"no value of {key} is an integer {' and '.join(bounds)}"


def _affixes(key: str, needed: list[Test]) -> str:
    for operator, fits in ((Operator.STARTS_WITH, str.startswith), (Operator.ENDS_WITH, str.endswith)):
        wanted = sorted((test.values[0] for test in needed if test.operator is operator), key=len)
        for each in wanted[:-1]:
            if not fits(wanted[-1], each):
                return f"no value of {key} {operator} both {shown(each)} and {shown(wanted[-1])}"
    return ""
