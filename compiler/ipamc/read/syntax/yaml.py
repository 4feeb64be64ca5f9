"""Converts YAML text to documents from parser events, in half the time of composing nodes. Syntax errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn, Protocol

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

from ipamc.model.diagnostics import Diagnostic, Place, Related, Span
from ipamc.model.limits import (
    DEEPEST_DOCUMENT,
    MOST_ALIASED_VALUES,
    MOST_CONTAINERS,
    MOST_FINDINGS,
    MOST_NODES,
    MOST_ODD_SCALARS,
    MOST_TAG_LINES,
)
from ipamc.model.progress import measure
from ipamc.read import rules
from ipamc.read.syntax.document import Ambiguous, Document, Keys, Odd, Scalar, Unreadable, resolve
from ipamc.read.syntax.text import Lines


class Parser(Protocol):
    """The common interface of PyYAML's parsers."""

    def get_event(self) -> Any:
        """Return the next event; the last one is a StreamEndEvent. Raises YAMLError."""


def parser(text: str) -> Parser:
    """Return libyaml's parser, else PyYAML's own (fifteen times slower). Offsets are in characters."""
    made: Parser = yaml.CSafeLoader(text) if yaml.__with_libyaml__ else yaml.SafeLoader(text)
    return made


_WAYS_OUT = (  # libyaml has one type for all its errors, so its message selects the help
    ("cannot start any token", "put a text that begins with @, ` or % in quotes"),
    ("mapping values are not allowed", 'put a text that contains ": " in quotes, and check the indentation'),
    ("did not find expected key", "check the indentation of this line and of the lines above it"),
    ("did not find expected ',' or", "close the bracket, or add the comma"),
    ("did not find expected '-'", "check the indentation of this line and of the lines above it"),
    ("could not find expected ':'", "add the colon, or check the indentation"),
    ("unexpected end of stream", "close the quote"),
    ("did not find expected <document start>", "write --- on its own line before each further document"),
    ("did not find expected node content", "write the value, or close the bracket"),
)


_NESTED_QUOTES = re.compile(r"""\s*([\w.-]{1,63}):\s+"([^'"]*"[^'"]*"[^'"]*)"\s*(?:#.*)?$""")
"""A text in double quotes that contains double quotes, such as a selector."""
_DASH = re.compile(r"\s*-([{\w][^\s,:]{0,40}:?)")
"""A list entry whose dash has no blank after it."""
_NO_TABS = "write spaces instead: YAML does not allow a tab there"
_TABS = re.compile(r"^ *\t(?=[ \t]*[^\s#])", re.MULTILINE)


def _tab_above(text: str, index: int) -> int:
    """Return the offset of a tab that indents the line of an offset, or the line above; or -1."""
    here = text.rfind("\n", 0, index) + 1
    first = text.rfind("\n", 0, max(here - 1, 0)) + 1
    return max((found.end() - 1 for found in _TABS.finditer(text, first, index)), default=-1)


def syntax_error(path: str, text: str, problem: yaml.YAMLError) -> Diagnostic:
    """Return the finding for an error of the parser, with its context if that is on another line."""
    lines = Lines(path, text)
    if not isinstance(problem, yaml.MarkedYAMLError) or problem.problem_mark is None:
        return rules.yaml_syntax(Place(path), " ".join(str(problem).split()))
    index, end = problem.problem_mark.index, len(text.rstrip())
    if text[index : index + 1] == "\t":
        at = lines.span(index, index + len(text[index:]) - len(text[index:].lstrip("\t")))
        where = "in the indentation" if not at.source[: at.column - 1].strip() else "between values"
        return rules.yaml_syntax(at, f"a tab {where}", way_out=_NO_TABS)
    message, mark = problem.problem or "not YAML", problem.context_mark
    if "nesting" in message:  # libyaml of PyYAML 6.0.4 stops at 1,000 levels, which it reads ahead of events
        return rules.too_deep(lines.span(index, index + 1))
    way_out = next((way_out for words, way_out in _WAYS_OUT if words in message), "")
    also: tuple[Related, ...] = ()
    if mark is not None and (index >= end or mark.line != problem.problem_mark.line):
        context = problem.context or "in the value that begins here"
        also = (Related(lines.span(mark.index, mark.index), context),)
    if index >= end:  # a quote or a bracket is open, or the file was cut off
        way_out = f"{way_out or 'write the rest'}; if the file was cut off, write the whole file again"
        return rules.yaml_syntax(lines.span(end, end), "the file ends inside a value", also, way_out)
    at = lines.span(index, index + 1)
    if nested := _NESTED_QUOTES.match(at.source):
        also, way_out = (), f"write single quotes around it: {nested[1]}: '{nested[2]}'"
    elif dash := _DASH.match(at.source):
        also, way_out = (), f"write a space after the dash: - {dash[1]}"
    elif (tab := _tab_above(text, index)) >= 0:
        return rules.yaml_syntax(lines.span(tab, tab + 1), "a tab in the indentation", way_out=_NO_TABS)
    return rules.yaml_syntax(at, message, also, way_out)


