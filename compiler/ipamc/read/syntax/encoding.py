"""Decodes bytes as UTF-8 without control characters; maps offsets in a text to lines."""

from __future__ import annotations

import codecs
import re
from array import array
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate, chain

from ipamc.model.diagnostics import Place, Span
from ipamc.model.wording import typed
from ipamc.read import rules
from ipamc.read.syntax.document import Unreadable

BOM = b"\xef\xbb\xbf"

_GZIP = b"\x1f\x8b"
_STEP = 1 << 16
_EMPTY = re.compile(rb"\s*+(?:\xef\xbb\xbf)?+\s*+")
_PLAIN_ASCII = bytes([9, 10, 13, *range(32, 127)])
_IN_JSON = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HIDDEN = {"\r": "a carriage return alone", "\x85": "U+0085", "\u2028": "U+2028", "\u2029": "U+2029"}
"""Line breaks that diffs and editors do not show: in YAML they end a comment, and a setting may follow."""
_IN_YAML = re.compile(f"{_IN_JSON.pattern}|[\x85\u2028\u2029]|\r(?!\n)")
_BREAK = re.compile(r"\r\n|\n|\r")


class Lines:
    """The lines of one text. Created only for findings: the first `span` costs one pass over the text.
    Most texts have no carriage return. Their lines are counted by steps, in 0.03 s for 100 MB; to find each
    of them takes 1 s, and eight bytes.
    """

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._text = text
        self._sources: dict[int, tuple[int, str]] = {}

    @cached_property
    def _counts(self) -> list[int]:
        """The number of line breaks before each step."""
        steps = range(0, len(self._text), _STEP)
        return list(accumulate((self._text.count("\n", step, step + _STEP) for step in steps), initial=0))

    @cached_property
    def _starts(self) -> array[int] | None:
        """The offsets at which lines begin: eight bytes for each, because a line may be one byte."""
        if "\r" not in self._text:
            return None
        return array("q", chain([0], (found.end() for found in _BREAK.finditer(self._text))))

    def span(self, start: int, end: int) -> Span:
        """Return the span from one offset to another, cut at the end of its first line."""
        text, starts = self._text, self._starts
        if starts is not None:
            number = bisect_right(starts, start)
        else:
            step = start // _STEP
            number = self._counts[step] + text.count("\n", step * _STEP, start) + 1
        if number not in self._sources:  # all findings of a line share its text: minified JSON is one line
            if starts is None:
                first, last = text.rfind("\n", 0, start) + 1, text.find("\n", start)
            else:
                first, last = starts[number - 1], -1
                if number < len(starts):
                    last = starts[number] - (2 if text.endswith("\r\n", first, starts[number]) else 1)
            self._sources[number] = first, text[first : last if last >= 0 else len(text)]
        first, source = self._sources[number]
        last = first + len(source)
        column = min(start, last) - first + 1
        return Span(self._path, number, column, max(column, min(end, last) - first + 1), source)


def check(path: str, data: bytes) -> None:
    """Raise Unreadable exactly as `decode` does, without creating a text as long as the file.
    A text takes one to four times the memory of its bytes: an emoji in a dump of 100 MB makes it 400 MB. This
    reads a piece at a time; 0.08 s for 100 MB, and a third of that for ASCII, as nearly all dumps are.
    """
    steps = range(0, len(data), _STEP)
    plain = data.isascii() and not any(data[at : at + _STEP].translate(None, _PLAIN_ASCII) for at in steps)
    if plain and not _EMPTY.fullmatch(data) and not _may_hide(path, data):
        return
    bad = _bad(path)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in steps:
            piece = data[start : start + _STEP]
            text = decoder.decode(piece, start + _STEP >= len(data))
            if (piece.translate(None, _PLAIN_ASCII) or b"\r" in piece) and bad.search(text):
                break
        else:
            if not _EMPTY.fullmatch(data):
                return
    except UnicodeDecodeError:
        pass
    decode(path, data)


def _bad(path: str) -> re.Pattern[str]:
    """Return what a file may not have, by its name: in JSON no break hides anything."""
    return _IN_JSON if path.endswith(".json") else _IN_YAML


def _may_hide(path: str, data: bytes) -> bool:
    return not path.endswith(".json") and data.count(b"\r") != data.count(b"\r\n")


def decode(path: str, data: bytes) -> str:
    """Return an input file as text, without its byte order mark. Raises Unreadable."""
    if not data.strip().removeprefix(BOM).strip():
        raise Unreadable(rules.empty_file(Place(path)))
    try:
        text = data.removeprefix(BOM).decode()
    except UnicodeDecodeError as problem:
        good = problem.object[: problem.start].decode()
        at = Lines(path, good + "\N{REPLACEMENT CHARACTER}").span(len(good), len(good) + 1)
        seen, way_out = f"byte 0x{problem.object[problem.start]:02x} is not UTF-8", "save the file as UTF-8"
    else:
        odd = data.translate(None, _PLAIN_ASCII) or _may_hide(path, data)
        bad = _bad(path).search(text) if odd else None
        if bad is None:
            return text
        at = Lines(path, text).span(bad.start(), bad.end())
        what = _HIDDEN.get(bad.group(), "")
        seen = f"{what} ends a line here, which editors and diffs do not show" if what else ""
        seen = seen or f"U+{ord(bad.group()):04X} is a control character"
        way_out = "remove it, or write it as an escape in double quotes"
    name = typed(path)
    if data.startswith(_GZIP):
        packed = path if path.endswith(".gz") else f"{path}.gz"
        rename = "" if packed == path else f"mv {name} {typed(packed)} && "
        seen, way_out = "the file is compressed by gzip", f"unpack it: {rename}gunzip {typed(packed)}"
    elif data[257:262] == b"ustar":
        seen = "the file is a tar archive"
        way_out = f"unpack it: tar xf {name}, and name the files that were in it"
    elif data.startswith(b"\0GITCRYPT\0"):
        seen, way_out = "the file is encrypted by git-crypt", "run git-crypt unlock"
    elif data[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE} or (len(data) > 3 and not any(data[1:16:2])):
        seen = "the file is UTF-16, as > of Windows PowerShell writes it"
        way_out = (
            f"save it as UTF-8: iconv -f UTF-16 -t UTF-8 {name} > utf-8 && mv utf-8 {name}; "
            f"in PowerShell write it with | Out-File -Encoding utf8 {name} in place of >"
        )
    raise Unreadable(rules.not_text(at, seen, way_out))
