"""What came of an apply: what the apiserver refused, the operator's errors, and whether it left what was written."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ipamc.cli.terminal import say
from ipamc.model.cilium.operator_list import Assumed
from ipamc.model.diagnostics import count, names
from ipamc.review.live.blocks import Live
from ipamc.review.live.cilium import Run, judge
from ipamc.review.live.drift import drift
from ipamc.review.live.objects import (
    CILIUM_NODE,
    NODE,
    POOL,
    Object,
    cidrs,
    name_of,
    node_of,
    parsed,
    reported_errors,
)
from ipamc.workspace.cilium_nodes import CiliumNodes

PATIENCE = 3
"""How many times the waiting time an error may last.

Operators since 1.19 report some errors that they correct themselves.
"""
SHOWN = 20
"""Lines of one sort; then a number."""
ANEW = "drain the node, delete its CiliumNode, run this again, and restart the agent"
"""How a node gets another block where the operator has the old one in its books."""
ADVISES_FORCE = re.compile(r"\nPlease review the fields above.*?#conflicts", re.DOTALL)
"""What kubectl says after a conflict."""


def written(every: Sequence[Object], changed: Sequence[Object], live: Live, flags: Assumed) -> Run:
    """Return what the operator's errors are judged by. `live` is what the cluster had before."""
    return Run(
        before=reported_errors(live.values()),
        nodes={node_of(document) for document in changed if document["kind"] != NODE},
        pools={name_of(document) for document in changed if document["kind"] == POOL},
        own_pools={name_of(document) for document in every if document["kind"] == POOL and node_of(document)},
        given={
            name_of(document): parsed(cidrs(document, document))
            for document in every
            if flags.adopts and document["kind"] == CILIUM_NODE
        },
        operator_list=flags.operator_list if flags.adopts else (),
    )


def stays(after: CiliumNodes, name: str, changed: Sequence[Object]) -> bool:
    """Tell whether CiliumNodes are as this run wrote them; print those that are not.

    Operators from 1.19 on write the block of their books back, and clear their error.
    """
    nodes = [document for document in changed if document["kind"] == CILIUM_NODE]
    back = [name_of(item.document) for item in drift(nodes, after.live, None) if item.state == "differs"]
    if back:
        say(
            f"error: {name}: {count(len(back), 'CiliumNode')} changed back after the apply: {names(back)}; {ANEW}"
        )
    return not back


def operator_is_content(
    after: CiliumNodes, name: str, only: Collection[str] | None, written: Run, wait: float
) -> bool:
    """Watch the CiliumNodes for `wait` seconds; print the operator's errors; return whether none is ours.

    Some errors go away by themselves: while there are failures they are watched on, PATIENCE times as long.
    """
    for _ in range(PATIENCE if wait else 1):
        after.follow(wait)
        errors = reported_errors(after.live.values())
        found = judge({node: text for node, text in errors.items() if only is None or node in only}, written)
        if not found.failures:
            break
    if after.refused:
        say(
            f"{name}: CiliumNodes are read again, because this job may not watch them: apply its roles again ('ipamc ci rbac {name}'): {after.refused}"
        )
    for node, error in sorted(found.failures.items())[:SHOWN]:
        advice = f"; {ANEW}" if "conflict with requested" in error else ""
        say(f"error: {name}: CiliumNode {node}: {error}{advice}")
    for node, error in sorted(found.before.items())[:SHOWN]:
        say(f"{name}: CiliumNode {node}: was there before, and this apply changed nothing of it: {error}")
    if found.restart:
        say(
            f"{name}: the operator reads its list of CIDRs when it starts, and lacks the blocks of {count(len(found.restart), 'node')} until then: {names(found.restart)}. Their agents use them; restart the operator with the rendered list"
        )
    if found.failures:
        say(
            f"error: {name}: the operator reports errors for {count(len(found.failures), 'node')}: {names(found.failures)}"
        )
    return not found.failures


def refusal(problem: str, cluster: str, document: Object) -> str:
    """Return a complaint of kubectl about one object, and what to do about it."""
    if not problem:
        return "kubectl reports no error, and does not say that it applied it"
    if "onflict with " not in problem:
        return problem + _advice(problem)
    said = ADVISES_FORCE.sub("", problem)
    if ".spec.ipam." in said:
        node, repair = name_of(document), f"ipamc ci apply {cluster} --repair"
        help_ = f"drain {node}, kubectl delete ciliumnode {node} && {repair}, restart its agent"
    elif ".spec.ipv4." in said or ".spec.ipv6." in said:
        help_ = (
            "compare the cidrs: kubectl get ciliumpodippools -o yaml; if all of them stay and others are appended, "
            f"kubectl apply --server-side --field-manager=ipamc --force-conflicts -f clusters/{cluster}/rendered/cilium/ippools.yaml once"
        )
    else:
        help_ = "find out which one, and remove the fields there"
    return f"{said}; another field manager owns these fields, and ipamc does not use force: {help_}"


def _advice(problem: str) -> str:
    """Return what to do about a complaint of the apiserver. A re-created Node comes first: its block may be right."""
    if "uid" in problem or 'cannot create resource "nodes"' in problem:  # no job may create a Node
        return "; a Node was re-created or left since the inventory was made: refresh the inventory"
    if "may not change podCIDR" in problem:
        return "; podCIDRs of a Node cannot change: drain it, delete the Node, and let it join again"
    return ""
