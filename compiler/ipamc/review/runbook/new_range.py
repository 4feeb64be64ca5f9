"""The nodes of a pool move to a new range: it is written in front of the old ones, then the nodes are renumbered."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Dialect, Mode, Pool
from ipamc.model.diagnostics import count
from ipamc.model.plan import Plan
from ipamc.review.runbook.commands import Commands
from ipamc.review.runbook.common import applied, merged
from ipamc.review.runbook.order import flags
from ipamc.review.runbook.renumber import inventory, moving, pending_of
from ipamc.review.runbook.values import Check, Cut, Runbook, Step, Where, alone


def new_range(plan: Plan, run: Commands, cut: Cut, pool: Pool, block: Block) -> Runbook:
    """Return the steps. `plan` has the pending lines that the consent gives once the range is written."""
    cluster = plan.cluster
    pending = {node: lines for node, lines in pending_of(plan).items() if any(line.pool for line in lines)}
    old = [each.block for each in pool.families[block.family].ranges]
    number = sum(map(len, pending.values()))
    reserve = alone(
        "Write the range, and reserve all new blocks",
        *merged(
            run,
            "new-range",
            f"pool {pool.name} moves to {block}",
            run.lock("--renumber", *map(str, old)),
            edits=[_edit(pool, block, old)],
            if_not="no room in the new range, or it overlaps something: a finding says what. Nothing was applied",
        ),
        Step(
            key="reserve",
            title="Look at the pending lines",
            why="all of them are reserved before the first node moves",
            check=Check(command=f"grep --count '\"pending\":true' {run.where}/ipam.lock", expect=str(number)),
            if_not="others are to be renumbered too: ipamc plan lists them",
        ),
        applied(run, why="the pools and flags now have both ranges; no node moves yet"),
        *([flags(run)] if cluster.mode is Mode.CLUSTER_POOL else []),
    )
    return Runbook(
        cluster=run.name,
        change="new-range",
        title=f"Pool {pool.name} of {run.name}: {count(len(pending), 'node')} to {block}",
        about=tuple(_about(cluster, block)),
        phases=(
            alone("Let the network know the new range", *_outside(cluster, pool, block)),
            reserve,
            moving(plan, run, pending, cut),
            *inventory(run),
            alone("Drop the old range, when its quarantine is over", *_drop(run, pool, old)),
        ),
        way_back=f"before a wave is settled, cancel its pending blocks: {run.lock('--release', 'NODE')}. Nodes that have "
        "moved go back only by another renumber, to free blocks",
    )


def _about(cluster: Cluster, block: Block) -> Iterator[str]:
    yield f"the pool has both ranges until the last node has moved; newcomers get blocks of {block} at once"
    if cluster.shared_pools:
        yield "in this mode Cilium's operator serves newcomers from the published CIDRs in their order, the old range first, until that leaves the pool (ipamc explain IPC0538)"


def _outside(cluster: Cluster, pool: Pool, block: Block) -> Iterator[Step]:
    yield Step(
        key="network",
        title=f"Allow {block} where {pool.name} is allowed",
        why="firewalls, BGP filters, NetworkPolicies with ipBlocks and masquerading name ranges of pods",
        where=Where.EDITOR,
        edit=f"add {block} beside the ranges of pool {pool.name}",
    )
    native = cluster.native_routing
    if native and native.block.family == block.family and not native.block.contains(block):
        yield Step(
            key="native-routing",
            title=f"Widen nativeRoutingCIDR {native.block}, so that it contains {block}, and roll it out",
            why="agents masquerade what leaves it; Cilium takes exactly one CIDR of a family, or ip-masq-agent",
            where=Where.EDITOR,
            edit=f"spec.cilium.nativeRoutingCIDR, and ipv{block.family}-native-routing-cidr in cilium-config",
        )


def _edit(pool: Pool, block: Block, old: list[Block]) -> Step:
    family = f"ipv{block.family}"
    if pool.dialect is Dialect.NATIVE:
        title = f"Write the new range in front of the old ones, in pool {pool.name} ({pool.at.path})"
        edit = f"spec:\n  {family}:\n    cidrs: [{', '.join(map(str, (block, *old)))}]"
    else:
        size = pool.families[block.family].block_size
        title = f"Write a pool of its own for the new range, which comes before {pool.name} ({pool.at.path})"
        edit = (
            "apiVersion: ipamc/v1alpha1\nkind: IPPool\n"
            f"metadata: {{name: {pool.name}-2}}\n"
            f"spec:\n  {family}: {{cidrs: [{block}], blockSize: {size}}}\n"
            f"  nodeSelector: the one of {pool.name}\n  priority: {pool.priority + 1}"
        )
    return Step(
        key="edit-pool",
        title=title,
        why="inside a pool the first free block is taken, in the order of its ranges",
        where=Where.EDITOR,
        edit=edit,
    )


def _drop(run: Commands, pool: Pool, old: list[Block]) -> Iterator[Step]:
    edit = Step(
        key="edit-pool",
        title=f"Remove the old ranges from pool {pool.name}",
        why="quarantined lines stay in the lock, and keep their addresses from everybody until their days are over",
        where=Where.EDITOR,
        edit=f"remove from cidrs: {', '.join(map(str, old))}",
    )
    yield from merged(
        run,
        "drop-range",
        f"pool {pool.name} without {', '.join(map(str, old))}",
        edits=[edit],
        if_not="IPC0538: in this mode and minor a published CIDR stays. Leave it, with disabled: true on a pool of its own",
    )
    yield applied(run)
