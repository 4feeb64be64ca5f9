"""Converts JSON to documents: one value for each file.

The items of a list are decoded one by one, so a large dump is never in memory as a whole.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from itertools import accumulate, islice
from typing import Any

import msgspec

from ipamc.model.diagnostics import Diagnostic, Enough, Findings, Place
from ipamc.model.limits import DEEPEST_DOCUMENT, MOST_CONTAINERS, MOST_NODES, SMALL_TEXT
from ipamc.model.progress import share
from ipamc.model.wording import typed
from ipamc.read import rules
from ipamc.read.syntax.document import Document, Keys, Unreadable
from ipamc.read.syntax.positions import scan_json
from ipamc.read.syntax.text import BOM, Lines, check, kubectl

_TOO_DEEP = b"\n" + b" " * (DEEPEST_DOCUMENT + 1)

_AS_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"'))
# Patterns of mistakes are compiled at the first mistake.
_HUGE_NUMBER = r"(?<![0-9.])-?(?:[0-9]{300,}|[0-9][0-9.]*[eE]\+?[0-9]{3,})"
_LONE_SURROGATE = (
    r"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|"
    r"(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_BLANKS = " \t\n\r"
_STARTS_WITH_BRACE = re.compile(rb"[ \t\n\r]*+\{").match
_ENTRY = 3
"""The depth of the entries in a document's lists."""
_HEAD = 256
"""The number of bytes with which the items of a list are searched in their file."""


def has_more_entries(data: bytes, most: int) -> bool:
    """Return whether the lists of a JSON document have more than `most` mappings and lists, without decoding.
    Takes memory and time of the text's size; a text with at most `most` braces only needs their count.
    """
    if data.count(b"{") <= most:
        return False
    brackets = _brackets(data)
    opening = zip(brackets, accumulate(map(ord("\\").__sub__, brackets)), strict=True)
    entries = (None for bracket, depth in opening if depth == _ENTRY and bracket == ord("["))
    return next(islice(entries, most, None), entries) is None


def json_documents(path: str, data: bytes) -> Iterator[Document]:
    """Yield the one document of a JSON file. Raises Unreadable; for a list also while its items are read."""
    check(path, data)
    data = data.removeprefix(BOM)
    try:
        yield Document(Place(path), _value(path, data))
    except _REFUSALS as problem:
        raise Unreadable(_refusal(path, data, problem)) from None


def _value(path: str, data: bytes) -> Any:
    """Return the value of the file. The items of a list are not copied: a dump has 200 MB of them."""
    members: dict[str, msgspec.Raw] = {}
    if _STARTS_WITH_BRACE(data):
        members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    items = memoryview(members.get("items", b""))
    kind = msgspec.json.decode(members.get("kind", b"null"))
    if bytes(items[:1]) != b"[" or not isinstance(kind, str) or not kind.endswith("List"):
        if has_more_entries(data, MOST_NODES):
            raise Unreadable(rules.too_many(Place(path), "nodes or other entries"))
        return _sound(Place(path), data, data)
    _sound(Place(path), data, _without(data, items))
    shell = {key: msgspec.json.decode(raw) for key, raw in members.items() if key != "items"}
    return {**shell, "items": _items(path, data, items)}


def _without(data: bytes, items: memoryview) -> bytes:
    """Replace the items in a file by `[]`. They are too long for a search: their head is searched first."""
    head, start = bytes(items[:_HEAD]), -1
    while (start := data.find(head, start + 1)) >= 0:
        if data.startswith(items, start):
            return b"".join((data[:start], b"[]", memoryview(data)[start + len(items) :]))
    raise AssertionError("the items of a list are not in its text")


def _items(path: str, data: bytes, items: memoryview) -> Iterator[Any]:
    try:
        members = msgspec.json.decode(items, type=list[msgspec.Raw])
        if len(members) > MOST_NODES:
            raise Unreadable(rules.too_many(Place(path, 0, ("items", MOST_NODES)), "items"))
        for index, item in enumerate(share(members)):
            yield _sound(Place(path, 0, ("items", index)), data, bytes(item))
    except _REFUSALS as problem:
        raise Unreadable(_refusal(path, data, problem)) from None


