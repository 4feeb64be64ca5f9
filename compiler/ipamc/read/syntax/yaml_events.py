"""The YAML parser for both readers of YAML text, `yaml`, which builds values, and `positions`; its errors as findings."""

from __future__ import annotations

import re
from typing import Any, Protocol

import yaml

from ipamc.model.diagnostics import Diagnostic, Place, Related
from ipamc.read.syntax import rules
from ipamc.read.syntax.encoding import Lines


class Parser(Protocol):
    """What PyYAML's parsers have in common."""

    def get_event(self) -> Any:
        """Return the next event; the last one is a StreamEndEvent. Raises YAMLError."""


def parser(text: str) -> Parser:
    """Return libyaml's parser, or without libyaml PyYAML's own (some fifteen times slower).

    Both count offsets in characters.
    """
    made: Parser = yaml.CSafeLoader(text) if yaml.__with_libyaml__ else yaml.SafeLoader(text)
    return made


_WAYS_OUT = (  # libyaml has one type for all its errors, so its words choose the help
    ("cannot start any token", "put a text that begins with @, ` or % in quotes"),
    ("mapping values are not allowed", 'put a text that contains ": " in quotes, and check the indentation'),
    ("did not find expected key", "check the indentation of this line and of the lines above it"),
    ("did not find expected ',' or", "close the bracket, or add the comma"),
    ("did not find expected '-'", "check the indentation of this line and of the lines above it"),
    ("could not find expected ':'", "add the colon, or check the indentation"),
    ("unexpected end of stream", "close the quote"),
    ("did not find expected <document start>", "write --- on a line of its own before each further document"),
    ("did not find expected node content", "write the value, or close the bracket"),
)


_SELECTOR = re.compile(
    r"""[\s{-]*([a-zA-Z]*[sS]elector): ([\w./-]{1,317}): ["']?([\w.-]{1,63})["']?\s*(?:#.*)?$"""
)
"""A label that is written as a mapping in the line of its selector."""


_NESTED_QUOTES = re.compile(r"""\s*([\w.-]{1,63}):\s+"([^'"]*"[^'"]*"[^'"]*)"\s*(?:#.*)?$""")
"""A text in double quotes that has some of its own, such as a selector."""
_DASH = re.compile(r"\s*-([{\w][^\s,:]{0,40}:?)")
"""An entry of a list without the blank that it begins with."""
_TABS = re.compile(r"^ *\t(?=[ \t]*[^\s#])", re.MULTILINE)


def _tab_above(text: str, index: int) -> int:
    """Return where a tab is that indents the line of an offset or the one above it; -1 without one.

    A parser takes it for a blank, and stops later.
    """
    here = text.rfind("\n", 0, index) + 1
    first = text.rfind("\n", 0, max(here - 1, 0)) + 1
    return max((found.end() - 1 for found in _TABS.finditer(text, first, index)), default=-1)


def syntax_error(path: str, text: str, problem: yaml.YAMLError) -> Diagnostic:
    """Return the finding for an error of the parser, with its context if that is on another line."""
    lines = Lines(path, text)
    if not isinstance(problem, yaml.MarkedYAMLError) or problem.problem_mark is None:
        return rules.yaml_syntax(Place(path), " ".join(str(problem).split()))
    index = problem.problem_mark.index
    if text[index : index + 1] == "\t":
        at = lines.span(index, index + len(text[index:]) - len(text[index:].lstrip("\t")))
        where = "in the indentation" if not at.source[: at.column - 1].strip() else "between values"
        return rules.yaml_syntax(
            at, f"a tab {where}", way_out="write spaces in its place: YAML allows no tab there"
        )
    message = problem.problem or "not YAML"
    if index >= len(text.rstrip()):
        return _at_the_end(lines, problem, message, len(text.rstrip()))
    at = lines.span(index, index + 1)
    if selector := _SELECTOR.match(at.source):
        better = f'write {selector[1]}: {selector[2]} == "{selector[3]}"'
        return rules.yaml_syntax(at, message, way_out=better)
    if nested := _NESTED_QUOTES.match(at.source):
        return rules.yaml_syntax(
            at, message, way_out=f"write single quotes around it: {nested[1]}: '{nested[2]}'"
        )
    if dash := _DASH.match(at.source):
        better = f"write a blank after the dash: - {dash[1]}"
        return rules.yaml_syntax(at, message, way_out=better)
    if (tab := _tab_above(text, index)) >= 0:
        here = lines.span(tab, tab + 1)
        return rules.yaml_syntax(
            here, "a tab in the indentation", way_out="write spaces in its place: YAML allows no tab there"
        )
    also: tuple[Related, ...] = ()
    if problem.context_mark is not None and problem.context_mark.line != problem.problem_mark.line:
        also = (
            Related(
                lines.span(problem.context_mark.index, problem.context_mark.index),
                problem.context or "in the value that begins here",
            ),
        )
    return rules.yaml_syntax(
        at, message, also, next((way_out for words, way_out in _WAYS_OUT if words in message), "")
    )


def _at_the_end(lines: Lines, problem: yaml.MarkedYAMLError, message: str, end: int) -> Diagnostic:
    """Return the finding for a text that ends too early: a quote or a bracket is open, or the file was cut off."""
    at, mark = lines.span(end, end), problem.context_mark
    also: tuple[Related, ...] = ()
    if mark is not None:
        also = (
            Related(lines.span(mark.index, mark.index), problem.context or "in the value that begins here"),
        )
    way_out = next((way_out for words, way_out in _WAYS_OUT if words in message), "write the rest")
    return rules.yaml_syntax(
        at,
        "the file ends inside a value",
        also,
        f"{way_out}; if the file was cut off, write it again, whole",
    )
