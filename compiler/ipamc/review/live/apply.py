"""What an apply changes: objects that must wait, objects that differ, and objects that left the tree.

An object must wait while pods or another node use the addresses; it is reported, and a later run applies it.
Others are applied all the same. Of the objects that left the tree, a Node and a ConfigMap are never deleted.
CiliumNodes that agents made, or people who applied seeds, have another field manager, and are not touched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

from msgspec import Struct

from ipamc.model.address_sets import blocks_over, nested, outermost, without
from ipamc.model.admission import POLICIES
from ipamc.model.cidr import BITS, Block
from ipamc.model.diagnostics import count, names
from ipamc.model.evidence import every_block
from ipamc.model.node import CiliumNode, Node
from ipamc.model.wording import shown
from ipamc.read.dump.kinds import RenderedValue, read_object
from ipamc.read.rendered import identity
from ipamc.review.live import objects

Live = Mapping[str, objects.Object]  # the cluster's objects by identity
_Claim = tuple[Block, objects.Object, bool]  # a block, the object that gives it, whether that is rendered


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
    old: Sequence[str]
    new: Sequence[str]
    lost: Sequence[Block]  # disjoint, by address


def lost(live: objects.Object, tree: objects.Object) -> list[Block]:
    """Return the addresses that a live object gives and its rendered form does not: disjoint, by address.
    Single addresses that others added do not count: they stay.
    """
    return _lost(live, read_object(live), read_object(tree))


def _lost(live: objects.Object, there: RenderedValue, rendered: RenderedValue) -> list[Block]:
    blocks = objects.blocks_of(there, rendered)
    if isinstance(there, CiliumNode) and there.addresses:
        blocks = [*there.blocks, *filter(None, map(objects.address, objects.owned_addresses(live)))]
    return outermost(without(blocks, objects.blocks_of(rendered)))


def grows(live: objects.Object, tree: objects.Object) -> bool:
    """Return whether a CiliumNode has blocks, and keeps all of them. If its apply conflicts, it is because
    podCIDRs are one field: who wrote the first block owns the list to which a second family is added.
    """
    there = read_object(live)
    known = isinstance(there, CiliumNode) and (there.blocks or there.addresses) and not there.unreadable
    return tree["kind"] == objects.CILIUM_NODE and bool(known) and not lost(live, tree)


def moves(tree: Iterable[objects.Object], live: Live, former: Mapping[str, Sequence[Block]]) -> list[Move]:
    """Return the objects of single nodes whose apply would take blocks away. O(objects) if there is none.
    A missing object, or one without blocks, takes none away, unless the node moved: `former` has, by node,
    the blocks that it moved away from. Pods may use these although no object shows them.
    """
    result = []
    for document in tree:
        name, node = identity(document), objects.node_of(document)
        there = live.get(name)
        if not node or (there is None and node not in former):
            continue
        rendered = read_object(document)
        value = rendered if there is None else read_object(there)
        if there is not None and (old := objects.texts_of(value, rendered)):
            pieces = _lost(there, value, rendered)
        else:
            blocks = former.get(node, ())
            old = sorted(map(str, blocks))
            pieces = outermost(without(blocks, objects.blocks_of(rendered)))
        if pieces:
            new = objects.texts_of(rendered, rendered)
            result.append(Move(identity=name, node=node, old=old, new=new, lost=pieces))
    return result


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
            unknown = "pods that may use the old addresses cannot be read"
            yield Withheld(move.identity, f"{change}, but {unknown}", "grant list on pods")
            continue
        drained = move.node in cordoned
        counted = [pod for pod in pods.get(move.node, ()) if not (pod.stays and drained)]
        blocks = [[block for text in pod.addresses if (block := objects.address(text))] for pod in counted]
        if users := sum(any(blocks_over(move.lost, block) for block in each) for each in blocks):
            have = f"{'has an address' if users == 1 else 'have addresses'} of the old block"
            drain = f"kubectl drain {move.node} --ignore-daemonsets --delete-emptydir-data"
            reason = f"{change}, but {count(users, 'pod')} on node {move.node} {have}"
            yield Withheld(move.identity, reason, f"{drain}, then run this again")


def held_by_others(tree: Iterable[objects.Object], live: Live) -> list[Withheld]:
    """Return the objects of single nodes with a block that a live object gives to another node, or may give:
    its text is no CIDR. Node objects are compared with Nodes and CiliumNodes, all others with CiliumNodes.
    O(n log n).
    """
    single = [(document, read_object(document)) for document in tree if objects.node_of(document)]
    pattern = next((value for _, value in single if isinstance(value, Node)), None)
    kinds = {objects.CILIUM_NODE, objects.POOL, *([objects.NODE] if pattern else ())}
    # shared_pools_in_use has the pools of no node
    given = [each for each in live.values() if each["kind"] in kinds and objects.node_of(each)]
    there, bad = list[_Claim](), dict[str, list[str]]()
    for document in given:
        value = read_object(document)
        blocks, odd = objects.given_by(value, pattern or value)
        if document["kind"] != objects.POOL:
            claims = every_block(value) if isinstance(value, CiliumNode) else blocks
            there += ((block, document, False) for block in outermost(claims))
        if odd:
            bad.setdefault(objects.node_of(document), []).extend(sorted(odd))
    rendered = [(block, each, True) for each, value in single for block in objects.blocks_of(value)]
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
        "otherwise compile with a new dump: kubectl get nodes,ciliumnodes -o json"
    )
    reason = "another node has these addresses in the cluster"
    found = [Withheld(name, f"{reason}: {names(some)}", way_out) for name, some in sorted(holders.items())]
    return [*found, *(_unreadable(single, live, bad) if bad else ())]


def _unreadable(
    single: Iterable[tuple[objects.Object, RenderedValue]], live: Live, bad: Mapping[str, Sequence[str]]
) -> Iterator[Withheld]:
    """Yield the objects of nodes of which a live object has a text that is no CIDR (`bad`), and those that
    would give another node addresses which such a text may mean. O(n log n).
    """
    blocks = {identity(document): objects.blocks_of(value) for document, value in single}
    by_size = sorted(chain(*blocks.values()), key=lambda block: -block.prefix)
    sizes = {block.family: block.prefix for block in by_size}
    meant = outermost(block for text in chain(*bad.values()) for block in _may_mean(text, sizes))
    has = names(f"{node} has {names(map(shown, texts))}" for node, texts in sorted(bad.items()))
    reason = f"cannot tell which node has these addresses: {has}, which is not a CIDR"
    way_out = "correct the CIDR, or delete the object if its node is gone, then run this again"
    for document, value in single:
        name = identity(document)
        before = objects.blocks_of(read_object(live[name]), value) if name in live else ()
        new = without(blocks[name], before)
        if objects.node_of(document) in bad or any(blocks_over(meant, block) for block in new):
            yield Withheld(name, reason, way_out)


def _may_mean(text: str, sizes: Mapping[int, int]) -> Iterator[Block]:
    """Yield the block around the address with which a text begins that is no CIDR, as large as the largest in
    the tree (`sizes`: prefix lengths by family); every address if it begins with none.
    """
    if address := objects.address(text.partition("/")[0]):
        yield address.widened(sizes.get(address.family, address.prefix))
    else:
        yield from (Block(family, 0, 0) for family in BITS)


def shared_pools_in_use(tree: Iterable[objects.Object], live: Live) -> Iterator[Withheld]:
    """Yield shared CiliumPodIPPools whose apply would remove or merge CIDRs in which CiliumNodes have blocks.
    A compile only appends to a published pool, so a wider CIDR comes from a lock without that history. A text
    that is no CIDR may mean any addresses outside of the rendered pool.
    """
    changed: dict[str, tuple[str, Sequence[Block], str, bool]] = {}
    for document in tree:
        there = live.get(identity(document))
        if document["kind"] == objects.POOL and not objects.node_of(document) and there is not None:
            wider = outermost(objects.blocks_of(read_object(document)))
            blocks, odd = objects.given_by(value := read_object(there), value)
            gone = outermost(without(blocks, wider))
            # A CIDR of the live pool may be only a part of one of the rendered pool.
            parts = [each for each in blocks if any(o.prefix < each.prefix for o in blocks_over(wider, each))]
            pieces = gone or outermost(parts)
            which = names([*sorted(odd), *map(str, pieces)])
            if odd:
                gone = pieces = outermost(without((Block(family, 0, 0) for family in BITS), wider))
            if pieces:
                changed[objects.name_of(document)] = identity(document), pieces, which, bool(gone)
    users: dict[str, set[str]] = defaultdict(set)
    for seen in objects.cilium_nodes(live.values() if changed else ()):
        for pool in {pool for _, pool in (*seen.allocated, *seen.unreadable)} & changed.keys():
            given = [block for block, of in seen.allocated if of == pool]
            unknown = any(of == pool for _, of in seen.unreadable)
            if unknown or any(blocks_over(changed[pool][1], block) for block in given):
                users[pool].add(seen.name)
    for pool, nodes in sorted(users.items()):
        name, _, what, goes = changed[pool]
        have = f"{count(len(nodes), 'node')} {'has' if len(nodes) == 1 else 'have'} blocks: {names(nodes)}"
        if goes:
            reason = f"{what} would be removed, but {have}"
            drain = "drain the nodes, delete their CiliumNodes, restart their agents"
            way_out = f"keep these CIDRs in the pool until no CiliumNode has a block in them: {drain}"
        else:
            again = "up to Cilium 1.18 the operator gives these to other nodes"
            reason = f"{what} would become part of a wider CIDR, but {have}; {again}"
            cluster = f"the cluster's cidrs (kubectl get ciliumpodippool {pool} -o yaml)"
            file = "rendered/cilium/ippools.yaml, then compile again, which appends new CIDRs"
            way_out = f"copy {cluster} to {pool} in {file}"
        yield Withheld(name, reason, way_out)


State = Literal["missing", "differs", "re-created", "gone"]


class Drift(Struct, frozen=True, kw_only=True):
    """One object whose live form differs from the rendered one."""

    document: objects.Object
    state: State
    """`re-created`: the Node has another uid than the inventory. `gone`: there is no such Node any more."""


def drift(
    tree: Iterable[objects.Object], live: Mapping[str, objects.Object], nodes: Collection[str] | None
) -> Iterator[Drift]:
    """Yield the differences, in the order of the tree.
    `nodes` are the names of the cluster's Nodes; None: unknown. A CiliumNode whose Node is gone is not
    created again, as the operator would delete it; a planned node has no Node yet, and an annotation.
    """
    for document in tree:
        there, kind = live.get(identity(document)), document["kind"]
        metadata = document["metadata"]
        if there is None:
            has_node = nodes is None or objects.name_of(document) in nodes
            kept = kind != objects.CILIUM_NODE or has_node or metadata.get("annotations")
            yield Drift(document=document, state="missing" if kept and kind != objects.NODE else "gone")
        elif kind == objects.NODE and metadata.get("uid") not in {None, there["metadata"].get("uid")}:
            yield Drift(document=document, state="re-created")
        elif unequal(document, there) or lost(there, document):
            yield Drift(document=document, state="differs")


def unequal(document: objects.Object, there: objects.Object) -> list[str]:
    """Return the paths of rendered fields whose live value is another.
    Agents replace the annotations of CiliumNodes, so these are ignored, and so is the commit that policies
    name. A pool must not have other families than rendered, and a policy no other fields: they could exempt
    requests from it.
    """
    kind, kept = document["kind"], ("labels", "annotations")
    if kind in POLICIES:
        (document,) = objects.naming([document], objects.commit_of([there]))
    metadata, live = document["metadata"], there["metadata"]
    paths: list[str] = []
    for key in kept[:1] if kind == objects.CILIUM_NODE else kept:
        paths += _unequal(metadata.get(key) or {}, live.get(key) or {}, f"metadata.{key}")
    for key in ("spec", "data"):
        paths += _unequal(document.get(key) or {}, there.get(key) or {}, key)
    if kind == objects.POOL and (more := _families(there) - _families(document)):
        paths += (f"spec.{family}" for family in sorted(more))
    if kind in POLICIES:
        paths += _added(document["spec"], there.get("spec") or {}, "spec")
    return list(dict.fromkeys(paths))


def _unequal(part: Any, whole: Any, path: str) -> Iterator[str]:
    """Yield the paths of values that differ. Lists are compared whole, as the apiserver owns them."""
    if not isinstance(part, Mapping) or not isinstance(whole, Mapping):
        if part != whole:
            yield path
        return
    for key, value in part.items():
        if key not in whole:
            yield f"{path}.{key}"
        else:
            yield from _unequal(value, whole[key], f"{path}.{key}")


_DEFAULTS: tuple[Any, ...] = ({}, [], None, "", "Equivalent")
"""Values that the apiserver adds to a policy; Equivalent is a matchPolicy."""


def _added(part: Any, whole: Any, path: str) -> Iterator[str]:
    """Yield the paths of fields that are not rendered and do not have a default value."""
    if isinstance(part, Mapping) and isinstance(whole, Mapping):
        for key, value in whole.items():
            if key in part:
                yield from _added(part[key], value, f"{path}.{key}")
            elif value not in _DEFAULTS:
                yield f"{path}.{key}"


def _families(pool: objects.Object) -> set[str]:
    return {"ipv4", "ipv6"} & (pool.get("spec") or {}).keys()


ORDER = (*POLICIES, objects.NODE_CONFIG, objects.CILIUM_NODE, objects.POOL)
"""The kinds in the order of deletion: policies, objects that name a pool, those with its blocks, the pool."""


class LeftOver(Struct, frozen=True, kw_only=True):
    """An object that left the tree."""

    kind: str
    namespace: str
    name: str
    effect: str  # its effect if it stays
    kept: str = ""  # why it must not be deleted; "" if it may be


def left_over(
    wanted: Collection[str],
    live: Mapping[str, objects.Object],
    nodes: Collection[str] | None,
    busy: Collection[str] | None,
) -> list[LeftOver]:
    """Return ipamc's live objects that are not among the wanted ones, by identity, in order of deletion.
    `nodes` are the cluster's Nodes, `busy` the nodes with pods; None: unknown, and CiliumNodes are kept.
    """
    users, left = pool_users(live.values()), []
    for document in [live[about] for about in _ours(live) if about not in wanted]:
        name, kind, kept = objects.name_of(document), str(document["kind"]), ""
        if kind in POLICIES:
            does = "gives nodes" if kind.startswith("Mutating") else "allows nodes only"
            effect = f"it still {does} the blocks of its last apply"
        elif kind == objects.NODE_CONFIG:
            wins = "and override configs whose name sorts before it"
            effect = f"its settings still apply to the nodes that it selects, {wins}"
        elif kind == objects.CILIUM_NODE:
            effect = "its node keeps its block, and the operator gives it to no other node"
            if nodes is None or busy is None:
                kept = "Nodes or pods cannot be read"
            elif name in nodes or name in busy:
                kept = "its Node exists" if name in nodes else "pods run on its node"
        else:
            owner = (
                f"node {objects.node_of(document)}"
                if objects.node_of(document)
                else "any node that requests one"
            )
            effect = f"the operator hands out its blocks to {owner}"
            if used := users.get(name):
                kept = f"CiliumNode {min(used)} has blocks of it or requests some"
        namespace = str(document["metadata"].get("namespace", ""))
        left.append(LeftOver(kind=kind, namespace=namespace, name=name, effect=effect, kept=kept))
    return sorted(left, key=lambda item: (ORDER.index(item.kind), item.name))


def is_foreign_tree(wanted: Collection[str], live: Mapping[str, objects.Object]) -> bool:
    """Return whether the cluster has objects of ipamc and none is wanted: they are another cluster's."""
    ours = _ours(live)
    return bool(ours) and not any(name in wanted for name in ours)


def _ours(live: Mapping[str, objects.Object]) -> list[str]:
    return [
        name for name, document in live.items() if document["kind"] in ORDER and objects.is_ours(document)
    ]


def pool_users(documents: Iterable[objects.Object]) -> dict[str, set[str]]:
    """Return, by pool, the nodes whose CiliumNode has blocks of it, even unreadable, or requests some."""
    users: dict[str, set[str]] = defaultdict(set)
    for seen in objects.cilium_nodes(documents):
        requested = {pool for pool, *_ in seen.requested}
        for pool in requested.union(pool for _, pool in (*seen.allocated, *seen.unreadable)):
            users[pool].add(seen.name)
    return users
