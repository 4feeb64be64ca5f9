"""A running cluster made of what was compiled for it: Nodes, CiliumNodes, pools, flags, agents, pods. Tests change it, and audit it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

import yaml

from ipamc.lock.file import load
from ipamc.model.admission import POLICIES
from ipamc.model.cilium.versions import pod_cidr_annotation
from ipamc.model.cilium.versions import text as version_text
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic, Located, Severity
from ipamc.model.dump import Table
from ipamc.model.lock import Consent
from ipamc.pipeline import Compilation
from ipamc.read.dump.read import read_dump
from ipamc.read.locate import locate
from ipamc.read.rendered import identity
from ipamc.review.audit import audit, refused
from ipamc.review.audit.context import Context
from ipamc.review.live.objects import naming, rows_of
from ipamc.workspace.rendered import Manifests
from tests.support import dumps
from tests.support.dumps import Object

DUMP = "dump.json"
NEWEST = "2026-11-22T12:00:00Z"


def loaded(text: str) -> list[Object]:
    """Read the documents of a YAML stream."""
    return [each for each in yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if each]


@dataclass
class Living:
    """A cluster in git, as it was applied last, and as it runs."""

    git: Compilation
    applied: Mapping[str, str] | None
    """The rendered files; None: nobody knows."""
    objects: dict[str, Object] = field(default_factory=dict)
    """What runs, by identity."""
    routers: list[Table] = field(default_factory=list)
    """What routers printed."""

    @classmethod
    def of(cls, compilation: Compilation) -> Living:
        """Let a cluster run as it was compiled."""
        return cls(compilation, compilation.files, {identity(item): item for item in run(compilation)})

    def copy(self) -> Living:
        """Return another one to change."""
        return Living(self.git, self.applied, copy.deepcopy(self.objects), [*self.routers])

    def __getitem__(self, name: str) -> Object:
        """Return an object by its identity."""
        return self.objects[name]

    def add(self, *objects: Object) -> Any:
        """Create objects, or put them in place of others."""
        self.objects.update({identity(item): item for item in objects})

    def remove(self, *names: str) -> None:
        """Delete objects."""
        for name in names:
            del self.objects[name]

    def without(self, *kinds: str) -> Any:
        """Leave kinds out of the dump."""
        self.objects = {name: item for name, item in self.objects.items() if item["kind"] not in kinds}

    def text(self) -> str:
        """Return the dump."""
        return dumps.kubectl(*self.objects.values())

    def scene(self) -> Context:
        """Return what the rules look at."""
        dump, _ = read_dump([(DUMP, [self.text().encode()])])
        plan = self.git.plan
        lock, found = load(self.git.lock.encode(), "ipam.lock", plan.cluster, Consent(), rendered=True)
        assert not list(found)
        git = Manifests({path: text.encode() for path, text in self.git.files.items()})
        applied = (
            Manifests(
                {path: text.encode() for path, text in self.applied.items()},
                "applied:rendered",
                "applied:rendered",
            )
            if self.applied is not None
            else None
        )
        return Context(
            cluster=plan.cluster, lock=lock, dump=dump, git=git, applied=applied, routers=self.routers
        )

    def audit(self, *, changed: str = "", applied_at: str = "") -> tuple[Located, ...]:
        """Return the findings, as the verb has them."""
        scene = self.scene()
        found: list[Diagnostic] = refused(scene, changed, applied_at)
        if not any(each.severity is Severity.ERROR for each in found):
            found += audit(scene)
        return locate(found, {})


def short(findings: Iterable[Diagnostic]) -> list[str]:
    """Return `error IPC0910` of each finding, sorted."""
    return sorted(f"{each.severity.word} {each.code}" for each in findings)


def run(compilation: Compilation) -> Iterator[Object]:
    """Yield what a cluster has after everything was applied, and agents and operator have started."""
    cluster, files = compilation.plan.cluster, compilation.files
    rendered = [item for path, text in files.items() if _is_manifest(path) for item in loaded(text)]
    by_name = {identity(item): item for item in rendered}
    version = f"v{version_text(cluster.cilium)}.3"
    given = {
        name: row for item in rendered if "Policy" in item["kind"] for name, row in rows_of(item).items()
    }
    for number, node in enumerate(cluster.nodes):
        patch = by_name.get(f"Node {node.name}") or _given(cluster, given.get(node.name, ""))
        cilium = by_name.get(f"CiliumNode {node.name}", {})
        if node.planned:
            if cilium:
                yield dumps.cilium_node(node.name, *_pod_cidrs(cilium), owner="")
            continue
        live = dumps.node(
            node.name,
            *(patch.get("spec") or {}).get("podCIDRs", ()),
            uid=node.uid,
            labels=node.labels,
            ip=f"192.168.{number // 250}.{number % 250 + 1}",
        )
        live["metadata"]["annotations"] = dict((patch.get("metadata") or {}).get("annotations") or {})
        yield live
        held = [str(line.block) for line in compilation.plan.held.get(node.name, ())]
        if (
            cluster.mode is Mode.KUBERNETES and not patch and node.pod_cidrs
        ):  # what is not rendered: it has another block yet
            live["spec"] = {"podCIDR": str(node.pod_cidrs[0]), "podCIDRs": list(map(str, node.pod_cidrs))}
        if held and not cilium and cluster.mode is Mode.CLUSTER_POOL:  # the operator gives it
            cilium = dumps.cilium_node(node.name, *held)
        if row := given.get(node.name) if cluster.mode is Mode.MULTI_POOL else None:
            pools = (entry.partition("=") for entry in row.split())
            cilium = dumps.cilium_node(
                node.name, allocated={pool: cidrs.split(",") for pool, _, cidrs in pools}
            )
        seen = _agents(node.name, node.uid, live, cilium)
        yield seen
        yield agent(node.name, version)
        blocks = _blocks(seen)
        if blocks:
            yield dumps.pod(f"web-{node.name}", node.name, *_addresses(blocks, 2))
            yield endpoint(
                f"web-{node.name}", *_addresses(blocks, 2), node=f"192.168.{number // 250}.{number % 250 + 1}"
            )
    for item in rendered:
        if item["kind"] in {"CiliumPodIPPool", "CiliumNodeConfig"}:
            yield item
    yield from (policy(item) for item in rendered if item["kind"] in POLICIES)
    config = by_name[f"ConfigMap {cluster.namespace} cilium-config"]
    mesh = {"cluster-id": str(cluster.cluster_id), "cluster-name": cluster.mesh_name or "default"}
    yield {**config, "data": {**config["data"], **mesh}}
    values = loaded(files["cilium/helm-values.yaml"])[0]
    created = values["ipam"].get("operator", {}).get("autoCreateCiliumPodIPPools", {})
    for name, spec in created.items():
        yield {
            "apiVersion": "cilium.io/v2alpha1",
            "kind": "CiliumPodIPPool",
            "metadata": {"name": name},
            "spec": copy.deepcopy(spec),
        }
    yield operator(*values.get("operator", {}).get("extraArgs", ()), namespace=cluster.namespace)


def _is_manifest(path: str) -> bool:
    return (
        path.partition("/")[0] in {"admission", "nodes", "ciliumnodes", "pools", "seeds"}
        or path in {"cilium/ippools.yaml", "cilium/nodeconfigs.yaml", "cilium/configmap.yaml"}
    ) and not path.endswith("kustomization.yaml")


def _pod_cidrs(item: Object) -> list[str]:
    return list(item.get("spec", {}).get("ipam", {}).get("podCIDRs", ()))


def _agents(name: str, uid: str, node: Object, cilium: Object) -> Object:
    """Return a CiliumNode as its agent writes it: in kubernetes mode with the blocks of its Node."""
    annotations = node["metadata"]["annotations"]
    own = node["spec"].get("podCIDRs") or [
        value for key, value in sorted(annotations.items()) if key.endswith("-pod-cidr")
    ]
    seen = dumps.cilium_node(name, owner=uid or f"uid-{name}")
    seen["spec"]["ipam"] = copy.deepcopy(cilium.get("spec", {}).get("ipam")) or (
        {"podCIDRs": own} if own else {}
    )
    seen["spec"]["addresses"] = [
        {"type": "CiliumInternalIP", "ip": ip} for ip in _addresses(_blocks(seen), 1)
    ]
    return seen


def _blocks(seen: Object) -> list[str]:
    ipam = seen["spec"]["ipam"]
    allocated = [cidr for entry in ipam.get("pools", {}).get("allocated", ()) for cidr in entry["cidrs"]]
    return allocated or list(ipam.get("podCIDRs", ()))


def _addresses(blocks: Iterable[str], number: int) -> list[str]:
    """Return an address of the first block of each family."""
    first: dict[int, Any] = {}
    for block in map(ip_network, blocks):
        first.setdefault(block.version, block)
    return [
        str(ip_address(int(block.network_address) + min(number, block.num_addresses - 1)))
        for block in first.values()
    ]


def _given(cluster: Cluster, row: str) -> Object:
    """Return what a policy writes into a Node that joins; {} where it writes nothing there."""
    cidrs = sorted(row.split(), key=lambda cidr: cluster.families.index(6 if ":" in cidr else 4))
    if not cidrs or cluster.mode is not Mode.KUBERNETES:
        return {}
    if cluster.patch_nodes == "annotations":
        keys = (pod_cidr_annotation(cluster.cilium, 6 if ":" in cidr else 4) for cidr in cidrs)
        return {"metadata": {"annotations": dict(zip(keys, cidrs, strict=True))}}
    return {"spec": {"podCIDRs": cidrs}}


def policy(item: Object) -> Object:
    """Return an admission policy as `apply` writes it, with the defaults of the apiserver; or a binding."""
    (live,) = naming([copy.deepcopy(item)], "ab" * 20)
    if "matchConstraints" in live["spec"]:
        live["spec"]["matchConstraints"] |= {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
        }
    return dict(live)


def agent(node: str, version: str = "v1.18.3") -> Object:
    """Return the Pod of Cilium's agent on a node."""
    made = dumps.pod(f"cilium-{node}", node, "192.168.0.1", namespace="kube-system", hostNetwork=True)
    made["metadata"]["labels"] = {"k8s-app": "cilium"}
    made["spec"]["containers"] = [
        {"name": "cilium-agent", "image": f"quay.io/cilium/cilium:{version}@sha256:00"}
    ]
    return made


def controller(*words: str, node: str = "master") -> Object:
    """Return the Pod of kube-controller-manager."""
    made = dumps.pod(
        "kube-controller-manager-m", node, "192.168.0.1", namespace="kube-system", hostNetwork=True
    )
    made["metadata"]["labels"] = {"component": "kube-controller-manager"}
    made["spec"]["containers"] = [
        {
            "name": "kube-controller-manager",
            "image": "registry.k8s.io/kcm:v1.33.1",
            "command": ["kube-controller-manager", *words],
        }
    ]
    return made


def operator(*words: str, namespace: str = "kube-system") -> Object:
    """Return Deployment cilium-operator."""
    container = {"name": "cilium-operator", "command": ["cilium-operator"], "args": ["--debug", *words]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "cilium-operator", "namespace": namespace},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


def endpoint(name: str, *ips: str, node: str = "", namespace: str = "default") -> Object:
    """Return a CiliumEndpoint."""
    addressing = [{"ipv6" if ":" in ip else "ipv4": ip for ip in ips}]
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumEndpoint",
        "metadata": {"name": name, "namespace": namespace},
        "status": {"networking": {"addressing": addressing, **({"node": node} if node else {})}},
    }
