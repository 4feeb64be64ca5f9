"""Another mode, operator, pinning or patchNodes: agreed on by one merge, then brought to the cluster in its order."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cilium.features import LAST
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.lock import Lock
from ipamc.model.plan import Plan
from ipamc.review.runbook.commands import Commands
from ipamc.review.runbook.common import audited, cordoned, drained, merged, restarted, uncordoned
from ipamc.review.runbook.order import NODE_BY_NODE, order
from ipamc.review.runbook.values import Cut, Phase, Runbook, Step, Wave, Where, alone, waves


def mode_change(
    lock: Lock, before: Cluster | None, plan: Plan, run: Commands, cut: Cut, *, begun: bool
) -> Runbook:
    """Return the runbook of a change of mode or of another setting. `begun`: it is merged already."""
    cluster = plan.cluster
    of_mode = lock.mode is not cluster.mode
    what = f"{lock.mode} to {cluster.mode}" if of_mode else "another operator, pinning or patchNodes"
    steps = order(lock, before, plan, run)
    phases = [] if begun else [_proposed(run, cluster, of_mode=of_mode)]
    first = [step for step in steps if step.key == "warn"]
    rest = [step for step in steps if step.key != "warn"]
    each = next((step for step in rest if step.key == NODE_BY_NODE), None)
    title = "Bring it to the cluster, in this order"
    if each:
        phases.append(alone(title, *(step for step in rest if step is not each)))
        phases.append(_node_by_node(plan, run, each, cut))
    else:
        phases.append(alone(title, *rest, audited(run)))
    return Runbook(
        cluster=run.name,
        change="mode" if of_mode else "settings",
        title=f"{run.name}: {what}",
        about=(*(step.title for step in first), *_about(lock, cluster)),
        phases=tuple(phases),
        way_back="until the flags are rolled out, revert the merge request: nobody reads what was applied before. After "
        "that go forward: finish the steps" + (_no_return(cluster) if of_mode else ""),
    )


def _no_return(cluster: Cluster) -> str:
    if cluster.mode is Mode.MULTI_POOL:
        return ". There is no way out of multi-pool mode while nodes have blocks (IPC0543)"
    return ", and then change the mode again with this runbook"


def _about(lock: Lock, cluster: Cluster) -> Iterator[str]:
    if lock.mode is Mode.CLUSTER_POOL and cluster.mode is Mode.MULTI_POOL and cluster.cilium >= LAST:
        yield "Cilium 1.20 can copy podCIDRs into pools by itself (enable-cluster-pool-to-multi-pool-migration); these steps do not use it, and work with every minor. Use one of the two, not both"


def _proposed(run: Commands, cluster: Cluster, *, of_mode: bool) -> Phase:
    consent = (run.lock("--mode"),) if of_mode else ()
    edit = Step(
        key="edit-mode",
        title=f"Set ipam.mode to {cluster.mode} in the Cluster document",
        where=Where.EDITOR,
        edit=f"spec:\n  ipam:\n    mode: {cluster.mode}",
    )
    return alone(
        "Agree on it",
        *merged(
            run,
            "mode",
            f"ipam.mode {cluster.mode}" if of_mode else "other settings of ipam",
            *consent,
            edits=[edit],
            if_not="IPC0543 to IPC0545 say which nodes could not keep their blocks",
        ),
    )


def _node_by_node(plan: Plan, run: Commands, step: Step, cut: Cut) -> Phase:
    """Return the phase in which nodes take up the new mode without pods, wave by wave."""
    found = []
    for name, nodes in waves(plan.cluster, step.nodes, cut):
        steps = (
            cordoned(run, nodes),
            drained(run, nodes, step.why),
            *restarted(run, nodes),
            audited(run),
            uncordoned(run, nodes),
        )
        found.append(Wave(name=name, nodes=nodes, steps=steps))
    return Phase(title="Let the agents start in the new mode, wave by wave", waves=tuple(found))
