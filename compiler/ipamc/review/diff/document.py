"""A plan of several clusters, and what of it is refused."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ipamc.model.diagnostics import Diagnostic, count, names
from ipamc.model.lock import State
from ipamc.review.diff import Difference


class Status(enum.StrEnum):
    """What became of a cluster since the base."""

    PLANNED = "planned"
    NEW = "new"
    RENAMED = "renamed"
    DELETED = "deleted"
    REFUSED = "refused"
    """The compile was refused: there is no head."""
    FAILED = "failed"
    """The surroundings failed, or the base cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What the plan says of one cluster."""

    name: str
    status: Status = Status.PLANNED
    difference: Difference | None = None
    """None where there is nothing to compare: deleted, refused, failed."""
    said: str = ""
    """One line about the status, with a way out where one is needed."""
    findings: tuple[Diagnostic, ...] = ()
    """Of the head's compile."""
    nodes: int = 0
    """Those that held a block at the base, where the cluster was deleted."""

    @property
    def failed(self) -> bool:
        """Tell whether the plan is refused, whatever `--fail-on` says."""
        vanished = self.difference is not None and self.difference.lines.vanished
        return bool(vanished) or self.status in {Status.REFUSED, Status.FAILED}

    @property
    def changed(self) -> bool:
        """Tell whether there is something to tell beyond "no changes"."""
        return self.status is not Status.PLANNED or self.difference is None or self.difference.changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The whole plan."""

    base: str
    """The revision as it was named; "" where the base is the disk."""
    clusters: tuple[Planned, ...]
    """By name."""
    scope: tuple[str, ...] = ()
    """The clusters that were named; none where all are meant. Two comments on one pull request differ in it."""


def refusals(document: Document, fail_on: Collection[str]) -> Iterator[str]:
    """Say, a line each, why the plan is refused: what vanished, always, and what `fail_on` names. Consent in the lock's lines changes nothing here."""
    for each in document.clusters:
        if each.status is Status.DELETED and "leave" in fail_on:
            yield f"{each.name}: {count(each.nodes, 'node')} left with the whole cluster (--fail-on leave)"
        if each.difference is None:
            continue
        lines = each.difference.lines
        if lines.vanished:
            gone = names(f"{line.node} ({line.block})" for line in lines.vanished)
            yield f"{each.name}: {count(len(lines.vanished), 'line')} vanished from the lock: {gone}"
        renumbered = {renumber.node for renumber in (*lines.pending, *lines.settled)}
        left = {
            gone.line.node
            for gone in (*lines.left, *lines.released)
            if gone.before is None or gone.before.state is State.HELD
        }
        released = {str(gone.line.block) for gone in lines.released}
        short = {f"{room.pool} (IPv{room.family})" for room in each.difference.capacity if room.short}
        for gate, found, said in (
            ("renumber", renumbered, f"{count(len(renumbered), 'node')} renumbered"),
            ("release", released, f"{count(len(released), 'block')} released"),
            ("leave", left, f"{count(len(left), 'node')} left"),
            ("capacity", short, f"{count(len(short), 'pool')} with little room left"),
        ):
            if found and gate in fail_on:
                yield f"{each.name}: {said} (--fail-on {gate}): {names(found)}"
