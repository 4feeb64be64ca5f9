"""Lists of objects as `kubectl get -o json|yaml` prints them, quickly: parts that objects share are printed once.

The YAML is that of sigs.k8s.io/yaml: keys sorted, sequences at the column of their key, long scalars folded
after column 80, strings in double quotes where Go's yaml would read another type, in single quotes where a
plain scalar cannot say them. tests/test_benchmarks.py holds it against what kubectl printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec

WIDTH: Final = 80
_OTHER_TYPE: Final = re.compile(
    r"""~|null|Null|NULL|<<
    |y|Y|yes|Yes|YES|on|On|ON|n|N|no|No|NO|off|Off|OFF|true|True|TRUE|false|False|FALSE
    |[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN
    |[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?)
    |[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?
    |[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?""",
    re.VERBOSE,
)
"""Plain scalars that Go's yaml reads as something else than a string."""
_NOT_PLAIN: Final = re.compile(r"^[-?:]( |$)|^[][{}#&*!|>'\"%@`,]|^ | $|: |:$| #")


class Shared(dict[str, Any]):
    """A mapping that many objects have in common. It is printed once for each indentation, and never changed."""


def text(value: str, indent: int, column: int) -> str:
    """Return a scalar of a block. Its further lines begin at `indent`; it begins at `column`."""
    if not value or _OTHER_TYPE.fullmatch(value):
        return f'"{value}"'
    if _NOT_PLAIN.search(value):
        value = "'" + value.replace("'", "''") + "'"
    return value if column + len(value) <= WIDTH else _folded(value, indent, column)


def _folded(value: str, indent: int, column: int) -> str:
    """Break a scalar at the first space after each WIDTH columns. Runs of spaces are not in our objects."""
    lines, words = [], value.split(" ")
    line = words[0]
    for word in words[1:]:
        if column + len(line) > WIDTH:
            lines.append(line)
            line, column = word, indent
        else:
            line = f"{line} {word}"
    return ("\n" + " " * indent).join([*lines, line])


class YamlPrinter:
    """Prints values in block style. It keeps the lines of Shared parts, and these parts."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Shared, list[str]]] = {}

    def lines(self, value: Any, indent: int) -> list[str]:
        """Return the lines of a mapping or a sequence that is not empty, each with its indentation."""
        if not isinstance(value, Shared):
            return self._lines(value, indent)
        key = (id(value), indent)
        if key not in self._known:
            self._known[key] = (value, self._lines(value, indent))
        return self._known[key][1]

    def _lines(self, value: Any, indent: int) -> list[str]:
        lines, pad = [], " " * indent
        if isinstance(value, dict):
            for key in sorted(value):
                lines += self._entry(f"{pad}{text(key, 0, 0)}:", value[key], indent)
            return lines
        for item in value:
            if isinstance(item, dict) and item:
                first, *others = self.lines(item, indent + 2)
                lines += [f"{pad}- {first[indent + 2 :]}", *others]
            else:
                lines += self._entry(f"{pad}-", item, indent)
        return lines

    def _entry(self, start: str, value: Any, indent: int) -> list[str]:
        if isinstance(value, dict):
            return [start, *self.lines(value, indent + 2)] if value else [f"{start} {{}}"]
        if isinstance(value, list):
            return [start, *self.lines(value, indent)] if value else [f"{start} []"]
        if isinstance(value, str):
            return [f"{start} {text(value, indent + 2, len(start) + 1)}"]
        return [f"{start} {msgspec.json.encode(value).decode()}"]


def yaml_list(objects: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Return the parts of a List in YAML."""
    printer = YamlPrinter()
    yield "apiVersion: v1\nitems:\n"
    for item in objects:
        yield "\n".join(printer.lines([item], 0)) + "\n"
    yield 'kind: List\nmetadata:\n  resourceVersion: ""\n'


def json_list(objects: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Return the parts of a List in JSON, four spaces a level. The keys are in the order of the objects."""
    yield '{\n    "apiVersion": "v1",\n    "items": ['
    for number, item in enumerate(objects):
        body = msgspec.json.format(msgspec.json.encode(item), indent=4).decode().replace("\n", "\n        ")
        yield f"{',' if number else ''}\n        {body}"
    yield '\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n'


def write(path: Path, objects: Iterable[dict[str, Any]]) -> None:
    """Write a List in the format of the file's name, one object at a time."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json_list(objects) if path.suffix == ".json" else yaml_list(objects))


def one(item: dict[str, Any], style: str) -> str:
    """Return an object alone, as `kubectl get KIND NAME -o json|yaml` prints it."""
    if style == "json":
        return msgspec.json.format(msgspec.json.encode(item, order="deterministic"), indent=4).decode() + "\n"
    return "\n".join(chain(YamlPrinter().lines(item, 0), [""]))
