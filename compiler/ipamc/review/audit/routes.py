"""Rules about where routes lead: Nodes against CiliumNodes, and which of them a speaker of BGP announces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from ipamc.check.evidence import pod_cidrs_count
from ipamc.model.address_sets import blocks_over
from ipamc.model.cidr import BITS, Block, address_text, parse_block
from ipamc.model.cilium.features import Capability
from ipamc.model.cilium.versions import can, text
from ipamc.model.cluster import CiliumNode, Cluster, Mode, Node
from ipamc.model.diagnostics import Related, error, note
from ipamc.review.audit.causes import Cause, Fact, Suppressed
from ipamc.review.audit.context import SHOWN, Found, Scene, and_more, texts
from ipamc.review.live.config import AGENT
from ipamc.review.live.objects import CILIUM_NODE, NODE

_LINK_LOCAL = tuple(parse_block(text, pods=False) for text in ("169.254.0.0/16", "fe80::/10"))


def announced_from(cluster: Cluster) -> str:
    """Return which object's blocks Cilium announces by BGP: Node, CiliumNode, or "" where it announces none.

    Pools of multi-pool mode are announced by what `pools.allocated` of the CiliumNode has (check/bgp.py).
    """
    one_block = cluster.mode.one_block
    if cluster.bgp == "metallb" and can(cluster.cilium, Capability.METALLB) and one_block:
        reads_cilium_nodes = can(cluster.cilium, Capability.METALLB_CILIUM_NODE)
        return "CiliumNode" if reads_cilium_nodes and cluster.mode is Mode.CLUSTER_POOL else "Node"
    if cluster.bgp == "control-plane" and cluster.mode is not Mode.CRD:
        of_node = cluster.mode is Mode.KUBERNETES and not can(cluster.cilium, Capability.BGP_CILIUM_NODE)
        return "Node" if of_node else "CiliumNode"
    return ""


def _cluster(scene: Scene) -> Cluster:
    """Return the cluster with MetalLB as its speaker, where cilium-config says that it announces podCIDRs."""
    if scene.cluster.bgp == "none" and (scene.config or {}).get("bgp-announce-pod-cidr") == "true":
        return replace(scene.cluster, bgp="metallb")
    return scene.cluster


def wrong_routes(scene: Scene, told: Suppressed) -> Iterator[Found]:
    """IPC0950: a Node and its CiliumNode have the same blocks, where both decide about routes."""
    if not pod_cidrs_count(_cluster(scene)):
        return
    apart = [
        (node, seen)
        for node, seen in _apart(scene)
        if not told.explains("IPC0950", scene.source(node.name), (*node.pod_cidrs, *seen.blocks))
    ]
    if not apart:
        return
    node, seen = apart[0]
    owners = {block: seen.name for seen in scene.dump.cilium_nodes for block in seen.blocks}
    users = sorted(owners), owners
    nodes = [each.name for each, _ in apart]
    yield Found(
        error(
            "IPC0950",
            node.at,
            f"node {node.name} has podCIDRs {texts(node.pod_cidrs)}, and its CiliumNode {texts(seen.blocks)}{and_more(nodes)}: {_who(scene)}",
            also=[
                related
                for one, other in apart[:SHOWN]
                for related in (
                    Related(
                        one.at, f"Node {one.name}: {texts(one.pod_cidrs)}{_used(users, scene, one, other)}"
                    ),
                    Related(other.at, f"CiliumNode {other.name}: {texts(other.blocks)}"),
                    *scene.line_of(one.name),
                )
            ],
            help=f"see which block the pods use: kubectl get pods -A -o wide --field-selector spec.nodeName={node.name}; "
            f"drain {node.name}, delete its Node and CiliumNode, let it join again, and apply",
        ),
        # What is not the source of the node's blocks is apart from it: the CiliumNode in kubernetes mode, else the Node.
        [
            Cause(
                f"{CILIUM_NODE if scene.shows_nodes else NODE} {one.name}",
                Fact.APART,
                (*one.pod_cidrs, *other.blocks),
            )
            for one, other in apart
        ],
    )


def _apart(scene: Scene) -> Iterator[tuple[Node, CiliumNode]]:
    for seen in scene.dump.cilium_nodes:
        node = scene.dump.nodes_by_name.get(seen.name)
        if node and node.pod_cidrs and seen.blocks and sorted(node.pod_cidrs) != sorted(seen.blocks):
            yield node, seen


def _who(scene: Scene) -> str:
    """Return who leads traffic to the wrong node, for a message."""
    cluster = _cluster(scene)
    source, version = announced_from(cluster), text(cluster.cilium)
    speaker = "MetalLB" if cluster.bgp == "metallb" else "the BGP control plane"
    if cluster.mode is Mode.KUBERNETES:
        agents = "pods use the Node's at the agent's next start, and other nodes route by the CiliumNode"
        return f"{agents}; {speaker} of Cilium {version} announces those of {source}s" if source else agents
    if source == "Node":
        return f"{speaker} of Cilium {version} announces those of Nodes, and pods use those of CiliumNodes"
    ours = f"{speaker} of Cilium {version} announces those of CiliumNodes; " if source else ""
    return f"{ours}pods use those of CiliumNodes, and a speaker that reads Nodes announces the others"


def _used(users: tuple[Sequence[Block], dict[Block, str]], scene: Scene, node: Node, seen: CiliumNode) -> str:
    """Return which other node uses what a Node says."""
    if scene.cluster.mode is Mode.KUBERNETES:
        return ""
    blocks, owners = users
    others = {owners[found] for block in node.pod_cidrs for found in blocks_over(blocks, block)} - {seen.name}
    return f", which node {min(others)} uses" if others else ""


def unread_pod_cidrs(scene: Scene, told: Suppressed) -> Iterator[Found]:
    """IPC0951: Nodes have no podCIDRs beside the blocks of CiliumNodes."""
    if scene.config is None or pod_cidrs_count(_cluster(scene)):
        return
    apart = [
        (node, mine)
        for node in scene.dump.nodes
        if node.pod_cidrs
        and not told.explains("IPC0951", scene.source(node.name), node.pod_cidrs)
        and (mine := [shown.block for shown in scene.shown.get(node.name, ())])
        and not set(node.pod_cidrs) <= set(mine)
    ]
    if apart:
        node, mine = apart[0]
        yield Found(
            note(
                "IPC0951",
                node.at,
                f"node {node.name} has podCIDRs {texts(node.pod_cidrs)}, and its pods use {texts(mine)}{and_more([each.name for each, _ in apart])}: "
                f"nothing in Cilium reads podCIDRs in {scene.cluster.mode} mode, but a speaker that reads Nodes would announce wrong routes",
                also=[Related(scene.cluster.field("spec", "bgp"), f"bgp: {scene.cluster.bgp}")],
            )
        )


def former_router(scene: Scene, told: Suppressed) -> Iterator[Found]:
    """IPC0952: an agent runs with the blocks that its CiliumNode has."""
    old = [
        (seen, router)
        for seen, router in _outside(scene)
        if not any(
            told.explains("IPC0952", each, [router])
            for each in {scene.object_of(seen.name), f"{CILIUM_NODE} {seen.name}"}
        )
    ]
    unknown = [
        seen for seen in scene.dump.cilium_nodes if not seen.internal_ips and _has_started(scene, seen)
    ]
    if old:
        seen, router = old[0]
        yield Found(
            error(
                "IPC0952",
                seen.at,
                f"the agent of {seen.name} still runs with the router address {address_text(router.family, router.first)}, outside its blocks {texts(_all_of(seen))}{and_more([each.name for each, _ in old])}",
                also=[related for each, _ in old[:SHOWN] for related in scene.line_of(each.name)],
                help=_restart(scene, seen),
            ),
            [
                Cause(f"{CILIUM_NODE} {each.name}", Fact.FORMER_AGENT, blocks)
                for each, address in old
                if (blocks := _around(scene, each.name, address))
            ],
        )
    if unknown:
        seen = unknown[0]
        yield Found(
            error(
                "IPC0952",
                seen.at,
                f"the agent of {seen.name} runs, and its CiliumNode has no CiliumInternalIP{and_more([each.name for each in unknown])}: "
                "it was made again since the agent started, which may still give pods addresses of a former block",
                also=[related for each in unknown[:SHOWN] for related in scene.line_of(each.name)],
                help=_restart(scene, seen),
            )
        )


def _outside(scene: Scene) -> Iterator[tuple[CiliumNode, Block]]:
    """Yield the CiliumNodes of nodes whose router has an address outside their blocks, with that address.

    Without cilium-config, only of a pool or of a block of the lock: users may choose another (`local-router-ipv4`).
    """
    if any(f"local-router-ipv{family}" in (scene.config or {}) for family in (4, 6)):
        return
    for seen in scene.dump.cilium_nodes:
        if seen.name not in scene.dump.nodes_by_name:
            continue
        blocks = _all_of(seen)
        for family, number in seen.internal_ips:
            router = Block(family, number, BITS[family])
            mine = [block for block in blocks if block.family == family]
            if mine and not any(block.contains(router) for block in (*mine, *_LINK_LOCAL)):
                if scene.config is not None or scene.ranges.of(router) or _around(scene, seen.name, router):
                    yield seen, router
                break


def _has_started(scene: Scene, seen: CiliumNode) -> bool:
    """Tell whether the agent of a CiliumNode with a block of each family is past its start, when it writes its addresses.

    Annotations do not tell, where ipamc writes them.
    """
    node, pod = scene.dump.nodes_by_name.get(seen.name), scene.pods_of.get(AGENT, {}).get(seen.name)
    if node is None or seen.deleting or {block.family for block in _all_of(seen)} < {*scene.cluster.families}:
        return False
    runs = pod is not None and pod.phase == "Running" and not pod.deleting and not scene.is_young(pod)
    return runs or (node.agent_ran and scene.cluster.patch_nodes != "annotations")


def _around(scene: Scene, node: str, router: Block) -> tuple[Block, ...]:
    """Return the blocks that the lock has or had for a node, of which an address is."""
    return tuple([line.block for line in scene.lines.get(node, ()) if line.block.contains(router)])


def _restart(scene: Scene, seen: CiliumNode) -> str:
    return f"kubectl -n {scene.cluster.namespace} delete pod -l k8s-app=cilium --field-selector spec.nodeName={seen.name}; then delete the pods with old addresses"


def _all_of(seen: CiliumNode) -> list[Block]:
    blocks: Iterable[Block] = (*seen.blocks, *(block for block, _ in seen.allocated), *seen.addresses)
    return list(blocks)
