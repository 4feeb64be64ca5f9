"""Compares the lock with the inventory, node by node: the blocks of each node today, and what it still needs.

A held line of a node in the inventory is kept. A line vanishes only by re-use. The lines of a node that left
are quarantined, and are the first that it gets back when it returns.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ipamc.check.drift import disagreeing
from ipamc.check.evidence import (
    Unknown,
    block_unknown,
    cilium_node_without_node,
    consent_about_nobody,
    other_cluster,
    pods_elsewhere,
    too_many,
)
from ipamc.check.held_blocks import ILLEGAL, UNTIL_MOVED, Fault, Faulty, Why, classify
from ipamc.check.leavers import leaver_findings, truncated_list
from ipamc.lock.consent import apply_consent
from ipamc.lock.file import line_at
from ipamc.model.cidr import Block
from ipamc.model.cluster import Mode, Pool, Scheme
from ipamc.model.diagnostics import Diagnostic, Span, count, error, names
from ipamc.model.evidence import Evidence, waits
from ipamc.model.limits import FEW_NODES
from ipamc.model.lock import Consent, Line, Lock, State
from ipamc.model.ownership import OwnershipRules, RangeIndex
from ipamc.model.plan import NodeState, Origin, Reconciled, ShownBlock, Stale, StaleReason, Want
from ipamc.place.candidates import unlisted_pools, unmatched_refused, unmatched_skipped
from ipamc.place.reconcile import transitions
from ipamc.place.reconcile.adopt import (
    Conflict,
    barred,
    conflicts,
    left_by,
    make_room,
    merge_adopted,
    refused,
    release_overtaken,
)
from ipamc.place.reconcile.context import Context
from ipamc.place.reconcile.renumber import grow, no_held_line, no_pending_line, renumber, resize
from ipamc.read.rendered import Rendered

InPool = tuple[Line, Pool | None]
"""A line, and the pool whose range contains its block."""


def reconcile(  # noqa: PLR0913 - everything that decides about a line
    cluster: Scheme,
    wants: tuple[Want, ...],
    lock: Lock,
    consent: Consent,
    today: str,
    *,
    locked: bool,
    shared: frozenset[str] = frozenset(),
    rendered: Rendered | None = None,
    dumped: frozenset[str] = frozenset(),
) -> tuple[Reconciled, list[Diagnostic]]:
    """Bring every line of the lock to today's state, and list what is still to be placed. O(n log n).
    `today` is an ISO 8601 day in UTC. `locked` refuses an outdated lock (rule 7). Cilium's operator allocates
    the blocks of `shared` pools. `rendered` is the output of an earlier compile. `dumped` are
    the kinds of the dump that was just imported.
    """
    uids = rendered_uids(cluster, lock, consent, rendered) if rendered else {}
    before, found = apply_consent(cluster, lock, consent)
    operator_pools = shared | unlisted_pools(cluster)
    context = Context(
        cluster=cluster,
        lock=before,
        consent=consent,
        today=today,
        ranges=RangeIndex(cluster.pools),
        one_block=cluster.mode.one_block,
        operator_pools=operator_pools,
        rendered_uids=uids,
    )
    evidence = Evidence(cluster, before.lines)
    context = make_room(release_overtaken(context, evidence), evidence)
    lock = context.lock
    idle, faults, nodes = _by_node(wants, evidence, context)
    leavers = {node.name: node.in_use for node in nodes if node.want is None and node.in_use}
    nodes = [_advance(node, context) for node in nodes]
    with_lines = [node for node in nodes if node.lines]  # all but newcomers
    lines, over_others, wrong = merge_adopted(context, with_lines)
    adopting, without = with_lines, {each.line.node for each in over_others} | barred(with_lines, context)
    ownership = OwnershipRules(cluster, lines, operator_pools, context.ranges)
    strangers = list(evidence.without_node())
    shown = [node.shown for node in nodes if node.want and node.shown] + [(each,) for each in strangers]
    disputed = (disagreeing(cluster, ownership, shown) | without) - {each.node for each in strangers}
    late: list[Conflict] = []
    if disputed:  # what they leave as it is, others cannot have
        nodes = [
            transitions.before_dispute(node, without, context) if node.name in disputed else node
            for node in nodes
        ]
        with_lines = [node for node in nodes if node.lines]
        lines, late, wrong = merge_adopted(context, with_lines)
    stale = (
        *(Stale(reason, node.name) for node in nodes for reason in node.stale),
        *(Stale(StaleReason.FOLLOWED, name) for name in sorted(context.overtaken)),
    )

    found += leaver_findings(cluster, lock, leavers, consent)
    found += no_pending_line(lock, nodes, consent)
    found += no_held_line(lock, nodes, consent)
    found += [finding for node in with_lines for finding in node.found]
    dispute = not too_many(cluster, [name for name in disputed if not consent.adopts(name)])
    found += (*refused(context, over_others, evidence, dispute=dispute), *wrong)
    found += refused(context, late, evidence, dispute=False)
    found += conflicts(context, nodes, lines, evidence, without, dispute=dispute)
    unknown = list(_unknown(nodes, evidence, context))
    found += block_unknown(cluster, unknown, dumped)
    found += consent_about_nobody(cluster, lock, consent)
    if operator_pools and "all" not in consent.adopt:
        agreeing = len(idle.keys() & cluster.cilium_nodes_by_name.keys())
        found += other_cluster(cluster, before, _all_replaced(nodes, before), agreeing)
    for group in _faulty(faults, adopting, context, disputed if dispute else ()):
        found += group.fault.rule(cluster, group)
    without_offer = [node for node in nodes if node.want and not node.want.offers]
    unmatched = unmatched_skipped if cluster.unmatched_nodes == "skip" else unmatched_refused
    found += unmatched(cluster, [node.want.node for node in without_offer if node.want and not node.held])
    found += cilium_node_without_node(cluster, strangers)
    taken = evidence.taken(lines, (shown for node in nodes for shown in node.shown))
    found += pods_elsewhere(taken, evidence, {entry.node.name for entry in unknown})
    taken += tuple(left_by(disputed, nodes))
    found += truncated_list(cluster, consent, stale=bool(stale))
    found += stale_lock(lock, stale) if locked else ()
    origins = [(node.origins, line.block) for node in with_lines if node.origins for line in node.in_use]
    return Reconciled(
        lock=replace(lock, lines=tuple(lines)),
        held={**idle, **{node.name: held for node in with_lines if (held := node.held)}},
        operator_pools=operator_pools,
        demands=tuple(demand for node in nodes for demand in node.demands),
        renumbers=tuple(demand for node in nodes for demand in node.renumbers),
        renumbered={node.name: node for node in nodes if node.renumbers},
        taken=taken,
        origins={block: known[block] for known, block in origins if block in known},
        stale=stale,
        disputed=disputed,
        conflicting=frozenset(without),
    ), found


def rendered_uids(cluster: Scheme, lock: Lock, consent: Consent, rendered: Rendered) -> Mapping[str, str]:
    """Return the uid in each rendered Node: a Node with another uid has joined again since.
    Empty except in kubernetes mode with podCIDRs and with a renumber, where a re-created Node has no pods any
    more; and empty if most Nodes have another uid: that is the inventory of another cluster.
    """
    if cluster.mode is not Mode.KUBERNETES or cluster.patch_nodes != "podCIDRs":
        return {}
    if not (consent.renumber or any(line.state is State.PENDING or line.was_pending for line in lock.lines)):
        return {}
    uids = rendered.uids
    others = sum(uids.get(node.name, node.uid) != node.uid for node in cluster.nodes if node.uid)
    return {} if others > max(FEW_NODES, len(uids) // 2) else uids


def _all_replaced(nodes: Iterable[NodeState], before: Lock) -> list[NodeState]:
    """Return the nodes that show blocks, but none of the blocks that they held. O(lines)."""
    changed = {node.name: node for node in nodes if node.shown and node.stale}
    had: dict[str, set[Block]] = defaultdict(set)
    for line in before.lines if changed else ():
        if line.state is State.HELD and line.node in changed:
            had[line.node].add(line.block)
    both = ((node, had[name]) for name, node in changed.items())
    return [node for node, old in both if old and old.isdisjoint(line.block for line in node.held)]


def _unknown(nodes: Iterable[NodeState], evidence: Evidence, context: Context) -> Iterator[Unknown]:
    """Yield running nodes without a line in the lock whose blocks no object shows. A node that lacks one of
    one family has no pod with such an address: its agent has none to give.
    Only by consent they get a block that their pods do not use. A node that no pool serves stays as it was,
    unless addresses in use are in a pool.
    """
    consent, seen = context.consent, context.cluster.cilium_nodes_by_name
    for node in () if "all" in consent.no_pods else nodes:
        if node.want is None or not (node.want.node.running or node.name in seen):
            continue  # nearly all nodes of an inventory in short form
        origins = (node.origins.get(line.block) for line in node.held)
        if node.name in consent.no_pods or any(origin is not Origin.ADOPTED for origin in origins):
            continue
        entry = node.want.node
        have = {line.block.family for line in node.held}
        lacks = {family for demand in node.demands for family in demand.families} - have
        inferred = evidence.inferred(entry, node.held)
        if wrong := evidence.contradicted(entry):  # by consent it may show the blocks around its addresses
            wrong &= {shown.block.family for shown in {*evidence.of(entry)} & {*node.shown}}
        news = entry.running and not (node.shown or waits(entry, seen.get(node.name)))
        if (lacks and news) or not have.issuperset(shown.block.family for shown in inferred) or wrong:
            yield Unknown(
                entry, tuple(shown for shown in node.shown if shown.block.family in wrong), inferred
            )


def _by_node(
    wants: Iterable[Want], evidence: Evidence, context: Context
) -> tuple[dict[str, tuple[Line, ...]], list[tuple[Line, Fault, Want]], list[NodeState]]:
    """Return held lines of idle nodes, their faults, and states of others, the inventory's first. O(n)."""
    by_node, consent = _own_lines(context), context.consent
    idle: dict[str, tuple[Line, ...]] = {}
    faults: list[tuple[Line, Fault, Want]] = []
    nodes: list[NodeState] = []
    for want in wants:
        node = want.node
        name, shown, own = node.name, evidence.of(node), by_node.pop(node.name, None)
        if own is None:
            if consent.adopts(name):
                shown = evidence.with_inferred(node)
            nodes.append(
                transitions.newcomer(want, context)
                if not shown
                else transitions.state_of(name, want, shown, (), context)
            )
        elif not shown and is_settled(want, own, context):
            idle[name] = (own[0][0],)
        elif (found := faults_if_idle(want, shown, own, context)) is None:
            nodes.append(transitions.state_of(name, want, shown, (line for line, _ in own), context))
        else:
            idle[name] = tuple([line for line, _ in own if line.state is State.HELD])
            faults += [(line, fault, want) for line, fault in found]
    for name, own in by_node.items():
        nodes.append(transitions.state_of(name, None, (), (line for line, _ in own), context))
    return idle, faults, nodes


