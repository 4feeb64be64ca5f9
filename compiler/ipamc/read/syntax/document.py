"""Documents of a file as plain values, and the scalars that YAML readers interpret differently.

Values have no position.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ipamc.model.diagnostics import Diagnostic, Place

MAX_DEPTH = 100
"""The most levels of nesting in a document."""

MAX_NODES = 200_000
"""The most nodes of a cluster, and CiliumNodes; documents of a file, and mappings in one list: twice the
largest measured cluster. They are counted while they are read: a refusal takes no memory for the rest."""

MAX_CONTAINERS = 10_000_000
"""The most mappings and lists of a document, or an item of a JSON List: a million nodes have 3 million.
Each takes some ninety bytes of memory for two bytes of text or more."""

MAX_EXPANDED = 1_000_000
"""The most values that a file's aliases may expand to; text counts as a value for each 64 characters."""

MAX_ODD = 1_000_000
"""The most ambiguous unquoted scalars of a document, in fields of any kind."""

MAX_TAG_LINES = 1_000
"""The most `%TAG` lines of a file: a YAML parser compares each of them with all others."""

Keys = tuple[str | int, ...]


class Odd(Struct, frozen=True):
    """An unquoted scalar that some readers do not read as text, or a key that is no text."""

    within: Keys
    """The path of its mapping or list. All scalars there share the path, which may be long."""
    last: str | int | None
    """Its key or index in that; None for the document itself."""
    key: bool
    """The scalar is `last` itself, not its value."""
    text: str
    """The source text."""
    agreed: bool
    """YAML 1.1 and 1.2 agree that it is not text. Recorded for keys only: a value then has its type."""

    @property
    def keys(self) -> Keys:
        """The path of the scalar."""
        return self.within if self.last is None else (*self.within, self.last)


class Document(Struct, frozen=True):
    """One document of a file."""

    at: Place
    value: Any
    """dict (keys are source text), list, str, int, float, bool or None. In a JSON list `items` may be an
    iterator, to be read once."""
    odd: tuple[Odd, ...] = ()


def member(value: Any, *keys: str) -> Any:
    """Return the value at a path in an unchecked value; None if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


class Unreadable(Exception):  # noqa: N818 - a verdict on a file, not a failure of ipamc
    """A file cannot be read to its end; `diagnostics` say why. Documents yielded before are valid."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(f"{len(diagnostics)} findings")
        self.diagnostics = diagnostics
