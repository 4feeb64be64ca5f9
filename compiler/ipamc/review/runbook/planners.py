"""Computes the values for the template of each change: nodes, waves and blocks."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from ipamc.lock.file_rules import keeps_blocks
from ipamc.model.cidr import Block
from ipamc.model.cilium.support import LAST, READ_AT, TABLE, UNFIT, Row
from ipamc.model.cluster import Cluster, Dialect, Mode, Pool, Version
from ipamc.model.dump import Dump
from ipamc.model.follows import following
from ipamc.model.limits import NODES_IN_CHECK
from ipamc.model.lock import Line, Lock, State
from ipamc.model.masquerade import native_limit
from ipamc.model.plan import Plan
from ipamc.model.without_cilium import without_cilium
from ipamc.read.node_names import less
from ipamc.review.runbook.site import Site, in_order
from ipamc.review.runbook.steps import Runbook, Split, waves

Blocks = Mapping[str, Sequence[Line]]  # lines by node


def pending_of(plan: Plan) -> Blocks:
    """Return the pending lines by node, for nodes with any."""
    return _by_node(plan.lock, State.PENDING)


def _by_node(lock: Lock, state: State) -> Blocks:
    found: dict[str, list[Line]] = defaultdict(list)
    for line in lock.lines:
        if line.state is state:
            found[line.node].append(line)
    return found


def running_nodes(cluster: Cluster) -> tuple[str, ...]:
    """Return the names of the nodes that may run pods."""
    return tuple(node.name for node in cluster.nodes if cluster.may_run(node))


def renumber(
    plan: Plan, site: Site, split: Split, *, asked: Sequence[str] = (), settled: Collection[str] = ()
) -> Runbook:
    """Return the steps for nodes with a pending line in a plan, or whose renumber is settled.
    `asked` is the value for `--renumber`, if the plan was made with this consent and the lock has no pending
    lines yet. `settled` are nodes that still have to move to the block that they hold.
    """
    pending, one = pending_of(plan), plan.cluster.mode.one_block
    moves = []
    for node, lines in sorted(pending.items()) if len(pending) <= NODES_IN_CHECK else ():
        keys = {line.key(one_block=one) for line in lines}
        old = [line for line in plan.held.get(node, ()) if line.key(one_block=one) in keys]
        moves.append((node, *(", ".join(str(line.block) for line in some) for some in (old, lines))))
    values = {
        **_moving(plan, pending, split),
        "asked": asked,
        "moves": moves,
        "settled_blocks": {node: in_order(plan.held.get(node, ())) for node in settled},
        "settled_waves": waves(plan.cluster, settled, split),
        "total": len({*pending, *settled}),
    }
    return site.runbook("renumber", values)


def _moving(plan: Plan, pending: Blocks, split: Split) -> dict[str, object]:
    one, blocks = plan.cluster.mode.one_block, {}
    for node, new in pending.items():
        # The blocks that it holds after new lines replace those of the same key.
        keys = {line.key(one_block=one) for line in new}
        kept = [line for line in plan.held.get(node, ()) if line.key(one_block=one) not in keys]
        blocks[node] = in_order({*kept, *new})
    return {
        "blocks": blocks,
        "evidence": plan.cluster.cilium_nodes if plan.cluster.shared_pools else (),
        "lines": sum(map(len, pending.values())),
        "pending": sorted(pending),
        "waves": waves(plan.cluster, pending, split),
    }


def new_range(plan: Plan, site: Site, split: Split, pool: Pool, block: Block, left: Sequence[str]) -> Runbook:
    """Return the steps. `plan` has the pending lines that the consent creates once the range is written.
    `left`: the ranges of the pool that nodes leave.
    """
    pending = {node: lines for node, lines in pending_of(plan).items() if any(line.pool for line in lines)}
    part, native = pool.families[block.family], native_limit(plan.cluster, block.family)
    values = {
        **_moving(plan, pending, split),
        "block": block,
        "left": left,
        "native": native if native and not native.contains(block) else None,
        "native_pool": pool.dialect is Dialect.NATIVE,
        "old": [str(each.block) for each in part.ranges],
        "pool": pool,
        "size": part.block_size,
    }
    return site.runbook("new-range", values)


def decommission(
    plan: Plan, site: Site, split: Split, nodes: Collection[str], pools: Sequence[str]
) -> Runbook:
    """Return the steps by which nodes leave. `pools` are removed with them."""
    planned = {node.name: node.planned for node in plan.cluster.nodes}
    going = [node for node in sorted(nodes) if plan.held.get(node) or node in planned]
    left = [line for line in plan.lock.lines if line.node in going and line.state is not State.RELEASED]
    followers = following(plan.cluster)  # they have no quarantine
    values = {
        "going": going,
        "lines": sum(line.pool not in followers for line in left),
        "planned": [node for node in going if planned.get(node)],
        "patterns": [
            f"{', '.join(less(pattern, frozenset(going))) or 'nothing'} instead of {pattern}"
            for pattern in sorted({node.pattern for node in plan.cluster.nodes if node.name in going} - {""})
        ],
        "pools": pools,
        "waves": waves(plan.cluster, [node for node in going if planned.get(node) is False], split),
    }
    return site.runbook("decommission", values)


def replace_node(plan: Plan, site: Site, olds: Sequence[str], new: str) -> Runbook:
    """Return the steps for nodes that rejoin under their names, or for one that node `new` replaces."""
    labels = next((node.labels for node in plan.cluster.nodes if node.name == olds[0]), {})
    entry = json.dumps({"name": new, "labels": dict(sorted(labels.items())), "planned": True})
    nodes = (new,) if new else olds
    values = {"olds": olds, "nodes": nodes, "old": ", ".join(olds), "new": ", ".join(nodes), "entry": entry}
    blocks = {node: plan.held.get(old, ()) for node, old in zip(nodes, olds, strict=True)}
    return site.runbook("replace-node", {**values, "blocks": blocks})


def dual_stack(plan: Plan, site: Site, split: Split, family: int, *, begun: bool) -> Runbook:
    """Return the steps that give every node a block of a family. `begun`: the plan has these blocks."""
    running, pools = running_nodes(plan.cluster), plan.cluster.pools
    values = {
        "begun": begun,
        "blocks": {node: plan.held.get(node, ()) for node in running},
        "family": family,
        "pools": [
            pool.name for pool in pools if family not in pool.families and (pool.follows or not pool.disabled)
        ],
        "running": running,
        "waves": waves(plan.cluster, running, split),
    }
    return site.runbook("dual-stack", values)


def _moving_to_cilium(cluster: Cluster) -> Iterator[str]:
    """Yield the nodes that may run Cilium: others may be in an inventory that an older version wrote."""
    dump = Dump(files=(), nodes=cluster.nodes, cilium_nodes=cluster.cilium_nodes)
    without = without_cilium(dump) if cluster.runs_on is None else ()  # an inventory has few labels
    return (node.name for node in cluster.nodes if node.name not in without)


def calico(plan: Plan, site: Site, split: Split) -> Runbook:
    """Return the steps by which each node keeps its blocks. `plan` holds them, from `ipamc import`."""
    nodes = [node for node in _moving_to_cilium(plan.cluster) if plan.held.get(node)]
    reserved = {node: ",".join(str(line.block) for line in plan.held[node]) for node in nodes}
    values = {"total": len(nodes), "waves": waves(plan.cluster, nodes, split), "blocks": plan.held}
    return site.runbook("calico", {**values, "reserved": reserved})


def calico_distinct(plan: Plan, site: Site, split: Split) -> Runbook:
    """Return the steps of Cilium's own guide, with a range that Calico does not have."""
    running = set(running_nodes(plan.cluster))
    nodes = [node for node in _moving_to_cilium(plan.cluster) if node in running]
    values = {"total": len(nodes), "waves": waves(plan.cluster, nodes, split)}
    return site.runbook("calico", values, "calico-distinct")


