"""Decodes items into typed structs, fast. After a failure the schema finds all mistakes of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from ipamc.model.diagnostics import Diagnostic, Findings, Place
from ipamc.model.limits import MOST_FINDINGS, VALUE_SHOWN
from ipamc.model.wording import listing, nearest, shown
from ipamc.read import hints, rules
from ipamc.read.kinds import InputItem
from ipamc.read.schema import Schema, Schemas, at, is_map, types, wants_text
from ipamc.read.syntax.document import Keys, Odd, quoted, readings


def shape(item: InputItem, schemas: Schemas, late: list[Mistyped], found: Findings) -> Any:
    """Return an item as its kind's struct; None, and a report of all its mistakes, if that fails.
    `late` receives the problems whose finding needs the source text, `found` all others. Raises Enough.
    """
    for odd in item.odd:
        found.extend(_odd(odd, schemas[item.kind.schema], item.at))
    try:
        return msgspec.convert(item.value, item.kind.shape)
    except msgspec.ValidationError:
        problems = list(islice(explain(item.value, schemas[item.kind.schema], item.at), MOST_FINDINGS))
    late += [problem for problem in problems if isinstance(problem, Mistyped)]
    found.extend(problem for problem in problems if isinstance(problem, Diagnostic))
    if not problems:  # the decoder and the schema disagree, which a test rules out: refuse rather than guess
        found.append(rules.wrong_shape(item.at, f"the document does not match kind {item.kind.name}"))
    return None


def _odd(odd: Odd, schema: Schema, root: Place) -> Iterator[Diagnostic]:
    """Yield findings for unquoted scalars that should be text: keys that the user chose, or values."""
    at, better = Place(root.path, root.document, (*root.keys, *odd.keys), key=odd.key), quoted(odd.text)
    if odd.key and odd.agreed and is_map(schema, odd.within):
        problem = f"the key {odd.text} is not text" if odd.text else "an empty key is not text"
        yield rules.wrong_shape(at, problem, f"write {better}")
    elif is_map(schema, odd.within) if odd.key else wants_text(schema, odd.keys):
        field = f"{odd.last}: " if isinstance(odd.last, str) and not odd.key else ""
        yield rules.ambiguous_scalar(at, odd.text, readings(odd.text), field + better)


_NOUNS = {
    "string": "text",
    "integer": "an integer",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}


class Mistyped(Struct, frozen=True):
    """A value of the wrong type. Its finding quotes the source text: `version: 1.20`, not the number 1.2."""

    at: Place
    value: Any
    wanted: tuple[str, ...]
    """Types as JSON Schema names them."""
    better: str = ""
    """What to write instead."""


def explain(value: Any, schema: Schema, root: Place) -> Iterator[Diagnostic | Mistyped]:
    """Yield everything that is wrong with the shape of a document with its root at `root`, a wrong type once.
    Ends after twice MOST_FINDINGS violations of the schema: a misspelt field is two of them, and one finding.
    Takes about 50 times as long as the typed decode, and as much again for the first document.
    """
    by_path: dict[Keys, list[Any]] = {}
    for refusal in islice(_validator()(schema).iter_errors(value), 2 * MOST_FINDINGS):
        by_path.setdefault(tuple(refusal.absolute_path), []).append(refusal)
    for path, refusals in by_path.items():
        here = Place(root.path, root.document, (*root.keys, *path))
        if wrong := next((refusal for refusal in refusals if refusal.validator == "type"), None):
            given, wanted, name = wrong.instance, tuple(types(wrong.schema)), _name(path)
            better = hints.mistyped(name, given, wanted, wrong.schema, schema)
            yield Mistyped(here, given, wanted, better)
            continue
        # The validator reports `required` for each missing name; `_findings` names them all.
        for refusal in {refusal.validator: refusal for refusal in reversed(refusals)}.values():
            yield from _findings(refusal, path, schema, here)


@cache
def _validator() -> Any:
    """Return a validator class to which 1.0 is not an integer, like the typed decoder."""
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - it takes 70 ms

    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    extend: Any = validators.extend
    return extend(Draft202012Validator, type_checker=checker)


def _findings(refusal: Any, path: Keys, root: Schema, here: Place) -> Iterator[Diagnostic]:
    bound, schema, value = refusal.validator_value, refusal.schema, refusal.instance
    field, text = _field(path), shown(value) if isinstance(value, str) else str(value)[:VALUE_SHOWN]
    way_out = hints.example(_name(path), schema, root)
    match refusal.validator:
        case "additionalProperties":
            yield from _unknown_fields(value, schema, root, here, path)
            return
        case "required":
            odd = _unknown(value, schema)
            advised = " ".join(hints.unknown(each, value[each], path, schema, root) for each in odd)
            for key in bound:
                if key not in value and f"write {key}" not in advised and repr(key) not in advised:
                    better = hints.example(key, at(root, (*path, key)) or {}, root) or f"add {key}"
                    yield rules.wrong_shape(here / key, f"{_owner(root, path)} has no {key}", better)
            return
        case "anyOf":  # the schemas use it for "at least one of these fields" only
            names = [name for choice in bound for name in choice["required"]]
            if any(nearest(other, names) for other in _unknown(value, schema)):
                return  # it is misspelt, which is a finding already
            here /= names[0]
            problem, way_out = f"{_owner(root, path)} has no {listing(names)}", f"write {listing(names)}"
        case "enum":
            problem = f"{text} is not one of {listing(bound)}"
            way_out = hints.choice(str(value), field, bound, way_out)
        case "minimum":
            problem = f"{text} is less than {bound}, the minimum of {field}"
        case "maximum":
            problem = f"{text} is more than {bound}, the maximum of {field}"
            way_out = (hints.block_size(value, bound) if field == "blockSize" else "") or way_out
        case "minItems" | "minLength":
            above = at(root, path[:-1]) or {}
            needed = any(_name(path) in part.get("required", ()) for part in (above, *above.get("anyOf", ())))
            spare = "remove it, or give it a value" if bound == 1 else ""
            problem, way_out = f"{field} is empty", way_out if needed else spare
        case "maxItems":
            problem, way_out = f"{field} has {len(value)} items, more than {bound}", ""
        case "maxLength":
            problem, way_out = f"{field} has {len(value):,} characters, more than {bound}", ""
        case "uniqueItems":
            problem, way_out = f"{field} contains an item twice", "remove one of the two"
        case _:
            problem = f"{text} is not {schema.get('title', 'a ' + field)}"
    yield rules.wrong_shape(here, problem, way_out)


def _unknown_fields(
    value: Mapping[str, Any], schema: Schema, root: Schema, here: Place, path: Keys
) -> Iterator[Diagnostic]:
    """Yield a finding for each unknown field, but only one for labels directly in a selector."""
    known = schema.get("properties", {})
    unknown = _unknown(value, schema)
    labels = hints.as_selector(value, known, _field(path))
    for key in unknown[:1] if labels else unknown:
        better = labels or hints.unknown(key, value[key], path, schema, root)
        place = Place(here.path, here.document, (*here.keys, key), key=True)
        yield rules.unknown_field(place, key, _owner(root, path), known, better)


def _unknown(value: Mapping[str, Any], schema: Schema) -> list[str]:
    """Return the fields that the schema does not have."""
    allowed = schema.get("additionalProperties") is not False
    return [] if allowed else [key for key in value if key not in schema.get("properties", {})]


def mistyped(found: Mistyped, source: str) -> Diagnostic:
    """Return the finding for a value of the wrong type; `source` is its text in the file, or ""."""
    value, better = found.value, found.better
    if value is None:
        given = "null" if source else "no value"
        spare = "remove the field" if _name(found.at.keys) else "remove it"
        better = better or f"{spare}, or give it a value"
    elif isinstance(value, str):
        given = f"{source[:VALUE_SHOWN] or shown(value)} is text"
    elif isinstance(value, list | Mapping):
        given = f"a {'list' if isinstance(value, list) else 'mapping'}"
    else:
        source = (source or str(value))[:VALUE_SHOWN]
        kind = "a boolean" if isinstance(value, bool) else "a number"
        if isinstance(value, float) and source.lstrip("+-").isdecimal():
            kind = "too large a number"
        given, read_as = f"{source} is {kind}", quoted(str(value))
        if "string" in found.wanted and better.endswith(read_as):  # the text of the file: 1.20 is not "1.2"
            better = better.removesuffix(read_as) + quoted(source)
    wanted = listing(_NOUNS[name] for name in found.wanted if name != "null")
    return rules.wrong_shape(found.at, f"{given}: {_field(found.at.keys)} must be {wanted}", better)


def _name(keys: Keys) -> str:
    return keys[-1] if keys and isinstance(keys[-1], str) else ""


def _field(keys: Keys) -> str:
    """Return the name of a value from its path: `blockSize`, or `an item of cidrs`."""
    if not keys:
        return "the document"
    if isinstance(keys[-1], str):
        return keys[-1][:VALUE_SHOWN]
    return f"an item of {_field(keys[:-1])}"


def _owner(root: Schema, keys: Keys) -> str:
    """Return the path of a mapping from the document's root, `spec.ipv4` or `nodes[3]`, or the kind."""
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{key[:VALUE_SHOWN]}" for key in keys)
    return path.removeprefix(".") or str(root.get("title", "the document"))
