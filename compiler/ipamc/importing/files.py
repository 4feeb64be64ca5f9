"""The files of an imported cluster as text: short, sorted, and the same bytes for the same cluster.

A node is one line, so that a change of a node is a change of one line. The inventory has the fields of a node
that pools select by and that a lock depends on, and nothing that changes by itself, such as a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from ipamc.importing.draft import Blocks, Draft, DraftPool
from ipamc.importing.facts import Facts
from ipamc.model.address_sets import index_around, outermost
from ipamc.model.cidr import Address, Block, OverlapIndex, address_text
from ipamc.model.cilium.versions import text as version_text
from ipamc.model.cluster import ManagedBy, Mode, Version
from ipamc.model.dump import Dump, SeenObject
from ipamc.model.evidence import around, waits
from ipamc.model.node import HOSTNAME, CiliumNode, Node
from ipamc.model.selector.expression import SelectorError
from ipamc.model.selector.selector import parse_label_selector
from ipamc.render.yaml import scalar

CLUSTER, POOLS, NODES, CILIUM_NODES = "cluster.yaml", "ippools.yaml", "nodes.yaml", "ciliumnodes.yaml"
BGP = "bgp.yaml"

LABELS = (
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "node.kubernetes.io/instance-type",
    "node-role.kubernetes.io/*",
)
"""Keys in every inventory; a `*` at the end matches any rest of a key."""
_PLACES = frozenset({"rack", "row", "room", "datacenter", "dc", "site", "zone", "region"})
"""Names of labels, with any prefix, for the place of a node: pools of addresses follow them."""
_OURS = "ipamc/v1alpha1"
_SCHEMA = "# yaml-language-server: $schema=../.schemas/{}.schema.json\n"
_HEAD = "# Written by 'ipamc import --refresh', which overwrites it; {}\n"


def flow(value: Any) -> str:
    """Return a value as one line of YAML; mappings keep their order."""
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
    if native := facts.blocks("ipv4-native-routing-cidr"):
        runs["nativeRoutingCIDR"] = str(native[0])
    runs |= facts.mesh
    rows = [f"apiVersion: {_OURS}", "kind: Cluster", f"metadata: {flow({'name': name})}", "spec:"]
    rows.append(f"  cilium: {flow(runs)}")
    if facts.kubernetes:
        rows.append(f"  kubernetes: {flow({'version': version_text(facts.kubernetes)})}")
    rows.append(f"  ipam: {flow({'mode': draft.mode.value, **draft.ipam})}")
    rows.append(f"  ipFamilies: {flow([f'IPv{family}' for family in draft.families])}")
    if draft.excluded:
        rows.append("  excludedCIDRs:")
        width = max(len(flow(item.block)) for item in draft.excluded)
        rows += [f"  - {flow(item.block):<{width}}  # {_comment(item.why)}" for item in draft.excluded]
    else:
        known = "a pool reserves those of the dump"
        why = known if any(pool.reserved for pool in draft.pools) else "the dump does not show them"
        rows.append(f"  excludedCIDRs: []  # service range, node networks, other clusters: {why}")
    if facts.bgp != "none":
        rows.append(f"  bgp: {flow(facts.bgp)}")
    rows += [f"  {key}: {flow(value)}" for key, value in draft.spec.items()]
    return _SCHEMA.format("cluster") + "".join(f"{row}\n" for row in rows)


def pools_text(pools: Iterable[DraftPool]) -> str:
    """Return ippools.yaml."""
    documents = ("".join(f"{row}\n" for row in _pool(pool)) for pool in pools)
    return _SCHEMA.format("ippool") + "---\n".join(documents)


def _pool(pool: DraftPool) -> Iterator[str]:
    if pool.comment:
        yield f"# {_comment(pool.comment)}"
    labels = {"labels": dict(sorted(pool.labels.items()))} if pool.labels else {}
    yield from (f"apiVersion: {_OURS}", "kind: IPPool", f"metadata: {flow({'name': pool.name, **labels})}")
    yield "spec:"
    for family, ranges in sorted(pool.ranges.items()):
        part = {"cidrs": [str(block) for block in ranges], "blockSize": pool.sizes[family]}
        yield f"  ipv{family}: {flow(part)}"
    fields: dict[str, Any] = {
        "nodeSelector": pool.selector,
        "priority": pool.priority,
        "reserved": [
            {"cidr": str(block), "reason": why[:256]} if why else str(block)  # a compile reads no more
            for block, why in sorted(pool.reserved.items())
        ],
        "unlisted": pool.unlisted,
        "disabled": pool.disabled,
        "podsOnly": pool.pods_only,
        **pool.more,
    }
    for key, value in fields.items():
        if key == "reserved" and any(pool.reserved.values()):
            yield from ("  reserved:", *(f"  - {flow(entry)}" for entry in value))
        elif value:
            yield f"  {key}: {flow(value)}"


def bgp_text(objects: Iterable[SeenObject]) -> str:
    """Return bgp.yaml: objects of the BGP control plane, without what the apiserver adds."""
    texts = []
    for each in objects:
        given = each.value.get("metadata") or {}
        metadata = {key: given[key] for key in ("name", "labels") if given.get(key)}
        texts.append(f"apiVersion: {each.api_version}\nkind: {each.kind}\nmetadata: {flow(metadata)}\n")
        texts[-1] += f"spec: {flow(each.value.get('spec') or {})}\n"
    return "---\n".join(texts)


def tested_keys(each: SeenObject) -> Collection[str]:
    """Return the labels of nodes that an object of the BGP control plane selects by."""
    spec = each.value.get("spec")
    try:
        return parse_label_selector(spec.get("nodeSelector") or {}).keys if isinstance(spec, dict) else ()
    except SelectorError:
        return ()


def _comment(text: str) -> str:
    """Return a text for a comment, which it cannot end."""
    return "".join(character if character.isprintable() else " " for character in text)


class KnownBlocks(Struct, frozen=True, kw_only=True, dict=True):
    """An import's knowledge of nodes' blocks. A compile refuses a running node whose blocks are unknown."""

    given: Mapping[str, Sequence[Block]]  # each node's blocks, from the source of blocks in this mode
    sizes: Mapping[Block, int]  # the prefix length of the smallest block of each range of a pool
    families: Sequence[int]
    silent: bool = True  # a node may have a block although no object shows one

    @cached_property
    def _ranges(self) -> OverlapIndex[Block]:
        return OverlapIndex(self.sizes, lambda block: block)

    def size(self, single: Block) -> int:
        """Return the prefix length of the block that contains an address; 0 outside of all pools."""
        found = self._ranges.first_over(single)
        return self.sizes[found] if found else 0

    def of(self, node: Node, in_use: Iterable[Address], seen: CiliumNode | None) -> dict[str, Any]:
        """Return further fields of a node for the inventory; none if its blocks contain all its addresses.
        If some addresses are outside, one address of each block is listed, including the node's own blocks.
        """
        given, addresses = self.given.get(node.name, ()), tuple(in_use)
        found: dict[str, Any] = {}
        if self.silent and node.running and not (given or waits(node, seen)):
            found["running"] = True
        if around(addresses, given, self.size):
            found["podIPs"] = [address_text(*first) for first in around(addresses, (), self.size).values()]
        return found


def is_wanted(key: str, wanted: Iterable[str]) -> bool:
    """Return whether a label's key matches one of some, which may end in `*`."""
    return any(key == one or (one.endswith("*") and key.startswith(one[:-1])) for one in wanted)


