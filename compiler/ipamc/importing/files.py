"""The files of an imported cluster as text: short, sorted, and the same bytes for the same cluster.

A node is a line, so that a change of one node is a change of one line. Nothing that changes by itself is in
it: no heartbeat, no resource version, no time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ipamc.importing.draft import Blocks, Draft, DraftPool
from ipamc.importing.facts import Facts
from ipamc.model.cidr import Block, address_text
from ipamc.model.cilium.versions import text as version_text
from ipamc.model.cluster import ManagedBy, Version
from ipamc.render.yaml import scalar

CLUSTER, POOLS, NODES, CILIUM_NODES = "cluster.yaml", "ippools.yaml", "nodes.yaml", "ciliumnodes.yaml"

_OURS = "ipamc/v1alpha1"
_SCHEMA = "# yaml-language-server: $schema=../.schemas/{}.schema.json\n"
_WRITTEN = "# Written by 'ipamc import --refresh', which writes it again: {}\n"


def flow(value: Any) -> str:
    """Return a value as YAML on one line; mappings keep their order."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{scalar(str(key))}: {flow(item)}' for key, item in value.items())}}}"
    if isinstance(value, Block):
        return scalar(str(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow, value))}]"
    return "null" if value is None else scalar(value)


def cluster_text(name: str, draft: Draft, facts: Facts, cilium: Version, managed_by: ManagedBy) -> str:
    """Return cluster.yaml."""
    runs: dict[str, Any] = {"version": version_text(cilium), "managedBy": managed_by}
    if facts.namespace != "kube-system":
        runs["namespace"] = facts.namespace
    if facts.routing_mode:
        runs["routingMode"] = facts.routing_mode
    if facts.native_routing:
        runs["nativeRoutingCIDR"] = str(facts.native_routing)
    rows = [
        f"apiVersion: {_OURS}",
        "kind: Cluster",
        f"metadata: {flow({'name': name})}",
        "spec:",
        f"  cilium: {flow(runs)}",
    ]
    if facts.kubernetes:
        rows.append(f"  kubernetes: {flow({'version': version_text(facts.kubernetes)})}")
    rows.append(f"  ipam: {flow({'mode': draft.mode.value, **draft.ipam})}")
    rows.append(f"  ipFamilies: {flow([f'IPv{family}' for family in draft.families])}")
    rows += _excluded(draft)
    if facts.bgp != "none":
        rows.append(f"  bgp: {flow(facts.bgp)}")
    rows += [f"  {key}: {flow(value)}" for key, value in draft.spec.items()]
    return _SCHEMA.format("cluster") + "".join(f"{row}\n" for row in rows)


def _excluded(draft: Draft) -> Iterator[str]:
    """Yield the rows of excludedCIDRs, each with its reason."""
    if not draft.excluded:
        inside = any(pool.reserved for pool in draft.pools)
        others = (
            "what the dump tells is inside a pool, and reserved there" if inside else "the dump does not tell"
        )
        yield f"  excludedCIDRs: []  # service range, node networks, other clusters: {others}"
        return
    yield "  excludedCIDRs:"
    width = max(len(flow(item.block)) for item in draft.excluded)
    for item in draft.excluded:
        yield f"  - {flow(item.block):<{width}}  # {_comment(item.why)}"


def pools_text(pools: Iterable[DraftPool]) -> str:
    """Return ippools.yaml."""
    return _SCHEMA.format("ippool") + "---\n".join(
        "".join(f"{row}\n" for row in _pool(pool)) for pool in pools
    )


def _pool(pool: DraftPool) -> Iterator[str]:
    if pool.comment:
        yield f"# {_comment(pool.comment)}"
    yield f"apiVersion: {_OURS}"
    yield "kind: IPPool"
    metadata: dict[str, Any] = {"name": pool.name}
    if pool.labels:
        metadata["labels"] = dict(sorted(pool.labels.items()))
    yield f"metadata: {flow(metadata)}"
    yield "spec:"
    for family, ranges in sorted(pool.ranges.items()):
        part = {"cidrs": [str(block) for block in ranges], "blockSize": pool.sizes[family]}
        yield f"  ipv{family}: {flow(part)}"
    fields: dict[str, Any] = {
        "nodeSelector": pool.selector,
        "priority": pool.priority,
        "blocksPerNode": pool.blocks_per_node if pool.blocks_per_node > 1 else None,
        "reserved": [str(block) for block in pool.reserved],
        "unlisted": pool.unlisted,
        "disabled": pool.disabled,
        **pool.more,
    }
    for key, value in fields.items():
        if value:
            yield f"  {key}: {flow(value)}"
    if pool.block_sizes:
        yield "  blockSizes:"
        for selector, sizes in pool.block_sizes:
            row = {"nodeSelector": selector, **{f"ipv{family}": size for family, size in sizes.items()}}
            yield f"  - {flow(row)}"


def nodes_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a NodeInventory, such as nodes.yaml, from its entries by name."""
    lines = [f"- {flow(row)}\n" for row in sorted(rows, key=lambda row: str(row["name"]))]
    head = _WRITTEN.format("planned nodes stay, what else you write is lost")
    shape = _SCHEMA.format("nodeinventory")
    empty = "nodes: []\n" if not lines else "nodes:\n"
    return f"{head}{shape}apiVersion: {_OURS}\nkind: NodeInventory\n{empty}{''.join(lines)}"


def cilium_nodes_text(shown: Mapping[str, Mapping[str, Any]]) -> str:
    """Return ciliumnodes.yaml, from `spec.ipam` by name: what the running cluster shows."""
    lines = [
        f"- {flow({'metadata': {'name': name}, 'spec': {'ipam': ipam}})}\n"
        for name, ipam in sorted(shown.items())
    ]
    head = _WRITTEN.format("the blocks that CiliumNodes show in the running cluster")
    empty = "items: []\n" if not lines else "items:\n"
    return f"{head}apiVersion: cilium.io/v2\nkind: CiliumNodeList\n{empty}{''.join(lines)}"


def shown_ipam(blocks: Blocks, addresses: Iterable[Block] = ()) -> dict[str, Any]:
    """Return `spec.ipam` of a CiliumNode that shows some blocks, and single addresses (crd mode)."""
    ipam: dict[str, Any] = {}
    if plain := [str(block) for block, name in blocks if not name]:
        ipam["podCIDRs"] = plain
    by_pool: dict[str, list[str]] = {}
    for block, name in blocks:
        if name:
            by_pool.setdefault(name, []).append(str(block))
    if by_pool:
        ipam["pools"] = {
            "allocated": [{"pool": name, "cidrs": some} for name, some in sorted(by_pool.items())]
        }
    single = ((block.family, number) for block in addresses for number in range(block.first, block.last + 1))
    pool: dict[str, Any] = {address_text(*address): {} for address in single}
    if pool:
        ipam["pool"] = pool
    return ipam


def _comment(text: str) -> str:
    """Return a text that cannot end the comment that it is in."""
    return "".join(character if character.isprintable() else " " for character in text)
