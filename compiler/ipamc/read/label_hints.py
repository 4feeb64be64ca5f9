"""What people write in the place of a selector object, and how it is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain
from typing import Any

from ipamc.model.selector.label_syntax import label_key_problem, label_value_problem
from ipamc.model.wording import near
from ipamc.read.syntax.document import Keys
from ipamc.read.syntax.yaml_scalars import quoted

_FIELDS = frozenset({"matchLabels", "matchExpressions"})
_MOST = 20
"""Labels that are written out."""
EXAMPLE = 'rack == "a", or {matchLabels: {rack: a}}'


def is_selector(known: Collection[str]) -> bool:
    """Tell whether these are the fields of a selector object."""
    return _FIELDS.issubset(known)


def as_selector(value: Mapping[str, Any], known: Collection[str], field: str) -> str:
    """Return how labels that stand right in a selector are written; "" where they are not only that."""
    labels = {key: label for key, label in value.items() if key not in known}
    there = value.get("matchLabels", {})
    if not 0 < len(labels) <= _MOST or not isinstance(there, Mapping) or len(there) > _MOST:
        return ""
    if any(near(key, known, 1) or label_key_problem(key) for key in labels):
        return ""
    single = {**there, **{key: label for key, label in labels.items() if not isinstance(label, list)}}
    many = {key: label for key, label in labels.items() if isinstance(label, list)}
    if not all(map(_is_value, single.values())) or not all(
        map(_is_value, chain.from_iterable(many.values()))
    ):
        return ""
    parts = []
    if single:
        parts.append(
            f"matchLabels: {{{', '.join(f'{key}: {_typed(label)}' for key, label in single.items())}}}"
        )
    if many:
        parts.append(f"matchExpressions: [{', '.join(_expression(key, some) for key, some in many.items())}]")
    return f"write {field}: {{{', '.join(parts)}}}"


def of_a_term(value: Mapping[str, Any]) -> str:
    """Return how `matchLabels` is written in a term of a NodeSelector, which has none."""
    labels = value.get("matchLabels")
    if (
        not isinstance(labels, Mapping)
        or not 0 < len(labels) <= _MOST
        or not all(map(_is_value, labels.values()))
    ):
        return "write matchExpressions"
    return (
        f"write matchExpressions: [{', '.join(_expression(key, [label]) for key, label in labels.items())}]"
    )


def other_shape(keys: Keys, value: object) -> str:
    """Return how a selector or a part of it is written that is of another type; "" for any other field."""
    match keys[-1:]:
        case (str(field),) if field.endswith("elector"):
            if isinstance(value, bool | int | float):
                return f"leave it out for every node, or write for example {field}: {EXAMPLE}"
            return f"write for example {field}: {EXAMPLE}"
        case ("matchLabels",):
            return "write for example matchLabels: {rack: a}"
        case ("matchExpressions",):
            return "write a list, for example matchExpressions: [{key: rack, operator: In, values: [a]}]"
    return ""


def _is_value(value: object) -> bool:
    return isinstance(value, str | bool | int | float) and not label_value_problem(_text(value))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _typed(value: object) -> str:
    return (
        _text(value) if isinstance(value, str) and value.replace("-", "").isalpha() else quoted(_text(value))
    )


def _expression(key: str, values: Collection[object]) -> str:
    return f"{{key: {key}, operator: In, values: [{', '.join(map(_typed, values))}]}}"
