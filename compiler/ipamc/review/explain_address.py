"""What addresses are that no line of the lock lies over: free, reserved, excluded, pinned, or taken without a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ipamc.model.address_sets import covers, lines_over, shared
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Place
from ipamc.model.lock import Lock
from ipamc.place.allocate.allocate import never
from ipamc.place.allocate.occupancy import blocked_ranges
from ipamc.place.reconcile.adopt import Evidence


class Vacancy(NamedTuple):
    """Addresses that nobody holds by the lock. Sorts by address."""

    block: Block
    """As it stands in the input; of what is free, the part of a range that was asked for."""
    pool: str
    """"" outside every pool."""
    node: str
    """Whom a pin keeps it for, or ""."""
    state: str
    """free, reserved, excluded, pinned; or in words."""
    at: Place


def vacancies(cluster: Cluster, lock: Lock, block: Block) -> list[Vacancy]:
    """Give what the cluster's input says about a block, by address. O(pools + pins + lines over the block)."""
    return sorted(set(_vacancies(cluster, lock, block)), key=lambda each: each[:4])


def _vacancies(cluster: Cluster, lock: Lock, block: Block) -> Iterator[Vacancy]:
    kept = list(_kept(cluster, lock))
    grounds = [
        (pool, each) for pool in cluster.pools for part in pool.families.values() for each in part.ranges
    ]
    for pool, each in grounds:
        if each.block.overlaps(block):
            asked = shared(each.block, block)
            over = [one for one in kept if one.block.overlaps(asked)]
            yield from (one._replace(pool=pool.name) for one in over)
            lines = [line.block for line in lines_over(lock.lines, asked)]
            if not covers([*lines, *(one.block for one in over)], asked):
                why = never(pool)
                yield Vacancy(asked, pool.name, "", f"free, but the pool {why}" if why else "free", each.at)
    for one in kept:
        if one.block.overlaps(block) and not any(
            each.block.overlaps(shared(one.block, block)) for _, each in grounds
        ):
            yield one


def _kept(cluster: Cluster, lock: Lock) -> Iterator[Vacancy]:
    """Yield what is kept from newcomers though no line says so."""
    for kept in blocked_ranges(cluster, Evidence(cluster).taken(list(lock.lines))).values():
        yield Vacancy(kept.range.block, "", "", kept.why, kept.range.at)
    for pool in cluster.pools:
        for node, pins in pool.pins.items():
            yield from (Vacancy(pin.block, pool.name, node, "pinned", pin.at) for pin in pins)
