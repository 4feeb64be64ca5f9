"""The CIDRs of a CiliumPodIPPool that nodes share: those of its pool, and those published before.

Up to Cilium 1.18 the operator starts without reservations for every new CIDR: blocks that nodes already have
in it are given out again (seen on running operators). So published CIDRs stay unchanged, in place and in
order, while the pool still has all of each, and new CIDRs of the pool are appended. A CIDR leaves the pool,
or is divided, only if a run of the minor proved that safe and the CiliumNodes in the input show that no node
loses a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from ipamc.model.address_sets import (
    blocks_over,
    covers,
    index_around,
    lines_over,
    outermost,
    subtract,
    without,
)
from ipamc.model.cidr import Block
from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import shown
from ipamc.model.cluster import Cluster, Pool, PoolFamily, Version
from ipamc.model.diagnostics import Span
from ipamc.model.lock import Lock


class PublishedPool(Struct, frozen=True, kw_only=True):
    """A shared CiliumPodIPPool that an earlier compile rendered."""

    name: str
    at: Span
    """The file."""
    by_flag: bool
    """The operator creates it by its flag, and never changes it; there is no manifest."""
    cidrs: Mapping[int, tuple[Block, ...]]
    """By family, in the order of the file."""
    masks: Mapping[int, int]
    """The maskSize by family."""
    allowed: frozenset[str]
    """Those of `allowFirstIP` and `allowLastIP` that are true."""


class Given:
    """The present and pending blocks of nodes: from the lock, and from every CiliumNode in the input."""

    def __init__(self, cluster: Cluster, lock: Lock) -> None:
        self._cluster = cluster
        self._lock = lock

    @cached_property
    def _shown(self) -> Mapping[Block, str]:
        return {block: seen.name for seen in self._cluster.cilium_nodes for block, _ in seen.allocated}

    @cached_property
    def _shown_blocks(self) -> Sequence[Block]:
        return outermost(self._shown)

    @cached_property
    def unseen(self) -> tuple[str, ...]:
        """Nodes without a CiliumNode in the input, by name: they may have more blocks than in the lock.
        The operator gives nodes further blocks of shared pools. A node without a line is not included: if it
        is running, its CiliumNode must be in the input anyway.
        """
        seen = {node.name for node in self._cluster.cilium_nodes}
        lines = {line.node for line in self._lock.written if line.in_use}
        return tuple(
            node.name
            for node in self._cluster.nodes
            if not node.planned and node.name in lines and node.name not in seen
        )

    def over(self, block: Block) -> dict[Block, str]:
        """Return the blocks that share addresses with a block, each with its node. O(log n + result)."""
        found = {shown: self._shown[shown] for shown in blocks_over(self._shown_blocks, block)}
        found |= {line.block: line.node for line in lines_over(self._lock.lines, block) if line.in_use}
        return found

    def once_over(self, block: Block) -> bool:
        """Return whether a line that is no longer in use shares addresses with a block."""
        return any(not line.in_use for line in lines_over(self._lock.lines, block))


Reason = Literal["given", "unseen", "order", "family"]


class Obstacle(Struct, frozen=True, kw_only=True):
    """Why a published CIDR cannot leave its pool."""

    cidr: Block
    reason: Reason
    """`given`: a node has a block of it; `unseen`: the CiliumNode of a node is not in the input; `order` and
        `family`: the operator would not follow."""
    block: Block | None = None
    node: str = ""
    """The given `block`, and its node; or a node without its CiliumNode."""


class PoolRanges(Struct, frozen=True, kw_only=True):
    """The CIDRs of one family of a shared CiliumPodIPPool."""

    cidrs: tuple[Block, ...]
    """The CIDRs to render: published ones that stay, then new ones."""
    leaving: tuple[Block, ...] = ()
    """Published CIDRs that leave the pool, or are divided."""
    obstacles: tuple[Obstacle, ...] = ()
    """Why CIDRs cannot leave."""
    kept: tuple[Obstacle, ...] = ()
    """Why CIDRs that are wholly reserved stay in the pool: a node had blocks of them, and gave them back."""


def pool_ranges(
    cluster: Cluster, pool: Pool, part: PoolFamily, given: Given, published: Sequence[Block] = ()
) -> PoolRanges:
    """Return the CIDRs of one family of a shared pool: its ranges without reserved CIDRs.
    Reserved addresses that nodes have stay, or the nodes would lose them. A piece smaller than a block is
    useless to the operator: it is omitted, unless nodes have some of it. O(n log n) in the CIDRs.
    """
    reserved = outermost(cidr.block for cidr in pool.reserved if cidr.block.family == part.family)
    removed = [piece for block in reserved for piece in subtract(block, given.over(block))]
    written = (cidr.block for cidr in part.ranges)
    wanted = without(written, removed)
    by_address = sorted(wanted)
    whole = {cidr for cidr in published if covers(blocks_over(by_address, cidr), cidr)}
    leaving = [cidr for cidr in published if cidr not in whole]
    obstacles = list(_obstacles(cluster.cilium, by_address, leaving, given, published))
    ranges = outermost(cidr.block for cidr in part.ranges)
    remnants = {
        obstacle.cidr
        for obstacle in obstacles
        if given.once_over(obstacle.cidr)
        and not given.over(obstacle.cidr)
        and not blocks_over(by_address, obstacle.cidr)
        and index_around(ranges, obstacle.cidr) is not None
    }
    stays = tuple(cidr for cidr in published if cidr in whole or cidr in remnants)
    new = without(wanted, stays)
    return PoolRanges(
        cidrs=(*stays, *(piece for piece in new if piece.prefix <= part.block_size or given.over(piece))),
        leaving=tuple(cidr for cidr in leaving if cidr not in remnants),
        obstacles=tuple(obstacle for obstacle in obstacles if obstacle.cidr not in remnants),
        kept=tuple(obstacle for obstacle in obstacles if obstacle.cidr in remnants),
    )


def obstacle_to_leave(cidr: Block, given: Given, remaining: Sequence[Block] = ()) -> Obstacle | None:
    """Return why a published CIDR may not leave the pools, or None. `remaining`, by address, keep blocks."""
    for block, node in sorted(given.over(cidr).items()):
        if index_around(remaining, block) is None:
            return Obstacle(cidr=cidr, reason="given", block=block, node=node)
    return Obstacle(cidr=cidr, reason="unseen", node=given.unseen[0]) if given.unseen else None


def _obstacles(
    version: Version,
    wanted: Sequence[Block],
    leaving: Sequence[Block],
    given: Given,
    published: Sequence[Block],
) -> Iterator[Obstacle]:
    """Yield why published CIDRs cannot leave, at most one reason for each."""
    edited = shown(version, Capability.EDITED_RANGES)
    free = []
    for cidr in leaving:
        obstacle = obstacle_to_leave(cidr, given, wanted if edited else ())
        if obstacle:
            yield obstacle
        else:
            free.append(cidr)
    if free and not operator_follows(version, published, free):
        yield from (Obstacle(cidr=cidr, reason="order") for cidr in free)


def operator_follows(version: Version, published: Sequence[Block], leaving: Sequence[Block]) -> bool:
    """Return whether a running operator removes exactly these CIDRs, without blocks of nodes, from a pool.
    Both come in the order of the pool. Up to 1.17 the operator crashes unless only the last one leaves; in
    1.18 the second of two neighbours stays in its memory until it restarts.
    """
    if shown(version, Capability.EDITED_RANGES):
        return True
    known: dict[Block, int] = {}
    for place, cidr in enumerate(published):
        known.setdefault(cidr, place)
    places = [known[cidr] for cidr in leaving]
    if shown(version, Capability.REMOVED_RANGES):
        return all(later - place > 1 for place, later in pairwise(places))
    return places == [len(published) - 1]
