"""Compares the blocks that running nodes show with the lock: adopted, followed, or a conflict (rule 6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ipamc.check.evidence import already_given, in_one_block, several_blocks, shown_twice
from ipamc.check.held_blocks import UNTIL_MOVED
from ipamc.model.address_sets import index_around, lines_over, overlaps
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Diagnostic, error, warning
from ipamc.model.evidence import Evidence
from ipamc.model.limits import NAMES_SHOWN
from ipamc.model.lock import Line, State
from ipamc.model.ownership import Blocks, Ownership, OwnershipRules
from ipamc.model.plan import NodeState, Origin, ShownBlock
from ipamc.place.reconcile.context import Context
from ipamc.place.reconcile.transitions import as_state, quarantined


def release_overtaken(context: Context, evidence: Evidence) -> Context:
    """Release lines over blocks that Cilium's operator gave to other nodes. O(shown blocks log lines).
    If the line's own node also shows its block, or has pods there, the line stays: that is a conflict.
    """
    if not context.operator_pools or not context.cluster.cilium_nodes:
        return context
    lines, shown = context.lock.lines, list(evidence.every())
    own = {(block.block, block.node) for block in shown}
    gone: dict[Block, Line] = {}
    for block in shown:
        if context.ownership.operator_gave(block):
            for line in lines_over(lines, block.block):
                others = line.node != block.node and (line.block, line.node) not in own
                if others and line.state is not State.RELEASED:
                    gone[line.block] = line
    if not gone:
        return context
    used = {(each.block, each.node) for each in evidence.strays(OwnershipRules(context.cluster, ()))}
    gone = {block: line for block, line in gone.items() if (block, line.node) not in used}
    lines = tuple(as_state(State.RELEASED, line) if line.block in gone else line for line in lines)
    overtaken = frozenset(line.node for line in gone.values())
    return replace(context, lock=replace(context.lock, lines=lines), overtaken=overtaken)


def make_room(context: Context, evidence: Evidence) -> Context:
    """Free the blocks that nodes show and adopt by consent: those of planned nodes, of nodes that adopt
    another one, and pending and quarantined ones. Who held it gets another block, if it adopts none.

    The law of a change lets a held block go only to a node that leaves its own one in quarantine
    (`law/change.py`, "adopted"). So the block of a planned node first goes into quarantine if the adopting
    node held none, and a node whose block is given away takes no held one in the same step.
    """
    if not context.consent.adopt:
        return context
    lines, every = context.lock.lines, list(evidence.every())
    shown = {(each.node, each.block.family): each for each in every}
    planned = {node.name for node in context.cluster.nodes if node.planned}
    holders = {(line.node, line.block.family) for line in lines if line.in_use}
    now: dict[Block, Line] = {}
    vacated, took = set[str](), set[str]()
    for each in every:
        if context.consent.adopts(each.node) and context.ownership.of(each) is Ownership.ANOTHERS:
            for line in context.ownership.others(each):
                its = shown.get((line.node, line.block.family))
                left = line.node in planned if its is None else _leaves(line, its, context)
                if line.state is not State.HELD:
                    now[line.block] = as_state(State.RELEASED, line)
                elif left and (each.node, line.block.family) not in holders:
                    now[line.block] = quarantined(line, context.today, moved=True)
                elif left and each.node not in vacated and line.node not in took:
                    now[line.block] = as_state(State.RELEASED, line)
                    vacated.add(line.node)
                    took.add(each.node)
    if not now:
        return context
    found = tuple(now.get(line.block, line) for line in lines)
    lock = replace(context.lock, lines=found)
    return replace(context, lock=lock, vacated=frozenset(vacated), took=frozenset(took))


def _leaves(line: Line, its: ShownBlock, context: Context) -> bool:
    """Return whether a node, by consent, adopts another block than its line."""
    return context.consent.adopts(line.node) and not its.block.overlaps(line.block)


class Conflict(NamedTuple):
    """A block that a node shows and cannot adopt, with the line of another node that is over it."""

    line: Line
    shown: ShownBlock
    over: Line


def merge_adopted(
    context: Context, nodes: list[NodeState]
) -> tuple[list[Line], list[Conflict], list[Diagnostic]]:
    """Return the lock's lines with today's states, conflicts, and wrong blocks. O(lines).
    An adopted block replaces released lines, the node's own quarantined lines, and its pending line of this
    block. Over any other line it is a conflict, and is not adopted.
    """
    pairs = sorted(_adopted(nodes), key=lambda pair: (pair[0].block, pair[0].node))
    new = {line.block for line, _ in pairs}
    changed = {
        line.block: line
        for node in nodes
        for line in node.lines
        if node.origins.get(line.block) is not Origin.ADOPTED
    }
    lines = list(context.lock.lines)
    if changed:
        lines = [changed.get(line.block, line) for line in lines]
    if not pairs:
        return lines, [], list(several_blocks(context.cluster, list(_of_movers(nodes, context))))
    # By consent, a node may have a block that another one leaves in the same change, if what it leaves
    # itself stays in quarantine: the law of a change (`law/change.py`, "adopted").
    left = {
        node.name: {line.block for line in node.lines if line.moved and line.since == context.today}
        for node in nodes
        if context.consent.adopts(node.name)
    }
    free = {block for name, its in left.items() if name not in context.took for block in its & new}
    takers = {name for name, blocks in left.items() if blocks and not blocks & free}
    over_others = [
        Conflict(line, shown, over)
        for line, shown in pairs
        for over in lines_over(lines, line.block)
        if not (
            _is_own(over, line)
            or over.state is State.RELEASED
            or (over.block in free and line.node in takers)
        )
    ]
    without = {each.line.node for each in over_others}
    pairs = [(line, shown) for line, shown in pairs if line.node not in without]
    gone: set[Block] = set()
    for line, _ in pairs:
        gone.update(over.block for over in lines_over(lines, line.block))
    shown = [*(shown for _, shown in pairs), *_of_movers(nodes, context)]
    found = list(several_blocks(context.cluster, shown))
    for (line, outer), (_, inner) in overlaps(pairs, lambda pair: pair[0].block):
        if not outer.block.overlaps(inner.block):  # else conflicts() reports it
            found.append(in_one_block(outer, inner, line.block))
    kept = [line for line in lines if line.block not in gone]
    return sorted([*kept, *(line for line, _ in pairs)], key=lambda line: line.block), over_others, found


def barred(nodes: Iterable[NodeState], context: Context) -> set[str]:
    """Return the names of nodes that show a block which no node may have, and do not adopt it by consent.
    Where the lock has no line yet, the pools are wrong, and not the nodes.
    """
    return {
        node.name
        for node in nodes
        if context.lock.lines and node.want and not context.consent.adopts(node.name)
        for line in node.held
        if node.origins.get(line.block) is Origin.ADOPTED
        and any(fault.rule in UNTIL_MOVED for fault in context.faults(node.want, line))
    }


def left_by(disputed: Collection[str], nodes: Iterable[NodeState]) -> Iterator[ShownBlock]:
    """Yield the blocks that disputed nodes left: they stay with them, as such a node may return there."""
    for node in nodes:
        if node.want and node.name in disputed:
            for line in node.lines:
                if line.state is State.QUARANTINED:
                    yield ShownBlock(line.block, line.node, node.want.node.at)


def refused(
    context: Context, over_others: Sequence[Conflict], evidence: Evidence, *, dispute: bool
) -> Iterator[Diagnostic]:
    """Yield why nodes adopt no block: warnings in a `dispute`, unless the other node shows its block, too, or
    somebody said that the node adopts a block that another one keeps.
    """
    every = list(evidence.every()) if over_others else []
    shows = {(each.block, each.node) for each in every}
    clash = any((each.over.block, each.over.node) in shows for each in over_others)
    stay = {each.line.node for each in over_others}
    written = {line.block: line for line in context.lock.lines if line.node in stay} if stay else {}
    by_family = {(each.node, each.block.family): each for each in every}
    for line, shown, found in over_others:
        over = written.get(found.block, found)
        waits = line.node in context.vacated  # it adopts in a later change
        told = over.in_use and context.consent.adopts(line.node) and not waits
        make = warning if dispute and not (clash or told) else error
        first = _goes_first(context, by_family, line.node, over)
        whole = replace(shown, block=line.block)
        yield already_given(context.cluster, context.lock, whole, over, make=make, first=first)


def _goes_first(context: Context, shown: Mapping[tuple[str, int], ShownBlock], node: str, over: Line) -> str:
    """Return the command that frees a line whose own node shows another block; "" if that is not known.
    At most NAMES_SHOWN nodes are looked at, each of which shows a block of the next one.
    """
    nodes, lock = [node], f"ipamc lock {context.cluster.name}"
    while over.in_use and over.node not in nodes and len(nodes) < NAMES_SHOWN:
        its = shown.get((over.node, over.block.family))
        if its is None or its.block.overlaps(over.block):
            break
        nodes.append(over.node)
        over = next(iter(context.ownership.others(its)), replace(over, state=State.RELEASED))
    return f"{lock} --adopt {' --adopt '.join(nodes[-2:])}" if nodes[1:] else ""


def _is_own(over: Line, line: Line) -> bool:
    """Return whether an adopted line replaces one of its node."""
    return over.node == line.node and (over.block == line.block or over.state is State.QUARANTINED)


def _of_movers(nodes: Iterable[NodeState], context: Context) -> Iterator[ShownBlock]:
    """Yield shown blocks of nodes in one-block modes, in families in which they show their pending block, or
    adopt another one.
    """
    for node in nodes if context.one_block else ():
        adopted = {line.block for line in node.held if node.origins.get(line.block) is Origin.ADOPTED}
        families = {block.family for block in adopted}
        kept = Blocks(line.block for line in node.held if line.block not in adopted)
        yield from (each for each in node.shown if each.block.family in families and kept.fit(each))
        pending = [(line, shown) for line in node.pending for shown in node.shown]
        there = {shown.block.family for line, shown in pending if shown.fits(line.block)}
        yield from (shown for shown in node.shown if shown.block.family in there)


def _adopted(nodes: Iterable[NodeState]) -> Iterator[tuple[Line, ShownBlock]]:
    """Yield the lines that nodes adopt, each with (the first part of) the shown block."""
    for node in nodes:
        adopted = [line for line in node.held if node.origins.get(line.block) is Origin.ADOPTED]
        blocks = [line.block for line in adopted]
        first: dict[Block, ShownBlock] = {}
        for shown in node.shown if adopted else ():
            place = index_around(blocks, shown.block)
            if place is not None and shown.fits(blocks[place]):
                first.setdefault(blocks[place], shown)
        for line in adopted:  # of nested blocks, which conflict, one may have no line
            yield line, first.get(line.block) or next(each for each in node.shown if each.fits(line.block))


def conflicts(
    context: Context,
    nodes: list[NodeState],
    lines: list[Line],
    evidence: Evidence,
    without: Collection[str],
    *,
    dispute: bool,
) -> Iterator[Diagnostic]:
    """Yield blocks that two nodes show, and lines under blocks of CiliumNodes without a node. O(n log n).
    `nodes` are those that may show other blocks than the lock has for them; some adopt nothing. A line whose
    node does not show it, too, is a warning in a `dispute`.
    """
    strangers = list(evidence.without_node())
    if not strangers and not any(node.shown for node in nodes):
        return
    every = list(evidence.every())
    new = {*without, *(shown.node for shown in strangers)}
    new.update(node.name for node in nodes if Origin.ADOPTED in node.origins.values())
    held = {(line.block, line.node) for line in context.lock.lines if line.in_use}
    for outer, inner in overlaps(every, lambda shown: shown.block):
        pairs = ((outer, inner), (inner, outer))
        # else already_given() reports it
        if not any(one.node in new and (other.block, other.node) in held for one, other in pairs):
            yield shown_twice(context.cluster, outer, inner)
    shows = {(shown.block, shown.node) for shown in every} if strangers else set()
    for shown in strangers:
        for line in lines_over(lines, shown.block):
            if line.node != shown.node and line.state is not State.RELEASED:
                make = warning if dispute and (line.block, line.node) not in shows else error
                yield already_given(context.cluster, context.lock, shown, line, stranger=True, make=make)
