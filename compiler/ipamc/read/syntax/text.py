"""Bytes of a file as text: UTF-8 without control characters; its lines; files that are no documents.

In a file that is no document (kubectl's output for people, its errors, a page, a merge conflict) a parser
would stop somewhere inside, and name what it misses there. These are recognized by their beginnings, at no
cost; conflict markers are searched for, some 0.08 s for 100 MB.
"""

from __future__ import annotations

import codecs
import re
from array import array
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate, chain
from typing import NamedTuple

from ipamc.model.diagnostics import Diagnostic, Place, Span
from ipamc.model.limits import TEXT_HEAD
from ipamc.model.wording import typed
from ipamc.read import rules
from ipamc.read.syntax.document import Unreadable

BOM = b"\xef\xbb\xbf"

_GZIP = b"\x1f\x8b"
_STEP = 1 << 16
_EMPTY = re.compile(rb"\s*+(?:\xef\xbb\xbf)?+\s*+")
_PLAIN_ASCII = bytes([9, 10, 13, *range(32, 127)])
_IN_JSON = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HIDDEN = {"\r": "a lone carriage return", "\x85": "U+0085", "\u2028": "U+2028", "\u2029": "U+2029"}
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
        seen = f"{what} ends a line here, but editors and diffs do not show it" if what else ""
        seen = seen or f"U+{ord(bad.group()):04X} is a control character"
        way_out = "remove it, or write it as an escape in double quotes"
    name = typed(path)
    if data.startswith(_GZIP):
        packed = path if path.endswith(".gz") else f"{path}.gz"
        rename = "" if packed == path else f"mv {name} {typed(packed)} && "
        seen, way_out = "the file is compressed by gzip", f"unpack it: {rename}gunzip {typed(packed)}"
    elif data[257:262] == b"ustar":
        seen = "the file is a tar archive"
        way_out = f"unpack it: tar xf {name}, and name the files in it"
    elif data.startswith(b"\0GITCRYPT\0"):
        seen, way_out = "the file is encrypted by git-crypt", "run git-crypt unlock"
    elif data[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE} or (len(data) > 3 and not any(data[1:16:2])):
        seen = "the file is UTF-16, as > in Windows PowerShell writes it"
        way_out = (
            f"save it as UTF-8: iconv -f UTF-16 -t UTF-8 {name} > utf-8 && mv utf-8 {name}; "
            f"in PowerShell, write it with | Out-File -Encoding utf8 {name} instead of >"
        )
    raise Unreadable(rules.not_text(at, seen, way_out))


_MARKS = (b"<<<<<<<", b">>>>>>>")
"""A file with a conflict contains one of these, unless some of its marks were removed."""
_MARK = re.compile(rb"^(?:<{7} |>{7} |\|{7} |={7}\r?$)", re.MULTILINE)
"""Lines that git writes into a file with a conflict. At the start of a line they are in no YAML or JSON."""

_YAML = re.compile(rb"\s*(#|---\s|(apiVersion|kind|items|metadata|nodes):\s)").match


class Other(NamedTuple):
    """The description of a text that is no document."""

    problem: str
    first: str = ""
    """What to do before the file is written again; ends with a colon."""
    way_out: str = ""
    """What to do instead of writing the file again with kubectl."""

    def help(self, command: str) -> str:
        """Return the help of the finding; `command` writes the file again."""
        return self.way_out or f"{self.first or 'run '}{command}"


