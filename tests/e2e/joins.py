"""A cluster whose nodes join, leave and are edited, beside what git says of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus as Status
from typing import Any

from tests.e2e.api import CILIUM_NODES, MERGE, NODES, STRATEGIC, Answer, Api, Object
from tests.e2e.objects import cilium_node
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.site import Site
from tests.e2e.test_ci_apply import apply
from tests.e2e.test_pipelines import AUTHOR, Pipeline
from tests.support.fleet import cluster, inventory, pool

POLICIES = tuple(
    f"/apis/admissionregistration.k8s.io/{version}/{kind}"
    for version, how in (("v1", "validating"), ("v1", "mutating"), ("v1beta1", "mutating"))
    for kind in (f"{how}admissionpolicybindings", f"{how}admissionpolicies")
)
MODES: dict[str, Object] = {
    "bystander": {"mode": "cluster-pool"},
    "adopt": {"mode": "cluster-pool", "ipam": {"operator": "adopt"}},
    "kubernetes": {"mode": "kubernetes"},
    "dual": {"mode": "kubernetes", "ipFamilies": ["IPv6", "IPv4"]},
    "annotated": {"mode": "kubernetes", "patchNodes": "annotations"},
    "pinned": {"mode": "multi-pool", "ipam": {"pinning": "node"}},
    "shared": {"mode": "multi-pool", "ipam": {"pinning": "pool"}},
}
CREATED: Object = {"mode": "multi-pool", "ipam": {"pinning": "none", "autoCreate": ["default"]}}
"""Another one, in which the operator makes its pool by itself."""
FOLLOWING = {"bystander", "kubernetes", "annotated"}
"""Modes in which a pool follows the nodes' network."""
ANNOTATION = "network.cilium.io/ipv4-pod-cidr"
ANNOTATIONS = [
    key.format(family)
    for key in ("network.cilium.io/ipv{}-pod-cidr", "io.cilium.network.ipv{}-pod-cidr")
    for family in (4, 6)
]
LISTED = ["worker-1", "worker-2", "worker-3", "worker-4"]
STRANGER = "stranger"
FOLLOWER, NAMED = "follower", "named"
"""Nodes in the network that a pool follows: nobody listed the first one."""
FOLLOWS = {"cidrs": ["10.64.0.0/18"], "blockSize": 26, "follows": "172.30.0.0/24"}


def asked(api: Api) -> Object:
    """Return what a Cluster asks for on this kube-apiserver."""
    assign = {"assign": api.minor >= (1, 34), "assignBeta": (1, 34) <= api.minor < (1, 36)}
    return {**assign, "enforce": "deny"}


