"""Finds objects that must not be applied now, because pods or another node use the addresses.

Other objects are applied all the same. A withheld object is reported, and a later run applies it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from ipamc.model.address_sets import blocks_over, nested, outermost, subtract
from ipamc.model.cidr import BITS, Block, read_blocks
from ipamc.model.diagnostics import count, names
from ipamc.model.wording import shown
from ipamc.read.rendered import identity
from ipamc.review.live import objects

Live = Mapping[str, objects.Object]  # the cluster's objects by identity


class Pod(Struct, frozen=True, kw_only=True):
    """A pod that runs, with addresses of its own (not the host's)."""

    node: str
    addresses: tuple[str, ...]
    stays: bool  # a drain does not evict it: it belongs to a DaemonSet, or is a static pod


class Withheld(Struct, frozen=True):
    """An object that must not be applied now."""

    identity: str
    reason: str
    help: str


class Move(Struct, frozen=True, kw_only=True):
    """An object of one node whose apply would take blocks away from it."""

    identity: str
    node: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    lost: tuple[Block, ...]  # disjoint, by address


def lost(live: objects.Object, tree: objects.Object) -> tuple[Block, ...]:
    """Return the addresses that a live object gives and its rendered form does not: disjoint, by address.
    Single addresses that others added do not count: they stay.
    """
    gone = objects.cidrs(live, tree) - objects.cidrs(tree, tree)
    if entries := objects.ipam(live).get("pool") if live.get("kind") == objects.CILIUM_NODE else None:
        ours = objects.owned_addresses(live)
        gone -= {str(block) for entry in entries if entry not in ours if (block := objects.address(entry))}
    if not gone:
        return ()
    return tuple(outermost(without(objects.parsed(gone), _whole_blocks_of(tree))))


def _blocks_of(document: objects.Object, like: objects.Object | None = None) -> list[Block]:
    return objects.parsed(objects.cidrs(document, like or document))


def _whole_blocks_of(tree: objects.Object) -> list[Block]:
    if tree.get("kind") != objects.CILIUM_NODE:
        return _blocks_of(tree)
    return objects.parsed(objects.ipam(tree).get("podCIDRs") or ())


def grows(live: objects.Object, tree: objects.Object) -> bool:
    """Return whether a CiliumNode has blocks, and keeps all of them. If its apply conflicts, it is because
    podCIDRs are one field: who wrote the first block owns the list to which a second family is added.
    """
    return tree["kind"] == objects.CILIUM_NODE and bool(objects.cidrs(live, tree)) and not lost(live, tree)


def moves(tree: Iterable[objects.Object], live: Live, former: Mapping[str, Sequence[Block]]) -> list[Move]:
    """Return the objects of single nodes whose apply would take blocks away. O(objects) if there is none.
    A missing object, or one without blocks, takes none away, unless the node moved: `former` has, by node,
    the blocks that it moved away from. Pods may use these although no object shows them.
    """
    result = []
    for document in tree:
        name, node = identity(document), objects.node_of(document)
        there = live.get(name)
        old = objects.cidrs(there, document) if node and there is not None else set()
        if there is not None and old:
            pieces = lost(there, document)
        elif node and node in former:
            old = set(map(str, former[node]))
            pieces = tuple(outermost(without(former[node], _blocks_of(document))))
        else:
            continue
        if pieces:
            before, after = tuple(sorted(old)), tuple(sorted(objects.cidrs(document, document)))
            result.append(Move(identity=name, node=node, old=before, new=after, lost=pieces))
    return result


def without(blocks: Iterable[Block], others: Iterable[Block]) -> list[Block]:
    """Return the parts of blocks that no block of the others covers."""
    known = outermost(others)
    return [piece for block in blocks for piece in subtract(block, blocks_over(known, block))]


def used_by_pods(
    every: Iterable[Move], pods: Mapping[str, Sequence[Pod]] | None, cordoned: Collection[str]
) -> Iterator[Withheld]:
    """Yield the moves that would take a block away from running pods.
    `pods` are by node; None: they cannot be read, and every move is withheld. On a cordoned node, pods that a
    drain does not evict are ignored: they are deleted and get a new address after the agent's restart.
    """
    for move in every:
        change = f"{names(move.old)} would become {names(move.new)}"
        if pods is None:
            unknown = "it is not known whether pods use the old addresses: pods cannot be read"
            yield Withheld(move.identity, f"{change}, and {unknown}", "grant list on pods")
            continue
        drained = move.node in cordoned
        counted = [pod for pod in pods.get(move.node, ()) if not (pod.stays and drained)]
        blocks = [[block for text in pod.addresses if (block := objects.address(text))] for pod in counted]
        if users := sum(any(blocks_over(move.lost, block) for block in each) for each in blocks):
            have = f"{'has an address' if users == 1 else 'have addresses'} of the old block"
            drain = f"kubectl drain {move.node} --ignore-daemonsets --delete-emptydir-data"
            reason = f"{change}, and {count(users, 'pod')} of node {move.node} {have}"
            yield Withheld(move.identity, reason, f"{drain}, and run this again")


def held_by_others(tree: Iterable[objects.Object], live: Live) -> list[Withheld]:
    """Return the objects of single nodes with a block that a live object gives to another node, or may give:
    its text is no CIDR. Node objects are compared with Nodes and CiliumNodes, all others with CiliumNodes.
    O(n log n).
    """
    single = [document for document in tree if objects.node_of(document)]
    rendered = [(block, document, True) for document in single for block in _whole_blocks_of(document)]
    pattern = next((document for _, document, _ in rendered if document["kind"] == objects.NODE), None)
    kinds = {objects.CILIUM_NODE, objects.NODE} if pattern else {objects.CILIUM_NODE}
    claimants = [document for document in live.values() if document.get("kind") in kinds]
    there = [(block, document, False) for document in claimants for block in _claims(document, pattern)]
    holders: dict[str, set[str]] = defaultdict(set)
    for item, around in nested([*rendered, *there], lambda entry: entry[0]):
        for other in around:
            mine, theirs = (item, other) if item[2] else (other, item)
            if mine[2] == theirs[2] or objects.node_of(mine[1]) == objects.node_of(theirs[1]):
                continue
            if theirs[1]["kind"] == objects.NODE and mine[1]["kind"] != objects.NODE:
                continue
            holders[identity(mine[1])].add(f"{theirs[0]} in {identity(theirs[1])}")
    way_out = (
        "if that node is gone, delete its CiliumNode; if this run moved it, run this again; "
        "else compile with what the cluster has: kubectl get nodes,ciliumnodes -o json"
    )
    reason = "another node has these addresses in the cluster"
    found = [Withheld(name, f"{reason}: {names(some)}", way_out) for name, some in sorted(holders.items())]
    return [*found, *_unreadable(single, live, pattern)]


def _unreadable(
    single: Sequence[objects.Object], live: Live, pattern: objects.Object | None
) -> Iterator[Withheld]:
    """Yield the objects of nodes of which a live object has a text that is no CIDR, and those that would give
    another node addresses which such a text may mean. O(n log n).
    """
    bad: dict[str, list[str]] = {}
    for document in live.values():
        if odd := [text for text, block in read_blocks(_texts(document, pattern))[1] if not block]:
            bad.setdefault(objects.node_of(document), []).extend(sorted(odd))
    sizes = {
        block.family: block.prefix
        for block in sorted(chain(*map(_whole_blocks_of, single if bad else ())), key=lambda one: -one.prefix)
    }
    meant = outermost(block for text in chain(*bad.values()) for block in _may_mean(text, sizes))
    has = names(f"{node} has {names(map(shown, texts))}" for node, texts in sorted(bad.items()))
    reason = f"it is not known which node has these addresses: {has}, which is no CIDR"
    way_out = "write CIDRs there, or delete it if its node is gone, and run this again"
    for document in single if bad else ():
        new = without(_whole_blocks_of(document), _blocks_of(live.get(identity(document), {}), document))
        if objects.node_of(document) in bad or any(blocks_over(meant, block) for block in new):
            yield Withheld(identity(document), reason, way_out)


def _may_mean(text: str, sizes: Mapping[int, int]) -> Iterator[Block]:
    """Yield the block around the address with which a text begins that is no CIDR, as large as the largest in
    the tree (`sizes`: prefix lengths by family); every address if it begins with none.
    """
    if address := objects.address(text.partition("/")[0]):
        yield address.widened(sizes.get(address.family, address.prefix))
    else:
        yield from (Block(family, 0, 0) for family in BITS)


def _claims(document: objects.Object, pattern: objects.Object | None) -> list[Block]:
    """Return the blocks that a live object gives to its node."""
    return outermost(objects.parsed(_texts(document, pattern)))


def _texts(document: objects.Object, pattern: objects.Object | None) -> Collection[str]:
    """Return the CIDRs that a live object gives to its node; single addresses only if it has no block."""
    if document.get("kind") == objects.NODE:
        return objects.cidrs(document, pattern) if pattern else ()
    if document.get("kind") == objects.POOL:  # shared_pools_in_use has those of no node
        return objects.cidrs(document, document) if objects.node_of(document) else ()
    own = objects.ipam(document).get("podCIDRs") or ()
    blocks = [*own, *chain.from_iterable(texts for _, texts in objects.allocated(document))]
    return blocks or objects.cidrs(document, {"kind": objects.CILIUM_NODE})


def shared_pools_in_use(tree: Iterable[objects.Object], live: Live) -> Iterator[Withheld]:
    """Yield shared CiliumPodIPPools whose apply would remove or merge CIDRs in which CiliumNodes have blocks.
    A compile only appends to a published pool, so a wider CIDR comes from a lock without that history. A text
    that is no CIDR may mean any addresses outside of the rendered pool.
    """
    changed: dict[str, tuple[str, Sequence[Block], str, bool]] = {}
    for document in tree:
        there = live.get(identity(document))
        if document["kind"] == objects.POOL and not objects.node_of(document) and there is not None:
            gone: Sequence[Block] = lost(there, document)
            # A CIDR of the live pool may be only a part of one of the rendered pool.
            wider, blocks = _blocks_of(document), objects.parsed(objects.cidrs(there, document))
            parts = [each for each in blocks if any(o.prefix < each.prefix for o in blocks_over(wider, each))]
            pieces: Sequence[Block] = gone or outermost(parts)
            odd = [text for text, block in read_blocks(objects.cidrs(there, document))[1] if not block]
            which = names([*sorted(odd), *map(str, pieces)])
            if odd:
                gone = pieces = outermost(without((Block(family, 0, 0) for family in BITS), wider))
            if pieces:
                changed[objects.name_of(document)] = identity(document), pieces, which, bool(gone)
    users: dict[str, set[str]] = defaultdict(set)
    for document in live.values() if changed else ():
        if document.get("kind") == objects.CILIUM_NODE:
            for pool, texts in objects.allocated(document):
                pieces = changed[pool][1] if pool in changed else ()
                good, unread = read_blocks(texts if pieces else ())
                if any(blocks_over(pieces, each) for each in good) or not all(each.block for each in unread):
                    users[pool].add(objects.name_of(document))
    for pool, nodes in sorted(users.items()):
        name, _, what, goes = changed[pool]
        have = f"{count(len(nodes), 'node')} {'has' if len(nodes) == 1 else 'have'} blocks: {names(nodes)}"
        if goes:
            reason = f"{what} would be taken away, where {have}"
            drain = "drain the nodes, delete their CiliumNodes, restart their agents"
            way_out = f"keep these CIDRs in the pool until no CiliumNode has a block of them: {drain}"
        else:
            again = "up to Cilium 1.18 the operator gives its blocks to other nodes again"
            reason = f"{what} would become part of a wider CIDR, and {again}, where {have}"
            cluster = f"the cidrs that the cluster has (kubectl get ciliumpodippool {pool} -o yaml)"
            file = "rendered/cilium/ippools.yaml, and compile again: what is new is appended"
            way_out = f"put {cluster} in place of those of {pool} in {file}"
        yield Withheld(name, reason, way_out)
