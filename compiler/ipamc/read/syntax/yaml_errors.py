"""What a YAML parser cannot read, as a finding."""

from __future__ import annotations

import yaml

from ipamc.model.diagnostics import Diagnostic, Place, Related
from ipamc.read.syntax import rules
from ipamc.read.syntax.encoding import Lines

_WAYS_OUT = (  # libyaml has one type for all its errors, so its words choose the help
    (
        "cannot start any token",
        "indent the line with spaces instead of a tab, and put a text that begins with @, ` or % in quotes",
    ),
    ("mapping values are not allowed", 'put a text that contains ": " in quotes, and check the indentation'),
    ("did not find expected key", "check the indentation of this line and of the lines above it"),
    ("did not find expected ',' or", "close the bracket, or add the comma"),
    ("did not find expected '-'", "check the indentation of this line and of the lines above it"),
    ("could not find expected ':'", "add the colon, or check the indentation"),
    ("unexpected end of stream", "close the quote"),
    ("did not find expected node content", "write the value, or close the bracket"),
)


def syntax_error(path: str, text: str, problem: yaml.YAMLError) -> Diagnostic:
    """Return the finding for an error of the parser, with its context if that is on another line."""
    lines = Lines(path, text)
    if not isinstance(problem, yaml.MarkedYAMLError) or problem.problem_mark is None:
        return rules.yaml_syntax(Place(path), " ".join(str(problem).split()))
    at = lines.span(problem.problem_mark.index, problem.problem_mark.index)
    message = problem.problem or "not YAML"
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
