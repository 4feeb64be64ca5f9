"""Rules: find errors in a cluster, a plan or rendered files. Each has a text below `rules/`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ipamc import on_demand
from ipamc.check import acknowledged, capacity, drift
from ipamc.check.modes import adopt_without_unlisted, check_modes, control_plane, metallb
from ipamc.check.multi_pool import check_multi_pool, check_pods, default_pool_lacks_family
from ipamc.check.pools import check_pins, check_pools, check_usage, ipv6_too_wide
from ipamc.model.cilium.operator_list import longest_prefix
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic
from ipamc.model.lock import Lock
from ipamc.model.plan import Plan

if TYPE_CHECKING:
    from ipamc.check import address_space, admission, bgp, follows, network
else:
    names = "address_space", "admission", "bgp", "follows", "network"
    address_space, admission, bgp, follows, network = on_demand(__name__, *names)


def check(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield the findings that need neither lock nor plan."""
    yield from acknowledged.not_mild(cluster)
    yield from check_modes(cluster)
    yield from check_pools(cluster)
    yield from check_pins(cluster)
    if any(pool.follows for pool in cluster.pools):
        yield from follows.check_follows(cluster)
    yield from check_multi_pool(cluster)
    if cluster.masquerade:
        yield from network.masquerading_too_early(cluster)
    yield from check_pods(cluster)
    yield from check_usage(cluster)
    if cluster.bgp == "metallb":
        yield from metallb(cluster)
    elif cluster.bgp == "control-plane":
        yield from control_plane(cluster)
    if cluster.has_bgp_objects:
        yield from bgp.check_bgp(cluster)
    if cluster.admission.used:
        yield from admission.check_admission(cluster)


def check_plan(plan: Plan, today: Lock, drifted: drift.Drift | None = None) -> Iterator[Diagnostic]:
    """Yield the findings about a plan; `today` is its lock with ended quarantines released.
    `drifted` is what `find_drift` found, if that was asked.
    """
    yield from drift.check_drift(drifted or drift.find_drift(plan))
    yield from drift.several_pod_cidrs(plan)
    yield from drift.node_without_uid(plan)
    yield from drift.node_not_exported(plan)
    yield from drift.unread_pod_cidrs(plan)
    yield from drift.pin_not_held(plan)
    if any(pool.follows for pool in plan.cluster.pools):
        yield from follows.held_by_another(plan)
    yield from capacity.nearly_full(plan.cluster, today)
    yield from capacity.fewer_than_max_pods(plan)
    yield from capacity.too_many_shards_needed(plan)
    yield from capacity.too_many_routes(plan)
    if plan.cluster.has_bgp_objects and plan.cluster.bgp == "control-plane":
        yield from bgp.never_advertised(plan)
    mode = plan.cluster.mode
    if mode is Mode.CRD:
        yield from capacity.too_many_entries(plan)
    if mode is Mode.CLUSTER_POOL:
        mask = longest_prefix(plan.cluster, 6, plan.lock.lines)
        if mask > longest_prefix(plan.cluster, 6):
            yield from ipv6_too_wide(plan.cluster, {6: mask})
        yield from adopt_without_unlisted(plan.cluster, plan.lock.lines)
        yield from capacity.room_for_unlisted(plan)
    if mode is Mode.MULTI_POOL and plan.cluster.pinning != "none":
        firsts = {first.name: first for want in plan.wants if (first := want.first)}
        yield from default_pool_lacks_family(plan.cluster, firsts.values())
    if plan.cluster.own_pools:
        yield from ipv6_too_wide(plan.cluster, {}, plan.operator_pools)
        yield from capacity.pre_allocation_too_large(plan)
        yield from capacity.pinned_mask_changed(plan)
