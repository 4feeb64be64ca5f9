"""A second IP family: every node gets a block of it, before agents are told to use it."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import names
from ipamc.model.plan import Plan
from ipamc.review.runbook.commands import Commands
from ipamc.review.runbook.common import applied, audited, merged, restarted_pods, shown
from ipamc.review.runbook.order import BEFORE, agents, flags
from ipamc.review.runbook.values import Cut, Phase, Runbook, Step, Wave, Where, alone, waves


def dual_stack(plan: Plan, run: Commands, cut: Cut, family: int, *, begun: bool) -> Runbook:
    """Return the steps by which every node gets a block of a family. `begun`: it is merged already.

    If it is, `plan` has the new blocks.
    """
    cluster = plan.cluster
    phases = [] if begun else [_proposed(run, cluster, family)]
    phases.append(
        alone("Give every node its block, then tell the agents", *_rolled_out(plan, run, family, begun=begun))
    )
    phases.append(_pods(run, cluster, cut))
    return Runbook(
        cluster=run.name,
        change="dual-stack",
        title=f"{run.name}: IPv{family} beside IPv{10 - family}",
        about=(
            f"the nodes need addresses of IPv{family}, and kube-apiserver, kube-controller-manager and kube-proxy service ranges of both families: that is not ipamc's",
            f"a pod has one address of each family only after it was started again; until then it has no IPv{family}",
        ),
        phases=tuple(phases),
        way_back=f"until the flags are rolled out, revert the merge request and leave the blocks of IPv{family} where they "
        f"are. After that set enable-ipv{family} to false and restart the agents; pods keep what they have until they restart",
    )


def _proposed(run: Commands, cluster: Cluster, family: int) -> Phase:
    families = ", ".join(f"IPv{each}" for each in (*cluster.families, family))
    pools = names(pool.name for pool in cluster.pools if family not in pool.families and not pool.disabled)
    return alone(
        f"Write ranges of IPv{family}",
        *merged(
            run,
            "dual-stack",
            f"IPv{family} for every node",
            edits=[
                Step(
                    key="edit-families",
                    title="Add the family to the Cluster, and ranges of it to every pool",
                    why="a pool serves all families of a node, or none",
                    where=Where.EDITOR,
                    edit=f"in the Cluster:\nspec:\n  ipFamilies: [{families}]\nin each pool ({pools}):\nspec:\n  ipv{family}: {{cidrs: [CIDR], blockSize: LENGTH}}",
                )
            ],
        ),
        Step(
            key="print-again",
            title="Print this runbook again, as what is under way: it then has the new blocks, and the rest of the steps",
            commands=(run.ipamc("runbook", run.name, "--base", "HEAD~1"),),
        ),
    )


def _rolled_out(plan: Plan, run: Commands, family: int, *, begun: bool) -> Iterator[Step]:
    cluster = plan.cluster
    yield applied(run, BEFORE, why="agents that are told to use a family wait for ever for a block of it")
    running = tuple(node.name for node in cluster.nodes if not node.planned)
    if begun and cluster.mode is not Mode.MULTI_POOL:
        yield from shown(
            run,
            {node: plan.held.get(node, ()) for node in running},
            "Check that every node has a block of each family",
            if_not="stop: an agent without a block of each family does not start. Apply again",
        )
    yield flags(run)
    yield agents(run, f"they use IPv{family} from now on; running pods keep their addresses")
    yield audited(run)


def _pods(run: Commands, cluster: Cluster, cut: Cut) -> Phase:
    running = [node.name for node in cluster.nodes if not node.planned]
    found = [
        Wave(name=name, nodes=nodes, steps=(restarted_pods(run, nodes),))
        for name, nodes in waves(cluster, running, cut)
    ]
    return Phase(title="Start the pods again, as the workloads allow", waves=tuple(found))
