"""Places in, lines and columns out: reads the files that findings concern again, once each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from ipamc.model.diagnostics import At, Diagnostic, Located, Place, Span, located
from ipamc.read.syntax.document import Keys
from ipamc.read.syntax.encoding import BOM, Lines
from ipamc.read.syntax.positions import Spot, scan_json, scan_yaml

_ESCAPES = {"x": 4, "u": 6, "U": 10}
_PROPERTIES = re.compile(r"(?:[&!]\S*[ \t\r\n]+)*")


def locate(diagnostics: Iterable[Diagnostic], sources: Mapping[str, bytes]) -> tuple[Located, ...]:
    """Return the findings with a Span for every Place, sorted by path, line, column, code and message.

    A value that the document does not have is shown at its nearest parent that exists: at that mapping's
    first key. A file that is not among the sources is shown as a whole (line 0). Costs one pass over each
    file that has a Place.
    """
    found = list(diagnostics)
    texts = Texts(
        sources, [at for finding in found for at in (finding.at, *(other.at for other in finding.also))]
    )
    return tuple(sorted((located(finding, texts.span) for finding in found), key=_order))


def _order(finding: Located) -> tuple[str, int, int, str, str]:
    at = finding.at
    return at.path, at.line, at.column, finding.code, finding.message


class Texts:
    """The source texts of some places, and the position of each place in them."""

    def __init__(self, sources: Mapping[str, bytes], ats: Iterable[At]) -> None:
        self._texts: dict[str, str] = {}
        self._lines: dict[str, Lines] = {}
        self._spots: dict[str, Spot] = defaultdict(Spot)
        for at in ats:
            if isinstance(at, Place) and at.path in sources:
                self._spots[at.path].descend(_steps(at))
        for path in sorted(self._spots):
            text = sources[path].removeprefix(BOM).decode(errors="replace")
            self._texts[path], self._lines[path] = text, Lines(path, text)
            (scan_json if path.endswith(".json") else scan_yaml)(text, self._spots[path])

    def source(self, at: Place) -> str:
        """Return the text of a value as the file has it, with quotes; "" if it has none."""
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
            start = end = _inside(self._texts[at.path], spot, at.offset)
        return self._lines[at.path].span(start, end)


def _steps(at: Place) -> Keys:
    return (at.document, *at.keys)


def _inside(text: str, spot: Spot, offset: int) -> int:
    """Return the offset in the text of a character of a scalar's value."""
    start, end = spot.start, spot.end
    if match := _PROPERTIES.match(text, start, end):
        start = match.end()
    if spot.style in {"|", ">"}:
        return _inside_block(text, start, end, offset)
    index = start + (1 if spot.style else 0)
    while offset > 0 and index < end:
        offset -= 1
        if spot.style == '"' and text[index] == "\\":
            index += _ESCAPES.get(text[index + 1], 2)
        elif spot.style == "'" and text[index] == "'":
            index += 2
        elif text[index] in "\r\n":  # a folded line break counts, with the blanks around it, as one character
            while index < end and text[index] in " \t\r\n":
                index += 1
        else:
            index += 1
    return min(index, end)


def _inside_block(text: str, start: int, end: int, offset: int) -> int:
    """Do the same in a block scalar: lines begin after their indentation, a line break is one character."""
    line, indent = text.find("\n", start, end) + 1, -1
    while line:
        newline = text.find("\n", line, end)
        stop = end if newline < 0 else newline - (text[newline - 1] == "\r")
        content = text[line:stop]
        if indent < 0 and content.strip():
            indent = len(content) - len(content.lstrip(" "))
        first = min(line + max(indent, 0), stop)
        if offset <= stop - first:
            return first + offset
        offset -= stop - first + 1
        line = newline + 1
    return end
