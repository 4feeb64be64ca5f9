"""The longest prefix length of a family: the one mask that cluster-pool mode knows."""

from __future__ import annotations

from collections.abc import Iterable

from ipamc.model.cluster import Cluster
from ipamc.model.lock import Line


def longest_prefix(cluster: Cluster, family: int, lines: Iterable[Line] = ()) -> int:
    """Give the longest prefix length among sizes, pins and held or pending lines of a family; 0 where no pool has the family.

    Cilium's operator books a block that is larger than its mask whole, and one that is smaller as a whole one: with the longest prefix it books exactly.
    """
    sizes = [0]
    for pool in cluster.pools:
        if part := pool.families.get(family):
            sizes.append(part.block_size)
            sizes += [each.sizes[family] for each in pool.block_sizes if family in each.sizes]
            sizes += [
                each.block.prefix
                for ranges in pool.pins.values()
                for each in ranges
                if each.block.family == family
            ]
    sizes += [line.block.prefix for line in lines if line.block.family == family and line.in_use]
    return max(sizes)
