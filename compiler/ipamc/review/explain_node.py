"""Why a node has its blocks: what the stages decided about it, in one place. Decides nothing itself.

`assign` says which pools serve the node and in what order, `reconcile` what becomes of its lines, `place`
what it would be given now, or why nothing. The lock does not record why a block was chosen when it was new: a
held block is held because it is in the lock.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ipamc.check.drift import cilium_node_differs, pod_cidrs_differ
from ipamc.model.cluster import Cluster, Node
from ipamc.model.diagnostics import Diagnostic, Severity
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Consent, Line, Lock, State
from ipamc.place.allocate.allocate import Placement, place
from ipamc.place.candidates import assign, shared_pools, unlisted_pools
from ipamc.place.reconcile.reconcile import reconcile
from ipamc.review.node_decisions import Decisions, ExplainedNode


def explain_node(cluster: Cluster, lock: Lock, name: str, today: str) -> ExplainedNode | None:
    """Explain the blocks of a node as of `today` (ISO 8601, UTC); None if the cluster does not know it.

    Costs as much as the decisions of a compile, unless the node is explained alone.
    """
    return explain_alone(cluster, lock, name, today) or explain_among_all(cluster, lock, name, today)


def explain_alone(cluster: Cluster, lock: Lock, name: str, today: str) -> ExplainedNode | None:
    """Explain a node of the inventory that keeps what it holds, and needs nothing; None for any other.

    Of the nodes, only this one is looked at. What the others need changes nothing for it: its lines are held,
    it shows no other blocks, and where Cilium's operator gives out blocks, it shows these. Pools are
    full, or not, by the lock as it is. Whether a compile is refused because of other nodes is not told.
    """
    node = next((node for node in cluster.nodes if node.name == name), None)
    lines = tuple([line for line in lock.lines if line.node == name]) if node else ()
    settled = bool(lines) and all(line.state is State.HELD for line in lines)
    if node is None or not settled or cluster.own_pools:  # with own pools, others decide which are shared
        return None
    seen = tuple([seen for seen in cluster.cilium_nodes if seen.name == name])
    alone = replace(cluster, nodes=(node,), cilium_nodes=seen)
    wants = assign(alone)
    shared = shared_pools(alone, wants)
    if (shared or unlisted_pools(alone)) and not _shows(alone, node, lines):
        return None
    own = replace(lock, lines=lines)
    reconciled, found = reconcile(alone, wants, own, Consent(), today, locked=False, shared=shared)
    if reconciled.stale or reconciled.demands or reconciled.renumbers or _errors(found):
        return None
    placement = place(alone, wants, reconciled, today)
    if _drift(placement):
        return None
    now = replace(placement, after=replace(placement.after, lines=lock.lines))
    return Decisions(alone, lock, name, today, reconciled, now).of_listed(wants[0], [])


def explain_among_all(cluster: Cluster, lock: Lock, name: str, today: str) -> ExplainedNode | None:
    """Explain any node, by all decisions of the next compile; None if the cluster does not know it."""
    wants = assign(cluster)
    reconciled, found = reconcile(
        cluster, wants, lock, Consent(), today, locked=False, shared=shared_pools(cluster, wants)
    )
    refused = _errors(found)
    placement = None if refused else place(cluster, wants, reconciled, today)
    if placement:
        refused = _drift(placement)
    decisions = Decisions(cluster, lock, name, today, reconciled, placement)
    want = next((want for want in wants if want.node.name == name), None)
    return decisions.of_listed(want, refused) if want else decisions.of_unlisted()


def _shows(cluster: Cluster, node: Node, lines: Iterable[Line]) -> bool:
    """Tell whether a node shows all of its blocks: then the operator gives them to no other node."""
    shown = {shown.block for shown in Evidence(cluster).of(node)}
    return all(line.block in shown for line in lines)


def _drift(placement: Placement) -> list[Diagnostic]:
    """Return the errors about what nodes show against the plan."""
    return _errors((*pod_cidrs_differ(placement.plan), *cilium_node_differs(placement.plan)))


def _errors(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the findings that stop a compile."""
    return [finding for finding in found if finding.severity is Severity.ERROR]
