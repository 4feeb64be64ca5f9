"""Detects a truncated inventory, which looks like many nodes that left (rule 5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from ipamc.lock.file import line_at
from ipamc.model.cluster import Scheme
from ipamc.model.diagnostics import At, Diagnostic, Span, error, several, warning
from ipamc.model.limits import FEW_NODES
from ipamc.model.lock import Consent, Line, Lock, State
from ipamc.model.pool_words import terms
from ipamc.model.wording import nearest_name, typed

Leavers = Mapping[str, tuple[Line, ...]]
"""Held and pending lines of nodes that are not in the inventory, by node."""


def leaver_findings(cluster: Scheme, lock: Lock, leavers: Leavers, consent: Consent) -> Iterator[Diagnostic]:
    """Yield why the leavers are refused. O(leavers), and O(lines) if one leaves without consent."""
    yield from consent_without_leaver(cluster, lock, leavers, consent)
    unexpected = ((node, lines) for node, lines in leavers.items() if not consent.leave & {"all", node})
    surprising = {node: its for node, its in unexpected if any(line.state is State.HELD for line in its)}
    if not surprising:
        return
    if not cluster.nodes:
        yield empty_inventory(cluster, surprising)
        return
    holders = len({line.node for line in lock.lines if line.state is State.HELD})
    if cluster.budget_leave < 100 and len(surprising) > allowed_to_leave(cluster, holders):
        yield over_budget(cluster, lock, surprising, holders)
        if len(surprising) == holders:  # then each of its pools lost all its nodes, too
            return
    yield from emptied_pools(cluster, lock, leavers, surprising)


def allowed_to_leave(cluster: Scheme, holders: int) -> int:
    """Return how many of the nodes with blocks may leave in one compile without consent."""
    return min(max(FEW_NODES, holders * cluster.budget_leave // 100), holders // 2)


def _way_out(cluster: Scheme) -> str:
    words = terms(cluster)
    leave = f"ipamc lock {cluster.name} --leave all, or --leave {words.unit.upper()} for each"
    return f"{words.again}; if they are gone: {leave}"


def _first(lock: Lock, leavers: Leavers) -> At:
    every = (line for lines in leavers.values() for line in lines)
    return line_at(lock, min(every, key=lambda line: line.block))


def _in_common(leavers: Leavers) -> str:
    """Return what the leavers have in common, often a forgotten file or rack."""
    pools = {line.pool or "no pool" for lines in leavers.values() for line in lines}
    first, last = min(leavers), max(leavers)
    prefix = first
    while not last.startswith(prefix):
        prefix = prefix[:-1]
    common = [f"all of pool {pool}" for pool in pools if len(pools) == 1]
    if len(leavers) > 1 and len(prefix) > 2:
        common.append(f"all named {prefix}…")
    return f" ({', '.join(common)})" if common else ""


def over_budget(cluster: Scheme, lock: Lock, leavers: Leavers, holders: int) -> Diagnostic:
    """IPC0418: at most `budget.leave` percent of the nodes leave in one compile, and never more than half."""
    allowed = allowed_to_leave(cluster, holders)
    rule = f"budget.leave allows {allowed:,}"
    if allowed == holders // 2:
        rule = f"at most half ({allowed:,}) may leave without consent"
    words = terms(cluster)
    some = several(leavers, words.unit, f"of {holders:,} {words.left}, but {rule}")
    message = f"{some}{_in_common(leavers)}"
    another = words.other if len(leavers) == holders else ""
    return error("IPC0418", _first(lock, leavers), message, help=another + _way_out(cluster))


def emptied_pools(cluster: Scheme, lock: Lock, leavers: Leavers, surprising: Leavers) -> Iterator[Diagnostic]:
    """IPC0419: no compile removes all nodes of a pool."""
    nodes: dict[str, set[str]] = defaultdict(set)
    for line in lock.lines:
        if line.state is State.HELD:
            nodes[line.pool].add(line.node)
    for pool, members in sorted(nodes.items()):
        gone = {node: surprising[node] for node in members & surprising.keys()}
        if len(gone) > FEW_NODES and members <= leavers.keys():
            message = f"pool {pool or 'none'} loses all its {several(members, terms(cluster).unit)}"
            yield error("IPC0419", _first(lock, gone), message, help=_way_out(cluster))


def empty_inventory(cluster: Scheme, leavers: Leavers) -> Diagnostic:
    """IPC0420: an inventory is not empty while nodes hold blocks."""
    message = f"{terms(cluster).none}, but the lock has blocks of {several(leavers, terms(cluster).unit)}"
    changed = f"see git log --stat -- {typed(str(PurePath(cluster.at.path).parent))}; or "
    return error("IPC0420", cluster.at, message, help=changed + _way_out(cluster))


def truncated_list(cluster: Scheme, consent: Consent, *, stale: bool) -> Iterator[Diagnostic]:
    """IPC0421: a `List` is complete."""
    if cluster.truncated is not None and "all" not in consent.leave:
        make = error if stale else warning
        message = "this list is only one page: metadata.continue is set"
        whole = "fetch the whole list (kubectl get does this; --chunk-size=0 for the raw API)"
        fix = f"{whole}; to use this page anyway: ipamc lock {cluster.name} --leave all"
        yield make("IPC0421", cluster.truncated, message, help=fix)


def consent_without_leaver(
    cluster: Scheme, lock: Lock, leavers: Leavers, consent: Consent
) -> Iterator[Diagnostic]:
    """IPC0422: `--leave` names a node that holds a block and has left the inventory."""
    present = {node.name: node for node in cluster.nodes} if consent.leave else {}
    for node in sorted(consent.leave - {"all"} - leavers.keys()):
        if node in present:
            message = f"{node} cannot leave: it is still {terms(cluster).listed}"
            fix = f"remove it from {terms(cluster).home} first"
            yield error("IPC0422", present[node].at, message, help=fix)
        elif not any(line.node == node for line in lock.lines):
            meant = f"did you mean {near}? " if (near := nearest_name(node, leavers)) else ""
            fix = f"{meant}ipamc show {cluster.name} --show-blocks lists the holders"
            yield error("IPC0422", Span(lock.path), f"{node} cannot leave: it holds no block", help=fix)
