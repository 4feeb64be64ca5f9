"""The command lines of runbooks and plans. Names reach a shell only through `shlex.quote`.

kubectl gets the context that is called as the cluster's folder, as `ipamc ci apply` does: the current context
may be another cluster's.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ipamc.model.cilium.support import READ_AT
from ipamc.model.cilium.versions import pod_cidr_annotation
from ipamc.model.cluster import Cluster, Mode, Node
from ipamc.model.lock import Line
from ipamc.render.targets.cilium_node import Allocated, allocated
from ipamc.render.targets.context import texts
from ipamc.render.targets.node import pod_cidrs
from ipamc.review.runbook.values import Check

SEEDS = "ipamc-seeds"
"""The field manager of seeds. Under the one of the tree, the seeds would take a CiliumNode's podCIDRs away."""
TRUNK = "origin/HEAD"
_DOT = r"\."
STOP_PODS = "sudo crictl pods --quiet | xargs --no-run-if-empty sudo crictl rmp --force"
"""Stops all pods of a node; its kubelet must be stopped before, or it starts them again."""


def quoted(*words: str) -> str:
    """Return words as a shell reads them back."""
    return shlex.join(words)


class Commands(Struct, frozen=True):
    """The command lines for one cluster."""

    cluster: Cluster
    folder: str = ""
    """The cluster's folder, as the user would type it; "": below `clusters/`."""
    shared: frozenset[str] = frozenset()
    """Names of the pools whose blocks Cilium's operator gives out."""

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.cluster.name

    @property
    def where(self) -> str:
        """The cluster's folder."""
        return self.folder or f"clusters/{self.cluster.name}"

    @property
    def dump_file(self) -> str:
        """The file that dumps of the live cluster are written to."""
        return f"{self.name}.live.json"

    # ipamc and git

    def ipamc(self, *words: str) -> str:
        """Return a call of ipamc."""
        return quoted("ipamc", *words)

    def lock(self, option: str, *values: str) -> str:
        """Return `ipamc lock` with one consent for several values, or one without a value."""
        given = [word for value in values for word in (option, value)] or [option]
        return self.ipamc("lock", self.name, *given)

    @property
    def apply(self) -> str:
        """What the pipeline runs after a merge."""
        return self.ipamc("ci", "apply", self.name)

    def branch(self, name: str) -> tuple[str, ...]:
        """Return how a branch is begun at the trunk."""
        return (
            "git fetch origin",
            quoted("git", "switch", "--no-track", "--force-create", name, TRUNK),
        )

    def commit(self, message: str) -> tuple[str, ...]:
        """Return how a compiled change is committed and pushed."""
        return (
            self.ipamc("compile", self.name),
            quoted("git", "add", self.where),
            f"git diff --cached --quiet || {quoted('git', 'commit', '--message', f'{self.name}: {message}')}",
            "git push --set-upstream origin HEAD",
        )

    def counted(self, nodes: Sequence[str], state: str) -> str:
        """Return how the lines of nodes in a state, `pending` or `quarantined`, are counted in the lock."""
        patterns = [word for node in nodes for word in ("-e", f'"node":"{node}","{state}":')]
        return quoted("grep", "--count", "--fixed-strings", *patterns, f"{self.where}/ipam.lock")

    @property
    def merged(self) -> tuple[str, ...]:
        """How the trunk is checked out after a merge."""
        return ("git fetch origin", f"git switch --detach {TRUNK}")

    def same_as(self, branch: str) -> Check:
        """Tell whether the trunk has this cluster as a branch has it, also after a squash."""
        return Check(command=quoted("git", "diff", "--stat", branch, "--", self.where), expect="")

    # kubectl

    def kubectl(self, *words: str) -> str:
        """Return a call of kubectl on this cluster."""
        return quoted("kubectl", f"--context={self.name}", *words)

    def of_cilium(self, *words: str) -> str:
        """Return a call of kubectl in Cilium's namespace."""
        return self.kubectl(f"--namespace={self.cluster.namespace}", *words)

    def drain(self, node: str) -> str:
        """Return how a node is drained. A budget that forbids an eviction ends it after a quarter of an hour."""
        return self.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=15m")

    def restart_agent(self, node: str) -> str:
        """Return how the agent of one node restarts."""
        return self.of_cilium(
            "delete", "pod", "--selector=k8s-app=cilium", f"--field-selector=spec.nodeName={node}"
        )

    @property
    def restart_agents(self) -> str:
        """How all agents restart, one after the other."""
        return self.of_cilium("rollout", "restart", "daemonset/cilium")

    @property
    def restart_operator(self) -> str:
        """How the operator restarts."""
        return self.of_cilium("rollout", "restart", "deployment/cilium-operator")

    def delete_pods(self, node: str) -> str:
        """Return how the pods that a drain leaves are started again, but for the agent that has just restarted."""
        others = ("--all-namespaces", "--selector=k8s-app!=cilium")
        return self.kubectl("delete", "pods", *others, f"--field-selector=spec.nodeName={node}")

    def columns(self, kind: str, names: Sequence[str], *columns: str) -> str:
        """Return how some fields of objects are printed, a line an object."""
        return self.kubectl(
            "get", kind, *names, "--no-headers", f"--output=custom-columns={','.join(columns)}"
        )

    def schedulable(self, nodes: Sequence[str], *, cordoned: bool) -> Check:
        """Tell whether nodes are cordoned, or are not."""
        word = "true" if cordoned else "<none>"
        command = self.columns("nodes", nodes, "NODE:.metadata.name", "CORDONED:.spec.unschedulable")
        return Check(command=command, expect="\n".join(f"{node} {word}" for node in nodes))

    def seed(self, node: str, lines: Sequence[Line]) -> str:
        """Return how a node's seed is applied; it is the one that is rendered."""
        pools = [
            {"pool": pool, "cidrs": list(cidrs), **dict.fromkeys(allowed, True)}
            for pool, cidrs, allowed in self._allocated(node, lines)
        ]
        document = {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumNode",
            "metadata": {"name": node},
            "spec": {"ipam": {"pools": {"allocated": pools}}},
        }
        text = json.dumps(document, separators=(",", ":"))
        return f"printf '%s\\n' {quoted(text)} | {self.seeds('-')}"

    def seeds(self, path: str) -> str:
        """Return how seeds are applied: once, by a field manager of their own, and never by force."""
        return self.kubectl("apply", "--server-side", f"--field-manager={SEEDS}", f"--filename={path}")

    # helm

    def helm(self, *words: str, version: str = "") -> str:
        """Return a call of helm on the release `cilium`; `version` is that of the chart, "" the one that is installed."""
        where = (f"--kube-context={self.name}", f"--namespace={self.cluster.namespace}")
        call = quoted("helm", *where, "upgrade", *words, "cilium", "cilium/cilium")
        if version:
            return f"{call} --version={version}"
        found = quoted("helm", *where, "list", "--filter=^cilium$", "--output=yaml")
        return f'{call} --version="$({found} | sed -n "s/.*chart: cilium-//p")"'

    @property
    def values(self) -> str:
        """The option that gives Helm what is rendered."""
        return f"--values={self.where}/rendered/cilium/helm-values.yaml"

    @property
    def read_at(self) -> str:
        """The patch level of the cluster's minor whose source ipamc was written by."""
        return READ_AT[self.cluster.cilium[1]]

    # What the cluster shows

    @property
    def dump(self) -> str:
        """How the live cluster is dumped into `dump_file`."""
        return self.ipamc("ci", "dump", self.name, "--write", self.dump_file)

    @property
    def dump_nodes(self) -> str:
        """How Nodes and CiliumNodes, which a refresh reads, are dumped into `dump_file`."""
        return self.ipamc("ci", "dump", self.name, "--for", "refresh", "--write", self.dump_file)

    @property
    def dump_calico(self) -> str:
        """How the live cluster is dumped with Calico's objects."""
        kinds = ("ippools", "ipamblocks", "blockaffinities", "ipreservations", "ipamconfigs")
        of_calico = ",".join(f"{kind}.crd.projectcalico.org" for kind in kinds)
        get = self.kubectl("get", f"nodes,pods,configmaps,{of_calico}", "--all-namespaces", "--output=json")
        return f"{get} > {quoted(self.dump_file)}"

    @property
    def refresh(self) -> str:
        """How a dump is taken over into the inventory."""
        return self.ipamc("import", self.name, "--refresh", self.dump_file)

    @property
    def audited(self) -> Check:
        """Tell whether the live cluster, as dumped, is as git says."""
        return Check(
            command=self.ipamc("audit", self.name, self.dump_file),
            expect="found 0 problems",
        )

    def shows(self, blocks: Mapping[str, Sequence[Line]]) -> Check:
        """Tell whether these nodes, and no others, show their blocks where their agents read them."""
        nodes = sorted(blocks)
        rows = (f"{node} {self._texts(node, blocks[node]) or '<none>'}" for node in nodes)
        return Check(
            command=self.columns(self.evidence, nodes, "NODE:.metadata.name", *self._fields),
            expect="\n".join(rows),
        )

    @property
    def evidence(self) -> str:
        """The kind of object that an agent reads its block from."""
        return "nodes" if self.cluster.mode is Mode.KUBERNETES else "ciliumnodes"

    def in_order(self, lines: Sequence[Line]) -> str:
        """Return blocks as a column of kubectl shows them, IPv4 first."""
        return ",".join(str(line.block) for line in sorted(lines, key=lambda line: line.block))

    @property
    def _fields(self) -> tuple[str, ...]:
        if self.cluster.mode is Mode.MULTI_POOL:
            return ("BLOCKS:.spec.ipam.pools.allocated[*].cidrs[*]",)
        if self.cluster.mode is not Mode.KUBERNETES:
            return ("BLOCKS:.spec.ipam.podCIDRs[*]",)
        if self.cluster.patch_nodes != "annotations":
            return ("BLOCKS:.spec.podCIDRs[*]",)
        keys = (
            (family, pod_cidr_annotation(self.cluster.cilium, family)) for family in self.cluster.families
        )
        return tuple(f"IPV{family}:.metadata.annotations.{key.replace('.', _DOT)}" for family, key in keys)

    def _texts(self, node: str, lines: Sequence[Line]) -> str:
        """Return blocks as the API shows them."""
        cluster, some = self.cluster, tuple(sorted(lines, key=lambda line: line.block))
        if cluster.mode is Mode.MULTI_POOL:
            return ",".join(block for _, blocks, _ in self._allocated(node, some) for block in blocks)
        if cluster.mode is Mode.KUBERNETES:
            blanks = cluster.patch_nodes == "annotations"
            return (" " if blanks else ",").join(texts(pod_cidrs(cluster, some)))
        return ",".join(str(line.block) for line in some)

    def _allocated(self, node: str, lines: Sequence[Line]) -> Allocated:
        found = next((each for each in self.cluster.nodes if each.name == node), None)
        named = found or Node(node, {}, self.cluster.at)
        return allocated(self.cluster, self.shared, named, tuple(sorted(lines, key=lambda line: line.block)))
