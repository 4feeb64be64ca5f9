"""Rules about `usage` of pools: when a node gets more, and gives something back."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cluster import Cluster, Mode, Pool
from ipamc.model.diagnostics import Diagnostic, Related, error


def check_usage(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield findings about `usage` of pools."""
    for pool in cluster.pools:
        yield from usage_apart(pool)
        yield from usage_of_mode(cluster, pool)


def usage_apart(pool: Pool) -> Iterator[Diagnostic]:
    """IPC0602: the bounds of `usage` leave room between them."""
    usage = pool.usage
    if usage is None:
        return
    if usage.low >= usage.high:
        message = f'usage of pool "{pool.name}": low {usage.low} is not below high {usage.high}'
        fix = "leave some 40 percent between the two: {high: 85, low: 40}"
        yield error("IPC0602", usage.at, message, help=fix)
    if not usage.least <= pool.blocks_per_node <= usage.most:
        message = (
            f'usage of pool "{pool.name}": blocksPerNode {pool.blocks_per_node} is not from minBlocks '
            f"{usage.least} to maxBlocks {usage.most}"
        )
        fix = (
            f"write minBlocks: {min(usage.least, pool.blocks_per_node)}, maxBlocks: "
            f"{max(usage.most, pool.blocks_per_node)}"
        )
        yield error("IPC0602", usage.at, message, help=fix)


def usage_of_mode(cluster: Cluster, pool: Pool) -> Iterator[Diagnostic]:
    """IPC0603: `usage` has the fields that the mode can follow."""
    usage = pool.usage
    if usage is None:
        return
    grows = cluster.mode is Mode.CRD or cluster.own_pools
    fields = {
        "minBlocks": not grows and usage.least != 1,
        "maxBlocks": not grows and usage.most != 1,
        "addresses": cluster.mode is not Mode.CRD and usage.addresses > 0,
    }
    for name in (name for name, refused in fields.items() if refused):
        pinning = f" with pinning: {cluster.pinning}" if cluster.mode is Mode.MULTI_POOL else ""
        message = f'usage of pool "{pool.name}" has {name}, which {cluster.mode} mode{pinning} cannot follow'
        also = [Related(cluster.field("spec", "ipam", "mode"), "the mode is set here")]
        yield error("IPC0603", usage.at / name, message, also=also, help=f"remove {name}")
