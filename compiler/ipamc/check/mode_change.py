"""Rules about another `spec.ipam.mode` while nodes hold blocks.

Between kubernetes and cluster-pool mode, and from both to multi-pool mode, every node keeps its block if its
objects are there before the flags (tests/e2e/test_mode_change.py, `review.runbook.order`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ipamc.lock.file import line_at, mode_of
from ipamc.lock.rules import ONLINE
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic, Related, Span, count, error, names
from ipamc.model.lock import Line, Lock, State
from ipamc.read.parts import FLAGS
from ipamc.read.rendered import Rendered


def check_mode_change(
    cluster: Cluster, lock: Lock, text: bytes | None, rendered: Rendered
) -> Iterator[Diagnostic]:
    """Yield why the mode cannot change from the one that was rendered.

    What was rendered last is what the cluster runs, so a lock with an edited header passes no better. Without
    a rendered tree the header of the lock's `text` counts.
    """
    word = rendered.mode or mode_of(text)
    if word == cluster.mode or word not in set(Mode):
        return
    held = _in_the_way(cluster, [line for line in lock.lines if line.state is State.HELD])
    if not held:
        return
    if (word, cluster.mode.value) not in ONLINE:
        at = rendered.span(FLAGS) if rendered.mode else Span(lock.path)
        yield not_online(cluster, lock, Mode(word), held, Related(at, f"the mode was {word} here"))
        return
    yield from held_outside_pools_of_mode(cluster, Mode(word), lock, held)
    yield from strangers_of_mode(cluster, Mode(word))


def _in_the_way(cluster: Cluster, held: list[Line]) -> list[Line]:
    """Return the held lines of nodes that run, and of planned ones with more blocks than the new mode has."""
    planned = {node.name for node in cluster.nodes if node.planned}
    blocks = Counter((line.node, line.block.family) for line in held)
    return [
        line
        for line in held
        if line.node not in planned or (cluster.mode.one_block and blocks[line.node, line.block.family] > 1)
    ]


def not_online(cluster: Cluster, lock: Lock, old: Mode, held: list[Line], before: Related) -> Diagnostic:
    """IPC0543: the mode of a cluster with nodes changes only where nodes can keep their blocks.

    From kubernetes and cluster-pool mode to each other and to multi-pool mode it is possible, in the order
    that `ipamc plan` shows.

    Why: from multi-pool mode Cilium knows no way back: nodes may have several blocks, and the operator
    gives away what leaves `pools.allocated` while pods use it. Out of crd mode agents lose their addresses
    with the entries of `spec.ipam.pool`; into it, nothing shows that running pods keep theirs.

    Run: set the mode again; or build a new cluster, and move the workloads. If nothing of the old mode was
    applied yet, `git rm -r clusters/CLUSTER/ipam.lock clusters/CLUSTER/rendered`, and `ipamc compile
    CLUSTER`.
    """
    nodes = sorted({line.node for line in held})
    return error(
        "IPC0543",
        cluster.field("spec", "ipam", "mode"),
        f"{old} to {cluster.mode}: {count(len(nodes), 'node')} cannot keep blocks in this change of mode: {names(nodes)}",
        also=[before],
        help=f"set mode: {old} again, and build a new cluster for {cluster.mode}; if mode {old} was never applied: git checkout REV -- {lock.path} {lock.path.removesuffix('ipam.lock')}rendered, where REV is the commit before; in a new cluster delete both",
    )


def held_outside_pools_of_mode(
    cluster: Cluster, old: Mode, lock: Lock, held: list[Line]
) -> Iterator[Diagnostic]:
    """IPC0544: while the mode changes, every held block lies in a pool.

    With `unpooled: hold` a node keeps a block that no pool has, and nothing is rendered for it.

    Why: in the old mode its node has the block all the same, because it stands in the node's own object.
    The new mode reads another field, and there is nothing in it: the node would start without a block, or
    get another one while its pods use this one.

    Run: set the old mode again. Write a pool with these ranges, `disabled: true` if it is to give out
    nothing new, and `ipamc compile CLUSTER`: now the lines of the lock name the pool. Then change the mode,
    and `ipamc lock CLUSTER --mode`.
    """
    outside = [line for line in held if not line.pool]
    if outside:
        shown = names(f"{line.node} ({line.block})" for line in outside)
        yield error(
            "IPC0544",
            line_at(lock, outside[0]),
            f"{count(len(outside), 'block')} outside every pool would not be rendered for {cluster.mode} mode: {shown}",
            also=[Related(cluster.field("spec", "ipam", "mode"), "the mode changes here")],
            help=f"set mode: {old} again, add a pool with these ranges (disabled: true if it is to give out nothing new), and compile; then change the mode",
        )


def strangers_of_mode(cluster: Cluster, old: Mode) -> Iterator[Diagnostic]:
    """IPC0545: while the mode changes, every CiliumNode with a block is of a node in the inventory.

    It reads the CiliumNodes in the input, and compares them with the inventory.

    Why: a node that the operator served in cluster-pool mode has its block in `podCIDRs` alone. No other
    mode reads them there: in multi-pool mode the operator gives the same addresses to another node.

    Run: add these nodes to the inventory, or delete their CiliumNodes if they are gone (`kubectl delete
    ciliumnode NODE`). Then `kubectl get nodes,ciliumnodes -o json` again, into the file that the finding
    names, and `ipamc lock CLUSTER --mode`.
    """
    known = {node.name for node in cluster.nodes}
    strangers = [
        seen for seen in cluster.cilium_nodes if (seen.blocks or seen.allocated) and seen.name not in known
    ]
    if strangers:
        yield error(
            "IPC0545",
            strangers[0].at,
            f"{count(len(strangers), 'CiliumNode')} with blocks of {old} mode and without a node in the inventory: {names(seen.name for seen in strangers)}",
            also=[Related(cluster.field("spec", "ipam", "mode"), "the mode changes here")],
            help="add the nodes to the inventory, or delete their CiliumNodes if they are gone; then run kubectl get nodes,ciliumnodes -o json again",
        )
