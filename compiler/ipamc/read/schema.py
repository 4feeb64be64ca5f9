"""Types of paths in the JSON Schemas, for readers. `decode` validates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ipamc.read.syntax.document import Keys

Schema = Mapping[str, Any]


class Schemas:
    """The schemas of one compile by file name; a schema is parsed at its first use."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._parsed: dict[str, Schema] = {}

    def __getitem__(self, name: str) -> Schema:
        """Return a schema. Raises KeyError for an unknown name, which is a bug of ipamc."""
        if name not in self._parsed:
            self._parsed[name] = msgspec.json.decode(self._texts[name], type=dict[str, Any])
        return self._parsed[name]


def resolve_reference(root: Schema, schema: Schema) -> Schema:
    """Follow `$ref`s of a schema to the schema in `$defs`."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return schema


def with_reference(root: Schema, schema: Schema) -> Schema:
    """Return a schema merged with the target of its `$ref` in `$defs`; its own fields win."""
    if "$ref" not in schema:
        return schema
    own = {key: value for key, value in schema.items() if key != "$ref"}
    return {**resolve_reference(root, {"$ref": schema["$ref"]}), **own}


def below(root: Schema, schema: Schema, key: str | int) -> Schema | None:
    """Return the schema of a member or an item; None if there is none."""
    schema = resolve_reference(root, schema)
    found = schema.get("items")
    if not isinstance(key, int):
        found = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
    return resolve_reference(root, found) if isinstance(found, dict) else None


def at(root: Schema, keys: Keys) -> Schema | None:
    """Return the schema of the value at a path, or None."""
    schema: Schema | None = root
    for key in keys:
        if schema is None:
            return None
        schema = below(root, schema, key)
    return schema


def types(schema: Schema) -> list[str]:
    """Return the types that a schema allows, as JSON Schema names them; [] for any type."""
    found = schema.get("type", [])
    return [found] if isinstance(found, str) else list(found)


def wants_text(root: Schema, keys: Keys) -> bool:
    """Return whether the value at a path is free text, without an enum or pattern that would refuse it."""
    schema = at(root, keys)
    return schema is not None and "string" in types(schema) and not schema.keys() & {"enum", "pattern"}


def is_map(root: Schema, keys: Keys) -> bool:
    """Return whether the value at a path is a mapping with keys that the user chooses, such as labels."""
    schema = at(root, keys)
    return schema is not None and isinstance(schema.get("additionalProperties"), dict)
