"""Rules about what an earlier compile rendered and Cilium cannot change any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipamc.check.multi_pool import first_and_further, mask_size_changed
from ipamc.check.pods import check_pods_and_nodes
from ipamc.model.cidr import Block
from ipamc.model.cluster import CiliumNode, Cluster, Mode, Pool
from ipamc.model.diagnostics import Diagnostic, Related, error
from ipamc.model.lock import Lock
from ipamc.model.plan import Want
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
    """IPC0566: `allowFirstIP` and `allowLastIP` stay as they were published.

    It looks at the CiliumPodIPPools that were rendered before; one that was made by a Cilium before 1.20 is
    as good as false. The same goes for the pools of single nodes (`pinning: node`).

    Why: the fields cannot change: the apiserver refuses the pool (`allowFirstIP is immutable`), and with it
    the rest of the apply.

    Run: set the field again as it was. Write a new pool with it over free addresses, such as `ipamc suggest
    pool CLUSTER --size 20` finds, and set `disabled: true` on this one: nodes keep what they have. Then
    `ipamc compile CLUSTER`.
    """
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
    """IPC0536: a pool stays shared, or divided among its nodes, while nodes hold blocks of it.

    With `pinning: node` the blocks of a node's first candidate belong to a pool of its own, `POOL.NODE`;
    every other pool is shared.

    Why: running agents keep their blocks under the name of their pool. Under another name the operator does
    not know that they are taken: with a shared pool and one of a node over the same range it gave one block
    to two nodes.

    Run: set `pinning` again as it was, and the order of the pools (`priority`, `nodeSelector`). Choose both
    when you start a cluster. To change them all the same, drain the nodes, `kubectl delete ciliumnode NODE`
    for each, `git rm -r clusters/CLUSTER/rendered`, commit that, and `ipamc compile CLUSTER`.
    """
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
