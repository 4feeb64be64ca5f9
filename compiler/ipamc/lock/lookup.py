"""Look-ups in a lock's text without parsing all of it: the lines over a block, and the lines of a node.

The locks of a fleet have millions of lines. A block is found by bisection over the bytes, a node by a search
for its name, and only the rows of the answer are decoded and checked.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from ipamc.lock.file import named, parse
from ipamc.lock.record import decode, encode
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Refused
from ipamc.model.limits import SMALL_LOCK
from ipamc.model.lock import Line
from ipamc.model.wording import nearest_name

_STRANGE = b"<"
"""No canonical lock has one; a conflict marker has. One character is found at 60 GB a second."""
_NODES = re.compile(rb'"node":"([a-z0-9./-]{1,512})"').findall
_POOLS = re.compile(rb'"pool":"([a-z0-9.-]{1,253})"').findall


class NumberedLine(Struct, frozen=True, kw_only=True):
    """A line of a lock, and its row in the file."""

    line: Line
    number: int
    """The row, from 1."""


def over(text: bytes, path: str, block: Block) -> list[NumberedLine]:
    """Return the lines that share addresses with a block, by address. O(log n + result), plus counting rows.
    If a row is not canonical, the whole lock is read. Raises Refused with its errors.
    """
    return _found(text, path, _rows_over(text, block), lambda line: line.block.overlaps(block))


def of(text: bytes, path: str, node: str) -> list[NumberedLine]:
    """Return the lines of a node, by address. One search through the text. Raises Refused as `over` does."""
    return _found(text, path, _rows_of(text, node), lambda line: line.node == node)


def _found(
    text: bytes, path: str, quick: Iterator[NumberedLine], wanted: Callable[[Line], bool]
) -> list[NumberedLine]:
    """Return the result of a quick look-up; in a text that is not canonical, the wanted ones of all lines."""
    if text.endswith(b"\n") and _STRANGE not in text and named(text):
        with contextlib.suppress(ValueError):
            return list(quick)
    lock, found = parse(text, path)
    if found or lock is None:
        raise Refused(tuple(found))
    every = (NumberedLine(line=line, number=number) for number, line in enumerate(lock.lines, 2))
    return [each for each in every if wanted(each.line)]


def similar(texts: Iterable[bytes], name: str) -> str:
    """Return the name in small locks that is most similar to an unknown one: a node, `pool/NAME`, or ""."""
    nodes: set[str] = set()
    pools: set[str] = set()
    for text in texts:
        if len(text) <= SMALL_LOCK:
            nodes.update(found.decode() for found in _NODES(text))
            pools.update(found.decode() for found in _POOLS(text))
    return f"pool/{name}" if name in pools else nearest_name(name, nodes)


def _rows_over(text: bytes, block: Block) -> Iterator[NumberedLine]:
    start = text.find(b"\n") + 1
    if start == len(text) or _is_outside(text, start, block):
        return
    at = _first_from(text, start, block)
    at = text.rfind(b"\n", start, max(at - 1, start)) + 1 or start  # the line before may reach into the block
    last: Line | None = None
    number = text.count(b"\n", 0, at)
    while at < len(text):
        end = text.find(b"\n", at)
        line = _row(text[at:end])
        number += 1
        if last and (line.block < last.block or line.block.overlaps(last.block)):
            raise ValueError("the row is out of order")
        if (line.block.family, line.block.first) > (block.family, block.last):
            return
        if line.block.overlaps(block):
            yield NumberedLine(line=line, number=number)
        at, last = end + 1, line


def _is_outside(text: bytes, start: int, block: Block) -> bool:
    """Return whether the first and the last row prove that no row shares an address with a block.
    Nearly all clusters of a fleet are far from a block: two rows are decoded instead of one per bisection.
    """
    first = _row(text[start : text.find(b"\n", start)]).block
    last = _row(text[text.rfind(b"\n", 0, -1) + 1 : -1]).block
    before_all = (block.family, block.last) < (first.family, first.first)
    return before_all or (last.family, last.last) < (block.family, block.first)


def _first_from(text: bytes, low: int, block: Block) -> int:
    """Return the offset of the first row whose block begins at or after this one, or the end of the text."""
    high, wanted = len(text), (block.family, block.first)
    while low < high:
        middle = text.rfind(b"\n", low, (low + high) // 2) + 1 or low
        end = text.find(b"\n", middle)
        if _row(text[middle:end]).block[:2] < wanted:
            low = end + 1
        else:
            high = middle
    return low


def _rows_of(text: bytes, node: str) -> Iterator[NumberedLine]:
    name = f'"node":"{node}"'.encode()  # a node's name has no character that JSON escapes
    at = text.find(name)
    number, counted = 1, 0
    while at >= 0:
        start, end = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
        number, counted = number + text.count(b"\n", counted, start), start
        yield NumberedLine(line=_row(text[start:end]), number=number)
        at = text.find(name, end)


def _row(row: bytes) -> Line:
    line = decode(row)
    if encode(line) != row:
        raise ValueError("the row is not as ipamc writes it")
    return line
