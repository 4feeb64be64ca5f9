"""The tokens of Calico's selector language, read one at a time from a text; errors for usual mistakes.

As in libcalico-go's tokenizer: only space and tab are blanks; `has(` and `all(` are one token each; strings
have no escapes; a word is an operator only after a label, so every keyword may be a label.
"""

from __future__ import annotations

import re

from ipamc.model.limits import LONGEST_CALICO_KEY, LONGEST_REWRITTEN_SELECTOR
from ipamc.model.selector.expression import SelectorError, shown

_LETTER = r"A-Za-z0-9_./\-"

_blanks = re.compile(r"[ \t]*").match
_word = re.compile(rf"[{_LETTER}]+").match
_operator = re.compile(
    rf"==|!=|(?:contains|in|starts[ \t]*with|ends[ \t]*with|not[ \t]*in)(?![{_LETTER}])"
).match
_STRING = r"\"[^\"]*\"|'[^']*'"
_string = re.compile(_STRING).match
_anything = re.compile(rf"{_STRING}|[{_LETTER}]+|==?|!=?|&&?|\|\|?|[<>]=?|.", re.DOTALL).match

_SPELLING = {"s": "starts with", "e": "ends with", "n": "not in"}
"""Canonical spelling, by first letter, of the operators of two words, with any blanks between them."""


class Cursor:
    """A position in a selector's text, always at a token or at the end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._go(0)

    def _go(self, at: int) -> None:
        match = _blanks(self.text, at)
        self.at = match.end() if match else at

    @property
    def ended(self) -> bool:
        """Return whether the text has ended."""
        return self.at == len(self.text)

    def peek(self) -> str:
        """Return the token here, even an invalid one; "" at the end."""
        match = _anything(self.text, self.at)
        return match[0] if match else ""

    def accept(self, symbol: str) -> bool:
        """Read a symbol if it is here; return whether it was."""
        found = self.text.startswith(symbol, self.at)
        if found:
            self._go(self.at + len(symbol))
        return found

    def label(self) -> str:
        """Read and return a label's key; "" if there is none here."""
        match = _word(self.text, self.at)
        if match is None:
            return ""
        if len(match[0]) > LONGEST_CALICO_KEY:
            problem = f"{shown(match[0])} is longer than the {LONGEST_CALICO_KEY} characters of a label key"
            raise SelectorError(problem, offset=self.at)
        self._go(match.end())
        return match[0]

    def operator(self) -> str:
        """Read a comparison and return its canonical spelling; "" if there is none here."""
        match = _operator(self.text, self.at)
        if match is None:
            return ""
        self._go(match.end())
        return _SPELLING.get(match[0][0], match[0])

    def string(self) -> str | None:
        """Read a quoted value and return it without its quotes; None if there is none here."""
        match = _string(self.text, self.at)
        if match is None:
            quote = self.text[self.at : self.at + 1]
            if quote in {'"', "'"}:
                problem = f"{shown(self.text[self.at :])} is never closed"
                raise SelectorError(problem, offset=self.at, help=f"end the value with {quote}")
            return None
        self._go(match.end())
        return match[0][1:-1]

    def unexpected(self, expected: str, help: str = "") -> SelectorError:  # noqa: A002 - the word that users see
        """Return the error for a token that is not allowed here."""
        found = self.peek()
        if found in {"\n", "\r"}:
            how = "in YAML as a plain scalar, or with >- instead of | or >"
            help = f"write the selector on one line; {how}"  # noqa: A001 - as above
            what = "a line break is not a space in Calico's language"
        else:
            what = shown(found) if found else "the selector ends here"
        return SelectorError(f"{what}: expected {expected}", offset=self.at, help=help)


_KEY = r"[A-Za-z0-9][-A-Za-z0-9_./]*"
_VALUE = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_REQUIREMENT = (  # compiled, as the next one, when a selector is wrong
    rf"""\s*(?:(?P<key>{_KEY})\s*(?:(?P<operator>==?|!=|:\s)\s*(?P<quote>["']?)(?P<value>{_VALUE})(?P=quote)"""
    rf"""|\s(?P<set>in|notin|not\ in)\s*[({{\[]\s*(?P<values>{_VALUE}(?:\s*,\s*{_VALUE})*)\s*[)}}\]])?"""
    rf"""|!\s*(?P<without>{_KEY}))\s*(?P<end>,|&&?|and\b|AND\b|$)"""
)

_CONNECTIVES = {"&": "&&", "and": "&&", "AND": "&&", ",": "&&", "|": "||", "or": "||", "OR": "||"}
_ENDS = frozenset({"", ")", *_CONNECTIVES, *_CONNECTIVES.values()})
_FANCY_QUOTES = "`\u00b4\u2018\u2019\u201c\u201d\u201e"
_ORDER = frozenset({"<", ">", "<=", ">=", "<>"})
_LOWER = frozenset({"in", "not", "notin", "contains", "starts", "startswith", "ends", "endswith"})

