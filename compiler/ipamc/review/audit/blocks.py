"""Rules about the blocks that nodes have in the cluster: against each other, the lock, pools and routes.

And about addresses in them that an endpoint holds without a pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from ipamc.check.evidence import cidr_texts, pod_cidrs_count
from ipamc.lock.file import line_at
from ipamc.model.address_sets import aggregated, blocks_over, index_around, lines_over, overlaps
from ipamc.model.cidr import Block, address_text, parse_block, single
from ipamc.model.cilium.flags import is_true
from ipamc.model.cilium.operator_list import restart
from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Related, and_others, count, error, names, note, several, warning
from ipamc.model.evidence import every_block
from ipamc.model.limits import MOST_PLACES
from ipamc.model.lock import State
from ipamc.model.node import CiliumNode, Node
from ipamc.model.ownership import Ownership, ShownBlocks
from ipamc.model.plan import ShownBlock
from ipamc.review.audit.context import ENDPOINT, POD, Cause, Context, Fact, Make, Result, Suppressed
from ipamc.review.live.objects import CILIUM_NODE, NODE, POOL

_LINK_LOCAL = tuple(parse_block(text, pods=False) for text in ("169.254.0.0/16", "fe80::/10"))


def two_nodes_one_block(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0910: no two nodes have the same addresses."""
    every = [shown for blocks in context.shown.values() for shown in blocks]
    every.sort(key=lambda shown: (shown.block, shown.node))
    pairs = [pair for pair in overlaps(every, lambda shown: shown.block) if pair[0].node != pair[1].node]
    if not pairs:
        return
    outer, inner = pairs[0]
    nodes = {shown.node for pair in pairs for shown in pair}
    gone = nodes - context.dump.nodes_by_name.keys()
    same = "both have" if outer.block == inner.block else f"overlap: {outer.block} and"
    more = f"; {len(pairs):,} pairs: {names(nodes)}" if pairs[1:] else ""
    text = f"nodes {outer.node} and {inner.node} {same} {inner.block}{more}"
    also = []
    for pair in pairs[:MOST_PLACES]:
        for shown in pair:
            has = f"{shown.node}{', whose Node is gone' if shown.node in gone else ''}: {shown.block}"
            also.append(context.related(shown.node, has))
        for line in context.written(lines_over(context.lock.lines, pair[1].block)[:1]):
            row = f"the lock has {line.block} for {line.node} ({line.state})"
            also.append(Related(line_at(context.lock, line), row))
    causes = [Cause(f"{NODE} {node}", Fact.GONE) for node in sorted(gone)]
    for one, other in (order for pair in pairs for order in (pair, pair[::-1])):
        # A CiliumNode does not prove that a Node is wrong: the dump may lack CiliumNodes.
        by_node = context.source(one.node) == f"{NODE} {one.node}"
        if not (by_node and context.source(other.node) == f"{CILIUM_NODE} {other.node}"):
            causes.append(context.other_blocks(one.node, (one.block, other.block)))
    held = [shown.node for shown in pairs[0] if shown.block in context.held(shown.node)]
    stays, leaves = (inner, outer) if held == [inner.node] else (outer, inner)
    keeps = f"{stays.node} keeps the block: drain {leaves.node}, {context.rejoin(leaves.node)}"
    left = [shown.node for shown in pairs[0] if shown.node in gone]
    way_out = f"if node {left[0]} is gone: kubectl delete ciliumnode {left[0]}" if left else keeps
    yield Result(error("IPC0910", context.at(inner.node), text, also=also, help=way_out), causes)


def adopt(context: Context, node: str) -> str:
    """Return the beginning of a fix: the commands if the cluster is right about a node, and not git."""
    if context.alone or node not in context.inventory:
        return ""
    name, uses = context.cluster.name, f"if pods on {node} use its block in the cluster"
    return f"{uses}: ipamc import {name} --refresh dump.json, then ipamc lock {name} --adopt {node}\n"


