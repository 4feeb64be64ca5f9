"""The meaning of a selector in any language: tests of a label or the node's name, joined by and, or, not.

The parsers limit trees to `MAX_HEIGHT` levels, so recursion here stays within Python's stack.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import assert_never

from msgspec import Struct

from ipamc.model.selector.label_syntax import integer

MAX_HEIGHT = 200
"""Levels of a tree. A walk takes one or two Python frames for each level, of 1,000."""

Matcher = Callable[[Mapping[str, str], str], bool]
"""From the labels and the name of a node to whether it is selected."""


class Operator(enum.StrEnum):
    """How a label is tested, in Calico's spelling where Calico has one.
    All but `!=` and `not in` are false without the label.
    """

    EQUAL = "=="
    UNEQUAL = "!="
    IN = "in"
    NOT_IN = "not in"
    HAS = "has"
    CONTAINS = "contains"
    STARTS_WITH = "starts with"
    ENDS_WITH = "ends with"
    ABOVE = ">"
    BELOW = "<"


class Always(Struct, frozen=True):
    """True of every node."""


class Never(Struct, frozen=True):
    """True of no node; `why` is the reason as people read it."""

    why: str


class Test(Struct, frozen=True):
    """One test of one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    """Sorted and distinct: any number for `in` and `not in`, none for `has`, else one."""


class Named(Struct, frozen=True):
    """The node has this name."""

    name: str


class Not(Struct, frozen=True):
    """The opposite."""

    part: Expression


class And(Struct, frozen=True):
    """All parts hold; two or more."""

    parts: tuple[Expression, ...]


class Or(Struct, frozen=True):
    """A part holds; two or more."""

    parts: tuple[Expression, ...]


_TRUE_WITHOUT = frozenset({Operator.UNEQUAL, Operator.NOT_IN})
"""Tests that are true of a node without the label."""

Leaf = Always | Never | Test | Named
Expression = Leaf | Not | And | Or


def leaves(expression: Expression) -> Iterator[Leaf]:
    """Yield the leaves, in no particular order."""
    waiting: list[Expression] = [expression]
    while waiting:
        match waiting.pop():
            case Not(part):
                waiting.append(part)
            case And(parts) | Or(parts):
                waiting.extend(parts)
            case leaf:
                yield leaf


def weight(expression: Expression, *, negated: bool = False) -> int:
    """Return the number of requirements: 1 for each test, `and` sums, `or` takes the smallest (De Morgan)."""
    match expression:
        case Always() | Never():
            return 0
        case Test() | Named():
            return 1
        case Not(part):
            return weight(part, negated=not negated)
        case And(parts) | Or(parts):
            counts = [weight(part, negated=negated) for part in parts]
            return sum(counts) if isinstance(expression, And) is not negated else min(counts)
        case _:
            assert_never(expression)


def effort(expression: Expression) -> int:
    """Return how many tests one call of a matcher makes at most, about: see `_joined`."""
    match expression:
        case Not(part):
            return effort(part)
        case And(parts) | Or(parts):
            joined = [effort(part) for part in parts if not isinstance(part, Leaf)]
            return min(len(parts) - len(joined), FEW) + sum(joined)
        case _:
            return 1


def matcher(expression: Expression) -> Matcher:
    """Return an expression as one function; whatever does not depend on the node is evaluated here, once.
    One call costs O(labels of the node + parts that are themselves joined), however many tests are joined:
    see `_joined`.
    """
    match expression:
        case Always():
            return lambda _labels, _name: True
        case Never():
            return lambda _labels, _name: False
        case Named(wanted):
            return lambda _labels, name: name == wanted
        case Test():
            return _TESTS[expression.operator](expression.key, expression.values)
        case Not(part):
            inner = matcher(part)
            return lambda labels, name: not inner(labels, name)
        case And(parts):
            return _joined(parts, every=True)
        case Or(parts):
            return _joined(parts, every=False)
        case _:
            assert_never(expression)


FEW = 8
"""Tests that are made one after the other; of more, only those of labels that the node has."""