def restored(change: str, plan: Plan, site: Site) -> Runbook:
    """Return the steps of a disaster recovery, from git or from a backup of etcd."""
    running = running_nodes(plan.cluster)
    blocks = {node: lines for node, lines in sorted(plan.held.items()) if lines and node in set(running)}
    return site.runbook(change, {"running": running, "blocks": blocks})


_POLICY = "bgp: control-plane with a CiliumBGPPeeringPolicy, whose exportPodCIDR announces the same blocks"
_CONFIG = "CiliumBGPClusterConfig and CiliumBGPAdvertisement, available from 1.16 on"
INSTEAD = {"METALLB": ("metallb", _POLICY), "BGP_PEERING_POLICY": ("control-plane", _CONFIG)}
"""By the name of a lost capability: the value of `bgp` that uses it, and its replacement."""


def upgrade(site: Site, to: Version) -> Runbook:
    """Return the steps from the Cluster's minor to another one that this ipamc knows."""
    cluster, (_, start), (_, end) = site.cluster, site.cluster.cilium, to
    minors = []
    for minor in range(start + 1, end + 1):
        gained, lost = rows(cluster, minor)
        ways = [(row.capability.value, *INSTEAD.get(row.capability.name, ("", ""))) for row in lost]
        replaced = [(what.partition(",")[0], way) for what, bgp, way in ways if bgp == cluster.bgp]
        notes = [f"new: {row.capability.value}" for row in gained]
        notes += [f"no longer: {row.capability.value}" for row in lost]
        minors.append((minor, replaced, "; ".join(notes), READ_AT[minor]))
    return site.runbook("upgrade", {"start": start, "end": end, "minors": minors, "unfit": UNFIT})


