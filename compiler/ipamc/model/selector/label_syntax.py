"""Kubernetes' syntax of labels and names (apimachinery `pkg/api/validate/content`), and of integers."""

from __future__ import annotations

import re
from collections.abc import Collection

from ipamc.model.limits import LONGEST_LABEL_VALUE, LONGEST_SUBDOMAIN

_PART = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_PART}(?:\.{_PART})*"
_SHORT_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"

# `fullmatch`: `$` accepts a trailing line break. Character classes are ASCII, so characters are bytes.
is_label_key = re.compile(rf"(?:(?=[^/]{{1,253}}/){_SUBDOMAIN}/)?{_SHORT_NAME}").fullmatch
is_label_value = re.compile(rf"(?:{_SHORT_NAME})?").fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_integer = re.compile(r"([+-]?)0*(\d{1,19})", re.ASCII).fullmatch

_CHARACTERS = "only letters, digits, -, _ and ., with a letter or digit at both ends"
_DNS = "only lower-case letters, digits, - and ., with a letter or digit at both ends of each part"

_INT64 = 1 << 63


def label_key_problem(key: str) -> str:
    """Return what is wrong with a label key as a predicate ("is empty"), or "" for a valid key.
    A valid key is a name of 1 to 63 characters after an optional DNS subdomain and slash. Costs one compiled
    match for a valid key.
    """
    return "" if is_label_key(key) else _key_problem(key)


def label_value_problem(value: str) -> str:
    """Return what is wrong with a label value as a predicate, or "" if it is empty or a valid name."""
    if len(value) > LONGEST_LABEL_VALUE:
        return f"is longer than {LONGEST_LABEL_VALUE} characters"
    return "" if is_label_value(value) else f"must contain {_CHARACTERS}"


def subdomain_problem(name: str) -> str:
    """Return what is wrong with a DNS-1123 subdomain as a predicate, or "" for a valid one.
    The kube-apiserver's rule for the names of nodes and most other objects, and ipamc's for clusters and
    pools.
    """
    if not name:
        return "is empty"
    if len(name) > LONGEST_SUBDOMAIN:
        return "is longer than 253 characters"
    return "" if _is_subdomain(name) else f"must contain {_DNS}"


def as_subdomain(name: str) -> str:
    """Return the valid name that is most similar to a text; "" if no character of it is valid."""
    parts = (re.sub(r"[^a-z0-9]+", "-", part).strip("-") for part in name.lower().split("."))
    return ".".join(filter(None, parts))[:LONGEST_SUBDOMAIN].rstrip("-.")


def are_subdomains(names: Collection[str]) -> bool:
    """Return whether `subdomain_problem` accepts all of many names. A quarter of its time for each."""
    return all(map(_is_subdomain, names)) and max(map(len, names), default=0) <= LONGEST_SUBDOMAIN


def dns_label_problem(name: str) -> str:
    """Return what is wrong with a DNS-1123 label (a namespace) as a predicate, or "" for a valid one."""
    if len(name) > 63:
        return "is longer than 63 characters"
    return "has a dot" if "." in name else subdomain_problem(name)


def integer(text: str) -> int | None:
    """Return the int64 that Go's ParseInt reads, or None. Python's own `int` accepts more."""
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
    if slash and (problem := subdomain_problem(prefix)):
        return f"has a prefix that {problem}"
    if not name:
        return "has no name after the slash"
    if len(name) > 63:
        return "has a name of more than 63 characters"
    return f"needs a name of {_CHARACTERS}"
