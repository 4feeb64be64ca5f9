"""Finds the positions of values by reading a text again along the wanted paths; everything else is skipped.

Values do not carry positions through the compile: every compile would pay for what only a finding needs. One
pass finds any number of positions: from parser events for YAML, from brackets and texts for JSON.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from typing import Any

import yaml
from yaml.events import (
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from ipamc.model.limits import DEEPEST_DOCUMENT
from ipamc.read.syntax.document import Keys
from ipamc.read.syntax.yaml import parser

_BLANKS = re.compile(r"[ \t\n\r]*")
_BRACKET_OR_TEXT = re.compile(r'[\[\]{}]|"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_decode = json.JSONDecoder(parse_int=float).raw_decode

Twice = Callable[[Keys, tuple[int, int], tuple[int, int]], None]
"""A callback for a repeated key in a mapping: its path, and the offsets of this and of the first one."""


class Spot:
    """A wanted value, or a step on the path to one; offsets in characters, -1 if there is no such value."""

    __slots__ = ("children", "end", "key_end", "key_start", "start", "style")

    def __init__(self) -> None:
        self.children: dict[str | int, Spot] = {}
        self.start = self.end = self.key_start = self.key_end = -1
        self.style = ""

    def descend(self, keys: Keys) -> Spot:
        """Return the spot at a path from here, and mark it as wanted."""
        spot = self
        for key in keys:
            spot = spot.children.setdefault(key, Spot())
        return spot

    def deepest(self, keys: Keys) -> tuple[Spot, bool]:
        """Return the last existing spot on a path, and whether that is the path's end."""
        spot = self
        for key in keys:
            below = spot.children[key]
            if below.start < 0:
                return spot, False
            spot = below
        return spot, True


def scan_yaml(text: str, wanted: Spot) -> None:
    """Fill in the spots of a YAML stream; their first key is the document's index.
    Stops silently at a syntax error, and where a value is nested too deep: the reader went no further either,
    and a parser's time for each token grows with the depth of brackets.
    """
    with contextlib.suppress(yaml.YAMLError, _TooDeep):
        _YamlScan(text).stream(wanted)


class _TooDeep(Exception):  # noqa: N818 - where the scan ends, not a failure
    """A value has more than DEEPEST_DOCUMENT levels."""


class _YamlScan:
    def __init__(self, text: str) -> None:
        self.next = parser(text).get_event
        self.depth = 0

    def stream(self, wanted: Spot) -> None:
        """Fill in the spots of all documents."""
        last = max((key for key in wanted.children if isinstance(key, int)), default=-1)
        index = -1
        while index < last and type(event := self.next()) is not StreamEndEvent:
            if type(event) is DocumentStartEvent:
                index += 1
                event = self.next()
                if index in wanted.children:
                    self.visit(event, wanted.children[index])
                else:
                    self.skip(event)
                self.next()

    def visit(self, event: Any, spot: Spot) -> None:
        """Fill in a spot and those below it. A container's spot is its first key, or up to its bracket."""
        spot.start, spot.end = self.offsets(event)
        self.depth += 1
        if type(event) is ScalarEvent:
            spot.style = event.style or ""
        elif type(event) is MappingStartEvent:
            self.mapping(spot)
        elif type(event) is SequenceStartEvent:
            self.sequence(spot)
        self.depth -= 1

    def sequence(self, spot: Spot) -> None:
        index = 0
        while not isinstance(item := self.next(), SequenceEndEvent):
            below = spot.children.get(index)
            if below is None:
                self.skip(item)
            else:
                self.visit(item, below)
            index += 1
        spot.end = self.offsets(item)[1]

    def mapping(self, spot: Spot) -> None:
        first = True
        while not isinstance(key := self.next(), MappingEndEvent):
            start, end = self.offsets(key)
            if first:
                spot.start, spot.end, first = start, end, False
            below = spot.children.get(key.value) if isinstance(key, ScalarEvent) else None
            self.skip(key)
            value = self.next()
            if below is None or below.start >= 0:
                self.skip(value)
            else:
                below.key_start, below.key_end = start, end
                self.visit(value, below)
        if first:
            spot.end = self.offsets(key)[1]

    @staticmethod
    def offsets(event: Any) -> tuple[int, int]:
        return event.start_mark.index, event.end_mark.index

    def skip(self, event: Any) -> None:
        """Skip the value that begins with an event."""
        depth, most, get = 0, DEEPEST_DOCUMENT - self.depth, self.next
        while True:
            kind = type(event)
            if kind is MappingStartEvent or kind is SequenceStartEvent:
                depth += 1
                if depth > most:
                    raise _TooDeep
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                depth -= 1
            if not depth:
                return
            event = get()


