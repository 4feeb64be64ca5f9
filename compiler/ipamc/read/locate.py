"""Places in, lines and columns out: reads the files that findings concern again, once each."""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from ipamc.model.diagnostics import At, Diagnostic, Located, Place, Span, located
from ipamc.read.kinds import FIELDS
from ipamc.read.narrow.excerpt import Excerpt, lines_of
from ipamc.read.syntax.document import Cut, Keys
from ipamc.read.syntax.encoding import BOM, Lines
from ipamc.read.syntax.positions import Spot, scan_cut_yaml, scan_json, scan_yaml
from ipamc.read.syntax.yaml_cut import cut

_TOKEN = re.compile(r"[\w./-]+|[^\w\s]")
"""What is underlined where a mistake inside a text begins: a word, or one other character."""
_QUOTES = frozenset({'"', "'"})
_ESCAPES = {"x": 4, "u": 6, "U": 10}
_PROPERTIES = re.compile(r"(?:[&!]\S*[ \t\r\n]+)*")


def locate(diagnostics: Iterable[Diagnostic], sources: Mapping[str, bytes]) -> tuple[Located, ...]:
    """Return the findings with a Span for every Place, sorted by path, line, column, code and message.

    A value that the document does not have is shown at its nearest parent that exists: at that mapping's
    first key. A file that is not among the sources is shown as a whole (line 0). Costs one pass over each
    file that has a Place.
    """
    found = list(diagnostics)
    if not found:
        return ()
    from ipamc.read.foreign_text import explained  # noqa: PLC0415 - only findings need it

    texts = Texts(
        sources, [at for finding in found for at in (finding.at, *(other.at for other in finding.also))]
    )
    return tuple(sorted((explained(located(finding, texts.span)) for finding in found), key=_order))


def _order(finding: Located) -> tuple[str, int, int, str, str]:
    at = finding.at
    return at.path, at.line, at.column, finding.code, finding.message


class Texts:
    """The source texts of some places, and the position of each place in them."""

    def __init__(self, sources: Mapping[str, bytes], ats: Iterable[At]) -> None:
        self._texts: dict[str, str] = {}
        self._lines: dict[str, Lines] = {}
        self._spots: dict[str, Spot] = {}
        self._scalars: dict[tuple[str, int], _Scalar] = {}
        wanted: dict[str, list[Keys]] = defaultdict(list)
        for at in ats:
            if isinstance(at, Place) and at.path in sources:
                wanted[at.path].append(_steps(at))
        for path in sorted(wanted):
            data = sources[path]
            text, self._spots[path] = _scanned(path, data, wanted[path])
            self._texts[path], self._lines[path] = text, lines_of(path, data, text)

    def source(self, at: Place) -> str:
        """Return the text of a scalar as the file has it, with quotes; "" if it has none."""
        spot, whole = self._spots[at.path].deepest(_steps(at)) if at.path in self._texts else (Spot(), False)
        return self._texts[at.path][spot.start : spot.end] if whole else ""

    def span(self, at: At) -> Span:
        """Return the span of a place; a Span is returned as it is."""
        if isinstance(at, Span):
            return at
        if at.path not in self._texts:
            return Span(at.path)
        spot, whole = self._spots[at.path].deepest(_steps(at))
        if spot.start < 0:
            return self._lines[at.path].span(0, 0)
        start, end = spot.start, spot.end
        if spot.key_start >= 0 and (start == end or (whole and at.key)):
            start, end = spot.key_start, spot.key_end
        elif whole and at.offset:
            key = at.path, spot.start
            if key not in self._scalars:
                self._scalars[key] = _Scalar(self._texts[at.path], spot)
            start = self._scalars[key].at(at.offset)
            token = _TOKEN.match(self._texts[at.path], start, max(start, spot.end - (spot.style in _QUOTES)))
            end = token.end() if token else start
        return self._lines[at.path].span(start, end)


