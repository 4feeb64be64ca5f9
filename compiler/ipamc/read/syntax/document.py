"""Documents of a file as plain values without position; scalars that YAML readers interpret differently.

If YAML 1.1 and YAML 1.2 readers both read an unquoted scalar as a number, a truth value or null, it is that.
If they differ it stays text and is marked: a warning in a field of text, an error in any other. YAML 1.1 is
read as PyYAML reads it (yaml.org/type), YAML 1.2 by the core schema (spec 1.2.2, section 10.3).
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from msgspec import Struct

from ipamc.model.diagnostics import Diagnostic, Place
from ipamc.model.limits import MOST_DIGITS

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


class Ambiguous(str):
    """The source text of a scalar that YAML 1.1 and YAML 1.2 readers read differently."""

    __slots__ = ()


Scalar = str | int | float | bool | None

_TRUE: Final = {"true", "True", "TRUE"}
_FALSE: Final = {"false", "False", "FALSE"}
_NULL: Final = {"", "~", "null", "Null", "NULL"}
_TRUE_11: Final = {"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"}
_FALSE_11: Final = {"n", "N", "no", "No", "NO", "off", "Off", "OFF"}
_MARKS_11: Final = {"=", "<<"}
_WORDS: Final = _TRUE | _FALSE | _NULL | _TRUE_11 | _FALSE_11 | _MARKS_11

# Compiled where they are used: few files have such scalars.
_INT_11: Final = r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*(?::[0-5]?[0-9])*)"
_FLOAT_11: Final = (
    r"[-+]?(?:(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?"
    r"|[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*)"
)
_TIME_11: Final = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?"
    r"(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?"
)
_INT_12: Final = r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
_FLOAT_12: Final = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_INFINITE: Final = r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
_ANY = re.compile(f"{_INT_11}|{_FLOAT_11}|{_TIME_11}|{_INT_12}|{_FLOAT_12}|{_INFINITE}").fullmatch


def resolve(text: str) -> Scalar:
    """Return the value of a plain scalar, or `Ambiguous` text. Costs two look-ups for most texts."""
    if text in _WORDS:
        if text in _NULL:
            return None
        return text in _TRUE if text in _TRUE or text in _FALSE else Ambiguous(text)
    if text[0] not in "-+.0123456789" or not _ANY(text):
        return text
    if text.isdecimal() and text[0] != "0" and len(text) <= MOST_DIGITS:
        return int(text)  # to both kinds of readers
    old, new = _yaml_11(text), _yaml_12(text)
    if old is None and new is None:
        return text
    # `repr`, because NaN does not equal itself. What only YAML 1.1 reads, a date, is a str.
    return new if type(old) is type(new) and repr(old) == repr(new) else Ambiguous(text)


def readings(text: str) -> str:
    """Return how both kinds of readers read a text: `true to YAML 1.1 readers and text to YAML 1.2 …`."""
    old: Scalar = _yaml_11(text)
    if text in _TRUE_11 or text in _FALSE_11:
        old = text in _TRUE_11
    elif text in _MARKS_11:
        old = "a merge mark"
    return f"{_spoken(old)} to YAML 1.1 readers and {_spoken(_yaml_12(text))} to YAML 1.2 readers"


def quoted(text: str) -> str:
    """Return the text as a quoted scalar that YAML 1.1, YAML 1.2 and JSON readers read alike."""
    return json.dumps(text, ensure_ascii=False)


def _spoken(value: Scalar) -> str:
    if value is None:
        return "text"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else f"the number {value}"


def _yaml_11(text: str) -> int | float | str | None:
    """Return a number, a str that describes another value, or None for text."""
    if re.fullmatch(_INFINITE, text):
        return _infinite(text)
    if re.fullmatch(_INT_11, text):
        digits = text.replace("_", "")
        sign, digits = (-1, digits[1:]) if digits[0] == "-" else (1, digits.removeprefix("+"))
        if ":" in digits:
            return sign * _base_60(digits)
        octal = digits[0] == "0" and len(digits) > 1
        base = {"0b": 2, "0x": 16}.get(digits[:2], 8 if octal else 10)
        return sign * _integer(digits.removeprefix("0b").removeprefix("0x"), base)
    if re.fullmatch(_FLOAT_11, text):
        return _base_60(text) if ":" in text else float(text.replace("_", ""))
    return "a date" if re.fullmatch(_TIME_11, text) else None


def _yaml_12(text: str) -> int | float | None:
    """Return a number, or None for text."""
    if re.fullmatch(_INFINITE, text):
        return _infinite(text)
    if re.fullmatch(_INT_12, text):
        if text[:2] in {"0o", "0x"}:
            return _integer(text[2:], 8 if text[1] == "o" else 16)
        return _integer(text, 10)
    return float(text) if re.fullmatch(_FLOAT_12, text) else None


def _integer(digits: str, base: int) -> int | float:
    if len(digits) > MOST_DIGITS:
        return float(digits) if base == 10 else float("inf")
    return int(digits or "0", base)


def _base_60(text: str) -> float:
    total = 0.0
    for part in text.replace("_", "").lstrip("+-").split(":")[:10]:
        total = total * 60 + float(part or 0)
    return total


def _infinite(text: str) -> float:
    if text[-1] in "nN":
        return float("nan")
    return float("-inf") if text[0] == "-" else float("inf")
