"""Accounts for the addresses of a dump that lie in the ranges of pools: whose each of them is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from operator import attrgetter

from msgspec import Struct

from ipamc.importing import import_rules as rules
from ipamc.importing.draft import DraftRange, PoolRange
from ipamc.model.address_sets import blocks_over, index_around, outermost, shared, subtract
from ipamc.model.cidr import BITS, Block, OverlapIndex, around
from ipamc.model.diagnostics import Diagnostic
from ipamc.model.dump import Dump, Scalar
from ipamc.model.evidence import every_block


class Account(Struct, frozen=True, kw_only=True):
    """The addresses in ranges of pools that are not for pods."""

    reserved: Mapping[str, Mapping[Block, str]]  # by pool: what to reserve, over no block of a node, and why
    inside: frozenset[Block]  # known networks of others that share addresses with a range, as a whole
    findings: tuple[Diagnostic, ...]


def account(
    dump: Dump,
    ranges: Iterable[PoolRange],
    held: Iterable[Block],
    others: Iterable[DraftRange],
    kept: Iterable[Block],
    judged: Container[str] = (),
) -> Account:
    """Account for the addresses in ranges of pools. O(n log n).
    `held` are blocks of nodes besides those that the dump shows, `others` known networks besides those of its
    `scalars`, `kept` what no pool gives out, and `judged` kinds that have rules of their own. A scalar is
    explained if it is in one of these or an address of a node, or if it is a range or around one: it may be
    the network of all pods.
    """
    shown = [block for seen in dump.cilium_nodes for block in every_block(seen)]
    shown += [*(item.block for item in dump.calico_blocks), *(item.block for item in dump.affinities)]
    taken, index = outermost([*held, *shown]), OverlapIndex(ranges, attrgetter("block"))
    safe = outermost([*kept, *(Block(*ip, BITS[ip[0]]) for node in dump.nodes for ip in node.internal_ips)])
    known, unknown = list(others), list[tuple[Scalar, tuple[Block, ...], PoolRange]]()
    for scalar in dump.scalars:
        mine = scalar.kind == "Node"  # Cilium's router has an address in a block
        blocks = (block for block in scalar.blocks if not mine or index_around(taken, block) is None)
        over = [(block, part) for block in blocks for part in index.over(block)]
        narrow = tuple([block for block, part in over if not block.contains(part.block)])
        if scalar.owner and len(narrow) == len(over):
            why, at, kind = scalar.owner, scalar.at, scalar.kind
            known += (DraftRange(block=block, why=why, at=at, kind=kind) for block in narrow)
        elif scalar.kind not in judged and (narrow or (over and scalar.owner)):
            unknown.append((scalar, narrow, over[0][1]))
    found: dict[tuple[str, str], tuple[PoolRange, list[DraftRange]]] = {}
    free: dict[tuple[str, str, Block], list[Block]] = defaultdict(list)
    inside = set()
    for item in known:
        for part in index.over(item.block):
            inside.add(item.block)
            block = shared(item.block, part.block)
            rest = list(subtract(block, [*blocks_over(taken, block), *blocks_over(safe, block)]))
            if rest or index_around(safe, block) is None:
                found.setdefault((part.pool, item.kind or item.why), (part, []))[1].append(item)
            for one in rest:
                free[part.pool, item.why, one.widened(part.size)].append(one)
    reserved: dict[str, dict[Block, str]] = defaultdict(dict)
    for (pool, why, _), some in free.items():
        whole = around(some[0].family, min(some).first, max(block.last for block in some))
        for block in some if blocks_over(taken, whole) else [whole]:
            reserved[pool].setdefault(block, why)
    pods = [Block(*ip, BITS[ip[0]]) for pod in dump.pods for ip in pod.addresses] if unknown else []
    explained = outermost([*taken, *safe, *pods, *(item.block for item in known)])
    by_kind: dict[str, tuple[list[Scalar], PoolRange]] = {}
    for scalar, narrow, part in unknown:
        if scalar.owner or any(index_around(explained, block) is None for block in narrow):
            by_kind.setdefault(scalar.kind, ([], part))[0].append(scalar)
    insides = (
        rules.inside_pool(dump, items, part, reserved.get(part.pool, {})) for part, items in found.values()
    )
    strange = rules.unaccounted(dump, [by_kind[kind] for kind in sorted(by_kind)])
    return Account(reserved=reserved, inside=frozenset(inside), findings=(*insides, *strange))
