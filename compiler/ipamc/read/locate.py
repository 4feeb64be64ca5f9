"""Finds the line and column of each finding: reads a file with findings again. Names text that is no YAML."""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from operator import attrgetter, itemgetter

from msgspec.structs import replace

from ipamc.model.diagnostics import At, Diagnostic, Located, Place, Severity, Span, located
from ipamc.model.limits import SEARCHED_AROUND
from ipamc.model.wording import cut as shortened
from ipamc.model.wording import typed
from ipamc.read.syntax.document import Keys
from ipamc.read.syntax.positions import Spot, scan_json, scan_yaml
from ipamc.read.syntax.text import BOM, Lines
from ipamc.read.syntax.yaml_cut import read_cut

_SYNTAX = "IPC0001"
_LAST = "IPC02"
"""Codes up to this are about the form of the text, others about its meaning."""
# Compiled where they are used: most runs have no error.
_VARIABLE = r"\$\{[^}]*\}|\$\([^)]*\)|\$[A-Za-z_]\w*"
_TEMPLATE = r"\{\{.*?\}\}|\{%.*?%\}|<%.*?%>"
_NO_BREAK = "[\u00a0\u2007\u202f]"
_COMMENT = r"(?:^|(?<=\s))//.*"
_DIGEST = r"\S*@sha256:[0-9a-f]+"
_IN_JSON = (_TEMPLATE, _VARIABLE, _NO_BREAK, _DIGEST)
_IN_TEXT = (*_IN_JSON, _COMMENT)  # for JSON the reader reports that it has no comments


def with_template_hint(finding: Located) -> Located:
    """Return a finding with a help that names foreign text at its place; another finding unchanged.
    The finding's own help is kept behind it, unless the foreign text causes a syntax error.
    """
    if finding.severity is not Severity.ERROR or finding.code[:5] > _LAST:
        return finding
    near = finding.code == _SYNTAX
    for span in (finding.at, *(related.at for related in finding.also if near)):
        for found in _foreign(span, near=near):
            help_text = _foreign_help(found, span)
            kept = "" if near or "template" in finding.help else finding.help
            return replace(finding, help=f"{help_text}; {kept}" if kept else help_text)
    return finding


def _foreign(span: Span, *, near: bool) -> Iterator[re.Match[str]]:
    """Yield foreign text in a span; with `near` also around and behind it, and in flow style its bracket."""
    start, end = span.column - 1, span.end_column - 1
    if span.source[start : start + 1] == "{" == span.source[start - 1 : start]:
        start, near = start - 1, True
    for pattern in _IN_JSON if span.path.endswith(".json") else _IN_TEXT:
        last = min(end, start + SEARCHED_AROUND) + SEARCHED_AROUND
        for found in re.compile(pattern).finditer(span.source, max(0, start - SEARCHED_AROUND), last):
            if found.start() <= start <= found.end() if near else start <= found.start() < end:
                yield found


def _foreign_help(found: re.Match[str], span: Span) -> str:
    text = shortened(found.group())
    if found.re.pattern == _VARIABLE:
        return f"{text} is a variable, which ipamc does not expand: write its value"
    if found.re.pattern == _TEMPLATE:
        return f"{text} is a template, which ipamc does not render: write its value"
    if found.re.pattern == _NO_BREAK:
        spaces = rf"sed -i 's/\xc2\xa0/ /g' {typed(span.path)}" if text == "\u00a0" else "write a space there"
        return f"it has a no-break space (U+{ord(text):04X}), which looks like a space: {spaces}"
    if found.re.pattern == _COMMENT:
        return "a comment begins with #, not with //"
    return (
        "a digest does not name a version; to print it: kubectl -n kube-system exec ds/cilium "
        "-c cilium-agent -- cilium-agent --version"
    )


_TOKEN = re.compile(r"[\w./-]+|[^\w\s]")
"""The underlined part if a mistake begins inside a text: a word, or one other character."""
_QUOTES = frozenset({'"', "'"})
_ESCAPES = {"x": 4, "u": 6, "U": 10}
_PROPERTIES = re.compile(r"(?:[&!]\S*[ \t\r\n]+)*")