_CORE = "tag:yaml.org,2002:"
_TAGS = {
    "!": str,
    **{f"{_CORE}{kind.__name__}": kind for kind in (str, int, float, bool)},
    f"{_CORE}null": type(None),
}
_MERGE = "<<"
_LENGTH = 64
"""Characters of source that count as one value in an alias; some labels are this long."""


def yaml_documents(path: str, text: str) -> Iterator[Document]:
    """Yield the documents of a YAML text, empty ones as None. Raises Unreadable, if possible at the end."""
    builder = _Builder(path, text)
    measure(len(text), builder.position)
    if text.count("%TAG") > MOST_TAG_LINES:
        first = text.index("%TAG")
        problem = f"the file has {text.count('%TAG'):,} %TAG lines, more than {MOST_TAG_LINES:,}"
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


class _Builder:
    """Builds values from events. Equal plain texts share one string and one result of `resolve`."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
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
        self.anchors: dict[str, tuple[Any, int] | None] = {}

    def position(self) -> int:
        """Return the number of characters read, up to the last completed value."""
        return self.last.end_mark.index if self.last else 0

    def starts(self) -> Iterator[Any]:
        """Yield the first event of each document; the caller consumes the document in between."""
        self.index = -1
        while type(event := self.next()) is not StreamEndEvent:
            if type(event) is DocumentStartEvent:
                self._begin()
                if self.index >= MOST_NODES:
                    raise Unreadable(*self.broken, rules.too_many(self.span(event), "documents"))
                yield self.next()

    def node(self, event: Any, keys: Keys) -> Any:
        """Return the value that begins with an event; `keys` is its path."""
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
            if len(keys) >= DEEPEST_DOCUMENT:
                raise Unreadable(*self.broken, rules.too_deep(self.span(event)))
            self.containers += 1
            if self.containers > MOST_CONTAINERS:
                self.stop(event, f"more than {MOST_CONTAINERS:,} mappings and lists", "split the document")
            is_map = type(event) is MappingStartEvent
            if event.tag not in {None, "!", _CORE + ("map" if is_map else "seq")}:
                self.refuse_tag(event)
            value = self.mapping(keys) if is_map else self.sequence(keys)
        if anchor is not None:
            length = self.last.end_mark.index - event.start_mark.index
            self.anchors[anchor] = (value, max(self.built - before + 1, length // _LENGTH))
        return value

    def mapping(self, keys: Keys) -> dict[str, Any]:
        result: dict[str, Any] = {}
        get, known = self.next, self.plain.get
        while type(event := get()) is not MappingEndEvent:
            # Most keys and values are plain text that occurred before: no function calls.
            plain = type(event) is ScalarEvent and not event.style and event.tag is None
            key = known(event.value) if plain else None
            if type(key) is not str:
                key = self.key(event, keys)
            if key in result:
                first = Place(self.path, self.index, (*keys, key), key=True)
                self.unsound(rules.duplicate_key(key, self.span(event), first))
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
                if len(result) >= MOST_NODES:
                    raise Unreadable(*self.broken, rules.too_many(self.span(event), "entries in a list"))
                result.append(self.node(event, (*keys, len(result))))
        self.built += len(result)
        self.last = event
        return result[:]  # without the room for more that append() makes: lists in lists weigh a third less

    def scalar(self, event: Any, within: Keys, last: str | int | None) -> Any:
        text: str = event.value
        if event.tag is not None:
            return self.tagged(event, text)
        if event.style:
            return self.strings.setdefault(text, text)
        value = self.plain.setdefault(text, resolve(text))
        if type(value) is Ambiguous:
            self.note(event, Odd(within, last, key=False, text=value, agreed=False))
            return text
        return value

    def note(self, event: Any, odd: Odd) -> None:
        self.odd.append(odd)
        if len(self.odd) > MOST_ODD_SCALARS:
            problem = f"more than {MOST_ODD_SCALARS:,} scalars that YAML readers interpret differently"
            self.stop(event, problem, "put them in quotes")

    def key(self, event: Any, keys: Keys) -> str:
        """Return the text of a key, and record a key that a YAML reader may not read as text."""
        if type(event) is AliasEvent and isinstance(value := self.alias(event), str):
            return value
        if type(event) is not ScalarEvent:
            way_out = "write a plain key, and the value of a template such as {{ … }}"
            finding = rules.wrong_shape(self.span(event), "the key is not text", way_out)
            raise Unreadable(*self.broken, finding)
        text: str = event.value
        if event.anchor is not None:
            self.anchors[event.anchor] = (text, max(1, len(text) // _LENGTH))
        if event.tag is not None:
            self.tagged(event, text)
        elif not event.style:
            if text == _MERGE:
                problem = "<< is a merge key, which YAML 1.2 no longer has"
                way_out = "write the fields out; anchors and aliases without << are fine"
                self.unsound(rules.not_plain_yaml(self.span(event), problem, way_out))
            value = self.plain.setdefault(text, resolve(text))
            if type(value) is not str:
                self.note(event, Odd(keys, text, key=True, text=text, agreed=type(value) is not Ambiguous))
        return text

    def tagged(self, event: Any, text: str) -> Scalar:
        """Return the value of a scalar whose tag agrees with its value; !!str and ! act like quotes."""
        value = text if event.style else resolve(text)
        wanted = _TAGS.get(event.tag)
        if wanted is str:
            return text
        if type(value) is not wanted:
            self.refuse_tag(event)
        return value

    def refuse_tag(self, event: Any) -> None:
        tag, way_out = event.tag.replace(_CORE, "!!", 1)[:100], "remove the tag"
        if tag.startswith("!") and not tag.startswith("!!"):
            way_out += "; put a text that begins with ! in quotes, such as '!has(gpu)'"
        problem = f"YAML readers interpret the tag {tag} differently"
        self.unsound(rules.not_plain_yaml(self.span(event), problem, way_out))

    def alias(self, event: Any) -> Any:
        """Return the value of an alias: the same object, counted at every use."""
        name = event.anchor[:100]
        if event.anchor not in self.anchors:
            problem = f"*{name} has no anchor &{name} before it"
            way_out = "write the value out; an anchor is known only in its own document"
            raise Unreadable(*self.broken, rules.yaml_syntax(self.span(event), problem, way_out=way_out))
        anchored = self.anchors[event.anchor]
        if anchored is None:
            self.stop(event, f"*{name} is inside its own value", "write the value out")
        value, weight = anchored
        self.built += weight
        self.expanded += weight
        if self.expanded > MOST_ALIASED_VALUES:
            problem = f"the aliases of this file expand to more than {MOST_ALIASED_VALUES:,} values"
            self.stop(event, problem, "write the values out")
        return value

    def unsound(self, finding: Diagnostic) -> None:
        """Refuse the document and continue: there may be more findings."""
        self.sound = False
        self.broken.append(finding)
        if len(self.broken) == MOST_FINDINGS:
            raise Unreadable(*self.broken)

    def stop(self, event: Any, problem: str, way_out: str) -> NoReturn:
        raise Unreadable(*self.broken, rules.too_much(self.span(event), problem, way_out))

    def span(self, event: Any) -> Span:
        return self.lines.span(event.start_mark.index, event.end_mark.index)
