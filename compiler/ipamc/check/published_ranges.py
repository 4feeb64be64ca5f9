"""Rules about CIDRs of published CiliumPodIPPools: shared ones may be in use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from ipamc.model.cidr import Block
from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import shown, text
from ipamc.model.cluster import Cluster, Mode, Pool
from ipamc.model.diagnostics import At, Diagnostic, Place, Related, Span, error, warning
from ipamc.model.lock import Lock, State
from ipamc.model.plan import Plan
from ipamc.model.pool_ranges import (
    Given,
    Obstacle,
    PoolRanges,
    PublishedPool,
    obstacle_to_leave,
    operator_follows,
    pool_ranges,
)
from ipamc.read.rendered import Rendered

DUMP = "add the nodes' CiliumNodes to the input: kubectl get nodes,ciliumnodes -o json"


def check_published_ranges(plan: Plan, published: Rendered) -> Iterator[Diagnostic]:
    """Yield CIDRs that cannot leave their pool, and the manual steps of other changes. O(n log n)."""
    cluster = plan.cluster
    if cluster.mode is not Mode.MULTI_POOL:
        return
    shared = plan.operator_pools
    yield from pools_lost(cluster, shared, plan.lock, published)
    given = Given(cluster, plan.lock)
    for name, before in sorted(published.pools.items()):
        pool = cluster.pools_by_name.get(name)
        if pool is None or name not in shared:
            yield from _pool_leaves(cluster, pool, before, given)
            continue
        ranges = {
            family: pool_ranges(cluster, pool, part, given, before.cidrs.get(family, ()))
            for family, part in sorted(pool.families.items())
            if family in cluster.families
        }
        if before.by_flag and name in cluster.auto_create:
            yield from auto_created_changed(cluster, pool, before, ranges)
        elif name in cluster.auto_create:
            yield from _pool_leaves(cluster, pool, before, given)
            yield from auto_created_changed(cluster, pool, before, ranges)
        else:
            yield from _pool_changes(cluster, pool, before, ranges)
    yield from _unpublished_in_use(plan, published)
    yield from _own_pools_change(plan)


def _unpublished_in_use(plan: Plan, published: Rendered) -> Iterator[Diagnostic]:
    """Yield shared pools in use that the first compile of a running cluster has not rendered.
    If a lock has lines, but there is no rendered tree, nothing is known.
    """
    started = {line.pool for line in plan.lock.written if line.in_use}
    if started and not published.pools:
        return
    made = {name: one for one in reversed(plan.cluster.cilium_nodes) for _, name in reversed(one.allocated)}
    others = plan.operator_pools - published.pools.keys() - started
    for pool in plan.cluster.pools:
        if pool.name in made and pool.name in others:
            of = f'a CiliumPodIPPool "{pool.name}" that was not rendered here'
            has = f"node {made[pool.name].name} has blocks of {of}"
            message = f"{has}: the apply would replace its CIDRs"
            get = f"before you apply: kubectl get ciliumpodippool {pool.name} -o yaml"
            also = Related(made[pool.name].at, "its CiliumNode shows them")
            fix = f"{get}; if its cidrs differ, write them into the pool, and compile again"
            yield needs_a_hand(pool.at / "metadata" / "name", message, also, fix)


def _own_pools_change(plan: Plan) -> Iterator[Diagnostic]:
    """Yield nodes that moved with several blocks at once, which the running operator cannot follow. O(n)."""
    cluster = plan.cluster
    if not cluster.own_pools or shown(cluster.cilium, Capability.EDITED_RANGES):
        return
    held = {line.block for line in plan.lock.lines if line.state is State.HELD}
    gone = {
        (line.node, line.pool, line.block.family)
        for line in plan.lock.written
        if line.state is State.HELD and line.block not in held and line.node in plan.held
    }
    if not gone:
        return
    before: dict[tuple[str, str, int], list[Block]] = defaultdict(list)
    for line in plan.lock.written:
        if line.state is State.HELD and line.pool not in plan.operator_pools:
            before[line.node, line.pool, line.block.family].append(line.block)
    places = {node.name: node.at for node in cluster.nodes}
    for key in sorted(gone & before.keys()):
        leaving = [block for block in before[key] if block not in held]
        if not operator_follows(cluster.cilium, before[key], leaving):
            node, pool, _ = key
            message = f"pool {pool}.{node} loses {', '.join(map(str, leaving))}: {_not_followed(cluster)}"
            also = Related(Span(plan.lock.path), "held here until now")
            fix = f"after the apply, before {node} starts again: {_restart(cluster)}"
            yield needs_a_hand(places[node], message, also, fix)


def _restart(cluster: Cluster) -> str:
    return f"kubectl -n {cluster.namespace} rollout restart deployment cilium-operator"


def _pool_changes(
    cluster: Cluster, pool: Pool, before: PublishedPool, ranges: dict[int, PoolRanges]
) -> Iterator[Diagnostic]:
    """Yield the findings about a pool with a manifest."""
    published = Related(before.at, "published here")
    if before.by_flag:
        owner = "cilium-operator created it and owns its CIDRs"
        conflict = "the first apply that changes them conflicts"
        message = f'pool "{pool.name}" gets a manifest, but {owner}: {conflict}'
        apply = "kubectl apply --server-side --field-manager=ipamc --force-conflicts"
        fix = f"then run once: {apply} -f {before.at.path.replace('configmap', 'ippools')}"
        yield needs_a_hand(pool.at / "metadata" / "name", message, published, fix)
    gained = [family for family in ranges if family not in before.cidrs]
    dropped = [family for family in before.cidrs if family in cluster.families and family not in ranges]
    for family in gained:
        ignores = "the running operator ignores that until it restarts"
        message, fix = f'pool "{pool.name}" gets IPv{family}, but {ignores}', _restart(cluster)
        yield needs_a_hand(pool.families[family].at, message, published, f"after the apply: {fix}")
    for family in dropped:
        yield cidr_taken_away(cluster, pool, before, Obstacle(cidr=before.cidrs[family][0], reason="family"))
    for family, part in ranges.items():
        at = pool.families[family].at / "cidrs"
        # CIDRs removed together with a change that the operator does not follow.
        with_a_family = (Obstacle(cidr=cidr, reason="family") for cidr in part.leaving if gained)
        refused = (*part.obstacles, *with_a_family)
        yield from (cidr_taken_away(cluster, pool, before, obstacle) for obstacle in refused)
        for obstacle in part.kept:
            stays = f'{obstacle.cidr} of pool "{pool.name}" is reserved but stays in the CiliumPodIPPool'
            fix = DUMP if obstacle.reason == "unseen" else "write a new pool without it, and disable this one"
            yield needs_a_hand(at, f"{stays}: {_obstacle_text(cluster, obstacle)}", published, fix)
        for cidr in part.leaving if not refused else ():
            leaves = f'this change removes or divides {cidr} of published pool "{pool.name}"'
            message = f"{leaves}; no CiliumNode in the input loses a block"
            yield needs_a_hand(at, message, published, "apply this before the operator hands out more of it")


def _pool_leaves(
    cluster: Cluster, pool: Pool | None, before: PublishedPool, given: Given
) -> Iterator[Diagnostic]:
    """Yield one reason why a published CiliumPodIPPool cannot be removed."""
    for cidrs in before.cidrs.values():
        for cidr in cidrs:
            if obstacle := obstacle_to_leave(cidr, given):
                yield cidr_taken_away(cluster, pool, before, obstacle)
                return


def cidr_taken_away(
    cluster: Cluster, pool: Pool | None, before: PublishedPool, obstacle: Obstacle
) -> Diagnostic:
    """IPC0538: a published CiliumPodIPPool keeps its CIDRs while nodes may have blocks in them."""
    cidr = obstacle.cidr
    reserved = pool.reserved_over(cidr) if pool else None
    part = pool.families.get(cidr.family) if pool else None
    if reserved:
        at: Place | Span = reserved.at
        change = f'{reserved.block} is reserved in {cidr}, which was published in pool "{before.name}"'
    else:
        at = part.at / "cidrs" if part else pool.at if pool else before.at
        change = f'{cidr} was published in pool "{before.name}" and would change'
    by_flag = pool is not None and pool.name in cluster.auto_create and not before.by_flag
    if by_flag and not reserved:
        at = cluster.field("spec", "ipam", "autoCreate")
        change = f'{cidr} was published in pool "{before.name}", a manifest that autoCreate would remove'
    if obstacle.reason == "unseen":
        help_ = DUMP
    elif obstacle.reason == "order" and shown(cluster.cilium, Capability.REMOVED_RANGES):
        help_ = "remove one of the neighbours, apply, then remove the other"
    elif by_flag:
        help_ = f"remove {before.name} from autoCreate"
    else:
        new = "write a new pool for the change, and set disabled: true on this one"
        help_ = f"keep {cidr} as it was; {new}"
    message = f"{change}: {_obstacle_text(cluster, obstacle)}"
    return error("IPC0538", at, message, also=[Related(before.at, "published here")], help=help_)


def _obstacle_text(cluster: Cluster, obstacle: Obstacle) -> str:
    operator = f"the operator of Cilium {text(cluster.cilium)}"
    if obstacle.reason == "unseen":
        return f"node {obstacle.node} may have blocks of it, but its CiliumNode is not in the input"
    if obstacle.reason == "given":
        has = f"node {obstacle.node} has {obstacle.block} of it"
        if shown(cluster.cilium, Capability.EDITED_RANGES):
            return f"{has}, and would lose it"
        return f"{has}, and {operator} may give it to another node"
    if obstacle.reason == "family":
        return "the operator keeps it until it restarts, because the pool gets or loses a family"
    return _not_followed(cluster)


def _not_followed(cluster: Cluster) -> str:
    operator = f"the operator of Cilium {text(cluster.cilium)}"
    if shown(cluster.cilium, Capability.REMOVED_RANGES):
        return f"{operator} keeps one of two neighbouring CIDRs that are removed at once"
    return f"{operator} crashes unless only the last CIDR is removed"


def auto_created_changed(
    cluster: Cluster, pool: Pool, before: PublishedPool, ranges: dict[int, PoolRanges]
) -> Iterator[Diagnostic]:
    """IPC0539: a pool in `autoCreate` does not change after it was published."""
    now = {family: part.cidrs for family, part in ranges.items() if part.cidrs}
    published = {family: cidrs for family, cidrs in before.cidrs.items() if family in cluster.families}
    if now != published:
        both = ({cidr for cidrs in each.values() for cidr in cidrs} for each in (now, published))
        changed = ", ".join(map(str, sorted(set.symmetric_difference(*both))[:3]))
        skips = "the operator skips existing pools"
        message = f'published pool "{pool.name}" is in autoCreate: {changed} would change, but {skips}'
        auto_create = cluster.field("spec", "ipam", "autoCreate")
        also = [Related(before.at, "published here"), Related(auto_create, "autoCreate is here")]
        fix = f"remove {pool.name} from autoCreate: a manifest takes the pool over"
        yield error("IPC0539", pool.at / "metadata" / "name", message, also=also, help=fix)


def pools_lost(
    cluster: Cluster, shared: frozenset[str], lock: Lock, published: Rendered
) -> Iterator[Diagnostic]:
    """Yield the finding about a rendered tree without the shared pools that nodes hold blocks of."""
    lost = published.pools_lost
    if not lost or published.of_nodes:
        return
    pools = {pool.name: pool for pool in cluster.pools if pool.name in shared - published.pools.keys()}
    line = next((line for line in lock.written if line.in_use and line.pool in pools), None)
    if line:
        are_lost = f'the published CIDRs of pool "{line.pool}" are lost'
        message = f"{are_lost}, but node {line.node} holds {line.block}"
        at, also = pools[line.pool].at / "metadata" / "name", Related(lost, "this file is missing")
        yield needs_a_hand(at, message, also, f"restore the file: git checkout HEAD -- {lost.path}", error)


def needs_a_hand(
    at: At, message: str, also: Related, fix: str, make: Callable[..., Diagnostic] = warning
) -> Diagnostic:
    """IPC0540: a change of a published pool needs no manual step."""
    return make("IPC0540", at, message, also=[also], help=fix)
