"""The lock against the inventory: what is held, what returns, is adopted, has left, and what is still lacking.

The rules are those of the lock: a held line of a node in the inventory is kept; a line never vanishes except by re-use; a leaver's line waits in
quarantine and is the first thing a returning node gets back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import msgspec

from ipamc.lock.consent import agreed
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Diagnostic, Span, error, names
from ipamc.model.lock import Consent, Line, Lock, State
from ipamc.model.plan import Reconciled, Stale, Want
from ipamc.model.range_index import RangeIndex, first_overlap
from ipamc.place.candidates import unmatched
from ipamc.place.reconcile.adopt import Evidence, adopt
from ipamc.place.reconcile.demand import held_by_node, lacks, why_lacking
from ipamc.place.reconcile.held_blocks import judge_held
from ipamc.place.reconcile.leavers import judge_leavers, judge_truncated
from ipamc.place.reconcile.renumber import groups_of, moves, settle_moves, torn_apart


def settle(
    cluster: Cluster,
    wants: tuple[Want, ...],
    lock: Lock,
    consent: Consent,
    today: str,
    *,
    locked: bool,
) -> tuple[Reconciled, list[Diagnostic]]:
    """Bring every line of the lock to its state of today, and list what is still to be placed.

    `today` is an ISO 8601 day in UTC. With `locked`, a lock that is out of date is refused with the reasons by name (rule 7). O(n log n).
    """
    range_index = RangeIndex(cluster.pools)
    evidence = Evidence(cluster)
    by_name = {want.node.name: want for want in wants}
    known = {line.node for line in lock.lines if line.state is State.HELD}

    lock, found = agreed(cluster, lock, consent)
    lines, stale = _names_follow(lock.lines, range_index, cluster)
    lines, leavers = _mark_leavers(lines, by_name, today)
    found += judge_leavers(cluster, lock, leavers, consent)
    stale += [Stale("leaver", node, "not in the inventory") for node in sorted(leavers)]
    lines, returned = _bring_back(lines, by_name, cluster, range_index, evidence)
    stale += [Stale("returning", line.node, str(line.block)) for line in returned]
    lines, moved, more = settle_moves(cluster, lock, lines, by_name, evidence, consent, today)
    found += [*more, *torn_apart(cluster, lock, lines)]
    stale += [Stale("settled", line.node, str(line.block)) for line in moved]
    held = [old for old, new in zip(lock.lines, lines, strict=True) if _in_use(old) and _in_use(new)]
    back = {line.block for line in returned}
    returned = [line for line in lines if line.block in back and _in_use(line)]

    lines, adopted, more = adopt(cluster, lock, lines, by_name, evidence, range_index)
    stale += [Stale("newcomer", line.node, f"already has {line.block}") for line in adopted]
    found += more
    found += judge_held(cluster, by_name, lock, (*returned, *adopted), range_index, new=True)
    moving, more = moves(cluster, lock, lines, by_name, range_index, consent)
    found += more
    on_the_move = groups_of(cluster, lines, moving)
    found += judge_held(cluster, by_name, lock, held, range_index, on_the_move)

    mine = held_by_node(lines)
    found += unmatched(
        cluster, [want.node for want in wants if not want.offers and want.node.name not in mine]
    )
    lacking = tuple(lacks(cluster, wants, mine, range_index, on_the_move))
    stale += [why_lacking(each, known) for each in lacking]
    found += evidence.ghosts(lines)
    found += judge_truncated(cluster, consent, stale=bool(stale))
    if locked and stale:
        found += stale_lock(lock, stale)
    standing = Reconciled(
        lock=replace(lock, lines=tuple(lines)),
        held=mine,
        lacking=lacking,
        moving=tuple(moving),
        taken=evidence.taken(lines),
        origins={
            **{line.block: "returned" for line in returned},
            **{line.block: "adopted" for line in adopted},
        },
        stale=tuple(stale),
    )
    return standing, found


def _in_use(line: Line) -> bool:
    return line.in_use


def _names_follow(
    lines: Iterable[Line], range_index: RangeIndex, cluster: Cluster
) -> tuple[list[Line], list[Stale]]:
    """Give each line the name of the pool whose range contains it: renaming or splitting a pool moves nobody.

    Where the pool is gone, the old name stays as a record; only a held block outside every pool (`unpooled: hold`) loses it.
    """
    result: list[Line] = []
    stale: list[Stale] = []
    for line in lines:
        ground = range_index.of(line.block)
        gone = "" if line.state is State.HELD and cluster.unpooled == "hold" else line.pool
        name = ground.pool.name if ground else gone
        if name == line.pool:
            result.append(line)
        else:
            result.append(msgspec.structs.replace(line, pool=name))
            stale.append(
                Stale(
                    "renamed", line.node, f"{line.block}: pool {line.pool or 'none'} is now {name or 'none'}"
                )
            )
    return result, stale


def _mark_leavers(
    lines: list[Line], by_name: Mapping[str, Want], today: str
) -> tuple[list[Line], dict[str, list[Line]]]:
    """Mark held and pending lines of nodes that are not in the inventory as left today; give the leavers' lines by node."""
    leavers: dict[str, list[Line]] = defaultdict(list)
    result = []
    for line in lines:
        if line.in_use and line.node not in by_name:
            leavers[line.node].append(line)
            result.append(
                msgspec.structs.replace(
                    line, state=State.QUARANTINED, since=today, was_pending=line.state is State.PENDING
                )
            )
        else:
            result.append(line)
    return result, leavers


