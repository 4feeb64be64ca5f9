"""Rules about running nodes that differ from a plan, about pins, and about the Nodes of a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from ipamc.check.evidence import (
    adopt,
    apart,
    cidr_texts,
    node_and_cilium_node_differ,
    other_dump,
    pod_cidrs_count,
    too_many,
)
from ipamc.lock.file import line_at
from ipamc.model.cidr import Block, address_text
from ipamc.model.cluster import Mode, Scheme
from ipamc.model.diagnostics import Diagnostic, Related, and_others, count, error, note, several, warning
from ipamc.model.evidence import Evidence
from ipamc.model.follows import address_for
from ipamc.model.limits import MOST_PLACES
from ipamc.model.node import CiliumNode, Node
from ipamc.model.ownership import Ownership, OwnershipRules
from ipamc.model.plan import Plan, ShownBlock, pod_cidrs


class Drift(Struct, frozen=True, kw_only=True, dict=True):
    """The nodes of a plan that show other blocks than their lines, and the severity of their findings."""

    plan: Plan
    nodes: tuple[tuple[Node, bool], ...]
    """Nodes with other podCIDRs, and whether they just have not moved yet."""
    cilium_nodes: tuple[tuple[Node, CiliumNode, list[ShownBlock], bool], ...]
    """The same by their CiliumNodes, with the blocks that differ."""
    apart: tuple[tuple[Node, CiliumNode], ...]
    """Nodes and CiliumNodes that show different blocks, where both count."""

    @cached_property
    def reverse(self) -> bool:
        """Return whether no Node has podCIDRs in the order of the cluster's families."""
        both = (self.plan.cluster.nodes, (node for node, _ in self.nodes))
        every, differ = (sum(len(node.pod_cidrs) > 1 for node in nodes) for nodes in both)
        return every == differ

    def disputed(self) -> frozenset[str]:
        """Return the names of the disputed nodes: also those that cannot have what they just were given."""
        return self.plan.disputed | {
            node.name for node, late in self.nodes if not (late or self.is_order(node))
        }

    def is_order(self, node: Node) -> bool:
        """Return whether a Node has the blocks of its lines in another order, as all Nodes do."""
        return self.reverse and sorted(self.wanted(node)) == sorted(node.pod_cidrs)

    def wanted(self, node: Node) -> tuple[Block, ...]:
        """Return the podCIDRs of a node by its lines."""
        return pod_cidrs(self.plan.cluster, self.plan.held.get(node.name, ()))


def disagreeing(
    cluster: Scheme, ownership: OwnershipRules, shown: Iterable[Sequence[ShownBlock]]
) -> frozenset[str]:
    """Return the nodes that show other blocks than their lines, and those whose lines have such a block.
    `shown` are the blocks of each node. O(blocks log lines).
    """
    found = {node.name for node, _ in apart(cluster, ownership)}
    for blocks in shown:
        strays = [pair for pair in ownership.strays(blocks) if pair[1] in SEVERITY]
        if strays and not _is_late(strays):
            found.add(blocks[0].node)
            found.update(line.node for each, _ in strays for line in ownership.others(each) if line.in_use)
    return frozenset(found)


def find_drift(plan: Plan) -> Drift:
    """Compare a plan with what its nodes show. O(n log n)."""
    cluster = plan.cluster
    ownership = OwnershipRules(cluster, plan.lock.lines, plan.operator_pools)
    drift = Drift(plan=plan, nodes=(), cilium_nodes=(), apart=tuple(apart(cluster, ownership)))
    said = {node.name for node, _ in drift.apart}
    nodes = []
    if cluster.mode is Mode.KUBERNETES or cluster.patch_nodes == "podCIDRs":
        for node in cluster.nodes:
            if node.pod_cidrs and drift.wanted(node) != node.pod_cidrs and node.name not in said:
                shown = [ShownBlock(block, node.name, node.at) for block in node.pod_cidrs]
                if node.name not in plan.conflicting:
                    nodes.append((node, _is_late(ownership.strays(shown))))
    without = said - plan.held.keys()
    cilium_nodes = (each for each in _by_cilium_nodes(plan, ownership) if each[0].name not in without)
    return replace(drift, nodes=tuple(nodes), cilium_nodes=tuple(cilium_nodes))


def _by_cilium_nodes(
    plan: Plan, ownership: OwnershipRules
) -> Iterator[tuple[Node, CiliumNode, list[ShownBlock], bool]]:
    cluster = plan.cluster
    evidence = Evidence(cluster, plan.lock.lines)
    nodes = {node.name: node for node in cluster.nodes} if cluster.cilium_nodes else {}
    for seen in cluster.cilium_nodes:
        found = nodes.get(seen.name)
        if found is None or (cluster.mode is Mode.KUBERNETES and found.pod_cidrs):
            continue  # no node's block, or the Node counts
        differ = [pair for pair in ownership.strays(evidence.by(seen)) if pair[1] in SEVERITY]
        if differ and found.name not in plan.conflicting:
            yield found, seen, [shown for shown, _ in differ], _is_late(differ)


