"""The laws about what the live cluster shows: what is accepted agrees with it, or follows it where Cilium's operator decides; or few nodes are disputed."""

from __future__ import annotations

from itertools import pairwise

from ipamc.model.cidr import Block
from tests.support.history.checks import Row, Step


def judge_evidence(step: Step) -> None:
    """Assert every law about what nodes show."""
    few_nodes_are_disputed_and_get_nothing(step)
    no_shown_address_has_two_owners(step)
    nodes_show_what_the_lock_has_for_them(step)
    pod_cidrs_are_the_held_blocks(step)
    node_and_cilium_node_agree(step)
    lines_follow_the_operator(step)
    running_nodes_are_not_placed_blindly(step)
    most_nodes_show_some_of_their_blocks(step)


def few_nodes_are_disputed_and_get_nothing(step: Step) -> None:
    """They keep the lines that they have, and get no other that nobody asked for; they show what they do not hold, or others show what they hold."""
    assert len(step.disputed) <= max(3, len(step.world.nodes) * 5 // 100), step.disputed
    shown = list(step.world.evidence())
    if step.world.mode == "kubernetes":  # where the Node counts, and its CiliumNode has the same
        shown += [(name, block) for name, its in step.world.cilium_nodes.items() for block, _ in its]
    for node in step.disputed:
        mine = [row for row in step.before if row.node == node]
        had = {row.block: "released" if step.overtaken(row) else row.state for row in mine}
        has = {row.block: row.state for row in step.after if row.node == node}
        known, (in_use, _) = step.world.nodes[node], _lines(step, node)
        if step.world.mode == "kubernetes" and known.pod_cidrs and set(known.pod_cidrs) < in_use:
            continue  # it is owed another family, and its Node cannot get one
        asked = step.consent.renumber or step.consent.settle or step.consent.adopt
        assert asked or has.items() <= had.items(), f"{node} had {had}, and has {has}"
        assert any(
            not _covered(block, in_use) if who == node else any(each.overlaps(block) for each in has)
            for who, block in shown
        ), f"{node} has {has}, and the cluster shows {shown}"


def no_shown_address_has_two_owners(step: Step) -> None:
    """Neither two nodes show an address, nor has the lock a line of another node over it, in any state but released, if they are not disputed."""
    shown = sorted(step.world.evidence(), key=lambda pair: pair[1])
    for (one, block), (other, inner) in pairwise(shown):
        assert one == other or not block.overlaps(inner), f"{one} and {other} show {inner}"
    for node, block in shown:
        known = node in step.world.nodes and node not in step.disputed  # else it is a warning
        for row in step.after if known else ():
            others = row.node != node and row.state != "released" and row.block.overlaps(block)
            assert not others, f"{node} shows {block}, and there is {row}"


def nodes_show_what_the_lock_has_for_them(step: Step) -> None:
    """Of a node of the inventory everything that is shown is held or pending; or it shows the blocks that it was moved from."""
    world = step.world
    ours = world.operators() if world.mode == "multi-pool" else set()
    holds = world.spec.get("unpooled") == "hold"  # then a block outside of every pool is the node's, too
    for node in world.nodes.keys() - step.disputed:
        pools = dict(world.cilium_nodes.get(node, ()))
        known = [
            block
            for block, name in pools.items()
            if (world.owner(block) or name) in world.pools or (holds and not world.owner(block))
        ]
        assert known or not pools or world.mode != "multi-pool", f"{node} shows nothing of this cluster"
        shown = [
            block
            for block in (*world.shown(node), *world.addresses.get(node, ()))
            if world.mode != "multi-pool"
            or ((pool := world.owner(block) or pools[block]) in world.pools and pool not in ours)
        ]
        in_use, former = _lines(step, node)
        strays = [block for block in shown if not _covered(block, in_use)]
        assert all(_covered(block, former) for block in strays), f"{node} shows {strays}"


def pod_cidrs_are_the_held_blocks(step: Step) -> None:
    """A Node has exactly its held blocks, the first family first: it cannot get others; unless it was moved and is to be created again."""
    world = step.world
    for name, node in world.nodes.items():
        if world.mode != "kubernetes" or not node.pod_cidrs or name in step.disputed:
            continue
        held = [row.block for row in step.after if row.node == name and row.state == "held"]
        held.sort(key=lambda block: world.families.index(block.family))
        in_use, former = _lines(step, name)
        moved = set(node.pod_cidrs) & former and set(node.pod_cidrs) <= in_use | former
        assert held == node.pod_cidrs or moved, f"{name} has {node.pod_cidrs}, and holds {held}"


def node_and_cilium_node_agree(step: Step) -> None:
    """Where the podCIDRs of Nodes count, in the cluster's families; of a node that was moved, one of the two may be a step behind."""
    for name, node in step.world.nodes.items():
        other = [block for block, _ in step.world.cilium_nodes.get(name, ())]
        if step.world.mode != "kubernetes" or not node.pod_cidrs or not other or name in step.disputed:
            continue
        in_use, former = _lines(step, name)
        for family in step.world.families:
            one, two = ({each for each in some if each.family == family} for some in (node.pod_cidrs, other))
            shown = one | two
            assert one == two or (shown & former and shown <= in_use | former), f"{name} shows {shown}"


def lines_follow_the_operator(step: Step) -> None:
    """A node that shows a block of the operator's holds exactly what it shows of these pools; in a mode of one block, of that family."""
    world = step.world
    for node in world.nodes.keys() - step.disputed:
        given = set(world.given(node))
        held = {row.block for row in step.after if (row.node, row.state) == (node, "held")}
        if world.mode == "multi-pool" and given:
            theirs = {row.block for row in step.after if row.block in held and _is_the_operators(row, step)}
            assert theirs == given, f"{node} shows {given}, and holds {theirs}"
        elif given - held:
            assert given - held <= _lines(step, node)[1], f"{node} shows {given}, and holds {held}"


def running_nodes_are_not_placed_blindly(step: Step) -> None:
    """A running node gets its first block only if its CiliumNode says that it has none yet, or somebody else does."""
    world = step.world
    had = {(row.node, row.block) for row in step.before if row.state != "released"}
    for name, node in world.nodes.items():
        told = name in world.cilium_nodes or name in world.addresses or step.consent.no_pods & {"all", name}
        if world.mode == "kubernetes" or not (node.live and node.ready) or told:
            continue
        held = [row for row in step.after if (row.node, row.state) == (name, "held")]
        assert not held or any((name, row.block) in had for row in held), held


def most_nodes_show_some_of_their_blocks(step: Step) -> None:
    """Where the lock follows: else the CiliumNodes are of another cluster, unless somebody knows better."""
    strange = []
    for node in step.world.nodes:
        had = {row.block for row in step.before if (row.node, row.state) == (node, "held")}
        has = {row.block for row in step.after if (row.node, row.state) == (node, "held")}
        if had and step.world.given(node) and not had & has:
            strange.append(node)
    seen = step.world.nodes.keys() & step.world.cilium_nodes.keys()
    assert len(strange) <= max(3, len(seen) // 2) or "all" in step.consent.adopt, strange


def _lines(step: Step, node: str) -> tuple[set[Block], set[Block]]:
    """Return the blocks that a node has or is to have, and those that it was moved from."""
    mine = [row for row in step.after if row.node == node]
    in_use = {row.block for row in mine if row.state in {"held", "pending"}}
    return in_use, {row.block for row in mine if row.moved}


def _covered(block: Block, blocks: set[Block]) -> bool:
    """Tell whether a block is one of some; a single address may lie in one."""
    single = block.size == 1
    return block in blocks or (single and any(each.contains(block) for each in blocks))


def _is_the_operators(row: Row, step: Step) -> bool:
    return (step.world.owner(row.block) or row.pool) in step.world.operators()
