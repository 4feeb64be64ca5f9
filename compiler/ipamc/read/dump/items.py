"""The text of a dump to its items, one by one: a dump of 150,000 pods has a gigabyte.

What `kubectl -o json` prints is cut at the lines where items end, so no more than one item is decoded at a
time. A text inside JSON has no line break, so a line of eight blanks and a brace is the end of an item of a
list that is printed with four blanks for each level. Any other JSON is decoded as a whole.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from ipamc.model.diagnostics import Span
from ipamc.read.dump import rules
from ipamc.read.dump.calicoctl import IPAM, PARTS, Export, exported
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.encoding import BOM, decode
from ipamc.read.syntax.other_text import first_line, recognised
from ipamc.read.syntax.yaml import yaml_documents

LARGEST_WHOLE = 1 << 30
"""The most bytes of a dump that is not as `kubectl -o json` prints it: it is read as a whole."""

_LISTED = re.compile(rb'\s*\{\s*"apiVersion":\s*"v1",\s*"items":\s*\[\n(?= {8}\{)')
_START = 200
"""Bytes in which the start of a list of kubectl is."""
_BETWEEN = re.compile(rb"\n        \},\n")
"""The end of an item, before another one. As a pattern it is found twice as fast as by `bytes.find`."""
_OVERLAP = 11
"""Bytes of it that may be at the end of a chunk: all but the last."""
_END = b"\n        }\n    ]"
_HEAD = re.compile(
    rb'\s*\{\s*"apiVersion":\s*"([a-zA-Z0-9./-]*)",\s*"kind":\s*"([a-zA-Z0-9]*)"(?=\s*[,}])'
).match
_NO_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_YAML_ITEM = re.compile(r"^- ", re.MULTILINE)
_CUT_OFF = "the file ends inside its list: it was cut off"


class Item(NamedTuple):
    """An object of a dump, not decoded yet."""

    api_version: str
    kind: str
    line: int
    """From 1; 0: unknown."""
    raw: bytes | Any
    """JSON as bytes, or a plain value that was YAML."""


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


class _ListMetadata(msgspec.Struct, rename={"more": "continue", "remaining": "remainingItemCount"}):
    more: str | None = None
    remaining: int | None = None


class _Shell(_Head):
    metadata: _ListMetadata | None = None
    items: list[msgspec.Raw] | None = None


def items(path: str, chunks: Iterable[bytes]) -> Iterator[Item]:
    """Yield the objects of a dump in its order.

    Raises Unreadable, also between items: for what is neither JSON nor YAML, for a file that was cut off, for
    a list that goes on elsewhere.
    """
    stream = iter(chunks)
    start = b""
    for chunk in stream:
        start += chunk
        if len(start.lstrip()) >= _START:
            break
    start = start.removeprefix(BOM)
    if listed := _LISTED.match(start):
        yield from _of_kubectl(path, start, listed.end(), stream)
        return
    data = bytearray(start)
    for chunk in stream:
        data += chunk
        if len(data) > LARGEST_WHOLE:
            raise Unreadable(
                rules.unreadable_dump(
                    Span(path), f"more than {LARGEST_WHOLE:,} bytes, not as kubectl -o json prints them"
                )
            )
    yield from _whole(path, bytes(data))


def _of_kubectl(path: str, start: bytes, first: int, stream: Iterator[bytes]) -> Iterator[Item]:
    """Yield the items of a list that kubectl printed. `first` is where the first one begins."""
    prefix, buffer = start[:first], start[first:]
    line, searched = prefix.count(b"\n") + 1, 0
    while True:
        position = 0
        for between in _BETWEEN.finditer(buffer, searched):
            end = between.end()
            raw = buffer[position : end - 2]
            yield _item(path, raw, line)
            line += raw.count(b"\n") + 1
            position = end
        buffer = buffer[position:]
        searched = max(0, len(buffer) - _OVERLAP)
        chunk = next(stream, None)
        if chunk is None:
            break
        buffer += chunk
    end = buffer.find(_END)
    if end < 0:
        raise Unreadable(
            rules.unreadable_dump(Span(path, line, 1, 1), f"{_CUT_OFF} in the item that begins here")
        )
    end += len(_END)
    yield _item(path, buffer[: end - len(b"\n    ]")], line)
    shell = prefix + b"]" + buffer[end:]
    _check_list(path, _decoded(path, shell, _Shell))


def _item(path: str, raw: bytes, line: int) -> Item:
    if head := _HEAD(raw):
        return Item(*_head(*head.groups()), line, raw)
    found = _decoded(path, raw, _Head, line)
    return Item(found.api_version, found.kind, line, raw)


@lru_cache(maxsize=256)
def _head(api_version: bytes, kind: bytes) -> tuple[str, str]:
    return api_version.decode(), kind.decode()


def _whole(path: str, data: bytes) -> Iterator[Item]:
    if not data.strip():
        raise Unreadable(rules.unreadable_dump(Span(path), "the file is empty"))
    if data.lstrip().startswith(b"{"):
        yield from _of_json(path, data)
        return
    if other := recognised(data):
        raise Unreadable(
            rules.unreadable_dump(first_line(path, data), other.problem, other.help(rules.AGAIN))
        )
    lists, *more = PARTS.split(data)
    yield from _of_yaml(path, decode(path, lists))
    if more:
        if len(more) != IPAM:
            raise Unreadable(
                rules.unreadable_dump(Span(path), _CUT_OFF, "run calicoctl datastore migrate export again")
            )
        for value in exported(_decoded(path, more[-1], Export)):
            yield Item(value["apiVersion"], value["kind"], 0, value)


def _of_json(path: str, data: bytes) -> Iterator[Item]:
    shell = _decoded(path, data, _Shell)
    if not shell.kind.endswith("List"):
        if shell.items is not None and not shell.kind:
            raise Unreadable(rules.unreadable_dump(Span(path), "the list has no kind"))
        yield Item(shell.api_version, shell.kind, 1, data)
        return
    _check_list(path, shell)
    typed = "" if shell.kind == "List" else shell.kind.removesuffix("List")
    position, line = 0, 1
    for raw in shell.items or ():
        text = bytes(raw)
        start = data.index(text, position)
        line += data.count(b"\n", position, start)
        position = start
        found = _item(path, text, line)
        yield found._replace(api_version=found.api_version or shell.api_version, kind=found.kind or typed)


def _of_yaml(path: str, text: str) -> Iterator[Item]:
    lines = _YamlLines(text)
    for document in yaml_documents(path, text):
        value = document.value
        if value is None:
            continue
        if not isinstance(value, dict):
            raise Unreadable(rules.unreadable_dump(Span(path), "neither JSON nor YAML of kubectl"))
        version, kind = (str(value.get(key) or "") for key in ("apiVersion", "kind"))
        members = value.get("items")
        if members is None or (kind and not kind.endswith("List")):
            yield Item(version, kind, 0, value)
            continue
        if not kind:  # kubectl prints the kind after the items
            last = len(text.rstrip().splitlines())
            raise Unreadable(rules.unreadable_dump(Span(path, last, 1, 1), _CUT_OFF))
        if not isinstance(members, list):
            raise Unreadable(rules.wrong_object(Span(path), "the list", "items is no list"))
        metadata = value.get("metadata")
        if isinstance(metadata, dict) and (metadata.get("continue") or metadata.get("remainingItemCount")):
            raise Unreadable(rules.continued(Span(path)))
        typed = "" if kind == "List" else kind.removesuffix("List")
        for index, member in enumerate(members):
            if not isinstance(member, dict):
                raise Unreadable(rules.wrong_object(Span(path), f"item {index}", "it is no object"))
            yield Item(
                str(member.get("apiVersion") or version),
                str(member.get("kind") or typed),
                lines.of_item(index, len(members)),
                member,
            )


class _YamlLines:
    """The lines where items of a list begin, if the text is a single list as kubectl prints it."""

    def __init__(self, text: str) -> None:
        self._breaks = [found.start() for found in re.finditer("\n", text)]
        self._items = [found.start() for found in _YAML_ITEM.finditer(text)]

    def of_item(self, index: int, number: int) -> int:
        """Return the line of an item of `number`; 0 where it is not certain."""
        return bisect_left(self._breaks, self._items[index]) + 1 if len(self._items) == number else 0


def _check_list(path: str, shell: _Shell) -> None:
    metadata = shell.metadata
    if metadata and (metadata.more or metadata.remaining):
        raise Unreadable(rules.continued(Span(path)))


def _decoded(path: str, data: bytes, shape: type[Any], line: int = 0) -> Any:
    at = Span(path, line, 1, 1) if line else Span(path)
    try:
        return msgspec.json.decode(data, type=shape)
    except _NO_JSON as problem:
        if isinstance(problem, msgspec.ValidationError):
            raise Unreadable(rules.wrong_object(at, "an object", str(problem))) from None
        words = "nested too deep" if isinstance(problem, RecursionError) else str(problem)
        if "truncated" in words:
            words = "the file ends inside a value: it was cut off"
            at = Span(path, line + data.rstrip().count(b"\n") + (not line), 1, 1)
        raise Unreadable(rules.unreadable_dump(at, words)) from None
