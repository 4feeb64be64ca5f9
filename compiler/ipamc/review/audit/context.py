"""The values that all rules of an audit share: dump, git, last apply, and what is derived from them.

A rule yields findings, with the facts that each proves of objects. A finding hides a later one only by a row
of `EXPLAINS`, about the same object, and within the blocks that it names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ipamc.check import drift
from ipamc.check.held_blocks import UNTIL_MOVED, illegal
from ipamc.lock.file import line_at
from ipamc.model.address_sets import index_around, outermost
from ipamc.model.admission import POLICIES
from ipamc.model.cidr import Block
from ipamc.model.cilium.operator_list import AGENT, CONFIG
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import At, Diagnostic, Related, error, note
from ipamc.model.dump import Dump, SeenEndpoint, SeenObject, SeenPod, Table
from ipamc.model.evidence import Evidence
from ipamc.model.follows import followed
from ipamc.model.limits import MOST_PLACES, YOUNG_POD
from ipamc.model.lock import Line, Lock, State
from ipamc.model.node import Node
from ipamc.model.ownership import Ownership, OwnershipRules
from ipamc.model.plan import ShownBlock
from ipamc.read.dump.kinds import RenderedValue
from ipamc.read.dump.programs import operator_of, texts_of
from ipamc.read.rendered import Rendered, identity
from ipamc.review.live.cilium import Running
from ipamc.review.live.objects import CILIUM_NODE, NODE
from ipamc.review.shown_pools import operator_pools

CALICO, POD, ENDPOINT = "calico-node", "Pod", "CiliumEndpoint"

Make = Callable[..., Diagnostic]
SEVERITY: Mapping[Ownership, Make] = {
    **drift.SEVERITY,
    Ownership.PENDING: note,  # a compile that sees this makes it held
    Ownership.ADDRESS: note,  # the lock adopts it
    Ownership.OPERATORS: note,  # as above
}
"""The severity of a block that a node shows and does not hold, the worst first, as in a compile."""


class Fact(StrEnum):
    """A fact about an object that a finding proves."""

    NO_MACHINE = "no kubelet and no agent runs for the Node"
    GONE = "there is no such Node"
    CREATED_AGAIN = "the Node was deleted and created again"
    NOT_LISTED = "the inventory does not have the node"
    NO_BLOCK = "the node waits for a block of a family"
    OTHER_BLOCKS = "the object has other blocks than git"
    APART = "Node and CiliumNode have different blocks"
    MISSING = "the object is not in the cluster"
    FORMER_AGENT = "the agent runs with a former block of the node"


class Cause(NamedTuple):
    """A fact that a finding proves."""

    about: str  # the identity of the object
    fact: Fact
    blocks: tuple[Block, ...] = ()
    """The blocks that the object has and those that it should have: consequences are about these alone."""


EXPLAINS: Mapping[Fact, Mapping[str, str]] = {
    Fact.NO_MACHINE: {
        "IPC0921": "an apply created the Node, with a uid of its own",
        "IPC0922": "no agent waits",
        "IPC0923": "no pod runs there",
        "IPC0924": "nobody listed it",
        "IPC0943": "no agent needs the CiliumNode",
    },
    Fact.GONE: {
        "IPC0926": "the CiliumNode is what is left of it",
        "IPC0943": "the CiliumNode was collected with its Node",
        "IPC0944": "the CiliumNode is what is left of it",
    },
    Fact.CREATED_AGAIN: {
        "IPC0941": "a new Node has no block, and its agent made a new CiliumNode without one",
        "IPC0942": "the same",
        "IPC0943": "the CiliumNode was collected with the former Node",
    },
    Fact.NOT_LISTED: {"IPC0944": "nothing is rendered for the node any more"},
    Fact.NO_BLOCK: {
        "IPC0922": "said already",
        "IPC0941": "what git has is missing, and nothing else is there",
        "IPC0942": "the same",
        "IPC0952": "the agent has not started yet: it waits",
        "IPC0960": "the pods have addresses of the block that was taken away",
    },
    Fact.OTHER_BLOCKS: {
        "IPC0911": "said already, with the block",
        "IPC0912": "said already, with the block",
        "IPC0913": "the pool has not the blocks of git, or the node another one's",
        "IPC0941": "said already, with the block",
        "IPC0942": "said already, with the block",
        "IPC0950": "one of the two objects changed",
        "IPC0951": "one of the two objects changed",
        "IPC0952": "the agent runs with the block of git: the object changed after its start",
        "IPC0954": "said already, with the block: the agent announces what its object has",
        "IPC0960": "the pods have addresses of the block of git: the object changed after their start",
    },
    Fact.APART: {
        "IPC0941": "said already, with both blocks",
        "IPC0942": "said already, with both blocks",
        "IPC0952": "the agent runs with the block of the Node",
    },
    Fact.MISSING: {"IPC0913": "the node has a block that git has in that pool"},
    Fact.FORMER_AGENT: {"IPC0960": "an agent that did not restart gives pods addresses of that block"},
}
"""By fact, the codes of findings that follow from it, and why."""


class Suppressed:
    """The facts that earlier findings proved, by object."""

    def __init__(self) -> None:
        self._causes: dict[str, list[Cause]] = {}

    def add(self, causes: Iterable[Cause]) -> None:
        """Record the facts that a finding proves."""
        for cause in causes:
            self._causes.setdefault(cause.about, []).append(cause)

    def explains(self, code: str, about: str, blocks: Iterable[Block] = ()) -> bool:
        """Return whether a finding about some blocks of an object follows from earlier findings."""
        causes = [cause for cause in self._causes.get(about, ()) if code in EXPLAINS[cause.fact]]
        if not causes:
            return False
        known = outermost(block for cause in causes for block in cause.blocks)
        return all(index_around(known, block) is not None for block in blocks)


class Result(NamedTuple):
    """A finding, and the facts that it proves."""

    finding: Diagnostic
    causes: Collection[Cause] = ()


class Context(Struct, frozen=True, kw_only=True, dict=True):
    """A dump, the cluster in git, and the last apply."""

    cluster: Cluster
    lock: Lock
    dump: Dump
    git: Rendered
    applied: Rendered | None  # None: it is not known
    alone: bool = False
    """There is no git: the dump is all that is known."""
    routers: Sequence[Table] = ()
    """The tables of routers, each with another path."""
    spaces: Mapping[str, bytes] = {}  # the indexes of address spaces beside the cluster, by path

    @cached_property
    def inventory(self) -> Mapping[str, Node]:
        """The nodes of the inventory by name, planned ones too."""
        return {node.name: node for node in self.cluster.nodes}

    @cached_property
    def live(self) -> Mapping[str, RenderedValue]:
        """The objects of the dump that ipamc may render, by identity."""
        dump = self.dump
        return {
            **{f"{NODE} {node.name}": node for node in dump.nodes},
            **{f"{CILIUM_NODE} {seen.name}": seen for seen in dump.cilium_nodes},
            **{identity(pool.value): pool for pool in dump.pools},
            **{identity(config.value): config for config in dump.node_configs},
            **{identity(policy.value): policy for policy in dump.of_kind(*POLICIES)},
        }

    @cached_property
    def there(self) -> Cluster:
        """The cluster with the nodes of the dump in place of the inventory."""
        return replace(self.cluster, nodes=self.dump.nodes, cilium_nodes=self.dump.cilium_nodes)

    @cached_property
    def shown(self) -> Mapping[str, Sequence[ShownBlock]]:
        """The blocks that each node shows, by the cluster's mode, including CiliumNodes without a Node."""
        found: dict[str, list[ShownBlock]] = {}
        for shown in Evidence(self.there, self.lock.lines).every():
            found.setdefault(shown.node, []).append(shown)
        return found

    def blocks_of(self, node: str) -> list[Block]:
        """Return the blocks that a node shows."""
        return [each.block for each in self.shown.get(node, ())]

    def lines(self, node: str) -> Sequence[Line]:
        """Return the lines of a node in the lock, in every state."""
        return self.ownership.lines.get(node, ())

    def held_lines(self, node: str) -> list[Line]:
        """Return the lines of the blocks that the lock gives a node now."""
        return [line for line in self.lines(node) if line.state is State.HELD]

    def held(self, node: str) -> tuple[Block, ...]:
        """Return the blocks that the lock gives a node now."""
        return tuple([line.block for line in self.held_lines(node)])

    def is_skipped(self, node: str) -> bool:
        """Return whether a node of the inventory gets no block, because of `unmatchedNodes: skip`."""
        return self.cluster.unmatched_nodes == "skip" and node in self.inventory and not self.lines(node)

    @cached_property
    def ownership(self) -> OwnershipRules:
        """The rules that decide who owns a block, applied to the lock."""
        by_address = {(each.block, each.node.name) for each in followed(self.there)}
        allocates = operator_pools(self.cluster)
        return OwnershipRules(self.cluster, self.lock.lines, allocates, by_address=by_address)

    def verdict(self, node: str) -> Make | None:
        """Return the severity of the worst block that a node shows and does not hold; None without one."""
        shown = self.shown.get(node, ())
        strays = list(self.ownership.strays(shown))
        owners = {owner for _, owner in strays} | ({*map(self.ownership.of, shown)} & {Ownership.PENDING})
        several = len(shown) > len({each.block.family for each in shown})
        old_and_new = owners == {Ownership.PENDING} and self.cluster.mode.one_block and several
        if old_and_new or any(self.refuses(each.block) for each, _ in strays):
            return error
        return next((make for owner, make in SEVERITY.items() if owner in owners), None)

    def refuses(self, block: Block) -> bool:
        """Return whether a compile would refuse a node with this block, such as one outside of all pools."""
        fault = illegal(self.cluster, block, self.ownership.ranges.pool_of(block))
        return fault is not None and fault.rule in UNTIL_MOVED

    @cached_property
    def holders(self) -> Counter[Block]:
        """The number of nodes that show a block."""
        return Counter(shown.block for blocks in self.shown.values() for shown in blocks)

    @property
    def shows_nodes(self) -> bool:
        """Whether Nodes, not CiliumNodes, show the nodes' blocks (kubernetes mode)."""
        return self.cluster.mode is Mode.KUBERNETES

    def at(self, node: str) -> At:
        """Return the place of the object with a node's blocks, else its other object, else the dump."""
        seen, there = self.dump.cilium_nodes_by_name.get(node), self.dump.nodes_by_name.get(node)
        return ((there or seen if self.shows_nodes else seen or there) or self.dump).at

    def object_of(self, node: str) -> str:
        """Return the identity of the object that gives a node its blocks."""
        return f"{NODE if self.shows_nodes else CILIUM_NODE} {node}"

    def source(self, node: str) -> str:
        """Return the identity of the object that shows a node's blocks; a Node without podCIDRs is none."""
        there = self.dump.nodes_by_name.get(node)
        return f"{NODE if self.shows_nodes and there and there.pod_cidrs else CILIUM_NODE} {node}"

    @property
    def knows_blocks(self) -> bool:
        """Whether the dump has the kind that shows blocks: then a node without an object has none."""
        of_nodes = self.shows_nodes and self.cluster.patch_nodes != "annotations"
        return CILIUM_NODE in self.dump.kinds or (of_nodes and not self.mode_unknown)

    @property
    def mode_unknown(self) -> bool:
        """Whether nothing in a dump without a cluster of git shows the mode: blocks may be in CiliumNodes."""
        shown = self.config is not None or CILIUM_NODE in self.dump.kinds
        return self.alone and not shown and not any(node.pod_cidrs for node in self.dump.nodes)

    @property
    def has_policies(self) -> bool:
        """Whether the dump has any admission policies or bindings."""
        return bool(self.dump.kinds & POLICIES.keys())

    def other_blocks(self, node: str, blocks: Iterable[Block]) -> Cause:
        """Return the fact that a node has some blocks instead of those that the lock gives it."""
        return Cause(self.source(node), Fact.OTHER_BLOCKS, (*blocks, *self.held(node)))

    @cached_property
    def config_map(self) -> SeenObject | None:
        """ConfigMap cilium-config."""
        return self.dump.other("ConfigMap", CONFIG, self.cluster.namespace)

    @cached_property
    def config(self) -> Mapping[str, str] | None:
        """The keys of cilium-config; None if the dump does not have it."""
        return None if self.config_map is None else texts_of(self.config_map.value.get("data"))

    @property
    def config_at(self) -> At:
        """The place of cilium-config, or else of the dump."""
        return self.config_map.at if self.config_map else self.dump.at

    @cached_property
    def operator(self) -> tuple[SeenPod | SeenObject | None, Sequence[str]]:
        """The operator's Deployment, or else a Pod of it, and its arguments."""
        return operator_of(self.dump, self.cluster.namespace)

    @cached_property
    def flags(self) -> Running:
        """The flags in the cluster."""
        operator, words = self.operator
        return Running(data=self.config, arguments=words if operator else None)

    @cached_property
    def pods_of(self) -> Mapping[str, Mapping[str, SeenPod]]:
        """The pods of Cilium, Calico and the control plane, by program, then by node."""
        by_app: dict[str, dict[str, SeenPod]] = {}
        for pod in self.dump.pods:
            if pod.app and not pod.has_ended:
                by_app.setdefault(pod.app, {}).setdefault(pod.node, pod)
        return by_app

    @cached_property
    def endpoints(self) -> Mapping[tuple[str, str], SeenEndpoint]:
        """The CiliumEndpoints by namespace and name."""
        return {(endpoint.namespace, endpoint.name): endpoint for endpoint in self.dump.endpoints}

    @cached_property
    def _young(self) -> str:
        """The time from which on a pod may be newer than other objects of the dump; "" if unknown."""
        return self.dump.before(YOUNG_POD)

    def is_young(self, pod: SeenPod) -> bool:
        """Return whether a pod may have started while the kinds of the dump were listed."""
        return bool(self._young) and pod.started > self._young

    def runs_agent(self, node: str) -> bool:
        """Return whether an agent runs on a node, and did before the kinds of the dump were listed."""
        pod = self.pods_of.get(AGENT, {}).get(node)
        return pod is not None and pod.phase == "Running" and not pod.deleting and not self.is_young(pod)

    def agent_ran(self, node: str) -> bool:
        """Return whether the dump proves that Cilium's agent ran on a node."""
        seen, there = self.dump.cilium_nodes_by_name.get(node), self.dump.nodes_by_name.get(node)
        wrote = (seen and (seen.owner_uid or seen.internal_ips)) or (there and there.agent_ran)
        return bool(wrote) or node in self.pods_of.get(AGENT, {})

    def waits_since_import(self, node: str) -> bool:
        """Return whether a node still waits for its first block, as it did when the cluster was imported.
        The node is not running, nothing was applied yet, and neither the CiliumNodes of the input nor the
        dump show a block of it: the block in git was never applied, and nobody removed it.
        """
        there, inputs = self.dump.nodes_by_name.get(node), self.cluster.cilium_nodes_by_name
        if self.alone or self.applied is not None or there is None or there.running or node in self.shown:
            return False
        return bool(inputs) and not (node in inputs and inputs[node].blocks)

    def related(self, node: str, label: str) -> Related:
        """Return the place of a node in the dump as a related place with a label."""
        return Related(self.at(node), label)

    def line_of(self, node: str, *families: int) -> list[Related]:
        """Return the row of a node's first held block in the lock, of any or some families.
        A block that is not in the lock's file has no row.
        """
        held = (line for line in self.held_lines(node) if not families or line.block.family in families)
        rows = self.written(islice(held, 1))
        return [Related(line_at(self.lock, row), f"the lock has {row.block} for {node}") for row in rows]

    def written(self, lines: Iterable[Line]) -> list[Line]:
        """Return the lines that are in the lock's file, and so have a row."""
        return [line for line in lines if line in self.lock.written]

    def lines_of(self, nodes: Sequence[str]) -> list[Related]:
        """Return the rows of the first nodes of a finding."""
        return [related for node in nodes[:MOST_PLACES] for related in self.line_of(node)]

    @property
    def apply(self) -> str:
        """The command that applies what git has."""
        return f"ipamc apply {self.cluster.name}"

    @property
    def refresh(self) -> str:
        """The commands that update git from the cluster."""
        return f"ipamc import {self.cluster.name} --refresh dump.json, then ipamc compile {self.cluster.name}"

    @property
    def refresh_and_apply(self) -> str:
        """The commands that update git from the cluster, and apply what nodes lack."""
        return f"{self.refresh}, and apply"

    def rejoin(self, node: str) -> str:
        """Return the commands that make a drained node take the block that the lock gives it.
        A Node that joins again has another uid than the rendered one.
        """
        if self.alone:
            join = f"kubectl delete node {node}, and let it join again"
            return join if self.shows_nodes else f"kubectl delete ciliumnode {node}, and restart its agent"
        if self.shows_nodes:
            return f"kubectl delete node {node}, let it join again, {self.refresh_and_apply}"
        return f"kubectl delete ciliumnode {node}, {self.apply} --repair, and restart its agent"