def _own_lines(context: Context) -> dict[str, tuple[InPool, ...]]:
    """Return the lines of each node, by address. Nearly all nodes of a one-block mode have one line."""
    lines = context.lock.lines
    by_node: dict[str, tuple[InPool, ...]] = {}
    several: dict[str, list[InPool]] = {}
    for pair in zip(zip(lines, context.ranges.pools_of([line.block for line in lines]), strict=True)):
        name = pair[0][0].node
        if by_node.setdefault(name, pair) is not pair:
            several.setdefault(name, list(by_node[name])).append(pair[0])
    return by_node | {name: tuple(own) for name, own in several.items()} if several else by_node


def _advance(node: NodeState, context: Context) -> NodeState:
    """Apply the steps to a node; if blocks follow addresses, nothing is in quarantine before or after."""
    if not context.by_address:
        return _steps(node, context)
    ready = transitions.without_quarantine(node, context.ranges)
    if ready.want:
        ready = transitions.moved_with_address(ready, ready.want, context)
    return transitions.without_quarantine(_steps(ready, context), context.ranges)


def _steps(node: NodeState, context: Context) -> NodeState:
    """Apply the steps to a node, in the order of the rules."""
    want = node.want
    if want is None:
        return transitions.leave(node, context)
    if not node.lines and not node.shown:
        return node
    if node.lines:
        node = transitions.come_back(node, want, context)
        if node.pending and transitions.has_arrived(node, one_block=context.one_block):
            node = transitions.complete(node, context.today, one_block=context.one_block)
        elif node.pending and node.name in context.consent.settle:
            node = transitions.settle(node, context)
    node = transitions.take(transitions.adopt(transitions.without_move(node, context), context), context)
    node = resize(transitions.without_move(transitions.follow(node, context), context), context)
    return grow(transitions.ask(renumber(node, want, context), want, context), want, context)


