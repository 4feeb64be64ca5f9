"""Parts of a file, one after the other, that know where they were."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Self

from ipamc.model.diagnostics import Span
from ipamc.read.syntax.encoding import Lines

Piece = tuple[int, int]
"""Where a part of a file begins, and where it ends, in bytes."""


class Excerpt(bytes):
    """Some pieces of a file as one text, which is read in place of the file.

    It is bytes, so that nothing that reads files has to know of it; who shows a place asks `lines_of`.
    """

    whole: bytes
    """The file."""
    pieces: Sequence[Piece]

    def __new__(cls, whole: bytes, pieces: Sequence[Piece]) -> Self:
        """Take pieces of a file, in their order."""
        excerpt = super().__new__(cls, b"".join([whole[start:end] for start, end in pieces]))
        excerpt.whole, excerpt.pieces = whole, pieces
        return excerpt


def lines_of(path: str, data: bytes, text: str) -> Lines:
    """Return the lines of an input, whose bytes were read as `text`; of an Excerpt, those of its file."""
    return _WholeLines(path, data, text) if isinstance(data, Excerpt) else Lines(path, text)


class _WholeLines(Lines):
    """From offsets in an excerpt to lines of its file. One span costs a count of line breaks before it."""

    def __init__(self, path: str, excerpt: Excerpt, text: str) -> None:
        super().__init__(path, text)
        self._whole = excerpt.whole
        self._to = [start for start, _ in excerpt.pieces]
        lengths = [end - start for start, end in excerpt.pieces]
        self._from = list(accumulate(lengths[:-1], initial=0))
        self._ascii = text.isascii()
        self._returns = b"\r" in excerpt.whole
        self._known = (0, 1)
        """Where a line begins, and its number: most places are in one item."""

    def span(self, start: int, end: int) -> Span:
        """Return the span in the file from one offset in the excerpt to another, as `Lines` does."""
        whole = self._whole
        first = self._offset(start)
        last = self._offset(end - 1) + 1 if end > start else first
        breaks = (b"\n", b"\r") if self._returns else (b"\n",)
        line = max(whole.rfind(end_of_line, 0, first) for end_of_line in breaks) + 1
        ends = (whole.find(end_of_line, line) for end_of_line in breaks)
        stop = min((offset for offset in ends if offset >= 0), default=len(whole))
        column = self._characters(line, min(first, stop)) + 1
        end_column = max(column, self._characters(line, min(last, stop)) + 1)
        return Span(self._path, self._number(line), column, end_column, whole[line:stop].decode())

    def _number(self, line: int) -> int:
        """Return the number of the line that begins at an offset in the file."""
        start, number = self._known if self._known[0] <= line else (0, 1)
        number += self._whole.count(b"\n", start, line)
        if self._returns:
            number += self._whole.count(b"\r", start, line) - self._whole.count(b"\r\n", start, line)
        self._known = line, number
        return number

    def _offset(self, index: int) -> int:
        """Return the offset in the file of a character of the excerpt."""
        at = index if self._ascii else len(self._text[:index].encode())
        piece = bisect_right(self._from, at) - 1
        return self._to[piece] + at - self._from[piece]

    def _characters(self, start: int, end: int) -> int:
        return len(self._whole[start:end].decode(errors="replace"))
