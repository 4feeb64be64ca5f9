"""Nodes in waves: as many at a time as the cluster can do without."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from msgspec import Struct

from ipamc.model.cluster import Cluster

SHORT = {
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
    "hostname": "kubernetes.io/hostname",
}
"""Short names of labels."""
SHARE = 10
"""Without a size, a wave is one of so many parts of the cluster."""


class Cut(Struct, frozen=True, kw_only=True):
    """How nodes are divided into waves."""

    size: int = 0
    """The most nodes in a wave; 0: a tenth of the cluster, or with `by` all nodes of a value."""
    by: str = ""
    """A label: nodes with different values are in different waves; "": waves are made by name alone."""


def waves(cluster: Cluster, nodes: Collection[str], cut: Cut) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the waves as (value of the label, names of nodes).

    In order of the label's values, then of names; nodes without the label come last.
    """
    label = SHORT.get(cut.by, cut.by)
    labels: Mapping[str, Mapping[str, str]] = {node.name: node.labels for node in cluster.nodes}
    groups: dict[tuple[bool, str], list[str]] = defaultdict(list)
    for node in sorted(nodes):
        value = labels.get(node, {}).get(label) if label else ""
        groups[value is None, value or ""].append(node)
    found = []
    for (lacks, value), members in sorted(groups.items()):
        size = cut.size or (len(members) if label else max(1, len(cluster.nodes) // SHARE))
        name = f"without {label}" if lacks else value
        found += [(name, tuple(members[start : start + size])) for start in range(0, len(members), size)]
    return tuple(found)
