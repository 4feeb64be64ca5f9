"""CiliumNodes with their blocks and nothing else.

Agents replace labels, annotations and owners, and write the rest of the spec. In multi-pool mode operator and
agent own the list of blocks after the agent's first start, and applying it again would take blocks away from
running pods. There the CiliumNodes are seeds, which are applied once, before that start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ipamc.model.cidr import Block, address_text
from ipamc.model.cilium.operator_list import given_by_operator
from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can, waits_for_agent
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.follows import given_by_address
from ipamc.model.lock import Line
from ipamc.model.node import Node
from ipamc.model.plan import Want
from ipamc.render.targets.context import File, Layout, texts
from ipamc.render.targets.pod_ip_pool import allowed, of_node, pinned_name

TEMPLATE = "cilium_node.yaml.j2"

Allocated = tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]
Values = tuple[str, bool, tuple[str, ...], tuple[str, ...], Allocated]
"""Name, whether the operator must keep it, podCIDRs; in crd mode single addresses; in multi-pool mode
(pool, CIDRs, fields of `allowed`)."""


def files(layout: Layout) -> Iterator[File]:
    """Yield `ciliumnodes/<shard>/ciliumnodes.yaml`, or in multi-pool mode `seeds/<shard>.yaml`."""
    cluster = layout.plan.cluster
    if cluster.mode is Mode.KUBERNETES:
        return  # there agents copy a Node's podCIDRs
    seeds = cluster.mode is Mode.MULTI_POOL
    if seeds and cluster.admission.assign:
        return
    for shard, nodes in layout.by_shard(_maker(layout)):
        if seeds:
            yield File(f"seeds/{shard}.yaml", TEMPLATE, {"nodes": nodes}, applied=False)
        else:
            yield File(f"ciliumnodes/{shard}/ciliumnodes.yaml", TEMPLATE, {"nodes": nodes})


def waiting(layout: Layout) -> Iterator[File]:
    """Yield CiliumNodes that are in no file, by path: of planned nodes, which the operator would delete, and
    of nodes whose blocks follow their addresses, which may return with others. They are applied once their
    agents have created them. Seeds have no such moment.
    """
    if layout.plan.cluster.mode in {Mode.CLUSTER_POOL, Mode.CRD}:
        for shard, nodes in layout.by_shard(_maker(layout, waiting=True)):
            yield File(f"ciliumnodes/{shard}", TEMPLATE, {"nodes": nodes}, applied=False)


def _maker(layout: Layout, *, waiting: bool = False) -> Callable[[Want, tuple[Line, ...]], Values | None]:
    """Return, for the mode, a function from a node and its lines to the template's values; None: no object.
    `waiting`: only nodes that wait for their agents, otherwise all others. The operator must keep a planned
    node's CiliumNode. IPv4 comes first, as the operator writes it back.
    """
    cluster = layout.plan.cluster
    by_operator = given_by_operator(cluster, layout.plan.lock.lines)
    by_address = given_by_address(cluster, layout.held)
    some = by_operator or by_address

    def rendered(node: Node) -> bool:
        waits = waits_for_agent(cluster, node) or node.name in by_address
        return waits is waiting and node.name not in by_operator

    def with_pod_cidrs(want: Want, lines: tuple[Line, ...]) -> Values | None:
        node = want.node
        if (node.planned or waiting or some) and not rendered(node):  # nearly all are read once
            return None
        cidrs = (str(lines[0].block),) if len(lines) == 1 else texts([line.block for line in lines])
        return node.name, node.planned and not waiting, cidrs, (), ()

    def with_addresses(want: Want, lines: tuple[Line, ...]) -> Values | None:
        node = want.node
        if not rendered(node):
            return None
        addresses = tuple([address for line in lines for address in single(line.block, line.addresses)])
        return node.name, node.planned and not waiting, texts([line.block for line in lines]), addresses, ()

    def with_pools(want: Want, lines: tuple[Line, ...]) -> Values | None:
        node = want.node
        if not rendered(node):
            return None
        pools = allocated(cluster, layout.plan.operator_pools, node, lines)
        return (node.name, node.planned, (), (), pools) if pools else None

    return {Mode.MULTI_POOL: with_pools, Mode.CRD: with_addresses}.get(cluster.mode, with_pod_cidrs)


def allocated(cluster: Cluster, shared: frozenset[str], node: Node, lines: tuple[Line, ...]) -> Allocated:
    """Return `pools.allocated` as that version's operator writes it: by pool, then IPv4 first.
    No node starts with a block of a pool for pods alone: the pod may run on another node by then.
    """
    # Without `allowFirstIP` an agent that starts before the operator writes would not use the address.
    numeric = can(cluster.cilium, Capability.NUMERIC_ALLOCATED)
    return tuple(
        sorted(
            (
                pool if pool in shared else pinned_name(pool, node.name),
                tuple(
                    cidr
                    for _, blocks in sorted(families.items())
                    for cidr in (texts(blocks) if numeric else sorted(texts(blocks)))
                ),
                allowed(cluster.pools_by_name.get(pool)),
            )
            for pool, families in of_node(lines).items()
            if (found := cluster.pools_by_name.get(pool)) is None or not found.pods_only
        )
    )


def single(block: Block, number: int = 0) -> Iterator[str]:
    """Yield the first `number` addresses (0: all) that crd mode lists: of more than two not both ends."""
    first, last = (block.first + 1, block.last - 1) if block.size > 2 else (block.first, block.last)
    last = min(last, first + number - 1) if number else last
    return (address_text(block.family, number) for number in range(first, last + 1))
