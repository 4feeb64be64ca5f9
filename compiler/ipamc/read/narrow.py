"""The parts of a cluster's files that a question needs: without Nodes, or with only one of them.

`ipamc show` asks how full pools are, `ipamc why NODE` about one node. With 5,000 Nodes as kubectl prints
them, 100 MB of YAML, they take 0.4 and 0.6 s instead of 1.8 and 2.9 s.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from ipamc.read.kinds import KINDS
from ipamc.read.syntax.encoding import Excerpt, Piece

LISTS = "List"
"""The kind of a list of any kind, and the suffix of the kind of a list of one kind."""

_INVENTORY = "NodeInventory"
_PATTERN = re.compile(rb"""names(?<![A-Za-z0-9._-]names)["']?\s*:""")
"""The key of a pattern of names in an inventory; it has no escapes."""
_part_of_name = re.compile(rb"[A-Za-z0-9._-]").match


class LeftOut(Struct, frozen=True):
    """What to skip: documents and items of some kinds, and entries of a NodeInventory, except one node's."""

    kinds: frozenset[str]
    """Names of KINDS that are `of_nodes`; no other kind has one of these names."""
    but: str = ""
    """The node whose objects are read anyway; "" for none."""

    def all_of(self, kinds: Iterable[str]) -> bool:
        """Return whether all items of a list of these kinds are skipped. False for no kinds."""
        found = {kind.removesuffix(LISTS) for kind in kinds} - {""}
        return bool(found) and found <= self.kinds

    def any_of(self, kinds: Iterable[str]) -> bool:
        """Return whether any item of these kinds is skipped."""
        return any(kind.removesuffix(LISTS) in self.kinds for kind in kinds)

    def mentions(self, data: bytes, start: int, end: int, kinds: Iterable[str]) -> list[int]:
        """Return the offsets of the node's name as a whole word: `node-1` is not in `node-10`.
        In a NodeInventory also those of patterns, which may expand to it. Other parts are of other nodes.
        """
        name, found = self.but.encode(), list[int]()
        if name and _INVENTORY in {kind.removesuffix(LISTS) for kind in kinds}:
            found += (key.start() for key in _PATTERN.finditer(data, start, end))
        at = data.find(name, start, end) if name else -1
        while at >= 0:
            after = at + len(name)
            if not _part_of_name(data[at - 1 : at]) and not _part_of_name(data[after : after + 1]):
                found.append(at)
            at = data.find(name, at + 1, end)
        return found


_OF_NODES = frozenset({kind.name for kind in KINDS if kind.of_nodes})
NO_NODES = LeftOut(_OF_NODES - {"CiliumNode"})
"""CiliumNodes are read: those without a Node occupy addresses of pools."""


def only_node(name: str) -> LeftOut:
    """Skip everything that is about other nodes."""
    return LeftOut(_OF_NODES, name)


def narrow(sources: Mapping[str, bytes], left_out: LeftOut) -> Mapping[str, bytes]:
    """Return the files without the parts that can certainly be skipped; the same mapping if there are none.
    The model is the same except for these parts. Findings must come from the whole files, which may have
    more.
    """
    found: dict[str, bytes] = {}
    for path, data in sources.items():
        pieces = (json_pieces if path.endswith(".json") else yaml_pieces)(data, left_out)
        if pieces is None:
            found[path] = data
        elif pieces:
            found[path] = Excerpt(data, pieces)
    return sources if all(found.get(path) is data for path, data in sources.items()) else found


_MEMBER = re.compile(rb'[ \t\r\n,]*("(?:[^"\\]|\\.)*+")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_BETWEEN = re.compile(rb"[ \t\r\n,]*")
_HIDDEN = re.compile(rb"\\u00(?:2[dDeE]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA])")
"""A character of a name as an escape. Go escapes <, > and &, which no name contains."""
_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Item(msgspec.Struct):
    kind: str | None = None


class _Top(msgspec.Struct):
    kind: str | None = None
    items: list[_Item] | None = None


_TOP = msgspec.json.Decoder(_Top)  # skips the rest: 2 GB a second
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])


