"""Kubernetes' LabelSelector and NodeSelector objects: validated as by the apiserver, then made expressions.

Sources: apimachinery `pkg/apis/meta/v1/helpers.go`, `pkg/labels/selector.go`; component-helpers
`scheduling/corev1/nodeaffinity`; core validation for `matchFields`. A null field counts as absent, as the
apiserver prunes it. An unknown field is refused: a misspelled `matchLabel` would otherwise select every node.

The canonical text is like `labels.Selector.String()`, with sorted requirements: `rack in (r1,r2),!spot`;
`metadata.name=…` for fields; terms sorted and joined by ` || `;
`!all()` for a selector that selects nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ipamc.model.selector import label_syntax
from ipamc.model.selector.expression import (
    Always,
    And,
    Expression,
    Named,
    Never,
    Not,
    Operator,
    Or,
    SelectorError,
    Test,
    shown,
)

Keys = tuple[str | int, ...]

_COUNTS = {  # operator -> the number of values, in words and as bounds
    "In": ("one or more values", 1, None),
    "NotIn": ("one or more values", 1, None),
    "Exists": ("no values", 0, 0),
    "DoesNotExist": ("no values", 0, 0),
    "Gt": ("exactly one value", 1, 1),
    "Lt": ("exactly one value", 1, 1),
}
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_MEANT = {"equals": "In", "=": "In", "==": "In", "!=": "NotIn", "has": "Exists", ">": "Gt", "<": "Lt"} | {
    name.lower(): name for name in _NODE_OPERATORS
}


class Parsed(Struct, frozen=True):
    """A selector object, or a part of it, as canonical text and as expression."""

    canonical: str
    expression: Expression


def read_label_selector(obj: Mapping[str, object] | None) -> Parsed:
    """Parse a LabelSelector: all parts must hold; {} selects every node, null none. Raises SelectorError."""
    if obj is None:
        return Parsed("!all()", Never("a null LabelSelector selects nothing"))
    fields = _fields(obj, (), "a LabelSelector", ("matchLabels", "matchExpressions"), misplaced_labels=True)
    requirements = [
        *_match_labels(fields.get("matchLabels"), ("matchLabels",)),
        *_match_expressions(fields.get("matchExpressions"), ("matchExpressions",), _LABEL_OPERATORS),
    ]
    return _conjunction(requirements) if requirements else Parsed("all()", Always())


def read_node_selector(obj: Mapping[str, object]) -> Parsed:
    """Parse a NodeSelector: all of one term must hold; empty ones select nothing. Raises SelectorError."""
    fields = _fields(obj, (), "a NodeSelector", ("nodeSelectorTerms",))
    if fields.get("nodeSelectorTerms") is None:
        help_ = "write nodeSelectorTerms: [{matchExpressions: […]}]"
        raise SelectorError("a NodeSelector without nodeSelectorTerms", help=help_)
    terms = [
        parsed
        for index, term in enumerate(_items(fields["nodeSelectorTerms"], ("nodeSelectorTerms",)))
        if (parsed := _term(term, ("nodeSelectorTerms", index)))
    ]
    if not terms:
        return Parsed("!all()", Never("a NodeSelector with only empty terms selects nothing"))
    if len(terms) == 1:
        return terms[0]
    canonical = " || ".join(sorted(term.canonical for term in terms))
    return Parsed(canonical, Or(tuple(term.expression for term in terms)))


def _term(obj: object, keys: Keys) -> Parsed | None:
    fields = _fields(obj, keys, "a term", ("matchExpressions", "matchFields"))
    requirements = [
        *_match_expressions(fields.get("matchExpressions"), (*keys, "matchExpressions"), _NODE_OPERATORS),
        *_match_fields(fields.get("matchFields"), (*keys, "matchFields")),
    ]
    return _conjunction(requirements) if requirements else None


def _conjunction(requirements: Sequence[Parsed]) -> Parsed:
    parts = tuple(requirement.expression for requirement in requirements)
    return Parsed(
        ",".join(sorted(requirement.canonical for requirement in requirements)),
        And(parts) if len(parts) > 1 else parts[0],
    )


def _match_labels(obj: object, keys: Keys) -> Iterator[Parsed]:
    for key, value in _mapping(obj, keys, "matchLabels").items():
        _check_key(key, (*keys, key), at_key=True)
        text = _value(value, (*keys, key))
        yield Parsed(f"{key} in ({text})", Test(key, Operator.EQUAL, (text,)))


def _match_expressions(obj: object, keys: Keys, operators: Sequence[str]) -> Iterator[Parsed]:
    for index, item in enumerate(_items(obj, keys)):
        at = (*keys, index)
        key, operator, values = _requirement(item, at, operators)
        _check_key(key, (*at, "key"))
        for place, value in enumerate(values):
            _value(value, (*at, "values", place))
            if operator in {"Gt", "Lt"} and label_syntax.integer(value) is None:
                problem, help_ = f"{shown(value)} is not an integer", f"{operator} compares 64-bit integers"
                raise SelectorError(problem, keys=(*at, "values", place), help=help_)
        some = tuple(sorted(set(values)))
        match operator:
            case "In":
                yield Parsed(f"{key} in ({','.join(some)})", Test(key, Operator.IN, some))
            case "NotIn":
                yield Parsed(f"{key} notin ({','.join(some)})", Test(key, Operator.NOT_IN, some))
            case "Exists":
                yield Parsed(key, Test(key, Operator.HAS))
            case "DoesNotExist":
                yield Parsed(f"!{key}", Not(Test(key, Operator.HAS)))
            case "Gt":
                yield Parsed(f"{key}>{some[0]}", Test(key, Operator.ABOVE, some))
            case _:
                yield Parsed(f"{key}<{some[0]}", Test(key, Operator.BELOW, some))


def _match_fields(obj: object, keys: Keys) -> Iterator[Parsed]:
    for index, item in enumerate(_items(obj, keys)):
        at = (*keys, index)
        key, operator, values = _requirement(item, at, _FIELD_OPERATORS)
        if key != "metadata.name":
            problem = f"{shown(key)} is not a field to select nodes by"
            raise SelectorError(problem, keys=(*at, "key"), help="write metadata.name")
        if len(values) != 1:
            problem = f"{len(values)} values: matchFields takes exactly one"
            raise SelectorError(problem, keys=(*at, "values"), help="write one term for each name")
        (name,) = values
        # An invalid name is quoted, so that its text cannot look like another requirement.
        text = repr(name) if label_syntax.subdomain_problem(name) else name
        same = operator == "In"
        yield Parsed(f"{key}{'=' if same else '!='}{text}", Named(name) if same else Not(Named(name)))


def _requirement(obj: object, keys: Keys, operators: Sequence[str]) -> tuple[str, str, list[str]]:
    """Return (key, operator, values) of a requirement with a known operator and its number of values."""
    fields = _fields(obj, keys, "a requirement", ("key", "operator", "values"))
    key, operator = (_text(fields.get(name), (*keys, name), name) for name in ("key", "operator"))
    if operator not in operators:
        meant = _MEANT.get(operator.lower())
        help_ = f"write {meant}" if meant in operators else f"write one of {', '.join(operators)}"
        problem = f"{shown(operator)} is not an operator here"
        raise SelectorError(problem, keys=(*keys, "operator"), help=help_)
    values = [
        _text(value, (*keys, "values", index), "value")
        for index, value in enumerate(_items(fields.get("values"), (*keys, "values")))
    ]
    words, least, most = _COUNTS[operator]
    if len(values) < least or (most is not None and len(values) > most):
        raise SelectorError(
            f"{len(values)} values: {operator} takes {words}",
            keys=(*keys, "values") if "values" in fields else keys,
            help=f"write values: [{'a' if most is None else 5}]" if least else "remove values",
        )
    return key, operator, values


def _check_key(key: str, keys: Keys, *, at_key: bool = False) -> None:
    if problem := label_syntax.label_key_problem(key):
        raise SelectorError(f"{shown(key)} is not a label key: it {problem}", keys=keys, at_key=at_key)


def _value(obj: object, keys: Keys) -> str:
    text = _text(obj, keys, "value")
    if problem := label_syntax.label_value_problem(text):
        raise SelectorError(f"{shown(text)} is not a label value: it {problem}", keys=keys)
    return text


def _text(obj: object, keys: Keys, name: str) -> str:
    if isinstance(obj, str):
        return obj
    if obj is None:
        owner = keys[:-1] if isinstance(keys[-1], str) else keys
        raise SelectorError(f"a {name} is missing", keys=owner, help=f"write the {name}")
    if isinstance(obj, bool):
        raise SelectorError(f"{str(obj).lower()} is not text", keys=keys, help=f'write "{str(obj).lower()}"')
    kinds = {"a number": int | float, "a list": list, "a mapping": Mapping}
    kind = next((noun for noun, types in kinds.items() if isinstance(obj, types)), "a value")
    help_ = "" if isinstance(obj, list | Mapping) else "write it in quotes"
    raise SelectorError(f"the {name} must be text, not {kind}", keys=keys, help=help_)


def _mapping(obj: object, keys: Keys, name: str) -> Mapping[str, object]:
    if obj is None:
        return {}
    if not isinstance(obj, Mapping):
        raise SelectorError(f"{name} is not a mapping", keys=keys)
    if not all(isinstance(key, str) for key in obj):
        raise SelectorError(f"{name} has a key that is not text", keys=keys, help="write its keys in quotes")
    return obj


def _fields(
    obj: object, keys: Keys, name: str, known: Sequence[str], *, misplaced_labels: bool = False
) -> Mapping[str, object]:
    """Return an object's fields. With `misplaced_labels` an unknown one with a scalar counts as a label."""
    if obj is None:
        raise SelectorError(f"{name} is null", keys=keys, help="remove it, or write what it selects")
    fields = _mapping(obj, keys, name)
    for key in fields:
        if key not in known:
            label = misplaced_labels and not isinstance(fields[key], Mapping | list)
            help_ = f"write matchLabels: {{{key}: …}}" if label else f"it has {', '.join(known)}"
            problem = f"{shown(key)} is not a field of {name}"
            raise SelectorError(problem, keys=(*keys, key), at_key=True, help=help_)
    return fields


def _items(obj: object, keys: Keys) -> Sequence[object]:
    if obj is None:
        return ()
    if not isinstance(obj, list | tuple):
        raise SelectorError(f"{keys[-1]} is not a list", keys=keys)
    return obj