def scan_json(text: str, wanted: Spot | None, twice: Twice | None = None) -> None:
    """Fill in the spots of a JSON text, whose document has index 0. Stops silently at a syntax error.
    With `twice`, every key of the whole text is checked, which is slow, and each duplicate is passed to it.
    """
    scan = _JsonScan(text, twice)
    try:
        scan.value(_skip_blanks(text, 0), wanted.children.get(0) if wanted else None, ())
    except (ValueError, IndexError, RecursionError):
        return


def _skip_blanks(text: str, index: int) -> int:
    match = _BLANKS.match(text, index)
    return match.end() if match else index


def _after_container(text: str, index: int) -> int:
    """Return the offset after the mapping or list that begins at an offset, and build nothing."""
    depth = 0
    for found in _BRACKET_OR_TEXT.finditer(text, index):
        mark = text[found.start()]
        if mark in "[{":
            depth += 1
        elif mark != '"':
            depth -= 1
            if not depth:
                return found.end()
    raise ValueError("the text ends inside a container")


class _JsonScan:
    def __init__(self, text: str, twice: Twice | None) -> None:
        self.text = text
        self.twice = twice

    def value(self, index: int, spot: Spot | None, keys: Keys) -> int:
        """Fill in a spot and the spots below it; return the offset after the value."""
        opening = self.text[index]
        if opening not in "{[":
            end = _decode(self.text, index)[1]
        elif not (self.twice or (spot and spot.children)):
            end = _after_container(self.text, index)
        elif opening == "{":
            end = self.members(index, spot, keys)
        else:
            end = self.elements(index, spot, keys)
        if spot and spot.start < 0:
            spot.start, spot.end = index, end
            spot.style = '"' if opening == '"' else ""
            if opening == "{" and self.text[inside := _skip_blanks(self.text, index + 1)] == '"':
                spot.start, spot.end = inside, _decode(self.text, inside)[1]
        return end

    def members(self, index: int, spot: Spot | None, keys: Keys) -> int:
        text, seen = self.text, dict[str, tuple[int, int]]()
        index = _skip_blanks(text, index + 1)
        while text[index] != "}":
            start = index
            key, end = _decode(text, start)
            if self.twice and key in seen:
                self.twice((*keys, key), (start, end), seen[key])
            seen.setdefault(key, (start, end))
            below = spot.children.get(key) if spot else None
            if below and below.start < 0:
                below.key_start, below.key_end = start, end
            index = _skip_blanks(text, _skip_blanks(text, end) + 1)  # the colon
            index = _skip_blanks(text, self.value(index, below, (*keys, key)))
            if text[index] == ",":
                index = _skip_blanks(text, index + 1)
        return index + 1

    def elements(self, index: int, spot: Spot | None, keys: Keys) -> int:
        text, number = self.text, 0
        index = _skip_blanks(text, index + 1)
        while text[index] != "]":
            below = spot.children.get(number) if spot else None
            index = _skip_blanks(text, self.value(index, below, (*keys, number)))
            if text[index] == ",":
                index = _skip_blanks(text, index + 1)
            number += 1
        return index + 1
