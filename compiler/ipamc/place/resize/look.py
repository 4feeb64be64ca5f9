"""A look at a dump: whether it says something about this cluster, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ipamc.model.diagnostics import Diagnostic, Log
from ipamc.model.dump import Dump
from ipamc.model.plan import Plan
from ipamc.place.resize.decide import Sized, decide
from ipamc.place.resize.rules import check_dump, stuck
from ipamc.place.resize.use import sources


class Looked(Struct, frozen=True, kw_only=True):
    """What was decided, and what told of the use."""

    rows: tuple[Sized, ...]
    sources: tuple[str, ...]


def look(plan: Plan, dump: Dump, today: str) -> tuple[Looked, Sequence[Diagnostic]]:
    """Decide about the nodes of a plan, which an ordinary compile made; return the warnings, too.

    `today` is ISO 8601, in UTC. Raises Refused for a dump that says nothing about this cluster.
    """
    log = Log()
    log.add(check_dump(plan, dump, today))
    rows = decide(plan, dump)
    log.add(stuck(plan, rows))
    return Looked(rows=rows, sources=sources(dump)), tuple(log.diagnostics)