def _faulty(
    idle: Iterable[tuple[Line, Fault, Want]],
    nodes: Iterable[NodeState],
    context: Context,
    disputed: Collection[str],
) -> Iterator[Faulty]:
    """Group the faults of blocks in use: as in the lock, or after they return or are adopted."""
    groups: dict[tuple[Fault, Why], list[tuple[Line, Want]]] = defaultdict(list)
    for line, fault, want in idle:
        groups[fault, Why.HELD].append((line, want))
    for node in nodes:
        if node.want is None:
            continue
        new = {line.block: line for line in node.in_use}
        keys = transitions.replaced_keys(node, one_block=context.one_block)
        for line in node.written:
            if line.in_use and (now := new.pop(line.block, None)):
                for fault in context.faults(node.want, line):
                    may_move = line.state is State.HELD and fault.rule not in ILLEGAL - UNTIL_MOVED
                    why = Why.REPLACED if may_move and context.key(now) in keys else Why.HELD
                    groups[fault, why].append((line, node.want))
        for line in new.values():
            for fault in context.faults(node.want, line):
                why = Why.DISPUTED if node.name in disputed else Why.SHOWN
                groups[fault, why].append((line, node.want))
    of_pool = Counter(line.pool for line in (context.lock.lines if groups else ()) if line.in_use)
    for (fault, why), pairs in groups.items():
        pairs.sort(key=lambda pair: pair[0].block)
        line, want = pairs[0]
        at = want.node.at if why in {Why.SHOWN, Why.DISPUTED} else line_at(context.lock, line)
        lines, whole = [line for line, _ in pairs], bool(line.pool) and len(pairs) == of_pool[line.pool]
        yield Faulty(fault=fault, lines=lines, at=at, why=why, whole=whole)


