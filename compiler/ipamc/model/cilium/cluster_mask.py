"""The longest prefix length of a family: cluster-pool mode has one mask for all ranges."""

from __future__ import annotations

from collections.abc import Iterable

from ipamc.model.cluster import Cluster
from ipamc.model.lock import Line


def longest_prefix(cluster: Cluster, family: int, lines: Iterable[Line] = ()) -> int:
    """Return the longest prefix length of a family among sizes, pins and lines in use; 0 without a pool.

    Cilium's operator books in units of its mask: a block smaller than the mask takes a whole unit. With the
    longest prefix as mask it books every block exactly.
    """
    sizes = [0]
    for pool in cluster.pools:
        if part := pool.families.get(family):
            sizes.append(part.block_size)
            sizes += [
                size_class.sizes[family] for size_class in pool.block_sizes if family in size_class.sizes
            ]
            sizes += [
                pin.block.prefix for pins in pool.pins.values() for pin in pins if pin.block.family == family
            ]
    sizes += [line.block.prefix for line in lines if line.block.family == family and line.in_use]
    return max(sizes)
