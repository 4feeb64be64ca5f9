"""Aggregates for programs, as schemas/aggregates.output.json describes them."""

from __future__ import annotations

from typing import Any

from ipamc.report.aggregates import ClusterAggregates
from ipamc.report.aggregates.prefix_lists import list_name
from ipamc.review.aggregates import Group

VERSION = 1
"""Grows when a field changes its meaning or is removed; not when a field is added."""


def record(cluster: ClusterAggregates) -> dict[str, Any]:
    """Return the aggregates of one cluster."""
    return {
        "cluster": cluster.name,
        "label": cluster.label or None,
        "states": list(cluster.states),
        "groups": [_group(cluster, group) for group in cluster.groups],
    }


def _group(cluster: ClusterAggregates, group: Group) -> dict[str, Any]:
    return {
        "name": group.name or None,
        "blocks": group.blocks,
        "nodes": group.nodes,
        "families": [
            {
                "family": f"IPv{family}",
                "list": list_name(cluster.name, group.name, family),
                "prefixes": [
                    {"prefix": str(prefix.block), "longest": prefix.longest, "blocks": prefix.blocks}
                    for prefix in prefixes
                ],
            }
            for family, prefixes in group.prefixes.items()
        ],
    }