def node_fields(node: Node, wanted: Collection[str]) -> dict[str, Any]:
    """Return a node's fields in the inventory: labels with `wanted` keys (may end in `*`), and of places."""

    def is_listed(key: str, value: str) -> bool:
        if key.rpartition("/")[2] in _PLACES or (key == HOSTNAME and value != node.name):
            return True
        return is_wanted(key, wanted)

    fields: dict[str, Any] = {
        "name": node.name,
        "uid": node.uid,
        "labels": {key: value for key, value in sorted(node.labels.items()) if is_listed(key, value)},
        "maxPods": node.max_pods,
        "podCIDRs": [str(block) for block in node.pod_cidrs],
        "internalIPs": [address_text(*ip) for ip in node.internal_ips],
    }
    return {key: value for key, value in fields.items() if value}


def planned_fields(name: str, labels: Mapping[str, str], max_pods: int = 0) -> dict[str, Any]:
    """Return the fields of a planned node, or of several, if the name is a pattern."""
    fields: dict[str, Any] = {
        "names" if "{" in name else "name": name,
        "labels": dict(sorted(labels.items())),
        "maxPods": max_pods,
    }
    return {**{key: value for key, value in fields.items() if value}, "planned": True}


def inventory_text(
    dump: Dump,
    nodes: Iterable[Node],
    wanted: Collection[str],
    known: KnownBlocks,
    planned: Iterable[Mapping[str, Any]] = (),
) -> str:
    """Return a NodeInventory, such as nodes.yaml: nodes of a dump, and planned ones; see `node_fields`."""
    in_use, seen = dump.in_use, dump.cilium_nodes_by_name
    rows = [
        {**node_fields(node, wanted), **known.of(node, in_use.get(node.name, ()), seen.get(node.name))}
        for node in nodes
    ]
    by_name = sorted([*rows, *planned], key=lambda row: str(row.get("name") or row["names"]))
    lines = [f"- {flow(row)}\n" for row in by_name]
    text = inventory_head(_HEAD.format("planned nodes stay, other edits are lost"))
    return f"{text}{''.join(lines)}" if lines else text.replace("nodes:\n", "nodes: []\n")


