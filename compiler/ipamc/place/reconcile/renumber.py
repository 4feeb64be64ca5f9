"""Renumbering: a node gets a pending block by consent, and moves to it once drained (rule 3). Resizing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ipamc.lock.consent import did_you_mean
from ipamc.lock.file import line_at
from ipamc.model.diagnostics import Diagnostic, Span, error, names
from ipamc.model.lock import Consent, Key, Line, Lock, State
from ipamc.model.plan import Demand, NodeState, StaleReason, Want
from ipamc.model.pool_words import terms
from ipamc.model.wording import nearest_name
from ipamc.place.reconcile.context import Context
from ipamc.place.reconcile.transitions import changed, complete, has_arrived, needed, quarantined


def renumber(node: NodeState, want: Want, context: Context) -> NodeState:
    """Request pending blocks by consent, all of a key together; a key with a pending line is skipped."""
    if not node.pending and not context.consent.renumber:
        return node
    found = list(torn_apart(node, context))
    pending = {context.key(line) for line in node.pending}
    groups: dict[Key, list[Line]] = defaultdict(list)
    for line in node.held if context.consent.renumber else ():
        groups[context.key(line)].append(line)
    demands: list[Demand] = []
    families: list[int] = []
    for (_, family, pool), lines in sorted(groups.items()):
        scopes = [scope for scope in context.consent.renumber if any(map(scope.matches, lines))]
        offer = next((offer for offer in want.offers if offer.pool.name == pool), None)
        if not scopes or (node.name, family, pool) in pending:
            continue
        serving = [each.pool for each in want.offers if pool in {"", each.pool.name}]
        pins = {pin.block for each in serving for pin in each.pins.get(node.name, ())}
        if {line.block for line in lines} <= pins:
            if any(scope.node for scope in scopes):  # else it is one of several, and keeps its pin
                found.append(pinned_already(context.lock, want, lines[0]))
        elif family not in context.cluster.families:
            found.append(nowhere_to_go(context.lock, lines[0], f"IPv{family} is not in ipFamilies"))
        elif context.one_block:
            families.append(family)
        elif offer is None and pool in context.operator_pools:
            # The operator gave it because a pod named the pool, and it goes with that pod.
            if not any(scope.node for scope in scopes):
                why = f"pool {pool} does not serve the node; delete the pods that use it"
                shows = f"refresh once CiliumNode {node.name} no longer shows it"
                found.append(
                    nowhere_to_go(context.lock, lines[0], why, f"delete these pods, and {shows}; or ")
                )
        elif offer is None:
            why = f"pool {pool or 'none'} no longer serves the node"
            found.append(nowhere_to_go(context.lock, lines[0], why))
        else:
            # A node that got more blocks by its use keeps their number when it moves.
            had = len(lines) if offer.pool.usage else 0
            number = max(needed(offer.pool, node.name, family, had), had)
            demands.append(Demand(want, (family,), offer, {family: number}))
    if families:
        in_order = tuple(family for family in context.cluster.families if family in families)
        demands.append(Demand(want, in_order))
    if not demands and not found:
        return node
    return replace(node, renumbers=tuple(demands), found=(*node.found, *found))


def complete_placed(
    nodes: Mapping[str, NodeState], new: Iterable[Line], today: str, *, one_block: bool
) -> Iterator[NodeState]:
    """Yield the renumbered nodes that have already arrived, with their placed `new` lines."""
    placed: dict[str, list[Line]] = defaultdict(list)
    for line in new if nodes else ():
        placed[line.node].append(line)
    for name, node in nodes.items():
        lines = sorted([*node.in_use, *placed[name]], key=lambda line: line.block)
        now = replace(node, lines=tuple(lines))
        if has_arrived(now, one_block=one_block):
            yield complete(now, today, one_block=one_block)


def torn_apart(node: NodeState, context: Context) -> Iterator[Diagnostic]:
    """IPC0433: a pending block belongs to the pool of the block that it replaces."""
    held = {context.key(line) for line in node.held}
    for line in node.pending:
        if context.key(line) not in held:
            moved = f"pending block {line.block} of {line.node} is now in pool {line.pool or 'none'}"
            message = f"{moved}, but the block that it replaces is not"
            cancel = f"ipamc lock {context.lock.cluster} --release {line.block}"
            fix = f"undo the change of pools and settle the move; or cancel the move: {cancel}"
            yield error("IPC0433", line_at(context.lock, line), message, help=fix)


def no_pending_line(lock: Lock, nodes: Sequence[NodeState], consent: Consent) -> Iterator[Diagnostic]:
    """IPC0428: `--settle` names a node that has a pending line."""
    command = f"ipamc lock {lock.cluster}"
    waiting = {node.name: node.pending for node in nodes if node.pending}
    had = {node.name for node in nodes if StaleReason.ARRIVED in node.stale} | waiting.keys()
    for name in sorted(consent.settle - had):
        of_pool = [node for node in waiting if name in {f"pool/{line.pool}" for line in waiting[node]}]
        meant = nearest_name(name, waiting) or min(of_pool or waiting, default="")
        fix = f"no {terms(lock).unit} has one; ipamc show {lock.cluster} --show-blocks lists the holders"
        held = (line for line in lock.lines if line.node == name and line.state is State.HELD)
        if holds := names(str(line.block) for line in held):
            move = f"to move it: {command} --renumber {name}"
            fix = f"{name} holds {holds}; if it has moved there, nothing is left to settle; {move}"
        elif meant:
            fix = f"name each {terms(lock).unit} that is drained: {command} --settle {meant}"
        yield error("IPC0428", Span(lock.path), f"{name} has no pending line to settle", help=fix)


def no_held_line(lock: Lock, nodes: Iterable[NodeState], consent: Consent) -> Iterator[Diagnostic]:
    """IPC0427: `--renumber` names a node, a CIDR or a pool (`pool/NAME`) with held blocks."""
    held = [line for node in nodes for line in node.held] if consent.renumber else []
    known = [line for line in lock.lines if line.in_use] if consent.renumber else []
    pools = names(f"pool/{line.pool}" for line in known if line.pool) or "pool/NAME"
    for scope in consent.renumber:
        if not any(map(scope.matches, held)):
            message = f"{scope.text} matches no block held by a {terms(lock).unit} {terms(lock).listed}"
            meant = did_you_mean(scope, known, pools=True)
            show = f"ipamc show {lock.cluster} --show-blocks lists the holders"
            name = f"name a {terms(lock).unit}, a CIDR, {pools} or a selector (\"rack == 'a'\")"
            fix = f"{meant}{name}; {show}"
            yield error("IPC0427", Span(lock.path), message, help=fix)


def pinned_already(lock: Lock, want: Want, line: Line) -> Diagnostic:
    """IPC0431: a node that holds its pin cannot be renumbered."""
    at = line_at(lock, line, otherwise=want.node.at)
    message = f"{line.node} already holds its pin {line.block}"
    return error("IPC0431", at, message, help="change or remove the pin")


def nowhere_to_go(lock: Lock, line: Line, why: str, before: str = "") -> Diagnostic:
    """IPC0432: a node that is renumbered can get another block."""
    message = f"{line.block} of {line.node} cannot move to another block: {why}"
    command = f"ipamc lock {lock.cluster}"
    leave = f"drain {line.node}, remove it from the inventory, and run {command}"
    fix = f"{before}{leave}; then: {command} --release {line.block}"
    return error("IPC0432", line_at(lock, line), message, help=fix)


def resize(node: NodeState, context: Context) -> NodeState:
    """Quarantine for good the blocks that a node gives back, and change the number of addresses of others."""
    decided = context.consent.resize.get(node.name)
    if decided is None:
        return node
    held = {line.block: line for line in node.held}
    if any(block not in held for block in (*decided.reclaim, *decided.addresses)):
        return replace(node, found=(*node.found, lock_changed(context)))
    lines = {block: replace(held[block], addresses=number) for block, number in decided.addresses.items()}
    lines |= {block: quarantined(held[block], context.today, moved=True) for block in decided.reclaim}
    return changed(node, lines, StaleReason.RESIZED) if lines else node


def grow(node: NodeState, want: Want, context: Context) -> NodeState:
    """Add demands for the blocks that a resize gives a node in addition."""
    decided = context.consent.resize.get(node.name)
    demands = [
        Demand(want, (more.family,), offer, {more.family: more.blocks}, more)
        for more in (decided.grow if decided else ())
        for offer in want.offers
        if offer.pool.name == more.pool
    ]
    stale = (*node.stale, StaleReason.RESIZED) if demands else node.stale
    return replace(node, demands=(*node.demands, *demands), stale=stale) if demands else node


def lock_changed(context: Context) -> Diagnostic:
    """IPC0617: the lock does not change while `ipamc resize` runs."""
    message = "the lock changed during the resize"
    return error("IPC0617", Span(context.lock.path), message, help="run ipamc resize again")
