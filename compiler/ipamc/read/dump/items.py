"""Splits the text of a dump into items, one by one: a dump of 150,000 pods has a gigabyte.

The output of `kubectl -o json` is cut at the lines where items end, so no more than one item is decoded at a
time. A text inside JSON has no line break, so a line of eight blanks and a brace is the end of an item in a
list that is printed with four blanks for each level. Any other JSON is decoded as a whole. A file may have
several documents, one behind the other, and a list may have lists as its items.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from ipamc.model.diagnostics import Span
from ipamc.model.limits import DEEPEST_LISTS, LARGEST_ITEM, MOST_OBJECTS_OF_DUMP
from ipamc.read import rules
from ipamc.read.dump.shapes import IPAM, PARTS, Export, exported
from ipamc.read.syntax.document import Unreadable, member
from ipamc.read.syntax.json_stream import has_more_entries
from ipamc.read.syntax.text import BOM, decode, first_line, recognised
from ipamc.read.syntax.yaml import yaml_documents

_SOLID = re.compile(rb"\S").search
_LISTED = re.compile(rb'\{\s*"apiVersion":\s*"v1",\s*"items":\s*\[\n(?= {8}\{)').match
_START = 200
"""The bytes in which kubectl's list starts."""
_BRACE = b"\n        }"
_ITEM_END = re.compile(rb"\n        \}(?:,\n|(\n    \]))").finditer
"""Matches the end of an item, before another one or the list's end. Twice as fast as `bytes.find`."""
_LIST_END = b"\n}"
_HEAD = re.compile(
    rb'\s*\{\s*"apiVersion":\s*"([a-zA-Z0-9./-]*)",\s*"kind":\s*"([a-zA-Z0-9]*)"(?=\s*[,}])'
).match
_NO_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)").search
_YAML_ITEM = re.compile(r"^- ", re.MULTILINE)
_CUT_OFF = "the file ends inside its list: it was cut off"


class DumpItem(NamedTuple):
    """An object of a dump, not decoded yet."""

    api_version: str
    kind: str
    line: int
    """From 1; 0: unknown."""
    raw: bytes | Any
    """JSON as bytes, or a plain value that was YAML."""

    @property
    def group(self) -> str:
        """Return the API group; "" for the core."""
        return self.api_version.rpartition("/")[0]


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


class _ListMetadata(msgspec.Struct, rename={"more": "continue", "remaining": "remainingItemCount"}):
    more: str | None = None
    remaining: int | None = None


class _Shell(_Head):
    metadata: _ListMetadata | None = None
    items: list[msgspec.Raw] | None = None


class _Text:
    """The unread rest of a dump: `buffer` from `at` on, and further pieces."""

    def __init__(self, path: str, chunks: Iterable[bytes]) -> None:
        self.path = path
        self.buffer = b""
        self.at = 0
        self.line = 1
        """The line at `at`."""
        self._chunks = iter(chunks)
        while len(self.buffer) < len(BOM) and self.more():
            pass
        self.buffer = self.buffer.removeprefix(BOM)

    def more(self) -> bool:
        """Read at least as much as is left, which keeps the cost linear; return whether there was any."""
        parts = [self.buffer[self.at :]]
        size = left = len(parts[0])
        for chunk in self._chunks:
            parts.append(chunk)
            size += len(chunk)
            if size >= 2 * left:
                break
        if size > LARGEST_ITEM:
            problem = f"more than {LARGEST_ITEM:,} bytes, not as kubectl -o json prints them"
            raise Unreadable(rules.unreadable_dump(Span(self.path), problem))
        self.buffer, self.at = b"".join(parts), 0
        return bool(parts[1:])

    def skip(self, end: int) -> None:
        """Continue at an offset of `buffer`."""
        self.line += self.buffer.count(b"\n", self.at, end)
        self.at = end

    def begins(self) -> bool:
        """Skip blanks; return whether anything is left."""
        while True:
            found = _SOLID(self.buffer, self.at)
            self.skip(found.start() if found else len(self.buffer))
            if len(self.buffer) - self.at >= _START or not self.more():
                return self.at < len(self.buffer)


def items(path: str, chunks: Iterable[bytes]) -> Iterator[DumpItem]:
    """Yield the objects of a dump in its order.
    Raises Unreadable, also between items: for text that is neither JSON nor YAML, for a truncated file, for a
    list that continues elsewhere.
    """
    text, first = _Text(path, chunks), True
    while text.begins():
        if listed := _LISTED(text.buffer, text.at):
            yield from _of_kubectl(text, listed.end())
            first = False
            continue
        while text.more():
            pass
        yield from _whole(path, text.buffer, text.line)
        return
    if first:
        raise Unreadable(rules.unreadable_dump(Span(path), "the file is empty"))


def _of_kubectl(text: _Text, first: int) -> Iterator[DumpItem]:
    """Yield the items of a list that kubectl printed. `first` is the offset of the first one."""
    path, prefix = text.path, text.buffer[text.at : first]
    text.skip(first)
    searched, last = first, False
    while True:
        buffer, position, line = text.buffer, text.at, text.line
        for found in _ITEM_END(buffer, searched):
            end = found.start() + len(_BRACE)
            raw = buffer[position:end]
            item = _item(path, raw, line)
            if item.kind.endswith("List"):
                yield from _of_value(path, raw, line, 1)
            else:
                yield item
            line += raw.count(b"\n") + 1
            if last := found[1] is not None:
                position = end
                break
            position = found.end()
        text.at, text.line = position, line - last
        if last:
            break
        if not text.more():
            at = Span(path, line, 1, 1)
            raise Unreadable(rules.unreadable_dump(at, f"{_CUT_OFF} in the item that begins here"))
        searched = 0
    while (end := text.buffer.find(_LIST_END, text.at)) < 0 and text.more():
        pass
    end = len(text.buffer) if end < 0 else end + len(_LIST_END)
    shell = prefix + text.buffer[text.at : end]
    _check_list(path, _decoded(path, shell, _Shell, text.line - prefix.count(b"\n")))
    text.skip(end)