def rows(cluster: Cluster, minor: int) -> tuple[list[Row], list[Row]]:
    """Return the rows of the version table that a minor gains and loses in a cluster's mode."""
    about = [row for row in TABLE if cluster.mode.value in row.modes.split(", ")]
    lost = [row for row in about if row.until == minor - 1 and (1, row.until) < LAST]
    return [row for row in about if row.since == minor], lost


def mode_under_way(
    lock: Lock, before: Cluster | None, plan: Plan, site: Site, split: Split, *, in_brief: bool = False
) -> Runbook | None:
    """Return the runbook if mode, operator, pinning or patchNodes differ from the base; else None.
    `lock` and `before` are of the base; `before` is None if its documents cannot be read. Also None if any
    order works. `in_brief`: for a plan, which has one step instead of waves.
    """
    cluster, of_mode = plan.cluster, lock.mode is not plan.cluster.mode
    online = keeps_blocks(lock.mode, cluster.mode)
    both = (before or cluster, cluster)
    was, now = ((each.mode, each.operator, each.pinning, each.patch_nodes) for each in both)
    if not lock.shards or not (online if of_mode else was != now):
        return None
    found = mode_change(lock, before, plan, site, split, begun=True, in_brief=in_brief)
    steps = [step for wave in found.phases[0].waves for step in wave.steps]
    return found if of_mode or any(step.key != "audit" for step in steps) else None


def mode_change(
    lock: Lock,
    before: Cluster | None,
    plan: Plan,
    site: Site,
    split: Split,
    *,
    begun: bool = False,
    in_brief: bool = False,
) -> Runbook:
    """Return the runbook of a change of mode or of another setting. `begun`: it is merged already."""
    cluster, of_mode = plan.cluster, lock.mode is not plan.cluster.mode
    online = bool(lock.shards) and keeps_blocks(lock.mode, cluster.mode)
    multi = cluster.mode is Mode.MULTI_POOL
    running = plan.held.keys() & running_nodes(cluster)
    # Of the old mode: new lines have no pods yet.
    held = {node: lines for node, lines in _by_node(lock, State.HELD).items() if node in running}
    # An agent restores addresses of running pods only from the pool default.
    in_default = all(line.pool == "default" for lines in held.values() for line in lines)
    blocks = {
        node: ",".join(str(line.block) for line in in_order(lines)) for node, lines in sorted(held.items())
    }
    in_both = {node: f"{text} {site.allocated(node, plan.held[node])}" for node, text in blocks.items()}
    values = {
        "LAST": LAST,
        "before": before,
        "begun": begun,
        "blocks": blocks,
        "drained": sorted(plan.held),
        "from_bystander": lock.mode is Mode.CLUSTER_POOL and not (before and before.operator_adopts),
        "in_both": in_both,
        "in_brief": in_brief,
        "node_by_node": online and multi and not (cluster.shared_pools and in_default),
        "of_mode": of_mode,
        "old": lock.mode,
        "ordered": online or not of_mode,
        "waves": waves(cluster, plan.held, split),
    }
    return site.runbook("mode" if of_mode else "settings", values, "mode")
