"""CiliumNodes with their blocks, and nothing else: agents replace labels, annotations and owners, and write the rest of the spec.

In multi-pool mode operator and agent own the blocks once the agent ran, and an applied list would take blocks away from running pods: there they are
seeds, to be applied once, before the agent's first start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ipamc.model.cidr import Block, address_text
from ipamc.model.cilium.features import Capability
from ipamc.model.cilium.versions import can
from ipamc.model.cluster import Cluster, Mode, Node
from ipamc.model.lock import Line
from ipamc.render.targets.context import File, Layout, renumber_path, texts
from ipamc.render.targets.pod_ip_pool import of_node, pinned_name

TEMPLATE = "cilium_node.yaml.j2"

Allocated = tuple[tuple[str, tuple[str, ...]], ...]
Values = tuple[str, bool, tuple[str, ...], tuple[str, ...], Allocated]
"""Name, whether the operator is told to keep it, podCIDRs, single addresses (crd), (pool, CIDRs) (multi-pool)."""


def files(layout: Layout) -> Iterator[File]:
    """Yield `ciliumnodes/<shard>/ciliumnodes.yaml`, in multi-pool mode `seeds/<shard>.yaml` instead, and `renumber/<node>.yaml`."""
    cluster = layout.plan.cluster
    if cluster.mode is Mode.KUBERNETES:
        return  # there agents copy a Node's podCIDRs
    values = _maker(cluster)
    seeds = cluster.mode is Mode.MULTI_POOL
    held_back = _moving(layout) if not seeds else frozenset()
    if not can(cluster.cilium, Capability.DO_NOT_GC):  # the operator would collect them
        held_back |= {node.name for node in cluster.nodes if node.planned}
    held = layout.held
    for shard, wants in layout.shards:
        nodes = [
            values(want.node, lines)
            for want in wants
            if (lines := held.get(want.node.name)) and want.node.name not in held_back
        ]
        if nodes and seeds:
            yield File(f"seeds/{shard}.yaml", TEMPLATE, {"nodes": nodes}, applied=False)
        elif nodes:
            yield File(f"ciliumnodes/{shard}/ciliumnodes.yaml", TEMPLATE, {"nodes": nodes})
    if cluster.own_pools:
        return  # the CiliumPodIPPools of the node are its file
    for node, lines in layout.renumbered():
        yield File(renumber_path(node.name), TEMPLATE, {"nodes": (values(node, lines),)}, applied=False)


def _moving(layout: Layout) -> frozenset[str]:
    """Name the nodes on their way to another block, whose CiliumNode does not show the held one (any more); `review` tells of them."""
    return frozenset(
        each.name
        for each in layout.plan.cluster.cilium_nodes
        if each.name in layout.coming
        and each.blocks
        and sorted(block for block, _ in each.blocks)
        != [line.block for line in layout.held.get(each.name, ())]
    )


def _maker(cluster: Cluster) -> Callable[[Node, tuple[Line, ...]], Values]:
    """Choose what the template is given of a node, by mode. A planned node is kept from collection. IPv4 comes first, as the operator writes it back."""
    if cluster.mode is Mode.MULTI_POOL:
        return lambda node, lines: (node.name, node.planned, (), (), allocated(cluster, node, lines))
    if cluster.mode is Mode.CRD:
        return lambda node, lines: (
            node.name,
            node.planned,
            texts([line.block for line in lines]),
            tuple([address for line in lines for address in single(line.block)]),
            (),
        )
    return lambda node, lines: (node.name, node.planned, texts([line.block for line in lines]), (), ())


def allocated(cluster: Cluster, node: Node, lines: tuple[Line, ...]) -> Allocated:
    """Give `pools.allocated` as that version's operator writes it back: pools by name, IPv4 first, then by text or by address."""
    order = texts if can(cluster.cilium, Capability.NUMERIC_ALLOCATED) else _by_text
    name = pinned_name if cluster.own_pools else lambda pool, _: pool
    return tuple(
        sorted(
            (
                name(pool, node.name),
                tuple(cidr for _, blocks in sorted(families.items()) for cidr in order(blocks)),
            )
            for pool, families in of_node(lines).items()
        ),
    )


def _by_text(blocks: tuple[Block, ...]) -> tuple[str, ...]:
    return tuple(sorted(texts(blocks)))


def single(block: Block) -> Iterator[str]:
    """Yield every address that a pod can have, as crd mode lists them, in order: first and last are left out where there are more than two."""
    first, last = (block.first + 1, block.last - 1) if block.size > 2 else (block.first, block.last)
    return (address_text(block.family, number) for number in range(first, last + 1))