_TABLE = "this is a table of kubectl, not its objects"
_ERROR = Other("this is an error of kubectl, not its objects", first="fix the error, then run: ")
_BESIDE = Other(
    "this file begins with a message of kubectl", first="write only the objects, without 2>&1 or &>: "
)
_DOCUMENTS = (b"apiVersion:", b"kind:", b"#", b"---", b"{")
"""None of the patterns of others begins so."""
_OTHERS = (
    (rb"(NAMESPACE +)?NAME +[A-Z]", Other(_TABLE)),
    (rb"[a-z0-9][a-z0-9.-]* +(Not)?Ready\S* +\S+ +\d+[smhdy]\S* +v1\.", Other(_TABLE)),
    (
        rb"[a-z]+(\.[a-z0-9.]+)?/[a-z0-9][a-z0-9.-]*\s*(\n|$)",
        Other("these are only names, as kubectl -o name prints them"),
    ),
    (
        rb"Name: +\S+[^\n]*\n(Namespace|Roles|Labels|Annotations): ",
        Other("this is the output of kubectl describe, not objects"),
    ),
    (
        (
            rb"([Ee]rror: |Error from server|The connection to the server |Unable to connect to the server|"
            rb"No resources found|You must be logged in|Unauthorized\b|(ba|z)?sh: )"
        ),
        _ERROR,
    ),
    (rb"[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ [^\n]*\n\s*\S", _BESIDE),
    (rb"Warning: [^\n]*\n\s*\S", _BESIDE),
    (rb"[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ |Warning: ", _ERROR),
    (rb"(?i)<(!DOCTYPE html|html)\b", Other("this is a web page, not an answer of the apiserver")),
    (
        rb"```",
        Other("the document is inside a Markdown fence", way_out="delete the lines that begin with ```"),
    ),
    (
        rb"version https://git-lfs\.github\.com/spec/",
        Other("this is a Git LFS pointer: the file itself was not fetched", way_out="run git lfs pull"),
    ),
)


def recognised(head: bytes) -> Other | None:
    """Return the description of a file with this beginning if it is certainly no document; else None."""
    start = head[:TEXT_HEAD].removeprefix(BOM).lstrip()
    if start.startswith(_DOCUMENTS):
        return None
    return next((other for pattern, other in _OTHERS if re.match(pattern, start)), None)


def other_text(path: str, data: bytes) -> Diagnostic | None:
    """Return the finding for an input that is no document; None for all others, valid or not."""
    is_json = path.endswith(".json")
    rule = rules.json_syntax if is_json else rules.yaml_syntax
    if other := recognised(data):
        return rule(first_line(path, data), other.problem, way_out=other.help(kubectl(path)))
    if is_json and _YAML(data[:TEXT_HEAD].removeprefix(BOM)):
        way_out = f"mv {typed(path)} {typed(path.removesuffix('.json') + '.yaml')}"
        problem = "this is YAML, but the file name ends in .json"
        return rule(first_line(path, data), problem, way_out=way_out)
    return conflict_marker(path, data) if any(mark in data for mark in _MARKS) else None


def conflict_marker(path: str, data: bytes) -> Diagnostic | None:
    """Return the finding for the first line that git wrote into a conflicting input; None without one."""
    found = _MARK.search(data)
    if found is None:
        return None
    rule = rules.json_syntax if path.endswith(".json") else rules.yaml_syntax
    at = _line(path, data, found.start())
    way_out = (
        "keep one side, or both, and delete the lines with <<<<<<<, ======= and >>>>>>>; "
        f"then run: git add {typed(path)}"
    )
    return rule(at, f"line {at.line} is a conflict marker of git", way_out=way_out)


def first_line(path: str, data: bytes) -> Span:
    """Return the first line of a file that is not empty."""
    return _line(path, head := data[:TEXT_HEAD], len(head) - len(head.removeprefix(BOM).lstrip()))


def _line(path: str, data: bytes, start: int) -> Span:
    text = data.removeprefix(BOM).decode(errors="replace")
    first = len(data[:start].removeprefix(BOM).decode(errors="replace"))
    return Lines(path, text).span(first, first + len(text[first:].partition("\n")[0].rstrip()))


def kubectl(path: str) -> str:
    """Return the command that writes Nodes into an input, in the format of its name."""
    kind = "json" if path.endswith(".json") else "yaml"
    return f"kubectl get nodes,ciliumnodes -o {kind} > {typed(path)}"


def cut_off(at: Place, items: int) -> Diagnostic:
    """Return the finding for a List without a kind after its items, where kubectl prints it."""
    number = f"after item {items:,}" if items else "before the first item"
    problem = f"the file ends inside items, {number}: it was cut off"
    return rules.yaml_syntax(at, problem, way_out=f"write the whole file again: {kubectl(at.path)}")
