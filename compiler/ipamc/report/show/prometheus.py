"""Pools as metrics of Prometheus, in its text format: for the textfile collector of node_exporter, or a push.

All are gauges of the state in git, without a time: the reader of the file knows its age. The samples of a
metric are adjacent, as the format demands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ipamc.model.lock import State
from ipamc.review.shown_pools import ShownCluster

_STATES = ("held", "quarantined", "released", "reserved", "free")
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})

Sample = tuple[Mapping[str, str], float]  # labels and value


def render(clusters: Sequence[ShownCluster]) -> str:
    """Return all metrics of all clusters, without metrics that have no sample."""
    text = ""
    for name, about, samples in _metrics(clusters):
        text += f"# HELP {name} {about}\n# TYPE {name} gauge\n" if samples else ""
        for labels, value in samples:
            pairs = ",".join(f'{key}="{label.translate(_ESCAPES)}"' for key, label in labels.items())
            text += f"{name}{{{pairs}}} {value}\n"
    return text


def _metrics(clusters: Sequence[ShownCluster]) -> Iterator[tuple[str, str, Sequence[Sample]]]:
    pools = [
        (
            {"cluster": cluster.name, "pool": pool.use.pool.name, "family": f"IPv{pool.use.family.family}"},
            pool,
        )
        for cluster in clusters
        for pool in cluster.pools
    ]
    yield (
        "ipamc_pool_addresses",
        "Addresses of a pool by what they are used for; the states add up to the size of the pool.",
        [({**of, "state": state}, getattr(pool.use.use, state)) for of, pool in pools for state in _STATES],
    )
    uses = [(of, pool.use.use) for of, pool in pools]
    yield (
        "ipamc_pool_used_ratio",
        "Share of a pool's addresses that cannot be given out, from 0 to 1.",
        [(of, 1 - use.available / use.total if use.total else 0) for of, use in uses],
    )
    yield (
        "ipamc_pool_blocks",
        "Blocks of a pool: held ones of any size, and free ones of its block size.",
        [
            ({**of, "state": state}, number)
            for of, use in uses
            for state, number in (("held", use.blocks_held), ("free", use.blocks_free))
        ],
    )
    yield (
        "ipamc_pool_blocks_capacity",
        "Blocks of its block size that the empty pool has.",
        [(of, use.blocks) for of, use in uses],
    )
    yield (
        "ipamc_pool_quarantine_ending_blocks",
        "Blocks that come free on the next day on which a quarantine ends.",
        [(of, pool.ending.blocks if pool.ending else 0) for of, pool in pools],
    )
    rooms = {  # not for disabled pools, which accept no nodes by intent and are not full
        (of["cluster"], of["pool"]): pool.room for of, pool in pools if not pool.use.pool.disabled
    }
    yield (
        "ipamc_pool_room_nodes",
        "More nodes that a pool has room for, in all of its families.",
        [({"cluster": cluster, "pool": pool}, room) for (cluster, pool), room in rooms.items()],
    )
    lines = [(cluster, state) for cluster in clusters for state in State]
    yield (
        "ipamc_cluster_lines",
        "Lines of a cluster's lock by state.",
        [({"cluster": each.name, "state": str(state)}, each.states[state]) for each, state in lines],
    )
    yield (
        "ipamc_cluster_nodes",
        "Nodes of a cluster that hold blocks.",
        [({"cluster": cluster.name}, cluster.nodes) for cluster in clusters],
    )
