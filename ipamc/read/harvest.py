"""What the documents of a folder make together: one cluster, with everything by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ipamc.diagnostics import Diagnostic, Place, Span
from ipamc.model import CiliumNode, Cluster, Node, Pool, Range
from ipamc.read import findings_model as findings
from ipamc.read.kinds import Value

T = TypeVar("T", Cluster, Pool, Node, CiliumNode)


@dataclass(slots=True)
class Harvest:
    """The values that were read, in the order of the files."""

    clusters: dict[str, Cluster] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    cilium_nodes: dict[str, CiliumNode] = field(default_factory=dict)
    excluded: list[Range] = field(default_factory=list)
    truncated: Place | None = None
    twice: list[Diagnostic] = field(default_factory=list)

    def add(self, values: Iterable[Value]) -> None:
        """Take in values; two of one name are noted, and the first counts."""
        for value in values:
            if isinstance(value, Node):
                self._add_node(value)
            elif isinstance(value, Range):
                self.excluded.append(value)
            elif isinstance(value, Pool):
                self._add(self.pools, value, "pool")
            elif isinstance(value, CiliumNode):
                self._add(self.cilium_nodes, value, "CiliumNode")
            else:
                self._add(self.clusters, value, "Cluster")

    def _add(self, known: dict[str, T], value: T, what: str) -> None:
        first = known.setdefault(value.name, value)
        if first is not value:
            self.twice.append(findings.same_name(what, value.name, value.at / "metadata" / "name", first.at / "metadata" / "name"))

    def _add_node(self, node: Node) -> None:
        first = self.nodes.setdefault(node.name, node)
        if first is node:
            return
        if first.planned and not first.live and node.live:
            self.nodes[node.name] = node  # it fulfils the plan
        elif not (node.planned and not node.live and first.live):
            self.twice.append(findings.same_name("node", node.name, _name_at(node), _name_at(first)))

    def cluster(self, name: str, folder: str, *, complete: bool) -> tuple[Cluster | None, list[Diagnostic]]:
        """Put everything together under the Cluster called `name`.

        `complete` says that no document was lost on the way: only then a folder without a Cluster is one that never had any.
        """
        found = list(self.twice)
        found += [
            findings.other_folder(each.at / "metadata" / "name", each.name, name) for each in self.clusters.values() if each.name != name
        ]
        if not self.clusters and complete:
            found.append(findings.no_cluster(Span(folder), name))
        cluster = self.clusters.get(name)
        if cluster is None:
            return None, found
        return replace(
            cluster,
            excluded=(*cluster.excluded, *sorted(self.excluded)),
            pools=tuple(self.pools[key] for key in sorted(self.pools)),
            nodes=tuple(self.nodes[key] for key in sorted(self.nodes)),
            cilium_nodes=tuple(self.cilium_nodes[key] for key in sorted(self.cilium_nodes)),
            truncated=self.truncated,
        ), found


def _name_at(node: Node) -> Place:
    return node.at / "metadata" / "name" if node.live else node.at / "name"
