"""Data for OpenTofu, Helm and Cluster API. Every key is a name or a prefix: none shifts when another goes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ipamc.model.address_sets import aggregated
from ipamc.model.cidr import Block
from ipamc.model.cluster import AddressSpace, Scheme
from ipamc.model.lock import Lock, State
from ipamc.review.aggregates import by_pool, chosen
from ipamc.review.shown_pools import Choice


def document(data: Mapping[str, Any], *, helm: bool) -> str:
    """Return data by cluster as the variable `ipamc`, or as the value `global.ipamc`, which subcharts see."""
    return _text({"global": {"ipamc": data}} if helm else {"ipamc": data})


def data_of(scheme: Scheme, lock: Lock) -> dict[str, Any]:
    """Return the pools, ranges, blocks in use, nodes and aggregates of a cluster. O(n log n).
    An address space has `given`, the ranges by the pool that asked, in place of `nodes`.
    """
    lines = chosen(scheme, lock, Choice())
    pools = {line.block: pool for pool, of in lines.items() for line in of}
    holders: dict[str, dict[str, list[str]]] = {}
    blocks = {}
    for line in (line for line in lock.lines if line.block in pools):
        facts = {"pool": pools[line.block], "node": line.node, "state": str(line.state)}
        blocks[str(line.block)] = _with_family(line.block, facts)
        if line.state is State.HELD:
            holder = holders.setdefault(line.node, {"ipv4": [], "ipv6": []})
            holder[f"ipv{line.block.family}"].append(str(line.block))
    parts = [(pool.name, part) for pool in scheme.pools for part in pool.families.values()]
    groups = by_pool(scheme, lines)
    return {
        "pools": {
            pool.name: {
                f"ipv{part.family}": {
                    "cidrs": [str(cidr.block) for cidr in part.ranges],
                    "blockSize": part.block_size,
                }
                for part in pool.families.values()
            }
            for pool in scheme.pools
        },
        "ranges": {
            str(cidr.block): _with_family(cidr.block, {"pool": pool, "blockSize": part.block_size})
            for pool, part in parts
            for cidr in part.ranges
        },
        "aggregates": {
            str(found.block): _with_family(found.block, {"pool": group.name, "longest": found.longest})
            for group in groups
            for prefixes in group.prefixes.values()
            for found in prefixes
        },
        "given" if isinstance(scheme, AddressSpace) else "nodes": dict(sorted(holders.items())),
        "blocks": blocks,
    }


def cluster_network(scheme: Scheme) -> str:
    """Return a patch of `clusterNetwork.pods` in a Cluster of Cluster API, which takes a CIDR of each family.
    Raises ValueError if the ranges of a family are not one CIDR: a larger one would have others' addresses.
    """
    every = list(aggregated(cidr.block for pool in scheme.pools for cidr in pool.ranges))
    for family in scheme.families:
        mine = [str(block) for block in every if block.family == family]
        if len(mine) != 1:
            have = f"{len(mine)} IPv{family} ranges" if mine else f"no IPv{family} range"
            raise ValueError(f"{scheme.name} has {have}, and clusterNetwork.pods takes one")
    blocks = [str(block) for family in scheme.families for block in every if block.family == family]
    return _text({"spec": {"clusterNetwork": {"pods": {"cidrBlocks": blocks}}}})


def _with_family(block: Block, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {"family": f"IPv{block.family}", **facts}


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"