def _scanned(path: str, data: bytes, wanted: Collection[Keys]) -> tuple[str, Spot]:
    """Return a text, and the spots of values in it: of a dump without what nobody reads, if it has all of them."""
    if not path.endswith(".json") and (found := _cut(data)):
        spots = _spots(wanted)
        if scan_cut_yaml(found, spots):
            return found.text, spots
    text, spots = data.removeprefix(BOM).decode(errors="replace"), _spots(wanted)
    (scan_json if path.endswith(".json") else scan_yaml)(text, spots)
    return text, spots


def _cut(data: bytes) -> Cut | None:
    if isinstance(data, Excerpt):  # its offsets lead to those of its file
        return None
    try:
        return cut(data, FIELDS)
    except UnicodeDecodeError:
        return None


def _spots(wanted: Iterable[Keys]) -> Spot:
    spots = Spot()
    for keys in wanted:
        spots.descend(keys)
    return spots


def _steps(at: Place) -> Keys:
    return (at.document, *at.keys)


_EVERY = 256
"""Characters between those whose offsets are kept."""


class _Scalar:
    """The characters of a scalar's value in the text. Thousands of findings may be about one scalar."""

    def __init__(self, text: str, spot: Spot) -> None:
        start = spot.start
        if match := _PROPERTIES.match(text, start, spot.end):
            start = match.end()
        self._text, self._start, self._end, self._style = text, start, spot.end, spot.style
        self._marks = [start + (1 if spot.style else 0)]
        """The offset in the text of each character whose number is a multiple of `_EVERY`, as far as known."""
        self._lines = _lines_of_block(text, start, spot.end) if spot.style in {"|", ">"} else None

    def at(self, offset: int) -> int:
        """Return the offset in the text of a character of the value. O(offset) for the first ones, then O(log n)."""
        if self._lines is not None:
            return _inside_block(self._lines, self._end, offset)
        while len(self._marks) <= offset // _EVERY and self._marks[-1] < self._end:
            self._marks.append(self._after(self._marks[-1], _EVERY))
        known = min(offset // _EVERY, len(self._marks) - 1)
        return min(self._after(self._marks[known], offset - known * _EVERY), self._end)

    def _after(self, index: int, offset: int) -> int:
        """Return the offset in the text so many characters of the value later."""
        text, end, style = self._text, self._end, self._style
        while offset > 0 and index < end:
            offset -= 1
            if style == '"' and text[index] == "\\":
                index += _ESCAPES.get(text[index + 1], 2)
            elif style == "'" and text[index] == "'":
                index += 2
            elif text[index] in "\r\n":
                # A folded line break counts, with the blanks around it, as one character.
                while index < end and text[index] in " \t\r\n":
                    index += 1
            else:
                index += 1
        return index


def _lines_of_block(text: str, start: int, end: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the lines of a block scalar: the number of the first character of each in the value; its content.

    Lines begin after their indentation, and a line break is one character.
    """
    numbers: list[int] = []
    contents: list[tuple[int, int]] = []
    number, line, indent = 0, text.find("\n", start, end) + 1, -1
    while line:
        newline = text.find("\n", line, end)
        stop = end if newline < 0 else newline - (text[newline - 1] == "\r")
        content = text[line:stop]
        if indent < 0 and content.strip():
            indent = len(content) - len(content.lstrip(" "))
        first = min(line + max(indent, 0), stop)
        numbers.append(number)
        contents.append((first, stop))
        number += stop - first + 1
        line = newline + 1
    return numbers, contents


def _inside_block(lines: tuple[list[int], list[tuple[int, int]]], end: int, offset: int) -> int:
    """Return the offset in the text of a character of a block scalar."""
    numbers, contents = lines
    place = bisect.bisect_right(numbers, offset) - 1
    if place < 0 or offset - numbers[place] > contents[place][1] - contents[place][0]:
        return end
    return contents[place][0] + offset - numbers[place]
