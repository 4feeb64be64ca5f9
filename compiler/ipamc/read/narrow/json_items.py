"""The parts of a JSON file that are not left out: items of a list, entries of a NodeInventory."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from ipamc.read.narrow.excerpt import Piece
from ipamc.read.narrow.left_out import LISTS, LeftOut

_MEMBER = re.compile(rb'[ \t\r\n,]*("(?:[^"\\]|\\.)*+")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_BETWEEN = re.compile(rb"[ \t\r\n,]*")
_HIDDEN = re.compile(rb"\\u00(?:2[dDeE]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA])")
"""A character of a name as an escape. Go writes <, > and & so, which are in no name."""
_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Item(msgspec.Struct):
    kind: str | None = None


class _Top(msgspec.Struct):
    kind: str | None = None
    items: list[_Item] | None = None


_TOP = msgspec.json.Decoder(_Top)  # skips all else: 2 GB a second
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])


def json_pieces(data: bytes, left_out: LeftOut) -> Sequence[Piece] | None:
    """Return the pieces that are not left out; none of a file that is left out. None: read all of it."""
    if not data.startswith((b"{", b" ", b"\n", b"\r", b"\t")):
        return None
    try:
        top = _TOP.decode(data)
        kind = top.kind or ""
        if not left_out.any_of([kind]) and kind != LISTS:
            return None
        typed = kind.removesuffix(LISTS)
        kinds = [item.kind or typed for item in top.items or ()] if kind.endswith(LISTS) else [kind]
        if not left_out.any_of(kinds) or (left_out.but and _HIDDEN.search(data)):
            return None
        mentions = left_out.mentions(data, 0, len(data))
        if left_out.all_of(kinds) and not mentions:
            return []
        if kind.endswith(LISTS):
            there = _elements(data, "items")
            wanted = {number for number, kind in enumerate(kinds) if not left_out.any_of([kind])}
        else:
            there = _elements(data, "nodes")
            wanted = set()
    except _REFUSALS:
        return None
    return _cut(there, wanted, mentions, len(data)) if there else None


def _elements(data: bytes, key: str) -> list[Piece]:
    """Return where the elements of a list are; none where there is no such list, or another key is there twice.

    msgspec tells how long values are, but not where they begin: there is nothing but commas and blanks between
    them.
    """
    members = _MEMBERS.decode(data)
    at = data.index(b"{") + 1
    found: list[Piece] = []
    for name, raw in members.items():
        member = _MEMBER.match(data, at)
        if member is None or msgspec.json.decode(member[1]) != name:
            return []
        at = member.end() + len(memoryview(raw))
        if name == key and data.startswith(b"[", member.end()):
            inside = member.end() + 1
            for element in _ELEMENTS.decode(raw):
                between = _BETWEEN.match(data, inside)
                start = between.end() if between else inside
                inside = start + len(memoryview(element))
                found.append((start, inside))
    return found if data[at:].strip() == b"}" else []


def _cut(elements: Sequence[Piece], wanted: set[int], mentions: Sequence[int], length: int) -> list[Piece]:
    """Return the pieces of a file with those elements alone that are wanted, or mention the node."""
    starts = [start for start, _ in elements]
    kept = sorted(wanted | {max(bisect_left(starts, at + 1) - 1, 0) for at in mentions})
    pieces = [(0, elements[0][0])]
    for place, number in enumerate(kept):
        start, end = elements[number]
        # With the comma before it, unless it is the first one now.
        pieces.append((elements[number - 1][1] if place else start, end))
    return [*pieces, (elements[-1][1], length)]
