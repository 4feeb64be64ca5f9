"""Which node has which block of Calico's, as Calico itself decides it, and who uses addresses of it.

The affinity of an IPAMBlock decides. A BlockAffinity is a claim: its node may make the block while there is
none, and loses it to a node that was first (libcalico-go, lib/ipam/ipam_block_reader_writer.go,
claimAffineBlock). A block that is marked `deleted` does not exist to Calico.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ipamc.importing.calico import rules
from ipamc.model.address_sets import blocks_over, overlaps
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Diagnostic, Span
from ipamc.model.dump import Dump, SeenAffinity, SeenBlock

TUNNEL = "TunnelAddress"
"""The end of the kinds of tunnel addresses (lib/backend/model/block.go)."""


class Claim(Struct, frozen=True):
    """A block, and the node that has it."""

    block: Block
    node: str
    at: Span


class Use(Struct, frozen=True):
    """An address that another node uses than the one that has its block."""

    family: int
    address: int
    user: str
    """As `SeenBlock.users`."""
    claim: Claim


class Holdings(Struct, frozen=True, kw_only=True):
    """Who has what."""

    claims: tuple[Claim, ...]
    """Of nodes that exist, by address."""
    reserved: tuple[Block, ...]
    """Nobody may get these blocks: addresses of them are in use, and their node is gone or released them; or
    their node is releasing them, and may take them again."""
    findings: tuple[Diagnostic, ...]


def holdings(dump: Dump, outside: Sequence[Block]) -> Holdings:
    """Return who has what. O(n log n) in the blocks, affinities and addresses in use.

    `outside` are disjoint ranges of tunnels and load balancers, by address: their blocks do not count.
    """
    alive = [
        block
        for block in dump.calico_blocks
        if not block.virtual
        and not (block.deleted and not block.used)
        and not blocks_over(outside, block.block)
    ]
    affinities = [
        each for each in dump.affinities if not each.virtual and not blocks_over(outside, each.block)
    ]
    found: list[Diagnostic] = []
    if not dump.calico_blocks:
        found.append(rules.no_blocks(dump.at, claims=len(affinities)))
    claims = [*_of_blocks(alive, affinities), *_of_affinities(alive, affinities, found)]
    found += _nested(alive, claims)
    known = [claim for claim in claims if claim.node in dump.nodes_by_name]
    gone = [claim for claim in claims if claim.node not in dump.nodes_by_name]
    used = {block.block: block for block in alive if block.used}
    if gone:
        found += rules.without_node(gone, used, every=not known)
    owners = {claim.block for claim in claims}
    ownerless = [block for block in alive if block.used and block.block not in owners]
    found += [rules.without_affinity(block) for block in ownerless]
    known.sort(key=lambda claim: (claim.block, claim.node))
    found += _borrowed(alive, known)
    found += _tunnels(alive)
    kept = [*(block.block for block in ownerless), *(claim.block for claim in gone if claim.block in used)]
    leaving = {each.block: each for each in affinities if _is_leaving(each) and each.block not in owners}
    if leaving:
        found.append(rules.being_released([each for _, each in sorted(leaving.items())]))
        kept += leaving
    return Holdings(claims=tuple(known), reserved=tuple(sorted(set(kept))), findings=tuple(found))


def _is_leaving(affinity: SeenAffinity) -> bool:
    return affinity.deleted or affinity.state == "pendingDeletion"


def _of_blocks(alive: Iterable[SeenBlock], affinities: Iterable[SeenAffinity]) -> Iterator[Claim]:
    """Yield what IPAMBlocks say, without empty ones that are being released."""
    leaving = {(each.block, each.host) for each in affinities if _is_leaving(each)}
    for block in alive:
        if block.host and (block.used or (block.block, block.host) not in leaving):
            yield Claim(block.block, block.host, block.at)


def _of_affinities(
    alive: Iterable[SeenBlock], affinities: Iterable[SeenAffinity], found: list[Diagnostic]
) -> Iterator[Claim]:
    """Yield what affinities say of blocks that do not exist, and report those that are not as their blocks."""
    by_block = {block.block: block for block in alive}
    first: dict[Block, SeenAffinity] = {}
    for each in affinities:
        if _is_leaving(each):
            continue
        block = by_block.get(each.block)
        if block is not None:
            if block.host != each.host:
                found.append(rules.stale_affinity(each, block))
        elif (other := first.setdefault(each.block, each)) is each:
            yield Claim(each.block, each.host, each.at)
        elif other.host != each.host:
            found.append(rules.two_affinities(other, each))


def _nested(alive: Iterable[SeenBlock], claims: Iterable[Claim]) -> Iterator[Diagnostic]:
    """Yield what is in two blocks."""
    every = {(claim.block, claim.node): claim for claim in claims}
    for block in alive:
        every.setdefault((block.block, block.host), Claim(block.block, block.host, block.at))
    for outer, inner in overlaps(every.values(), lambda claim: claim.block):
        if not (outer.block == inner.block and "" in {outer.node, inner.node}):
            yield rules.blocks_overlap(outer, inner)


def _borrowed(alive: Iterable[SeenBlock], claims: Iterable[Claim]) -> Iterator[Diagnostic]:
    """Yield a finding for each node that uses addresses of blocks of others."""
    by_node: dict[str, list[Use]] = defaultdict(list)
    owners = {claim.block: claim for claim in claims}
    for block in alive:
        if claim := owners.get(block.block):
            for address, node, user in block.uses:
                if node and node != claim.node:
                    by_node[node].append(Use(block.block.family, address, user, claim))
    for node, uses in sorted(by_node.items()):
        yield rules.borrowed(node, sorted(uses, key=lambda use: (use.family, use.address)))


def _tunnels(alive: Iterable[SeenBlock]) -> Iterator[Diagnostic]:
    ours = [(block, user) for block in alive for user in block.users if user.endswith(TUNNEL)]
    if ours:
        yield rules.tunnel_addresses(ours[0][0], len(ours), {user for _, user in ours})
