"""Where a selector names a label key: the place that a finding about the key shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ipamc.model.selector.calico_tokens import Cursor

Source = str | Mapping[str, Any]
"""A selector as it was written: a text, or an object whose shape was checked."""


class Spot(NamedTuple):
    """The place of a label key in a selector."""

    keys: tuple[str | int, ...] = ()
    """From a selector object to the key; () in a text."""
    at_key: bool = False
    """The label is the last of `keys` itself, not its value."""
    offset: int = 0
    """In characters, in a text."""


def find_keys(source: Source) -> dict[str, Spot]:
    """Return the first place that names each label. O(source)."""
    found: dict[str, Spot] = {}
    for key, spot in _in_text(source) if isinstance(source, str) else _in_object(source):
        found.setdefault(key, spot)
    return found


def _in_text(text: str) -> Iterator[tuple[str, Spot]]:
    """Yield every token: a label is one of them."""
    cursor = Cursor(text)
    while not cursor.ended:
        at, token = cursor.at, cursor.peek()
        yield token, Spot(offset=at)
        cursor.accept(token)


def _in_object(selector: Mapping[str, Any], *keys: str | int) -> Iterator[tuple[str, Spot]]:
    for label in selector.get("matchLabels") or ():
        yield label, Spot((*keys, "matchLabels", label), at_key=True)
    for index, entry in enumerate(selector.get("matchExpressions") or ()):
        yield entry["key"], Spot((*keys, "matchExpressions", index, "key"))
    for index, term in enumerate(selector.get("nodeSelectorTerms") or ()):
        yield from _in_object(term, *keys, "nodeSelectorTerms", index)
