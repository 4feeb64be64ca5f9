"""The steps of a change in one line each, as a plan prints them; `review.runbook` has them with commands and checks."""

from __future__ import annotations

from collections.abc import Sequence

from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import names
from ipamc.model.lock import Lock
from ipamc.model.plan import Plan
from ipamc.review.after_settle import after_apply
from ipamc.review.runbook.commands import Commands
from ipamc.review.runbook.moved import agents_read_nodes
from ipamc.review.runbook.order import order
from ipamc.review.runbook.sentences import sentence


def steps(lock: Lock, before: Cluster | None, plan: Plan) -> tuple[str, ...]:
    """Return the steps, each a sentence with its commands; () where no order matters.

    `lock` and `before` are of the base; `before` is None if its documents cannot be read.
    """
    return tuple(map(sentence, order(lock, before, plan, Commands(plan.cluster))))


def moves(plan: Plan, nodes: Sequence[str]) -> tuple[str, ...]:
    """Return the steps for nodes whose renumber is settled, and that are still to move; () for no nodes."""
    if not nodes:
        return ()
    cluster = plan.cluster
    return (
        f"drain {names(nodes)}, if that was not done before: {Commands(cluster).drain('NODE')}",
        "merge, and let ipamc ci apply run; podCIDRs of a Node cannot change, so nothing moves yet"
        if agents_read_nodes(cluster)
        else "merge, and let ipamc ci apply write the new block; it withholds it from a node that still runs pods of the old one",
        *after_apply(plan, nodes[0] if len(nodes) == 1 else "NODE"),
    )
