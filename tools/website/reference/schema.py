"""The fields of a JSON Schema, in its order: path, type, default, meaning, example."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from ipamc.read.schema import with_reference
from tools.website.reference.markdown import code

Schema = Mapping[str, Any]


class Field(Struct, frozen=True, kw_only=True):
    """A field of a document."""

    path: str
    """As `spec.pins.*` and `tests[].name`: a value of a mapping, and an item of a list."""
    schema: Schema
    required: bool
    choice: tuple[str, ...]
    """The fields of which the mapping around it needs one, this field among them; () for none."""
    named: str = ""
    """The definition that it refers to; "" for none."""

    @property
    def description(self) -> str:
        """What it means; "" where the schema does not say."""
        return str(self.schema.get("description", ""))


def fields(schema: Schema, shared: frozenset[str] = frozenset(), *, named: bool = False) -> Iterator[Field]:
    """Yield the fields below the top of a schema. Definitions of `shared` are not entered.

    With `named` a field that is one of these has only the reference to it, and its own description.
    """
    for field in _below(schema, "", schema.get("$defs", {}), shared, ()):
        if named and field.named in shared:
            own = {"$ref": f"#/$defs/{field.named}", "description": field.description}
            yield replace(field, schema=own)
        else:
            yield field


def _below(
    schema: Schema, path: str, defs: Schema, shared: frozenset[str], within: tuple[str, ...]
) -> Iterator[Field]:
    choice = tuple(
        dict.fromkeys(
            name
            for kind in ("anyOf", "oneOf")
            for each in schema.get(kind, ())
            for name in each.get("required", ())
        )
    )
    for name, given in schema.get("properties", {}).items():
        here = f"{path}.{name}".lstrip(".")
        each, named = resolve(given, defs)
        required = name in schema.get("required", ())
        among = choice if name in choice else ()
        yield Field(path=here, schema=each, required=required, choice=among, named=named)
        yield from _inside(each, named, here, defs, shared, within)


def _inside(
    schema: Schema, named: str, path: str, defs: Schema, shared: frozenset[str], within: tuple[str, ...]
) -> Iterator[Field]:
    if named in shared or named in within:
        return
    within = (*within, named) if named else within
    yield from _below(schema, path, defs, shared, within)
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(key), dict):
            each, name = resolve(schema[key], defs)
            yield from _inside(each, name, path + mark, defs, shared, within)


def resolve(schema: Schema, defs: Schema) -> tuple[Schema, str]:
    """Return a schema with what it refers to, and the name of that; "" for none."""
    return with_reference({"$defs": defs}, schema), schema.get("$ref", "").rpartition("/")[2]


def type_of(schema: Schema) -> str:
    """Return what may stand in a field, in words and Markdown."""
    if "const" in schema:
        return code(plain(schema["const"]))
    if "enum" in schema:
        return "one of " + ", ".join(code(plain(each)) for each in schema["enum"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    kinds = schema.get("type", [])
    if kinds == "null":
        return "null"
    words = [_KINDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null"]
    if schema.get("title") and not schema.get("properties"):
        words = [str(schema["title"])]
    elif not words:
        words = [
            " or ".join(type_of(each) for each in schema.get("anyOf", schema.get("oneOf", ()))) or "anything"
        ]
    said = " or ".join(words)
    if said == "list" and isinstance(schema.get("items"), dict):
        said = f"list: {_inner(schema['items'])}"
    if said == "mapping" and isinstance(schema.get("additionalProperties"), dict):
        said = f"mapping of names to {_inner(schema['additionalProperties'])}"
    return said + _limits(schema) + (", or null" if "null" in kinds and not isinstance(kinds, str) else "")


def _inner(schema: Schema) -> str:
    return type_of(schema).replace(", or null", " or null")


_KINDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
    "array": "list",
    "object": "mapping",
}


def _limits(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f", {low:,} to {high:,}"
    if low is not None:
        return f", {low:,} or more"
    if high is not None:
        return f", at most {high:,}"
    return ""


def plain(value: Any) -> str:
    """Return a value as it stands in a line of YAML."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def example(field: Field) -> Any:
    """Return an example of a field: of its examples, its values, its default. None where it has none."""
    schema = field.schema
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    return schema.get("const", schema.get("default"))


def in_place(path: str, value: Any) -> str:
    """Return YAML with a value at its path."""
    for part in reversed(path.split(".")):
        name = part.removesuffix("[]")
        value = {("NAME" if name == "*" else name): [value] if part.endswith("[]") else value}
    return yaml.dump(
        value, sort_keys=False, allow_unicode=True, default_flow_style=False, Dumper=_Indented, width=100
    )


class _Indented(yaml.SafeDumper):
    """Writes items of lists below their key, two columns to the right, as people do."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - PyYAML's signature
        super().increase_indent(flow, False)
