"""Rules about the blocks that nodes have in the cluster: against each other, the lock and the pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ipamc.lock.file import line_at
from ipamc.model.address_sets import aggregated, index_around, lines_over, overlaps
from ipamc.model.cidr import Block
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Related, count, error, names, note, warning
from ipamc.model.lock import Line, State
from ipamc.model.ownership import Ownership, Shown
from ipamc.model.plan import ShownBlock
from ipamc.review.audit.causes import Cause, Fact, Suppressed
from ipamc.review.audit.context import SHOWN, Found, Make, Scene, and_more, texts, whose
from ipamc.review.live.objects import CILIUM_NODE, NODE, POOL

Pair = tuple[ShownBlock, ShownBlock]


def two_nodes_one_block(scene: Scene, told: Suppressed) -> Iterator[Found]:  # noqa: ARG001 - every check has these
    """IPC0910: no two nodes have the same addresses."""
    every = sorted(
        (shown for blocks in scene.shown.values() for shown in blocks),
        key=lambda shown: (shown.block, shown.node),
    )
    pairs: list[Pair] = [
        (outer, inner)
        for outer, inner in overlaps(every, lambda shown: shown.block)
        if outer.node != inner.node
    ]
    if not pairs:
        return
    outer, inner = pairs[0]
    nodes = {shown.node for pair in pairs for shown in pair}
    same = "both have" if outer.block == inner.block else f"overlap: {outer.block} and"
    yield Found(
        error(
            "IPC0910",
            scene.at(inner.node),
            f"nodes {outer.node} and {inner.node} {same} {inner.block}"
            + (f"; {len(pairs):,} pairs: {names(nodes)}" if pairs[1:] else ""),
            also=[related for pair in pairs[:SHOWN] for related in _both(scene, pair)],
            help=_keep(scene, outer, inner),
        ),
        [
            *(
                scene.other_blocks(one.node, (one.block, other.block))
                for pair in pairs
                for one, other in (pair, pair[::-1])
                # What a Node shows is not known to be wrong by a CiliumNode: a dump may not have that.
                if (scene.source(one.node), CILIUM_NODE)
                != (f"{NODE} {one.node}", scene.source(other.node).partition(" ")[0])
            ),
            *(Cause(f"{NODE} {node}", Fact.GONE) for node in sorted(nodes - scene.dump.nodes_by_name.keys())),
        ],
    )


def _both(scene: Scene, pair: Pair) -> Iterator[Related]:
    """Yield the places of both nodes, and the row of the lock."""
    for shown in pair:
        gone = "" if shown.node in scene.dump.nodes_by_name else ", whose Node is gone"
        yield scene.related(shown.node, f"{shown.node}{gone}: {shown.block}")
    for line in lines_over(scene.lock.lines, pair[1].block)[:1]:
        yield Related(line_at(scene.lock, line), f"the lock has {line.block} for {line.node} ({line.state})")


def _keep(scene: Scene, outer: ShownBlock, inner: ShownBlock) -> str:
    gone = [shown.node for shown in (outer, inner) if shown.node not in scene.dump.nodes_by_name]
    if gone:
        return f"if {gone[0]} is really gone: kubectl delete ciliumnode {gone[0]}"
    held = [shown.node for shown in (outer, inner) if shown.block in scene.held(shown.node)]
    stays = held[0] if len(held) == 1 else outer.node
    leaves = inner.node if stays == outer.node else outer.node
    return f"{stays} keeps it; drain {leaves}, {scene.anew(leaves)}"


def block_of_another(scene: Scene, told: Suppressed) -> Iterator[Found]:
    """IPC0911: no node has a block that the lock has for another node."""
    found: list[tuple[ShownBlock, Line]] = []
    for node, blocks in scene.shown.items():
        for shown in blocks:
            found += (
                (shown, line)
                for line in scene.law.others(shown)
                if scene.law.of(shown) is Ownership.ANOTHERS
                and not told.explains("IPC0911", scene.source(node), [shown.block])
            )
    if not found:
        return
    shown, line = found[0]
    nodes = list(dict.fromkeys(shown.node for shown, _ in found))
    state = "" if line.state is State.HELD else f" ({line.state})"
    yield Found(
        error(
            "IPC0911",
            scene.at(shown.node),
            f"node {shown.node} has {shown.block}, and the lock has {line.block} for {line.node}{state}{and_more(nodes)}",
            also=[
                related
                for shown, line in found[:SHOWN]
                for related in (
                    scene.related(shown.node, f"{shown.node} has {shown.block}"),
                    Related(line_at(scene.lock, line), f"the lock has it for {line.node}"),
                )
            ],
            help=f"see which block the pods of {shown.node} use; if that of the lock: {scene.anew(shown.node)}; "
            f"else drain it first: kubectl drain {shown.node} --ignore-daemonsets --delete-emptydir-data",
        ),
        [scene.other_blocks(shown.node, [shown.block]) for shown, _ in found],
    )


def other_blocks(scene: Scene, told: Suppressed) -> Iterator[Found]:
    """IPC0912: a node has the blocks that the lock has for it, also where nothing is rendered for it."""
    by_severity: dict[Make, list[str]] = {error: [], warning: [], note: []}
    for node, blocks in scene.shown.items():
        if node not in scene.inventory or scene.object_of(node) in scene.git.objects:
            continue
        if scene.is_skipped(node):
            continue
        strays = [shown for shown, _ in scene.law.strays(blocks)]
        if strays and told.explains("IPC0912", scene.source(node), [shown.block for shown in strays]):
            continue
        if make := scene.verdict(node) or (note if _lacks(scene, node, blocks) else None):
            by_severity[make].append(node)
    for make, some in by_severity.items():
        if some:
            node = some[0]
            held = texts(scene.held(node)) or "nothing"
            yield Found(
                make(
                    "IPC0912",
                    scene.at(node),
                    f"node {node} has {whose(scene.shown[node])}, and the lock has {held} for it{and_more(some)}",
                    also=[related for each in some[:SHOWN] for related in scene.line_of(each)],
                    help=f"ipamc import {scene.cluster.name} --refresh, then ipamc compile {scene.cluster.name}"
                    if make is note
                    else f"if its pods use what the lock has: {scene.anew(node)}; else drain it first",
                ),
                [scene.other_blocks(each, [shown.block for shown in scene.shown[each]]) for each in some]
                if make is not note
                else (),
            )


def _lacks(scene: Scene, node: str, blocks: Sequence[ShownBlock]) -> bool:
    """Tell whether a node lacks a block of the lock that its operator would have given: of a shared pool.

    With pools of nodes those have names of their own. Agents give back what no pod uses: of its node's pool nobody
    else gets it, of a shared one the operator gives it to another node.
    """
    there, own = Shown(blocks), scene.cluster.own_pools
    return any(
        line.state is State.HELD
        and (not own or f"{POOL} {line.pool}" in scene.git.objects)
        and not there.fits(line.block)
        for line in scene.lines.get(node, ())
    )


_MOVES = frozenset({Ownership.PENDING, Ownership.FORMER})
"""Of a pool of one node, the lock takes the block out before the node moves, and puts it in as it settles."""


def block_of_no_pool(scene: Scene, told: Suppressed) -> Iterator[Found]:
    """IPC0913: each block of multi-pool mode is of a CiliumPodIPPool that the cluster has."""
    if scene.cluster.mode is not Mode.MULTI_POOL or POOL not in scene.dump.kinds:
        return
    pools: Mapping[str, list[Block]] = {
        pool.name: list(aggregated(cidr for cidrs in pool.cidrs.values() for cidr in cidrs))
        for pool in scene.dump.pools
    }
    found = [
        (seen.name, block, pool)
        for seen in scene.dump.cilium_nodes
        for block, pool in seen.allocated
        if index_around(pools.get(pool, ()), block) is None
        and scene.law.of(ShownBlock(block, seen.name, seen.at, pool)) not in _MOVES
        and not any(
            told.explains("IPC0913", each, [block]) for each in (scene.source(seen.name), f"{POOL} {pool}")
        )
    ]
    if found:
        node, block, pool = found[0]
        nodes = list(dict.fromkeys(name for name, _, _ in found))
        missing = "does not have it" if pool in pools else "is not in the cluster"
        yield Found(
            error(
                "IPC0913",
                scene.at(node),
                f"node {node} has {block} of CiliumPodIPPool {pool}, which {missing}{and_more(nodes)}",
                help=f"ipamc ci apply {scene.cluster.name} --repair, if the pool is ours; else create it again: {count(len(nodes), 'node')} {'uses' if len(nodes) == 1 else 'use'} it",
            )
        )
