"""Adoption: a node that the lock does not know keeps the blocks that it already has (rule 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ipamc.lock.file import line_at
from ipamc.model.cidr import Block
from ipamc.model.cluster import CiliumNode, Cluster, Mode, Node, Range
from ipamc.model.diagnostics import Diagnostic, Place, Related, count, error, names, warning
from ipamc.model.lock import Line, Lock, State
from ipamc.model.plan import Want
from ipamc.model.range_index import RangeIndex


class Claim(NamedTuple):
    """A block that a live node shows."""

    block: Block
    node: str
    at: Place
    pool: str = ""
    """In multi-pool mode, the ipamc pool that Cilium has it from."""


class Evidence:
    """What the live cluster shows: `spec.podCIDRs` of Nodes in kubernetes mode, CiliumNodes in the others.

    In the others, Node podCIDRs are leftovers of kube-controller-manager and mean nothing.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._mode = cluster.mode
        self._own_pools = cluster.own_pools
        self._cilium_nodes = {each.name: each for each in cluster.cilium_nodes}
        self._nodes = {node.name for node in cluster.nodes}
        self._pins = {
            (each.block, node) for pool in cluster.pools for node, pins in pool.pins.items() for each in pins
        }
        self._visitors = [
            each.block
            for pool in cluster.pools
            if pool.unlisted
            for part in pool.families.values()
            for each in part.ranges
        ]

    def of(self, node: Node) -> Iterator[Claim]:
        """Yield the blocks that a node shows, in its order."""
        if self._mode is Mode.KUBERNETES:
            for block in node.pod_cidrs:
                yield Claim(block, node.name, node.at)
        elif seen := self._cilium_nodes.get(node.name):
            yield from self._shown(seen)

    def _shown(self, seen: CiliumNode) -> Iterator[Claim]:
        for block, pool in seen.allocated if self._mode is Mode.MULTI_POOL else seen.blocks:
            yield Claim(
                block, seen.name, seen.at, pool.removesuffix(f".{seen.name}") if self._own_pools else pool
            )

    def _beside(self, lines: list[Line]) -> Iterator[Claim]:
        """Yield the blocks that CiliumNodes show and that their nodes do not hold. A line that was left or released may be given again: it guards nothing."""
        if self._mode is not Mode.KUBERNETES and self._cilium_nodes:
            own = {(line.block, line.node) for line in lines if line.in_use}
            for _, seen in sorted(self._cilium_nodes.items()):
                yield from (claim for claim in self._shown(seen) if (claim.block, claim.node) not in own)

    def taken(self, lines: list[Line]) -> tuple[Range, ...]:
        """Give the blocks that are in use without a line: of CiliumNodes without a node, and what the operator of multi-pool mode gave to nodes since.

        A node's own pin is not taken from it.
        """
        return tuple(
            Range(claim.block, claim.at)
            for claim in self._beside(lines)
            if (claim.block, claim.node) not in self._pins
        )

    def ghosts(self, lines: list[Line]) -> Iterator[Diagnostic]:
        """IPC0424: a CiliumNode without a node keeps its blocks.

        A CiliumNode was read whose node is not in the inventory. Its blocks count as taken: the operator books them until it collects the object.
        Add the node to the inventory, or delete the CiliumNode. Blocks of an `unlisted` pool are as they should be.
        """
        ghosts = (claim for claim in self._beside(lines) if claim.node not in self._nodes)
        claims = [
            claim for claim in ghosts if not any(block.contains(claim.block) for block in self._visitors)
        ]
        if claims:
            yield warning(
                "IPC0424",
                claims[0].at,
                f"{count(len({claim.node for claim in claims}), 'CiliumNode')} without a node in the inventory, blocks taken: "
                f"{names(f'{claim.node} ({claim.block})' for claim in claims)}",
                help="add the node to the inventory, or kubectl delete ciliumnode",
            )