def json_pieces(data: bytes, left_out: LeftOut) -> Sequence[Piece] | None:
    """Return the pieces to read; none if all of the file is skipped. None: read all of it."""
    if not data.startswith((b"{", b" ", b"\n", b"\r", b"\t")):
        return None
    try:
        top = _TOP.decode(data)
        kind = top.kind or ""
        if not left_out.any_of([kind]) and kind != LISTS:
            return None
        listed = kind.endswith(LISTS)
        kinds = [item.kind or kind.removesuffix(LISTS) for item in top.items or ()] if listed else [kind]
        if not left_out.any_of(kinds) or (left_out.but and _HIDDEN.search(data)):
            return None
        mentions = left_out.mentions(data, 0, len(data), kinds)
        if left_out.all_of(kinds) and not mentions:
            return []
        elements = _elements(data, "items" if listed else "nodes")
    except _REFUSALS:
        return None
    if not elements:
        return None
    starts = [start for start, _ in elements]
    kept = {max(bisect_left(starts, at + 1) - 1, 0) for at in mentions}
    kept |= {number for number, kind in enumerate(kinds) if listed and not left_out.any_of([kind])}
    pieces = [(0, elements[0][0])]
    for place, number in enumerate(sorted(kept)):
        start, end = elements[number]
        # With the comma before it, unless it is now the first one.
        pieces.append((elements[number - 1][1] if place else start, end))
    return [*pieces, (elements[-1][1], len(data))]


def _elements(data: bytes, key: str) -> list[Piece]:
    """Return the offsets of the elements of a list; none if there is no such list or a key is there twice.
    msgspec gives the length of values, but not their start: only commas and blanks are between them.
    """
    members = _MEMBERS.decode(data)
    at = data.index(b"{") + 1
    found: list[Piece] = []
    for name, raw in members.items():
        member = _MEMBER.match(data, at)
        if member is None or msgspec.json.decode(member[1]) != name:
            return []
        at = member.end() + len(memoryview(raw))
        if name == key and data.startswith(b"[", member.end()):
            inside = member.end() + 1
            for element in _ELEMENTS.decode(raw):
                between = _BETWEEN.match(data, inside)
                start = between.end() if between else inside
                inside = start + len(memoryview(element))
                found.append((start, inside))
    return found if data[at:].strip() == b"}" else []


