"""Pools as metrics of Prometheus, in its text format: for the textfile collector of node_exporter, or a push.

All are gauges of what git says, without a time: whoever reads the file knows how old it is. The samples of a
metric stand together, as the format demands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ipamc.model.lock import State
from ipamc.review.shown_pools import Shown, ShownPool

_STATES = ("held", "quarantined", "released", "reserved", "free")

Labels = Mapping[str, str]


def render(clusters: Sequence[Shown]) -> str:
    """Return all metrics of all clusters."""
    return "".join(f"{line}\n" for line in _lines(clusters))


def _lines(clusters: Sequence[Shown]) -> Iterator[str]:
    pools = [(cluster, pool) for cluster in clusters for pool in cluster.pools]
    yield from _metric(
        "ipamc_pool_addresses",
        "Addresses of a pool by what they are used for; the states add up to the size of the pool.",
        [
            ({**_labels(cluster, pool), "state": state}, getattr(pool.use.use, state))
            for cluster, pool in pools
            for state in _STATES
        ],
    )
    yield from _of_pools(
        "ipamc_pool_used_ratio",
        "Share of a pool's addresses that cannot be given out, from 0 to 1.",
        pools,
        lambda pool: 1 - pool.use.use.available / pool.use.use.total if pool.use.use.total else 0,
    )
    yield from _metric(
        "ipamc_pool_blocks",
        "Blocks of a pool: held ones of any size, and free ones of its block size.",
        [
            ({**_labels(cluster, pool), "state": state}, number)
            for cluster, pool in pools
            for state, number in (("held", pool.use.use.blocks_held), ("free", pool.use.use.blocks_free))
        ],
    )
    yield from _of_pools(
        "ipamc_pool_blocks_capacity",
        "Blocks of its block size that the empty pool has.",
        pools,
        lambda pool: pool.use.use.blocks,
    )
    yield from _of_pools(
        "ipamc_pool_quarantine_ending_blocks",
        "Blocks that come free on the next day on which a quarantine ends.",
        pools,
        lambda pool: pool.ending.blocks if pool.ending else 0,
    )
    rooms = {  # of no disabled pool: it takes no nodes by intent, and is not full
        (cluster.name, pool.use.pool.name): pool.room for cluster, pool in pools if not pool.use.pool.disabled
    }
    yield from _metric(
        "ipamc_pool_room_nodes",
        "More nodes that a pool has room for, in all of its families.",
        [({"cluster": cluster, "pool": pool}, room) for (cluster, pool), room in rooms.items()],
    )
    yield from _metric(
        "ipamc_cluster_lines",
        "Lines of a cluster's lock by state.",
        [
            ({"cluster": cluster.name, "state": str(state)}, cluster.states[state])
            for cluster in clusters
            for state in State
        ],
    )
    yield from _metric(
        "ipamc_cluster_nodes",
        "Nodes of a cluster that hold blocks.",
        [({"cluster": cluster.name}, cluster.nodes) for cluster in clusters],
    )


def _labels(cluster: Shown, pool: ShownPool) -> dict[str, str]:
    family = f"IPv{pool.use.family.family}"
    return {"cluster": cluster.name, "pool": pool.use.pool.name, "family": family}


def _of_pools(
    name: str, about: str, pools: Sequence[tuple[Shown, ShownPool]], value: Callable[[ShownPool], float]
) -> Iterator[str]:
    return _metric(name, about, [(_labels(cluster, pool), value(pool)) for cluster, pool in pools])


def _metric(name: str, about: str, samples: Sequence[tuple[Labels, float]]) -> Iterator[str]:
    if samples:
        yield f"# HELP {name} {about}"
        yield f"# TYPE {name} gauge"
    for labels, value in samples:
        written = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{name}{{{written}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
