"""One cluster as people and the live cluster show it: plain values that a history changes step by step, and how they are written as documents.

All of it lies in a window of 1,024 addresses a family, in which everything meets everything else soon enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from ipamc.model.cidr import Block, address_text
from ipamc.model.lock import Consent
from ipamc.pipeline import Compilation, Inputs, compile_cluster
from ipamc.read.parts import BINDING, POOLS
from tests.support import fleet

MODES = ("kubernetes", "cluster-pool", "adopt", "multi-pool", "crd")
"""What `spec.ipam.mode` may be; adopt is cluster-pool mode where the operator gives blocks of a pool to nodes that nobody listed."""
NODES = "nodes/"
"""The folder of rendered Nodes, below `rendered/`."""
BASE = {4: 10 << 24, 6: 0xFD << 120}
LONGER = {4: 0, 6: 96}
"""Prefix lengths are said as for IPv4; those of IPv6 are longer by so much."""
NODE_NAMES = tuple("abcdefghijklmn")
POOL_NAMES = ("default", "p", "q", "r", "s", "t")
RACKS = ("x", "y", "z")


def cell(family: int, at: int, prefix: int) -> Block:
    """Return the block of a size that contains the `at`-th 16 addresses of the window."""
    size = 1 << (32 - prefix)
    return Block(family, BASE[family] + at % 64 * 16 // size * size, prefix + LONGER[family])


@dataclass
class Pool:
    """An IPPool. Its selector is a rack, or nothing."""

    ranges: dict[int, list[Block]]
    size: int
    rack: str = ""
    priority: int = 0
    large: int = 0
    """The block size of nodes that are large; 0: as all others."""
    per_node: int = 1
    overflow: list[str] = field(default_factory=list)
    reserved: list[Block] = field(default_factory=list)
    pins: dict[str, list[Block]] = field(default_factory=dict)
    disabled: bool = False
    unlisted: bool = False

    @property
    def blocks(self) -> list[Block]:
        """Return the ranges of all families."""
        return [each for some in self.ranges.values() for each in some]

    @property
    def open(self) -> bool:
        """Tell whether it gives blocks to newcomers."""
        return not (self.disabled or self.unlisted)

    def prefix(self, node: Node, family: int) -> int:
        """Return the prefix length of the block that a node gets."""
        return (self.large if self.large and node.large else self.size) + LONGER[family]

    def needed(self, node: str, family: int) -> int:
        """Count the blocks of a family that it owes a node in a mode of several blocks."""
        pins = sum(each.family == family for each in self.pins.get(node, ()))
        return max(self.per_node if self.open else 0, pins)

    def document(self, name: str) -> fleet.Document:
        """Write it."""
        spec: dict[str, Any] = {
            f"ipv{family}": {"cidrs": list(map(str, some)), "blockSize": self.size + LONGER[family]}
            for family, some in self.ranges.items()
            if some
        }
        spec |= {"priority": self.priority, "overflow": self.overflow, "blocksPerNode": self.per_node}
        spec |= {
            "disabled": self.disabled,
            "unlisted": self.unlisted,
            "reserved": list(map(str, self.reserved)),
        }
        spec["pins"] = {node: list(map(str, some)) for node, some in self.pins.items() if some}
        if self.rack:
            spec["nodeSelector"] = f'rack == "{self.rack}"'
        if self.large:
            sizes = {
                f"ipv{family}": self.large + LONGER[family] for family, some in self.ranges.items() if some
            }
            spec["blockSizes"] = [{"nodeSelector": 'size == "large"', **sizes}]
        return fleet.pool(name, **spec)


@dataclass
class Node:
    """A node: an entry of an inventory, planned or not, or a v1 Node; a planned one can be both."""

    rack: str
    large: bool = False
    planned: bool = False
    live: bool = False
    """There is a v1 Node."""
    ready: bool = False
    """The v1 Node says that it runs pods."""
    created: int = 0
    """How often it was deleted and joined again: another uid each time."""
    pod_cidrs: list[Block] = field(default_factory=list)

    @property
    def labels(self) -> dict[str, str]:
        """Return its labels."""
        return {"rack": self.rack, "size": "large" if self.large else "small"}

    def uid(self, name: str) -> str:
        """Return the uid of its v1 Node."""
        return f"uid-{name}-{self.created}"

    @property
    def to_come(self) -> bool:
        """Tell whether it is planned, and not there yet."""
        return self.planned and not self.live


@dataclass
class World:
    """Everything that a compile reads, but for lock and consent."""

    mode: str
    families: list[int]
    spec: dict[str, Any] = field(default_factory=dict)
    """Further fields of the Cluster's `spec`."""
    excluded: list[Block] = field(default_factory=list)
    pools: dict[str, Pool] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    cilium_nodes: dict[str, list[tuple[Block, str]]] = field(default_factory=dict)
    """Blocks and the names of their pools, by the CiliumNode's name."""
    addresses: dict[str, list[Block]] = field(default_factory=dict)
    """Single addresses of CiliumNodes, in crd mode."""
    published: frozenset[str] = field(default=frozenset(), compare=False)
    """Names of the CiliumPodIPPools that were rendered last: nodes share them."""

    @property
    def one_block(self) -> bool:
        """Tell whether a node has one block a family."""
        return self.mode in {"kubernetes", "cluster-pool"}

    @property
    def pinning(self) -> str:
        """Return what pins nodes to their pools in multi-pool mode; "" in the other modes."""
        return str(self.spec.get("ipam", {}).get("pinning", "pool")) if self.mode == "multi-pool" else ""

    def operators(self) -> set[str]:
        """Name the pools whose blocks Cilium's operator gives out, whatever the lock says."""
        if self.mode == "cluster-pool":
            return {name for name, pool in self.pools.items() if pool.unlisted}
        if self.mode != "multi-pool":
            return set()
        if self.pinning != "node":
            return set(self.pools)
        served = [names for node in self.nodes if (names := self.candidates(node))]
        further = {name for _, *others in served for name in others}
        return further | (self.published & self.pools.keys()) - {first for first, *_ in served}

    def shown(self, node: str) -> list[Block]:
        """Return the blocks that the live cluster shows for a node: in kubernetes mode a Node's podCIDRs come before those of its CiliumNode."""
        if self.mode == "kubernetes" and node in self.nodes and self.nodes[node].pod_cidrs:
            return self.nodes[node].pod_cidrs
        return [block for block, _ in self.cilium_nodes.get(node, ())]

    def evidence(self) -> Iterator[tuple[str, Block]]:
        """Yield all blocks and addresses that are shown, each with its node, which may be none of the inventory."""
        for node in {**self.nodes, **self.cilium_nodes}:
            yield from ((node, block) for block in (*self.shown(node), *self.addresses.get(node, ())))

    def given(self, node: str) -> list[Block]:
        """Return the blocks of a node that the operator gave it: those in its pools, and outside all ranges those with the name of one."""
        ours = self.operators()
        if self.mode == "multi-pool":
            shown = self.cilium_nodes.get(node, [])
            return [block for block, name in shown if (self.owner(block) or name) in ours]
        return [block for block in self.shown(node) if self.owner(block) in ours]

    def show(self, node: str, blocks: list[Block]) -> None:
        """Let the live cluster show blocks for a node, as the mode has it."""
        if self.mode == "kubernetes":
            self.nodes[node].pod_cidrs = sorted(blocks, reverse=self.families[0] == 6)
        else:
            self.cilium_nodes[node] = [(block, self.owner(block) or "nobody") for block in blocks]
            self.addresses.pop(node, None)

    def forget(self, node: str) -> None:
        """Show nothing of a node any more, neither in its Node nor in a CiliumNode."""
        if node in self.nodes:
            self.nodes[node].pod_cidrs = []
        self.cilium_nodes.pop(node, None)
        self.addresses.pop(node, None)

    def owner(self, block: Block) -> str:
        """Name the pool whose range contains a block; "" if none does."""
        return next(
            (name for name, pool in self.pools.items() if any(each.contains(block) for each in pool.blocks)),
            "",
        )

    def legal(self, block: Block) -> bool:
        """Tell whether a node may hold a block."""
        return (
            block.family in self.families
            and bool(self.owner(block))
            and not any(each.overlaps(block) for each in self.excluded)
        )

    def candidates(self, node: str) -> list[str]:
        """Name the pools that may serve a node, the first candidate first: those that pin it, then those that select it."""
        known = self.nodes[node]
        found = [
            name
            for name, pool in self.pools.items()
            if (pool.open and pool.rack in {"", known.rack}) or pool.pins.get(node)
        ]
        return sorted(
            found,
            key=lambda name: (
                not self.pools[name].pins.get(node),
                -self.pools[name].priority,
                not self.pools[name].rack,
                name,
            ),
        )

    def servers(self, node: str, family: int) -> set[str]:
        """Name the pools that a node may have a block of: its first candidate of a family, and what may take its place, or a better one's, when it is full."""
        names = self.candidates(node)
        if not self.one_block:
            return set(names)
        found: set[str] = set()
        for name in names:
            pool = self.pools[name]
            twins = {
                other
                for other in names
                if self.pools[other].rack == pool.rack and pool.rack in {"", self.nodes[node].rack}
            }
            found |= {name, *twins, *pool.overflow} if pool.open else set()
            if pool.open and pool.ranges.get(family):
                break
        return found

    def sources(self) -> dict[str, bytes]:
        """Write it as files."""
        return fleet.as_json(list(self._documents()))

    def _documents(self) -> Iterator[fleet.Document]:
        families = [f"IPv{family}" for family in self.families]
        yield fleet.cluster(
            self.mode, ipFamilies=families, excludedCIDRs=list(map(str, self.excluded)), **self.spec
        )
        yield from (pool.document(name) for name, pool in self.pools.items())
        yield fleet.inventory(
            self._entry(name, node) for name, node in self.nodes.items() if node.planned or not node.live
        )
        live = [self._node(name, node) for name, node in self.nodes.items() if node.live]
        yield {
            "apiVersion": "v1",
            "kind": "List",
            "items": [*live, *map(self._cilium_node, self.cilium_nodes)],
        }

    @staticmethod
    def _entry(name: str, node: Node) -> dict[str, Any]:
        shown = [] if node.live else list(map(str, node.pod_cidrs))
        return {"name": name, "labels": node.labels, "planned": node.planned, "podCIDRs": shown}

    @staticmethod
    def _node(name: str, node: Node) -> fleet.Document:
        spec = (
            {"podCIDR": str(node.pod_cidrs[0]), "podCIDRs": list(map(str, node.pod_cidrs))}
            if node.pod_cidrs
            else {}
        )
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": node.uid(name), "labels": node.labels},
            "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": str(node.ready)}]},
        }

    def _cilium_node(self, name: str) -> fleet.Document:
        blocks = self.cilium_nodes[name]
        ipam: dict[str, Any] = {"podCIDRs": [str(block) for block, _ in blocks]}
        if name in self.addresses:
            ipam["pool"] = {address_text(each.family, each.first): {} for each in self.addresses[name]}
        if self.mode == "multi-pool":
            shared = self.operators()
            pools = sorted({pool for _, pool in blocks})
            ipam = {
                "pools": {
                    "allocated": [
                        {
                            "pool": pool if pool in shared else f"{pool}.{name}",
                            "cidrs": [str(block) for block, of in blocks if of == pool],
                        }
                        for pool in pools
                    ]
                }
            }
        return {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumNode",
            "metadata": {"name": name},
            "spec": {"ipam": ipam},
        }