def locate(diagnostics: Iterable[Diagnostic], sources: Mapping[str, bytes]) -> tuple[Located, ...]:
    """Return the findings with a Span for every Place, in order.
    For a value that the document does not have, the place is the first key of its nearest existing parent;
    for a file that is not among the sources, the whole file (line 0). One pass over each file with a Place.
    """
    found = list(diagnostics)
    texts = Texts(sources, [at for each in found for at in (each.at, *(other.at for other in each.also))])
    ones = [with_template_hint(located(each, texts.span)) for each in found]
    return tuple(sorted(ones, key=attrgetter("order")))


class Texts:
    """The source texts that some places refer to, and the position of each place in them."""

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
            self._texts[path], self._lines[path] = text, Lines(path, text)

    def source(self, at: Place) -> str:
        """Return the source text of a scalar, with quotes; "" if it has none."""
        spot, whole = self._spots[at.path].deepest(_steps(at)) if at.path in self._texts else (Spot(), False)
        return self._texts[at.path][spot.start : spot.end] if whole else ""

    def span(self, at: At) -> Span:
        """Return the span of a place; a Span is returned unchanged."""
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
    """Return a text, without unread parts, and the spots of the values."""
    is_json = path.endswith(".json")
    found = None if is_json else read_cut(path, data)
    text = found[0] if found else data.removeprefix(BOM).decode(errors="replace")
    spots = Spot()
    for keys in wanted:
        spots.descend(keys)
    (scan_json if is_json else scan_yaml)(text, spots)
    return text, spots


def _steps(at: Place) -> Keys:
    return (at.document, *at.keys)


_EVERY = 256
"""Distance, in characters, between stored offsets."""


class _Scalar:
    """The characters of a scalar's value in the text. Thousands of findings may be about one scalar."""

    def __init__(self, text: str, spot: Spot) -> None:
        start = spot.start
        if match := _PROPERTIES.match(text, start, spot.end):
            start = match.end()
        self._text, self._end, self._style = text, spot.end, spot.style
        self._marks = [start + (1 if spot.style else 0)]
        """The offset in the text of every `_EVERY`th character, as far as known."""
        self._lines: list[tuple[int, int, int]] | None = None
        """The lines of a block scalar: the number of the first character in the value, start, end."""
        if spot.style in {"|", ">"}:
            self._lines, number, line, indent = [], 0, text.find("\n", start, spot.end) + 1, -1
            while line:
                newline = text.find("\n", line, spot.end)
                stop = spot.end if newline < 0 else newline - (text[newline - 1] == "\r")
                content = text[line:stop]
                if indent < 0 and content.strip():
                    indent = len(content) - len(content.lstrip(" "))
                first = min(line + max(indent, 0), stop)
                self._lines.append((number, first, stop))
                number += stop - first + 1  # a line break is one character
                line = newline + 1

    def at(self, offset: int) -> int:
        """Return the offset in the text of a character of the value. First call O(offset), then O(log n)."""
        if self._lines is not None:
            place = bisect.bisect_right(self._lines, offset, key=itemgetter(0)) - 1
            number, first, stop = self._lines[place] if place >= 0 else (0, 0, -1)
            return self._end if offset - number > stop - first else first + offset - number
        while len(self._marks) <= offset // _EVERY and self._marks[-1] < self._end:
            self._marks.append(self._after(self._marks[-1], _EVERY))
        known = min(offset // _EVERY, len(self._marks) - 1)
        return min(self._after(self._marks[known], offset - known * _EVERY), self._end)

    def _after(self, index: int, offset: int) -> int:
        """Return the offset in the text of the character `offset` characters later in the value."""
        text, end, style = self._text, self._end, self._style
        while offset > 0 and index < end:
            offset -= 1
            if style == '"' and text[index] == "\\":
                index += _ESCAPES.get(text[index + 1], 2)
            elif style == "'" and text[index] == "'":
                index += 2
            elif text[index] in "\r\n":
                # A folded line break and the blanks around it count as one character.
                while index < end and text[index] in " \t\r\n":
                    index += 1
            else:
                index += 1
        return index
