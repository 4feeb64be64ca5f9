"""The meaning of a selector in any language: tests of a label or the node's name, joined by and, or, not.

The parsers limit trees to `DEEPEST_SELECTOR` levels, so recursion here stays within Python's stack.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import assert_never

from msgspec import Struct

from ipamc.model.limits import TESTS_IN_TURN, VALUE_SHOWN
from ipamc.model.selector.label_syntax import integer

Matcher = Callable[[Mapping[str, str], str], bool]
"""Returns, for the labels and the name of a node, whether it is selected."""


class Operator(enum.StrEnum):
    """A test of a label, spelt as Calico does if it has it. All but `!=` and `not in` need the label."""

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
    """True of no node; `why` is the reason, for people."""

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
    """Return the approximate number of tests that a matcher makes at most: see `_joined`."""
    match expression:
        case Not(part):
            return effort(part)
        case And(parts) | Or(parts):
            joined = [effort(part) for part in parts if not isinstance(part, Leaf)]
            return min(len(parts) - len(joined), TESTS_IN_TURN) + sum(joined)
        case _:
            return 1


def matcher(expression: Expression) -> Matcher:
    """Return an expression as one function; parts that do not depend on the node are evaluated here, once.
    One call costs O(labels of the node + parts that are themselves joined), for any number of joined tests:
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
            return _test(expression)
        case Not(part):
            inner = matcher(part)
            return lambda labels, name: not inner(labels, name)
        case And(parts):
            return _joined(parts, every=True)
        case Or(parts):
            return _joined(parts, every=False)
        case _:
            assert_never(expression)


def _joined(parts: Sequence[Expression], *, every: bool) -> Matcher:
    """Join parts. Tests of one label by equality become one set; many other tests are indexed by label.
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
    one = Operator.NOT_IN if every else Operator.IN
    for key, members in sets.items():
        by_key.setdefault(key, []).append(_test(Test(key, one, tuple(members))))
    first: list[Matcher] = []
    if names:
        first = [lambda _labels, name: (name not in names) is every]
    by_label = {key: _all(tests, every=every) for key, tests in by_key.items()}
    if len(by_label) > TESTS_IN_TURN:
        first.append(_by_label(by_label, every=every))
    else:
        first += by_label.values()
    return _all([*first, *others], every=every)


def _by_label(tests: Mapping[str, Matcher], *, every: bool) -> Matcher:
    def found(labels: Mapping[str, str], name: str) -> bool:
        for key in labels:
            if (test := tests.get(key)) and test(labels, name) is not every:
                return not every
        return every

    return found


def _all(inner: list[Matcher], *, every: bool) -> Matcher:
    """Join functions: all of them must hold (`every`), or one."""
    if len(inner) == 1:
        return inner[0]

    def joined(labels: Mapping[str, str], name: str) -> bool:
        # A loop: `all` with a generator takes a second frame per level, and three times as long.
        for holds in inner:
            if holds(labels, name) is not every:
                return not every
        return every

    return joined


def _test(test: Test) -> Matcher:
    """Return one test of one label as a function. Its comparison values are prepared here."""
    key, value = test.key, test.values[0] if test.values else ""
    match test.operator:
        case Operator.EQUAL:
            return lambda labels, _name: labels.get(key) == value
        case Operator.UNEQUAL:
            return lambda labels, _name: labels.get(key) != value
        case Operator.IN:
            members = frozenset(test.values)
            return lambda labels, _name: labels.get(key) in members
        case Operator.NOT_IN:
            others = frozenset(test.values)
            return lambda labels, _name: labels.get(key) not in others
        case Operator.HAS:
            return lambda labels, _name: key in labels
        case Operator.CONTAINS:
            return lambda labels, _name: (found := labels.get(key)) is not None and value in found
        case Operator.STARTS_WITH:
            return lambda labels, _name: (found := labels.get(key)) is not None and found.startswith(value)
        case Operator.ENDS_WITH:
            return lambda labels, _name: (found := labels.get(key)) is not None and found.endswith(value)
    above, bound = test.operator is Operator.ABOVE, int(value)
    return lambda labels, _name: (
        (number := integer(labels.get(key, ""))) is not None and (number > bound if above else number < bound)
    )


class SelectorError(ValueError):
    """A selector that its language does not allow. Messages have the style of a Diagnostic's."""

    def __init__(
        self,
        message: str,
        *,
        offset: int = 0,
        keys: tuple[str | int, ...] = (),
        at_key: bool = False,
        help: str = "",  # noqa: A002 - the word that users see
    ) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        """Offset in characters, from 0, of the offending token or of the text's end; 0 for objects."""
        self.keys = keys
        """Keys and indices from a selector object to the offending value; () for a text."""
        self.at_key = at_key
        """The problem is the last of `keys` itself, not its value."""
        self.help = help


def shown(text: str) -> str:
    """Return a piece of the input quoted for a message: control characters escaped, long text cut."""
    return repr(text if len(text) <= VALUE_SHOWN else text[: VALUE_SHOWN - 1] + "…")
