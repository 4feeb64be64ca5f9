"""Renumbering: a node gets a pending block by consent, and moves to it when it has been drained (rule 3).

Until then shards go on rendering the held block. A renumber settles, every family together, when the live cluster shows that the node moved, or when a
person says so: the pending line becomes held, the old one `left` with `moved`, which never returns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from ipamc.lock.consent import block_of
from ipamc.lock.file import line_at
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic, Span, error
from ipamc.model.lock import Consent, Key, Line, Lock, State
from ipamc.model.plan import Demand, Want
from ipamc.model.range_index import RangeIndex
from ipamc.place.reconcile.adopt import Evidence
from ipamc.place.reconcile.demand import needed


def settle_moves(
    cluster: Cluster,
    lock: Lock,
    lines: list[Line],
    by_name: Mapping[str, Want],
    evidence: Evidence,
    consent: Consent,
    today: str,
) -> tuple[list[Line], list[Line], list[Diagnostic]]:
    """Settle the moves of nodes that have arrived; give all lines, those that became live, and consent that settles nothing. O(lines)."""
    waiting: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        if line.state is State.PENDING:
            waiting[line.node].append(line)
    arrived = {
        node
        for node, theirs in waiting.items()
        if node in by_name
        and (
            node in consent.settle
            or _is_empty(cluster, by_name[node])
            or _shows(by_name[node], theirs, evidence)
        )
    }
    result, moved = arrive(cluster, lines, arrived, today)
    return result, moved, list(settle_nothing(cluster, lock, waiting, consent))


def arrive(
    cluster: Cluster, lines: list[Line], nodes: Collection[str], today: str
) -> tuple[list[Line], list[Line]]:
    """Make the pending lines of some nodes live, every family together, and what they replace `left`; give all lines, and the new held ones.

    The old lines are marked `moved`: they wait in quarantine, and never return.
    """
    replaced = {
        line.key(one_block=cluster.mode.one_block)
        for line in lines
        if line.state is State.PENDING and line.node in nodes
    }
    if not replaced:
        return lines, []
    result: list[Line] = []
    moved: list[Line] = []
    for line in lines:
        if line.state is State.PENDING and line.node in nodes:
            moved.append(Line(block=line.block, pool=line.pool, node=line.node))
            result.append(moved[-1])
        elif line.state is State.HELD and line.key(one_block=cluster.mode.one_block) in replaced:
            result.append(msgspec.structs.replace(line, state=State.QUARANTINED, since=today, moved=True))
        else:
            result.append(line)
    return result, moved


def _is_empty(cluster: Cluster, want: Want) -> bool:
    """Tell whether no pod of a node can be on its old block: it is not there yet, or was re-created and has no podCIDRs.

    The latter counts only where the Node says which block is used: with annotations a Node never has podCIDRs.
    """
    node = want.node
    recreated = (
        cluster.mode is Mode.KUBERNETES
        and cluster.patch_nodes == "podCIDRs"
        and node.live
        and not node.pod_cidrs
    )
    return node.planned or recreated


def _shows(want: Want, theirs: list[Line], evidence: Evidence) -> bool:
    shown = {claim.block for claim in evidence.of(want.node)}
    return all(line.block in shown for line in theirs)


def settle_nothing(
    cluster: Cluster, lock: Lock, waiting: Mapping[str, list[Line]], consent: Consent
) -> Iterator[Diagnostic]:
    """IPC0428: `--settle` names a node that has a pending line.

    It says that the node has been drained and has come up with its pending block. Without a pending line there is nothing to settle.
    """
    for node in sorted(consent.settle - waiting.keys()):
        yield error(
            "IPC0428",
            Span(lock.path),
            f"{node} has no pending line to settle",
            help=f"ipamc lock {cluster.name} --renumber {node} makes one",
        )


def torn_apart(cluster: Cluster, lock: Lock, lines: list[Line]) -> Iterator[Diagnostic]:
    """IPC0433: a pending line lies in the pool of the line that it is to replace.

    In multi-pool and crd mode a node has blocks of each of its pools, and they are renumbered pool by pool. Where a pool was split, or lost a range, between
    a block and the one that is to replace it, nobody can tell any more what replaces what: the node would keep both. Settle or cancel the move first.
    """
    coming = [line for line in lines if line.state is State.PENDING]
    held = (
        {line.key(one_block=cluster.mode.one_block) for line in lines if line.state is State.HELD}
        if coming
        else set()
    )
    for line in coming:
        if line.key(one_block=cluster.mode.one_block) not in held:
            yield error(
                "IPC0433",
                line_at(lock, line),
                f"{line.block}, which {line.node} is to move to, is in pool {line.pool or 'none'} now, and the block that it replaces is not",
                help=f"undo the change of pools; then settle the move, or cancel it: ipamc lock {lock.cluster} --release {line.block}",
            )


def moves(
    cluster: Cluster,
    lock: Lock,
    lines: Iterable[Line],
    by_name: Mapping[str, Want],
    range_index: RangeIndex,
    consent: Consent,
) -> tuple[list[Demand], list[Diagnostic]]:
    """Give what `--renumber` asks for, by node name, and why some of it cannot be. Asking again for a node that waits already changes nothing."""
    groups: dict[Key, list[Line]] = defaultdict(list)
    pending: set[Key] = set()
    for line in lines:
        if line.state is State.HELD:
            groups[line.key(one_block=cluster.mode.one_block)].append(line)
        elif line.state is State.PENDING:
            pending.add(line.key(one_block=cluster.mode.one_block))
    found: list[Diagnostic] = []
    chosen: set[Key] = set()
    for target in consent.renumber:
        mine = {
            group
            for group, theirs in groups.items()
            if group[0] in by_name and any(_is_meant(target, line, range_index) for line in theirs)
        }
        if not mine:
            found.append(renumber_nothing(cluster, lock, target))
        chosen |= mine
    lacking: list[Demand] = []
    one: dict[str, list[int]] = defaultdict(list)
    for group in sorted(chosen - pending):
        node, family, pool = group
        want = by_name[node]
        pins = [
            pin.block
            for offer in want.offers
            for pin in offer.pool.pins.get(node, ())
            if pin.block.family == family and pool in {"", offer.pool.name}
        ]
        if pins and {line.block for line in groups[group]} <= set(pins):
            if node in consent.renumber:  # who is meant along with others stays where it is pinned
                found.append(pinned_already(lock, want, groups[group][0]))
        elif family not in cluster.families:
            found.append(nowhere_to_go(lock, groups[group][0], f"IPv{family} is not in ipFamilies"))
        elif cluster.mode.one_block:
            one[node].append(family)
        else:
            offer = next((each for each in want.offers if each.pool.name == pool), None)
            if offer is None:
                found.append(
                    nowhere_to_go(lock, groups[group][0], f"pool {pool or 'none'} no longer serves the node")
                )
            else:
                lacking.append(Demand(want, (family,), offer, {family: needed(offer.pool, node, family)}))
    lacking += [
        Demand(by_name[node], tuple(family for family in cluster.families if family in families))
        for node, families in one.items()
    ]
    return sorted(lacking, key=_by_node), found


def groups_of(cluster: Cluster, lines: Iterable[Line], moving: Iterable[Demand]) -> set[Key]:
    """Give what is on the move: lines that are pending already, and those that are to be placed."""
    groups = {line.key(one_block=cluster.mode.one_block) for line in lines if line.state is State.PENDING}
    for each in moving:
        groups |= {
            (each.want.node.name, family, each.offer.pool.name if each.offer else "")
            for family in each.families
        }
    return groups


def _by_node(lacking: Demand) -> tuple[str, str]:
    return lacking.want.node.name, lacking.offer.pool.name if lacking.offer else ""


def _is_meant(target: str, line: Line, range_index: RangeIndex) -> bool:
    if target.startswith("pool/"):
        ground = range_index.of(line.block)
        return target.removeprefix("pool/") in {line.pool, ground.pool.name if ground else line.pool}
    block: Block | None = block_of(target)
    return line.node == target if block is None else line.block.overlaps(block)


def renumber_nothing(cluster: Cluster, lock: Lock, target: str) -> Diagnostic:
    """IPC0427: `--renumber` names a node, a CIDR or a pool (`pool/NAME`) that nodes of the inventory hold blocks of.

    A consent that matches no held line is a typo, and is refused.
    """
    return error(
        "IPC0427",
        Span(lock.path),
        f"{target} matches no held line of a node in the inventory",
        help=f"name a node, a CIDR or pool/NAME; ipamc show {cluster.name} --show-blocks lists who holds what",
    )


def pinned_already(lock: Lock, want: Want, line: Line) -> Diagnostic:
    """IPC0431: a node that holds its pin cannot be renumbered.

    A renumber goes to the pin where there is one, and the node is there. Change the pin, or take it away.
    """
    return error(
        "IPC0431",
        line_at(lock, line, otherwise=want.node.at),
        f"{line.node} holds {line.block}, its pin",
        help="pin it elsewhere, or drop the pin",
    )


def nowhere_to_go(lock: Lock, line: Line, why: str) -> Diagnostic:
    """IPC0432: a block can be renumbered only where the node can have another.

    In multi-pool and crd mode each pool that selects a node gives it blocks of its own, so a block of a pool that no longer serves the node has nothing
    to move to; nor has one of a family that the cluster no longer has. Drain the node, take it out of the inventory, release the line, and add the
    node again.
    """
    return error(
        "IPC0432",
        line_at(lock, line),
        f"{line.block} of {line.node} has nothing to move to: {why}",
        help=f"drain {line.node}, take it out of the inventory, then: ipamc lock {lock.cluster} --release {line.block}",
    )
