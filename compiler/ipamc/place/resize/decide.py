"""Decides which blocks each node gets and gives back, from the use of its blocks.

A decision suffices for `high`, and `low` does not undo it: a second run with the same dump changes nothing.
Only blocks without an address in use are taken, the highest first.
"""

from __future__ import annotations

import bisect
import enum
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

import msgspec
from msgspec.structs import replace

from ipamc.model.address_sets import blocks_over, outermost
from ipamc.model.cidr import Block, part
from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import shown, text, usable_addresses, usable_in, usable_of
from ipamc.model.cluster import Cluster, Mode, Pool, Usage
from ipamc.model.dump import Dump
from ipamc.model.limits import MOST_CRD_ADDRESSES
from ipamc.model.lock import Growth, Line, Resize, State
from ipamc.model.plan import Plan, Want

HIGH = 85
"""Percent above which a node counts as full if its pool has no `usage`."""


class Verdict(enum.StrEnum):
    """The decision about a node's blocks of one family of one pool."""

    KEPT = "kept"
    GROWS = "grows"
    GIVES_BACK = "gives back"
    STUCK = "stuck"
    """It is over `high`, and cannot grow; `why` has the reason."""
    REPORTED = "reported"
    """ipamc does not decide here; `why` says who does."""


class Sized(msgspec.Struct, frozen=True, kw_only=True):
    """A node's blocks of one family of one pool, and the decision about them."""

    node: str
    pool: str
    family: int
    blocks: tuple[Block, ...]
    used: int
    usable: int
    """Addresses that pods can use now."""
    verdict: Verdict
    why: str = ""
    growth: Growth | None = None
    addresses: Mapping[Block, int] = {}
    """The number of addresses of held blocks to render from now on; 0: all."""
    reclaimed: tuple[Block, ...] = ()
    prefix: int = 0
    """The prefix length of a block that would suffice, if the node cannot have another block; else 0."""

    @property
    def percent(self) -> float:
        """Return the share in use, with one decimal; 100 if nothing is usable."""
        return round(self.used * 100 / self.usable, 1) if self.usable else 100.0


def decide(plan: Plan, dump: Dump) -> tuple[Sized, ...]:
    """Return the decisions about every node that holds blocks, by node, pool and family. O(n log n)."""
    use, cluster = Use(dump), plan.cluster
    pending = {line.key(one_block=False) for line in plan.lock.lines if line.state is State.PENDING}
    everywhere = outermost(block for node in dump.cilium_nodes for block, _ in node.allocated)
    wants = {want.node.name: want for want in plan.wants}
    rows: list[Sized] = []
    for name, lines in sorted(plan.held.items()):
        groups: dict[tuple[str, int], list[Line]] = defaultdict(list)
        for line in lines:
            groups[line.pool, line.block.family].append(line)
        seen = dump.cilium_nodes_by_name.get(name)
        node_use = _NodeUse(
            cluster=cluster,
            use=use,
            want=wants.get(name),
            operator_pools=plan.operator_pools,
            given=everywhere,
            allocated=seen.allocated if seen else (),
            known=name in dump.nodes_by_name or seen is not None,
            tells=bool(seen and (seen.used if cluster.mode is Mode.CRD else seen.allocated)),
            entries=sum(line.addresses or usable_of(cluster, line) for line in lines),
        )
        for (pool, family), mine in sorted(groups.items()):
            new = any(line.block in plan.origins for line in mine)
            moving = (name, family, pool) in pending
            rows.append(node_use.at(cluster.pools_by_name.get(pool), mine, new=new, moving=moving))
    return tuple(rows)


def resizes(rows: Iterable[Sized]) -> dict[str, Resize]:
    """Return the changes to make, by node."""
    changed: dict[str, list[Sized]] = defaultdict(list)
    for row in rows:
        if row.verdict in {Verdict.GROWS, Verdict.GIVES_BACK}:
            changed[row.node].append(row)
    return {
        node: Resize(
            grow=tuple(row.growth for row in mine if row.growth),
            addresses={block: number for row in mine for block, number in row.addresses.items()},
            reclaim=frozenset(block for row in mine for block in row.reclaimed),
        )
        for node, mine in changed.items()
    }


