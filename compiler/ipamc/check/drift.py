"""Rules about what running nodes show against a plan, about pins, and about the Nodes of a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ipamc.check.evidence import which_case
from ipamc.lock.file import line_at
from ipamc.model.cidr import Block, address_text
from ipamc.model.cluster import CiliumNode, Mode, Node
from ipamc.model.diagnostics import Diagnostic, Related, count, error, names, warning
from ipamc.model.evidence import Evidence
from ipamc.model.lock import State
from ipamc.model.ownership import Law, Ownership
from ipamc.model.plan import Origin, Plan, ShownBlock

PAIRS = 4
"""Of so many nodes in one finding, both places are shown."""


def pod_cidrs_differ(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0503: a Node's `spec.podCIDRs` are the blocks that the lock holds for it."""
    cluster = plan.cluster
    if cluster.mode is not Mode.KUBERNETES and cluster.patch_nodes != "podCIDRs":
        return
    law = _law(plan)
    by_severity: dict[Make, list[Node]] = {warning: [], error: []}
    for node in cluster.nodes:
        if node.pod_cidrs and _wanted(plan, node) != node.pod_cidrs:
            shown = [ShownBlock(block, node.name, node.at) for block in node.pod_cidrs]
            by_severity[_severity(law.strays(shown))].append(node)
    for make, some in by_severity.items():
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
                *_held_at(plan, first.name),
                *(
                    related
                    for node in some[1:PAIRS]
                    for related in (
                        Related(node.at, f"node {node.name}: {_texts(node.pod_cidrs)}"),
                        *_held_at(plan, node.name),
                    )
                ),
            ],
            help="write ipFamilies in the order of the Nodes' podCIDRs"
            if same
            else f"drain {first.name}, run kubectl delete node {first.name}, let it join again, and export it again"
            if make is warning
            else f"{_which_case(plan, first.name)}drain {first.name}, run kubectl delete node {first.name}, and let it join again",
        )


def _which_case(plan: Plan, node: str) -> str:
    """Return the beginning of a way out: what the evidence and the lock may be.

    Of a node that was away, the lock has what it held before: once that is released, the node keeps what it
    shows.
    """
    returned = [
        line.block for line in plan.held.get(node, ()) if plan.origins.get(line.block) is Origin.RETURNED
    ]
    if returned:
        releases = " ".join(f"--release {block}" for block in returned)
        return (
            f"if {node} was away, and runs with what it shows: ipamc lock {plan.cluster.name} {releases}; "
            "if this dump is of another cluster, replace it; else "
        )
    return which_case(plan.lock)


def _wanted(plan: Plan, node: Node) -> tuple[Block, ...]:
    """Return the podCIDRs that the lock means for a node: its held blocks, in the order of `ipFamilies`."""
    lines = plan.held.get(node.name, ())
    return tuple(
        line.block for family in plan.cluster.families for line in lines if line.block.family == family
    )


