"""The steps of a change in one line each, as `ipamc plan` and `ipamc lock` print them; the runbooks have them with checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import names
from ipamc.model.lock import Lock, State
from ipamc.model.plan import Plan
from ipamc.review.runbook.commands import Commands
from ipamc.review.runbook.common import uncordoned
from ipamc.review.runbook.new_blocks import agents_read_nodes, is_made_anew, joined_again, moved
from ipamc.review.runbook.order import order
from ipamc.review.runbook.values import Step, Where

KINDS = frozenset({"Node", "Nodes", "Cilium", "Calico"})
"""First words that keep their capital letter."""
LONGEST = 220
"""Characters of commands in a line; longer ones are left to the runbook."""


def sentence(step: Step) -> str:
    """Return the title of a step, its commands, its condition and its reason."""
    commands = (step.check.command,) if step.check and not step.commands else step.commands
    said = _lowered(step.title)
    if step.where is Where.NODE:
        said = f"on the node: {said}"
    if step.edit:
        said += f" ({'; '.join(line.strip() for line in step.edit.splitlines() if line.strip()[-1:] != ':')})"
    line = " && ".join(commands)
    if line and len(line) <= LONGEST:
        said += f": {line}"
    condition = f"; only if {step.only_if}" if step.only_if else ""
    return f"{said}{condition}{f'; {step.why}' if step.why else ''}"


def _lowered(title: str) -> str:
    first = title.split(maxsplit=1)[0]
    return f"{title[0].lower()}{title[1:]}" if first.istitle() and first not in KINDS else title


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
