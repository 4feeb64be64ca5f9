"""Computes a compile with other nodes: who gets which blocks, what is full, what helps. Writes nothing.

The stages of a compile decide: `assign`, `reconcile`, `place`. First the present inventory is compiled, then
the changed one, on the lock that the first would write, as in reality. Consent that the changes need is
implied, and named in the answer.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ipamc.check import check_plan
from ipamc.check.leavers import leaver_findings
from ipamc.law.change import last_day
from ipamc.lock.utilisation import utilisation
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Dialect, Pool
from ipamc.model.diagnostics import Diagnostic, Refused, count, errors_of
from ipamc.model.limits import OTHER_POOLS_SHOWN, REASONS_WITH_REMEDIES
from ipamc.model.lock import Consent, Line, Lock, State
from ipamc.model.node import Node
from ipamc.model.pool_words import range_for, suggest_pool, why_only_pins
from ipamc.pipeline import Inputs, load_cluster
from ipamc.place.allocate.allocate import Placement, place
from ipamc.place.allocate.shortage import (
    Shortage,
    free_blocks,
    grouped,
    half_room,
    no_family,
    no_room,
    smaller_blocks,
)
from ipamc.place.allocate.shortage import words as smaller_words
from ipamc.place.candidates import assign, shared_pools, unmatched_refused
from ipamc.place.quarantine import first_day, released
from ipamc.place.reconcile.reconcile import reconcile
from ipamc.read.locate import locate
from ipamc.review.node_changes import ChangedCluster, NodeChange, apply_changes

UNMATCHED = "IPC0302"  # Nodes without a candidate are part of the answer, not an error


class PoolRoom(Struct, frozen=True, kw_only=True):
    """The room of a pool in one family at some moment."""

    held: int  # blocks that are held or pending
    free: int  # blocks of the pool's size that new nodes could get


class PoolOutlook(Struct, frozen=True, kw_only=True):
    """A pool in one family, before and after."""

    pool: Pool
    family: int
    block_size: int
    blocks: int  # all blocks of the pool's size, if it were empty
    before: PoolRoom
    after: PoolRoom
    later: PoolRoom  # free blocks after the changes, when all quarantines that can end are over
    later_on: str  # the day on which the last of these ends, ISO 8601; "" if nothing becomes free


class Way(Struct, frozen=True, kw_only=True):
    """A remedy."""

    text: str
    enough: bool  # every node of this reason would get a block


class Without(Struct, frozen=True, kw_only=True):
    """Nodes that get no block for one reason."""

    nodes: tuple[str, ...]  # by name
    pool: str = ""  # the full pool; "" if no pool selects the nodes, or none has the family
    finding: Diagnostic  # the error of a compile
    ways: tuple[Way, ...] = ()


class WhatIf(Struct, frozen=True, kw_only=True):
    """The answer to `ipamc forecast --what-if`."""

    changes: tuple[NodeChange, ...]
    changed: ChangedCluster
    given: Mapping[str, tuple[Line, ...]]  # the blocks of added nodes, by name
    left: tuple[Line, ...]  # the quarantined lines of removed nodes
    free_on: str  # the first day on which these can be given out again, ISO 8601; "": never
    pools: tuple[PoolOutlook, ...]
    without: tuple[Without, ...]
    refused: tuple[Diagnostic, ...]  # other errors of a compile that the changes cause
    not_compiled: int  # Nodes of the inventory that came or went, and are not in the lock yet
    consent: tuple[Diagnostic, ...]  # findings that ask for consent to remove the nodes
    operator_pools: frozenset[str]
    """Pools whose blocks Cilium's operator allocates: the lock has only the blocks that nodes start with."""

    @property
    def fits(self) -> bool:
        """Return whether a compile would accept the changes: every node has its blocks."""
        return not self.without and not self.refused