def block_of_another(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0911: no node has a block that the lock holds for another node."""
    pairs = [
        (shown, line)
        for node, blocks in context.shown.items()
        for shown in blocks
        for line in context.ownership.others(shown)
        if context.ownership.of(shown) is Ownership.ANOTHERS
        and not suppressed.explains("IPC0911", context.source(node), [shown.block])
    ]
    if not pairs:
        return
    shown, line = pairs[0]
    node = shown.node
    nodes = list(dict.fromkeys(shown.node for shown, _ in pairs))
    state = "" if line.state is State.HELD else f" ({line.state})"
    block = "it" if line.block == shown.block else line.block
    lock = f"the lock has {block} for {line.node}{state}"
    text = f"node {node} has {shown.block}, but {lock}{and_others(nodes)}"
    also = []
    for each, other in pairs[:MOST_PLACES]:
        also.append(context.related(each.node, f"{each.node} has {each.block}"))
        also.append(Related(line_at(context.lock, other), f"the lock has it for {other.node}"))
    way_out = f"{adopt(context, node)}if its pods use the block in the lock: {context.rejoin(node)}"
    finding = error("IPC0911", context.at(node), text, also=also, help=way_out)
    yield Result(finding, [context.other_blocks(each.node, [each.block]) for each, _ in pairs])


def other_blocks(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0912: a node has the blocks that the lock holds for it, even without rendered objects."""
    by_severity: dict[Make, list[str]] = {error: [], warning: [], note: []}
    for node, blocks in context.shown.items():
        rendered = context.object_of(node) in context.git.objects
        if node not in context.inventory or rendered or context.is_skipped(node):
            continue
        strays = [shown.block for shown, _ in context.ownership.strays(blocks)]
        if strays and suppressed.explains("IPC0912", context.source(node), strays):
            continue
        if make := context.verdict(node) or (note if _lacks(context, node, blocks) else None):
            by_severity[make].append(node)
    for make, some in by_severity.items():
        if some:
            node = some[0]
            has, held = cidr_texts(context.blocks_of(node)), cidr_texts(context.held(node)) or "nothing"
            text = f"node {node} has {has}, but the lock has {held} for it{and_others(some)}"
            move = f"{adopt(context, node)}if its pods use the block in the lock: {context.rejoin(node)}"
            way_out = context.refresh if make is note else move
            causes = [context.other_blocks(each, context.blocks_of(each)) for each in some]
            finding = make("IPC0912", context.at(node), text, also=context.lines_of(some), help=way_out)
            yield Result(finding, () if make is note else causes)


def _lacks(context: Context, node: str, blocks: Sequence[ShownBlock]) -> bool:
    """Return whether a node lacks a block of a shared pool that the operator should have given it.
    Pools of single nodes have other names. Agents return unused blocks (1.17 on): nobody else can get one of
    the node's own pool, but the operator gives one of a shared pool to another node.
    """
    there, own = ShownBlocks(blocks), context.cluster.own_pools
    return any(
        (not own or f"{POOL} {line.pool}" in context.git.objects) and not there.fits(line.block)
        for line in context.held_lines(node)
    )


_MOVES = frozenset({Ownership.PENDING, Ownership.FORMER})
"""The lock removes a block from a node's own pool before the node moves, and adds it when it settles."""


def address_of_a_node(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0914: no node's InternalIP is in a block that a node holds."""
    found = [
        (node, address, line)
        for node in context.dump.nodes
        for address in map(single, node.internal_ips)
        for line in lines_over(context.lock.lines, address)
        if line.in_use
    ]
    if found:
        node, address, line = found[0]
        lines = list(dict.fromkeys(line for *_, line in found))
        ip = address_text(address.family, address.first)
        more = f"; {count(len(found), 'such address', 'such addresses')}" if found[1:] else ""
        text = f"node {node.name} has {ip}, inside block {line.block} of {line.node}: a pod may get it{more}"
        also = [
            Related(line_at(context.lock, each), f"{each.block} of {each.node}")
            for each in context.written(lines[:MOST_PLACES])
        ]
        holders = list(dict.fromkeys(each.node for each in lines))[:MOST_PLACES]
        move = f"ipamc lock {context.cluster.name} --renumber {','.join(holders)}"
        way_out = "" if context.alone or context.cluster.shared_pools else move
        yield Result(error("IPC0914", node.at, text, also=also, help=way_out))


def block_of_no_pool(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0913: each block of multi-pool mode belongs to a CiliumPodIPPool in the cluster."""
    if context.cluster.mode is not Mode.MULTI_POOL or POOL not in context.dump.kinds:
        return
    pools = {pool.name: list(aggregated(chain(*pool.cidrs.values()))) for pool in context.dump.pools}
    outside = [
        (seen.name, block, pool)
        for seen in context.dump.cilium_nodes
        for block, pool in seen.allocated
        if index_around(pools.get(pool, ()), block) is None
        if context.ownership.of(ShownBlock(block, seen.name, seen.at, pool)) not in _MOVES
        if not suppressed.explains("IPC0913", context.source(seen.name), [block])
        if not suppressed.explains("IPC0913", f"{POOL} {pool}", [block])
    ]
    if outside:
        node, block, pool = outside[0]
        nodes = list(dict.fromkeys(name for name, _, _ in outside))
        missing = "lacks it" if pool in pools else "is not in the cluster"
        text = f"node {node} has {block} of CiliumPodIPPool {pool}, which {missing}{and_others(nodes)}"
        users = f"{count(len(nodes), 'node')} {'uses' if len(nodes) == 1 else 'use'} it"
        ours = "" if context.alone else f"if the pool is in git: {context.apply} --repair; otherwise "
        way_out = f"{ours}create it again ({users})"
        yield Result(error("IPC0913", context.at(node), text, help=way_out))


def _speaker(context: Context) -> Cluster:
    """Return the cluster with MetalLB as its BGP speaker if cilium-config says that it announces podCIDRs."""
    if context.cluster.bgp == "none" and is_true(context.config or {}, "bgp-announce-pod-cidr"):
        return replace(context.cluster, bgp="metallb")
    return context.cluster


def wrong_routes(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0950: a Node and its CiliumNode have the same blocks, if routes depend on both."""
    if not pod_cidrs_count(_speaker(context)):
        return
    pairs = [(context.dump.nodes_by_name.get(seen.name), seen) for seen in context.dump.cilium_nodes]
    apart = [
        (node, seen)
        for node, seen in pairs
        if node and node.pod_cidrs and seen.blocks and sorted(node.pod_cidrs) != sorted(seen.blocks)
        if not suppressed.explains("IPC0950", context.source(node.name), (*node.pod_cidrs, *seen.blocks))
    ]
    if not apart:
        return
    node, seen = apart[0]
    owners = {block: seen.name for seen in context.dump.cilium_nodes for block in seen.blocks}
    blocks = sorted(owners)
    also = []
    for one, other in apart[:MOST_PLACES]:
        used = ""
        if context.cluster.mode is not Mode.KUBERNETES:
            users = {owners[each] for block in one.pod_cidrs for each in blocks_over(blocks, block)}
            users.discard(other.name)
            used = f", which node {min(users)} uses" if users else ""
        also.append(Related(one.at, f"Node {one.name}: {cidr_texts(one.pod_cidrs)}{used}"))
        also.append(Related(other.at, f"CiliumNode {other.name}: {cidr_texts(other.blocks)}"))
        also += context.line_of(one.name)
    more = and_others([each.name for each, _ in apart])
    has = f"podCIDRs {cidr_texts(node.pod_cidrs)}, but its CiliumNode has {cidr_texts(seen.blocks)}"
    command = f"kubectl get pods -A -o wide --field-selector spec.nodeName={node.name}"
    again = f"drain {node.name}, delete its Node and CiliumNode, let it join again"
    again += "" if context.alone else ", and apply"
    way_out = f"find out which block the pods use: {command}\n{again}"
    text = f"node {node.name} has {has}{more}: {_effect(_speaker(context))}"
    # The object that is not the source of the node's blocks is wrong: in kubernetes mode the CiliumNode.
    kind = CILIUM_NODE if context.shows_nodes else NODE
    both = [(one.name, (*one.pod_cidrs, *other.blocks)) for one, other in apart]
    causes = [Cause(f"{kind} {name}", Fact.APART, some) for name, some in both]
    yield Result(error("IPC0950", node.at, text, also=also, help=way_out), causes)


def _effect(cluster: Cluster) -> str:
    """Return, for a message, what sends traffic to the wrong node."""
    source = _announced_from(cluster)
    speaker = "MetalLB" if cluster.bgp == "metallb" else "the BGP control plane"
    announces = f"{speaker} announces the {source}'s"
    if cluster.mode is Mode.KUBERNETES:
        agents = "pods get the Node's at the agent's next start, and other nodes route by the CiliumNode"
        return f"{agents}; {announces}" if source else agents
    if source == "Node":
        return f"{announces}, but pods use the CiliumNode's"
    others = "pods use the CiliumNode's, but a speaker that reads Nodes announces the Node's"
    return f"{announces}; {others}" if source else others


def _announced_from(cluster: Cluster) -> str:
    """Return the object whose blocks Cilium announces by BGP: Node, CiliumNode, or "" for none.
    In multi-pool mode `pools.allocated` of the CiliumNode is announced (check/bgp.py).
    """
    version, mode = cluster.cilium, cluster.mode
    if cluster.bgp == "metallb" and can(version, Capability.METALLB) and mode.one_block:
        reads_cilium_nodes = can(version, Capability.METALLB_CILIUM_NODE)
        return "CiliumNode" if reads_cilium_nodes and mode is Mode.CLUSTER_POOL else "Node"
    if cluster.bgp == "control-plane" and mode is not Mode.CRD:
        of_node = mode is Mode.KUBERNETES and not can(version, Capability.BGP_CILIUM_NODE)
        return "Node" if of_node else "CiliumNode"
    return ""


def unread_pod_cidrs(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0951: Nodes have no podCIDRs other than the blocks of their CiliumNodes."""
    if context.config is None or pod_cidrs_count(_speaker(context)):
        return
    apart = [
        (node, mine)
        for node in context.dump.nodes
        if node.pod_cidrs and not suppressed.explains("IPC0951", context.source(node.name), node.pod_cidrs)
        if (mine := context.blocks_of(node.name)) and not set(node.pod_cidrs) <= set(mine)
    ]
    if apart:
        node, mine = apart[0]
        more = and_others([each.name for each, _ in apart])
        unread = f"Cilium ignores podCIDRs in {context.cluster.mode} mode"
        routes = "but a speaker that reads Nodes announces wrong routes"
        has = (
            f"node {node.name} has podCIDRs {cidr_texts(node.pod_cidrs)}, but its pods use {cidr_texts(mine)}"
        )
        also = [Related(context.cluster.field("spec", "bgp"), f"bgp: {context.cluster.bgp}")]
        found = note("IPC0951", node.at, f"{has}{more}: {unread}, {routes}", also=also)
        yield Result(found.about(each.name for each, _ in apart))


def former_router(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0952: an agent runs with the blocks of its CiliumNode."""
    old = [
        (seen, router)
        for seen, router in _outside(context)
        if not suppressed.explains("IPC0952", context.object_of(seen.name), [router])
        if not suppressed.explains("IPC0952", f"{CILIUM_NODE} {seen.name}", [router])
    ]
    unknown = [node.name for node in context.dump.nodes if _cut_off(context, node)]
    found: list[tuple[list[str], str, list[Cause]]] = []
    if old:
        (seen, router), nodes = old[0], [each.name for each, _ in old]
        runs = f"still uses the router address {address_text(router.family, router.first)}"
        said = f"{runs}, outside its blocks {cidr_texts(every_block(seen))}{and_others(nodes)}"
        around = [(each.name, _around(context, each.name, address)) for each, address in old]
        causes = [Cause(f"{CILIUM_NODE} {name}", Fact.FORMER_AGENT, some) for name, some in around if some]
        found.append((nodes, said, causes))
    if unknown:
        lacks = f"runs, but no CiliumNode has its CiliumInternalIP{and_others(unknown)}"
        again = "the CiliumNode was deleted or created again"
        found.append((unknown, f"{lacks}: {again}, so other nodes have no routes to its pods", []))
    for nodes, said, causes in found:
        shown = context.dump.cilium_nodes_by_name.get(nodes[0]) or context.dump.nodes_by_name[nodes[0]]
        way_out = f"{restart(context.cluster.namespace, nodes[0])}; then delete the pods with old addresses"
        text, also = f"the agent of {nodes[0]} {said}", context.lines_of(nodes)
        yield Result(error("IPC0952", shown.at, text, also=also, help=way_out), causes)


def _outside(context: Context) -> Iterator[tuple[CiliumNode, Block]]:
    """Yield CiliumNodes whose router address is outside the node's blocks, with that address.
    Without cilium-config, only addresses in a pool or a block of the lock count: users may choose others.
    """
    if any(f"local-router-ipv{family}" in (context.config or {}) for family in (4, 6)):
        return
    for seen in context.dump.cilium_nodes:
        if seen.name not in context.dump.nodes_by_name:
            continue
        blocks = every_block(seen)
        for router in map(single, seen.internal_ips):
            mine = [block for block in blocks if block.family == router.family]
            if mine and not any(block.contains(router) for block in (*mine, *_LINK_LOCAL)):
                ours = context.ownership.ranges.of(router) or _around(context, seen.name, router)
                if context.config is not None or ours:
                    yield seen, router
                break


def _cut_off(context: Context, node: Node) -> bool:
    """Return whether an agent runs with a block of each family, and no CiliumNode has its address."""
    seen: CiliumNode | None = context.dump.cilium_nodes_by_name.get(node.name)
    known = context.shows_nodes and CILIUM_NODE in context.dump.kinds  # elsewhere IPC0922 or IPC0943 says it
    if (seen.internal_ips or seen.deleting) if seen else not known:
        return False
    has = {block.family for block in (every_block(seen) if seen else context.blocks_of(node.name))}
    if has < {*context.cluster.families}:
        return False
    ours = context.cluster.patch_nodes == "annotations"  # they prove nothing where ipamc writes them
    return context.runs_agent(node.name) or bool(seen and node.agent_ran and not ours)


def _around(context: Context, node: str, router: Block) -> tuple[Block, ...]:
    """Return the present and former blocks of a node in the lock that contain an address."""
    return tuple([line.block for line in context.lines(node) if line.block.contains(router)])


def without_pod(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0964: each CiliumEndpoint has a pod."""
    dump = context.dump
    if not {ENDPOINT, POD} <= dump.kinds:
        return
    pods = {(pod.namespace, pod.name) for pod in dump.pods if not pod.has_ended}
    left = [each for each in dump.endpoints if each.addresses and (each.namespace, each.name) not in pods]
    if left:
        first = left[0]
        which = [f"{each.namespace}/{each.name} ({address_text(*each.addresses[0])})" for each in left]
        text = several(which, "CiliumEndpoint", "without a pod, still holding an address")
        also = [Related(each.at, name) for each, name in zip(left, which[:MOST_PLACES], strict=False)][1:]
        way_out = f"if it still exists: kubectl -n {first.namespace} delete ciliumendpoint {first.name}"
        yield Result(warning("IPC0964", first.at, text, also=also, help=way_out))