def adopt(
    cluster: Cluster,
    lock: Lock,
    lines: list[Line],
    by_name: Mapping[str, Want],
    evidence: Evidence,
    range_index: RangeIndex,
) -> tuple[list[Line], list[Line], list[Diagnostic]]:
    """Add lines for the blocks that nodes without a line of that family show; give all lines, the adopted ones, and what forbids it.

    An adopted block takes the place of `released` lines and of the node's own old lines; over anybody else's line it is a conflict.
    """
    have = {(line.node, line.block.family) for line in lines if line.in_use}
    claims: list[Claim] = []
    for want in by_name.values():
        claims += [claim for claim in evidence.of(want.node) if (claim.node, claim.block.family) not in have]
    if not claims:
        return lines, [], []
    claims.sort()
    found = [*several_blocks(cluster, claims), *claimed_twice(claims)]
    overlaps = _overlapping(lines, claims)
    found += already_given(lock, overlaps)
    gone = {
        line.block
        for claim, under in overlaps
        for line in under
        if line.state is State.RELEASED or (line.state is State.QUARANTINED and line.node == claim.node)
    }
    adopted = []
    for claim in claims:
        ground = range_index.of(claim.block)
        known = (
            claim.pool if ground or cluster.unpooled == "refuse" else ""
        )  # what is held outside every pool has no pool's name
        adopted.append(
            Line(block=claim.block, pool=known or (ground.pool.name if ground else ""), node=claim.node)
        )
    result = sorted([line for line in lines if line.block not in gone] + adopted, key=lambda line: line.block)
    return result, adopted, found


def _overlapping(lines: list[Line], claims: list[Claim]) -> list[tuple[Claim, list[Line]]]:
    """Pair each claim with the lines that share addresses with it; one sweep over both, in address order."""
    result = []
    ordered = sorted(lines, key=lambda line: line.block)
    start = 0
    for claim in claims:
        while start < len(ordered) and (ordered[start].block.family, ordered[start].block.last) < (
            claim.block.family,
            claim.block.first,
        ):
            start += 1
        under = []
        for line in ordered[start:]:
            if (line.block.family, line.block.first) > (claim.block.family, claim.block.last):
                break
            under.append(line)
        if under:
            result.append((claim, under))
    return result


def several_blocks(cluster: Cluster, claims: list[Claim]) -> Iterator[Diagnostic]:
    """IPC0425: a node shows one block a family where the mode gives it one.

    Cilium routes every podCIDR of a node, but gives pods addresses of the first one of a family only. Which of several blocks a running node uses
    is nothing to guess: leave the one in use, or name it in the lock.
    """
    if not cluster.mode.one_block:
        return
    shown: dict[tuple[str, int], list[Claim]] = defaultdict(list)
    for claim in claims:
        shown[claim.node, claim.block.family].append(claim)
    for (node, family), each in sorted(shown.items()):
        if len(each) > 1:
            yield error(
                "IPC0425",
                each[0].at,
                f"node {node} shows {len(each)} IPv{family} blocks where {cluster.mode} mode gives one: {', '.join(str(claim.block) for claim in each)}",
                help="keep the block that its pods use, or use a larger block, or multi-pool mode",
            )


def claimed_twice(claims: list[Claim]) -> Iterator[Diagnostic]:
    """IPC0426: no two nodes show the same addresses.

    Two live nodes carry overlapping blocks: the cluster is broken already, and adopting both would write that down. Renumber one of them first.
    """
    widest: Claim | None = None
    for claim in claims:
        if widest and widest.block.overlaps(claim.block):
            yield error(
                "IPC0426",
                claim.at,
                f"node {claim.node} shows {claim.block}, which overlaps {widest.block} of node {widest.node}",
                also=[Related(widest.at, f"{widest.node} shows {widest.block} here")],
                help="drain one of the two, delete its Node and CiliumNode, and let it join again",
            )
        else:
            widest = claim


def already_given(lock: Lock, overlaps: list[tuple[Claim, list[Line]]]) -> Iterator[Diagnostic]:
    """IPC0423: a block that a live node shows is not another node's in the lock.

    The live cluster and the lock disagree about who has these addresses. The lock is not changed; find out which is right. A line that waits in
    quarantine can be released once the old node is really gone.
    """
    for claim, under in overlaps:
        for line in under:
            if line.state is State.RELEASED or (line.node == claim.node and not line.in_use):
                continue
            state = "quarantined, of" if line.since else "held by"
            way_out = (
                f"if {line.node} is really gone: ipamc lock {lock.cluster} --release {line.block}"
                if line.since
                else "find out which of the two nodes uses it; drain the other, delete its Node and CiliumNode, and let it join again"
            )
            at = line_at(lock, line, otherwise=claim.at)
            yield error(
                "IPC0423",
                claim.at,
                f"node {claim.node} shows {claim.block}, which overlaps {line.block} {state} {line.node}",
                also=[Related(at, f"{state} {line.node} here")],
                help=way_out,
            )
