"""The catalogue of rules: every function whose docstring starts with a code, found in the modules that hold rules."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import NamedTuple

from ipamc import (
    address_space,
    adopt,
    assign,
    consent,
    disk,
    holding,
    leave,
    limits,
    lock_rules,
    moving,
    pins,
    published,
    settle,
    shortage,
    verify,
)
from ipamc.check import bgp, modes, multi_pool, pools
from ipamc.check import pins as check_pins
from ipamc.read import findings_model, findings_text
from ipamc.review import live, room

MODULES: tuple[ModuleType, ...] = (
    disk,
    findings_text,
    findings_model,
    pools,
    check_pins,
    modes,
    multi_pool,
    bgp,
    lock_rules,
    assign,
    settle,
    consent,
    moving,
    holding,
    leave,
    adopt,
    pins,
    shortage,
    live,
    room,
    published,
    limits,
    verify,
    address_space,
)

_DOC = re.compile(r"(IPC\d{4}): (.+?)(?:\n\n(.*))?", re.DOTALL).fullmatch


class Entry(NamedTuple):
    """A rule, as `ipamc explain` prints it."""

    code: str
    title: str
    """One sentence: what holds."""
    body: str
    """Why it matters, and what to do."""


def catalogue() -> dict[str, Entry]:
    """Give all rules by code, in order. Two rules of one code are a bug."""
    entries: dict[str, Entry] = {}
    for entry in sorted(entry for module in MODULES for entry in _entries(module)):
        if entry.code in entries:
            raise ValueError(f"two rules have the code {entry.code}")
        entries[entry.code] = entry
    return entries


def _entries(module: ModuleType) -> Iterator[Entry]:
    for function in _functions(module):
        if match := _DOC(inspect.getdoc(function) or ""):
            code, title, body = match.groups()
            yield Entry(code, " ".join(title.split()), body or "")


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Give the functions of a module and the methods of its classes, its own alone."""
    for each in vars(module).values():
        if getattr(each, "__module__", None) == module.__name__:
            if isinstance(each, FunctionType):
                yield each
            elif isinstance(each, type):
                yield from (method for method in vars(each).values() if isinstance(method, FunctionType))
