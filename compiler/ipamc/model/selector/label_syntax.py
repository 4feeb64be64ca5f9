"""What Kubernetes allows as label key, label value and node name (apimachinery `pkg/api/validate/content`), and its integers."""

from __future__ import annotations

import re

_PART = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_PART}(?:\.{_PART})*"
_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_SHORT_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"

# `fullmatch` and no `$`: that one lets a trailing line break pass. Every character class is ASCII, so characters are bytes.
_is_key = re.compile(rf"(?:(?=[^/]{{1,253}}/){_SUBDOMAIN}/)?{_SHORT_NAME}").fullmatch
_is_value = re.compile(rf"(?:{_SHORT_NAME})?").fullmatch
_is_name = re.compile(_NAME).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_integer = re.compile(r"([+-]?)0*(\d{1,19})", re.ASCII).fullmatch

_CHARACTERS = "letters, digits, -, _ and . with a letter or digit at both ends"
_DNS = "lower-case letters, digits, - and . with a letter or digit at both ends of each part"

_INT64 = 1 << 63


def label_key_problem(key: str) -> str:
    """Say what is wrong with a label key, as a predicate ("has more than one slash"), or "" if nothing is.

    A name of 1 to 63 characters, after an optional DNS subdomain and slash. One compiled match where the key is right.
    """
    return "" if _is_key(key) else _key_problem(key)


def label_value_problem(value: str) -> str:
    """Say what is wrong with a label value, as a predicate, or "" if nothing is: empty, or 1 to 63 characters of a name."""
    if _is_value(value):
        return ""
    return "is longer than 63 characters" if len(value) > 63 else f"is not made of {_CHARACTERS}"


def node_name_problem(name: str) -> str:
    """Say what is wrong with a node's name, as a predicate, or "" if nothing is: a DNS subdomain of at most 253 characters."""
    if not name:
        return "is empty"
    if len(name) > 253:
        return "is longer than 253 characters"
    return "" if _is_subdomain(name) else f"is not made of {_DNS}"


def integer(text: str) -> int | None:
    """Read a decimal int64 as Go's ParseInt does, or None. Only digits and a sign: Python's own `int` takes more."""
    match = _integer(text)
    if match is None:
        return None
    number = -int(match[2]) if match[1] == "-" else int(match[2])
    return number if -_INT64 <= number < _INT64 else None


def _key_problem(key: str) -> str:
    if not key:
        return "is empty"
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return "has more than one slash"
    if slash and (problem := node_name_problem(prefix)):  # the same rule: a DNS subdomain
        return f"has a prefix that {problem}"
    if not name:
        return "has no name after the slash"
    if len(name) > 63:
        return "has a name of more than 63 characters"
    return f"has a name that is not made of {_CHARACTERS}"