def inventory_head(comment: str) -> str:
    """Return the beginning of a NodeInventory, up to its list, below a line of comment."""
    return f"{comment}{_SCHEMA.format('nodeinventory')}apiVersion: {_OURS}\nkind: NodeInventory\nnodes:\n"


def evidence_text(dump: Dump, mode: Mode, given: Mapping[str, Blocks]) -> str:
    """Return ciliumnodes.yaml: `spec.ipam` of CiliumNodes, including those of nodes that are gone.
    A node with blocks from another source than Cilium (`given`) is written as its CiliumNode will be, until
    that shows some. In kubernetes mode agents copy podCIDRs of Nodes: only differences are evidence.
    Where a Node or CiliumNode is being deleted, the CiliumNode says so.
    """
    kubernetes = mode is Mode.KUBERNETES
    ipam_of: dict[str, Mapping[str, Any]] = {}
    for name, blocks in given.items():
        node = dump.nodes_by_name.get(name)
        if blocks and not (kubernetes and node and node.pod_cidrs):
            ipam_of[name] = _ipam(blocks)
    for seen in dump.cilium_nodes:
        blocks = tuple((block, "") for block in seen.blocks)
        whole = outermost(seen.blocks) if mode is Mode.CRD else []
        addresses = seen.addresses if mode is Mode.CRD else ()
        single = [block for block in addresses if index_around(whole, block) is None]
        allocated = seen.allocated if mode is Mode.MULTI_POOL else ()
        ipam = _ipam(allocated or blocks, () if allocated else single)
        node = dump.nodes_by_name.get(seen.name)
        if kubernetes and (not ipam or (node and node.pod_cidrs == seen.blocks)):
            continue
        if ipam or seen.name not in ipam_of:
            ipam_of[seen.name] = ipam
    going: dict[str, Mapping[str, Any]] = {node.name: {} for node in dump.nodes if node.deleting}
    going |= {seen.name: {} for seen in dump.cilium_nodes if seen.deleting}
    goes = {"deletionTimestamp": dump.newest or "unknown"}
    lines = [
        f"- {flow({'metadata': {'name': name, **(goes if name in going else {})}, 'spec': {'ipam': ipam}})}\n"
        for name, ipam in sorted({**going, **ipam_of}.items())
    ]
    head = _HEAD.format("the blocks of the CiliumNodes in the cluster")
    listed = f"items:\n{''.join(lines)}" if lines else "items: []\n"
    return f"{head}apiVersion: cilium.io/v2\nkind: CiliumNodeList\n{listed}"


def _ipam(blocks: Blocks, addresses: Iterable[Block] = ()) -> dict[str, Any]:
    """Return `spec.ipam` of a CiliumNode that shows some blocks, and single addresses (crd mode)."""
    by_pool: dict[str, list[str]] = {}
    for block, name in blocks:
        by_pool.setdefault(name, []).append(str(block))
    plain = by_pool.pop("", [])
    single = ((block.family, number) for block in addresses for number in range(block.first, block.last + 1))
    pool: dict[str, Any] = {address_text(*address): {} for address in single}
    ipam: dict[str, Any] = {"podCIDRs": plain} if plain else {}
    if by_pool:
        allocated = [{"pool": name, "cidrs": cidrs} for name, cidrs in sorted(by_pool.items())]
        ipam["pools"] = {"allocated": allocated}
    return {**ipam, "pool": pool} if pool else ipam