def _joined(parts: Sequence[Expression], *, every: bool) -> Matcher:
    """Join parts. Tests of one label by equality become one set; many other tests are kept by their label.
    A test that is false of a node without the label is skipped among alternatives, and one that is true of it
    in a conjunction.
    """
    alike = {Operator.UNEQUAL, Operator.NOT_IN} if every else {Operator.EQUAL, Operator.IN}
    sets: dict[str, set[str]] = {}
    by_key: dict[str, list[Matcher]] = {}
    names: set[str] = set()
    others: list[Matcher] = []
    for part in parts:
        match part:
            case Test(key, operator, values) if operator in alike:
                sets.setdefault(key, set()).update(values)
            case Test(key, operator) if operator not in _TRUE_WITHOUT and not every:
                by_key.setdefault(key, []).append(matcher(part))
            case Named(name) if not every:
                names.add(name)
            case Not(Named(name)) if every:
                names.add(name)
            case _:
                others.append(matcher(part))
    one = _in if not every else _not_in
    for key, members in sets.items():
        by_key.setdefault(key, []).append(one(key, tuple(members)))
    join = _all if every else _any
    first = [_named(names, every=every)] if names else []
    by_label = {key: tests[0] if len(tests) == 1 else join(tests) for key, tests in by_key.items()}
    if len(by_label) > FEW:
        first.append(_by_label(by_label, every=every))
    else:
        first += by_label.values()
    every_test = [*first, *others]
    return every_test[0] if len(every_test) == 1 else join(every_test)


def _named(names: set[str], *, every: bool) -> Matcher:
    return (lambda _labels, name: name not in names) if every else (lambda _labels, name: name in names)


def _by_label(tests: Mapping[str, Matcher], *, every: bool) -> Matcher:
    def found(labels: Mapping[str, str], name: str) -> bool:
        for key in labels:
            if (test := tests.get(key)) and test(labels, name) is not every:
                return not every
        return every

    return found


def _all(inner: list[Matcher]) -> Matcher:
    def every(labels: Mapping[str, str], name: str) -> bool:
        for holds in inner:  # noqa: SIM110 - a loop: `all` with a generator takes a second frame a level, and three times as long
            if not holds(labels, name):
                return False
        return True

    return every


def _any(inner: list[Matcher]) -> Matcher:
    def some(labels: Mapping[str, str], name: str) -> bool:
        for holds in inner:  # noqa: SIM110 - as above
            if holds(labels, name):
                return True
        return False

    return some


def _equal(key: str, values: tuple[str, ...]) -> Matcher:
    (value,) = values
    return lambda labels, _name: labels.get(key) == value


def _unequal(key: str, values: tuple[str, ...]) -> Matcher:
    (value,) = values
    return lambda labels, _name: labels.get(key) != value


def _in(key: str, values: tuple[str, ...]) -> Matcher:
    members = frozenset(values)
    return lambda labels, _name: labels.get(key) in members


def _not_in(key: str, values: tuple[str, ...]) -> Matcher:
    members = frozenset(values)
    return lambda labels, _name: labels.get(key) not in members


def _has(key: str, _values: tuple[str, ...]) -> Matcher:
    return lambda labels, _name: key in labels


def _contains(key: str, values: tuple[str, ...]) -> Matcher:
    (value,) = values
    return lambda labels, _name: (found := labels.get(key)) is not None and value in found


def _starts_with(key: str, values: tuple[str, ...]) -> Matcher:
    (value,) = values
    return lambda labels, _name: (found := labels.get(key)) is not None and found.startswith(value)


def _ends_with(key: str, values: tuple[str, ...]) -> Matcher:
    (value,) = values
    return lambda labels, _name: (found := labels.get(key)) is not None and found.endswith(value)


def _above(key: str, values: tuple[str, ...]) -> Matcher:
    bound = int(values[0])
    return lambda labels, _name: (number := integer(labels.get(key, ""))) is not None and number > bound


def _below(key: str, values: tuple[str, ...]) -> Matcher:
    bound = int(values[0])
    return lambda labels, _name: (number := integer(labels.get(key, ""))) is not None and number < bound


_TESTS: dict[Operator, Callable[[str, tuple[str, ...]], Matcher]] = {
    Operator.EQUAL: _equal,
    Operator.UNEQUAL: _unequal,
    Operator.IN: _in,
    Operator.NOT_IN: _not_in,
    Operator.HAS: _has,
    Operator.CONTAINS: _contains,
    Operator.STARTS_WITH: _starts_with,
    Operator.ENDS_WITH: _ends_with,
    Operator.ABOVE: _above,
    Operator.BELOW: _below,
}
