"""Items in, typed structs out: the fast path. The slow path has every finding about a refused document, from its JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from ipamc.model.diagnostics import MOST, Diagnostic, Findings, Place
from ipamc.model.wording import listing, nearest, shown
from ipamc.read import shape_hints
from ipamc.read.kinds import Item
from ipamc.read.schema import Schema, Schemas, at, is_map, types, wants_text
from ipamc.read.shape_hints import as_selector, is_selector, of_a_term, other_shape
from ipamc.read.syntax import rules
from ipamc.read.syntax.document import Keys, Odd
from ipamc.read.syntax.yaml_scalars import quoted, readings


def shape(item: Item, schemas: Schemas, late: list[Mistyped], found: Findings) -> Any:
    """Return an item as its kind's struct, or None and report everything that is wrong with it.

    `late` receives the problems whose finding needs the source text, `found` all others. Raises Enough.
    """
    for odd in item.odd:
        found.extend(_odd(odd, schemas[item.kind.schema], item.at))
    try:
        return msgspec.convert(item.value, item.kind.shape)
    except msgspec.ValidationError:
        problems = list(islice(explain(item.value, schemas[item.kind.schema], item.at), MOST))
    late += [problem for problem in problems if isinstance(problem, Mistyped)]
    found.extend(problem for problem in problems if isinstance(problem, Diagnostic))
    if not problems:  # the two paths disagree, which a test rules out; refuse rather than guess
        found.append(
            rules.wrong_shape(item.at, f"the document does not have the shape of a {item.kind.name}")
        )
    return None


def _odd(odd: Odd, schema: Schema, root: Place) -> Iterator[Diagnostic]:
    """Yield findings for an unquoted scalar that should be text: a key that the user chose, or a value."""
    at = Place(root.path, root.document, (*root.keys, *odd.keys), key=odd.key)
    if odd.key and is_map(schema, odd.within):
        if odd.agreed:
            yield rules.wrong_shape(
                at,
                f"the key {odd.text} is not text" if odd.text else "an empty key is not text",
                f"write {quoted(odd.text)}",
            )
        else:
            yield rules.ambiguous_scalar(at, odd.text, readings(odd.text), quoted(odd.text))
    elif not odd.key and wants_text(schema, odd.keys):
        key = odd.last
        yield rules.ambiguous_scalar(
            at,
            odd.text,
            readings(odd.text),
            f"{key}: {quoted(odd.text)}" if isinstance(key, str) else quoted(odd.text),
        )


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
    better: str = ""
    """What to write instead."""


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

    It ends after twice MOST violations of the schema: a misspelt field is two of them, and one finding. Costs some fifty times the typed decode, and as much again for
    the first document.
    """
    by_path: dict[Keys, list[_Refusal]] = {}
    for refusal in islice(_refusals(value, schema), 2 * MOST):
        by_path.setdefault(refusal.path, []).append(refusal)
    for path, refusals in by_path.items():
        here = Place(root.path, root.document, (*root.keys, *path))
        if wrong := next((refusal for refusal in refusals if refusal.keyword == "type"), None):
            wanted, name = tuple(types(wrong.schema)), _name(path)
            yield Mistyped(
                here,
                wrong.value,
                wanted,
                other_shape(path, wrong.value)
                or shape_hints.mistyped(name, wrong.value, wanted, wrong.schema, schema),
            )
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
    example = shape_hints.example(_name(path), schema, root)
    match refusal.keyword:
        case "additionalProperties":
            yield from _unknown_fields(value, schema, root, here, path)
        case "required":
            misspelt = [nearest(other, bound) for other in _unknown(value, schema)]
            for key in bound:
                if key not in value and key not in misspelt:
                    better = shape_hints.example(key, at(root, (*path, key)) or {}, root) or f"add {key}"
                    yield rules.wrong_shape(here / key, f"{_owner(root, path)} has no {key}", better)
        case "anyOf":  # the schemas use it for "at least one of these fields" only
            names = [name for choice in bound for name in choice["required"]]
            yield rules.wrong_shape(
                here / names[0], f"{_owner(root, path)} has no {listing(names)}", f"write {listing(names)}"
            )
        case "enum":
            better = shape_hints.choice(str(value), field, bound, example)
            yield rules.wrong_shape(here, f"{text} is not one of {listing(bound)}", better)
        case "minimum":
            yield rules.wrong_shape(here, f"{text} is less than {bound}, the minimum of {field}", example)
        case "maximum":
            better = _size_of(field, value, bound) or example
            yield rules.wrong_shape(here, f"{text} is more than {bound}, the maximum of {field}", better)
        case "minItems" | "minLength":
            needed = _name(path) in (at(root, path[:-1]) or {}).get("required", ())
            spare = "leave it out, or give it a value" if bound == 1 else ""
            yield rules.wrong_shape(here, f"{field} is empty", example if needed else spare)
        case "maxItems":
            yield rules.wrong_shape(here, f"{field} has {len(value)} items, more than {bound}")
        case "maxLength":
            yield rules.wrong_shape(here, f"{field} has {len(value):,} characters, more than {bound}")
        case "uniqueItems":
            yield rules.wrong_shape(here, f"{field} has an item twice", "remove one of the two")
        case _:
            yield rules.wrong_shape(here, f"{text} is not {schema.get('title', 'a ' + field)}", example)


