"""Everything that the rules of an audit look at, and what several of them ask of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from ipamc.importing.facts import AGENT, Facts, facts_of, texts_of, words_of
from ipamc.lock.file import line_at
from ipamc.model.address_sets import index_around, outermost
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Mode, Node
from ipamc.model.diagnostics import Diagnostic, Related, Span, names
from ipamc.model.dump import Dump, SeenEndpoint, SeenObject, SeenPod
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Line, Lock, State
from ipamc.model.plan import ShownBlock
from ipamc.review.audit.seen import live_cluster, live_objects
from ipamc.review.audit.tree import Tree
from ipamc.review.live.config import CONFIG, OPERATOR, Running
from ipamc.review.live.objects import CILIUM_NODE, NODE, Object

SHOWN = 4
"""Of so many nodes or objects in one finding, the places are shown."""
CALICO = "calico-node"


class Found(NamedTuple):
    """A finding, and the nodes (by name) and objects (by identity) that it tells of."""

    finding: Diagnostic
    about: Collection[str] = ()


Told = frozenset[str]
"""What earlier findings tell of: a later one about the same would be a consequence of them."""


class Scene(Struct, frozen=True, kw_only=True, dict=True):
    """A dump beside git and what was applied last."""

    cluster: Cluster
    lock: Lock
    dump: Dump
    git: Tree
    applied: Tree | None
    """None: it is not known."""

    @cached_property
    def inventory(self) -> Mapping[str, Node]:
        """Return the nodes of the inventory by name, planned ones too."""
        return {node.name: node for node in self.cluster.nodes}

    @cached_property
    def live(self) -> Mapping[str, Object]:
        """Return the objects of the dump by identity."""
        return live_objects(self.dump)

    @cached_property
    def shown(self) -> Mapping[str, tuple[ShownBlock, ...]]:
        """Return the blocks of each node that has some, as the mode has them; of CiliumNodes without a Node too."""
        found: dict[str, tuple[ShownBlock, ...]] = {}
        there = live_cluster(self.cluster, self.dump)
        evidence = Evidence(there, self.lock.lines)
        for node in there.nodes:
            if blocks := evidence.of(node):
                found[node.name] = blocks
        for seen in there.cilium_nodes:
            if seen.name not in self.dump.nodes_by_name and (blocks := evidence.by(seen)):
                found[seen.name] = blocks
        return found

    @cached_property
    def lines(self) -> Mapping[str, Sequence[Line]]:
        """Return the lines of the lock by node, in all states."""
        found: dict[str, list[Line]] = {}
        for line in self.lock.lines:
            found.setdefault(line.node, []).append(line)
        return found

    def held(self, node: str) -> tuple[Block, ...]:
        """Return the blocks that the lock has for a node now."""
        return tuple([line.block for line in self.lines.get(node, ()) if line.state is State.HELD])

    def is_skipped(self, node: str) -> bool:
        """Tell whether a node of the inventory has no block of ipamc's by `unmatchedNodes: skip`."""
        skips = self.cluster.unmatched_nodes == "skip"
        return skips and node in self.inventory and node not in self.lines

    @cached_property
    def unlisted(self) -> Sequence[Block]:
        """Return the ranges of `unlisted` pools: disjoint, by address."""
        if not self.cluster.operator_adopts:
            return ()
        families = [part for pool in self.cluster.pools if pool.unlisted for part in pool.families.values()]
        return outermost(cidr.block for part in families for cidr in part.ranges)

    def is_operators(self, shown: ShownBlock) -> bool:
        """Tell whether Cilium's operator chose a block: of a shared pool, or of an `unlisted` one."""
        if self.cluster.mode is Mode.MULTI_POOL:
            return not self._pools.get((shown.node, shown.block), "").endswith(f".{shown.node}")
        return index_around(self.unlisted, shown.block) is not None

    @cached_property
    def _pools(self) -> Mapping[tuple[str, Block], str]:
        """Return the pool of each block of `pools.allocated`, by node and block."""
        return {(seen.name, block): pool for seen in self.dump.cilium_nodes for block, pool in seen.allocated}

    @cached_property
    def holders(self) -> Counter[Block]:
        """Count the nodes that show a block."""
        return Counter(shown.block for blocks in self.shown.values() for shown in blocks)

    @property
    def shows_nodes(self) -> bool:
        """Whether a Node shows the blocks of its node (kubernetes mode), and not the CiliumNode."""
        return self.cluster.mode is Mode.KUBERNETES

    def at(self, node: str) -> Span:
        """Return the place in the dump where a node shows its blocks; of its other object if it has not that one."""
        one, other = self.dump.cilium_nodes_by_name.get(node), self.dump.nodes_by_name.get(node)
        if self.shows_nodes and other is not None:
            return other.at
        found = one or other
        return found.at if found else self.dump.at

    def object_of(self, node: str) -> str:
        """Return the identity of the object that gives a node its blocks."""
        return f"{NODE if self.shows_nodes else CILIUM_NODE} {node}"

    @cached_property
    def facts(self) -> Facts:
        """Return what the dump tells beside blocks."""
        return facts_of(self.dump)

    @cached_property
    def config_map(self) -> SeenObject | None:
        """Return ConfigMap cilium-config."""
        return self.dump.other("ConfigMap", CONFIG, self.cluster.namespace)

    @cached_property
    def config(self) -> Mapping[str, str] | None:
        """Return the keys of cilium-config; None where the dump does not have it."""
        if self.config_map is None:
            return None
        return texts_of(self.config_map.value.get("data"))

    @cached_property
    def deployment(self) -> SeenObject | None:
        """Return the operator's Deployment."""
        return self.dump.other("Deployment", OPERATOR, self.cluster.namespace)

    @cached_property
    def arguments(self) -> Sequence[str] | None:
        """Return the words of the operator's command line, of its Deployment or else of its Pod; None: not known."""
        if self.deployment is not None:
            return words_of(self.deployment)
        pod = next(iter(self.pods_of.get(OPERATOR, {}).values()), None)
        return pod.words if pod else None

    @cached_property
    def flags(self) -> Running:
        """Return the flags in the cluster."""
        return Running(data=self.config, arguments=self.arguments)

    @cached_property
    def pods_of(self) -> Mapping[str, Mapping[str, SeenPod]]:
        """Return the pods of Cilium, Calico and the control plane: by what they are, then by node."""
        found: dict[str, dict[str, SeenPod]] = {}
        for pod in self.dump.pods:
            if pod.app and not pod.has_ended:
                found.setdefault(pod.app, {}).setdefault(pod.node, pod)
        return found

    @cached_property
    def endpoints(self) -> Mapping[tuple[str, str], SeenEndpoint]:
        """Return the CiliumEndpoints by namespace and name."""
        return {(endpoint.namespace, endpoint.name): endpoint for endpoint in self.dump.endpoints}

    @property
    def before_cilium(self) -> bool:
        """Whether the cluster runs Calico, and nothing of Cilium yet: nothing of ours can be in it."""
        cilium = self.config_map or self.dump.cilium_nodes or AGENT in self.pods_of
        return bool(self.dump.calico_blocks) and not cilium

    def agent_ran(self, node: str) -> bool:
        """Tell whether the dump proves that Cilium's agent ran on a node."""
        seen, there = self.dump.cilium_nodes_by_name.get(node), self.dump.nodes_by_name.get(node)
        return bool(
            (seen and (seen.owner_uid or seen.internal_ips))
            or (there and there.cilium_runs)
            or node in self.pods_of.get(AGENT, {})
        )

    def related(self, node: str, label: str) -> Related:
        """Return the place of a node in the dump, with what is to be said there."""
        return Related(self.at(node), label)

    def line_of(self, node: str, *families: int) -> list[Related]:
        """Return the row of the first block that the lock has for a node now, of some families or of any.

        There is none of a block that is not in the lock's file.
        """
        held = next(
            (
                line
                for line in self.lines.get(node, ())
                if line.state is State.HELD and (not families or line.block.family in families)
            ),
            None,
        )
        if held is None or held not in self.lock.written:
            return []
        return [Related(line_at(self.lock, held), f"the lock has {held.block} for {node}")]

    def anew(self, node: str) -> str:
        """Return what to do with a drained node, so that it takes the block that the lock has for it.

        A Node that joins again has another uid than the one that is rendered.
        """
        name = self.cluster.name
        if self.shows_nodes:
            return f"kubectl delete node {node}, let it join again, ipamc import {name} --refresh, ipamc compile {name}, and apply"
        return f"kubectl delete ciliumnode {node}, ipamc ci apply {name} --repair, and restart its agent"


def texts(blocks: Iterable[Block]) -> str:
    """Return blocks for a message: few of them, in their order."""
    every = [str(block) for block in blocks]
    more = f" and {len(every) - SHOWN:,} more" if len(every) > SHOWN else ""
    return ", ".join(every[:SHOWN]) + more


def whose(shown: Iterable[ShownBlock]) -> str:
    """Return what a node shows, for a message."""
    return texts(each.block for each in shown)


def and_more(nodes: Collection[str]) -> str:
    """Return the end of a message about its first node: how many there are, and their first names."""
    return f"; {len(nodes):,} nodes: {names(nodes)}" if len(nodes) > 1 else ""