@dataclass
class Play:
    """A cluster whose nodes join, leave and are edited; and what git says of it."""

    servers: Operator
    mode: str
    pipeline: Pipeline
    joined: set[str] = field(default_factory=set)
    places: dict[str, int] = field(default_factory=lambda: {FOLLOWER: 77, NAMED: 5})
    """Which address of the network a node has that a pool follows."""

    @property
    def api(self) -> Api:
        return self.servers.api

    @property
    def site(self) -> Site:
        return self.pipeline.site

    @property
    def names(self) -> list[str]:
        """Which nodes join and leave."""
        follow = self.mode in FOLLOWING and self.api.minor >= (1, 34)
        return [*LISTED, STRANGER, *(self.places if follow else ())]

    @property
    def of_nodes(self) -> bool:
        """Tell whether Nodes carry the blocks."""
        return self.mode in {"kubernetes", "dual", "annotated"}

    def apply(self, *options: str, code: int = 0, kubectl: str = "kubectl") -> str:
        """Commit what was compiled, and apply it as a job does."""
        self.pipeline.git("add", "-A")
        self.pipeline.git(*AUTHOR, "commit", "-q", "--allow-empty", "-m", "more")
        return apply(self.pipeline, *options, code=code, kubectl=kubectl)

    @property
    def commit(self) -> str:
        """What git's HEAD is."""
        words = ["git", "rev-parse", "HEAD"]
        return subprocess.run(
            words, cwd=self.site.work, check=True, capture_output=True, text=True
        ).stdout.strip()

    def join(self, name: str) -> Answer:
        """Let a kubelet register a Node, then an agent its CiliumNode; return the answer to the one that carries the blocks."""
        address = f"172.30.0.{self.places[name]}" if name in self.places else "172.31.0.9"
        status = {"addresses": [{"type": "InternalIP", "address": address}]}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}
        of_node = self.api.ask("POST", NODES, node, kubelet=name)
        if of_node.code != Status.CREATED:
            return of_node
        self.joined.add(name)
        blank = cilium_node(name)
        blank["spec"] = {"addresses": [{"type": "InternalIP", "ip": address}]}
        answer = self.patient("POST", CILIUM_NODES, blank)
        return of_node if self.of_nodes else answer

    def patient(self, method: str, path: str, body: Object, content: str = "application/json") -> Answer:
        """Send a request as agents do, again and again: for seconds after its start a kube-apiserver does not know CiliumNodes for its policies."""
        answer = self.api.ask(method, path, body, content)

        def known() -> bool:
            nonlocal answer
            if answer.code == Status.SERVICE_UNAVAILABLE:
                answer = self.api.ask(method, path, body, content)
            return answer.code != Status.SERVICE_UNAVAILABLE

        until(known, "the kube-apiserver knows CiliumNodes")
        return answer

    def leave(self, name: str) -> None:
        """Let a node leave, with its CiliumNode."""
        self.api.delete(f"{CILIUM_NODES}/{name}", f"{NODES}/{name}")
        self.joined.discard(name)

    def blocks(self, name: str) -> list[str]:
        """Return the blocks that a node has, in the order in which they are carried."""
        path = NODES if self.of_nodes else CILIUM_NODES
        found = self.api.ask("GET", f"{path}/{name}").body
        if self.mode == "annotated":
            notes = found.get("metadata", {}).get("annotations", {})
            return [notes[ANNOTATION]] if ANNOTATION in notes else []
        spec = found.get("spec", {})
        if self.of_nodes:
            return list(spec.get("podCIDRs", ()))
        ipam = spec.get("ipam", {})
        pools = ipam.get("pools", {}).get("allocated", ())
        return [*ipam.get("podCIDRs", ()), *(cidr for each in pools for cidr in each["cidrs"])]

    def objects(self) -> Iterator[Object]:
        """Yield the Nodes and CiliumNodes of the cluster."""
        for path, head in ((NODES, ("v1", "Node")), (CILIUM_NODES, ("cilium.io/v2", "CiliumNode"))):
            for each in self.api.items(path).values():
                yield {**each, "apiVersion": head[0], "kind": head[1]}

    def given(self, name: str) -> list[str]:
        """Return the blocks that git gives a node."""
        if name in self.places:
            return [f"10.64.{self.places[name] // 4}.{self.places[name] % 4 * 64}/26"]
        found = [block for _, block in self.site.lock().get(name, ())]
        return found[::-1] if self.mode == "dual" else found

    def write(self, name: str, block: str) -> Answer:
        """Let a hand write another block."""
        if self.mode == "annotated":
            return self._merge(NODES, name, {"metadata": {"annotations": {ANNOTATION: block}}})
        if self.of_nodes:
            return self._merge(NODES, name, {"spec": {"podCIDR": block, "podCIDRs": [block]}})
        if self.mode in {"pinned", "shared"}:
            entry = {"pool": f"default.{name}", "cidrs": [block]}
            return self._merge(CILIUM_NODES, name, {"spec": {"ipam": {"pools": {"allocated": [entry]}}}})
        return self._merge(CILIUM_NODES, name, {"spec": {"ipam": {"podCIDRs": [block]}}})

    def touch(self, name: str, value: str) -> Answer:
        """Let somebody write what no policy is about."""
        path = NODES if self.of_nodes else CILIUM_NODES
        return self._merge(path, name, {"metadata": {"labels": {"a": value}}})

    def ordinary(self, name: str, value: str) -> None:
        """Write what no policy is about, as people do, and kubelets, agents and the operator all the time."""
        beat = {"status": {"conditions": [{"type": "Ready", "status": "True", "message": value}]}}
        for answer in (
            self.touch(name, value),
            self.api.ask("PATCH", f"{NODES}/{name}/status", beat, STRATEGIC, kubelet=name),
            self._merge(CILIUM_NODES, name, {"spec": {"encryption": {"key": 3}}}),
            self._merge(CILIUM_NODES, f"{name}/status", {"status": {"ipam": {"operator-status": {}}}}),
        ):
            assert answer.code == Status.OK, answer.message

    def _merge(self, path: str, name: str, change: Object) -> Answer:
        return self.patient("PATCH", f"{path}/{name}", change, MERGE)

    def as_git_says(self) -> None:
        """No node has a block that git does not give it, nor two the same; each but a stranger has its own."""
        every: list[str] = []
        for name in sorted(self.joined):
            has = self.blocks(name)
            every += has
            if name != STRANGER and self.api.minor >= (1, 34):
                assert has == self.given(name), (name, has, self.given(name))
            else:
                assert set(has) <= {*self.given(name), *self.unlisted(has)}, (name, has)
        assert len(every) == len(set(every))

    def unlisted(self, blocks: list[str]) -> set[str]:
        """Return the blocks that the operator may give."""
        return {block for block in blocks if self.mode == "adopt" and block.startswith("10.9.")}