_LITERAL = r"[\"']?[-A-Za-z0-9_.]{1,63}[\"']?"
_BRACKETED = rf"[(\[]\s*({_LITERAL}(?:\s*,\s*{_LITERAL}){{0,9}})\s*,?\s*[)\]]"
"""A set in kubectl's or SQL's syntax: (a, b)."""


def from_kubectl(text: str) -> str:
    """Translate kubectl's syntax (`rack=a,zone in (b,c),!gpu`) to Calico's, as in YAML; or return ""."""
    if text.strip() in {"all", "*", "any"}:
        return "all()"
    conditions, at = [], 0
    while at < len(text) <= LONGEST_REWRITTEN_SELECTOR:
        match = re.compile(_REQUIREMENT).match(text, at)
        if match is None:
            return ""
        conditions.append(_condition(match))
        at = match.end()
    written = " && ".join(conditions)
    return f"'{written}'" if written.startswith("!") else written


def _condition(match: re.Match[str]) -> str:
    key = match["key"]
    if match["without"]:
        return f"!has({match['without']})"
    if match["set"]:
        values = ", ".join(f'"{value.strip()}"' for value in match["values"].split(","))
        return f"{key} {'in' if match['set'] == 'in' else 'not in'} {{{values}}}"
    if match["value"]:
        return f'{key} {"!=" if match["operator"] == "!=" else "=="} "{match["value"]}"'
    return f"has({key})"


def instead_of_operand(cursor: Cursor) -> SelectorError:
    """Return the error for a token that begins no condition."""
    help_ = 'write a condition, such as has(rack) or rack == "r1"'
    if cursor.peek()[:1] in {'"', "'"}:
        help_ = 'write label keys without quotes: rack == "r1"'
    return cursor.unexpected("a condition", help_)


def after_label(cursor: Cursor, key: str) -> SelectorError:
    """Return the error for a label without a comparison."""
    found = cursor.peek()
    if found == "(" and key in {"has", "all"}:
        help_ = f"write {key}( without a space"
    elif key in {"not", "NOT"}:
        help_ = "write ! in front of a condition: !has(rack)"
    elif found in {"=", ":"}:
        help_ = f'write {key} == "{_value(cursor, found)}"'
    elif found in _ORDER:
        help_ = "use a NodeSelector with Gt or Lt: this language does not compare numbers"
    elif found not in _LOWER and found.lower() in _LOWER:
        help_ = f"write {found.lower()} in lower case"
    elif found == "not":
        help_ = f'write ! in front of the label: !{key} contains "…"'
    elif found in _ENDS:
        help_ = f"write has({key}) for any value, or compare it"
    elif not found.isascii():
        help_ = "use letters a to z and A to Z, digits, -, _, . and / in label keys"
    else:
        help_ = "write ==, !=, in, not in, contains, starts with or ends with"
    return cursor.unexpected(f"an operator after {shown(key)}", help_)


def _value(cursor: Cursor, sign: str) -> str:
    """Return the value that follows a sign here, without quotes; … if it is no label's value."""
    pattern = re.compile(rf"{sign}\s*([\"']?)([-A-Za-z0-9_.]{{1,63}})\1(?=$|[\s,&|)])")
    found = pattern.match(cursor.text, cursor.at)
    return found[2] if found else "…"


def instead_of_string(cursor: Cursor, expected: str = "a quoted value") -> SelectorError:
    """Return the error for a value that is not quoted or is missing."""
    found = cursor.peek()
    if found in {"=", "=="}:
        return cursor.unexpected(expected, "write two characters: == or !=")
    if found and found in _FANCY_QUOTES:
        return cursor.unexpected(expected, "write plain quotes, \" or '")
    value = found if re.fullmatch(r"[-A-Za-z0-9_.]{1,63}", found) else "…"
    return cursor.unexpected(expected, f'write "{value}"')


def instead_of_set(cursor: Cursor, so_far: str) -> SelectorError:
    """Return the error for a token after `in` or `not in` that begins no set."""
    found = re.compile(_BRACKETED).match(cursor.text, cursor.at)
    values = re.split(r"\s*,\s*", found[1]) if found else ["…", "…"]
    quoted = ", ".join('"' + value.strip("\"'") + '"' for value in values)
    return cursor.unexpected("{ and a set of quoted values", f"write {so_far} {{{quoted}}}")


def after_operand(cursor: Cursor, *, inside: bool) -> SelectorError:
    """Return the error for a token after a condition that is no connective."""
    found = cursor.peek()
    if found == ")":
        help_ = "remove it, or write ( where it begins"
        return SelectorError("')' has no matching parenthesis before it", offset=cursor.at, help=help_)
    if found == "#":
        return cursor.unexpected("&& or ||", "write a space before # to begin a comment")
    help_ = f"write {_CONNECTIVES[found]}" if found in _CONNECTIVES else "join conditions with && or ||"
    return cursor.unexpected("&&, || or )" if inside else "&& or ||", help_)
