"""Compares the blocks that running nodes show with the lock: adopted, followed, or a conflict (rule 6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ipamc.check.evidence import already_given, in_one_block, several_blocks, shown_twice
from ipamc.model.address_sets import index_around, lines_over, overlaps
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Diagnostic, error, warning
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Line, State
from ipamc.model.ownership import Blocks, Ownership
from ipamc.model.plan import NodeState, Origin, ShownBlock
from ipamc.place.reconcile.context import Context
from ipamc.place.reconcile.transitions import as_state, quarantined


def release_overtaken(context: Context, evidence: Evidence) -> Context:
    """Release lines over blocks that Cilium's operator gave to other nodes. O(shown blocks log lines).
    If the line's own node also shows its block, the line stays: that is a conflict.
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
    lines = tuple(as_state(State.RELEASED, line) if line.block in gone else line for line in lines)
    overtaken = frozenset(line.node for line in gone.values())
    return replace(context, lock=replace(context.lock, lines=lines), overtaken=overtaken)


def make_room(context: Context, evidence: Evidence) -> Context:
    """Free the blocks that nodes show and adopt by consent: those of planned nodes, and quarantined ones.
    A planned node gets another block. If the adopting node held none, that block first goes into quarantine,
    because the law of a change lets no block go from a node to a new one in one step.
    """
    if not context.consent.adopt:
        return context
    lines, every = context.lock.lines, list(evidence.every())
    shows = {each.node for each in every}
    idle = {node.name for node in context.cluster.nodes if node.planned} - shows
    holders = {(line.node, line.block.family) for line in lines if line.in_use}
    now: dict[Block, Line] = {}
    for each in every:
        if context.consent.adopts(each.node) and context.ownership.of(each) is Ownership.ANOTHERS:
            for line in context.ownership.others(each):
                if line.state is State.QUARANTINED and not (line.moved and line.since == context.today):
                    now[line.block] = as_state(State.RELEASED, line)
                elif line.node in idle:
                    swaps = (each.node, line.block.family) in holders
                    moves = quarantined(line, context.today, moved=True)
                    now[line.block] = as_state(State.RELEASED, line) if swaps else moves
    found = tuple(now.get(line.block, line) for line in lines) if now else lines
    return replace(context, lock=replace(context.lock, lines=found)) if now else context


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
    # Nodes may swap their blocks by consent.
    adopting = {line.node for line, _ in pairs if context.consent.adopts(line.node)}
    left = {line.block for node in nodes if node.name in adopting for line in node.lines if line.moved}
    swapped = {(block, node) for block in left & new for node in adopting}
    over_others = [
        Conflict(line, shown, over)
        for line, shown in pairs
        for over in lines_over(lines, line.block)
        if not (_is_own(over, line) or over.state is State.RELEASED or (over.block, line.node) in swapped)
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


def refused(
    context: Context, over_others: Sequence[Conflict], evidence: Evidence, *, dispute: bool
) -> Iterator[Diagnostic]:
    """Yield why nodes adopt no block: warnings in a `dispute`, unless the other node shows its block, too, or
    somebody said that the node adopts the block of a running one.
    """
    shows = {(each.block, each.node) for each in evidence.every()} if over_others else set()
    clash = any((each.over.block, each.over.node) in shows for each in over_others)
    for line, shown, over in over_others:
        told = over.in_use and context.consent.adopts(line.node)
        make = warning if dispute and not (clash or told) else error
        yield already_given(context.cluster, context.lock, shown, line.block, over, make=make)


def _is_own(over: Line, line: Line) -> bool:
    """Return whether an adopted line replaces one of its node."""
    return over.node == line.node and (over.block == line.block or over.state is State.QUARANTINED)


def _of_movers(nodes: Iterable[NodeState], context: Context) -> Iterator[ShownBlock]:
    """Yield shown blocks of nodes in one-block modes, in families in which they show their pending block, or
    adopt another one.
    """
    for node in nodes if context.one_block else ():
        adopted = [line.block for line in node.held if node.origins.get(line.block) is Origin.ADOPTED]
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
) -> Iterator[Diagnostic]:
    """Yield blocks that two nodes show, and lines under blocks of CiliumNodes without a node. O(n log n).
    `nodes` are those that may show other blocks than the lock has for them; some adopt nothing.
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
    for shown in strangers:
        for line in lines_over(lines, shown.block):
            if line.node != shown.node and line.state is not State.RELEASED:
                yield already_given(context.cluster, context.lock, shown, shown.block, line, stranger=True)
