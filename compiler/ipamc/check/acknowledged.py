"""Marks the findings that a cluster acknowledges, and checks its entries of `acknowledge`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from operator import attrgetter

from msgspec.structs import replace

from ipamc.model.acknowledge import MILD, Acknowledged
from ipamc.model.cluster import Scheme
from ipamc.model.diagnostics import Diagnostic, Place, Severity, error, warning
from ipamc.model.lock import Line
from ipamc.model.selector.selector import EVERY

_ELSEWHERE = ("IPC08", "IPC09", "IPC0591", "IPC0614")
"""Import, audit and resize give these: a compile does not know whether an entry hides one."""


class Acknowledging:
    """The entries of a cluster, which hide notes and warnings. A narrowed one hides a finding if it chooses
    all pools, and all nodes, that the finding is about, and so none that does not say which they are. It is
    about the pools in which its places are, or else about those of which its nodes have blocks.
    """

    def __init__(self, scheme: Scheme, lines: Iterable[Line]) -> None:
        self._entries, used = scheme.acknowledges, bool(scheme.acknowledges)
        self._pools = {(pool.at.path, pool.at.document, pool.at.keys): pool.name for pool in scheme.pools}
        self._labels = {node.name: node.labels for node in scheme.nodes if used}
        self._held: dict[str, set[str]] = {}
        for line in filter(attrgetter("in_use"), lines if used else ()):
            self._held.setdefault(line.node, set()).add(line.pool)

    def mark(self, findings: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Return the findings, each with the reason of the first entry that hides it."""
        return [replace(each, acknowledged=self._reason(each)) for each in findings]

    def _reason(self, finding: Diagnostic) -> str:
        return next((entry.reason for entry in self._entries if self.hides(entry, finding)), "")

    def hides(self, entry: Acknowledged, finding: Diagnostic) -> bool:
        """Return whether an entry hides a finding."""
        if entry.code != finding.code or finding.severity is Severity.ERROR:
            return False
        nodes, labels = finding.nodes, self._labels
        held = (self._held.get(node, {""}) for node in nodes)
        pools = set(self._pools_at(finding)) or set().union(*held)
        chosen = all(node in labels and entry.nodes.matches(labels[node], node) for node in nodes)
        by_pools = not entry.pools or (bool(pools) and pools <= set(entry.pools))
        return by_pools and (entry.nodes == EVERY or (bool(nodes) and chosen))

    def _pools_at(self, finding: Diagnostic) -> Iterator[str]:
        for at in (finding.at, *(other.at for other in finding.also)):
            if isinstance(at, Place):
                above = ((at.path, at.document, at.keys[:end]) for end in range(len(at.keys) + 1))
                yield from (self._pools[key] for key in above if key in self._pools)


def not_mild(cluster: Scheme) -> Iterator[Diagnostic]:
    """IPC0111: `acknowledge` contains only codes of notes and warnings."""
    for entry in cluster.acknowledges:
        if entry.code not in MILD:
            message = f"{entry.code} is not the code of a note or a warning"
            fix = "correct the code, or remove the entry: errors are never hidden"
            yield error("IPC0111", entry.at / "code", message, help=fix)


def hides_nothing(
    cluster: Scheme, lines: Iterable[Line], found: Collection[Diagnostic]
) -> Iterator[Diagnostic]:
    """IPC0112: every entry of `acknowledge` hides a finding."""
    entries, fix = Acknowledging(cluster, lines), "remove the entry, or correct its pools and nodes"
    for entry in cluster.acknowledges:
        if not entry.code.startswith(_ELSEWHERE) and not any(entries.hides(entry, each) for each in found):
            yield warning("IPC0112", entry.at, f"there is no {entry} to hide", help=fix)