def _bring_back(
    lines: list[Line],
    by_name: Mapping[str, Want],
    cluster: Cluster,
    range_index: RangeIndex,
    evidence: Evidence,
) -> tuple[list[Line], list[Line]]:
    """Give returning nodes, for each family without a held line, what of theirs is still there and legal.

    In a one-block mode that is the line that the node shows, else the one left last; of one day, the lowest. Pools that no longer select the node, or
    are disabled, still count. A line that was `next` when its node left is again, beside what comes back.
    """
    have = {(line.node, line.block.family) for line in lines if line.state is State.HELD}
    coming: list[Line] = []
    back: dict[tuple[str, int], list[Line]] = defaultdict(list)
    for line in lines:
        if (
            line.state is State.QUARANTINED
            and not line.moved
            and line.node in by_name
            and (line.node, line.block.family) not in have
            and legal(line.block, cluster, range_index)
        ):
            if line.was_pending:
                coming.append(line)
            else:
                back[line.node, line.block.family].append(line)
    chosen: set[Block] = set()
    for (node, _), candidates in back.items():
        if cluster.mode.one_block:
            shown = {claim.block for claim in evidence.of(by_name[node].node)}
            some = [line for line in candidates if line.block in shown] or candidates
            latest = max(line.since for line in some)
            chosen.add(min(line.block for line in some if line.since == latest))
        else:
            chosen.update(line.block for line in candidates)
    groups = {
        line.key(one_block=cluster.mode.one_block)
        for some in back.values()
        for line in some
        if line.block in chosen
    }
    waiting = {line.block for line in coming if line.key(one_block=cluster.mode.one_block) in groups}
    chosen |= waiting
    result = [
        Line(
            block=line.block,
            pool=line.pool,
            node=line.node,
            state=State.PENDING if line.block in waiting else State.HELD,
        )
        if line.block in chosen
        else line
        for line in lines
    ]
    return result, [line for line in result if line.block in chosen]


def legal(block: Block, cluster: Cluster, range_index: RangeIndex) -> bool:
    """Tell whether a node may hold this block: inside a range, outside the excluded world, of a family of the cluster (rule 2)."""
    return (
        block.family in cluster.families
        and range_index.of(block) is not None
        and first_overlap(cluster.excluded, block) is None
    )


_REASONS = {
    "newcomer": ("node is new", "nodes are new"),
    "leaver": ("node has left", "nodes have left"),
    "returning": ("block returns to its node", "blocks return to their nodes"),
    "settled": ("block was moved to", "blocks were moved to"),
    "renamed": ("block is in a pool of another name", "blocks are in pools of other names"),
    "lacking": ("node wants a block that it does not hold", "nodes want blocks that they do not hold"),
}


def stale_lock(lock: Lock, stale: list[Stale]) -> Iterator[Diagnostic]:
    """IPC0413: with `--locked`, the lock must be up to date.

    `--locked` only reads the lock, so that CI never allocates. A newcomer, a leaver, a returning node, a renamed pool or a want that is not held makes
    it stale; a day that passes never does. Run `ipamc lock`, review the lines, commit them.
    """
    for reason, (one, many) in _REASONS.items():
        concerned = sorted({each.node for each in stale if each.reason == reason})
        if concerned:
            yield error(
                "IPC0413",
                Span(lock.path),
                f"the lock is stale: {len(concerned):,} {one if len(concerned) == 1 else many}: {names(concerned)}",
                help=f"ipamc lock {lock.cluster}, then commit {lock.path}",
            )