def _sound(at: Place, data: bytes, part: bytes) -> Any:
    """Decode a part of the file. Raises Unreadable: too many containers, too deep, a repeated key."""
    many = len(part) > MOST_CONTAINERS and part.count(b"{") + part.count(b"[") > MOST_CONTAINERS
    if many and len(_brackets(part)) / 2 > MOST_CONTAINERS:
        problem = f"more than {MOST_CONTAINERS:,} mappings and lists"
        raise Unreadable(rules.too_much(at, problem, "split the document"))
    value = msgspec.json.decode(part)
    # Indenting is the fastest way to find the depth of a small text, and takes little memory.
    if len(part) < SMALL_TEXT:
        deep = _TOO_DEEP in msgspec.json.format(part, indent=1)
    else:
        deep = max(accumulate(map(ord("\\").__sub__, _brackets(part))), default=0) > DEEPEST_DOCUMENT
    if deep:
        raise Unreadable(rules.too_deep(at))
    if msgspec.json.encode(value) != msgspec.json.format(part, indent=-1):
        different: list[bool] = []

        def collect_duplicates(pairs: list[tuple[str, Any]]) -> None:
            if len({key for key, _ in pairs}) < len(pairs):
                different.append(True)

        json.loads(part, object_pairs_hook=collect_duplicates, parse_int=float)
        if different:
            text = data.decode()
            lines, found = Lines(at.path, text), Findings()

            def twice(keys: Keys, here: tuple[int, int], first: tuple[int, int]) -> None:
                found.append(rules.duplicate_key(str(keys[-1]), lines.span(*here), lines.span(*first)))

            with contextlib.suppress(Enough):
                scan_json(text, None, twice)
            raise Unreadable(*found)
    return value


def _brackets(part: bytes) -> bytes:
    """Return the brackets of JSON outside of texts; braces count as brackets."""
    if b"\\" in part:
        part = part.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Each text is reduced to a pair of quotes and the brackets between them.
    rest = part.translate(_AS_BRACKETS, _NO_BRACKETS).replace(b'""', b"")
    return b"".join(rest.split(b'"')[::2])


def _refusal(path: str, data: bytes, problem: Exception) -> Diagnostic:
    """Return the finding for a text that is not JSON, in the words of the standard library's reader."""
    text = data.decode()
    lines = Lines(path, text)
    if isinstance(problem, RecursionError):
        return rules.too_deep(Place(path))
    decoder = json.JSONDecoder(parse_int=float, parse_constant=_refuse_constant)
    try:
        _, end = decoder.raw_decode(text, len(text) - len(text.lstrip(_BLANKS)))
        if rest := text[end:].lstrip(_BLANKS):
            at, file = lines.span(len(text) - len(rest), len(text) - len(rest) + 1), typed(path)
            query = 'jq -s \'{apiVersion: "v1", kind: "List", items: .}\''
            way_out = f"make them one List: {query} {file} > all.json && mv all.json {file}"
            return rules.json_syntax(at, "more than one value in a JSON file", way_out)
    except json.JSONDecodeError as known:
        if known.pos >= len(text.rstrip()) or known.msg.startswith("Unterminated string"):
            at = lines.span(end := len(text.rstrip()), end)
            way_out = f"write the whole file again: {kubectl(path)}"
            return rules.json_syntax(at, "the file ends inside a value: it was cut off", way_out)
        at = lines.span(known.pos, known.pos + 1)
        if word := re.match("True|False|None", text[known.pos :]):
            value = {"True": "true", "False": "false", "None": "null"}[word[0]]
            return rules.json_syntax(at, f"{word[0]} is not a JSON value", f"write {value}")
        comma = text[: known.pos].rstrip(_BLANKS).endswith(",") and text[known.pos] in "]}"
        missing = "add the missing comma, colon or bracket before it, or remove it"
        way_out = "remove the comma before it" if comma else missing
        return rules.json_syntax(at, known.msg[0].lower() + known.msg[1:], way_out)
    except _Constant as known:
        index = text.index(str(known))
        at = lines.span(index, index + len(str(known)))
        return rules.json_syntax(at, f"{known} is not a JSON value", "write null")
    except RecursionError:
        return rules.too_deep(Place(path))
    if lone := re.search(_LONE_SURROGATE, text):
        return rules.json_syntax(lines.span(*lone.span(1)), "the escape is half of a surrogate pair")
    huge = re.search(_HUGE_NUMBER, text)
    return rules.json_syntax(lines.span(*huge.span()) if huge else Place(path), "the number is too large")


class _Constant(Exception):  # noqa: N818 - not an error of ipamc
    """NaN or Infinity, which Python's reader would accept."""


def _refuse_constant(name: str) -> Any:
    raise _Constant(name)
