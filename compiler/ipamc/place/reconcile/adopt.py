"""Adoption: a node that the lock does not know keeps the blocks that it already has (rule 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from ipamc.lock.file import line_at
from ipamc.model.address_sets import lines_over
from ipamc.model.cluster import CiliumNode, Cluster, Mode, Node, Range
from ipamc.model.diagnostics import Diagnostic, Related, count, error, names, warning
from ipamc.model.lock import Line, Lock, State
from ipamc.model.plan import NodeState, Origin, ShownBlock
from ipamc.place.reconcile.transitions import Run


class Evidence:
    """What the running cluster shows: `spec.podCIDRs` of Nodes in kubernetes mode, CiliumNodes in the others.

    In the others, Node podCIDRs are leftovers of kube-controller-manager and mean nothing.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._kubernetes = cluster.mode is Mode.KUBERNETES
        self._seen = {} if self._kubernetes else {seen.name: seen for seen in cluster.cilium_nodes}

    def of(self, node: Node) -> tuple[ShownBlock, ...]:
        """Return the blocks that a node shows, in its order."""
        if self._kubernetes:
            return tuple([ShownBlock(block, node.name, node.at) for block in node.pod_cidrs])
        seen = self._seen.get(node.name)
        return tuple(self._shown(seen)) if seen else ()

    def _shown(self, seen: CiliumNode) -> Iterator[ShownBlock]:
        own = f".{seen.name}" if self._cluster.own_pools else ""
        for block, pool in seen.allocated if self._cluster.mode is Mode.MULTI_POOL else seen.blocks:
            yield ShownBlock(block, seen.name, seen.at, pool.removesuffix(own))

    def _unheld(self, lines: Iterable[Line]) -> list[ShownBlock]:
        """Return the blocks that CiliumNodes show and that are not held by, or pending for, their nodes.

        By node name.
        """
        if not self._seen:
            return []
        own = {(line.block, line.node) for line in lines if line.in_use}
        shown = (shown for _, seen in sorted(self._seen.items()) for shown in self._shown(seen))
        return [block for block in shown if (block.block, block.node) not in own]

    def taken(self, lines: Iterable[Line]) -> tuple[Range, ...]:
        """Return the blocks that are in use without a line, except a node's own pins.

        These are blocks of CiliumNodes without a node, and what multi-pool's operator gave to nodes since.
        """
        pins = {
            (pin.block, node)
            for pool in self._cluster.pools
            for node, pins in pool.pins.items()
            for pin in pins
        }
        return tuple(
            Range(shown.block, shown.at)
            for shown in self._unheld(lines)
            if (shown.block, shown.node) not in pins
        )

    def ghosts(self, lines: Iterable[Line]) -> Iterator[Diagnostic]:
        """IPC0424: a CiliumNode without a node keeps its blocks.

        A CiliumNode was read whose node is not in the inventory. Its blocks count as taken: the operator
        books them until it collects the object. Add the node to the inventory, or delete the CiliumNode.
        Blocks of an `unlisted` pool are as they should be.
        """
        if not (unheld := self._unheld(lines)):
            return
        nodes = {node.name for node in self._cluster.nodes}
        unlisted = [
            unlisted_range.block
            for pool in self._cluster.pools
            if pool.unlisted
            for family in pool.families.values()
            for unlisted_range in family.ranges
        ]
        ghosts = [
            shown
            for shown in unheld
            if shown.node not in nodes and not any(block.contains(shown.block) for block in unlisted)
        ]
        if ghosts:
            yield warning(
                "IPC0424",
                ghosts[0].at,
                f"{count(len({shown.node for shown in ghosts}), 'CiliumNode')} without a node in the inventory, blocks taken: "
                f"{names(f'{shown.node} ({shown.block})' for shown in ghosts)}",
                help="add the node to the inventory, or kubectl delete ciliumnode",
            )


