"""Nodes get other blocks: all targets are reserved first, then waves are drained, settled and moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from ipamc.model.cluster import CiliumNode
from ipamc.model.diagnostics import count, names
from ipamc.model.lock import Line, State
from ipamc.model.plan import Plan
from ipamc.review.runbook.commands import Commands
from ipamc.review.runbook.common import (
    FEW,
    applied,
    audited,
    cordoned,
    drained,
    merged,
    refreshed,
    shown,
    uncordoned,
    up_to_date,
)
from ipamc.review.runbook.new_blocks import agents_read_nodes, is_made_anew, joined_again, moved
from ipamc.review.runbook.values import Check, Cut, Phase, Runbook, Step, Wave, Where, alone, waves

Blocks = Mapping[str, Sequence[Line]]
"""Lines by node."""


def pending_of(plan: Plan) -> Blocks:
    """Return the pending lines of each node that has some."""
    found: dict[str, list[Line]] = defaultdict(list)
    for line in plan.lock.lines:
        if line.state is State.PENDING:
            found[line.node].append(line)
    return found


def renumber(
    plan: Plan, run: Commands, cut: Cut, *, asked: Sequence[str] = (), settled: Collection[str] = ()
) -> Runbook:
    """Return the steps for the nodes that have a pending line in a plan, or whose renumber is settled.

    `asked`: what `--renumber` is to be given, if the plan was made with this consent and the lock has no
    pending lines yet. `settled`: nodes that are still to move to the block that they hold.
    """
    pending = pending_of(plan)
    phases = [reserved(run, pending, asked)] if asked else []
    if settled:
        phases.append(_settled(plan, run, settled, cut))
    if pending:
        phases.append(moving(plan, run, pending, cut))
    phases += inventory(run)
    nodes = {*pending, *settled}
    return Runbook(
        cluster=run.name,
        change="renumber",
        title=f"Renumber {count(len(nodes), 'node')} of {run.name}",
        about=tuple(_about(plan, run, pending, asked)),
        phases=tuple(phases),
        way_back="before a wave is settled: uncordon its nodes, and cancel their pending blocks by a merge of "
        f"{run.lock('--release', 'NODE')}. After that a node goes on with its new block; its old one is in quarantine, "
        "and does not come back to it",
    )


def _about(plan: Plan, run: Commands, pending: Blocks, asked: Sequence[str]) -> Iterator[str]:
    if asked and pending:
        yield "the blocks below are those that the lock gives today; after the first merge print this runbook again, without --change"
    yield from _moves(plan, pending)
    yield "a pending block is reserved and rendered nowhere, so other changes may be merged and applied between any two steps"
    if run.cluster.shared_pools:
        yield "in this mode Cilium's operator gives the blocks: a seed is taken only if it is there before the agent asks"


def _moves(plan: Plan, pending: Blocks) -> Iterator[str]:
    one = plan.cluster.mode.one_block
    for node, lines in sorted(pending.items()) if len(pending) <= FEW else ():
        keys = {line.key(one_block=one) for line in lines}
        old = [str(line.block) for line in plan.held.get(node, ()) if line.key(one_block=one) in keys]
        yield f"node {node} moves from {', '.join(old) or 'no block'} to {', '.join(str(line.block) for line in lines)}"


def reserved(run: Commands, pending: Blocks, asked: Sequence[str]) -> Phase:
    """Return the phase in which all targets are reserved by one merge."""
    number = str(sum(map(len, pending.values())))
    reserve = Step(
        key="reserve",
        title="Look at the pending lines",
        why="all of them are reserved before the first node moves, so no wave finds its pool full",
        check=Check(command=run.counted(sorted(pending), "pending"), expect=number) if pending else None,
        if_not="the lock changed since this was printed: print it again",
    )
    return alone(
        "Reserve all new blocks",
        *merged(
            run,
            "renumber",
            f"reserve new blocks for {count(len(pending), 'node')}",
            run.lock("--renumber", *asked),
            if_not="no room, or a node whose block nothing replaces: a finding names it. Nothing was written",
        ),
        reserve,
    )


def moving(plan: Plan, run: Commands, pending: Blocks, cut: Cut) -> Phase:
    """Return the phase in which the nodes move, wave by wave."""
    found = []
    for number, (name, nodes) in enumerate(waves(plan.cluster, pending, cut), 1):
        steps = _wave(plan, run, {node: pending[node] for node in nodes}, number, few=len(pending) <= FEW)
        found.append(Wave(name=name, nodes=nodes, steps=tuple(steps)))
    return Phase(title="Move the nodes, wave by wave", waves=tuple(found))


def inventory(run: Commands) -> list[Phase]:
    """Return the phase in which git learns that the nodes have moved; none where a refresh told it when they joined again."""
    if agents_read_nodes(run.cluster):
        return []
    why = "the CiliumNodes in git still show the former blocks, and each compile warns of that (IPC0513)"
    return [up_to_date(run, "renumbered", "the nodes have moved", why)]


def _wave(plan: Plan, run: Commands, blocks: Blocks, number: int, *, few: bool) -> Iterator[Step]:
    nodes, branch = tuple(sorted(blocks)), f"renumber-wave-{number}"
    yield cordoned(run, nodes)
    yield drained(run, nodes)
    yield from merged(
        run,
        branch,
        f"{branch}: the nodes are drained, and move to their new blocks",
        run.lock("--settle", *nodes),
        edits=_forgotten(run, nodes),
        why="first, because a Node that joins again gets what is rendered then, for good"
        if is_made_anew(run.cluster)
        else "",
    )
    if is_made_anew(run.cluster):
        yield from _joined_again(run, nodes, f"{branch}-joined")
    yield applied(
        run,
        if_not="it withholds a block while a pod of its node uses the old one: delete these pods, and run it again",
    )
    yield from _after_apply(plan, run, blocks, few=few)


def _joined_again(run: Commands, nodes: tuple[str, ...], branch: str) -> Iterator[Step]:
    yield from joined_again(run, nodes)
    yield from merged(
        run,
        branch,
        f"{branch}: the nodes joined again",
        *refreshed(run),
        why="a Node with another uid is rendered again; a job that refreshes the inventory may have done it",
    )


def _after_apply(
    plan: Plan, run: Commands, blocks: Blocks, *, few: bool, last: bool = True
) -> Iterator[Step]:
    """Yield the steps from the apply to the end of a wave; with `last`, all nodes are as the lock has them.

    Of `few` nodes in all waves, the blocks are looked at one by one; of more, the audit is the check.
    """
    nodes = tuple(sorted(blocks))
    final = {node: _all_of(plan, node, lines) for node, lines in blocks.items()}
    yield from moved(run, final) if not agents_read_nodes(run.cluster) else ()
    if few:
        yield from shown(
            run,
            final,
            "Look at the blocks that the nodes show",
            if_not="a node with its old block has not moved: keep it cordoned, and repeat the steps from the apply on",
        )
    if last:
        yield audited(run)
    if not agents_read_nodes(run.cluster):  # a Node that joined again is not cordoned
        yield uncordoned(run, nodes)


def _all_of(plan: Plan, node: str, new: Sequence[Line]) -> list[Line]:
    """Return what a node holds after its new lines replaced those of the same key."""
    one = plan.cluster.mode.one_block
    keys = {line.key(one_block=one) for line in new if line.state is State.PENDING}
    kept = [line for line in plan.held.get(node, ()) if line.key(one_block=one) not in keys]
    return sorted({*kept, *new}, key=lambda line: line.block)


def _forgotten(run: Commands, nodes: Sequence[str]) -> Iterator[Step]:
    """Yield the step that takes evidence away that keeps a renumber from being settled (IPC0435)."""
    if not run.cluster.shared_pools:
        return
    seen: list[CiliumNode] = [each for each in run.cluster.cilium_nodes if each.name in set(nodes)]
    if seen:
        places = sorted({each.at.path for each in seen})
        yield Step(
            key="forget-evidence",
            title=f"Remove the CiliumNodes of {names(each.name for each in seen)} from {', '.join(places)}",
            why="where the operator decides, a CiliumNode that shows the old block keeps it from being settled",
            where=Where.EDITOR,
            edit="\n".join(f"remove: kind CiliumNode, metadata.name {each.name}" for each in seen),
        )


def _settled(plan: Plan, run: Commands, nodes: Collection[str], cut: Cut) -> Phase:
    """Return the phase for nodes whose renumber is settled in the lock, and that are still to move."""
    found = []
    groups = list(waves(plan.cluster, nodes, cut))
    for number, (name, some) in enumerate(groups, 1):
        blocks = {node: list(plan.held.get(node, ())) for node in some}
        steps = [cordoned(run, some), drained(run, some)]
        if is_made_anew(run.cluster):
            steps += _joined_again(run, some, f"joined-again-wave-{number}")
        steps.append(applied(run))
        # Nodes of later waves still show blocks that the lock has no more for them: an audit would tell.
        steps += _after_apply(plan, run, blocks, few=len(nodes) <= FEW, last=number == len(groups))
        found.append(Wave(name=name, nodes=some, steps=tuple(steps)))
    return Phase(title="Move the nodes that are settled already", waves=tuple(found))
