"""The slow path: every finding about the shape of a document that the typed decoder refused, by its kind's JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from ipamc.model.diagnostics import Diagnostic, Place
from ipamc.model.wording import listing, shown, suggestion
from ipamc.read.schema import Schema, at, types
from ipamc.read.syntax import rules
from ipamc.read.syntax.document import Keys
from ipamc.read.syntax.yaml_scalars import meant, quoted

_NOUNS = {
    "string": "text",
    "integer": "an integer",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}
_SHOWN = 60


class Mistyped(NamedTuple):
    """A value of the wrong type. It becomes a finding when its source text is at hand: `version: 1.20` has to be quoted as it stands."""

    at: Place
    value: Any
    wanted: tuple[str, ...]
    """Types as JSON Schema names them."""


class _Refusal(NamedTuple):
    """What the validator found: a keyword of the schema that a value does not keep."""

    keyword: str
    bound: Any
    """The keyword's value."""
    schema: Schema
    value: Any
    path: Keys


def explain(value: Any, schema: Schema, root: Place) -> Iterator[Diagnostic | Mistyped]:
    """Say everything that is wrong with the shape of one document, whose root is at `root`; values of a wrong type are said once.

    Slow: some fifty times the typed decode, and as much again for the first document.
    """
    by_path: dict[Keys, list[_Refusal]] = {}
    for refusal in _refusals(value, schema):
        by_path.setdefault(refusal.path, []).append(refusal)
    for path, refusals in by_path.items():
        here = Place(root.path, root.document, (*root.keys, *path))
        if wrong := next((each for each in refusals if each.keyword == "type"), None):
            yield Mistyped(here, wrong.value, tuple(types(wrong.schema)))
            continue
        said = set[str]()
        for each in (
            refusals
        ):  # the validator says `required` once for each name, and the finding below names them all
            if each.keyword not in said:
                yield from _findings(each, schema, here)
            said.add(each.keyword)


def _refusals(value: Any, schema: Schema) -> Iterator[_Refusal]:
    for found in _validator()(schema).iter_errors(value):
        yield _Refusal(
            found.validator, found.validator_value, found.schema, found.instance, tuple(found.absolute_path)
        )


@cache
def _validator() -> Any:
    """Give the class that validates, to which 1.0 is no integer, as to the typed decoder."""
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - 70 ms that a good document should not cost

    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, each: type(each) is int)
    extend: Any = validators.extend
    return extend(Draft202012Validator, type_checker=checker)


def _findings(refusal: _Refusal, root: Schema, here: Place) -> Iterator[Diagnostic]:
    """Turn a refusal of the validator into findings in our words."""
    keyword, bound, schema, value, path = refusal
    field, text = _field(path), shown(value) if isinstance(value, str) else str(value)[:_SHOWN]
    match keyword:
        case "additionalProperties":
            known = schema.get("properties", {})
            for key in value:
                if key not in known:
                    place = Place(here.path, here.document, (*here.keys, key), key=True)
                    yield rules.unknown_field(place, key, _owner(root, path), known)
        case "required":
            for key in bound:
                if key not in value:
                    yield _missing(here / key, _owner(root, path), key, at(root, (*path, key)))
        case "anyOf":  # used for "at least one of these fields" only
            names = [name for each in bound for name in each["required"]]
            yield rules.wrong_shape(
                here / names[0], f"{_owner(root, path)} has no {listing(names)}", f"write {listing(names)}"
            )
        case "enum":
            yield rules.wrong_shape(
                here, f"{text} is not one of {listing(bound)}", suggestion(str(value), bound)
            )
        case "minimum":
            yield rules.wrong_shape(here, f"{text} is less than {bound}, the least that {field} can be")
        case "maximum":
            yield rules.wrong_shape(here, f"{text} is more than {bound}, the most that {field} can be")
        case "minItems" | "minLength":
            yield rules.wrong_shape(
                here, f"{field} is empty", "leave it out, or give it a value" if bound == 1 else ""
            )
        case "maxItems":
            yield rules.wrong_shape(here, f"{field} has {len(value)} items, and {bound} at most")
        case "uniqueItems":
            yield rules.wrong_shape(here, f"{field} has an item twice", "remove one of the two")
        case _:
            yield rules.wrong_shape(
                here, f"{text} is not {schema.get('title', 'a ' + field)}", _example(field, schema)
            )


def _missing(here: Place, owner: str, key: str, schema: Schema | None) -> Diagnostic:
    return rules.wrong_shape(here, f"{owner} has no {key}", _example(key, schema or {}) or f"add {key}")


def _example(key: str, schema: Schema) -> str:
    """Give a line that can be typed, from the schema's own example or choices."""
    choices = schema.get("enum", [])
    if choices:
        return f"write {key}: {listing(choices)}"
    return f"write for example {key}: {_typed(schema['examples'][0])}" if schema.get("examples") else ""


def _typed(value: Any) -> str:
    """Print an example as one types it."""
    if isinstance(value, list):
        return f"[{', '.join(map(_typed, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_typed(each)}" for key, each in value.items()) + "}"
    return str(value) if not isinstance(value, str) or value.replace("-", "").isalpha() else quoted(value)


def mistyped(found: Mistyped, source: str) -> Diagnostic:
    """Say that a value has the wrong type, and how to write it; `source` is its text in the file, or ""."""
    field = _field(found.at.keys)
    value, wanted = found.value, set(found.wanted)
    wants = f"{field} wants {listing(_NOUNS[each] for each in found.wanted if each != 'null')}"
    name = next((f"{key}: " for key in found.at.keys[-1:] if isinstance(key, str)), "")
    if value is None:
        return rules.wrong_shape(found.at, f"null, and {wants}", "leave the field out, or give it a value")
    if isinstance(value, str):
        better = meant(value, {"integer": int, "boolean": bool}.keys() & wanted)
        if not better and "array" in wanted:
            better = f"[{value[:_SHOWN]}]"
        return rules.wrong_shape(
            found.at,
            f"{source[:_SHOWN] or shown(value)} is text, and {wants}",
            f"write {name}{better}" if better else "",
        )
    if isinstance(value, list | Mapping):
        return rules.wrong_shape(
            found.at, f"a {'list' if isinstance(value, list) else 'mapping'}, and {wants}"
        )
    source = (source or str(value))[:_SHOWN]
    kind = "a truth value" if isinstance(value, bool) else "a number"
    return rules.wrong_shape(
        found.at,
        f"{source} is {kind}, and {wants}",
        f"write {name}{quoted(source)}" if "string" in wanted else "",
    )


def _field(keys: Keys) -> str:
    """Name a value by its path: `blockSize`, or `an item of cidrs`."""
    if not keys:
        return "the document"
    if isinstance(keys[-1], str):
        return keys[-1][:_SHOWN]
    return f"an item of {_field(keys[:-1])}"


def _owner(root: Schema, keys: Keys) -> str:
    """Name a mapping by its path from the document's root: `spec.ipv4`, `nodes[3]`, or the kind."""
    if not keys:
        return str(root.get("title", "the document"))
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key[:_SHOWN]}" for key in keys).removeprefix(
        "."
    )
