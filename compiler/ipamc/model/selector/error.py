"""How a selector is refused: what is wrong, at which character of a text or under which keys of an object, and a way out."""

from __future__ import annotations

_SHOWN = 60


class SelectorError(ValueError):
    """A selector that its language does not allow. Wordings are those of a diagnostic: lower case, the value first, no full stop."""

    def __init__(
        self,
        message: str,
        *,
        offset: int = 0,
        keys: tuple[str | int, ...] = (),
        at_key: bool = False,
        help: str = "",  # noqa: A002 - the word that users see
    ) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        """Characters into the text, from 0, of the offending token; the text's length where its end is the surprise. 0 for objects."""
        self.keys = keys
        """Keys and indices inside a selector object, down to the offending value; () for a text, and for the object as a whole."""
        self.at_key = at_key
        """Point at the last of `keys` itself instead of its value."""
        self.help = help


def shown(text: str) -> str:
    """Quote a piece of somebody's input for a message: control characters visible, hostile lengths cut."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
