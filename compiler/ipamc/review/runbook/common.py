"""Steps that many changes share: a branch, a merge request, an apply, an audit, nodes without pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote

from ipamc.model.lock import Line
from ipamc.review.runbook.commands import Commands
from ipamc.review.runbook.values import Check, Phase, Step, Where, alone

FEW = 25
"""The most nodes whose blocks a check lists; for more, the audit is the check."""


def merged(
    run: Commands,
    name: str,
    message: str,
    *commands: str,
    edits: Iterable[Step] = (),
    why: str = "",
    if_not: str = "",
) -> Iterator[Step]:
    """Yield the steps of one merge request: a branch of this name, edits, consent or refresh, compile, commit, merge."""
    branch = f"runbook/{run.name}/{name}"
    yield Step(
        key="branch",
        title="Begin a branch at the trunk",
        commands=run.branch(branch),
        if_not="commit or stash what the work tree has, and try again. If a branch of this name is pushed already, somebody works "
        "on this change: look at it, and delete it when it is done",
    )
    yield from edits
    yield Step(
        key="propose",
        title="Compile it, and propose it for review",
        why=why,
        commands=(*commands, *run.commit(message)),
        if_not=if_not or "a finding says what is wrong and how to fix it; nothing was applied",
    )
    yield Step(
        key="merge",
        title=f"Open a merge request for {branch}, read its plan, and merge it",
        why="if nothing changed, there is nothing to merge",
        where=Where.FORGE,
        commands=run.merged,
        check=run.same_as(branch),
        if_not=f"it is not merged yet, or somebody changed this cluster meanwhile: git log {branch}..HEAD -- {run.where}",
    )


def applied(
    run: Commands,
    *options: str,
    by_hand: bool = False,
    if_not: str = "",
    why: str = "",
    check: Check | None = None,
) -> Step:
    """Return the step of an apply. With options, and where pipelines are paused, a person does it."""
    by_hand |= bool(options)
    return Step(
        key="apply",
        title=" ".join(("Apply it by hand" + (", with" if options else ""), *options))
        if by_hand
        else "Let the pipeline apply it",
        why=why,
        where=Where.HERE if by_hand else Where.PIPELINE,
        commands=(" ".join((run.apply, *options)),),
        check=check,
        if_not=if_not
        or "it names each object that it withholds or that was refused, and why: do as it says, and run it again",
    )


def shown(
    run: Commands, blocks: Mapping[str, Sequence[Line]], title: str, *, if_not: str, key: str = "shown"
) -> Iterator[Step]:
    """Yield the step that looks whether nodes show their blocks; nothing for no nodes, or too many."""
    if 0 < len(blocks) <= FEW:
        yield Step(key=key, title=title, nodes=tuple(sorted(blocks)), check=run.shows(blocks), if_not=if_not)


def audited(run: Commands, why: str = "") -> Step:
    """Return the step that compares the live cluster with git."""
    return Step(
        key="audit",
        title="Audit the cluster",
        why=why
        or "it finds blocks of two nodes, pods outside of their node's block, and agents that did not restart",
        commands=(run.dump,),
        check=run.audited,
        if_not="stop here, before the next wave: each problem has a code, and ipamc explain CODE says what to do",
    )


def refreshed(run: Commands) -> tuple[str, ...]:
    """Return the commands that take the live Nodes over into the inventory."""
    return run.dump_nodes, run.refresh


def up_to_date(run: Commands, branch: str, message: str, why: str) -> Phase:
    """Return the phase in which the inventory takes over what the cluster shows."""
    return alone(
        "Bring the inventory up to date",
        *merged(run, branch, message, *refreshed(run), why=why),
        audited(run),
    )


def cordoned(run: Commands, nodes: Sequence[str]) -> Step:
    """Return the step that keeps new pods away from all nodes of a wave."""
    return Step(
        key="cordon",
        title="Cordon the nodes of this wave",
        why="so that no pod moves from one of them to another",
        nodes=tuple(nodes),
        commands=(run.kubectl("cordon", *nodes),),
        check=run.schedulable(nodes, cordoned=True),
    )


def drained(
    run: Commands, nodes: Sequence[str], why: str = "pods get addresses of the new block only when they start"
) -> Step:
    """Return the step that drains nodes, one after the other."""
    return Step(
        key="drain",
        title="Drain them, one after the other",
        why=why,
        nodes=tuple(nodes),
        commands=tuple(run.drain(node) for node in nodes),
        if_not="a PodDisruptionBudget may forbid an eviction: kubectl says which pod. Start another replica "
        "elsewhere, and drain again. To give up: uncordon the nodes; nothing was changed yet",
    )


def restarted(run: Commands, nodes: Sequence[str]) -> Iterator[Step]:
    """Yield the steps that restart the agents of nodes, and then the pods that a drain leaves."""
    yield Step(
        key="restart-agent",
        title="Restart their agents",
        why="agents read their block at their start",
        nodes=tuple(nodes),
        commands=tuple(run.restart_agent(node) for node in nodes),
        if_not="see the agent's log; one that waits for a block says so, and its CiliumNode shows which one it has",
    )
    yield ready(run, nodes, "wait some minutes; then see the agent's log")
    yield restarted_pods(run, nodes)


def ready(run: Commands, nodes: Sequence[str], if_not: str = "") -> Step:
    """Return the step that waits for the agent of each node."""
    agent = run.of_cilium(
        "get",
        "pods",
        "--selector=k8s-app=cilium",
        "--no-headers",
        "--output=custom-columns=READY:.status.containerStatuses[*].ready",
    )
    return Step(
        key="agent-ready",
        title="Wait for their agents",
        nodes=tuple(nodes),
        check=Check(
            command=f'for node in {" ".join(map(quote, nodes))}; do {agent} --field-selector=spec.nodeName="$node"; done',
            expect="\n".join("true" for _ in nodes),
        ),
        if_not=if_not,
    )


def restarted_pods(run: Commands, nodes: Sequence[str]) -> Step:
    """Return the step that starts the pods again that a drain leaves."""
    return Step(
        key="restart-pods",
        title="Start the pods again that a drain leaves, once the agents are ready",
        why="pods of DaemonSets, and others without a CiliumEndpoint, keep addresses of the old block until they start again",
        nodes=tuple(nodes),
        commands=tuple(run.delete_pods(node) for node in nodes),
    )


def uncordoned(run: Commands, nodes: Sequence[str]) -> Step:
    """Return the step that ends a wave."""
    return Step(
        key="uncordon",
        title="Let pods come back",
        nodes=tuple(nodes),
        commands=(run.kubectl("uncordon", *nodes),),
        check=run.schedulable(nodes, cordoned=False),
    )
