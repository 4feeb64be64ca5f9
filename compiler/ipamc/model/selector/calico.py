"""Calico's selector language: text to expression, and back to Calico's own canonical text.

The grammar and the rendering are those of libcalico-go (`lib/selector/parser`), down to the trailing comma in
a set; a pool's own bounds (`LONGEST_CALICO_SELECTOR`, no `global()`) are those of
`api/pkg/apis/projectcalico/v3/ippool.go`.

    selector = [ or ]                                   empty or blank: every node
    or       = and { "||" and }
    and      = unary { "&&" unary }
    unary    = { "!" } ( "has(" label ")" | "all(" ")" | "(" or ")" | comparison )
    comparison = label ( "==" | "!=" | "contains" | "starts with" | "ends with" ) string
               | label ( "in" | "not in" ) "{" [ string { "," string } [ "," ] ] "}"
"""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct, field

from ipamc.model.limits import DEEPEST_SELECTOR
from ipamc.model.selector import calico_tokens
from ipamc.model.selector.calico_tokens import Cursor
from ipamc.model.selector.expression import (
    Always,
    And,
    Expression,
    Named,
    Never,
    Not,
    Operator,
    Or,
    SelectorError,
    Test,
)

_ALWAYS = Always()


class _Parentheses(Struct):
    """The content of a pair of parentheses, or of the whole text, while it is parsed."""

    at: int
    """Offset of the opening parenthesis; 0 for the whole text."""
    negated: bool = False
    alternatives: list[Expression] = field(default_factory=list)
    parts: list[Expression] = field(default_factory=list)
    height: int = 0
    """Levels of the highest part so far."""

    def add(self, part: Expression, height: int, *, negated: bool) -> None:
        self.parts.append(Not(part) if negated else part)
        self.height = max(self.height, height + negated)

    def end_alternative(self) -> None:
        if len(self.parts) > 1:
            self.parts = [And(tuple(self.parts))]
            self.height += 1
        self.alternatives += self.parts
        self.parts = []

    def close(self) -> tuple[Expression, int]:
        """Return the expression and its height. A single part is returned unchanged."""
        self.end_alternative()
        if len(self.alternatives) > 1:
            self.alternatives = [Or(tuple(self.alternatives))]
            self.height += 1
        if self.height > DEEPEST_SELECTOR:
            problem = f"the selector has more than {DEEPEST_SELECTOR} levels"
            raise SelectorError(problem, offset=self.at, help="nest it less deeply")
        return self.alternatives[0], self.height


def parse(text: str) -> Expression:
    """Parse a selector as Calico does for an IPPool. O(n), no recursion. Raises SelectorError with offset."""
    if (at := text.find("global(")) >= 0:
        problem = "global() is for policies, not for pools"
        raise SelectorError(problem, offset=at, help="write all() for every node")
    cursor = Cursor(text)
    if cursor.ended:
        return _ALWAYS
    opened = [_Parentheses(0)]
    while True:
        negated = False
        while cursor.peek() == "!":  # "!=" is a token of its own
            cursor.accept("!")
            negated = not negated
        at = cursor.at
        if cursor.accept("("):
            opened.append(_Parentheses(at, negated))
            continue
        opened[-1].add(_operand(cursor), 1, negated=negated)
        if not _after_operand(cursor, opened):
            return opened[0].close()[0]


def _after_operand(cursor: Cursor, opened: list[_Parentheses]) -> bool:
    """Close parentheses, read the connective; return whether an operand must follow, else the text ends."""
    while True:
        inner = opened[-1]
        if cursor.ended:
            if len(opened) > 1:
                problem = "this parenthesis is never closed"
                raise SelectorError(problem, offset=inner.at, help="write ) where it ends")
            return False
        if cursor.accept("&&"):
            return True
        if cursor.accept("||"):
            inner.end_alternative()
            return True
        if len(opened) == 1 or not cursor.accept(")"):
            raise calico_tokens.after_operand(cursor, inside=len(opened) > 1)
        part, height = inner.close()
        opened.pop()
        opened[-1].add(part, height, negated=inner.negated)


def _operand(cursor: Cursor) -> Expression:
    if cursor.accept("has("):
        key = cursor.label()
        if not key:
            raise cursor.unexpected("a label key", "write has(rack)")
        if not cursor.accept(")"):
            raise cursor.unexpected(f") after has({key}", f"write has({key})")
        return Test(key, Operator.HAS)
    if cursor.accept("all("):
        if not cursor.accept(")"):
            raise cursor.unexpected(") after all(", "write all()")
        return _ALWAYS
    key = cursor.label()
    if not key:
        raise calico_tokens.instead_of_operand(cursor)
    word = cursor.operator()
    if not word:
        raise calico_tokens.after_label(cursor, key)
    operator = Operator(word)
    if operator in {Operator.IN, Operator.NOT_IN}:
        return Test(key, operator, _set(cursor, f"{key} {operator}"))
    value = cursor.string()
    if value is None:
        raise calico_tokens.instead_of_string(cursor)
    return Test(key, operator, (value,))


def _set(cursor: Cursor, so_far: str) -> tuple[str, ...]:
    at = cursor.at
    if not cursor.accept("{"):
        raise calico_tokens.instead_of_set(cursor, so_far)
    values = set[str]()
    while not cursor.accept("}"):
        value = cursor.string()
        if value is None:
            raise _unclosed(cursor, at) or calico_tokens.instead_of_string(cursor, "a quoted value or }")
        values.add(value)
        if not cursor.accept(","):
            if not cursor.accept("}"):
                raise _unclosed(cursor, at) or cursor.unexpected(
                    ", or } after a value", "write , between values and } after the last"
                )
            break
    return tuple(sorted(values))


def _unclosed(cursor: Cursor, at: int) -> SelectorError | None:
    unclosed = SelectorError("this set is never closed", offset=at, help="write } after the last value")
    return unclosed if cursor.ended else None


def render(expression: Expression) -> str:
    """Return the text of Calico's `String()`: values in double quotes if possible, groups in parentheses."""
    match expression:
        case Always():
            return "all()"
        case Test(key, Operator.HAS):
            return f"has({key})"
        case Test(key, Operator.IN | Operator.NOT_IN, values):
            return f"{key} {expression.operator} {{{', '.join(map(_quoted, values))}}}"
        case Test(key, operator, (value,)):
            return f"{key} {operator} {_quoted(value)}"
        case Not(part):
            return "!" + render(part)
        case And(parts):
            return f"({' && '.join(map(render, parts))})"
        case Or(parts):
            return f"({' || '.join(map(render, parts))})"
        case Test() | Named() | Never():  # pragma: no cover - no text of this language has this meaning
            raise AssertionError(expression)
        case _:
            assert_never(expression)


def _quoted(value: str) -> str:
    return f"'{value}'" if '"' in value else f'"{value}"'
