"""Where a selector names a label key: the place that a finding about the key shows."""

from __future__ import annotations

from collections.abc import Mapping
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


def find_key(source: Source, label: str) -> Spot:
    """Return the first place that names the label; the whole selector if there is none."""
    if isinstance(source, str):
        return Spot(offset=_in_text(source, label))
    return _in_object(source, label) or Spot()


def _in_text(text: str, label: str) -> int:
    cursor = Cursor(text)
    while not cursor.ended:
        at, token = cursor.at, cursor.peek()
        if token == label:
            return at
        cursor.accept(token)
    return 0


def _in_object(selector: Mapping[str, Any], label: str) -> Spot | None:
    if label in (selector.get("matchLabels") or ()):
        return Spot(("matchLabels", label), at_key=True)
    for index, entry in enumerate(selector.get("matchExpressions") or ()):
        if entry["key"] == label:
            return Spot(("matchExpressions", index, "key"))
    for index, term in enumerate(selector.get("nodeSelectorTerms") or ()):
        if found := _in_object(term, label):
            return found._replace(keys=("nodeSelectorTerms", index, *found.keys))
    return None
