"""Values that all nodes of a compile share, and where Cilium's operator decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from ipamc.check.held_blocks import Fault, classify
from ipamc.model.cidr import Block, part
from ipamc.model.cluster import Pool, Scheme
from ipamc.model.lock import Consent, Key, Line, Lock
from ipamc.model.ownership import Blocks, OwnershipRules, RangeIndex, ShownBlocks
from ipamc.model.plan import ShownBlock, Want


class Context(Struct, frozen=True, kw_only=True, dict=True):
    """Values that all nodes of a compile share."""

    cluster: Scheme
    lock: Lock
    """After consent was applied, with the pools' names at the last compile."""
    consent: Consent
    today: str
    ranges: RangeIndex
    one_block: bool
    """The cluster's mode gives a node one block per family."""
    operator_pools: frozenset[str] = frozenset()
    """Names of the pools whose blocks Cilium's operator allocates: their lines follow the nodes' objects."""
    overtaken: frozenset[str] = frozenset()
    """Names of nodes whose lines are released because the operator gave their addresses to others."""
    vacated: frozenset[str] = frozenset()
    """Names of nodes that held a block which another node adopts."""
    took: frozenset[str] = frozenset()
    """Names of nodes that adopt a block which another node held."""
    rendered_uids: Mapping[str, str] = field(default_factory=dict)
    """For nodes with pending blocks (kubernetes mode), the uid in their rendered Node, by name."""

    @cached_property
    def plain_family(self) -> int:
        """Return the only family if a held block that the first pool would give just stays; else 0."""
        families, consent = self.cluster.families, self.consent
        more = len(families) > 1 or not self.one_block or self.cluster.excluded
        return 0 if more or consent.renumber or consent.resize else families[0]

    @cached_property
    def by_address(self) -> bool:
        """Return whether a pool follows the addresses of nodes."""
        return any(pool.follows for pool in self.cluster.pools)

    @cached_property
    def ownership(self) -> OwnershipRules:
        """Return the rules that decide who owns a block, for the lines of the lock before this compile."""
        return OwnershipRules(self.cluster, self.lock.lines, self.operator_pools, self.ranges)

    def key(self, line: Line) -> Key:
        """Return the key of the blocks that are renumbered together with a line."""
        return line.key(one_block=self.one_block)

    def faults(self, want: Want, line: Line) -> tuple[Fault, ...]:
        """Return the faults of a line's block."""
        return classify(self.cluster, want, line, self.ranges.pool_of(line.block))

    def agrees(self, shown: tuple[ShownBlock, ...], held: Iterable[Line]) -> bool:
        """Return whether a node shows only blocks that it holds, and all of these that the operator gave."""
        held = tuple(held)
        blocks = Blocks(line.block for line in held)
        return all(map(blocks.fit, shown)) and not (self.operator_pools and any(self.taken_back(held, shown)))

    def follows(self, shown: Iterable[ShownBlock]) -> bool:
        """Return whether a node's lines in shared pools follow its object, which shows a block of one."""
        return bool(self.operator_pools) and any(map(self.ownership.operator_gave, shown))

    def decides(self, want: Want, shown: Iterable[ShownBlock], held: Sequence[Line]) -> bool:
        """Return whether the operator gives a node more blocks: it follows, or it runs and shows none."""
        if not self.operator_pools:
            return False
        shown = tuple(shown)
        imported = want.node.running and not want.node.live  # an import marks unknown blocks
        return self.follows(shown) if shown else bool(held) and imported

    def taken_back(self, lines: Iterable[Line], shown: Sequence[ShownBlock]) -> Iterator[Line]:
        """Yield a node's lines that the operator took back, in pools that it allocates from."""
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