def _item(path: str, raw: bytes, line: int) -> DumpItem:
    if head := _HEAD(raw):
        return DumpItem(*_head(*head.groups()), line, raw)
    found = _decoded(path, raw, _Head, line)
    return DumpItem(found.api_version, found.kind, line, raw)


@lru_cache(maxsize=256)
def _head(api_version: bytes, kind: bytes) -> tuple[str, str]:
    return api_version.decode(), kind.decode()


def _whole(path: str, data: bytes, line: int) -> Iterator[DumpItem]:
    """Yield the objects of several documents in a row, the first of which begins at a line."""
    view, start = memoryview(data), 0
    while data.startswith(b"{", start):
        end = len(data)
        try:
            msgspec.json.decode(view[start:], type=msgspec.Raw)
        except _NO_JSON as problem:
            if trailing := _TRAILING(str(problem)):
                end = start + int(trailing[1]) - 1
        yield from _of_value(path, data[start:end], line)
        line += data.count(b"\n", start, end)
        start = end
    if start < len(data):
        data = data[start:]
        if other := recognised(data):
            at = first_line(path, b"\n" * (line - 1) + data)
            raise Unreadable(rules.unreadable_dump(at, other.problem, other.help(rules.AGAIN)))
        lists, *more = PARTS.split(data)
        yield from _of_yaml(path, "\n" * (line - 1) + decode(path, lists))
        if more:
            if len(more) != IPAM:
                way_out = "run calicoctl datastore migrate export again"
                raise Unreadable(rules.unreadable_dump(Span(path), _CUT_OFF, way_out))
            for value in exported(_decoded(path, more[-1], Export)):
                yield DumpItem(value["apiVersion"], value["kind"], 0, value)


def _of_value(path: str, data: bytes, line: int, depth: int = 0) -> Iterator[DumpItem]:
    """Yield the objects of a JSON value that begins at a line: itself, or the members of its lists."""
    if has_more_entries(data, MOST_OBJECTS_OF_DUMP):
        raise Unreadable(rules.too_many_objects(Span(path), MOST_OBJECTS_OF_DUMP, "objects"))
    shell = _decoded(path, data, _Shell, line if line > 1 else 0)
    if not _is_list(path, shell.kind, shell.items, line, depth):
        if shell.items is not None and not shell.kind:
            raise Unreadable(rules.unreadable_dump(Span(path), "the list has no kind"))
        yield DumpItem(shell.api_version, shell.kind, line, data)
        return
    _check_list(path, shell)
    typed = "" if shell.kind == "List" else shell.kind.removesuffix("List")
    position = 0
    for raw in shell.items or ():
        text = bytes(raw)
        start = data.index(text, position)
        line += data.count(b"\n", position, start)
        position = start
        found = _item(path, text, line)
        if found.kind.endswith("List"):
            yield from _of_value(path, text, line, depth + 1)
        else:
            yield found._replace(api_version=found.api_version or shell.api_version, kind=found.kind or typed)


def _is_list(path: str, kind: str, members: object, line: int, depth: int) -> bool:
    """Return whether an object is a list. Raises Unreadable if it is nested too deep."""
    # Inside of a list it may be of a kind that is no list, but has a name that ends in List.
    listed = kind.endswith("List") and (depth == 0 or isinstance(members, list))
    if listed and depth > DEEPEST_LISTS:
        problem = f"lists are nested more than {DEEPEST_LISTS} levels deep"
        raise Unreadable(rules.unreadable_dump(Span(path, line, 1, 1) if line else Span(path), problem))
    return listed


def _of_yaml(path: str, text: str) -> Iterator[DumpItem]:
    breaks = [found.start() for found in re.finditer("\n", text)]
    lines = [bisect_left(breaks, found.start()) + 1 for found in _YAML_ITEM.finditer(text)]
    """Where items begin, if the text is a single list as kubectl prints it."""

    def objects(value: dict[Any, Any], of: DumpItem, depth: int) -> Iterator[DumpItem]:
        version, kind = str(value.get("apiVersion") or of.api_version), str(value.get("kind") or of.kind)
        members = value.get("items")
        if members is not None and not kind:  # kubectl prints the kind after the items
            end = Span(path, len(text.rstrip().splitlines()), 1, 1)
            raise Unreadable(rules.unreadable_dump(end, _CUT_OFF))
        if members is None or not _is_list(path, kind, members, of.line, depth):
            yield DumpItem(version, kind, of.line, value)
            return
        if not isinstance(members, list):
            raise Unreadable(rules.wrong_object(Span(path), "the list", "items is not a list"))
        if any(member(value, "metadata", key) for key in ("continue", "remainingItemCount")):
            raise Unreadable(rules.continued(Span(path)))
        typed = "" if kind == "List" else kind.removesuffix("List")
        for index, each in enumerate(members):
            if not isinstance(each, dict):
                raise Unreadable(rules.wrong_object(Span(path), f"item {index}", "it is not an object"))
            line = of.line if depth else lines[index] if len(lines) == len(members) else 0
            yield from objects(each, DumpItem(version, typed, line, None), depth + 1)

    for document in yaml_documents(path, text):
        if document.value is None:
            continue
        if not isinstance(document.value, dict):
            raise Unreadable(rules.unreadable_dump(Span(path), "neither JSON nor YAML from kubectl"))
        yield from objects(document.value, DumpItem("", "", 0, None), 0)


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
