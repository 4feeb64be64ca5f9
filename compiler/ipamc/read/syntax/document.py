"""Documents as they come out of a file: plain values, and what is odd about their scalars. No object per value remembers a position."""

from __future__ import annotations

from typing import Any, NamedTuple

from ipamc.model.diagnostics import Diagnostic, Place

MAX_DEPTH = 100
"""Levels of nesting that a document may have."""

MAX_EXPANDED = 1_000_000
"""Values that the aliases of a file may stand for, in all."""

Keys = tuple[str | int, ...]


class Odd(NamedTuple):
    """A plain scalar that is no text to every reader, or a key that is none."""

    keys: Keys
    key: bool
    """It is the last of `keys` itself, not the value under it."""
    text: str
    """The source text."""
    agreed: bool
    """YAML 1.1 and 1.2 agree that it is not text. Only keys are recorded then: values have their type."""


class Document(NamedTuple):
    """One document of a file."""

    at: Place
    value: Any
    """dict (keys are the source text), list, str, int, float, bool or None. In a JSON list, `items` may be an iterator: read it once."""
    odd: tuple[Odd, ...] = ()


class Unreadable(Exception):  # noqa: N818 - a verdict on a file, not a failure of ours
    """A file cannot be read, or not to its end; `diagnostics` say why. Documents that came before it are good."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(f"{len(diagnostics)} findings")
        self.diagnostics = diagnostics