class _NodeUse(msgspec.Struct, frozen=True, kw_only=True):
    """A node, and the facts about it."""

    cluster: Cluster
    use: Use
    want: Want | None
    operator_pools: Collection[str]
    given: Sequence[Block]
    """Blocks in `pools.allocated` of any CiliumNode, as `outermost` returns them."""
    allocated: tuple[tuple[Block, str], ...]
    """The blocks there in its own CiliumNode, as (block, pool)."""
    known: bool
    """It is in the dump."""
    tells: bool
    """Its CiliumNode has the addresses in use, including those of the agent (crd mode), or
        the blocks that it was given."""
    entries: int
    """The number of addresses of all its blocks in its CiliumNode (crd mode)."""

    def at(self, pool: Pool | None, lines: Sequence[Line], *, new: bool, moving: bool) -> Sized:
        """Decide about its blocks of one family of one pool, by address."""
        row = Sized(
            node=lines[0].node,
            pool=lines[0].pool,
            family=lines[0].block.family,
            blocks=tuple(line.block for line in lines),
            used=sum(self.use.count(line.block) for line in lines),
            usable=sum(self._usable(line) for line in lines),
            verdict=Verdict.KEPT,
        )
        if not self.known:
            return _with(row, Verdict.REPORTED, "it is not in the dump")
        if new or moving:
            return _with(row, Verdict.KEPT, "it is moving" if moving else "its blocks are new")
        if pool is None or pool.name in self.operator_pools:
            return self._reported(row, pool)
        if self.cluster.mode.one_block:
            return self._advised(row, pool)
        if pool.usage is None:
            return _with(row, Verdict.REPORTED, "its pool has no usage")
        if row.used * 100 > pool.usage.high * row.usable:
            return self._grown(row, pool, pool.usage, lines)
        if row.used * 100 < pool.usage.low * row.usable:
            return self._shrunk(row, pool, pool.usage, lines)
        return row

    def _usable(self, line: Line) -> int:
        return line.addresses or usable_of(self.cluster, line)

    def _reported(self, row: Sized, pool: Pool | None) -> Sized:
        if pool is None:
            return _with(row, Verdict.REPORTED, "its blocks are in no pool")
        if self.cluster.mode is Mode.MULTI_POOL:  # the lock has its block from the start
            of_pool = (block for block, name in self.allocated if name == pool.name)
            blocks = tuple(sorted(block for block in of_pool if block.family == row.family))
            usable = usable_addresses(self.cluster.cilium, blocks, pool)
            row = replace(row, blocks=blocks, used=sum(map(self.use.count, blocks)), usable=usable)
        return _with(row, Verdict.REPORTED, "Cilium's operator gives out its blocks")

    def _advised(self, row: Sized, pool: Pool) -> Sized:
        """Add the block size that would suffice, in modes that give a node one block."""
        high = pool.usage.high if pool.usage else HIGH
        if row.used * 100 <= high * row.usable:
            return row
        larger = range(min(block.prefix for block in row.blocks) - 1, 0, -1)
        blocks = (Block(row.family, 0, prefix) for prefix in larger)
        sizes = ((block.prefix, usable_in(self.cluster, block, pool.name)) for block in blocks)
        enough = next((prefix for prefix, size in sizes if row.used * 100 <= high * size), 0)
        why = f"a node has one block in {self.cluster.mode} mode"
        return replace(_with(row, Verdict.STUCK, why), prefix=enough)

    def _grown(self, row: Sized, pool: Pool, usage: Usage, lines: Sequence[Line]) -> Sized:
        """Give a node more: first the remaining addresses of its blocks, then further blocks."""
        if usage.high == 0:
            return _with(row, Verdict.STUCK, "high is 0, which no number of addresses satisfies")
        missing = -(-row.used * 100 // usage.high) - row.usable
        room = MOST_CRD_ADDRESSES - self.entries if self.cluster.mode is Mode.CRD else missing
        asked, missing = missing, min(missing, room)
        addresses: dict[Block, int] = {}
        for line in lines if missing > 0 else ():
            more = min(missing, usable_of(self.cluster, line) - line.addresses) if line.addresses else 0
            if more > 0:
                addresses[line.block] = part(line.block, line.addresses + more)
                missing -= more
        growth, why = None, ""
        if missing > 0:
            growth, why = self._further(row, pool, usage, missing, room)
        elif asked > room:
            why = f"a CiliumNode has at most {MOST_CRD_ADDRESSES:,} addresses"
        verdict = Verdict.GROWS if addresses or growth else Verdict.STUCK
        return replace(_with(row, verdict, why), addresses=addresses, growth=growth)

    def _further(
        self, row: Sized, pool: Pool, usage: Usage, missing: int, room: int
    ) -> tuple[Growth | None, str]:
        """Return the blocks that a node gets for the `missing` addresses, and why there are no more."""
        offers = self.want.offers if self.want else ()
        offer = next((offer for offer in offers if offer.pool is pool), None)
        if offer is None or pool.disabled:
            return None, "its pool is disabled" if pool.disabled else "its pool no longer selects it"
        prefix = offer.sizes[row.family]
        if self.cluster.own_pools and {block.prefix for block in row.blocks} != {prefix}:
            return None, f"its pool now gives blocks of /{prefix}, and maskSize cannot change"
        block = Block(row.family, 0, prefix)
        each = usable_in(self.cluster, block, pool.name)
        wanted = -(-missing // each) if each else 0
        number = min(wanted, usage.most - len(row.blocks))
        if number < 1:
            return None, f"maxBlocks is {usage.most}" if wanted else f"a /{prefix} has no usable address"
        last = missing - (wanted - 1) * each if number == wanted else 0
        start = min(max(last, usage.addresses), room - (number - 1) * each) if usage.addresses and last else 0
        if not start and self.cluster.mode is Mode.CRD:
            number = min(number, room // each)
            if number < 1:
                return None, f"a CiliumNode has at most {MOST_CRD_ADDRESSES:,} addresses"
        growth = Growth(pool=pool.name, family=row.family, blocks=number, addresses=part(block, start))
        return growth, "" if number == wanted else f"maxBlocks is {usage.most}"

    def _shrunk(self, row: Sized, pool: Pool, usage: Usage, lines: Sequence[Line]) -> Sized:
        """Take unused blocks while the node is under `low`, as long as it stays at or under `high`."""
        pins = {pin.block for pin in pool.pins.get(row.node, ()) if pin.block.family == row.family}
        least = max(usage.least, len(pins))
        idle = [
            line
            for line in reversed(lines)
            if not (self.use.count(line.block) or line.block in pins or blocks_over(self.given, line.block))
        ]
        if not idle or len(lines) <= least:
            return row
        if not self.tells:
            return _with(row, Verdict.KEPT, "the dump lacks the usage of its CiliumNode")
        if self.cluster.mode is not Mode.CRD and not shown(self.cluster.cilium, Capability.EDITED_RANGES):
            untested = f"removing a CIDR from a pool is untested with Cilium {text(self.cluster.cilium)}"
            return _with(row, Verdict.KEPT, untested)
        usable = row.usable
        gone: list[Block] = []
        for line in idle:
            rest = usable - self._usable(line)
            under = row.used * 100 < usage.low * usable
            if under and len(lines) - len(gone) > least and row.used * 100 <= usage.high * rest:
                gone.append(line.block)
                usable = rest
        if not gone:
            return row
        return replace(row, verdict=Verdict.GIVES_BACK, reclaimed=tuple(sorted(gone)))


def _with(row: Sized, verdict: Verdict, why: str) -> Sized:
    return replace(row, verdict=verdict, why=why)


class Use:
    """Addresses in use, in any object of the dump, whatever node it names.
    They come from CiliumNodes (`status.ipam.used` in crd mode, the agent's own addresses in every mode),
    CiliumEndpoints, and Pods that are not on the host's network and have not ended.
    """

    def __init__(self, dump: Dump) -> None:
        """Sort the addresses. O(n log n)."""
        numbers: dict[int, set[int]] = defaultdict(set)
        for family, number in chain.from_iterable(dump.in_use.values()):
            numbers[family].add(number)
        self._numbers = {family: sorted(found) for family, found in numbers.items()}

    def count(self, block: Block) -> int:
        """Count the addresses of a block that are in use. O(log n)."""
        numbers = self._numbers.get(block.family, [])
        return bisect.bisect_right(numbers, block.last) - bisect.bisect_left(numbers, block.first)


def sources(dump: Dump) -> tuple[str, ...]:
    """Return the kinds of objects in a dump that show use, as users call them; () if none does."""
    found = {
        "CiliumNodes (status.ipam.used)": any(node.used for node in dump.cilium_nodes),
        "CiliumEndpoints": bool(dump.endpoints),
        "Pods": bool(dump.pods),
    }
    return tuple(name for name, there in found.items() if there)
