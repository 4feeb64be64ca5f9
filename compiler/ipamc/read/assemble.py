"""The values of all documents of a folder in, one cluster out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from ipamc.model.assertion import Assertion
from ipamc.model.cidr import Block
from ipamc.model.cluster import CiliumNode, Cluster, Node, Pool, Range
from ipamc.model.diagnostics import At, Diagnostic, Findings, Place, Span
from ipamc.model.selector.label_syntax import subdomain_problem
from ipamc.read import rules
from ipamc.read.kinds import Value

Named = Cluster | Pool | Node | CiliumNode
T = TypeVar("T", Cluster, Pool, CiliumNode)


class Twice(NamedTuple):
    """A value that has the name of another one before it."""

    name: str
    at: At
    first: At
    plain: bool
    """It is an entry of an inventory, which has no metadata."""
    first_plain: bool

    @property
    def name_at(self) -> At:
        """The place of its name."""
        return _name_at(self.at, plain=self.plain)

    @property
    def first_name_at(self) -> At:
        """The place of the name of the other one."""
        return _name_at(self.first, plain=self.first_plain)


class Assembly(Struct):
    """The values that were read, in the order of the files."""

    found: Findings
    """Where findings go: about values with the same name, and about what a folder must have."""
    clusters: dict[str, Cluster] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    planned: dict[str, Node] = field(default_factory=dict)
    """Entries of an inventory whose nodes do not exist yet."""
    cilium_nodes: dict[str, CiliumNode] = field(default_factory=dict)
    excluded: list[Range] = field(default_factory=list)
    tests: list[Assertion] = field(default_factory=list)
    truncated: Place | None = None
    twice: dict[tuple[str, str, str], list[Twice]] = field(default_factory=dict)
    """What has the name of something before it, by what it is and the two files: a copied file is one finding."""

    def add(self, values: Iterable[Value]) -> None:
        """Add values; of two with the same name the first is kept and the second is reported. Raises Enough."""
        for value in values:
            if isinstance(value, Node):
                known = self.planned if value.planned else self.nodes
                if known.setdefault(value.name, value) is not value:  # nearly all values come here
                    self._twice(known[value.name], value, "node")
            elif isinstance(value, Range):
                self.excluded.append(value)
            elif isinstance(value, Assertion):
                self.tests.append(value)
            elif isinstance(value, Pool):
                self._add(self.pools, value, "pool")
            elif isinstance(value, CiliumNode):
                self._add(self.cilium_nodes, value, "CiliumNode")
            else:
                self._add(self.clusters, value, "Cluster")

    def _add(self, known: dict[str, T], value: T, what: str) -> None:
        first = known.setdefault(value.name, value)
        if first is not value:
            self._twice(first, value, what)

    def _twice(self, first: Named, value: Named, what: str) -> None:
        same = self.twice.setdefault((what, value.at.path, first.at.path), [])
        same.append(
            Twice(value.name, value.at, first.at, plain=_is_entry(value), first_plain=_is_entry(first))
        )

    def _same_names(self) -> Iterator[Diagnostic]:
        for (what, path, first), same in self.twice.items():
            names = [one.name for one in same]
            copied = path != first and not self._has_others(path)
            yield rules.same_name(what, names, same[0].name_at, same[0].first_name_at, copied=copied)

    def _has_others(self, path: str) -> bool:
        """Tell whether a file has values of names that no file before it has."""
        named = (self.nodes, self.planned, self.pools, self.cilium_nodes, self.clusters)
        return any(value.at.path == path for known in named for value in known.values())

    def cluster(self, name: str, folder: str, *, complete: bool) -> Cluster | None:
        """Return the Cluster called `name` with everything that was added. Raises Enough.

        `complete`: no unreadable document may have been the Cluster, so that a folder without one is
        reported.
        """
        for plan in self.planned.values():
            node = self.nodes.setdefault(plan.name, plan)
            if node is not plan and not node.live:  # a v1 Node replaces its planned entry
                self._twice(node, plan, "node")
        self.found.extend(self._same_names())
        for other in self.clusters.values():
            at = other.at / "metadata" / "name"
            if problem := subdomain_problem(other.name) or subdomain_problem(name):
                wrong = other.name if subdomain_problem(other.name) else name
                self.found.append(rules.bad_cluster_name(at, wrong, problem, name, folder))
            elif other.name != name:
                self.found.append(
                    rules.other_folder(at, other.name, name, folder, second=name in self.clusters)
                )
        if not self.clusters and complete:
            self.found.append(rules.no_cluster(Span(folder), name, folder))
        cluster = self.clusters.get(name)
        if cluster is None:
            return None
        return replace(
            cluster,
            excluded=(*cluster.excluded, *sorted(self.excluded, key=_range_order)),
            pools=tuple(self.pools[key] for key in sorted(self.pools)),
            nodes=tuple(self.nodes[key] for key in sorted(self.nodes)),
            cilium_nodes=tuple(self.cilium_nodes[key] for key in sorted(self.cilium_nodes)),
            truncated=self.truncated,
            tests=tuple(self.tests),
        )


def _is_entry(value: Named) -> bool:
    """Tell whether a value is an entry of an inventory, which has no metadata."""
    return isinstance(value, Node) and not value.live


def _name_at(at: At, *, plain: bool) -> At:
    return at / "name" if plain else at / "metadata" / "name"


def _range_order(excluded: Range) -> tuple[Block, str, int, str]:
    return excluded.block, excluded.at.path, excluded.at.document, repr(excluded.at.keys)
