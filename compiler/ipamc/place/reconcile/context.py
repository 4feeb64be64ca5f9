"""What all nodes of a compile have in common, and where Cilium's operator decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from ipamc.check.held_blocks import Fault, classify
from ipamc.model.cidr import Block, part
from ipamc.model.cluster import Cluster, Pool
from ipamc.model.lock import Consent, Key, Line, Lock
from ipamc.model.ownership import Blocks, Law, RangeIndex, ShownBlocks
from ipamc.model.plan import ShownBlock, Want


class Context(Struct, frozen=True, kw_only=True, dict=True):
    """What all nodes of a compile have in common."""

    cluster: Cluster
    lock: Lock
    """With the consent applied, and the names that the pools had at the last compile."""
    consent: Consent
    today: str
    ranges: RangeIndex
    one_block: bool
    """The cluster's mode gives a node one block a family."""
    operator_pools: frozenset[str] = frozenset()
    """Names of the pools whose blocks Cilium's operator gives out: their lines follow what nodes show."""
    overtaken: frozenset[str] = frozenset()
    """Names of nodes whose lines are released, as the operator gave their addresses to others."""
    rendered_uids: Mapping[str, str] = field(default_factory=dict)
    """The uid that a Node was rendered with, by name, of nodes with pending blocks (kubernetes mode)."""

    @cached_property
    def plain_family(self) -> int:
        """Return the only family, if a held block stays where the first pool would give the same; else 0."""
        families, consent = self.cluster.families, self.consent
        more = len(families) > 1 or not self.one_block or self.cluster.excluded
        return 0 if more or consent.renumber or consent.resize else families[0]

    @cached_property
    def by_address(self) -> bool:
        """Return whether a pool follows the addresses of nodes."""
        return any(pool.follows for pool in self.cluster.pools)

    @cached_property
    def law(self) -> Law:
        """Return the law of ownership, with the lines of the lock as it was."""
        return Law(self.cluster, self.lock.lines, self.operator_pools, self.ranges)

    def key(self, line: Line) -> Key:
        """Return the key of the blocks that are renumbered together with a line."""
        return line.key(one_block=self.one_block)

    def faults(self, want: Want, line: Line) -> tuple[Fault, ...]:
        """Return what is wrong with a line's block."""
        return classify(self.cluster, want, line, self.ranges.pool_of(line.block))

    def agrees(self, shown: tuple[ShownBlock, ...], held: Iterable[Line]) -> bool:
        """Tell whether a node shows only blocks that it holds, and all that the operator decides about."""
        held = tuple(held)
        blocks = Blocks(line.block for line in held)
        return all(map(blocks.fit, shown)) and not (self.operator_pools and any(self.taken_back(held, shown)))

    def follows(self, shown: Iterable[ShownBlock]) -> bool:
        """Tell whether a node's lines in shared pools are what it shows: it shows a block of one of them."""
        return bool(self.operator_pools) and any(map(self.law.operator_gave, shown))

    def decides(self, want: Want, shown: Iterable[ShownBlock], held: Sequence[Line]) -> bool:
        """Tell whether the operator gives a node further blocks: it follows, or its dump shows none."""
        if not self.operator_pools:
            return False
        shown = tuple(shown)
        told = want.node.running and not want.node.live  # an import says so of what is not known
        return self.follows(shown) if shown else bool(held) and told

    def taken_back(self, lines: Iterable[Line], shown: Sequence[ShownBlock]) -> Iterator[Line]:
        """Yield those of a node's lines that it no longer has, in pools about which the operator decides."""
        there = ShownBlocks(shown)
        families = {block.block.family for block in shown}
        follows = self.follows(shown)
        for line in lines:
            decides = line.block.family in families if self.one_block else follows
            if decides and line.pool in self.operator_pools and not there.fits(line.block):
                yield line

    def shown_part(self, node: str, block: Block, pool: Pool | None) -> int:
        """Return the number of a block's addresses up to the last one in the node's CiliumNode; 0: all."""
        seen = self.cluster.cilium_nodes_by_name.get(node)
        if not (seen and pool and pool.usage and pool.usage.addresses):
            return 0
        ends = [addresses.last for addresses in seen.addresses if addresses.overlaps(block)]
        first = block.first + (block.size > 2)
        return part(block, min(max(ends), block.last) - first + 1) if ends else 0
