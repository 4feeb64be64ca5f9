"""Rules about what an earlier compile rendered and Cilium cannot change any more: pools, and `spec.ipam.mode`.

Between kubernetes and cluster-pool mode, and from both to multi-pool mode, every node keeps its block if its
objects are there before the flags (tests/e2e/test_mode_change.py, templates/runbooks/mode.md.j2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ipamc.check.multi_pool import first_and_further, mask_size_changed
from ipamc.check.pods import check_pods_and_nodes
from ipamc.lock.file import line_at, mode_of
from ipamc.lock.rules import ONLINE
from ipamc.model.cidr import Block
from ipamc.model.cluster import CiliumNode, Cluster, Mode, Pool
from ipamc.model.diagnostics import Diagnostic, Related, Span, count, error, names
from ipamc.model.lock import Line, Lock, State
from ipamc.model.plan import Want
from ipamc.read.parts import FLAGS
from ipamc.read.rendered import Rendered


def check_published(
    cluster: Cluster, wants: Sequence[Want], shared: frozenset[str], lock: Lock, published: Rendered
) -> Iterator[Diagnostic]:
    """Yield what pools cannot be together, and changes that a published one does not survive.

    `shared` are the pools that nodes share.
    """
    if cluster.mode is not Mode.MULTI_POOL:
        return
    yield from first_and_further(cluster, wants)
    yield from check_pods_and_nodes(cluster, wants, shared)
    changed = list(_roles_changed(cluster, shared, lock, published))
    yield from changed
    if not changed:
        yield from _masks_changed(cluster, shared, published)
        yield from allowed_changed(cluster, shared, published)


def _masks_changed(cluster: Cluster, shared: frozenset[str], published: Rendered) -> Iterator[Diagnostic]:
    for pool in cluster.pools:
        if pool.name not in shared or pool.name not in published.pools:
            continue
        before = published.pools[pool.name]
        for family, part in sorted(pool.families.items()):
            size = before.masks.get(family, part.block_size)
            if size != part.block_size:
                also = Related(before.at, f"rendered with a maskSize of {size}")
                yield mask_size_changed(pool, family, size, part.block_size, also)


def allowed_changed(cluster: Cluster, shared: frozenset[str], published: Rendered) -> Iterator[Diagnostic]:
    """IPC0566: `allowFirstIP` and `allowLastIP` stay as they were published."""
    before = dict(published.own_allowed)
    before |= {name: (pool.at, pool.allowed) for name, pool in published.pools.items() if name in shared}
    for pool in cluster.pools:
        at, allowed = before.get(pool.name, (None, frozenset[str]()))
        for name, allows in pool.allows.items() if at else ():
            if allows is not (name in allowed):
                yield error(
                    "IPC0566",
                    pool.at / "spec" / name if allows else pool.at / "metadata" / "name",
                    f'{name} of pool "{pool.name}" would change to {str(allows).lower()}, but it is immutable',
                    also=[Related(at, "published here")] if at else (),
                    help=f"set {name}: {str(not allows).lower()} again, and write a new pool",
                )


def _roles_changed(
    cluster: Cluster, shared: frozenset[str], lock: Lock, published: Rendered
) -> Iterator[Diagnostic]:
    """Yield, for each pool that was shared and is not, or the other way round, one block that has its name."""
    held = {line.pool: line for line in reversed(lock.lines) if line.in_use}
    shown = dict(_shown_otherwise(cluster, shared))
    of_nodes = published.of_nodes
    for pool in cluster.pools:
        before, line = published.pools.get(pool.name), held.get(pool.name)
        if line and pool.name in shared and of_nodes and not before:
            label = "pools for each node were rendered here"
            yield pinning_changed(cluster, pool, line.block, line.node, Related(of_nodes, label), published)
        elif line and pool.name not in shared and before:
            also = Related(before.at, "shared pools were rendered here")
            yield pinning_changed(cluster, pool, line.block, line.node, also, published)
        elif pool.name in shown:
            seen, block, name = shown[pool.name]
            also = Related(seen.at, f'it shows the block in pool "{name}"')
            yield pinning_changed(cluster, pool, block, seen.name, also, published)


def _shown_otherwise(
    cluster: Cluster, shared: frozenset[str]
) -> Iterator[tuple[str, tuple[CiliumNode, Block, str]]]:
    """Yield (pool, (CiliumNode, block, name)) of blocks under the name that the pool does not have now."""
    known = {pool.name for pool in cluster.pools}
    for seen in cluster.cilium_nodes:
        for block, name in seen.allocated:
            pool = name.removesuffix(f".{seen.name}")
            if pool in known and (pool in shared) == (pool != name):
                yield pool, (seen, block, name)


def pinning_changed(
    cluster: Cluster, pool: Pool, block: Block, node: str, also: Related, published: Rendered
) -> Diagnostic:
    """IPC0536: a pool stays shared, or divided among its nodes, while nodes hold blocks of it."""
    if cluster.own_pools and published.of_nodes:
        was, place = (
            ("divided among its nodes", "the first candidate of all its nodes")
            if also.at == published.of_nodes
            else ("shared by its nodes", "no node's first candidate")
        )
        return error(
            "IPC0536",
            pool.at / "metadata" / "name",
            f'pool "{pool.name}" was {was} and would not be, which renames the pool of {block}, which node {node} holds',
            also=[also],
            help=f"change priority or nodeSelector so that it is {place}",
        )
    return error(
        "IPC0536",
        cluster.field("spec", "ipam", "pinning"),
        f"pinning: {cluster.pinning} would rename the pool of {block}, which node {node} holds",
        also=[also],
        help=f"set pinning: {'pool' if cluster.own_pools else 'node'} again",
    )


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
    """IPC0543: the mode of a cluster with nodes changes only where nodes can keep their blocks."""
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
    """IPC0544: while the mode changes, every held block lies in a pool."""
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
    """IPC0545: while the mode changes, every CiliumNode with a block is of a node in the inventory."""
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
