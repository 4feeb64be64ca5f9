"""JSON to documents: one value a file. A list's items are decoded one by one, so that a large dump never is in memory as a whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ipamc.model.diagnostics import Diagnostic, Place
from ipamc.read.syntax import rules
from ipamc.read.syntax.document import MAX_DEPTH, Document, Keys, Unreadable
from ipamc.read.syntax.encoding import BOM, Lines
from ipamc.read.syntax.positions import scan_json

_TOO_DEEP = b"\n" + b" " * (MAX_DEPTH + 1)
_HUGE_NUMBER = re.compile(r"-?[0-9]{300,}|-?[0-9][0-9.]*[eE]\+?[0-9]{3,}")
_LONE_SURROGATE = re.compile(
    r"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def json_documents(path: str, data: bytes) -> Iterator[Document]:
    """Read the one document of a JSON file, whose bytes are UTF-8. Raises Unreadable; in a list, also while its items are read."""
    data = data.removeprefix(BOM)
    try:
        yield Document(Place(path), _value(path, data))
    except _REFUSALS as problem:
        raise Unreadable(_refusal(path, data, problem)) from None


def _value(path: str, data: bytes) -> Any:
    if not data.lstrip().startswith(b"{"):
        return _sound(Place(path), data, data)
    members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    items = memoryview(members.get("items", b""))
    kind = msgspec.json.decode(members.get("kind", b"null"))
    if bytes(items[:1]) != b"[" or not isinstance(kind, str) or not kind.endswith("List"):
        return _sound(Place(path), data, data)
    _sound(Place(path), data, data.replace(items, b"[]", 1))
    shell = {key: msgspec.json.decode(raw) for key, raw in members.items() if key != "items"}
    return {**shell, "items": _items(path, data, items)}


def _items(path: str, data: bytes, items: memoryview) -> Iterator[Any]:
    try:
        for index, item in enumerate(msgspec.json.decode(items, type=list[msgspec.Raw])):
            yield _sound(Place(path, 0, ("items", index)), data, bytes(item))
    except _REFUSALS as problem:
        raise Unreadable(_refusal(path, data, problem)) from None


def _sound(at: Place, data: bytes, part: bytes) -> Any:
    """Decode a part of the file, and make sure that it is not too deep and that no key stands twice: printed again, it is what it was."""
    value = msgspec.json.decode(part)
    if _TOO_DEEP in msgspec.json.format(part, indent=1):
        raise Unreadable(
            rules.too_much(at, f"more than {MAX_DEPTH} levels of nesting", "flatten the document")
        )
    if msgspec.json.encode(value) != msgspec.json.format(part, indent=-1) and _has_duplicates(part):
        raise Unreadable(*_duplicates(at.path, data))
    return value


def _has_duplicates(data: bytes) -> bool:
    """Tell whether a key stands twice. For texts that only spell something another way (escapes, exponents) the answer is no."""
    found = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len({key for key, _ in pairs}) < len(pairs)

    json.loads(data, object_pairs_hook=look, parse_int=float)
    return found


def _duplicates(path: str, data: bytes) -> list[Diagnostic]:
    text = data.decode()
    lines, found = Lines(path, text), list[Diagnostic]()

    def twice(keys: Keys, here: tuple[int, int], first: tuple[int, int]) -> None:
        found.append(rules.duplicate_key(str(keys[-1]), lines.span(*here), lines.span(*first)))

    scan_json(text, None, twice)
    return found


def _refusal(path: str, data: bytes, problem: Exception) -> Diagnostic:
    """Say why a text is not JSON, in the words of the standard library's reader, which knows the place."""
    text = data.decode()
    lines = Lines(path, text)
    too_deep = rules.too_much(Place(path), f"more than {MAX_DEPTH} levels of nesting", "flatten the document")
    if isinstance(problem, RecursionError):
        return too_deep
    try:
        json.loads(text, parse_int=float, parse_constant=_refuse_constant)
    except json.JSONDecodeError as known:
        at = lines.span(known.pos, known.pos + 1)
        if known.pos >= len(text.rstrip()):
            return rules.json_syntax(
                at, "the file ends in the middle of a value", "it was cut off: write it again"
            )
        if known.msg == "Extra data":
            way_out = "name it .yaml if it has several documents, or make it a List"
            return rules.json_syntax(at, "more than one value in a JSON file", way_out)
        return rules.json_syntax(at, known.msg[0].lower() + known.msg[1:])
    except _Constant as known:
        index = text.index(str(known))
        return rules.json_syntax(lines.span(index, index + len(str(known))), f"{known} is not a JSON value")
    except RecursionError:
        return too_deep
    if huge := _HUGE_NUMBER.search(text):
        return rules.json_syntax(lines.span(huge.start(), huge.end()), "a number beyond all bounds")
    lone = _LONE_SURROGATE.search(text)
    return rules.json_syntax(
        lines.span(*lone.span(1)) if lone else Place(path), "an escape that is half a character"
    )


class _Constant(Exception):  # noqa: N818 - not an error of ours: NaN and Infinity, which Python's reader would take
    pass


def _refuse_constant(name: str) -> Any:
    raise _Constant(name)
