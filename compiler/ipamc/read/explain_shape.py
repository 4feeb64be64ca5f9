"""The slow path: every finding about the shape of a refused document, from its kind's JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

from msgspec import Struct

from ipamc.model.diagnostics import MOST, Diagnostic, Place
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


class Mistyped(Struct, frozen=True):
    """A value of the wrong type. Its finding quotes the source text: `version: 1.20`, not the number 1.2."""

    at: Place
    value: Any
    wanted: tuple[str, ...]
    """Types as JSON Schema names them."""


class _Refusal(Struct, frozen=True):
    """A keyword of the schema that a value violates."""

    keyword: str
    bound: Any
    """The keyword's value."""
    schema: Schema
    value: Any
    path: Keys


def explain(value: Any, schema: Schema, root: Place) -> Iterator[Diagnostic | Mistyped]:
    """Yield everything that is wrong with the shape of a document with its root at `root`, a wrong type once.

    It ends after MOST violations of the schema. Costs some fifty times the typed decode, and as much again for
    the first document.
    """
    by_path: dict[Keys, list[_Refusal]] = {}
    for refusal in islice(_refusals(value, schema), MOST):
        by_path.setdefault(refusal.path, []).append(refusal)
    for path, refusals in by_path.items():
        here = Place(root.path, root.document, (*root.keys, *path))
        if wrong := next((refusal for refusal in refusals if refusal.keyword == "type"), None):
            yield Mistyped(here, wrong.value, tuple(types(wrong.schema)))
            continue
        # The validator reports `required` for each missing name; `_findings` names them all.
        once: dict[str, _Refusal] = {}
        for refusal in refusals:
            once.setdefault(refusal.keyword, refusal)
        for refusal in once.values():
            yield from _findings(refusal, schema, here)


def _refusals(value: Any, schema: Schema) -> Iterator[_Refusal]:
    for found in _validator()(schema).iter_errors(value):
        yield _Refusal(
            found.validator, found.validator_value, found.schema, found.instance, tuple(found.absolute_path)
        )


@cache
def _validator() -> Any:
    """Return a validator class to which 1.0 is no integer, as to the typed decoder."""
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - 70 ms that a good document should not cost

    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    extend: Any = validators.extend
    return extend(Draft202012Validator, type_checker=checker)


def _findings(refusal: _Refusal, root: Schema, here: Place) -> Iterator[Diagnostic]:
    """Yield the findings for a refusal of the validator."""
    bound, schema, value, path = refusal.bound, refusal.schema, refusal.value, refusal.path
    field, text = _field(path), shown(value) if isinstance(value, str) else str(value)[:_SHOWN]
    match refusal.keyword:
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
        case "anyOf":  # the schemas use it for "at least one of these fields" only
            names = [name for choice in bound for name in choice["required"]]
            yield rules.wrong_shape(
                here / names[0], f"{_owner(root, path)} has no {listing(names)}", f"write {listing(names)}"
            )
        case "enum":
            yield rules.wrong_shape(
                here, f"{text} is not one of {listing(bound)}", suggestion(str(value), bound)
            )
        case "minimum":
            yield rules.wrong_shape(here, f"{text} is less than {bound}, the minimum of {field}")
        case "maximum":
            yield rules.wrong_shape(here, f"{text} is more than {bound}, the maximum of {field}")
        case "minItems" | "minLength":
            yield rules.wrong_shape(
                here, f"{field} is empty", "leave it out, or give it a value" if bound == 1 else ""
            )
        case "maxItems":
            yield rules.wrong_shape(here, f"{field} has {len(value)} items, more than {bound}")
        case "maxLength":
            yield rules.wrong_shape(here, f"{field} has {len(value):,} characters, more than {bound}")
        case "uniqueItems":
            yield rules.wrong_shape(here, f"{field} has an item twice", "remove one of the two")
        case _:
            yield rules.wrong_shape(
                here, f"{text} is not {schema.get('title', 'a ' + field)}", _example(field, schema)
            )


def _missing(here: Place, owner: str, key: str, schema: Schema | None) -> Diagnostic:
    return rules.wrong_shape(here, f"{owner} has no {key}", _example(key, schema or {}) or f"add {key}")


def _example(key: str, schema: Schema) -> str:
    """Return a line to type, from the schema's own choices or example; "" if it has none."""
    choices = schema.get("enum", [])
    if choices:
        return f"write {key}: {listing(choices)}"
    return f"write for example {key}: {_typed(schema['examples'][0])}" if schema.get("examples") else ""


def _typed(value: Any) -> str:
    """Return an example as a user types it."""
    if isinstance(value, list):
        return f"[{', '.join(map(_typed, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_typed(member)}" for key, member in value.items()) + "}"
    return str(value) if not isinstance(value, str) or value.replace("-", "").isalpha() else quoted(value)


def mistyped(found: Mistyped, source: str) -> Diagnostic:
    """Return the finding for a value of the wrong type; `source` is its text in the file, or ""."""
    field = _field(found.at.keys)
    value, wanted = found.value, set(found.wanted)
    wants = f"{field} must be {listing(_NOUNS[name] for name in found.wanted if name != 'null')}"
    name = next((f"{key}: " for key in found.at.keys[-1:] if isinstance(key, str)), "")
    if value is None:
        return rules.wrong_shape(found.at, f"null: {wants}", "leave the field out, or give it a value")
    if isinstance(value, str):
        better = meant(value, {"integer": int, "boolean": bool}.keys() & wanted)
        if not better and "array" in wanted:
            better = f"[{value[:_SHOWN]}]"
        return rules.wrong_shape(
            found.at,
            f"{source[:_SHOWN] or shown(value)} is text: {wants}",
            f"write {name}{better}" if better else "",
        )
    if isinstance(value, list | Mapping):
        return rules.wrong_shape(found.at, f"a {'list' if isinstance(value, list) else 'mapping'}: {wants}")
    source = (source or str(value))[:_SHOWN]
    kind = "a truth value" if isinstance(value, bool) else "a number"
    return rules.wrong_shape(
        found.at,
        f"{source} is {kind}: {wants}",
        f"write {name}{quoted(source)}" if "string" in wanted else "",
    )


def _field(keys: Keys) -> str:
    """Return the name of a value from its path: `blockSize`, or `an item of cidrs`."""
    if not keys:
        return "the document"
    if isinstance(keys[-1], str):
        return keys[-1][:_SHOWN]
    return f"an item of {_field(keys[:-1])}"


def _owner(root: Schema, keys: Keys) -> str:
    """Return the path of a mapping from the document's root, `spec.ipv4` or `nodes[3]`, or the kind."""
    if not keys:
        return str(root.get("title", "the document"))
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key[:_SHOWN]}" for key in keys).removeprefix(
        "."
    )
