"""What a compile would make of other nodes: who gets what, what is full, and what would help. Writes nothing.

The stages of a compile decide, on a cluster with other nodes: `assign`, `reconcile`, `place`. First the inventory
as it is is compiled, then the one with the changes, on the lock that the first would write: so it would happen.
Consent that the changes need is implied, and named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ipamc.check import check_plan
from ipamc.check.leavers import leaver_findings
from ipamc.lock.utilisation import PoolUse, utilisation
from ipamc.model.cluster import Cluster, Node, Pool
from ipamc.model.diagnostics import Diagnostic, Refused, Severity
from ipamc.model.lock import Consent, Line, Lock, State
from ipamc.model.plan import Plan
from ipamc.pipeline import Inputs, load_cluster
from ipamc.place.allocate.allocate import Placement, place
from ipamc.place.allocate.occupancy import first_day, last_day, released
from ipamc.place.allocate.shortage import grouped, half_room, no_family, no_room
from ipamc.place.candidates import assign, shared_pools, unmatched_refused
from ipamc.place.reconcile.reconcile import reconcile
from ipamc.read.locate import locate
from ipamc.review.node_changes import Change, apply_changes
from ipamc.review.ways_out import After, Way, ways_out

MOST_EXPLAINED = 8
"""For how many reasons to get no block it is looked for what would help."""
UNMATCHED = "IPC0302"
"""Nodes without a candidate are a part of the answer, and do not end it."""


class Room(Struct, frozen=True, kw_only=True):
    """What a pool has in one family at some moment."""

    held: int
    """Blocks that are held or pending."""
    free: int
    """Blocks of the pool's size that newcomers could get."""


class PoolChange(Struct, frozen=True, kw_only=True):
    """A pool in one family, before and after."""

    pool: Pool
    family: int
    block_size: int
    blocks: int
    """Of the pool's size, that it would have if it were empty."""
    before: Room
    after: Room
    later: Room
    """After, when all quarantines that can end are over."""
    later_on: str
    """The day on which the last of these is over, ISO 8601; "" where nothing comes free."""


class Without(Struct, frozen=True, kw_only=True):
    """Nodes that get no block for one reason."""

    nodes: tuple[str, ...]
    """By name."""
    pool: str
    """The pool that is full; "" where no pool selects the nodes, or none has the family."""
    finding: Diagnostic
    """What a compile would say."""
    ways: tuple[Way, ...]


class WhatIf(Struct, frozen=True, kw_only=True):
    """The answer."""

    cluster: Cluster
    changes: tuple[Change, ...]
    added: Mapping[str, tuple[str, ...]]
    removed: Mapping[str, tuple[str, ...]]
    given: Mapping[str, tuple[Line, ...]]
    """The blocks of the nodes that come, by name."""
    left: tuple[Line, ...]
    """The lines of the nodes that go, in quarantine."""
    free_on: str
    """The day on which these can be given out again, ISO 8601; "": never."""
    pools: tuple[PoolChange, ...]
    without: tuple[Without, ...]
    refused: tuple[Diagnostic, ...]
    """What else a compile refuses because of the changes."""
    not_compiled: int
    """Nodes of the inventory that came or went, and are not in the lock yet."""
    consent: tuple[Diagnostic, ...]
    """Findings that ask for consent to let the nodes go."""
    operator_pools: frozenset[str]
    """Pools whose blocks Cilium's operator gives out: the lock says only what nodes start with."""

    @property
    def fits(self) -> bool:
        """Tell whether a compile would accept the changes: every node has its blocks."""
        return not self.without and not self.refused


class _Run(Struct, frozen=True, kw_only=True):
    """The stages up to `place`."""

    placement: Placement
    unmatched: tuple[Node, ...]
    """Nodes that get nothing because no pool selects them."""

    @property
    def plan(self) -> Plan:
        return self.placement.plan


def what_if(inputs: Inputs, changes: Sequence[Change], today: str) -> WhatIf:
    """Play changes of the nodes, as of `today` (ISO 8601, UTC). Costs as much as the decisions of two compiles.

    Raises Refused where a compile of the inventory as it is ends before blocks are placed, ChangeError where
    no node fits a change.
    """
    cluster, lock = load_cluster(inputs)
    changed = apply_changes(cluster, changes)
    try:
        before = _run(inputs, cluster, lock, Consent(), today)
        gone = {name for names in changed.removed.values() for name in names}
        lines = before.plan.lock.lines
        leavers = _in_use(lines, gone)
        consent = Consent(leave=frozenset(leavers))
        after = _run(inputs, changed.cluster, before.plan.lock, consent, today)
    except Refused as refused:
        raise Refused(locate(refused.diagnostics, inputs.sources)) from None
    known = {(found.code, found.message) for found in check_plan(before.plan, before.plan.lock)}
    new = {name for names in changed.added.values() for name in names}
    pools = tuple(_pool_changes(changed.cluster, before.plan.lock, after.plan.lock, today))
    asks = leaver_findings(changed.cluster, before.plan.lock, leavers, Consent())
    return WhatIf(
        cluster=changed.cluster,
        changes=tuple(changes),
        added=changed.added,
        removed=changed.removed,
        given={name: after.plan.held.get(name, ()) for name in sorted(new)},
        left=tuple(
            line
            for line in after.plan.lock.lines
            if line.node in gone and line.state is State.QUARANTINED and line.since == today
        ),
        free_on="" if cluster.quarantine_days is None else first_day(today, cluster.quarantine_days),
        pools=pools,
        without=tuple(_without(changed.cluster, lines, after, pools, today)),
        refused=tuple(
            found
            for found in _errors(check_plan(after.plan, after.plan.lock))
            if (found.code, found.message) not in known
        ),
        not_compiled=len({stale.node for stale in before.plan.stale}),
        consent=tuple(_errors(asks)) if leavers else (),
        operator_pools=after.plan.operator_pools,
    )


