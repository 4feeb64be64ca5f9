"""JSON text to documents: one value a file. A list's items are decoded one by one, so that a large dump never is in memory as a whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ipamc.diagnostics import Diagnostic, Place
from ipamc.read import findings_text as findings
from ipamc.read.document import MAX_DEPTH, Document, Keys, Unreadable
from ipamc.read.positions import scan_json
from ipamc.read.text import Lines

_TOO_DEEP = b"\n" + b" " * (MAX_DEPTH + 1)
_HUGE_NUMBER = re.compile(r"-?[0-9]{300,}|-?[0-9][0-9.]*[eE]\+?[0-9]{3,}")
_LONE_SURROGATE = re.compile(r"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})(?!\\u[dD][c-fC-F])")
_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def json_documents(path: str, text: str) -> Iterator[Document]:
    """Read the one document of a JSON text. Raises Unreadable; in a list, also while its items are read."""
    try:
        yield Document(Place(path), _value(path, text))
    except _REFUSALS as problem:
        raise Unreadable(_refusal(path, text, problem)) from None


def _value(path: str, text: str) -> Any:
    if not text.lstrip().startswith("{"):
        return _sound(Place(path), text, text.encode())
    data = text.encode()
    members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    items = bytes(members.get("items", b""))
    kind = msgspec.json.decode(members.get("kind", b"null"))
    if not items.startswith(b"[") or not isinstance(kind, str) or not kind.endswith("List"):
        return _sound(Place(path), text, data)
    _sound(Place(path), text, data.replace(items, b"[]", 1))
    shell = {key: msgspec.json.decode(raw) for key, raw in members.items() if key != "items"}
    return {**shell, "items": _items(path, text, items)}


def _items(path: str, text: str, items: bytes) -> Iterator[Any]:
    try:
        for index, item in enumerate(msgspec.json.decode(items, type=list[msgspec.Raw])):
            yield _sound(Place(path, 0, ("items", index)), text, bytes(item))
    except _REFUSALS as problem:
        raise Unreadable(_refusal(path, text, problem)) from None


def _sound(at: Place, text: str, data: bytes) -> Any:
    """Decode a part of the text, and make sure that it is not too deep and that no key stands twice: printed again, it is what it was."""
    value = msgspec.json.decode(data)
    if _TOO_DEEP in msgspec.json.format(data, indent=1):
        raise Unreadable(findings.too_much(at, f"more than {MAX_DEPTH} levels of nesting", "flatten the document"))
    if msgspec.json.encode(value) != msgspec.json.format(data, indent=-1) and _has_duplicates(data):
        raise Unreadable(*_duplicates(at.path, text))
    return value


def _has_duplicates(data: bytes) -> bool:
    """Tell whether a key stands twice. For texts that only spell something another way (escapes, exponents) the answer is no."""
    found = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len({key for key, _ in pairs}) < len(pairs)

    json.loads(data, object_pairs_hook=look, parse_int=float)
    return found


def _duplicates(path: str, text: str) -> list[Diagnostic]:
    lines, found = Lines(path, text), list[Diagnostic]()

    def twice(keys: Keys, here: tuple[int, int], first: tuple[int, int]) -> None:
        found.append(findings.duplicate_key(str(keys[-1]), lines.span(*here), lines.span(*first)))

    scan_json(text, None, twice)
    return found


def _refusal(path: str, text: str, problem: Exception) -> Diagnostic:
    """Say why a text is not JSON, in the words of the standard library's reader, which knows the place."""
    lines = Lines(path, text)
    if isinstance(problem, RecursionError):
        return findings.too_much(Place(path), f"more than {MAX_DEPTH} levels of nesting", "flatten the document")
    try:
        json.loads(text, parse_int=float, parse_constant=_refuse_constant)
    except json.JSONDecodeError as known:
        at = lines.span(known.pos, known.pos + 1)
        if known.pos >= len(text.rstrip()):
            return findings.json_syntax(at, "the file ends in the middle of a value", "it was cut off: write it again")
        if known.msg == "Extra data":
            return findings.json_syntax(
                at, "more than one value in a JSON file", "name it .yaml if it has several documents, or make it a List"
            )
        return findings.json_syntax(at, known.msg[0].lower() + known.msg[1:])
    except (_NotJson, RecursionError) as known:
        constant = str(known) if isinstance(known, _NotJson) else ""
        if not constant:
            return findings.too_much(Place(path), f"more than {MAX_DEPTH} levels of nesting", "flatten the document")
        index = text.index(constant)
        return findings.json_syntax(lines.span(index, index + len(constant)), f"{constant} is not a JSON value")
    if huge := _HUGE_NUMBER.search(text):
        return findings.json_syntax(lines.span(huge.start(), huge.end()), "a number beyond all bounds")
    lone = _LONE_SURROGATE.search(text)
    return findings.json_syntax(lines.span(*lone.span(1)) if lone else Place(path), "a text or an escape that is not Unicode")


class _NotJson(Exception):  # noqa: N818 - a verdict on the text
    pass


def _refuse_constant(name: str) -> Any:
    raise _NotJson(name)
