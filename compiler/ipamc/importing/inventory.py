"""The slim inventory: of each node what pools can select by and what a lock depends on, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from ipamc.importing.draft import Blocks
from ipamc.importing.files import cilium_nodes_text, nodes_text, shown_ipam
from ipamc.model.address_sets import index_around, outermost
from ipamc.model.cidr import Address, Block, OverlapIndex, address_text
from ipamc.model.cluster import HOSTNAME, CiliumNode, Mode, Node
from ipamc.model.dump import Dump
from ipamc.model.evidence import around

LABELS = (
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "node.kubernetes.io/instance-type",
    "node-role.kubernetes.io/*",
)
"""Keys that every inventory has; `*` at the end stands for the rest of a key."""
_PLACES = frozenset({"rack", "row", "room", "datacenter", "dc", "site", "zone", "region"})
"""Names of labels, with any prefix, that say where a node is: pools of addresses follow them."""


def is_listed(key: str, wanted: Iterable[str]) -> bool:
    """Tell whether a label is in the inventory: by `wanted`, which may end in `*`, or because it is a place."""
    if key.rpartition("/")[2] in _PLACES:
        return True
    return any(key == one or (one.endswith("*") and key.startswith(one[:-1])) for one in wanted)


class Known(Struct, frozen=True, kw_only=True, dict=True):
    """What an import knows of the blocks of a cluster's nodes, so that a compile refuses what is not known."""

    given: Mapping[str, Sequence[Block]]
    """The blocks that a node has by what gives it blocks in this mode."""
    sizes: Mapping[Block, int]
    """The prefix length of the smallest block of each range of a pool."""
    families: Sequence[int]
    silent: bool = True
    """A node of which nothing shows a block may have one all the same."""

    @cached_property
    def _ranges(self) -> OverlapIndex[Block]:
        return OverlapIndex(self.sizes, lambda block: block)

    def size(self, single: Block) -> int:
        """Return the prefix length of the block around an address; 0 outside of all pools."""
        found = self._ranges.first_over(single)
        return self.sizes[found] if found else 0

    def of(self, node: Node, in_use: Iterable[Address]) -> dict[str, Any]:
        """Return what is to be known of a node in the inventory: nothing of one whose blocks have all its addresses.

        Where addresses are outside, there is one of each block, also of those that the node has.
        """
        given, addresses = self.given.get(node.name, ()), tuple(in_use)
        found: dict[str, Any] = {}
        if self.silent and node.running and not set(self.families) <= {block.family for block in given}:
            found["running"] = True
        if around(addresses, given, self.size):
            found["podIPs"] = [address_text(*first) for first in around(addresses, (), self.size).values()]
        return found


def entry(
    node: Node, wanted: Collection[str], known: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return a node as a line of the inventory."""
    labels = {
        key: value
        for key, value in sorted(node.labels.items())
        if is_listed(key, wanted) or (key == HOSTNAME and value != node.name)
    }
    found: dict[str, Any] = {"name": node.name}
    if node.uid:
        found["uid"] = node.uid
    if labels:
        found["labels"] = labels
    if node.max_pods:
        found["maxPods"] = node.max_pods
    if node.pod_cidrs:
        found["podCIDRs"] = [str(block) for block in node.pod_cidrs]
    return {**found, **known}


def inventory_text(
    dump: Dump,
    nodes: Iterable[Node],
    wanted: Collection[str],
    known: Known,
    planned: Iterable[Mapping[str, Any]] = (),
) -> str:
    """Return an inventory: nodes of a dump, and the planned ones that do not exist yet."""
    rows = [entry(node, wanted, known.of(node, dump.in_use.get(node.name, ()))) for node in nodes]
    return nodes_text([*rows, *planned])


def evidence_text(dump: Dump, mode: Mode, given: Mapping[str, Blocks] = MappingProxyType({})) -> str:
    """Return ciliumnodes.yaml: what CiliumNodes show, also those of nodes that are gone.

    A node that has blocks by something else than Cilium, `given`, is there as its CiliumNode will show them,
    until it shows some. In kubernetes mode agents copy podCIDRs of Nodes: only what differs from them is evidence.
    """
    kubernetes = mode is Mode.KUBERNETES
    shown: dict[str, Mapping[str, Any]] = {}
    for name, blocks in given.items():
        node = dump.nodes_by_name.get(name)
        if blocks and not (kubernetes and node and node.pod_cidrs):
            shown[name] = shown_ipam(blocks)
    for seen in dump.cilium_nodes:
        ipam = _shown(seen, mode)
        node = dump.nodes_by_name.get(seen.name)
        if kubernetes and (not ipam or (node and node.pod_cidrs == seen.blocks)):
            continue
        if ipam or seen.name not in shown:
            shown[seen.name] = ipam
    return cilium_nodes_text(shown)


def _shown(seen: CiliumNode, mode: Mode) -> Mapping[str, Any]:
    """Return what a CiliumNode shows in a mode."""
    if mode is Mode.MULTI_POOL and seen.allocated:
        return shown_ipam(seen.allocated)
    whole = outermost(seen.blocks)
    single = [block for block in seen.addresses if index_around(whole, block) is None]
    return shown_ipam(tuple((block, "") for block in seen.blocks), single if mode is Mode.CRD else ())