def check_drift(drift: Drift) -> Iterator[Diagnostic]:
    """Yield the findings about nodes that show other blocks than their lines."""
    make = error if too_many(drift.plan.cluster, drift.disputed()) else warning
    yield from pod_cidrs_differ(drift, make)
    yield from cilium_node_differs(drift, make)
    if drift.apart:
        yield node_and_cilium_node_differ(drift.plan.cluster, drift.plan.lock, drift.apart, make)


def pod_cidrs_differ(drift: Drift, disputed: Make) -> Iterator[Diagnostic]:
    """IPC0503: a Node's `spec.podCIDRs` are the blocks that the lock holds for it."""
    plan = drift.plan
    order = [node for node, _ in drift.nodes if drift.is_order(node)]
    late = [node for node, is_late in drift.nodes if is_late and node not in order]
    others = [node for node, is_late in drift.nodes if not is_late and node not in order]
    for make, some in ((error, order), (warning, late), (disputed, others)):
        if not some:
            continue
        first, name = some[0], some[0].name
        has = f"node {name} has podCIDRs {cidr_texts(first.pod_cidrs)}"
        holds = f"the lock holds {cidr_texts(drift.wanted(first)) or 'none'}; the field is immutable"
        message = f"{has}, but {holds}{and_others([node.name for node in some])}"
        also = _held_at(plan, name)
        for node in some[1:MOST_PLACES]:
            also.append(Related(node.at, f"node {node.name}: {cidr_texts(node.pod_cidrs)}"))
            also += _held_at(plan, node.name)
        drain = f"drain {name}, run kubectl delete node {name}"
        if some is order:
            fix = "write ipFamilies in the order of the Nodes' podCIDRs"
        elif some is late:
            fix = f"{drain}, let it join again, and export it again"
        else:
            less = set(first.pod_cidrs) <= set(drift.wanted(first))  # there is nothing to adopt
            fix = f"{'' if less else _which_case(plan, name, make)}{drain}, and let it join again"
        yield make("IPC0503", first.at, message, also=also, help=fix)


def _which_case(plan: Plan, node: str, make: Make) -> str:
    """Return the beginning of a fix: the possible relations of dump and lock."""
    return other_dump(plan.lock) if make is error else adopt(plan.lock, node)


def cilium_node_differs(drift: Drift, disputed: Make) -> Iterator[Diagnostic]:
    """IPC0513: a CiliumNode shows only blocks that the lock holds for its node."""
    plan = drift.plan
    cluster = plan.cluster
    ownership = OwnershipRules(cluster, plan.lock.lines, plan.operator_pools)
    evidence = Evidence(cluster, plan.lock.lines)
    for late in (True, False):
        some = [(node, seen, strays) for node, seen, strays, is_late in drift.cilium_nodes if is_late is late]
        if not some:
            continue
        make = warning if late else disputed
        node, seen, strays = some[0]
        name, held = node.name, cidr_texts(line.block for line in plan.held.get(node.name, ()))
        shows = f"CiliumNode {name} shows {_shown(strays)}"
        more = and_others([node.name for node, _, _ in some])
        also = _held_at(plan, name) or [Related(node.at, "the node is here")]
        for other, its, blocks in some[1:MOST_PLACES]:
            also.append(Related(its.at, f"CiliumNode {other.name} shows {_shown(blocks)}"))
            also += _held_at(plan, other.name)
        restart = "apply, restart its agent, and export its CiliumNode again"
        drain = f"drain {name}, run kubectl delete ciliumnode {name}, {restart}"
        if not late:
            foreign = strays[0].pool if ownership.is_foreign(strays[0]) else ""
            import_it = (
                f"if pods of {name} should use CiliumPodIPPool {foreign}: write it as a pool here; if not: "
            )
            fix = f"{import_it if foreign else _which_case(plan, name, make)}{drain}"
        elif Ownership.OWN in map(ownership.of, evidence.by(seen)):
            fix = f"apply, and export its CiliumNode again; if it still shows this: {drain}"
        else:
            refresh = f"ipamc import {cluster.name} --refresh dump.json"
            fix = f"if {name} has moved: {refresh}; if not: {drain}"
        message = f"{shows}, but the lock holds {held or 'nothing'}{more}"
        yield make("IPC0513", seen.at, message, also=also, help=fix)


Make = Callable[..., Diagnostic]
SEVERITY: Mapping[Ownership, Make] = {
    Ownership.ANOTHERS: error,
    Ownership.STRAY: error,
    Ownership.FOREIGN: error,
    Ownership.FORMER: warning,  # the node has not moved yet
}
"""Severities of blocks that a node shows and does not hold, the worst first. The operator's are followed."""