def what_if(inputs: Inputs, changes: Sequence[NodeChange], today: str) -> WhatIf:
    """Try changes of the nodes, as of `today` (ISO 8601, UTC). Costs the decisions of two compiles.
    Raises Refused if a compile of the present inventory fails before blocks are placed, ChangeError if a
    change matches no node.
    """
    cluster, lock = load_cluster(inputs)
    changed = apply_changes(cluster, changes)
    gone = {name for names in changed.removed.values() for name in names}
    new = {name for names in changed.added.values() for name in names}
    leavers: dict[str, tuple[Line, ...]] = {}
    try:
        before, _ = _run(inputs, cluster, lock, Consent(), today)
        lines = before.plan.lock.lines
        for line in lines:
            if line.in_use and line.node in gone:
                leavers[line.node] = (*leavers.get(line.node, ()), line)
        consent = Consent(leave=frozenset(leavers))
        after, unmatched = _run(inputs, changed.cluster, before.plan.lock, consent, today)
    except Refused as refused:
        raise Refused(locate(refused.diagnostics, inputs.sources)) from None
    known = {(found.code, found.message) for found in check_plan(before.plan, before.plan.lock)}
    errors = errors_of(check_plan(after.plan, after.plan.lock))
    asks = leaver_findings(changed.cluster, before.plan.lock, leavers, Consent())
    pools = tuple(_pool_outlooks(changed.cluster, before.plan.lock, after.plan.lock, today))
    left = [line for line in after.plan.lock.lines if line.node in gone and line.state is State.QUARANTINED]
    return WhatIf(
        changes=tuple(changes),
        changed=changed,
        given={name: after.plan.held.get(name, ()) for name in sorted(new)},
        left=tuple(line for line in left if line.since == today),
        free_on="" if cluster.quarantine_days is None else first_day(today, cluster.quarantine_days),
        pools=pools,
        without=tuple(_without(changed.cluster, lines, after, unmatched, pools, today)),
        refused=tuple(found for found in errors if (found.code, found.message) not in known),
        not_compiled=len({stale.node for stale in before.plan.stale}),
        consent=tuple(errors_of(asks)) if leavers else (),
        operator_pools=after.plan.operator_pools,
    )


def _run(
    inputs: Inputs, cluster: Cluster, lock: Lock, consent: Consent, today: str
) -> tuple[Placement, list[Node]]:
    """Return the result of `place`, and the nodes without blocks because no pool selects them."""
    wants, before = assign(cluster), inputs.before
    shared = shared_pools(cluster, wants, before.pools)
    reconciled, found = reconcile(
        cluster, wants, lock, consent, today, locked=False, shared=shared, rendered=before
    )
    if refused := [finding for finding in errors_of(found) if finding.code != UNMATCHED]:
        raise Refused(tuple(refused))
    counts = cluster.unmatched_nodes == "error"
    empty = [want.node for want in wants if counts and not want.offers]
    unmatched = [node for node in empty if not reconciled.held.get(node.name)]
    return place(cluster, wants, reconciled, today), unmatched


def _pool_outlooks(cluster: Cluster, before: Lock, after: Lock, today: str) -> Iterator[PoolOutlook]:
    days = cluster.quarantine_days
    over, always = last_day(today, days), "" if days is None else today
    waiting: dict[tuple[str, int], str] = {}
    for line in after.lines:
        if line.state is State.QUARANTINED and always and line.since > over:
            key = line.pool, line.block.family
            waiting[key] = max(waiting.get(key, ""), line.since)
    for old, new, later in zip(
        utilisation(cluster, released(before, over, today)),
        utilisation(cluster, released(after, over, today)),
        utilisation(cluster, released(after, always)),
        strict=True,
    ):
        family = new.family.family
        room = [PoolRoom(held=each.use.blocks_held, free=each.use.blocks_free) for each in (old, new, later)]
        more = later.use.blocks_free > new.use.blocks_free
        since = waiting.get((new.pool.name, family), "") if more else ""
        yield PoolOutlook(
            pool=new.pool,
            family=family,
            block_size=new.family.block_size,
            blocks=new.use.blocks,
            before=room[0],
            after=room[1],
            later=room[2],
            later_on=first_day(since, days) if since and days is not None else "",
        )


class _After(Struct, frozen=True, kw_only=True):
    """A cluster in which some nodes got no block."""

    cluster: Cluster
    lock: Lock
    free: Mapping[tuple[str, int], int]
    """By pool and family: the blocks of the pool's size that new nodes could get."""
    new: frozenset[Block]
    """The blocks that other nodes got at the same time: if these were smaller, there would be more room."""
    today: str


