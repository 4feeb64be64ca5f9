"""The error for a refused selector: problem, offset in the text or keys in the object, and a fix."""

from __future__ import annotations

_SHOWN = 60


class SelectorError(ValueError):
    """A selector that its language does not allow. Messages have the style of a Diagnostic's."""

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
        """Offset in characters, from 0, of the offending token or of the text's end; 0 for objects."""
        self.keys = keys
        """Keys and indices from a selector object to the offending value; () for a text."""
        self.at_key = at_key
        """The problem is the last of `keys` itself, not its value."""
        self.help = help


def shown(text: str) -> str:
    """Return a piece of the input quoted for a message: control characters escaped, long text cut."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
