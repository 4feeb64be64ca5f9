"""YAML text to documents, from the parser's events: half the time of composing nodes, no positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NoReturn

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from ipamc.model.diagnostics import MOST, Diagnostic, Place, Span
from ipamc.model.progress import measure
from ipamc.read.syntax import rules
from ipamc.read.syntax.document import (
    MAX_CONTAINERS,
    MAX_DEPTH,
    MAX_EXPANDED,
    MAX_NODES,
    MAX_ODD,
    MAX_TAG_LINES,
    Cut,
    Document,
    Keys,
    Odd,
    Unread,
    Unreadable,
)
from ipamc.read.syntax.encoding import Lines
from ipamc.read.syntax.yaml_events import parser, syntax_error
from ipamc.read.syntax.yaml_scalars import Ambiguous, Scalar, resolve

_CORE = "tag:yaml.org,2002:"
_TAGS = {
    "!": str,
    **{
        _CORE + name: kind
        for name, kind in {"str": str, "int": int, "float": float, "bool": bool, "null": type(None)}.items()
    },
}
_MERGE = "<<"
_LENGTH = 64
"""Characters of source that count as a value where an alias stands for them: some label values are as long."""


def yaml_documents(path: str, text: str) -> Iterator[Document]:
    """Yield the documents of a YAML text, empty ones as None.

    Raises Unreadable, for problems of single documents after the last one.
    """
    builder = _Builder(path, text)
    measure(len(text), builder.position)
    if text.count("%TAG") > MAX_TAG_LINES:
        first = text.index("%TAG")
        problem = f"the file has {text.count('%TAG'):,} times %TAG, more than {MAX_TAG_LINES:,}"
        raise Unreadable(rules.too_much(builder.lines.span(first, first + 4), problem, "remove the tags"))
    try:
        for event in builder.starts():
            value = builder.node(event, ())
            if builder.sound:
                yield Document(Place(path, builder.index), value, tuple(builder.odd))
    except yaml.YAMLError as problem:
        raise Unreadable(*builder.broken, syntax_error(path, text, problem)) from None
    if builder.broken:
        raise Unreadable(*builder.broken)


def cut_documents(path: str, cut: Cut, unread: Unread) -> list[Document] | None:
    """Return the documents of a cut text; None if it has findings, or if not every mark is where it may be."""
    builder, documents, met = _Builder(path, cut.text, cut.marks), list[Document](), 0
    if cut.text.count("%TAG") > MAX_TAG_LINES:
        return None
    try:
        for event in builder.starts():
            value = builder.node(event, ())
            # What an alias stands for is weighed, and what was cut out would be missing.
            if builder.cuts and (
                builder.anchors or not all(_may_be(value, at, unread) for at in builder.cuts)
            ):
                return None
            met += len(builder.cuts)
            documents.append(Document(Place(path, builder.index), value, tuple(builder.odd)))
    except (yaml.YAMLError, Unreadable):
        return None
    return documents if met == cut.number and not builder.broken else None


def _may_be(document: Any, keys: Keys, unread: Unread) -> bool:
    """Tell whether a mark is in an object, a document or an item of a list, and where it may be in it."""
    if len(keys) > 1 and keys[0] == "items" and isinstance(keys[1], int):
        document, keys = document["items"][keys[1]], keys[2:]
    return isinstance(document, dict) and unread(document, keys)


class _Builder:
    """Builds values from events. Equal plain texts share one string and one result of `resolve`.

    In a cut text `marks` are the scalars that stand for values. Until the next document begins, `cuts` has the paths
    of those that were met.
    """

    def __init__(self, path: str, text: str, marks: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.path = path
        self.marks = marks
        self.lines = Lines(path, text)
        self.next = parser(text).get_event
        self.plain: dict[str, Scalar] = {}
        self.strings: dict[str, str] = {}
        self.broken: list[Diagnostic] = []
        self.expanded = 0
        self.built = 0
        self.last: Any = None
        """The event that ended the value before: its end is the end of an anchored value."""
        self.index = -1
        self._begin()

    def _begin(self) -> None:
        self.index += 1
        self.sound = True
        self.containers = 0
        self.odd: list[Odd] = []
        self.cuts: list[Keys] = []
        self.anchors: dict[str, tuple[Any, int] | None] = {}

    def position(self) -> int:
        """Return how many characters were read, up to the last value that ended."""
        return self.last.end_mark.index if self.last else 0

    def starts(self) -> Iterator[Any]:
        """Yield the first event of each document; the caller consumes the document in between."""
        self.index = -1
        while type(event := self.next()) is not StreamEndEvent:
            if type(event) is DocumentStartEvent:
                self._begin()
                if self.index >= MAX_NODES:
                    raise Unreadable(*self.broken, rules.too_many(self.span(event), "documents"))
                yield self.next()

    def node(self, event: Any, keys: Keys) -> Any:
        """Return the value that begins with an event; `keys` lead to it."""
        if type(event) is AliasEvent:
            return self.alias(event)
        before, anchor = self.built, event.anchor
        if anchor is not None:
            self.anchors[anchor] = None
        value: Any
        self.last = event
        if type(event) is ScalarEvent:
            value = self.scalar(event, keys[:-1], keys[-1] if keys else None)
        else:
            if len(keys) >= MAX_DEPTH:
                self.stop(event, f"more than {MAX_DEPTH} levels of nesting", "flatten the document")
            self.containers += 1
            if self.containers > MAX_CONTAINERS:
                self.stop(event, f"more than {MAX_CONTAINERS:,} mappings and lists", "split the document")
            if type(event) is MappingStartEvent:
                self.container_tag(event, "map")
                value = self.mapping(keys)
            else:
                self.container_tag(event, "seq")
                value = self.sequence(keys)
        if anchor is not None:
            length = self.last.end_mark.index - event.start_mark.index
            self.anchors[anchor] = (value, max(self.built - before + 1, length // _LENGTH))
        return value

    def mapping(self, keys: Keys) -> dict[str, Any]:
        result: dict[str, Any] = {}
        get, known = self.next, self.plain.get
        while type(event := get()) is not MappingEndEvent:
            # Most keys and values are plain text that was seen before, so this is written without function calls.
            key = (
                known(event.value)
                if type(event) is ScalarEvent and not event.style and event.tag is None
                else None
            )
            if type(key) is not str:
                key = self.key(event, keys)
            if key in result:
                self.twice(event, key, keys)
            event = get()
            if type(event) is ScalarEvent and not event.style and event.tag is None and event.anchor is None:
                value = known(event.value)
                result[key] = value if type(value) is str else self.scalar(event, keys, key)
            else:
                result[key] = self.node(event, (*keys, key))
        self.built += 2 * len(result)
        self.last = event
        return result

    def sequence(self, keys: Keys) -> list[Any]:
        result: list[Any] = []
        get = self.next
        while type(event := get()) is not SequenceEndEvent:
            if type(event) is ScalarEvent and event.anchor is None:
                result.append(self.scalar(event, keys, len(result)))
            else:
                if len(result) >= MAX_NODES:
                    raise Unreadable(*self.broken, rules.too_many(self.span(event), "entries in a list"))
                result.append(self.node(event, (*keys, len(result))))
        self.built += len(result)
        self.last = event
        return result

    def scalar(self, event: Any, within: Keys, last: str | int | None) -> Any:
        text: str = event.value
        if event.tag is not None:
            return self.tagged(event, text)
        if event.style:
            return self.strings.setdefault(text, text)
        if text in self.marks:
            self.cuts.append(within if last is None else (*within, last))
            return self.marks[text]
        value = self.plain.setdefault(text, resolve(text))
        if type(value) is Ambiguous:
            self.note(event, Odd(within, last, key=False, text=value, agreed=False))
            return text
        return value

    def note(self, event: Any, odd: Odd) -> None:
        self.odd.append(odd)
        if len(self.odd) > MAX_ODD:
            problem = f"more than {MAX_ODD:,} scalars that readers take differently"
            self.stop(event, problem, "put them in quotes")

    def key(self, event: Any, keys: Keys) -> str:
        """Return the text of a key, and record a key that a YAML reader may not take for text."""
        if type(event) is AliasEvent and isinstance(value := self.alias(event), str):
            return value
        if type(event) is not ScalarEvent:
            raise Unreadable(
                *self.broken,
                rules.wrong_shape(
                    self.span(event),
                    "the key is not text",
                    "write a plain key; a template such as {{ … }} is rendered by nobody here: write what it stands for",
                ),
            )
        text: str = event.value
        if event.anchor is not None:
            self.anchors[event.anchor] = (text, max(1, len(text) // _LENGTH))
        if event.tag is not None:
            self.tagged(event, text)
        elif not event.style:
            if text == _MERGE:
                way_out = "write the fields out; anchors and aliases without << are fine"
                self.unsound(
                    rules.not_plain_yaml(
                        self.span(event), "<< is a merge key, which YAML 1.2 no longer has", way_out
                    )
                )
            value = self.plain.setdefault(text, resolve(text))
            if type(value) is not str:
                agreed = type(value) is not Ambiguous
                self.note(event, Odd(keys, text, key=True, text=text, agreed=agreed))
        return text

    def tagged(self, event: Any, text: str) -> Scalar:
        """Return the value of a scalar whose tag agrees with it, or is !!str or !, which act like quotes."""
        value = text if event.style else resolve(text)
        wanted = _TAGS.get(event.tag)
        if wanted is str:
            return text
        if type(value) is not wanted:
            self.refuse_tag(event)
        return value

    def container_tag(self, event: Any, name: str) -> None:
        if event.tag not in {None, "!", _CORE + name}:
            self.refuse_tag(event)

    def refuse_tag(self, event: Any) -> None:
        tag = event.tag.replace(_CORE, "!!", 1)[:100]
        way_out = "remove the tag"
        if tag.startswith("!") and not tag.startswith("!!"):
            way_out += "; a text that begins with ! is put in quotes, such as '!has(gpu)'"
        self.unsound(
            rules.not_plain_yaml(self.span(event), f"{tag} is a tag that readers take differently", way_out)
        )

    def alias(self, event: Any) -> Any:
        """Return the value that an alias stands for: the same object, counted at every use."""
        if event.anchor not in self.anchors:
            raise Unreadable(
                *self.broken,
                rules.yaml_syntax(
                    self.span(event),
                    f"*{event.anchor[:100]} has no anchor &{event.anchor[:100]} before it",
                    way_out="write the value out; an anchor holds in its own document alone",
                ),
            )
        anchored = self.anchors[event.anchor]
        if anchored is None:
            self.stop(
                event, f"*{event.anchor[:100]} is inside the value that it stands for", "write the value out"
            )
        value, weight = anchored
        self.built += weight
        self.expanded += weight
        if self.expanded > MAX_EXPANDED:
            self.stop(
                event,
                f"the aliases of this file stand for more than {MAX_EXPANDED:,} values",
                "write the values out",
            )
        return value

    def twice(self, event: Any, key: str, keys: Keys) -> None:
        self.unsound(
            rules.duplicate_key(key, self.span(event), Place(self.path, self.index, (*keys, key), key=True))
        )

    def unsound(self, finding: Diagnostic) -> None:
        """Refuse the document and go on: there may be more findings."""
        self.sound = False
        self.broken.append(finding)
        if len(self.broken) == MOST:
            raise Unreadable(*self.broken)

    def stop(self, event: Any, problem: str, way_out: str) -> NoReturn:
        raise Unreadable(*self.broken, rules.too_much(self.span(event), problem, way_out))

    def span(self, event: Any) -> Span:
        return self.lines.span(event.start_mark.index, event.end_mark.index)
