"""Nodes leave for good: first from the cluster, then from the inventory, and at last their pool."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ipamc.model.diagnostics import count, names
from ipamc.model.plan import Plan
from ipamc.review.runbook.commands import STOP_PODS, Commands
from ipamc.review.runbook.common import applied, audited, cordoned, drained, merged, refreshed
from ipamc.review.runbook.values import Check, Cut, Phase, Runbook, Step, Wave, Where, alone, waves


def decommission(
    plan: Plan, run: Commands, cut: Cut, nodes: Collection[str], pools: Sequence[str] = ()
) -> Runbook:
    """Return the steps by which nodes leave. `pools`: those that are to go with them."""
    known = {node.name for node in plan.cluster.nodes}
    going = [node for node in sorted(nodes) if plan.held.get(node) or node in known]
    phases = [_gone(plan, run, cut, going), forgotten(plan, run, going)]
    if pools:
        phases.append(_without_pools(run, pools))
    return Runbook(
        cluster=run.name,
        change="decommission",
        title=f"Decommission {count(len(going), 'node')} of {run.name}",
        about=tuple(_about(plan, run)),
        phases=tuple(phases),
        way_back="until a Node is deleted: uncordon it. A node that joins again while its lines are in quarantine gets its "
        "blocks back; so does one whose release was not merged yet",
    )


def _about(plan: Plan, run: Commands) -> Iterator[str]:
    days = plan.cluster.quarantine_days
    yield (
        "the blocks stay in quarantine until they are released"
        if days is None
        else f"nobody gets the blocks for {count(days, 'day')} after the merge"
    )
    if run.cluster.shared_pools or run.cluster.operator_adopts:
        yield "the operator frees the blocks that it gave out as soon as a CiliumNode is deleted"


def _gone(plan: Plan, run: Commands, cut: Cut, nodes: Sequence[str]) -> Phase:
    running = {node.name for node in plan.cluster.nodes if not node.planned}
    found = [
        Wave(
            name=name,
            nodes=some,
            steps=(
                cordoned(run, some),
                drained(run, some, "their pods start elsewhere"),
                *deleted(run, some),
                _left(run, some),
            ),
        )
        for name, some in waves(plan.cluster, [node for node in nodes if node in running], cut)
    ]
    return Phase(
        title="Take the nodes out of the cluster, wave by wave", waves=tuple(found) or (Wave(steps=()),)
    )


def deleted(run: Commands, nodes: Sequence[str]) -> Iterator[Step]:
    """Yield the steps that stop machines, and delete their Nodes and CiliumNodes."""
    yield Step(
        key="stop-kubelet",
        title="Switch the machines off, or stop their kubelets and pods for good",
        why="a kubelet that starts again makes its Node anew; and no pod may use the block when it is given to others",
        where=Where.NODE,
        nodes=tuple(nodes),
        commands=("sudo systemctl disable --now kubelet", STOP_PODS),
    )
    yield Step(
        key="delete-node",
        title="Delete the Nodes, and the CiliumNodes that do not go with them",
        why="a CiliumNode whose agent never started has no owner, and its block would be announced for ever",
        nodes=tuple(nodes),
        commands=(
            run.kubectl("delete", "node", "--ignore-not-found", *nodes),
            run.kubectl("delete", "ciliumnode", "--ignore-not-found", *nodes),
        ),
    )


def _left(run: Commands, nodes: Sequence[str]) -> Step:
    return Step(
        key="gone",
        title="Check that they are gone",
        check=Check(
            command=run.kubectl("get", "nodes,ciliumnodes", "--ignore-not-found", "--output=name", *nodes),
            expect="",
        ),
        if_not="a kubelet or an agent still runs there: stop it, and delete the objects again",
    )


def forgotten(plan: Plan, run: Commands, nodes: Sequence[str]) -> Phase:
    """Return the phase in which nodes leave the inventory, with consent, and leave their blocks in quarantine."""
    planned = sorted({node.name for node in plan.cluster.nodes if node.planned} & set(nodes))
    edit = Step(
        key="edit-inventory",
        title=f"Remove the planned nodes {', '.join(planned)} from the inventory",
        why="a refresh keeps what is planned",
        where=Where.EDITOR,
        edit="\n".join(f"remove: {node}" for node in planned),
    )
    lines = sum(len(plan.held.get(node, ())) for node in nodes)
    return alone(
        "Take them out of the inventory",
        *merged(
            run,
            "decommission",
            f"{names(nodes)} left",
            *refreshed(run),
            run.lock("--leave", *nodes),
            edits=[edit] if planned else [],
            why="the consent names each node, because many that leave at once look like a truncated inventory",
            if_not="a node that is still in the inventory cannot leave: delete its Node first",
        ),
        Step(
            key="quarantined",
            title="Look at their lines in the lock",
            check=Check(
                command=run.counted(nodes, "quarantined"),
                expect=str(lines),
            ),
            if_not="a line that is not in quarantine is of a node that is still there: ipamc which NODE",
        ),
        applied(
            run,
            "--prune",
            why="nothing applies the manifests of nodes that left; --prune deletes what nobody uses",
        ),
        audited(run),
        Step(
            key="release",
            title="Free the blocks now",
            why="without it they are free when their quarantine is over",
            only_if="somebody needs the addresses before; propose it, and merge it, as the step before",
            commands=(run.lock("--release", *nodes),),
        ),
    )


def _without_pools(run: Commands, pools: Sequence[str]) -> Phase:
    edit = Step(
        key="edit-pool",
        title=f"Remove the document of {', '.join(pools)}, and its name from every overflow",
        why="quarantined lines may be outside of every pool: they keep their addresses from everybody all the same",
        where=Where.EDITOR,
        edit="\n".join(f"remove: kind IPPool, metadata.name {pool}" for pool in pools),
    )
    return alone(
        "Remove the pool",
        *merged(
            run,
            "without-pool",
            f"without pool {', '.join(pools)}",
            edits=[edit],
            if_not="a node still holds a block of it: renumber it, or let it leave",
        ),
        applied(run, "--prune"),
        Step(
            key="network",
            title="Take the ranges out of firewalls and BGP filters",
            where=Where.EDITOR,
            edit="when the quarantine of the last line is over",
        ),
    )
