"""What the lock would give after an edit that is not made yet. Nothing is rendered, and nothing is written."""

from __future__ import annotations

from msgspec.structs import replace

from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Pool, PoolFamily, Range
from ipamc.model.diagnostics import Diagnostic, Severity
from ipamc.model.lock import Consent, Lock
from ipamc.model.plan import Plan
from ipamc.place.allocate.allocate import allocate
from ipamc.place.candidates import assign, shared_pools
from ipamc.place.reconcile.reconcile import reconcile


def preview(
    cluster: Cluster, lock: Lock, consent: Consent, today: str
) -> tuple[Plan | None, tuple[Diagnostic, ...]]:
    """Place the blocks of a cluster as a compile would; without a plan, the findings say why."""
    wants = assign(cluster)
    shared = shared_pools(cluster, wants)
    state, found = reconcile(cluster, wants, lock, consent, today, locked=False, shared=shared)
    errors = [finding for finding in found if finding.severity is Severity.ERROR]
    if errors:
        return None, tuple(errors)
    plan, found = allocate(cluster, wants, state, today)
    errors = [finding for finding in found if finding.severity is Severity.ERROR]
    return (None, tuple(errors)) if errors else (plan, ())


def with_range(cluster: Cluster, pool: Pool, block: Block) -> Cluster:
    """Return the cluster with a new range of a pool in front of those of its family."""
    part = pool.families[block.family]
    ranges = (Range(block, part.at), *part.ranges)
    families = {**pool.families, block.family: _with(part, ranges)}
    changed = replace(pool, families=families)
    return replace(
        cluster, pools=tuple(changed if each.name == pool.name else each for each in cluster.pools)
    )


def _with(part: PoolFamily, ranges: tuple[Range, ...]) -> PoolFamily:
    return replace(part, ranges=ranges)
