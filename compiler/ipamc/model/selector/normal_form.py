"""Expressions in negation normal form, with all conditions on one label merged into one.

A test by equality, set or presence is a set of outcomes of one label: some values, or all but some, with or
without the label's absence. Such sets are closed under and, or and not, so the conditions on one label in a
conjunction or alternative become one condition. Other tests (`contains`, `Gt`, the node's name, …) stay
unchanged. Nothing is distributed: the form is no larger than its source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar, assert_never

from msgspec import Struct

from ipamc.model.selector.expression import (
    Always,
    And,
    Expression,
    Named,
    Never,
    Not,
    Operator,
    Or,
    Test,
    shown,
)
from ipamc.model.selector.label_syntax import label_key_problem, label_value_problem

K = TypeVar("K")


class Outcomes(Struct, frozen=True):
    """The values that a label may have, and whether it may be absent."""

    members: frozenset[str]
    listed: bool
    """`members` are all allowed values; False: all forbidden values."""
    absent: bool
    """The label may be missing."""

    def opposite(self) -> Outcomes:
        """Return the complement."""
        return Outcomes(self.members, not self.listed, not self.absent)

    def both(self, other: Outcomes) -> Outcomes:
        """Return the intersection."""
        absent = self.absent and other.absent
        if self.listed and other.listed:
            return Outcomes(self.members & other.members, listed=True, absent=absent)
        if self.listed:
            return Outcomes(self.members - other.members, listed=True, absent=absent)
        if other.listed:
            return Outcomes(other.members - self.members, listed=True, absent=absent)
        return Outcomes(self.members | other.members, listed=False, absent=absent)

    def apart(self, other: Outcomes) -> bool:
        """Return whether the intersection is empty. O(values of the smaller)."""
        if self.absent and other.absent:
            return False
        if self.listed and other.listed:
            return self.members.isdisjoint(other.members)
        if self.listed:
            return self.members <= other.members
        return other.listed and other.members <= self.members

    def either(self, other: Outcomes) -> Outcomes:
        """Return the union."""
        return self.opposite().both(other.opposite()).opposite()


def apart(one: Mapping[K, Outcomes], other: Mapping[K, Outcomes]) -> bool:
    """Return whether nothing satisfies both conditions: for some label they have no common outcome."""
    few, many = sorted((one, other), key=len)
    return any(key in many and outcomes.apart(many[key]) for key, outcomes in few.items())


ANYTHING = Outcomes(frozenset(), listed=False, absent=True)
NOTHING = ANYTHING.opposite()


class Condition(Struct, frozen=True):
    """A label has one of some outcomes, which are neither all nor none."""

    key: str
    outcomes: Outcomes


class OtherTest(Struct, frozen=True):
    """A test that is no set of outcomes, or its opposite."""

    test: Test | Named
    negated: bool


class Joint(Struct, frozen=True):
    """Two or more parts, none of them a Joint of the same kind: all must hold (`every`), or one."""

    every: bool
    parts: tuple[Normal, ...]


Normal = Always | Never | Condition | OtherTest | Joint


def normal(expression: Expression, *, negated: bool = False) -> Normal:
    """Return the normal form of an expression or of its opposite. It is equivalent for all labels."""
    match expression:
        case Always():
            return Never("it is the opposite of all()") if negated else expression
        case Never():
            return Always() if negated else expression
        case Named():
            return OtherTest(expression, negated)
        case Test():
            values = frozenset(expression.values)
            match expression.operator:
                case Operator.EQUAL | Operator.IN:
                    outcomes = Outcomes(values, listed=True, absent=False)
                case Operator.UNEQUAL | Operator.NOT_IN:
                    outcomes = Outcomes(values, listed=False, absent=True)
                case Operator.HAS:
                    outcomes = Outcomes(frozenset(), listed=False, absent=False)
                case _:
                    return OtherTest(expression, negated)
            return _condition(expression.key, outcomes.opposite() if negated else outcomes)
        case Not(part):
            return normal(part, negated=not negated)
        case And() | Or():
            every = isinstance(expression, And) is not negated
            members = _members(expression, negated, every)
            return _join([normal(part, negated=opposite) for part, opposite in members], every=every)
        case _:
            assert_never(expression)


def _members(expression: Expression, negated: bool, every: bool) -> Iterator[tuple[Expression, bool]]:  # noqa: FBT001 - as they are waiting
    """Yield the parts of a conjunction, or of alternatives, and those of parts of its kind, in order.
    Each comes with whether its opposite is meant. Joining level by level would copy all parts at each level.
    """
    waiting = [(expression, negated)]
    while waiting:
        part, opposite = waiting.pop()
        match part:
            case Not(inner):
                waiting.append((inner, not opposite))
            case And(parts) | Or(parts) if (isinstance(part, And) is not opposite) is every:
                waiting += ((each, opposite) for each in reversed(parts))
            case _:
                yield part, opposite


def _condition(key: str, outcomes: Outcomes) -> Normal:
    if outcomes == ANYTHING:
        return Always()
    if outcomes == NOTHING:
        return Never(f"no value of {key} satisfies it")
    return Condition(key, outcomes)


def _join(parts: Iterable[Normal], *, every: bool) -> Normal:
    """Join parts: flatten them, merge conditions on one label, drop neutral parts, stop at a deciding one."""
    flat: list[Normal] = []
    by_key: dict[str, list[Outcomes]] = {}
    for part in parts:
        for member in part.parts if isinstance(part, Joint) and part.every is every else (part,):
            if isinstance(member, Condition):
                by_key.setdefault(member.key, []).append(member.outcomes)
            else:
                flat.append(member)
    merge = Outcomes.both if every else Outcomes.either
    flat += [_condition(key, _merged(by_key[key], merge)) for key in sorted(by_key)]
    decides, neutral = (Never, Always) if every else (Always, Never)
    for part in flat:
        if isinstance(part, decides):
            return part
    kept = [part for part in flat if not isinstance(part, neutral)]
    if len(kept) == 1:
        return kept[0]
    if kept:
        return Joint(every, tuple(kept))
    return flat[0]  # all are neutral: return the first of several reasons why an alternative cannot hold


def _merged(many: list[Outcomes], merge: Callable[[Outcomes, Outcomes], Outcomes]) -> Outcomes:
    """Merge in pairs: one after another, a long chain of `a != …` would copy a growing set each time."""
    while len(many) > 1:
        odd = many[-1:] if len(many) % 2 else []
        many = [*map(merge, many[::2], many[1::2]), *odd]
    return many[0]


Entry = dict[str, object]
"""One entry of `matchExpressions`."""


def label_selector(form: Normal) -> dict[str, object] | None:
    """Return an equivalent LabelSelector, `{}` for every node, or None if there is none."""
    if isinstance(form, Always):
        return {}
    labels: dict[str, str] = {}
    entries: list[Entry] = []
    for part in form.parts if isinstance(form, Joint) and form.every else (form,):
        part_entries = _entries(part) if isinstance(part, Condition) else None
        match part_entries:
            case None:
                return None
            case [{"key": str(key), "operator": "In", "values": [str(value)]}]:
                labels[key] = value
            case _:
                entries += part_entries
    selector: dict[str, object] = {}
    if labels:
        selector["matchLabels"] = dict(sorted(labels.items()))
    if entries:
        selector["matchExpressions"] = sorted(entries, key=lambda it: (str(it["key"]), str(it["operator"])))
    return selector


def outcomes(form: Normal) -> dict[str, Outcomes]:
    """Return the conditions on single labels that a node must satisfy, by key."""
    parts = form.parts if isinstance(form, Joint) and form.every else (form,)
    return {part.key: part.outcomes for part in parts if isinstance(part, Condition)}


def negated_requirement(expression: Expression) -> Entry | None:
    """Return the one entry of `matchExpressions` that means the opposite, or None if there is none."""
    form = normal(expression, negated=True)
    entries = _entries(form) if isinstance(form, Condition) else None
    return entries[0] if entries is not None and len(entries) == 1 else None


def _entries(condition: Condition) -> list[Entry] | None:
    """Return one or two entries that together are equivalent to one label's outcomes, or None."""
    key, outcomes = condition.key, condition.outcomes
    if label_key_problem(key) or any(map(label_value_problem, outcomes.members)):
        return None
    values = sorted(outcomes.members)
    if outcomes.listed:
        if outcomes.absent:  # "absent, or one of these values" would need an or
            return None if values else [{"key": key, "operator": "DoesNotExist"}]
        return [{"key": key, "operator": "In", "values": values}]
    entries: list[Entry] = [] if outcomes.absent else [{"key": key, "operator": "Exists"}]
    return [*entries, {"key": key, "operator": "NotIn", "values": values}] if values else entries


