"""The tokens of Calico's selector language, read one at a time from a text.

As in libcalico-go's tokenizer: only space and tab are blanks; `has(` and `all(` are one token each; strings
have no escapes; a word is an operator only after a label, so every keyword may be a label.
"""

from __future__ import annotations

import re

from ipamc.model.selector.error import SelectorError, shown

MAX_LABEL = 512
"""Characters of a label's key in Calico's tokenizer."""

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
        """Return the token here, also one that the language does not have; "" at the end."""
        match = _anything(self.text, self.at)
        return match[0] if match else ""

    def accept(self, symbol: str) -> bool:
        """Take a symbol if it is here; return whether it was."""
        found = self.text.startswith(symbol, self.at)
        if found:
            self._go(self.at + len(symbol))
        return found

    def label(self) -> str:
        """Take and return a label's key; "" if there is none here."""
        match = _word(self.text, self.at)
        if match is None:
            return ""
        if len(match[0]) > MAX_LABEL:
            raise SelectorError(
                f"{shown(match[0])} is longer than the {MAX_LABEL} characters of a label key", offset=self.at
            )
        self._go(match.end())
        return match[0]

    def operator(self) -> str:
        """Take a comparison and return its canonical spelling; "" if there is none here."""
        match = _operator(self.text, self.at)
        if match is None:
            return ""
        self._go(match.end())
        return _SPELLING.get(match[0][0], match[0])

    def string(self) -> str | None:
        """Take a quoted value and return it without its quotes; None if there is none here."""
        match = _string(self.text, self.at)
        if match is None:
            quote = self.text[self.at : self.at + 1]
            if quote in {'"', "'"}:
                raise SelectorError(
                    f"{shown(self.text[self.at :])} is never closed",
                    offset=self.at,
                    help=f"end the value with {quote}",
                )
            return None
        self._go(match.end())
        return match[0][1:-1]

    def unexpected(self, expected: str, help: str = "") -> SelectorError:  # noqa: A002 - the word that users see
        """Return the error for a token that is not allowed here."""
        found = self.peek()
        if found in {"\n", "\r"}:
            help = "write the selector on one line; in YAML as a plain scalar, or with >- instead of | or >"  # noqa: A001 - as above
            return SelectorError(
                f"a line break does not count as a blank in Calico's language: expected {expected}",
                offset=self.at,
                help=help,
            )
        if not found:
            return SelectorError(f"the selector ends here: expected {expected}", offset=self.at, help=help)
        return SelectorError(f"{shown(found)}: expected {expected}", offset=self.at, help=help)