def cilium_node_differs(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0513: a CiliumNode shows no other blocks than the lock has for its node."""
    cluster = plan.cluster
    if not cluster.cilium_nodes:
        return
    law, evidence = _law(plan), Evidence(cluster, plan.lock.lines)
    nodes = {node.name: node for node in cluster.nodes}
    by_severity: dict[Make, list[tuple[Node, CiliumNode, list[ShownBlock]]]] = {warning: [], error: []}
    for seen in cluster.cilium_nodes:
        found = nodes.get(seen.name)
        if found is None or (cluster.mode is Mode.KUBERNETES and found.pod_cidrs):
            continue  # nobody's, or the Node counts
        differ = [pair for pair in law.strays(evidence.by(seen)) if pair[1] in SEVERITY]
        if differ:
            by_severity[_severity(differ)].append((found, seen, [shown for shown, _ in differ]))
    for make, some in by_severity.items():
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
                *(_held_at(plan, node.name) or [Related(node.at, "the node is here")]),
                *(
                    related
                    for node, seen, strays in some[1:PAIRS]
                    for related in (
                        Related(seen.at, f"CiliumNode {node.name} shows {_shown(strays)}"),
                        *_held_at(plan, node.name),
                    )
                ),
            ],
            help=f"if {node.name} has moved since: ipamc import {cluster.name} --refresh dump.json, with a new dump; if not: {drain}"
            if make is warning and Ownership.OWN not in map(law.of, evidence.by(seen))
            else f"apply, and export its CiliumNode again; if it shows that then: {drain}"
            if make is warning
            else f"{_which_case(plan, node.name)}{drain}",
        )


Make = Callable[..., Diagnostic]
SEVERITY: Mapping[Ownership, Make] = {
    Ownership.ANOTHERS: error,
    Ownership.STRAY: error,
    Ownership.FOREIGN: error,
    Ownership.FORMER: warning,  # the node has not moved yet
}
"""What a block means that a node shows and does not hold, the worst first. The operator's are followed."""


def _severity(strays: Iterable[tuple[ShownBlock, Ownership]]) -> Make:
    """Return the worst of some; nothing but the order differs where there are none."""
    found = {SEVERITY.get(owner, error) for _, owner in strays}
    return warning if found == {warning} else error


def _law(plan: Plan) -> Law:
    return Law(plan.cluster, plan.lock.lines, plan.operator_pools)


def _held_at(plan: Plan, name: str) -> list[Related]:
    """Return the row of the first line that a node holds."""
    held = next(iter(plan.held.get(name, ())), None)
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


def several_pod_cidrs(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0505: a node whose Node object is rendered has one block of each family."""
    if plan.cluster.patch_nodes == "none" or plan.cluster.mode.one_block:
        return
    several = [
        name for name, lines in plan.held.items() if len({line.block.family for line in lines}) < len(lines)
    ]
    if several:
        message = (
            f"{count(len(several), 'node')} with several blocks of one family, which patchNodes: "
            f"{plan.cluster.patch_nodes} does not allow: {names(several)}"
        )
        yield error("IPC0505", plan.cluster.field("spec", "patchNodes"), message, help="set patchNodes: none")


def pin_not_held(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0309: a pinned node holds another block."""
    if not any(pool.pins for pool in plan.cluster.pools):
        return
    inventory = {node.name for node in plan.cluster.nodes}
    pending: dict[str, list[Block]] = defaultdict(list)
    for line in plan.lock.lines:
        if line.state is State.PENDING:
            pending[line.node].append(line.block)
    for pool in plan.cluster.pools:
        for name, pins in sorted(pool.pins.items()):
            blocks = {*(line.block for line in plan.held.get(name, ())), *pending.get(name, ())}
            for pin in pins if name in inventory and not all(pin.block in blocks for pin in pins) else ():
                others = sorted(block for block in blocks if block.family == pin.block.family)
                if others and pin.block not in blocks:
                    message = f"node {name} is pinned to {pin.block} but holds {', '.join(map(str, others))}"
                    fix = f"move the node: ipamc lock {plan.cluster.name} --renumber {name}"
                    yield warning("IPC0309", pin.at, message, help=fix)


def node_without_uid(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0554: a node whose Node object is rendered has a uid."""
    cluster = plan.cluster
    if cluster.patch_nodes == "none" or cluster.node_objects == "create":
        return
    without = [node for node in cluster.nodes if not node.uid and not node.planned and node.name in plan.held]
    if without:
        message = (
            f"{count(len(without), 'node')} without a uid, which rendered Node objects need: "
            f"{names(node.name for node in without)}"
        )
        also = [Related(cluster.field("spec", "patchNodes"), f"patchNodes is {cluster.patch_nodes}")]
        fix = (
            "write planned: true for a node to come; for nodes that run, bring their uids in: ipamc import "
            f"{cluster.name} --refresh dump.json; or write output: {{nodeObjects: create}}"
        )
        yield error("IPC0554", without[0].at, message, also=also, help=fix)
