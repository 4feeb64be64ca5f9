"""Text of `ipamc explain`: a rule with its example, a field, a word of `rules/words/`, or all versions.

A word is a section of a file: `# NAME`, `Also: other names`, the text, commands to run (indented), and
`Codes: rules about it`. Only the name and the text are required.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import fill, indent
from typing import Any, NamedTuple

from msgspec import Struct

from ipamc.catalogue import Entry, Example, Side, what_it_is
from ipamc.model.cilium import versions
from ipamc.model.cilium.support import APISERVER, APISERVER_TABLE, TABLE, Basis
from ipamc.model.limits import DEEPEST_SCHEMA
from ipamc.read.schema import with_reference

_WIDTH = 104
_WAYS = ("oneOf", "anyOf", "allOf")
_LEGEND = (
    "A **bold** cell was observed in a running server, agent or chart of that minor. "
    "A plain cell was read in the source; a cell with a question mark is inferred. "
    "The last column names the rule (`ipamc explain CODE`) or the rendered files that depend on it."
)
_CELLS = {Basis.RUN: ("**no**", "**yes**"), Basis.READ: ("no", "yes"), Basis.INFERRED: ("no?", "yes?")}


def rule_text(entry: Entry, example: Example | None) -> str:
    """Return a rule: what it checks, why, a wrong example and a right one, and commands to run."""
    parts = [
        f"{entry.code}: {entry.title}",
        entry.body,
        entry.why and f"Why: {entry.why}",
        *(_example(example) if example else ()),
        entry.run and f"Run: {entry.run}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _example(example: Example) -> Iterator[str]:
    if example.beside:
        end = ", with" if example.before else "."
        before = f" It was {example.what_was_done} before{end}" if example.done else ""
        yield fill(f"Example: {example.beside[0].lower()}{example.beside[1:]}{before}", _WIDTH)
        yield from _files(example.before)
    yield f"Wrong: {example.sentence[0].lower()}{example.sentence[1:]}"
    yield from _side(example.wrong, example.said)
    yield "Right:"
    yield from _side(example.right, "")


def _side(side: Side, said: str) -> Iterator[str]:
    yield from _files(side.files, "" if side.encoding == "utf-8" else f" in {side.encoding}")
    yield indent(f"$ {side.command}\n{said}".rstrip("\n"), "    ")


def _files(files: Mapping[str, str], how: str = "") -> Iterator[str]:
    for path, body in files.items():
        if is_ := what_it_is(body):
            yield f"  {path} {is_}"
        else:
            yield f"  {path}{how}\n{indent(body.rstrip(), '    ')}"


class Field(Struct, frozen=True, kw_only=True):
    """A field of an input document, as its JSON Schema describes it."""

    path: str
    """`IPPool.spec.ipv4.cidrs`: the kind, then the names; fields of a list's items follow the list's name."""
    type: str
    description: str
    required: bool
    choices: tuple[str, ...] = ()
    default: str = ""
    example: str = ""
    bounds: str = ""
    children: tuple[str, ...] = ()  # paths of its fields


def fields_of(schemas: Mapping[str, str]) -> dict[str, Field]:
    """Return every field by its path, in the order of the schemas, which are texts by kind."""
    found: dict[str, Field] = {}
    for text in schemas.values():
        root = json.loads(text)
        for field in _walk(root, str(root.get("title", "")).replace(" ", ""), root, 0):
            found.setdefault(field.path, field)
    return found


def matching(name: str, fields: Mapping[str, Field]) -> list[Field]:
    """Return the fields with this path or end of a path. Case and `[]` are ignored."""
    wanted = f".{name.replace('[]', '').lower().lstrip('.')}"
    return [field for path, field in fields.items() if f".{path.lower()}".endswith(wanted)]


def field_text(field: Field) -> str:
    """Return the description of a field: its values and its purpose."""
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
        part, below = _resolved(raw, root), f"{path}.{name}."
        inner: dict[str, Field] = {}
        ways = [part, part.get("items", {}), *(way for key in _WAYS for way in part.get(key, ()))]
        for way in ways if depth < DEEPEST_SCHEMA else ():
            for field in _walk(_resolved(way, root), f"{path}.{name}", root, depth + 1):
                inner.setdefault(field.path, field)
        yield Field(
            path=f"{path}.{name}",
            type=_type(part, root),
            description=str(part.get("description", "")),
            required=name in schema.get("required", ()),
            choices=tuple(map(str, part.get("enum", ()))),
            default=json.dumps(part["default"]) if "default" in part else "",
            example=json.dumps(part["examples"][0]) if part.get("examples") else "",
            bounds=_bounds(part),
            children=tuple(inside for inside in inner if "." not in inside.removeprefix(below)),
        )
        yield from inner.values()


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


_CONCEPT = re.compile(
    r"^# (?P<name>.+)\n\n"
    r"(?:Also: (?P<also>.+)\n\n)?"
    r"(?P<text>[^\n]+(?:\n[^\n]+)*)\n"
    r"(?:\n(?P<run>(?: {4}.+\n)+))?"
    r"(?:\nCodes: (?P<codes>.+)\n)?",
    re.MULTILINE,
)
_MARKS = re.compile(r"[-_:`]+")


class Concept(NamedTuple):
    """A word, and its meaning in ipamc."""

    name: str
    also: tuple[str, ...]  # other words for it
    text: str
    run: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()

    def is_named(self, word: str) -> bool:
        """Return whether a word, in any spelling, is a name of the concept."""
        return _plain(word) in {_plain(name) for name in (self.name, *self.also)}

    def __str__(self) -> str:
        rows = [self.name, "", self.text]
        if self.run:
            rows += ["", *(f"  {line}" for line in self.run)]
        if self.codes:
            rows += ["", f"Codes: {', '.join(self.codes)}"]
        return "\n".join(rows) + "\n"


def concepts(files: Mapping[str, str]) -> tuple[Concept, ...]:
    """Return the concepts in the order of `files`, the texts of `rules/words/` by name."""
    return tuple(
        Concept(
            name=found["name"],
            also=tuple(found["also"].split(", ")) if found["also"] else (),
            text=found["text"],
            run=tuple(map(str.strip, (found["run"] or "").splitlines())),
            codes=tuple(found["codes"].split(", ")) if found["codes"] else (),
        )
        for text in files.values()
        for found in _CONCEPT.finditer(text)
    )


def _plain(word: str) -> str:
    """Return a word in a normal form for fields, flags and prose: without case, -, _, : and backticks."""
    return " ".join(_MARKS.sub(" ", word).lower().split())


def versions_text() -> str:
    """Return as Markdown what each Cilium minor and each kube-apiserver supports."""
    every = tuple(versions.minors())
    cells = [(row, [_CELLS[row.basis(each)][row.of(each)] for each in every]) for row in TABLE]
    rows = ((row.modes, row.capability.value, *known, row.decides) for row, known in cells)
    cilium = _table(("mode", "Cilium", *map(versions.text, every), "ipamc"), rows)
    seen = ((row.text, _CELLS[Basis.RUN][True], row.decides) for row in APISERVER_TABLE)
    apiserver = _table(("kube-apiserver", APISERVER, "ipamc"), seen)
    return f"{_LEGEND}\n\n{cilium}\n{apiserver}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, ["---"] * len(head), *rows))
