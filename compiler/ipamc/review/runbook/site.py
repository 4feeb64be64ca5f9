"""A cluster for the templates of runbooks: its folder, its seeds, and where agents read their blocks.

kubectl gets the context of the cluster, as in `ipamc apply`: the current context may be another cluster's.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain

from msgspec import Struct

from ipamc.model.cilium.support import READ_AT, Capability
from ipamc.model.cilium.versions import can, pod_cidr_annotation
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.limits import NODES_IN_CHECK
from ipamc.model.lock import Line
from ipamc.model.node import Node
from ipamc.model.plan import Plan, pod_cidrs
from ipamc.render.targets.cilium_node import Allocated, allocated
from ipamc.render.targets.context import texts
from ipamc.review.runbook.steps import Runbook, runbook

WELL_KNOWN = {
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
}
"""Labels that every kubelet sets by itself."""


Shown = tuple[str, Mapping[str, str]]
"""A pool, and the blocks that each node shows of it, as kubectl prints them."""


class Site(Struct, frozen=True, dict=True):
    """One cluster. Its properties are for templates."""

    plan: Plan
    templates: Mapping[str, str] = {}  # the texts of `templates/runbooks/` by file name
    folder: str = ""  # the cluster's folder, as the user would type it; "": below `clusters/`
    loops: bool = False  # whether steps of many nodes have loops, for Markdown

    @property
    def cluster(self) -> Cluster:
        """The cluster of the plan."""
        return self.plan.cluster

    def runbook(self, change: str, values: Mapping[str, object], template: str = "") -> Runbook:
        """Return the runbook of a change. `template` is its file without suffix, if it has another name."""
        common = {"cluster": self.cluster, "site": self, "FEW": NODES_IN_CHECK}
        name, every = template or change, {**common, **values}
        return runbook(self.templates, name, self.cluster.name, change, every, loops=self.loops)

    @property
    def where(self) -> str:
        """The cluster's folder."""
        return self.folder or f"clusters/{self.cluster.name}"

    @property
    def live(self) -> str:
        """The file for dumps of the live cluster."""
        return f"{self.cluster.name}.live.json"

    @property
    def release(self) -> str:
        """The patch level of the cluster's minor whose source ipamc is based on."""
        return READ_AT[self.cluster.cilium[1]]

    def counts_drift(self, minor: int = 0) -> bool:
        """Return whether agents of a minor, by default the cluster's, count flags that they lack."""
        return can((1, minor) if minor else self.cluster.cilium, Capability.DRIFT_METRIC)

    @property
    def renders_nodes(self) -> bool:
        """Whether Nodes are rendered, with their uids."""
        return self.cluster.patch_nodes != "none"

    @property
    def joins_again(self) -> bool:
        """Whether a node that gets another block is deleted and joins again."""
        return self.cluster.patch_nodes == "podCIDRs"

    @property
    def agents_read_nodes(self) -> bool:
        """Whether agents read `podCIDRs` of Nodes, so that the CiliumNode needs no step."""
        return self.cluster.mode is Mode.KUBERNETES and self.joins_again

    @property
    def evidence(self) -> str:
        """The kind of object that an agent reads its block from."""
        return "nodes" if self.cluster.mode is Mode.KUBERNETES else "ciliumnodes"

    @property
    def evidence_columns(self) -> str:
        """The columns of kubectl that show the blocks of `evidence`."""
        cluster = self.cluster
        if cluster.mode is Mode.MULTI_POOL:
            columns = ["BLOCKS:.spec.ipam.pools.allocated[*].cidrs[*]"]
        elif cluster.mode is not Mode.KUBERNETES:
            columns = ["BLOCKS:.spec.ipam.podCIDRs[*]"]
        elif cluster.patch_nodes != "annotations":
            columns = ["BLOCKS:.spec.podCIDRs[*]"]
        else:
            keys = {family: pod_cidr_annotation(cluster.cilium, family) for family in cluster.families}
            escaped = {family: key.replace(".", r"\.") for family, key in keys.items()}
            columns = [f"IPV{family}:.metadata.annotations.{key}" for family, key in escaped.items()]
        return ",".join(("NODE:.metadata.name", *columns))

    def shown(self, nodes: Sequence[str], blocks: Mapping[str, Iterable[Line]]) -> list[Shown]:
        """Return what `evidence` shows of drained nodes with these lines: by pool, or "" for all pools."""
        some = {node: in_order(blocks[node]) for node in nodes}
        if self.cluster.mode is Mode.MULTI_POOL:
            return self._shown_of_pools(some)
        return [("", {node: self._text(lines) for node, lines in some.items()})]

    def _shown_of_pools(self, some: Mapping[str, tuple[Line, ...]]) -> list[Shown]:
        """Return what CiliumNodes show for certain: blocks of shared pools come and go with pods.
        An agent without pods keeps the first one of the pool that it asks (`releaseExcessCIDRs` in Cilium's
        pkg/ipam/multipool.go).
        """
        own, whole, theirs = self.cluster.own_pools, True, self.plan.operator_pools
        found: dict[str, dict[str, str]] = defaultdict(dict)
        texts_of = {}
        for node, lines in some.items():
            parts = {name: cidrs for name, cidrs, _ in self._allocated(node, lines)}
            asked = parts.keys() - theirs if own else {self._defaults.get(node, "default")}
            one = len({line.block.family for line in lines}) == len(lines)
            whole = whole and parts.keys() == asked and (own or one)
            texts_of[node] = _printed(parts.values())
            for name in sorted(parts.keys() & asked):
                found[name.removesuffix(f".{node}")][node] = ",".join(parts[name][: None if own else 1])
        return [("", texts_of)] if whole else sorted(found.items())

    @cached_property
    def _defaults(self) -> Mapping[str, str]:
        """The pools that agents ask for addresses, by node, where these are not called "default"."""
        if self.cluster.pinning != "pool":
            return {}
        return {want.node.name: want.first.name for want in self.plan.wants if want.first}

    def allocated(self, node: str, lines: Iterable[Line]) -> str:
        """Return what kubectl prints of `pools.allocated` with these lines: its CIDRs."""
        return _printed(cidrs for _, cidrs, _ in self._allocated(node, in_order(lines)))

    def _text(self, lines: tuple[Line, ...]) -> str:
        cluster = self.cluster
        kubernetes = cluster.mode is Mode.KUBERNETES
        blocks = texts(pod_cidrs(cluster, lines) if kubernetes else (line.block for line in lines))
        of_annotations = kubernetes and cluster.patch_nodes == "annotations"
        return (" " if of_annotations else ",").join(blocks) or "<none>"

    def seed(self, node: str, lines: Iterable[Line]) -> str:
        """Return a node's seed (its first CiliumNode) as JSON, as it is rendered."""
        pools = [
            {"pool": pool, "cidrs": list(cidrs), **dict.fromkeys(allowed, True)}
            for pool, cidrs, allowed in self._allocated(node, in_order(lines))
        ]
        document = {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumNode",
            "metadata": {"name": node},
            "spec": {"ipam": {"pools": {"allocated": pools}}},
        }
        return json.dumps(document, separators=(",", ":"))

    def _allocated(self, node: str, lines: tuple[Line, ...]) -> Allocated:
        known = self._nodes.get(node) or Node(node, {}, self.cluster.at)
        return allocated(self.cluster, self.plan.operator_pools, known, lines)

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self.cluster.nodes}

    def labels(self, nodes: Sequence[str], olds: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the labels that `olds` have in git, as `key=value`, but for those of kubelets, by node."""
        known = [self._nodes[old].labels if old in self._nodes else {} for old in olds]
        some = [
            sorted((key, value) for key, value in each.items() if key not in WELL_KNOWN) for each in known
        ]
        found = zip(nodes, some, strict=True)
        return {node: tuple(f"{key}={value}" for key, value in pairs) for node, pairs in found if pairs}


def _printed(parts: Iterable[Sequence[str]]) -> str:
    return ",".join(chain.from_iterable(parts)) or "<none>"


def in_order(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Return lines by block, IPv4 first."""
    return tuple(sorted(lines, key=lambda line: line.block))