def lay_out(run: Run, nodes: list[NodeState]) -> tuple[list[Line], list[Diagnostic]]:
    """Return the lock's lines with their states of today, and what forbids that nodes adopt blocks. O(lines).

    An adopted block takes the place of `released` lines and of the node's own quarantined lines; over any
    other line it is a conflict.
    """
    blocks = [
        shown for node in nodes for shown in node.shown if node.origins.get(shown.block) is Origin.ADOPTED
    ]
    changed = {
        line.block: line
        for node in nodes
        for line in node.lines
        if node.origins.get(line.block) is not Origin.ADOPTED
    }
    lines = [changed.get(line.block, line) for line in run.lock.lines] if changed else list(run.lock.lines)
    if not blocks:
        return lines, []
    blocks.sort(key=lambda shown: (shown.block, shown.node))
    under = [(shown, line) for shown in blocks for line in lines_over(lines, shown.block)]
    gone = {line.block for shown, line in under if _gives_way(line, shown.node)}
    found = [
        already_given(run.lock, shown, line) for shown, line in under if not _gives_way(line, shown.node)
    ]
    new = [line for node in nodes for line in node.held if node.origins.get(line.block) is Origin.ADOPTED]
    kept = [line for line in lines if line.block not in gone]
    found += [*several_blocks(run.cluster, blocks), *shown_twice(blocks)]
    return sorted([*kept, *new], key=lambda line: line.block), found


def _gives_way(line: Line, node: str) -> bool:
    return line.state is State.RELEASED or (line.state is State.QUARANTINED and line.node == node)


def several_blocks(cluster: Cluster, adopted: list[ShownBlock]) -> Iterator[Diagnostic]:
    """IPC0425: a node shows one block a family where the mode gives it one.

    Cilium routes every podCIDR of a node, but gives pods addresses of the first one of a family only. ipamc
    does not guess which of several blocks a running node uses: leave the one in use, or name it in the lock.
    """
    if not cluster.mode.one_block:
        return
    by_family: dict[tuple[str, int], list[ShownBlock]] = defaultdict(list)
    for shown in adopted:
        by_family[shown.node, shown.block.family].append(shown)
    for (node, family), blocks in by_family.items():
        if len(blocks) > 1:
            yield error(
                "IPC0425",
                blocks[0].at,
                f"node {node} shows {len(blocks)} IPv{family} blocks where {cluster.mode} mode gives one: "
                f"{', '.join(str(shown.block) for shown in blocks)}",
                help="keep the block that its pods use, or use a larger block, or multi-pool mode",
            )


def shown_twice(adopted: list[ShownBlock]) -> Iterator[Diagnostic]:
    """IPC0426: no two nodes show the same addresses.

    Two running nodes carry overlapping blocks: the cluster is broken already, and adopting both would write
    that down. Renumber one of them first.
    """
    widest: ShownBlock | None = None
    for shown in adopted:
        if widest and widest.block.overlaps(shown.block):
            yield error(
                "IPC0426",
                shown.at,
                f"node {shown.node} shows {shown.block}, which overlaps {widest.block} of node {widest.node}",
                also=[Related(widest.at, f"{widest.node} shows {widest.block} here")],
                help="drain one of the two, delete its Node and CiliumNode, and let it join again",
            )
        else:
            widest = shown


def already_given(lock: Lock, shown: ShownBlock, line: Line) -> Diagnostic:
    """IPC0423: a block that a running node shows is not another node's in the lock.

    The running cluster and the lock disagree about who has these addresses. The lock is not changed; find out
    which is right. A line that waits in quarantine can be released once the old node is really gone.
    """
    state = "quarantined, of" if line.since else "held by"
    way_out = (
        f"if {line.node} is really gone: ipamc lock {lock.cluster} --release {line.block}"
        if line.since
        else "find out which of the two nodes uses it; drain the other, delete its Node and CiliumNode, and let it join again"
    )
    return error(
        "IPC0423",
        shown.at,
        f"node {shown.node} shows {shown.block}, which overlaps {line.block} {state} {line.node}",
        also=[Related(line_at(lock, line, otherwise=shown.at), f"{state} {line.node} here")],
        help=way_out,
    )