Sign = tuple[str, str]
"""A label and its value. The label "" stands for the node's name: no label is empty."""


def sets_of_signs(form: Normal) -> Iterator[frozenset[Sign]]:
    """Yield sets of signs; every selected node shows one of each. O(form)."""
    match form:
        case Condition(key, outcomes) if outcomes.listed and not outcomes.absent:
            yield frozenset((key, value) for value in outcomes.members)
        case OtherTest(Named(name), negated=False):
            yield frozenset({("", name)})
        case Joint(every=True, parts=parts):
            for part in parts:
                yield from sets_of_signs(part)
        case Joint(parts=parts):  # the smallest set of each alternative, if all have one
            smallest = [found for part in parts if (found := min(sets_of_signs(part), key=len, default=None))]
            if len(smallest) == len(parts):
                yield frozenset[Sign]().union(*smallest)
        case _:
            return


def impossible(form: Normal) -> str:
    """Return why no node satisfies a form, or "" if one may: a reason is certain, "" proves nothing."""
    match form:
        case Never(why):
            return why
        case Joint(every, parts):
            reasons = [*map(impossible, parts)]
            return next(filter(None, reasons), "") if every or all(reasons) else ""
        case Condition(key, outcomes) if not outcomes.absent:
            if problem := label_key_problem(key):
                return f"no node can have the label {shown(key)}, which {problem}"
            problems = {value: label_value_problem(value) for value in sorted(outcomes.members)}
            if outcomes.listed and all(problems.values()):
                value, problem = next(iter(problems.items()))
                return f"no label can have the value {shown(value)}, which {problem}"
    return ""
