"""Who has left, and whether that can be true: an inventory that lost half its nodes is more often cut off than right (rule 5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from ipamc.lock.file import line_at
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import At, Diagnostic, Place, Span, count, error, names, warning
from ipamc.model.lock import Consent, Line, Lock, State

FEW = 3
"""So many nodes may always leave, whatever the percentage says."""

_CONSENT = "if they are really gone: ipamc lock {cluster} --leave all, or --leave NODE for each"


def judge_leavers(
    cluster: Cluster, lock: Lock, leavers: Mapping[str, list[Line]], consent: Consent
) -> Iterator[Diagnostic]:
    """Yield why the leavers are refused. `leavers` holds their live and pending lines by node name."""
    yield from consent_for_nobody(cluster, lock, leavers, consent)
    if "all" in consent.leave:
        return
    surprising = {
        node: lines
        for node, lines in leavers.items()
        if node not in consent.leave and any(line.state is State.HELD for line in lines)
    }
    if not surprising:
        return
    live_nodes = {line.node for line in lock.lines if line.state is State.HELD}
    if not cluster.nodes:
        yield empty_inventory(cluster, surprising)
        return
    allowed = max(FEW, len(live_nodes) * cluster.budget_leave // 100)
    if cluster.budget_leave < 100 and len(surprising) > allowed:
        yield over_budget(cluster, lock, surprising, len(live_nodes), allowed)
    yield from emptied_pools(cluster, lock, leavers, surprising)


def _first(lock: Lock, leavers: Mapping[str, list[Line]]) -> At:
    return line_at(
        lock, min((line for lines in leavers.values() for line in lines), key=lambda line: line.block)
    )


def _in_common(leavers: Mapping[str, list[Line]]) -> str:
    """Say what the leavers share, which is often the file or the rack that was forgotten."""
    pools = sorted({line.pool or "no pool" for lines in leavers.values() for line in lines})
    each = sorted(leavers)
    prefix = each[0]
    for name in each[1:]:
        while not name.startswith(prefix):
            prefix = prefix[:-1]
    common = [f"all of pool {pools[0]}"] if len(pools) == 1 else []
    if len(each) > 1 and len(prefix) > 2:
        common.append(f"all named {prefix}…")
    return f" ({', '.join(common)})" if common else ""


def over_budget(
    cluster: Cluster, lock: Lock, leavers: Mapping[str, list[Line]], live: int, allowed: int
) -> Diagnostic:
    """IPC0418: no more nodes leave in one compile than `budget.leave` allows.

    An inventory cut in half looks like half the fleet leaving. Up to `budget.leave` percent of the nodes that hold blocks may go at once, and always 3.
    More takes consent, once, in the lock: `ipamc lock --leave`.
    """
    return error(
        "IPC0418",
        _first(lock, leavers),
        f"{count(len(leavers), 'node')} of {live:,} left the inventory, and budget.leave allows {allowed:,}: {names(leavers)}{_in_common(leavers)}",
        help=_CONSENT.format(cluster=cluster.name),
    )


def emptied_pools(
    cluster: Cluster, lock: Lock, leavers: Mapping[str, list[Line]], surprising: Mapping[str, list[Line]]
) -> Iterator[Diagnostic]:
    """IPC0419: a pool does not lose all its nodes at once.

    A whole rack that disappears from the inventory is a file that was forgotten or a selector in the export that was wrong, far more often than a rack
    that burnt down. Pools of up to 3 nodes are let go.
    """
    nodes: dict[str, set[str]] = defaultdict(set)
    for line in lock.lines:
        if line.state is State.HELD:
            nodes[line.pool].add(line.node)
    for pool, members in sorted(nodes.items()):
        gone = {node: surprising[node] for node in members & surprising.keys()}
        if len(gone) > FEW and members <= leavers.keys():
            yield error(
                "IPC0419",
                _first(lock, gone),
                f"pool {pool or 'none'} loses all its {count(len(members), 'node')}: {names(members)}",
                help=_CONSENT.format(cluster=cluster.name),
            )


def empty_inventory(cluster: Cluster, leavers: Mapping[str, list[Line]]) -> Diagnostic:
    """IPC0420: an inventory is not empty while nodes hold blocks.

    No Node and no NodeInventory entry was read, but the lock has held lines. The export failed, or the file is missing.
    """
    return error(
        "IPC0420",
        cluster.at,
        f"the inventory is empty while the lock has blocks of {count(len(leavers), 'node')}: {names(leavers)}",
        help=f"add the nodes again (kubectl get nodes -o yaml > nodes.yaml); {_CONSENT.format(cluster=cluster.name)}",
    )


def judge_truncated(cluster: Cluster, consent: Consent, *, stale: bool) -> Iterator[Diagnostic]:
    """Yield that a list is cut off: refused where it would change the lock, told where it changes nothing."""
    if cluster.truncated is not None and "all" not in consent.leave:
        yield truncated_list(cluster, cluster.truncated, error if stale else warning)


def truncated_list(cluster: Cluster, at: Place, make: Callable[..., Diagnostic]) -> Diagnostic:
    """IPC0421: a `List` is complete.

    Its `metadata.continue` says that the server had more to give: a paginated answer that was saved after its first page. Fetch it whole. What it
    lacks is not taken for gone: where the lock would change, the compile is refused, and where it would not, this is a warning.
    """
    return make(
        "IPC0421",
        at,
        "this list is one page of several: metadata.continue is set",
        help=f"fetch it whole (kubectl get does; --chunk-size=0 for the raw API); to go on with it: ipamc lock {cluster.name} --leave all",
    )


def consent_for_nobody(
    cluster: Cluster, lock: Lock, leavers: Mapping[str, list[Line]], consent: Consent
) -> Iterator[Diagnostic]:
    """IPC0422: consent to leave names a node that leaves.

    `ipamc lock --leave NODE` was given for a node that is still in the inventory, or that holds nothing. A consent that matches nothing is a typo, and is
    refused rather than kept for later.
    """
    present = {node.name: node for node in cluster.nodes}
    for node in sorted(consent.leave - {"all"} - leavers.keys()):
        if node in present:
            yield error(
                "IPC0422",
                present[node].at,
                f"{node} cannot leave: it is still in the inventory",
                help="take it out of the inventory first",
            )
        elif not any(line.node == node for line in lock.lines):
            yield error(
                "IPC0422",
                Span(lock.path),
                f"{node} cannot leave: it holds no block",
                help=f"ipamc show {cluster.name} --show-blocks lists who does",
            )
