"""What is left to do for a node whose renumber was settled, in a line a step; `runbook.moved` has the steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipamc.model.diagnostics import names
from ipamc.model.plan import Plan
from ipamc.review.runbook.commands import Commands
from ipamc.review.runbook.common import uncordoned
from ipamc.review.runbook.moved import agents_read_nodes, is_made_anew, joined_again, moved
from ipamc.review.runbook.sentences import sentence


def after_settle(plan: Plan, nodes: Sequence[str]) -> tuple[str, ...]:
    """Return the steps for drained nodes, each a command and why, in order; () for no nodes.

    They come after the lock and what it renders were merged and applied.
    """
    if not nodes:
        return ()
    node = nodes[0] if len(nodes) == 1 else "NODE"
    each = f", then for each of {names(nodes)}" if len(nodes) > 1 else ""
    steps = enumerate(after_apply(plan, node), 1)
    return (
        f"next: compile, merge and apply this{each}; ipamc runbook {plan.cluster.name} has all steps, with checks:",
        *(f"{number}. {step}" for number, step in steps),
    )


def after_apply(plan: Plan, node: str) -> Iterator[str]:
    """Yield the steps for a drained node, after its new block was applied; `node` may stand for several."""
    cluster = plan.cluster
    run = Commands(cluster, shared=plan.operator_pools)
    refresh = (
        f"refresh the inventory: {run.dump_nodes} && {run.refresh}, then {run.ipamc('compile', run.name)}"
    )
    if is_made_anew(cluster):
        yield from map(sentence, joined_again(run, (node,)))
        yield f"{refresh}, merge and apply: the new Node has another uid"
    if agents_read_nodes(cluster):
        return
    yield from (
        sentence(step) for step in moved(run, {node: plan.held.get(node, ())}) if step.key != "agent-ready"
    )
    yield sentence(uncordoned(run, (node,)))
    yield f"{refresh}, and merge: the CiliumNodes in git still show the former blocks"
