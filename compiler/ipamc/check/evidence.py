"""Rules about what the running cluster shows, against itself and against the lock (rule 6 of the lock)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ipamc.lock.file import line_at
from ipamc.model.cidr import Block, address_text
from ipamc.model.cilium.features import Capability
from ipamc.model.cilium.versions import can
from ipamc.model.cluster import CiliumNode, Cluster, Mode, Node
from ipamc.model.diagnostics import Diagnostic, Related, Span, count, error, names, warning
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Consent, Line, Lock, State
from ipamc.model.plan import NodeState, Plan, ShownBlock
from ipamc.model.range_index import RangeIndex

PAIRS = 4
"""Of so many nodes in one finding, both places are shown."""


def pod_cidrs_count(cluster: Cluster) -> bool:
    """Tell whether something reads the podCIDRs of Nodes: agents, our own patches, or a BGP speaker."""
    return (
        cluster.mode is Mode.KUBERNETES
        or cluster.patch_nodes == "podCIDRs"
        or (cluster.bgp == "metallb" and not can(cluster.cilium, Capability.METALLB_CILIUM_NODE))
    )


def node_and_cilium_node_differ(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0506: a Node and its CiliumNode show the same blocks.

    Where the podCIDRs of Nodes count (kubernetes mode, `patchNodes: podCIDRs`, a BGP speaker that announces
    them), one of the two is wrong: pods have addresses of one block, and routes lead to the other. ipamc does
    not guess which one the pods of a node use. Compare the addresses of its pods (`kubectl get pods -A -o
    wide`): drain a node whose pods use the other block, delete its Node and CiliumNode, and let it join again.
    """
    if not cluster.cilium_nodes or not pod_cidrs_count(cluster):
        return
    seen = {each.name: each for each in cluster.cilium_nodes}
    differ = [
        (node, other)
        for node in cluster.nodes
        if node.pod_cidrs
        and (other := seen.get(node.name))
        and other.blocks
        and sorted(node.pod_cidrs) != sorted(block for block, _ in other.blocks)
    ]
    if not differ:
        return
    (node, other), *_ = differ
    shown, others = _texts(node.pod_cidrs), _texts(block for block, _ in other.blocks)
    more = f"; {len(differ):,} nodes: {names(each.name for each, _ in differ)}" if differ[1:] else ""
    yield error(
        "IPC0506",
        node.at,
        f"node {node.name} has podCIDRs {shown}, but its CiliumNode has {others}{more}",
        also=[
            *(Related(each.at, f"CiliumNode {each.name}") for _, each in differ[:1]),
            *(
                related
                for here, there in differ[1:PAIRS]
                for related in (
                    Related(here.at, f"node {here.name}: {_texts(here.pod_cidrs)}"),
                    Related(
                        there.at, f"CiliumNode {there.name}: {_texts(block for block, _ in there.blocks)}"
                    ),
                )
            ),
        ],
        help=f"see which block the pods use: kubectl get pods -A -o wide --field-selector spec.nodeName={node.name}; "
        "drain the node, delete its Node and CiliumNode, and let it join again",
    )


def block_unknown(cluster: Cluster, nodes: Sequence[Node]) -> Iterator[Diagnostic]:
    """IPC0434: of a running node that the lock does not know, the CiliumNode is in the input.

    In every mode but kubernetes only the CiliumNode tells which block a running node has. Without it the node
    would get another block than its pods use. A node runs if it is Ready, or has the annotations or the
    condition that Cilium's agent sets; podCIDRs alone are of kube-controller-manager. Where no node has pods
    of Cilium's yet, as in a new cluster, say so with `ipamc lock --no-pods`.
    """
    if nodes:
        lock = f"ipamc lock {cluster.name} --no-pods"
        yield error(
            "IPC0434",
            nodes[0].at,
            f"{count(len(nodes), 'running node')} without a line in the lock and without a CiliumNode in the input: "
            f"{names(node.name for node in nodes)}",
            help="kubectl get nodes,ciliumnodes -o json > nodes.json, in place of the nodes here; "
            f"if they have no pods of Cilium's yet: {lock} all, or {lock} NODE for each",
        )


