"""Rules about blocks that the running cluster shows, compared with each other and the lock (rule 6 of it).

A node about which lock and cluster disagree is disputed, and stops no other one. Its line stays, and so do
its objects; it gets nothing new, and what it shows counts as taken. There are two ways out: `ipamc lock
--adopt` where the cluster is right, or the node goes to its line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from ipamc.lock.file import line_at
from ipamc.model.address_sets import index_around, outermost
from ipamc.model.cidr import Block, address_text
from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
from ipamc.model.cluster import Cluster, Mode, Scheme
from ipamc.model.diagnostics import (
    Diagnostic,
    Related,
    Span,
    and_others,
    count,
    error,
    names,
    several,
    warning,
)
from ipamc.model.evidence import Evidence
from ipamc.model.limits import FEW_NODES, MOST_PLACES
from ipamc.model.lock import Consent, Line, Lock, State
from ipamc.model.node import CiliumNode, Node
from ipamc.model.ownership import Ownership, OwnershipRules
from ipamc.model.plan import NodeState, ShownBlock

Make = Callable[..., Diagnostic]
_ASKED = ("Node", "CiliumNode", "CiliumEndpoint", "Pod")
"""The kinds that tell which blocks nodes use."""


def cidr_texts(blocks: Iterable[Block]) -> str:
    """List the first few blocks for a message: `10.0.0.0/24, fd00::/64`."""
    every = list(map(str, blocks))
    more = f" and {len(every) - MOST_PLACES:,} more" if len(every) > MOST_PLACES else ""
    return ", ".join(every[:MOST_PLACES]) + more


def pod_cidrs_count(cluster: Cluster) -> bool:
    """Return whether agents, rendered patches or a BGP speaker use the podCIDRs of Nodes."""
    announced = cluster.bgp == "metallb" and not can(cluster.cilium, Capability.METALLB_CILIUM_NODE)
    return announced or cluster.mode is Mode.KUBERNETES or cluster.patch_nodes == "podCIDRs"


def too_many(cluster: Scheme, disputed: Collection[str]) -> bool:
    """Return whether so many nodes are disputed that the dump may be of another cluster."""
    return len(disputed) > max(FEW_NODES, len(cluster.nodes) * cluster.budget_leave // 100)


def adopt(lock: Lock, node: str) -> str:
    """Return the beginning of a fix: what to do if the cluster is right."""
    return f"if pods on {node} use the block it shows: ipamc lock {lock.cluster} --adopt {node}; if not: "


def other_dump(lock: Lock) -> str:
    """Return the beginning of a fix where many nodes are disputed."""
    live = ", after you copy the CIDRs of the live CiliumPodIPPools"
    pools = live if lock.mode is Mode.MULTI_POOL else ""
    replace = "if this dump is of another cluster, or older than the last apply, replace it"
    return f"{replace}; if the cluster is right: ipamc lock {lock.cluster} --adopt all{pools}; if not: "


def apart(cluster: Scheme, ownership: OwnershipRules) -> Iterator[tuple[Node, CiliumNode]]:
    """Yield Nodes and CiliumNodes that show different blocks, where both count."""
    if not (isinstance(cluster, Cluster) and cluster.cilium_nodes and pod_cidrs_count(cluster)):
        return
    seen = cluster.cilium_nodes_by_name
    for node in cluster.nodes:
        if not (node.pod_cidrs and (other := seen.get(node.name)) and other.blocks):
            continue
        differ = (_differ(ownership, node, other, family) for family in cluster.families)
        if sorted(node.pod_cidrs) != sorted(other.blocks) and any(differ):
            yield node, other


def node_and_cilium_node_differ(
    cluster: Cluster, lock: Lock, differ: Sequence[tuple[Node, CiliumNode]], make: Make
) -> Diagnostic:
    """IPC0506: a Node and its CiliumNode show the same blocks."""
    (node, other), *_ = differ
    has, others = f"node {node.name} has podCIDRs {cidr_texts(node.pod_cidrs)}", cidr_texts(other.blocks)
    message = f"{has}, but its CiliumNode has {others}{and_others([each.name for each, _ in differ])}"
    also = [Related(other.at, f"CiliumNode {other.name}")]
    for here, there in differ[1:MOST_PLACES]:
        also.append(Related(here.at, f"node {here.name}: {cidr_texts(here.pod_cidrs)}"))
        also.append(Related(there.at, f"CiliumNode {there.name}: {cidr_texts(there.blocks)}"))
    pods = f"kubectl get pods -A -o wide --field-selector spec.nodeName={node.name}"
    join = "drain the node, delete both objects, and let it join again"
    counts = Evidence(cluster, lock.lines).of(node)
    take = adopt(lock, node.name) if any(OwnershipRules(cluster, lock.lines).strays(counts)) else ""
    if not take and cluster.mode is Mode.KUBERNETES:  # an agent copies them to the CiliumNode when it starts
        join = f"restart its agent, and delete its pods in other blocks; if that does not help: {join}"
    fix = f"{take}{join}" if take else f"check which block the pods use: {pods}; {join}"
    if cluster.mode is not Mode.KUBERNETES and cluster.bgp == "none":
        fix += "; if nothing reads Node podCIDRs, set patchNodes: none"
    return make("IPC0506", node.at, message, also=also, help=fix)


def _differ(ownership: OwnershipRules, node: Node, other: CiliumNode, family: int) -> bool:
    """Return whether two objects show different blocks of a family, other than by a move in progress."""
    both = (node.pod_cidrs, other.blocks)
    one, two = ({block for block in blocks if block.family == family} for blocks in both)
    if one == two:
        return False
    mine, theirs = (
        {ownership.of(ShownBlock(block, node.name, node.at)) for block in its} for its in (one, two)
    )
    is_moving = Ownership.FORMER in mine | theirs <= {Ownership.OWN, Ownership.FORMER}
    return not (is_moving and ({Ownership.OWN} in (mine, theirs) or not (mine and theirs)))


class Unknown(NamedTuple):
    """A running node without a line in the lock, whose block is not known."""

    node: Node
    shown: tuple[ShownBlock, ...]
    """The blocks that its object shows, although they do not contain its addresses in use."""
    inferred: tuple[ShownBlock, ...]
    """The blocks around its addresses in use."""


def block_unknown(
    cluster: Scheme, unknown: Sequence[Unknown], dumped: Collection[str]
) -> Iterator[Diagnostic]:
    """IPC0434: the block of every running node is known, from the lock or from the inputs."""
    if not unknown:
        return
    first, lock = unknown[0].node, f"ipamc lock {cluster.name}"
    inferred = [f"{shown.block} on {shown.node}" for each in unknown for shown in each.inferred]
    shows = [f"{shown.block} for {shown.node}" for each in unknown for shown in each.shown]
    message = several([each.node.name for each in unknown], "running node", "with unknown blocks")
    message += f"; pods use {names(inferred)}" if inferred else ""
    message += f"; the input shows {names(shows)}, but no pod has an address there" if shows else ""
    adopt = f"adopt the blocks in use: {lock} --adopt all" if inferred else ""
    if not all(each.inferred or each.shown for each in unknown):
        end = f"without Cilium pods: {lock} --no-pods all"
    else:  # addresses in use prove that they have
        end = f"restart the agent of {first.name}, and refresh with a new dump"
    ways = [_add_to_input(cluster, first, dumped), adopt, end]
    yield error("IPC0434", first.at, message, help="; or ".join(filter(None, ways)))


def _add_to_input(cluster: Scheme, node: Node, dumped: Collection[str]) -> str:
    """Return how to add the objects that show the blocks of running nodes to the input, but not those of
    the kinds of the dump that was just imported.
    """
    seen = node.name in cluster.cilium_nodes_by_name
    if not node.live:
        has = {*dumped, "CiliumNode"} if seen else dumped
        kinds = ",".join(f"{kind.lower()}s" for kind in _ASKED if kind not in has)
        what = f"add {kinds} to the dump" if dumped else f"import a dump with {kinds}"
        return f"{what}: ipamc import {cluster.name} --refresh dump.json" if kinds else ""
    if seen:
        return ""
    dump = path = node.at.path
    if not path.endswith(".json"):
        folder = path.rpartition("/")[0]
        dump = f"nodes.json, in place of {path}"
        if folder:
            dump = f"{folder}/nodes.json, and remove the nodes of {path}"
    return f"kubectl get nodes,ciliumnodes -o json > {dump}"


def pods_elsewhere(
    taken: Iterable[ShownBlock], evidence: Evidence, unknown: Collection[str]
) -> Iterator[Diagnostic]:
    """IPC0439: a node uses only addresses in its blocks."""
    given = {(shown.block, shown.node) for shown in evidence.every()}
    found = [shown for shown in taken if shown.node not in unknown and (shown.block, shown.node) not in given]
    if found:
        one, more = "node uses addresses outside its blocks", "nodes use addresses outside their blocks"
        uses = count(len({shown.node for shown in found}), one, more)
        blocks = names(f"{shown.block} ({shown.node})" for shown in found)
        message = f"{uses}; these count as taken: {blocks}"
        fix = "restart the agents of these nodes, and delete the pods with these addresses"
        yield warning("IPC0439", found[0].at, message, help=fix)


def other_cluster(
    cluster: Scheme, lock: Lock, strange: Sequence[NodeState], agreeing: int
) -> Iterator[Diagnostic]:
    """IPC0438: most nodes show a block that the lock holds for them."""
    if len(strange) > max(FEW_NODES, (len(strange) + agreeing) // 2):
        first = strange[0]
        mine = next(line for line in lock.lines if line.node == first.name and line.state is State.HELD)
        share = f"{len(strange):,} of {len(strange) + agreeing:,} nodes"
        nodes = names(node.name for node in strange)
        message = f"{share} show none of the blocks that the lock holds for them: {nodes}"
        also = [Related(line_at(lock, mine), f"{first.name} holds {mine.block} here")]
        right = f"if not: ipamc lock {cluster.name} --adopt all"
        fix = f"if this dump is of another cluster, replace it; {right}"
        yield error("IPC0438", first.shown[0].at, message, also=also, help=fix)


def consent_about_nobody(cluster: Scheme, lock: Lock, consent: Consent) -> Iterator[Diagnostic]:
    """IPC0436: `--no-pods` and `--adopt` name nodes of the inventory."""
    for option, named in (("--no-pods", consent.no_pods), ("--adopt", consent.adopt)):
        known = {"all", *(node.name for node in cluster.nodes)} if named else set()
        for name in sorted(named - known):
            message = f"{name} is not in the inventory, so {option} does not apply"
            yield error("IPC0436", Span(lock.path), message, help="name a node of the inventory, or all")


def cilium_node_without_node(cluster: Scheme, shown: Iterable[ShownBlock]) -> Iterator[Diagnostic]:
    """IPC0424: a CiliumNode without a node in the inventory keeps its blocks."""
    families = [family for pool in cluster.pools if pool.unlisted for family in pool.families.values()]
    unlisted = outermost(cidr.block for family in families for cidr in family.ranges)
    found = [each for each in shown if index_around(unlisted, each.block) is None]
    if found:
        one = "CiliumNode without a node in the inventory keeps its blocks"
        more = "CiliumNodes without a node in the inventory keep their blocks"
        keeps = count(len({each.node for each in found}), one, more)
        message = f"{keeps}: {names(f'{each.node} ({each.block})' for each in found)}"
        fix = "add the node to the inventory, or kubectl delete ciliumnode"
        yield warning("IPC0424", found[0].at, message, help=fix)


def several_blocks(cluster: Scheme, adopted: Sequence[ShownBlock]) -> Iterator[Diagnostic]:
    """IPC0425: in modes with one block per node, a node shows one block per IP family."""
    if not cluster.mode.one_block:
        return
    by_family: dict[tuple[str, int], list[ShownBlock]] = defaultdict(list)
    for shown in adopted:
        by_family[shown.node, shown.block.family].append(shown)
    for (node, family), blocks in by_family.items():
        if len(blocks) > 1:
            what = f"{len(blocks)} IPv{family} blocks, but {cluster.mode} mode allows one"
            message = f"node {node} shows {what}: {cidr_texts(shown.block for shown in blocks)}"
            fix = "keep only the block that its pods use, or use a larger block, or multi-pool mode"
            yield error("IPC0425", blocks[0].at, message, help=fix)


def shown_twice(cluster: Scheme, outer: ShownBlock, inner: ShownBlock) -> Diagnostic:
    """IPC0426: no two nodes show the same addresses."""
    message = f"node {inner.node} shows {inner.block}, which overlaps {outer.block} of node {outer.node}"
    also = [Related(outer.at, f"{outer.node} shows {outer.block} here")]
    goes, wait = _goes(cluster, inner.node, outer.node)
    fix = wait or "drain one of the two, delete its Node and CiliumNode, and let it join again"
    return error("IPC0426", inner.at, message + goes, also=also, help=fix)


def _goes(cluster: Scheme, *nodes: str) -> tuple[str, str]:
    """Return which of some nodes is being deleted, to add to a message, and a fix; two times "" for none."""
    every: tuple[Node | CiliumNode, ...] = (*cluster.nodes, *cluster.cilium_nodes)
    goes = next((each.name for each in every if each.deleting and each.name in nodes), "")
    wait = f"wait until kubectl get node,ciliumnode {goes} finds neither, then export the inputs again"
    return (f"; {goes} is being deleted", wait) if goes else ("", "")


def in_one_block(one: ShownBlock, other: ShownBlock, block: Block) -> Diagnostic:
    """IPC0437: single addresses of two nodes are never in the same block."""
    first, second = (
        f"node {shown.node} shows {address_text(shown.block.family, shown.block.first)}"
        for shown in (other, one)
    )
    message = f"{first}, and {second}: both are in block {block}"
    fix = f"use blocks smaller than /{block.prefix}, or drain one of the two and give it other addresses"
    return error("IPC0437", other.at, message, also=[Related(one.at, f"CiliumNode {one.node}")], help=fix)


def already_given(
    cluster: Scheme,
    lock: Lock,
    shown: ShownBlock,
    line: Line,
    *,
    stranger: bool = False,
    make: Make = error,
    first: str = "",
) -> Diagnostic:
    """IPC0423: a running node shows no block that the lock holds for another node."""
    # `first` is the command that frees the line, if its own node shows another block.
    state = "in quarantine for" if line.since else "held by" if line.state is State.HELD else "pending for"
    planned = any(node.planned for node in cluster.nodes if node.name == line.node)
    join = f"drain {shown.node}, delete its Node and CiliumNode, and let it join again"
    if stranger:
        delete = f"kubectl delete ciliumnode {shown.node}, and export CiliumNodes again"
        fix = f"if {shown.node} is gone or renamed: {delete}; if it runs: add it to the inventory"
        if line.since:
            fix += f"; if {line.node} is gone: ipamc lock {lock.cluster} --release {line.block}"
    elif first:
        fix = f"{line.node} shows another block too; first run: {first}"
    elif line.moved and line not in lock.written:
        later = f"ipamc lock {lock.cluster} --adopt {shown.node}"
        fix = f"{line.node} leaves it with this change; after the merge: {later}"
    elif planned or line.state is not State.HELD:
        fix = f"{adopt(lock, shown.node)}{join}"
    else:
        refresh = f"ipamc import {lock.cluster} --refresh dump.json, with a new dump"
        fix = f"check which of the two nodes uses it: {refresh}; if {line.node} does: {join}"
    goes, wait = _goes(cluster, shown.node, line.node)
    message = f"node {shown.node} shows {shown.block}, which overlaps {line.block}, {state} {line.node}{goes}"
    also = [Related(line_at(lock, line, otherwise=shown.at), f"{state} {line.node} here")]
    return make("IPC0423", shown.at, message, also=also, help=wait or fix)


def settled_elsewhere(lock: Lock, node: NodeState, line: Line) -> Diagnostic:
    """IPC0435: in shared pools, `--settle` agrees with the block that the CiliumNode shows."""
    shows = f"its CiliumNode shows {cidr_texts(each.block for each in node.shown)}"
    message = f"{node.name} cannot be settled on {line.block}: {shows}"
    also = [Related(line_at(lock, line), "its line is here")]
    forget = f"drained, remove CiliumNode {node.name} from {node.shown[0].at.path}, and settle it again"
    fix = f"if it is {forget}; if it has moved: ipamc import {lock.cluster} --refresh dump.json"
    return error("IPC0435", node.shown[0].at, message, also=also, help=fix)
