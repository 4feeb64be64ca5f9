"""Questions to a lock's text that need not read all of it: which lines lie over a block, and which are a node's.

A fleet's locks have millions of lines, and a question is about a few of them. Lines stand in order of address, so a block is found by bisection over
the bytes, and a node by a search for its name; only the rows that answer are decoded. What a look comes across must be sound; the rest is as the compile
left it, which wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ipamc.lock.file import decode, encode, named, parse
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Refused
from ipamc.model.lock import Line, Lock

_MARKER = b"\n<<<<<<< "


class Found(NamedTuple):
    """A line of a lock, and where it stands."""

    line: Line
    number: int
    """Of the row, from 1."""


class _Unsound(ValueError):  # noqa: N818 - a verdict that stays in here
    """A look came across what no compile writes."""


def over(text: bytes, path: str, block: Block) -> list[Found]:
    """Give the lines that share addresses with a block, by address. O(log n + result), save for counting rows.

    Raises Refused with what a full read finds wrong, where the rows on the way are not as a compile writes them.
    """
    try:
        _check(text)
        return list(_over(text, block))
    except ValueError:
        return [each for each in _all(text, path) if each.line.block.overlaps(block)]


def of(text: bytes, path: str, node: str) -> list[Found]:
    """Give the lines of a node, by address. One search through the text; raises Refused as `over` does."""
    try:
        _check(text)
        return list(_of(text, node))
    except ValueError:
        return [each for each in _all(text, path) if each.line.node == node]


def _check(text: bytes) -> None:
    if not text.endswith(b"\n") or _MARKER in text or not named(text):
        raise _Unsound


def _all(text: bytes, path: str) -> list[Found]:
    lock, found = parse(text, path)
    if found or lock is None:
        raise Refused(tuple(found))
    return rows(lock)


def rows(lock: Lock) -> list[Found]:
    """Give every line of a lock as it was read, with its row."""
    return [Found(line, number) for number, line in enumerate(lock.lines, 2)]


def _over(text: bytes, block: Block) -> Iterator[Found]:
    start = text.find(b"\n") + 1
    at = _first_from(text, start, block)
    at = text.rfind(b"\n", start, max(at - 1, start)) + 1 or start  # the line before may reach into the block
    last: Line | None = None
    while at < len(text):
        end = text.find(b"\n", at)
        line = _row(text[at:end])
        if last and (line.block < last.block or line.block.overlaps(last.block)):
            raise _Unsound
        if (line.block.family, line.block.first) > (block.family, block.last):
            return
        if line.block.overlaps(block):
            yield Found(line, text.count(b"\n", 0, at) + 1)
        at, last = end + 1, line


def _first_from(text: bytes, low: int, block: Block) -> int:
    """Give where the first row begins whose block does not begin before this one; the end of the text if none does."""
    high, wanted = len(text), (block.family, block.first)
    while low < high:
        middle = text.rfind(b"\n", low, (low + high) // 2) + 1 or low
        end = text.find(b"\n", middle)
        if _row(text[middle:end]).block[:2] < wanted:
            low = end + 1
        else:
            high = middle
    return low


def _of(text: bytes, node: str) -> Iterator[Found]:
    name = f'"node":"{node}"'.encode()  # what may be a node's name needs no escape in JSON
    at = text.find(name)
    while at >= 0:
        start, end = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
        yield Found(_row(text[start:end]), text.count(b"\n", 0, start) + 1)
        at = text.find(name, end)


def _row(row: bytes) -> Line:
    line = decode(row)
    if encode(line) != row:
        raise _Unsound
    return line