def _without(
    cluster: Cluster,
    before: Iterable[Line],
    placement: Placement,
    unmatched: list[Node],
    pools: Iterable[PoolOutlook],
    today: str,
) -> Iterator[Without]:
    lock = placement.plan.lock
    old = {line.block for line in before if line.in_use} if placement.short else set()
    new = frozenset(line.block for line in lock.lines if line.in_use) - old
    free = {(pool.pool.name, pool.family): pool.after.free for pool in pools}
    after = _After(cluster=cluster, lock=lock, free=free, new=new, today=today)
    full = [short for short in placement.short if not short.room]
    half = [short for short in placement.short if short.room]
    findings = (*no_room(cluster, full, placement.after), *half_room(cluster, half, placement.after))
    shortages = zip((*grouped(full), *grouped(half)), findings, strict=True)
    for number, ((shortage, nodes), finding) in enumerate(shortages):
        names = tuple(dict.fromkeys(node.name for node in nodes))
        ways = _ways_out(after, shortage, len(names)) if number < REASONS_WITH_REMEDIES else ()
        yield Without(nodes=names, pool=shortage.pool, finding=finding, ways=tuple(ways))
    for finding in islice(no_family(placement.plan.scheme, placement.unserved), 1):
        unserved = sorted(unserved.node.name for unserved in placement.unserved)
        yield Without(nodes=tuple(unserved), finding=finding)
    for finding in islice(unmatched_refused(cluster, unmatched), 1):
        yield Without(nodes=tuple(node.name for node in unmatched), finding=finding)


def _ways_out(after: _After, shortage: Shortage, lack: int) -> Iterator[Way]:
    """Yield remedies for `lack` nodes. O(pools), and O(lines) a few times."""
    cluster, lines = after.cluster, after.lock.lines
    pool = cluster.pools_by_name[shortage.pool]
    one_block = cluster.mode.one_block
    blocks = lack if one_block else lack * pool.blocks_per_node
    if one_block:
        yield from _other_pools(after, shortage, pool, lack)
    for family, prefix in shortage.full:
        yield from _quarantine(after, pool, family, prefix, blocks)
        # The largest smaller block that makes room for all. Nodes that have a block keep it.
        before = replace(after.lock, lines=tuple(line for line in lines if line.block not in after.new))
        if smaller := smaller_blocks(cluster, pool, (family, prefix), before, lines, blocks):
            yield Way(text=smaller_words(pool, family, smaller, f" of pool {pool.name}"), enough=True)
        size = range_for(prefix, blocks)
        search = suggest_pool(cluster, pool, family, size)
        yield Way(text=f"add a range of /{size} to pool {pool.name}: {search}", enough=True)


def _other_pools(after: _After, shortage: Shortage, full: Pool, lack: int) -> Iterator[Way]:
    """Yield pools with room that `overflow` could name: first those with room for all, the smallest first."""
    families = [family for family, _ in shortage.full] + list(shortage.room)
    asked = {full.name, *full.overflow}
    rooms = []
    for pool in after.cluster.pools:
        if (
            pool.name in asked
            or why_only_pins(pool)
            or not all(family in pool.families for family in families)
        ):
            continue
        if room := min(after.free[pool.name, family] for family in families):
            rooms.append((room < lack, room if room >= lack else -room, pool.name))
    for short, room, name in sorted(rooms)[:OTHER_POOLS_SHOWN]:
        how = f"add {name} to the overflow of pool {full.name}"
        if full.dialect is not Dialect.NATIVE:
            how += f" (in native form: a {full.dialect} has no overflow)"
        yield Way(text=f"pool {name} has room for {count(abs(room), 'node')}: {how}", enough=not short)


def _quarantine(after: _After, pool: Pool, family: int, prefix: int, blocks: int) -> Iterator[Way]:
    """Yield how many blocks become free, and on which day enough have, or all. O(n log days)."""
    days = after.cluster.quarantine_days
    if days is None:
        return
    lines = [line for line in after.lock.lines if line.state is State.QUARANTINED and line.pool == pool.name]
    waiting = sorted({line.since for line in lines if line.block.family == family})
    waiting = [since for since in waiting if first_day(since, days) > after.today]

    def more(since: str) -> int:
        now, then = after.lock, released(after.lock, since)
        free = [free_blocks(after.cluster, lock, pool, family, prefix) for lock in (now, then)]
        return free[1] - free[0]

    number = bisect.bisect_left(waiting, blocks, key=more)
    if waiting and (gained := more(since := waiting[min(number, len(waiting) - 1)])):
        over = f"then the quarantine of {count(gained, 'block')} of pool {pool.name} is over"
        yield Way(text=f"wait until {first_day(since, days)}: {over}", enough=gained >= blocks)