_OTHER_BREAKS = (b"\r", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")
"""Line ends to a YAML parser besides a newline."""
_ESCAPE = re.compile(rb"\\[xuU\n]")
"""In double quotes: any character, or a line that continues in the next one."""
_MARKER = re.compile(rb"\n(?:---(?=[ \n]|\Z)|\.\.\.|%)")
_CONTENT = re.compile(rb"^[ \t]*[^#\s]", re.MULTILINE)

_KIND = re.compile(rb"""kind\\?["']?:[ \t]*\\?["']?([A-Za-z]+)\\?["']?[ \t]*(?:[,}\n]|\Z)""")
_NO_KEY = re.compile(rb"kind(?:[A-Za-z0-9_./-]|[ \t]+[^ \t\n:#])")
_part_of_word = re.compile(rb"[A-Za-z0-9_./:-]").match

_LIST = re.compile(rb"\n(?:items|nodes):[ ]*\n( {0,8})- ")
_KEY = re.compile(rb"[A-Za-z]+:[ \n]")
_LARGEST_REST = 1 << 16
"""The most bytes behind a list that are read with it."""

# Matches from a quote or bracket that may begin a value to the line's end, if it is still open there.
_OPEN = (
    re.compile(rb'"(?<=[ \t\n\[{,:]")[^"\\\n]*+(?:\\.[^"\\\n]*+)*+\\?\n'),
    re.compile(rb"'(?<=[ \t\n\[{,:]')[^'\n]*+(?:''[^'\n]*+)*+\n"),
    re.compile(rb"\{(?<=[ \t\n]\{)(?![^{}\[\]\"'\n]*\})"),
    re.compile(rb"\[(?<=[ \t\n]\[)(?![^{}\[\]\"'\n]*\])"),
)
_TOKEN = re.compile(rb""""(?:[^"\\]|\\.)*+"|'(?:[^']|'')*+'|[\[\]{}"']""", re.DOTALL)
_ALIAS = re.compile(rb"\*(?<=[ \t\n\[{,]\*)[^ \t\n,\]}]")


def yaml_pieces(data: bytes, left_out: LeftOut) -> Sequence[Piece] | None:
    """Return the pieces to read; none if all of the file is skipped. None: read all of it.
    The file is not parsed: it is searched for the word `kind`, and lists are cut at the lines of their
    indentation. That is certain only for block style as kubectl and people write it. If anything could hide a
    kind or a name, or carry text over the line of a cut, the whole document is read: escapes, open quotes and
    brackets, aliases, lines of other forms. A pattern that begins with a rare word takes 0.05 s for 113 MB.
    """
    breaks = _OTHER_BREAKS[:1] if data.isascii() else _OTHER_BREAKS
    if data.startswith((b"%", b"...", b"\xef\xbb\xbf")) or any(ending in data for ending in breaks):
        return None
    markers = list(_MARKER.finditer(data))
    if any(marker[0] != b"\n---" for marker in markers) or (b"\\" in data and _ESCAPE.search(data)):
        return None
    starts = [0, *(marker.start() + 1 for marker in markers)]
    pieces: list[Piece] = []
    cut = False
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        some = _of_document(data, start, end, left_out)
        cut = cut or some is not None
        pieces += [(start, end)] if some is None else some
    if not cut:
        return None
    bodies = ((start + 3 * data.startswith(b"---", start), end) for start, end in pieces)
    return pieces if any(_CONTENT.search(data, *body) for body in bodies) else []


def _of_document(data: bytes, start: int, end: int, left_out: LeftOut) -> list[Piece] | None:
    """Return the pieces of a document to read; None: all of it."""
    kinds = _kinds(data, start, end)
    if kinds is None or not left_out.any_of(kinds):
        return None
    mentions, only_nodes = left_out.mentions(data, start, end, kinds), left_out.all_of(kinds)
    if only_nodes and not mentions:
        return []
    items = _items(data, start, end)
    if items is None:
        return None
    begins = [begin for begin, _ in items]
    kept = {bisect_right(begins, at) - 1 for at in mentions if begins[0] <= at < items[-1][1]}
    if not only_nodes:
        found = (_kinds(data, *item) for item in items)
        kept |= {number for number, own in enumerate(found) if own is None or not left_out.all_of(own)}
    if not kept:
        return [] if only_nodes else None
    pieces = [items[number] for number in sorted(kept)]
    edges = [data.rfind(b"\n", start, begins[0] - 1) + 1, *begins, items[-1][1]]
    if not _closed(data, start, pieces[-1][1], edges) or any(_ALIAS.search(data, *piece) for piece in pieces):
        return None
    return [(start, begins[0]), *pieces, (items[-1][1], end)]


def _kinds(data: bytes, start: int, end: int) -> set[str] | None:
    """Return the kinds that a part of a file names, anywhere; None if that is not clear.
    No document or item is of another kind. The word `kind` is skipped if it is no key.
    """
    found = set()
    at = data.find(b"kind", start, end)
    while at >= 0:
        if kind := _KIND.match(data, at, end):
            if not _part_of_word(data[at - 1 : at] if at > start else b""):
                found.add(kind[1].decode())
        elif not _part_of_word(data[at - 1 : at]) and not _NO_KEY.match(data, at, end):
            return None
        at = data.find(b"kind", at + 4, end)
    return found


def _items(data: bytes, start: int, end: int) -> list[Piece] | None:
    """Return the offsets of the items of a document's list; None if the document has another form."""
    head = _LIST.search(data, start, end)
    if head is None:
        return None
    dash = head[1] + b"- "
    margin = re.compile(rb"\n {0,%d}(?=[^ \n])" % len(head[1]))  # lines that are not indented more
    begins: list[int] = []
    stop = end
    for found in margin.finditer(data, head.end() - len(dash) - 1, end):
        line = found.start() + 1
        if data.startswith(dash, line):
            begins.append(line)
        elif _KEY.match(data, line, end):
            stop = line
            break
        elif not data.startswith(b"#", line):
            return None
    if end - stop > _LARGEST_REST or _LIST.search(data, stop - 1, end):
        return None
    return list(zip(begins, [*begins[1:], stop], strict=True))


def _closed(data: bytes, start: int, end: int, edges: Sequence[int]) -> bool:
    """Return whether quotes and brackets open at the end of a line are closed before the next cut."""
    for pattern in _OPEN:
        closed = start
        for found in pattern.finditer(data, start, end):
            if found.start() < closed:
                continue
            depth, closed = 0, -1
            edge = edges[min(bisect_right(edges, found.start()), len(edges) - 1)]
            for token in _TOKEN.finditer(data, found.start(), edge):
                if (text := token[0]) in {b'"', b"'"}:
                    break
                depth += (text in {b"[", b"{"}) - (text in {b"]", b"}"})
                if depth <= 0:
                    closed = token.end()
                    break
            if closed < 0:
                return False
    return True
