"""The catalogue of rules: every function whose docstring starts with a code, in the modules that have rules."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import NamedTuple

from ipamc import address_space
from ipamc.check import bgp, capacity, drift, limits, modes, multi_pool, pools, published
from ipamc.check import pins as check_pins
from ipamc.lock import consent
from ipamc.lock import rules as lock_rules
from ipamc.place import candidates
from ipamc.place.allocate import pins as allocate_pins
from ipamc.place.allocate import shortage
from ipamc.place.reconcile import adopt, held_blocks, leavers, reconcile, renumber
from ipamc.read import rules as read_rules
from ipamc.read.syntax import rules as syntax_rules
from ipamc.render import verify

MODULES: tuple[ModuleType, ...] = (
    syntax_rules,
    read_rules,
    pools,
    check_pins,
    modes,
    multi_pool,
    bgp,
    lock_rules,
    candidates,
    reconcile,
    consent,
    renumber,
    held_blocks,
    leavers,
    adopt,
    allocate_pins,
    shortage,
    drift,
    capacity,
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
    """One sentence: the rule."""
    body: str
    """Why it matters and what to do."""


def catalogue() -> dict[str, Entry]:
    """Return all rules by code, in order. Two rules with one code are a bug."""
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
    """Yield the functions of a module and the methods of its classes, not those that it imports."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) == module.__name__:
            if isinstance(value, FunctionType):
                yield value
            elif isinstance(value, type):
                yield from (method for method in vars(value).values() if isinstance(method, FunctionType))
