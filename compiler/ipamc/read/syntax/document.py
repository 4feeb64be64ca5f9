"""Documents as they come out of a file: plain values, and the scalars that readers take differently.

No value keeps its position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipamc.model.diagnostics import Diagnostic, Place

MAX_DEPTH = 100
"""Levels of nesting that a document may have."""

MAX_EXPANDED = 1_000_000
"""Values that all aliases of a file may stand for in total."""

Keys = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Odd:
    """An unquoted scalar that some readers do not take for text, or a key that is no text."""

    keys: Keys
    key: bool
    """The scalar is the last of `keys` itself, not its value."""
    text: str
    """The source text."""
    agreed: bool
    """YAML 1.1 and 1.2 agree that it is not text. Recorded for keys only: a value then has its type."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file."""

    at: Place
    value: Any
    """dict (keys are source text), list, str, int, float, bool or None. In a JSON list `items` may be an
    iterator, to be read once."""
    odd: tuple[Odd, ...] = ()


class Unreadable(Exception):  # noqa: N818 - a verdict on a file, not a failure of ipamc
    """A file cannot be read, or not to its end; `diagnostics` say why.

    Documents that were yielded before are good.
    """

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(f"{len(diagnostics)} findings")
        self.diagnostics = diagnostics