def _is_late(strays: Iterable[tuple[ShownBlock, Ownership]]) -> bool:
    """Return whether all of these blocks are from before a move, of which there are some."""
    return {SEVERITY.get(owner, error) for _, owner in strays} == {warning}


def _held_at(plan: Plan, name: str) -> list[Related]:
    """Return the place of the first line that a node holds."""
    held = next(iter(plan.held.get(name, ())), None)
    if held is None or held not in plan.lock.written:
        return []
    return [Related(line_at(plan.lock, held), f"{name} holds {held.block} here")]


def _shown(blocks: Sequence[ShownBlock]) -> str:
    """Return blocks as text; for single addresses, their number and the first one."""
    parts = [shown.block for shown in blocks if shown.part]
    texts = [str(shown.block) for shown in blocks if not shown.part]
    if parts:
        first = address_text(parts[0].family, parts[0].first)
        texts.append(f"{count(sum(part.size for part in parts), 'address', 'addresses')} from {first} on")
    return ", ".join(texts)


def several_pod_cidrs(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0505: a node with a rendered Node object has one block per IP family."""
    if plan.cluster.patch_nodes == "none" or plan.cluster.mode.one_block:
        return
    families = ((name, [line.block.family for line in lines]) for name, lines in plan.held.items())
    if nodes := [name for name, its in families if len(set(its)) < len(its)]:
        patch = f"patchNodes: {plan.cluster.patch_nodes}"
        message = several(nodes, "node", f"with several blocks of one family, which {patch} does not allow")
        yield error("IPC0505", plan.cluster.field("spec", "patchNodes"), message, help="set patchNodes: none")


def pin_not_held(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0309: a pinned node holds the block of its pin."""
    if not any(pool.pins for pool in plan.scheme.pools):
        return
    inventory = {node.name for node in plan.scheme.nodes}
    in_use: dict[str, set[Block]] = defaultdict(set)
    for line in plan.lock.lines:
        if line.in_use:
            in_use[line.node].add(line.block)
    for pool in plan.scheme.pools:
        for name, pins in sorted(pool.pins.items()):
            blocks = in_use.get(name, set())
            for pin in pins if name in inventory and not all(pin.block in blocks for pin in pins) else ():
                others = sorted(block for block in blocks if block.family == pin.block.family)
                if others and pin.block not in blocks:
                    address, holds = address_for(pool, pin.block), ", ".join(map(str, others))
                    message = f"node {name} is pinned to {pin.block} but holds {holds}"
                    if address:
                        message = f"node {name} holds {holds}, but {pin.block} follows its address {address}"
                    fix = f"move the node: ipamc lock {plan.scheme.name} --renumber {name}"
                    yield warning("IPC0309", pin.at, message, help=fix)


def node_without_uid(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0554: a node whose Node object is rendered has a uid."""
    cluster = plan.cluster
    if cluster.patch_nodes == "none" or cluster.node_objects == "create" or cluster.admission.assign:
        return
    without = [node for node in cluster.nodes if not node.uid and not node.planned and node.name in plan.held]
    if without:
        what = "without a uid, which rendered Node objects need"
        message = several([node.name for node in without], "node", what)
        also = [Related(cluster.field("spec", "patchNodes"), f"patchNodes is {cluster.patch_nodes}")]
        refresh = f"import the uids: ipamc import {cluster.name} --refresh dump.json"
        planned = f"write planned: true for future nodes; for running nodes, {refresh}"
        fix = f"{planned}; or write output: {{nodeObjects: create}}"
        yield error("IPC0554", without[0].at, message, also=also, help=fix)


def _by_hand(cluster: Scheme) -> list[Node]:
    """Return the nodes that were not exported from a cluster."""
    seen = cluster.cilium_nodes_by_name
    return [node for node in cluster.nodes if not (node.uid or node.live or node.name in seen)]


def node_not_exported(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0556: a node without a uid is `planned` if other nodes come from an import."""
    cluster = plan.cluster
    own = [node for node in _by_hand(cluster) if not node.planned]
    if own and any(node.uid for node in cluster.nodes) and not any(node_without_uid(plan)):
        what = "without a uid, which the next refresh removes"
        message = several([node.name for node in own], "node", what)
        refresh = f"for running nodes: ipamc import {cluster.name} --refresh dump.json"
        fix = f"write planned: true for future nodes; {refresh}"
        yield note("IPC0556", own[0].at, message, help=fix)


def unread_pod_cidrs(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0557: `podCIDRs` that you write by hand have an effect."""
    cluster = plan.cluster
    own = [] if pod_cidrs_count(cluster) else [node for node in _by_hand(cluster) if node.pod_cidrs]
    if own:
        node = own[0]
        what = "with podCIDRs, which nothing reads in this mode"
        message = several([each.name for each in own], "node", what)
        pin = f"pins: {{{node.name}: [{cidr_texts(node.pod_cidrs)}]}}"
        fix = f"to give {node.name} these blocks, pin them in its pool: {pin}"
        yield warning("IPC0557", node.at, message, help=fix)
