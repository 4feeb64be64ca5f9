"""Adoption: a node that the lock does not know keeps the blocks that it already has (rule 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipamc.check.drift import already_given, several_blocks, shown_twice
from ipamc.model.address_sets import lines_over
from ipamc.model.cluster import CiliumNode, Cluster, Mode, Node, Range
from ipamc.model.diagnostics import Diagnostic
from ipamc.model.lock import Line, State
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

    def unheld(self, lines: Iterable[Line]) -> list[ShownBlock]:
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
            for shown in self.unheld(lines)
            if (shown.block, shown.node) not in pins
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
