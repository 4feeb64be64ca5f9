"""What is left to do for nodes that are to be renumbered, in a line a step; `ipamc runbook` has all of them."""

from __future__ import annotations

from ipamc.model.diagnostics import names
from ipamc.model.lock import State
from ipamc.model.plan import Plan
from ipamc.review.runbook.commands import Commands


def after_renumber(plan: Plan) -> tuple[str, ...]:
    """Return the steps for the nodes that have a pending block, each a command and why, in order; () without any."""
    nodes = sorted({line.node for line in plan.lock.lines if line.state is State.PENDING})
    if not nodes:
        return ()
    run = Commands(plan.cluster, shared=plan.operator_pools)
    node = nodes[0] if len(nodes) == 1 else "NODE"
    each = f"for each of {names(nodes)}" if len(nodes) > 1 else f"for {node}"
    return (
        f"next: commit and merge this: a pending block is reserved, and rendered nowhere; then {each}:",
        f"1. {run.drain(node)}",
        f"2. {run.lock('--settle', node)}: it renders the new block, and says what comes then",
        f"{run.ipamc('runbook', run.name)} has all steps, with checks; {run.ipamc('lock', run.name, '--release', node)} cancels",
    )
