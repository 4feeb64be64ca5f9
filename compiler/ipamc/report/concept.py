"""A word of ipamc or of Cilium, as `ipamc explain WORD` tells it."""

from __future__ import annotations

import re
from typing import NamedTuple


class Concept(NamedTuple):
    """A word, and what it means here."""

    name: str
    also: tuple[str, ...]
    """Other words for it."""
    text: str
    run: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()

    def is_named(self, word: str) -> bool:
        """Tell whether a word, as anybody types it, is a name of it."""
        return _plain(word) in {_plain(name) for name in (self.name, *self.also)}


def _plain(word: str) -> str:
    """Return a word without what differs between a field, a flag and prose: case, -, _, : and backticks."""
    return " ".join(_MARKS.sub(" ", word).lower().split())


_MARKS = re.compile(r"[-_:`]+")


def text(concept: Concept) -> str:
    """Return what is to be said of a concept."""
    rows = [concept.name, "", concept.text]
    if concept.run:
        rows += ["", *(f"  {line}" for line in concept.run)]
    if concept.codes:
        rows += ["", f"Codes: {', '.join(concept.codes)}"]
    return "\n".join(rows) + "\n"