_STALE = {
    StaleReason.NEWCOMER: ("node is new", "nodes are new"),
    StaleReason.LEAVER: ("node has left", "nodes have left"),
    StaleReason.RETURNING: ("node gets its block back", "nodes get their blocks back"),
    StaleReason.ARRIVED: ("node has moved to its new block", "nodes have moved to their new blocks"),
    StaleReason.RENAMED: ("node holds a block of a renamed pool", "nodes hold blocks of renamed pools"),
    StaleReason.FOLLOWED: (
        "node shows other blocks in its CiliumNode",
        "nodes show other blocks in their CiliumNodes",
    ),
    StaleReason.RESIZED: ("node is resized", "nodes are resized"),
    StaleReason.UNQUARANTINED: (
        "node has a line in quarantine in a pool with follows",
        "nodes have lines in quarantine in pools with follows",
    ),
    StaleReason.INCOMPLETE: ("node lacks a block", "nodes lack blocks"),
}


def stale_lock(lock: Lock, stale: Iterable[Stale]) -> Iterator[Diagnostic]:
    """IPC0413: with `--locked`, the lock must be up to date."""
    for reason, (one, many) in _STALE.items():
        nodes = {entry.node for entry in stale if entry.reason is reason}
        if nodes:
            message = f"the lock is stale: {count(len(nodes), one, many)}: {names(nodes)}"
            commit = f"ipamc compile {lock.cluster}, then commit {lock.path.rpartition('/')[0]}"
            fix = f"{commit}; where rendered/ is not in git: ipamc lock {lock.cluster}"
            yield error("IPC0413", Span(lock.path), message, help=fix)


def is_settled(want: Want, lines: Sequence[InPool], context: Context) -> bool:
    """Return whether a node has one line that cannot change; False: ask `faults_if_idle`.
    Nearly all nodes of a one-block mode need no further step: 100,000 of them take a third of the time.
    """
    line, pool = lines[0]
    offers, block = want.offers, line.block
    return (
        block.family == context.plain_family
        and len(lines) == 1
        and line.state is State.HELD
        and pool is not None
        and pool.name == line.pool
        and want.first is pool
        and not pool.reserved
        and offers[0].sizes[block.family] == block.prefix
    )


def faults_if_idle(
    want: Want, shown: tuple[ShownBlock, ...], lines: Sequence[InPool], context: Context
) -> list[tuple[Line, Fault]] | None:
    """Return the faults of an idle node's blocks; None if a line may change, as for few nodes.
    An idle node shows no other blocks, needs nothing, and has no pending line.
    """
    faults: list[tuple[Line, Fault]] = []
    held: list[Line] = []
    for line, pool in lines:
        state = line.state
        if state is State.PENDING or (pool.name if pool else line.pool) != line.pool:
            return None
        if state is State.HELD:
            if pool is None:
                return None
            held.append(line)
            if found := classify(context.cluster, want, line, pool):
                faults += [(line, fault) for fault in found]
    if not held or transitions.needs(want, held, (), context, follows=context.decides(want, shown, held)):
        return None
    if len(held) < len(lines):
        families = {line.block.family for line in held}
        left = [(line, pool) for line, pool in lines if line.state is State.QUARANTINED]
        if any(line.block.family not in families or (pool and pool.follows) for line, pool in left):
            return None
    consent = context.consent
    asked = consent.renumber and any(scope.matches(line) for scope in consent.renumber for line in held)
    if asked or want.node.name in consent.resize or (shown and not context.agrees(shown, held)):
        return None
    return faults
