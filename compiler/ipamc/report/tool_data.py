"""Data for OpenTofu, Helm and Cluster API. Every key is a name or a prefix: none shifts when another goes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ipamc.model.address_sets import aggregated
from ipamc.model.cidr import Block
from ipamc.model.cluster import AddressSpace, Cluster, Pool, Scheme
from ipamc.model.diagnostics import count
from ipamc.model.lock import Lock, State
from ipamc.review.aggregates import by_pool, chosen
from ipamc.review.shown_pools import Choice


def document(data: Mapping[str, Any], *, helm: bool) -> str:
    """Return data by cluster as the variable `ipamc`, or as the value `global.ipamc`, which subcharts see."""
    return json.dumps({"global": {"ipamc": data}} if helm else {"ipamc": data}, indent=2) + "\n"


def data_of(scheme: Scheme, lock: Lock) -> dict[str, Any]:
    """Return the pools, ranges, aggregates, nodes and blocks in use of a cluster. O(n log n).
    An address space has `given`, the ranges by the pool that asked, in place of `services` and `nodes`.
    """
    lines = chosen(scheme, lock, Choice())
    pools = {line.block: pool for pool, of in lines.items() for line in of}
    holders: dict[str, dict[str, list[str]]] = {}
    used = [(line, pools[line.block]) for line in lock.lines if line.block in pools]
    for line in (line for line, _ in used if line.state is State.HELD):
        holder = holders.setdefault(line.node, {"ipv4": [], "ipv6": []})
        holder[f"ipv{line.block.family}"].append(str(line.block))
    parts = [(pool.name, part) for pool in scheme.pools for part in pool.families.values()]
    groups = [(group.name, each) for group in by_pool(scheme, lines) for each in group.prefixes.values()]
    return {
        "pools": {pool.name: _families(pool) for pool in scheme.pools},
        **({"services": _families(scheme.services)} if isinstance(scheme, Cluster) else {}),
        "ranges": _prefixes(
            (cidr.block, {"pool": name, "blockSize": part.block_size})
            for name, part in parts
            for cidr in part.ranges
        ),
        "aggregates": _prefixes(
            (found.block, {"pool": name, "longest": found.longest})
            for name, every in groups
            for found in every
        ),
        "given" if isinstance(scheme, AddressSpace) else "nodes": dict(sorted(holders.items())),
        "blocks": _prefixes(
            (line.block, {"pool": pool, "node": line.node, "state": str(line.state)}) for line, pool in used
        ),
    }


def cluster_network(scheme: Scheme) -> str:
    """Return a patch of `clusterNetwork` of Cluster API: one CIDR of each family for pods, and for services
    that an address space gives. Raises ValueError where they are not one: a larger one has others' addresses.
    """
    if not isinstance(scheme, Cluster):
        raise ValueError(f"{scheme.name} is an address space: name a cluster")  # noqa: TRY004 - of the user
    network: dict[str, Any] = {}
    for name, pools in (("pods", scheme.pools), ("services", scheme.networks[len(scheme.pools) :])):
        every = list(aggregated(cidr.block for pool in pools for cidr in pool.ranges))
        blocks: list[str] = []
        for family in scheme.families:
            mine = [str(block) for block in every if block.family == family]
            if len(mine) > 1 or (name == "pods" and not mine):
                have = count(len(mine), f"IPv{family} range")
                raise ValueError(f"{scheme.name} has {have}, but clusterNetwork.{name} takes one")
            blocks += mine
        network |= {name: {"cidrBlocks": blocks}} if blocks else {}
    return json.dumps({"spec": {"clusterNetwork": network}}, indent=2) + "\n"


def _families(pool: Pool | None) -> dict[str, Any]:
    return {
        f"ipv{family}": {"cidrs": [str(cidr.block) for cidr in part.ranges], "blockSize": part.block_size}
        for family, part in (pool.families.items() if pool else ())
    }


def _prefixes(rows: Iterable[tuple[Block, Mapping[str, Any]]]) -> dict[str, Any]:
    return {str(block): {"family": f"IPv{block.family}", **facts} for block, facts in rows}
