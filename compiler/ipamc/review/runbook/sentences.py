"""The steps of runbooks in one line each, as `ipamc plan` and `ipamc lock` print them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ipamc.lock.consent import with_selected
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import names
from ipamc.model.limits import COMMANDS_IN_LINE
from ipamc.model.lock import Consent, Lock, State
from ipamc.model.plan import Plan
from ipamc.review.runbook.planners import mode_under_way
from ipamc.review.runbook.site import Site
from ipamc.review.runbook.steps import Split, Step, Where

KINDS = frozenset({"Node", "Nodes", "Cilium", "Calico"})  # first words that keep their capital letter
Templates = Mapping[str, str]  # the texts of `templates/runbooks/` by file name


def sentence(step: Step) -> str:
    """Return the title of a step, its commands, its condition and its reason as one line."""
    first, said = step.title.split(maxsplit=1)[0], step.title
    if first.istitle() and first not in KINDS:
        said = f"{said[0].lower()}{said[1:]}"
    if step.where is Where.NODE and " node" not in said.partition(":")[0]:
        said = f"on the node: {said}"
    if step.edit:
        said += f" ({'; '.join(line.strip() for line in step.edit.splitlines() if line.strip()[-1:] != ':')})"
    line = step.check.command if step.check and not step.commands else _commands(step)
    if line and len(line) <= COMMANDS_IN_LINE:
        said += f": {line}"
    condition = f"; only if {step.only_if}" if step.only_if else ""
    return f"{said}{condition}{f'; {step.why}' if step.why else ''}"


def steps(lock: Lock, before: Cluster | None, plan: Plan, templates: Templates) -> tuple[str, ...]:
    """Return the steps, each a sentence with its commands; () if any order works.
    `lock` and `before` are of the base; `before` is None if its documents cannot be read.
    """
    site = Site(plan, templates)
    runbook = mode_under_way(lock, before, plan, site, Split(), in_brief=True)
    if runbook is None:
        return ()
    warning = runbook.about[:1] if runbook.change == "mode" else ()
    return (*warning, *map(sentence, runbook.phases[0].waves[0].steps))


def moves(plan: Plan, nodes: Sequence[str], templates: Templates) -> tuple[str, ...]:
    """Return the steps for nodes whose renumber is settled and that still have to move; () for no nodes."""
    if not nodes:
        return ()
    before, _, _ = _phases(plan, "NODE", templates)
    return (
        f"drain {names(nodes)}, unless drained already: {_commands(before['drain'])}",
        "merge, and let ipamc apply run; podCIDRs of a Node are immutable, so nothing moves yet"
        if Site(plan).agents_read_nodes
        else "merge, and let ipamc apply write the new block; it withholds the block while pods on the node "
        "use the old one, because other nodes route to the new block at once",
        *after_apply(plan, nodes[0] if len(nodes) == 1 else "NODE", templates),
    )


def after_settle(plan: Plan, nodes: Sequence[str], templates: Templates) -> tuple[str, ...]:
    """Return the steps for drained nodes after a lock was merged and applied, in order; () for no nodes."""
    if not nodes:
        return ()
    each = f", then for each of {names(nodes)}" if len(nodes) > 1 else ""
    steps = enumerate(after_apply(plan, nodes[0] if len(nodes) == 1 else "NODE", templates), 1)
    every = f"{each}; ipamc runbook {plan.cluster.name} prints all steps, with checks:"
    return f"next: compile, merge and apply this change{every}", *(
        f"{number}. {step}" for number, step in steps
    )


def after_apply(plan: Plan, node: str, templates: Templates) -> Iterator[str]:
    """Yield the steps for a drained node after its new block is applied; `node` may stand for several."""
    cluster, site = plan.cluster, Site(plan)
    before, join, move = _phases(plan, node, templates)
    refresh = f"refresh the inventory: {_commands(before['refresh'])}, then ipamc compile {cluster.name}"
    if site.joins_again:
        yield from map(sentence, join.values())
        yield f"{refresh}, merge and apply: the new Node has another uid"
    yield from (sentence(step) for step in move.values() if step.key != "agent-ready")
    if not site.agents_read_nodes:
        yield f"{refresh}, and merge: the CiliumNodes in git still have the former blocks"


def after_renumber(plan: Plan, consent: Consent, templates: Templates) -> tuple[str, ...]:
    """Return the steps for the nodes of a consent, each a command and why, in order.
    A node that is planned, or shows the new block already, is settled, and needs none.
    """
    scopes = with_selected(plan.scheme, consent).renumber
    lines = [line for line in plan.lock.lines if line.state is not State.RELEASED]
    asked = {line.node for line in lines if any(scope.matches(line) for scope in scopes)}
    had = {line.block for line in plan.lock.written if line.in_use}
    settled = {line.node for line in lines if line.block in had and not line.in_use and line.node in asked}
    nodes = sorted(asked & {line.node for line in lines if line.state is State.PENDING})
    if not nodes:
        held = (line for node in settled for line in plan.held.get(node, ()))
        blocks = names(f"{line.node} ({line.block})" for line in held)
        at_once = f"already held, because planned or shown; nothing to settle: {blocks}"
        return (f"{at_once}; next: ipamc compile {plan.scheme.name}",) if settled else ()
    name, node = plan.cluster.name, nodes[0] if len(nodes) == 1 else "NODE"
    before, _, _ = _phases(plan, node, templates)
    each = f"for each of {names(nodes)}" if len(nodes) > 1 else f"for {node}"
    shared = plan.cluster.shared_pools  # there a CiliumNode with the old block keeps it from being settled
    seen = sorted({each.at.path for each in plan.cluster.cilium_nodes if shared and each.name in asked})
    forget = f"remove the CiliumNode from {names(seen)}, then " if seen else ""
    return (
        f"next: commit and merge this change (a pending block is reserved, but not rendered), then {each}:",
        f"1. {_commands(before['drain'])}",
        f"2. {forget}{_commands(before['settle'])}: this renders the new block and prints the next steps",
        f"ipamc runbook {name} prints all steps, with checks; to cancel: {_commands(before['release'])}",
    )


def _phases(plan: Plan, node: str, templates: Templates) -> list[dict[str, Step]]:
    """Return the steps of each phase of the template `next.j2`, by key."""
    site = Site(plan, templates)
    runbook = site.runbook("next", {"nodes": (node,), "blocks": {node: plan.held.get(node, ())}})
    return [{step.key: step for step in phase.waves[0].steps} for phase in runbook.phases]


def _commands(step: Step) -> str:
    return " && ".join(step.commands)
