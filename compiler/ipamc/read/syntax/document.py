"""Documents as they come out of a file: plain values, and the scalars that readers take differently.

No value keeps its position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from ipamc.model.diagnostics import Diagnostic, Place

MAX_DEPTH = 100
"""Levels of nesting that a document may have."""

MAX_NODES = 200_000
"""Nodes of a cluster, and as many CiliumNodes; documents of a file, and mappings in one list: twice the
largest measured cluster. They are counted while they are read: a refusal takes no memory for the rest."""

MAX_CONTAINERS = 10_000_000
"""Mappings and lists of a document, or of an item of a JSON List: a million nodes have three million. Each
takes some ninety bytes of memory for two bytes of text or more."""

MAX_EXPANDED = 1_000_000
"""Values that all aliases of a file may stand for in total; text counts as a value for each 64 characters."""

MAX_ODD = 1_000_000
"""Unquoted scalars of a document that readers may take differently, in fields of any kind."""

MAX_TAG_LINES = 1_000
"""`%TAG` lines that a file may have: a YAML parser compares each of them with all others."""

MARK = "nobody-reads-this"
"""What stands in a cut text for a value that was taken out begins with this."""

Keys = tuple[str | int, ...]


class Odd(Struct, frozen=True):
    """An unquoted scalar that some readers do not take for text, or a key that is no text."""

    within: Keys
    """The path of the mapping or list that it is in. All scalars there share it: it may be long."""
    last: str | int | None
    """Its key or index there; None for the document itself."""
    key: bool
    """The scalar is `last` itself, not its value."""
    text: str
    """The source text."""
    agreed: bool
    """YAML 1.1 and 1.2 agree that it is not text. Recorded for keys only: a value then has its type."""

    @property
    def keys(self) -> Keys:
        """The path to it."""
        return self.within if self.last is None else (*self.within, self.last)


class Document(Struct, frozen=True):
    """One document of a file."""

    at: Place
    value: Any
    """dict (keys are source text), list, str, int, float, bool or None. In a JSON list `items` may be an
    iterator, to be read once."""
    odd: tuple[Odd, ...] = ()


class Cut(Struct, frozen=True):
    """A YAML text with marks for some of its values."""

    text: str
    number: int
    """How many marks are in the text."""
    marks: Mapping[str, Any]
    """The value of each of them; None if nobody reads it. They are shared and not to be changed."""


def member(value: Any, *keys: str) -> Any:
    """Return what is at a path in a value whose shape nobody checked; None where nothing is."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


Unread = Callable[[Mapping[str, Any], Keys], bool]
"""Tells of an object, and the path from it to a value that was cut out, whether nobody reads it there."""


class Unreadable(Exception):  # noqa: N818 - a verdict on a file, not a failure of ipamc
    """A file cannot be read to its end; `diagnostics` say why. Documents yielded before are good."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(f"{len(diagnostics)} findings")
        self.diagnostics = diagnostics