def no_pods_of_whom(cluster: Cluster, lock: Lock, consent: Consent) -> Iterator[Diagnostic]:
    """IPC0436: `--no-pods` names a node of the inventory.

    A consent that matches nothing is a typo, and is refused.
    """
    known = {node.name for node in cluster.nodes} if consent.no_pods else set()
    for name in sorted(consent.no_pods - {"all"} - known):
        yield error(
            "IPC0436",
            Span(lock.path),
            f"{name} is not in the inventory, so --no-pods says nothing about it",
            help="name a node of the inventory, or all",
        )


def pod_cidrs_differ(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0503: a Node's `spec.podCIDRs` are the blocks that the lock holds for it.

    The field is immutable: the apiserver answers 422 to other values, or Cilium uses the old ones. In
    kubernetes mode a node gets another block only if it is drained, deleted and joined again, and if
    kube-controller-manager does not set the field first (IPC0504). In other modes this concerns clusters with
    `patchNodes: podCIDRs`. While a Node shows the block from which the lock moved it, this is a warning, and
    the Node is not rendered.
    """
    cluster = plan.cluster
    if cluster.mode is not Mode.KUBERNETES and cluster.patch_nodes != "podCIDRs":
        return
    nodes = [node for node in cluster.nodes if node.pod_cidrs and _wanted(plan, node) != node.pod_cidrs]
    lines = _lines_of(plan, {node.name for node in nodes})
    moving = [node for node in nodes if _is_former(node.pod_cidrs, lines[node.name])]
    former = {node.name for node in moving}
    for some, make in ((moving, warning), ([node for node in nodes if node.name not in former], error)):
        if not some:
            continue
        first = some[0]
        wanted = _wanted(plan, first)
        same = sorted(wanted) == sorted(first.pod_cidrs)
        more = f"; {len(some):,} nodes: {names(node.name for node in some)}" if some[1:] else ""
        yield make(
            "IPC0503",
            first.at,
            f"node {first.name} has podCIDRs {_texts(first.pod_cidrs)}, but the lock holds "
            f"{_texts(wanted) or 'none'}; the field is immutable{more}",
            also=[
                *_held_at(plan, first.name, lines),
                *(
                    related
                    for node in some[1:PAIRS]
                    for related in (
                        Related(node.at, f"node {node.name}: {_texts(node.pod_cidrs)}"),
                        *_held_at(plan, node.name, lines),
                    )
                ),
            ],
            help="write ipFamilies in the order of the Nodes' podCIDRs"
            if same
            else f"drain {first.name}, run kubectl delete node {first.name}, let it join again, and export it again"
            if make is warning
            else f"if this lock was never applied, start again: delete {plan.lock.path} and rendered/, then ipamc compile; "
            f"if it was: drain {first.name}, run kubectl delete node {first.name}, and let it join again",
        )


def _wanted(plan: Plan, node: Node) -> tuple[Block, ...]:
    """Return the podCIDRs that the lock means for a node: its held blocks, in the order of `ipFamilies`."""
    lines = plan.held.get(node.name, ())
    return tuple(
        line.block for family in plan.cluster.families for line in lines if line.block.family == family
    )


def cilium_node_differs(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0513: a CiliumNode shows no other blocks than the lock has for its node.

    The CiliumNode shows which blocks a running node has. If other blocks are applied to it, its agent ignores
    them until it restarts, and from 1.19 on the operator reverts them; other nodes may get the blocks that it
    really uses. While it shows the block from which the lock moved the node, this is a warning. Where Cilium's
    operator decides (shared pools of multi-pool mode, `unlisted` pools), the lock follows the CiliumNode.
    """
    cluster = plan.cluster
    if not cluster.cilium_nodes:
        return
    differ = list(_differing(plan))
    lines = _lines_of(plan, {node.name for node, _, _ in differ})
    moving = [
        entry for entry in differ if _is_former([shown.block for shown in entry[2]], lines[entry[0].name])
    ]
    former = {node.name for node, _, _ in moving}
    for some, make in (
        (moving, warning),
        ([entry for entry in differ if entry[0].name not in former], error),
    ):
        if not some:
            continue
        node, seen, strays = some[0]
        held = _texts(line.block for line in plan.held.get(node.name, ()))
        more = f"; {len(some):,} nodes: {names(node.name for node, _, _ in some)}" if some[1:] else ""
        drain = f"drain {node.name}, run kubectl delete ciliumnode {node.name}, apply, restart its agent, and export its CiliumNode again"
        yield make(
            "IPC0513",
            seen.at,
            f"CiliumNode {node.name} shows {_shown(strays)}, but the lock holds {held or 'nothing'}{more}",
            also=[
                *(_held_at(plan, node.name, lines) or [Related(node.at, "the node is here")]),
                *(
                    related
                    for node, seen, strays in some[1:PAIRS]
                    for related in (
                        Related(seen.at, f"CiliumNode {node.name} shows {_shown(strays)}"),
                        *_held_at(plan, node.name, lines),
                    )
                ),
            ],
            help=drain
            if make is warning
            else f"if this lock was never applied, start again: delete {plan.lock.path} and rendered/, then ipamc compile; "
            f"if it was: {drain}",
        )


def _differing(plan: Plan) -> Iterator[tuple[Node, CiliumNode, list[ShownBlock]]]:
    """Yield the nodes whose CiliumNode shows blocks that are not theirs in the lock, with these blocks."""
    cluster = plan.cluster
    nodes = {node.name: node for node in cluster.nodes}
    evidence, ranges = Evidence(cluster), RangeIndex(cluster.pools)
    names_of_pools = {pool.name for pool in cluster.pools}
    pending: dict[str, list[Block]] = defaultdict(list)
    for line in plan.lock.lines:
        if line.state is State.PENDING:
            pending[line.node].append(line.block)
    for seen in cluster.cilium_nodes:
        node = nodes.get(seen.name)
        if node is None or (cluster.mode is Mode.KUBERNETES and node.pod_cidrs):
            continue  # nobody's, or the Node counts
        mine = [*(line.block for line in plan.held.get(node.name, ())), *pending.get(node.name, ())]
        strays = []
        for shown in evidence.by(seen):
            if any(shown.fits(block) for block in mine):
                continue
            found = ranges.of(shown.block)
            pool = found.pool.name if found else shown.pool
            foreign = cluster.mode is Mode.MULTI_POOL and not found and pool not in names_of_pools
            if not foreign and pool not in plan.operator_pools:
                strays.append(shown)
        if strays:
            yield node, seen, strays


def _lines_of(plan: Plan, nodes: set[str]) -> dict[str, list[Line]]:
    """Return all lines of some nodes. O(lines), where there are such nodes."""
    found: dict[str, list[Line]] = {name: [] for name in nodes}
    for line in plan.lock.lines if nodes else ():
        if line.node in found:
            found[line.node].append(line)
    return found


def _is_former(blocks: Iterable[Block], lines: Iterable[Line]) -> bool:
    """Tell whether a node shows blocks that the lock has for it, and such from which the lock moved it."""
    blocks, lines = list(blocks), list(lines)
    former = {line.block for line in lines if line.moved}
    known = former | {line.block for line in lines if line.in_use}
    return not former.isdisjoint(blocks) and known.issuperset(blocks)


def _held_at(plan: Plan, name: str, lines: dict[str, list[Line]]) -> list[Related]:
    """Return the row of the first line that a node holds."""
    held = next((line for line in lines[name] if line.state is State.HELD), None)
    if held is None or held not in plan.lock.written:
        return []
    return [Related(line_at(plan.lock, held), f"{name} holds {held.block} here")]


def _texts(blocks: Iterable[Block]) -> str:
    return ", ".join(map(str, blocks))


def _shown(blocks: Sequence[ShownBlock]) -> str:
    """Return blocks; of single addresses how many there are, and the first one."""
    parts = [shown.block for shown in blocks if shown.part]
    texts = [str(shown.block) for shown in blocks if not shown.part]
    if parts:
        first = address_text(parts[0].family, parts[0].first)
        texts.append(f"{count(sum(part.size for part in parts), 'address', 'addresses')} from {first} on")
    return ", ".join(texts)


def cilium_node_without_node(cluster: Cluster, shown: Iterable[ShownBlock]) -> Iterator[Diagnostic]:
    """IPC0424: a CiliumNode without a node keeps its blocks.

    A CiliumNode was read whose node is not in the inventory. Its blocks count as taken: the operator books
    them until it collects the object. Add the node to the inventory, or delete the CiliumNode. Blocks of an
    `unlisted` pool are as they should be.
    """
    families = [family for pool in cluster.pools if pool.unlisted for family in pool.families.values()]
    unlisted = [cidr.block for family in families for cidr in family.ranges]
    found = [each for each in shown if not any(block.contains(each.block) for block in unlisted)]
    if found:
        yield warning(
            "IPC0424",
            found[0].at,
            f"{count(len({each.node for each in found}), 'CiliumNode')} without a node in the inventory, blocks taken: "
            f"{names(f'{each.node} ({each.block})' for each in found)}",
            help="add the node to the inventory, or kubectl delete ciliumnode",
        )


def several_blocks(cluster: Cluster, adopted: Sequence[ShownBlock]) -> Iterator[Diagnostic]:
    """IPC0425: a node shows one block a family where the mode gives it one.

    Cilium routes every podCIDR of a node, but gives pods addresses of the first one of a family only. ipamc
    does not guess which of several blocks a running node uses: leave the one in use, or name it in the lock.
    """
    if not cluster.mode.one_block:
        return
    by_family: dict[tuple[str, int], list[ShownBlock]] = defaultdict(list)
    for shown in adopted:
        by_family[shown.node, shown.block.family].append(shown)
    for (node, family), blocks in by_family.items():
        if len(blocks) > 1:
            yield error(
                "IPC0425",
                blocks[0].at,
                f"node {node} shows {len(blocks)} IPv{family} blocks where {cluster.mode} mode gives one: "
                f"{', '.join(str(shown.block) for shown in blocks)}",
                help="keep the block that its pods use, or use a larger block, or multi-pool mode",
            )


def shown_twice(outer: ShownBlock, inner: ShownBlock) -> Diagnostic:
    """IPC0426: no two nodes show the same addresses.

    Two running nodes carry overlapping blocks: the cluster is broken already, and adopting both would write
    that down. Renumber one of them first.
    """
    return error(
        "IPC0426",
        inner.at,
        f"node {inner.node} shows {inner.block}, which overlaps {outer.block} of node {outer.node}",
        also=[Related(outer.at, f"{outer.node} shows {outer.block} here")],
        help="drain one of the two, delete its Node and CiliumNode, and let it join again",
    )


def in_one_block(one: ShownBlock, other: ShownBlock, block: Block) -> Diagnostic:
    """IPC0437: the single addresses that two nodes show are in two blocks of the pool.

    In crd mode a node has whole blocks, and gets the one around the addresses that its CiliumNode lists. Two
    nodes with addresses of one block cannot both have it: use a smaller `blockSize` (or size classes), or move
    one of the nodes.
    """
    return error(
        "IPC0437",
        other.at,
        f"node {other.node} shows {address_of(other)}, and node {one.node} {address_of(one)}: both are in block {block}",
        also=[Related(one.at, f"CiliumNode {one.node}")],
        help=f"use blocks smaller than /{block.prefix}, or drain one of the two and give it other addresses",
    )


def address_of(shown: ShownBlock) -> str:
    """Return the first address that is shown."""
    return address_text(shown.block.family, shown.block.first)


def already_given(lock: Lock, shown: ShownBlock, block: Block, line: Line) -> Diagnostic:
    """IPC0423: a block that a running node shows is not another node's in the lock.

    The running cluster and the lock disagree about who has these addresses. The lock is not changed; find out
    which is right. A line that waits in quarantine can be released once the old node is really gone. `block`
    is the node's block where single addresses are shown.
    """
    state = "quarantined, of" if line.since else "held by"
    way_out = (
        f"if {line.node} is really gone: ipamc lock {lock.cluster} --release {line.block}"
        if line.since
        else "find out which of the two nodes uses it; drain the other, delete its Node and CiliumNode, and let it join again"
    )
    return error(
        "IPC0423",
        shown.at,
        f"node {shown.node} shows {block}, which overlaps {line.block} {state} {line.node}",
        also=[Related(line_at(lock, line, otherwise=shown.at), f"{state} {line.node} here")],
        help=way_out,
    )


def settled_elsewhere(lock: Lock, node: NodeState, line: Line) -> Diagnostic:
    """IPC0435: a node is settled on the block that its CiliumNode shows, where the operator decides.

    In multi-pool mode Cilium's operator gives out the blocks of shared pools, and the lock follows the
    CiliumNodes in the input. `--settle` cannot say otherwise: export the CiliumNodes again after the node has
    moved, and the renumber settles itself.
    """
    shown = ", ".join(str(each.block) for each in node.shown)
    return error(
        "IPC0435",
        node.shown[0].at,
        f"{node.name} cannot be settled on {line.block}: its CiliumNode shows {shown}",
        also=[Related(line_at(lock, line), "its line")],
        help="kubectl get ciliumnodes -o json, once the node has moved; or remove the CiliumNode from the input",
    )