def published_pools(rendered: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the rendered CiliumPodIPPools that nodes share."""
    documents = yaml.load_all(rendered.get(POOLS, ""), yaml.CSafeLoader)
    return frozenset(document["metadata"]["name"] for document in documents)


def rendered_uids(rendered: Mapping[str, str]) -> dict[str, str]:
    """Return the uids in rendered Nodes, by name."""
    nodes = [
        document["metadata"]
        for path, text in rendered.items()
        if path.startswith(NODES) and not path.endswith("kustomization.yaml")
        for document in yaml.load_all(text, yaml.CSafeLoader)
    ]
    return {node["name"]: node["uid"] for node in nodes if "uid" in node}


def compiled(
    world: World,
    lock: str | None,
    rendered: Mapping[str, str],
    *,
    today: str,
    consent: Consent | None = None,
    locked: bool = False,
) -> Compilation:
    """Compile it, as the command line would; raises Refused."""
    return compile_cluster(
        Inputs(
            name="fleet",
            folder="clusters/fleet",
            sources=world.sources(),
            lock_path="clusters/fleet/ipam.lock",
            lock=lock.encode() if lock is not None else None,
            rendered=bool(rendered),
            published={
                path: text.encode()
                for path, text in rendered.items()
                if path in BINDING or path.startswith(NODES)
            },
            schemas=fleet.SCHEMAS,
            templates=fleet.TEMPLATES,
            consent=consent or Consent(),
            today=today,
            locked=locked,
        )
    )


def tree(world: World, lock: str, rendered: Mapping[str, str]) -> dict[str, bytes]:
    """Return all files of the cluster, by path below `clusters/`."""
    files = {path.removeprefix("clusters/"): text for path, text in world.sources().items()}
    return (
        files
        | {"fleet/ipam.lock": lock.encode()}
        | {f"fleet/rendered/{path}": text.encode() for path, text in rendered.items()}
    )