def documents(api: Api, mode: str, name: str = "fleet", second: int = 1) -> list[Object]:
    """Make a cluster of which two nodes are planned, with policies."""
    spec: dict[str, Any] = {**MODES, "created": CREATED}[mode]
    version = "{}.{}".format(*api.minor)
    found = cluster(kubernetes={"version": version}, admission=asked(api), **spec)
    found["metadata"]["name"] = name
    ranges: dict[str, Any] = {"ipv4": {"cidrs": [f"10.{second}.0.0/21"], "blockSize": 27}}
    if mode == "dual":
        ranges["ipv6"] = {"cidrs": [f"fd00:{second}::/108"], "blockSize": 120}
    spare = pool("spare", ipv4={"cidrs": ["10.9.0.0/24"], "blockSize": 27}, unlisted=True)
    nodes: list[Object] = [
        {
            "name": each,
            **({"planned": True} if api.minor >= (1, 34) or mode not in {"kubernetes", "dual"} else {}),
        }
        for each in LISTED
    ]
    some = []
    if mode in FOLLOWING and api.minor >= (1, 34) and name == "fleet":
        some = [pool("by-address", ipv4=FOLLOWS)]
        nodes += [{"name": NAMED, "internalIPs": ["172.30.0.5"], "planned": True}]
    return [found, pool("default", **ranges), *some, *([spare] if mode == "adopt" else []), inventory(nodes)]


def claims(api: Api) -> dict[str, set[str]]:
    """Return what each node claims, in all fields that Cilium reads."""
    found: dict[str, set[str]] = {}
    for name, node in api.items(NODES).items():
        notes = node["metadata"].get("annotations") or {}
        found[name] = {
            *node["spec"].get("podCIDRs", ()),
            *(notes[key] for key in ANNOTATIONS if notes.get(key)),
        }
    for name, node in api.items(CILIUM_NODES).items():
        ipam = node.get("spec", {}).get("ipam") or {}
        entries = (ipam.get("pools") or {}).get("allocated") or ()
        some = {*ipam.get("podCIDRs", ()), *(ipam.get("pool") or ())}
        found.setdefault(name, set()).update(some, *(each.get("cidrs", ()) for each in entries))
    return found