def _run(inputs: Inputs, cluster: Cluster, lock: Lock, consent: Consent, today: str) -> _Run:
    wants = assign(cluster)
    before = inputs.before
    shared = shared_pools(cluster, wants, before.pools)
    reconciled, found = reconcile(
        cluster, wants, lock, consent, today, locked=False, shared=shared, rendered=before
    )
    if refused := [finding for finding in _errors(found) if finding.code != UNMATCHED]:
        raise Refused(tuple(refused))
    unmatched = [want.node for want in wants if not want.offers and not reconciled.held.get(want.node.name)]
    return _Run(
        placement=place(cluster, wants, reconciled, today),
        unmatched=tuple(unmatched) if cluster.unmatched_nodes == "error" else (),
    )


def _errors(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    return [finding for finding in found if finding.severity is Severity.ERROR]


def _in_use(lines: Iterable[Line], nodes: set[str]) -> dict[str, tuple[Line, ...]]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        if line.in_use and line.node in nodes:
            found.setdefault(line.node, []).append(line)
    return {name: tuple(own) for name, own in found.items()}


def _pool_changes(cluster: Cluster, before: Lock, after: Lock, today: str) -> Iterator[PoolChange]:
    over = last_day(today, cluster.quarantine_days)
    always = "" if cluster.quarantine_days is None else today
    rows = zip(
        utilisation(cluster, released(before, over, today)),
        utilisation(cluster, released(after, over, today)),
        utilisation(cluster, released(after, always)),
        strict=True,
    )
    waiting: dict[tuple[str, int], str] = {}
    for line in after.lines:
        if line.state is State.QUARANTINED and always and line.since > over:
            key = line.pool, line.block.family
            waiting[key] = max(waiting.get(key, ""), line.since)
    for old, new, later in rows:
        key = new.pool.name, new.family.family
        since = waiting.get(key, "") if later.use.blocks_free > new.use.blocks_free else ""
        yield PoolChange(
            pool=new.pool,
            family=new.family.family,
            block_size=new.family.block_size,
            blocks=new.use.blocks,
            before=_room(old),
            after=_room(new),
            later=_room(later),
            later_on=first_day(since, cluster.quarantine_days)
            if since and cluster.quarantine_days is not None
            else "",
        )


def _room(use: PoolUse) -> Room:
    return Room(held=use.use.blocks_held, free=use.use.blocks_free)


def _without(
    cluster: Cluster, before: Iterable[Line], run: _Run, pools: Iterable[PoolChange], today: str
) -> Iterator[Without]:
    placement, lock = run.placement, run.plan.lock
    old = {line.block for line in before if line.in_use} if placement.short else set()
    after = After(
        cluster=cluster,
        lock=lock,
        free={(change.pool.name, change.family): change.after.free for change in pools},
        new=frozenset(line.block for line in lock.lines if line.in_use) - old,
        today=today,
    )
    full = [short for short in placement.short if not short.room]
    half = [short for short in placement.short if short.room]
    explained = 0
    for shorts, findings in (
        (full, no_room(cluster, full, placement.after)),
        (half, half_room(cluster, half, placement.after)),
    ):
        for (shortage, nodes), finding in zip(grouped(shorts), findings, strict=True):
            names = tuple(dict.fromkeys(node.name for node in nodes))
            explained += 1
            ways = ways_out(after, shortage, len(names)) if explained <= MOST_EXPLAINED else ()
            yield Without(nodes=names, pool=shortage.pool, finding=finding, ways=tuple(ways))
    for finding in no_family(placement.unserved):
        names = tuple(sorted(found.node.name for found in placement.unserved))
        yield Without(nodes=names, pool="", finding=finding, ways=())
        break
    if run.unmatched:
        names = tuple(node.name for node in run.unmatched)
        finding = next(iter(unmatched_refused(cluster, list(run.unmatched))))
        yield Without(nodes=names, pool="", finding=finding, ways=())
