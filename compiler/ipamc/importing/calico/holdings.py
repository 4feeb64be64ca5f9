"""Finds each node's blocks in Calico, by Calico's own rules, and the users of their addresses.

The affinity of an IPAMBlock decides. A BlockAffinity is only a claim: its node may create the block if there
is none, and loses it to a node that was first (libcalico-go, lib/ipam/ipam_block_reader_writer.go,
claimAffineBlock). A block that is marked `deleted` does not exist for Calico.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ipamc.importing.calico import calico_rules as rules
from ipamc.importing.calico.calico_rules import Borrowed, Claim
from ipamc.model.address_sets import blocks_over, index_around, overlaps
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Diagnostic
from ipamc.model.dump import Dump, SeenAffinity, SeenBlock

TUNNEL = "TunnelAddress"  # the suffix of kinds of tunnel addresses (lib/backend/model/block.go)


class Holdings(Struct, frozen=True, kw_only=True):
    """The blocks of nodes, and those that no node may get."""

    claims: tuple[Claim, ...]  # of nodes that exist, by address
    reserved: tuple[Block, ...]
    """Blocks in use whose node is gone or released them, blocks that are being released, and `asked`."""
    asked: tuple[Claim, ...]  # blocks of pools that pods ask for: nodes keep none
    findings: tuple[Diagnostic, ...]


def holdings(dump: Dump, outside: Sequence[Block], on_request: Sequence[Block] = ()) -> Holdings:
    """Return the blocks of each node. O(n log n) in the blocks, affinities and addresses in use.
    `outside` are disjoint ranges of tunnels and load balancers, by address: their blocks do not count.
    `on_request` are those of pools that pods ask for.
    """
    real = [each for each in dump.calico_blocks if not each.virtual and not blocks_over(outside, each.block)]
    alive = [block for block in real if block.used or not block.deleted]
    affinities = [one for one in dump.affinities if not one.virtual and not blocks_over(outside, one.block)]
    found: list[Diagnostic] = []
    if not dump.calico_blocks:
        found.append(rules.no_blocks(dump.at, claims=len(affinities)))
    # First the IPAMBlocks, without empty ones that are being released; then affinities without a block.
    released = {(each.block, each.host) for each in affinities if _is_leaving(each)}
    claims = [
        Claim(block.block, block.host, block.at)
        for block in alive
        if block.host and (block.used or (block.block, block.host) not in released)
    ]
    claims += _of_affinities(alive, affinities, found)
    found += _nested(alive, claims)
    known = [claim for claim in claims if claim.node in dump.nodes_by_name]
    apart = {node.name for node in dump.apart}  # what these have is reserved as of another network
    gone = [claim for claim in claims if claim.node not in dump.nodes_by_name and claim.node not in apart]
    used = {block.block: block for block in alive if block.used}
    if gone:
        found += rules.without_node(gone, used, every=not known)
    owners = {claim.block for claim in claims}
    ownerless = [block for block in alive if block.used and block.block not in owners]
    found += [rules.without_affinity(block) for block in ownerless]
    known.sort(key=lambda claim: (claim.block, claim.node))
    found += _borrowed(alive, known)
    if tunnels := [(block, user) for block in alive for user in block.users if user.endswith(TUNNEL)]:
        found.append(rules.tunnel_addresses(tunnels[0][0], len(tunnels), {user for _, user in tunnels}))
    kept = [*(block.block for block in ownerless), *(claim.block for claim in gone if claim.block in used)]
    leaving = {each.block: each for each in affinities if _is_leaving(each) and each.block not in owners}
    if leaving:
        found.append(rules.being_released([each for _, each in sorted(leaving.items())]))
        kept += leaving
    asked = [claim for claim in known if index_around(on_request, claim.block) is not None]
    own = [claim for claim in known if index_around(on_request, claim.block) is None]
    reserved = sorted({*kept, *(claim.block for claim in asked)})
    return Holdings(claims=tuple(own), reserved=tuple(reserved), asked=tuple(asked), findings=tuple(found))


def _is_leaving(affinity: SeenAffinity) -> bool:
    return affinity.deleted or affinity.state == "pendingDeletion"


def _of_affinities(
    alive: Iterable[SeenBlock], affinities: Iterable[SeenAffinity], found: list[Diagnostic]
) -> Iterator[Claim]:
    """Yield the claims of affinities without a block; report affinities that contradict a block."""
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
    every = {(claim.block, claim.node): claim for claim in claims}
    for block in alive:
        every.setdefault((block.block, block.host), Claim(block.block, block.host, block.at))
    for outer, inner in overlaps(every.values(), lambda claim: claim.block):
        if not (outer.block == inner.block and "" in {outer.node, inner.node}):
            yield rules.blocks_overlap(outer, inner)


def _borrowed(alive: Iterable[SeenBlock], claims: Iterable[Claim]) -> Iterator[Diagnostic]:
    """Yield a finding for each node that uses addresses from other nodes' blocks."""
    by_node: dict[str, list[Borrowed]] = defaultdict(list)
    owners = {claim.block: claim for claim in claims}
    for block in alive:
        if claim := owners.get(block.block):
            for address, node, user in block.uses:
                if node and node != claim.node:
                    by_node[node].append(Borrowed(block.block.family, address, user, claim))
    for node, uses in sorted(by_node.items()):
        yield rules.borrowed(node, sorted(uses, key=lambda use: (use.family, use.address)))
