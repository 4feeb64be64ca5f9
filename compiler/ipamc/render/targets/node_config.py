"""CiliumNodeConfigs: the default pool of nodes in multi-pool mode, for pods that name no pool.

If two CiliumNodeConfigs select one node, the last name wins in Cilium, so their selectors are disjoint,
whatever the names. With `pinning: node` each node has its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ipamc.model.cilium.versions import node_config_api, pre_allocation
from ipamc.model.cluster import HOSTNAME, Cluster, Mode
from ipamc.model.lock import Line
from ipamc.model.plan import Want
from ipamc.render.targets.context import File, Layout
from ipamc.render.targets.disjoint_selectors import LabelSelector, selectors
from ipamc.render.targets.pod_ip_pool import of_node, pinned_name

TEMPLATE = "node_config.yaml.j2"

Values = tuple[
    str,
    tuple[tuple[str, str], ...],
    tuple[tuple[str, str, tuple[str, ...]], ...],
    tuple[tuple[str, str], ...],
]
"""Name, defaults, matchExpressions, matchLabels."""


def files(layout: Layout) -> Iterator[File]:
    """Yield `cilium/nodeconfigs.yaml`, or with `pinning: node` `pools/<shard>/nodeconfigs.yaml`."""
    cluster = layout.plan.cluster
    if cluster.mode is Mode.MULTI_POOL and cluster.pinning == "pool":
        configs = tuple(_of_pool(name, selector) for name, selector in selectors(layout.plan.wants))
        if configs:
            yield _file(cluster, "cilium/nodeconfigs.yaml", configs)
    elif cluster.own_pools:
        for shard, nodes in layout.by_shard(partial(_of_node, layout)):
            yield _file(cluster, f"pools/{shard}/nodeconfigs.yaml", nodes)


def _file(cluster: Cluster, path: str, configs: Sequence[Values]) -> File:
    return File(
        path,
        TEMPLATE,
        {"api": node_config_api(cluster.cilium), "namespace": cluster.namespace, "configs": configs},
    )


def _of_pool(name: str, selector: LabelSelector) -> Values:
    return name, (("ipam-default-ip-pool", name),), selector.expressions, selector.labels


def _of_node(layout: Layout, want: Want, lines: tuple[Line, ...]) -> Values | None:
    """Return the config of one node, or None if it holds no block of a pool of its own.

    Its default pool is the first candidate of which it holds blocks. By default an agent requests 8 more
    addresses than it uses, and waits for them when it starts; a smaller pre-allocation requests no more than
    its blocks have. Of pools that nodes share it pre-allocates nothing: blocks come as pods ask for them.
    """
    name, version = want.node.name, layout.plan.cluster.cilium
    groups = {
        pool: families for pool, families in of_node(lines).items() if pool not in layout.plan.operator_pools
    }
    if not groups:
        return None
    default = next(
        (offer.pool.name for offer in want.offers if offer.pool.name in groups), next(iter(groups))
    )
    settings = []
    for pool, families in groups.items():
        number = pre_allocation(
            version,
            (block for blocks in families.values() for block in blocks),
            layout.plan.cluster.pools_by_name.get(pool),
            default=pool == default,
        )
        settings.append(f"{pinned_name(pool, name)}={number or 0}")
    defaults = (
        ("ipam-default-ip-pool", pinned_name(default, name)),
        ("ipam-multi-pool-pre-allocation", ",".join(settings)),
    )
    return name, defaults, (), ((HOSTNAME, want.node.hostname),)
