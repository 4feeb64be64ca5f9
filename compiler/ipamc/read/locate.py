"""Places to spans: line and column of what a finding is about, by reading only the files concerned again, each once."""

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
    """Give the findings with a Span wherever a Place was, sorted by path, line, column, code and message.

    A value that the document does not have is shown at its nearest parent that is there: at that mapping's first key. A file that is not
    among the sources is shown as a whole (line 0). Costs one pass over each file that a Place is in.
    """
    found = list(diagnostics)
    texts = Texts(sources, [at for each in found for at in (each.at, *(other.at for other in each.also))])
    return tuple(sorted((located(each, texts.span) for each in found), key=_order))


def _order(finding: Located) -> tuple[str, int, int, str, str]:
    at = finding.at
    return at.path, at.line, at.column, finding.code, finding.message


class Texts:
    """The places of some findings, looked up in the texts that they are in."""

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
        """Give the text of a value as it is written, quotes and all; "" where there is none."""
        spot, whole = self._spots[at.path].deepest(_steps(at)) if at.path in self._texts else (Spot(), False)
        return self._texts[at.path][spot.start : spot.end] if whole else ""

    def span(self, at: At) -> Span:
        """Give the span of a place; of a Span, itself."""
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
    """Give where in the text a character of a scalar's value stands."""
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
        elif text[index] in "\r\n":  # folded: the line break and the blanks around it are one character
            while index < end and text[index] in " \t\r\n":
                index += 1
        else:
            index += 1
    return min(index, end)


def _inside_block(text: str, start: int, end: int, offset: int) -> int:
    """Do the same in a block scalar, where each line begins behind its indentation and a line break is one character."""
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
