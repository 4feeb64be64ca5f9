"""The fields of the documents that ipamc reads, as their JSON Schemas describe them: what `kubectl explain` is for a CRD."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from ipamc.read.schema import with_reference

_DEEPEST = 12


class Field(Struct, frozen=True, kw_only=True):
    """A field of a document."""

    path: str
    """`IPPool.spec.ipv4.cidrs`: the kind, then the names; what is in a list stands behind the list's name."""
    type: str
    description: str
    required: bool
    choices: tuple[str, ...] = ()
    default: str = ""
    example: str = ""
    bounds: str = ""
    children: tuple[str, ...] = ()
    """Paths of the fields in it."""


def fields_of(schemas: Mapping[str, str]) -> dict[str, Field]:
    """Return every field by its path, in the order of the schemas, given as texts by kind."""
    found: dict[str, Field] = {}
    for text in schemas.values():
        root = json.loads(text)
        kind = str(root.get("title", "")).replace(" ", "")
        for field in _walk(root, kind, root, 0):
            found.setdefault(field.path, field)
    return found


def matching(name: str, fields: Mapping[str, Field]) -> list[Field]:
    """Return the fields that a name means: a path, or the end of one. Case, and `[]` behind lists, do not count."""
    wanted = f".{name.replace('[]', '').lower().lstrip('.')}"
    return [field for path, field in fields.items() if f".{path.lower()}".endswith(wanted)]


def text(field: Field) -> str:
    """Return what is to be said of a field."""
    facts = [
        ("type", field.type),
        ("required", "yes" if field.required else ""),
        ("one of", ", ".join(field.choices)),
        ("bounds", field.bounds),
        ("default", field.default),
        ("example", field.example),
        ("fields", ", ".join(path.rpartition(".")[2] for path in field.children)),
    ]
    rows = [f"  {name + ':':<10}{value}" for name, value in facts if value]
    return "\n".join([field.path, *rows, *(["", field.description] if field.description else [])]) + "\n"


def _walk(schema: Mapping[str, Any], path: str, root: Mapping[str, Any], depth: int) -> Iterator[Field]:
    for name, raw in schema.get("properties", {}).items():
        part = _resolved(raw, root)
        inner = list(_inner(part, f"{path}.{name}", root, depth + 1))
        below = f"{path}.{name}."
        yield Field(
            path=f"{path}.{name}",
            type=_type(part, root),
            description=str(part.get("description", "")),
            required=name in schema.get("required", ()),
            choices=tuple(map(str, part.get("enum", ()))),
            default=json.dumps(part["default"]) if "default" in part else "",
            example=json.dumps(part["examples"][0]) if part.get("examples") else "",
            bounds=_bounds(part),
            children=tuple(field.path for field in inner if "." not in field.path.removeprefix(below)),
        )
        yield from inner


def _inner(part: Mapping[str, Any], path: str, root: Mapping[str, Any], depth: int) -> Iterator[Field]:
    if depth > _DEEPEST:
        return
    seen = set()
    ways = [
        part,
        part.get("items", {}),
        *(way for key in ("oneOf", "anyOf", "allOf") for way in part.get(key, ())),
    ]
    for way in ways:
        for field in _walk(_resolved(way, root), path, root, depth) if isinstance(way, Mapping) else ():
            if field.path not in seen:
                seen.add(field.path)
                yield field


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    return with_reference(root, schema) if isinstance(schema, Mapping) else {}


def _type(part: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    given = part.get("type", "")
    if given == "array":
        inner = _type(_resolved(part.get("items", {}), root), root)
        return f"list of {inner}" if inner else "list"
    ways = [_type(_resolved(way, root), root) for key in ("oneOf", "anyOf") for way in part.get(key, ())]
    names = [*([given] if isinstance(given, str) else given), *ways]
    return " or ".join(dict.fromkeys(filter(None, names)))


def _bounds(part: Mapping[str, Any]) -> str:
    low, high = part.get("minimum"), part.get("maximum")
    if low is not None and high is not None:
        return f"{low} to {high}"
    return f"{low} or more" if low is not None else f"at most {high}" if high is not None else ""
