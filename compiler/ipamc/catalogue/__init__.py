"""The catalogue of rules: every function of the modules with rules whose docstring starts with a code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import FunctionType, ModuleType

from msgspec import Struct

from ipamc import address_space
from ipamc.assertions import renumbers as assertion_renumbers
from ipamc.assertions import rules as assertion_rules
from ipamc.check import (
    adopt,
    bgp,
    capacity,
    drift,
    evidence,
    held_blocks,
    leavers,
    modes,
    multi_pool,
    pods,
    pools,
    published,
    published_ranges,
    selection,
    usage,
)
from ipamc.check import pins as check_pins
from ipamc.importing import rules as importing_rules
from ipamc.importing.calico import pool_rules as calico_pool_rules
from ipamc.importing.calico import rules as calico_rules
from ipamc.importing.prefixes import rules as prefix_rules
from ipamc.lock import consent
from ipamc.lock import rules as lock_rules
from ipamc.model import diagnostics
from ipamc.place import candidates
from ipamc.place.allocate import pins as allocate_pins
from ipamc.place.allocate import shortage
from ipamc.place.reconcile import reconcile, renumber, resized
from ipamc.place.resize import rules as resize_rules
from ipamc.read import rules as read_rules
from ipamc.read.dump import rules as dump_rules
from ipamc.read.syntax import rules as syntax_rules
from ipamc.read.table import csv_table
from ipamc.render import verify
from ipamc.review import lock_law, prefixes
from ipamc.review.audit import blocks, comparable, flags, nodes, operator, routes, three_ways
from ipamc.review.audit import pods as audit_pods

MODULES: tuple[ModuleType, ...] = (
    syntax_rules,
    diagnostics,
    read_rules,
    dump_rules,
    csv_table,
    importing_rules,
    calico_pool_rules,
    calico_rules,
    prefix_rules,
    pools,
    check_pins,
    modes,
    multi_pool,
    pods,
    usage,
    bgp,
    lock_rules,
    candidates,
    selection,
    reconcile,
    consent,
    renumber,
    resized,
    resize_rules,
    held_blocks,
    leavers,
    allocate_pins,
    shortage,
    drift,
    evidence,
    capacity,
    published,
    adopt,
    published_ranges,
    verify,
    assertion_rules,
    assertion_renumbers,
    address_space,
    prefixes,
    lock_law,
    comparable,
    blocks,
    nodes,
    flags,
    three_ways,
    routes,
    audit_pods,
    operator,
)

_DOC = re.compile(r"(IPC\d{4}): (.+?)(?:\n\n(.*))?", re.DOTALL).fullmatch
_PARTS = re.compile(r"(?:^|\n\n)(Why|Run): ")


class Entry(Struct, frozen=True, kw_only=True):
    """A rule as its docstring tells: `IPC0207: title.`, then paragraphs, `Why: …` and `Run: …`, in this order."""

    code: str
    title: str
    """What is checked, in one sentence."""
    body: str
    """What the sentence leaves open: exceptions, limits, usual causes; "" where there is nothing to add."""
    why: str
    """What happens in the cluster, or to the files, if it were let through."""
    run: str
    """What to do about it, with the commands to type."""

    @property
    def text(self) -> str:
        """All that follows the title, as paragraphs."""
        named = (self.why and f"Why: {self.why}", self.run and f"Run: {self.run}")
        return "\n\n".join(part for part in (self.body, *named) if part)


def catalogue() -> dict[str, Entry]:
    """Return all rules by code, in order. Raises ValueError for two rules with one code."""
    entries: dict[str, Entry] = {}
    found = (entry for module in MODULES for entry in _entries(module))
    for entry in sorted(found, key=lambda entry: entry.code):
        if entry.code in entries:
            raise ValueError(f"two rules have the code {entry.code}")
        entries[entry.code] = entry
    return entries


def _entries(module: ModuleType) -> Iterator[Entry]:
    for function in _functions(module):
        if match := _DOC(inspect.getdoc(function) or ""):
            code, title, text = match.groups()
            body, *parts = _PARTS.split(text or "")
            named = dict(zip(parts[::2], parts[1::2], strict=True))
            yield Entry(
                code=code,
                title=" ".join(title.split()),
                body=body.strip(),
                why=named.get("Why", ""),
                run=named.get("Run", ""),
            )


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions of a module and the methods of its classes, without imported ones."""
    for member in vars(module).values():
        if getattr(member, "__module__", None) == module.__name__:
            if isinstance(member, FunctionType):
                yield member
            elif isinstance(member, type):
                yield from (method for method in vars(member).values() if isinstance(method, FunctionType))