def _unknown_fields(
    value: Mapping[str, Any], schema: Schema, root: Schema, here: Place, path: Keys
) -> Iterator[Diagnostic]:
    """Yield a finding for each unknown field; one for labels that stand right in a selector."""
    known, kind = schema.get("properties", {}), str(root.get("title"))
    unknown = _unknown(value, schema)
    labels = as_selector(value, known, _field(path)) if is_selector(known) else ""
    for key in unknown[:1] if labels else unknown:
        in_term = of_a_term(value) if key == "matchLabels" and "matchFields" in known else ""
        better = labels or in_term or shape_hints.unknown(key, value[key], kind, path, schema, root)
        place = Place(here.path, here.document, (*here.keys, key), key=True)
        yield rules.unknown_field(place, key, _owner(root, path), known, better)


def _unknown(value: Mapping[str, Any], schema: Schema) -> list[str]:
    """Return the fields that are refused because the schema does not have them."""
    allowed = schema.get("additionalProperties") is not False
    return [] if allowed else [key for key in value if key not in schema.get("properties", {})]


_SIZES_OF_IPV6 = range(33, 129)
"""Prefix lengths that only blocks of IPv6 have."""


def _size_of(field: str, value: Any, bits: int) -> str:
    """Return the prefix length for a block size that is a number of addresses; "" for others."""
    if field != "blockSize" or value & (value - 1):
        return ""
    size = bits - (value.bit_length() - 1)
    ipv6 = "; blocks of IPv6 are written under ipv6" if value in _SIZES_OF_IPV6 else ""
    return f"write blockSize: {size}, which is {value:,} addresses{ipv6}" if size > 0 else ""


def mistyped(found: Mistyped, source: str) -> Diagnostic:
    """Return the finding for a value of the wrong type; `source` is its text in the file, or ""."""
    field = _field(found.at.keys)
    value, wanted = found.value, set(found.wanted)
    wants = f"{field} must be {listing(_NOUNS[name] for name in found.wanted if name != 'null')}"
    if value is None:
        return rules.wrong_shape(
            found.at,
            f"{'null' if source else 'no value'}: {wants}",
            found.better
            or f"{'leave the field out' if _name(found.at.keys) else 'remove it'}, or give it a value",
        )
    if isinstance(value, str):
        return rules.wrong_shape(
            found.at, f"{source[:_SHOWN] or shown(value)} is text: {wants}", found.better
        )
    if isinstance(value, list | Mapping):
        return rules.wrong_shape(
            found.at, f"a {'list' if isinstance(value, list) else 'mapping'}: {wants}", found.better
        )
    source = (source or str(value))[:_SHOWN]
    kind = "a truth value" if isinstance(value, bool) else "a number"
    if isinstance(value, float) and source.lstrip("+-").isdecimal():
        kind = "too large a number"
    better = found.better
    if "string" in wanted and better.endswith(quoted(str(value))):  # the text of the file: 1.20 is not "1.2"
        better = better.removesuffix(quoted(str(value))) + quoted(source)
    return rules.wrong_shape(found.at, f"{source} is {kind}: {wants}", better)


def _name(keys: Keys) -> str:
    """Return the field of a value; "" for an item of a list."""
    return keys[-1] if keys and isinstance(keys[-1], str) else ""


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
