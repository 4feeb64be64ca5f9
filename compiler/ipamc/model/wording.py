"""Words for messages: somebody's text, the nearest known word, lists of words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SHOWN = 12
_LONGEST = 260
"""Characters of somebody's text in a message: a name of the longest kind, whole."""


def shown(text: str) -> str:
    """Quote somebody's text for a message: hostile lengths cut."""
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


def nearest(word: str, known: Iterable[str]) -> str:
    """Give the known word that `word` was meant to be, or "". Case counts for nothing."""
    by_lower = {each.lower(): each for each in sorted(known, reverse=True)}
    close = difflib.get_close_matches(word[:100].lower(), sorted(by_lower), n=1, cutoff=0.6)
    return by_lower[close[0]] if close else ""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Ask `did you mean 'x'?`, or give "" where nothing is near."""
    found = nearest(word, known)
    return f"did you mean {found!r}?" if found else ""


def listing(words: Iterable[str]) -> str:
    """List words in the order given, cut after a dozen: `a, b or c`."""
    every = list(words)
    if len(every) > _SHOWN:
        return f"{', '.join(every[:_SHOWN])} and {len(every) - _SHOWN} more"
    return " or ".join(filter(None, (", ".join(every[:-1]), *every[-1:])))
