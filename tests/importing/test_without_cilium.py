"""Clusters in which some nodes run no Cilium: no import, refresh, audit, compile or runbook gives these a block or a step."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support import dumps, living
from tests.support.imports import compiled, held, imported
from tests.support.in_process import ipamc

ON = {"enable_ipv4": "true", "enable_ipv6": "false"}
RANGE = {"cluster_pool_ipv4_cidr": "10.244.0.0/16", "cluster_pool_ipv4_mask_size": "24"}
CONFIG = dumps.config_map(ipam="cluster-pool", **ON, **RANGE)
LINUX = {"kubernetes.io/os": "linux"}
EKS = "eks.amazonaws.com/compute-type"


def node(name: str, **labels: str) -> dumps.Object:
    """Return a Node with labels; `_` stands for a dot and `__` for a slash."""
    return dumps.node(
        name,
        labels={**LINUX, **{key.replace("__", "/").replace("_", "."): text for key, text in labels.items()}},
    )


def daemon_set(**spec: Any) -> dumps.Object:
    """Return the DaemonSet of agents, with fields of its pods."""
    containers = [{"name": "cilium-agent", "image": "quay.io/cilium/cilium:v1.18.5"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "cilium", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": containers, **spec}}},
    }


def affinity(*terms: Any) -> dumps.Object:
    """Return the DaemonSet with required terms of node affinity."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return daemon_set(affinity={"nodeAffinity": required})


def says(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def changed(made: dumps.Object, **status: Any) -> dumps.Object:
    """Return a Node with other fields of `nodeInfo`, or taints."""
    made["spec"]["taints"] = status.pop("taints", [])
    made["status"]["nodeInfo"].update(status)
    return made


RUNS = [node("n1"), dumps.cilium_node("n1", "10.244.0.0/24"), CONFIG]
"""A cluster of one node that runs Cilium."""
KINDS: dict[str, tuple[list[dumps.Object], str]] = {
    "Windows, by its status": (
        [changed(dumps.node("x"), operatingSystem="windows")],
        "its OS is windows: 1 node (x)",
    ),
    "Windows, by its label": (
        [dumps.node("x", labels={"kubernetes.io/os": "windows"})],
        "its OS is windows: 1 node (x)",
    ),
    "Windows, by its old label": (
        [dumps.node("x", labels={"beta.kubernetes.io/os": "windows"})],
        "its OS is windows: 1 node (x)",
    ),
    "Windows, with a CiliumNode that an apply created": (
        [
            dumps.node("x", labels={"kubernetes.io/os": "windows"}),
            {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": "x"}, "spec": {}},
        ],
        "its OS is windows: 1 node (x)",
    ),
    "virtual-kubelet": ([node("x", type="virtual-kubelet")], "label type=virtual-kubelet: 1 node (x)"),
    "virtual-kubelet, by its taint": (
        [changed(node("x"), taints=[{"key": "virtual-kubelet.io/provider", "value": "azure"}])],
        "taint virtual-kubelet.io/provider=azure: 1 node (x)",
    ),
    "Fargate": ([dumps.node("x", labels={EKS: "fargate"})], f"label {EKS}=fargate: 1 node (x)"),
    "hybrid nodes of EKS": (
        [
            dumps.node("x", labels={**LINUX, EKS: "ec2"}),
            affinity({"matchExpressions": [says(EKS, "NotIn", "ec2", "fargate", "auto")]}),
        ],
        f"the selector of DaemonSet kube-system/cilium ({EKS} notin (auto,ec2,fargate)) does not select it: 1 node (x)",
    ),
    "another pod network": (
        [
            node("x", cni="flannel"),
            node("n1", cni="cilium"),
            daemon_set(nodeSelector={**LINUX, "cni": "cilium"}),
        ],
        "(cni in (cilium),kubernetes.io/os in (linux)) does not select it: 1 node (x)",
    ),
    "no agent": ([node("x"), living.agent("n1", "v1.18.5")], "but 1 other node has one: 1 node (x)"),
}
RUNNING: dict[str, list[dumps.Object]] = {
    "a CiliumNode": [node("x", type="virtual-kubelet"), dumps.cilium_node("x", "10.244.9.0/24")],
    "a CiliumNode that an apply created": [
        node("x", type="virtual-kubelet"),
        {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumNode",
            "metadata": {"name": "x"},
            "spec": {"ipam": {"podCIDRs": ["10.244.9.0/24"]}},
        },
    ],
    "labels that were cut": [dumps.node("x"), daemon_set(nodeSelector=LINUX)],
    "a DaemonSet that selects nobody": [node("x"), daemon_set(nodeSelector={"migrated": "true"})],
    "a selector that nobody can read": [
        node("x"),
        affinity({"matchExpressions": [says("cni", "Like", "x")]}),
    ],
    "one of the terms": [
        dumps.node("x", labels={**LINUX, "generation": "7"}),
        affinity(
            {"matchExpressions": [says("generation", "Gt", "6"), says("old", "DoesNotExist")]},
            {"matchFields": [says("metadata.name", "In", "n1")]},
        ),
    ],
    "an agent": [
        node("x", cni="other"),
        living.agent("x", "v1.18.5"),
        affinity({"matchExpressions": [says("cni", "DoesNotExist")]}),
    ],
    "a Node that waits": [dumps.node("x", labels=LINUX, ready=False), living.agent("n1", "v1.18.5")],
    "a young Node": [
        node("x") | {"metadata": {**node("x")["metadata"], "creationTimestamp": "2026-11-22T11:55:00Z"}},
        living.agent("n1", "v1.18.5"),
    ],
}


def first_of(objects: Iterable[dumps.Object]) -> list[dumps.Object]:
    """Return objects without later ones of the same name."""
    named: dict[tuple[str, str], dumps.Object] = {}
    for item in objects:
        named.setdefault((item["kind"], item["metadata"]["name"]), item)
    return list(named.values())


class Home:
    """A folder of a user who imports the cluster `lab`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lab = folder / "clusters" / "lab"

    def run(self, *arguments: str, code: int | None = 0) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_GLOBAL": os.devnull}
        done = ipamc(*arguments, cwd=self.folder, environment=environment, one_stream=True)
        assert code in {None, done.returncode}, done.stdout
        return done.stdout

    def imports(self, *objects: dumps.Object, code: int = 0) -> str:
        self.dump(*objects)
        return self.run("import", "lab", "dump.json", "--cilium-version", "1.18", code=code)

    def dump(self, *objects: dumps.Object) -> None:
        (self.folder / "dump.json").write_text(dumps.kubectl(*first_of(objects)))

    def refresh(self) -> str:
        return self.run("import", "lab", "--refresh", "dump.json")

    @property
    def held(self) -> dict[str, str]:
        lines = map(json.loads, (self.lab / "ipam.lock").read_text().splitlines()[1:])
        return {line["node"]: line["block"] for line in lines if line.keys() <= {"block", "pool", "node"}}

    @property
    def rendered(self) -> str:
        return "".join(path.read_text() for path in (self.lab / "rendered").rglob("*.yaml"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_without_cilium_gets_nothing(kind: str, home: Home) -> None:
    objects, reason = KINDS[kind]
    said = home.imports(*objects, *RUNS)
    assert "1 node without Cilium is left out" in said
    assert reason in said
    assert said.count("[IPC0836]") == 1
    assert ("a dump of ipamc ci refresh has no pods" in said) is (kind == "no agent")
    assert home.held == {"n1": "10.244.0.0/24"}
    assert "name: x\n" not in home.rendered
    assert "{name: x" not in (home.lab / "nodes.yaml").read_text()
    # Nothing is left to do for a refresh, and an audit has no problem with the node.
    again = home.refresh()
    assert "0 nodes joined, 0 nodes left, 0 nodes changed" in again
    assert again.count("[IPC0836]") == 1
    assert "unchanged" in again
    assert "written" not in again
    audit = home.run("audit", "lab", "dump.json", code=None)
    assert not {"[IPC0922]", "[IPC0924]", "[IPC0434]"} & {
        word.strip(":") for word in audit.replace("[", " [").split()
    }
    assert home.held == {"n1": "10.244.0.0/24"}


@pytest.mark.parametrize("kind", RUNNING)
def test_in_doubt_a_node_runs_cilium(kind: str) -> None:
    done = imported(first_of([*RUNNING[kind], *RUNS]))
    assert "IPC0836" not in {finding.code for finding in done.findings}
    assert "{name: x" in done.files["nodes.yaml"]


WINDOWS = dumps.node("win-1", "10.244.3.0/24", labels={"kubernetes.io/os": "windows"})
OTHERS = [dumps.node("n2", labels=LINUX), dumps.cilium_node("n2", "10.244.1.0/24")]


@pytest.mark.parametrize("mode", ["cluster-pool", "kubernetes"])
def test_what_such_a_node_has_is_reserved(mode: str) -> None:
    """Its podCIDRs are in use by another network, as are addresses of its pods outside of them."""
    config = dumps.config_map(ipam=mode, **ON, **RANGE)
    n1 = dumps.node("n1", *(["10.244.0.0/24"] if mode == "kubernetes" else []), labels=LINUX)
    objects = [n1, RUNS[1], config, WINDOWS, dumps.pod("web", "win-1", "10.244.7.9")]
    if mode == "kubernetes":
        manager = dumps.pod("kube-controller-manager-n1", "n1", namespace="kube-system", hostNetwork=True)
        manager["metadata"]["labels"] = {"component": "kube-controller-manager"}
        manager["spec"]["containers"] = [{"image": "x:v1.33.4", "command": ["--cluster-cidr=10.244.0.0/16"]}]
        objects.append(manager)
    done = imported(objects)
    (pool,) = done.draft.pools
    why = "node win-1, which does not run Cilium"
    assert {str(block): reason for block, reason in pool.reserved.items()} == {
        "10.244.3.0/24": why,
        "10.244.7.9/32": why,
    }
    assert [finding.code for finding in done.findings].count("IPC0819") == 1
    assert held(compiled(done.files)) == {"n1": ["10.244.0.0/24"]}


def calico(name: str, block: str, host: str, *used: str) -> dumps.Object:
    """Return a block of Calico, with its first addresses in use."""
    attributes = [
        {"handle_id": f"k8s-pod-network.{pod}", "secondary": {"node": host, "pod": pod, "namespace": "x"}}
        for pod in used
    ]
    allocations = [*range(len(used)), *[None] * (64 - len(used))]
    spec = {"cidr": block, "affinity": f"host:{host}", "allocations": allocations, "attributes": attributes}
    return {
        "apiVersion": "crd.projectcalico.org/v1",
        "kind": "IPAMBlock",
        "metadata": {"name": name},
        "spec": spec,
    }


CALICO = [
    node("n1"),
    dumps.node("win-1", labels={"kubernetes.io/os": "windows"}),
    node("vk", type="virtual-kubelet"),
    {
        "apiVersion": "crd.projectcalico.org/v1",
        "kind": "IPPool",
        "metadata": {"name": "main"},
        "spec": {"cidr": "10.10.0.0/24", "blockSize": 26, "ipipMode": "Never", "vxlanMode": "Never"},
    },
    calico("a", "10.10.0.0/26", "n1", "web"),
    calico("b", "10.10.0.64/26", "win-1", "iis"),
    calico("c", "10.10.0.128/26", "win-1"),
]


def test_a_move_from_calico_drains_no_node_without_cilium(home: Home) -> None:
    """Blocks of Calico for Windows, also empty ones, are reserved: the nodes keep them, and nobody else gets them."""
    said = home.imports(*CALICO)
    assert "2 nodes without Cilium are left out" in said
    assert "IPC0854" not in said
    assert home.held == {"n1": "10.10.0.0/26"}
    pools = (home.lab / "ippools.yaml").read_text()
    assert 'cidr: 10.10.0.64/26, reason: "node win-1, which does not run Cilium"' in pools
    assert 'cidr: 10.10.0.128/26, reason: "node win-1, which does not run Cilium"' in pools
    steps = home.run("runbook", "lab", "--change", "calico")
    assert "n1" in steps
    assert "win-1" not in steps
    assert "vk" not in steps
    assert "--selector=io.cilium.migration/cilium-default!=true,kubernetes.io/os!=windows'" in steps
    assert "keep Calico there, frozen" in steps
    again = home.refresh()
    assert "0 nodes joined, 0 nodes left, 0 nodes changed" in again
    assert "nodes.yaml: unchanged" in again


@pytest.mark.parametrize("to", [(), ("--to", "distinct")])
def test_a_move_from_calico_drains_no_node_of_an_older_inventory(to: tuple[str, ...], home: Home) -> None:
    """It holds a block, because an older version imported it; its labels tell that it runs no Cilium."""
    home.imports(CALICO[0], node("n2"), *CALICO[3:5], calico("d", "10.10.0.192/26", "n2", "x"))
    assert "n2" in home.run("runbook", "lab", "--change", "calico", *to)
    nodes = home.lab / "nodes.yaml"
    nodes.write_text(
        nodes.read_text().replace("uid: uid-n2", "uid: uid-n2, labels: {kubernetes.io/os: windows}")
    )
    steps = home.run("runbook", "lab", "--change", "calico", *to)
    assert "n1" in steps
    assert "n2" not in steps


def test_while_the_runbook_moves_nodes_from_calico_none_is_left_out(home: Home) -> None:
    """It installs agents on labelled nodes alone: one moved, and a refresh and an audit know the others as before."""
    key = "io.cilium.migration/cilium-default"
    home.imports(CALICO[0], node("n2"), *CALICO[3:5], calico("d", "10.10.0.192/26", "n2", "x"))
    moved = dumps.node("n1", labels={**LINUX, key: "true"})
    seen = dumps.cilium_node("n1", allocated={"main.n1": ["10.10.0.0/26"]})
    agents = [living.agent("n1", "v1.18.5"), daemon_set(nodeSelector={**LINUX, key: "true"})]
    home.dump(
        moved, node("n2"), node("n3"), seen, *agents, *CALICO[3:5], calico("d", "10.10.0.192/26", "n2", "x")
    )
    said = home.refresh()
    assert "IPC083" not in said.replace("IPC0835", "")
    assert "1 node joined (n3), 0 nodes left" in said


def test_while_nodes_move_from_calico_a_daemon_set_tells_nothing() -> None:
    """The nodes that it does not select yet are those that move next."""
    nodes = [node("n1", migrated="true"), node("n2"), living.agent("n1", "v1.18.5")]
    done = imported(
        [
            *nodes,
            daemon_set(nodeSelector={"migrated": "true"}),
            *CALICO[3:],
            calico("d", "10.10.0.192/26", "n2", "x"),
        ]
    )
    assert "IPC0836" not in {finding.code for finding in done.findings}
    assert held(compiled(done.files)) == {"n1": ["10.10.0.0/26"], "n2": ["10.10.0.192/26"]}


def test_a_node_of_an_older_inventory_keeps_its_block_until_it_is_removed(home: Home) -> None:
    linux = dumps.node("win-1", labels=LINUX)
    home.imports(*RUNS, *OTHERS, linux, dumps.cilium_node("win-1", "10.244.3.0/24"))
    assert home.held["win-1"] == "10.244.3.0/24"
    # A dump as it should have been read: the CiliumNode has no owner, because an apply created it.
    bare = dumps.cilium_node("win-1", "10.244.3.0/24")
    del bare["metadata"]["ownerReferences"]
    home.dump(*RUNS, *OTHERS, WINDOWS, bare)
    for _ in range(2):
        said = home.refresh()
        assert (
            "[IPC0837]: 1 node of the inventory holds a block but does not run Cilium: win-1 (10.244.3.0/24): its OS is windows"
            in said
        )
        assert "[IPC0836]" not in said
        assert "0 nodes left" in said
        home.run("compile", "lab")
        assert home.held["win-1"] == "10.244.3.0/24"
    # What the warning says.
    nodes = home.lab / "nodes.yaml"
    nodes.write_text(
        "".join(line for line in nodes.read_text().splitlines(keepends=True) if "win-1" not in line)
    )
    home.run("compile", "lab")
    assert "win-1" not in home.held
    said = home.refresh()
    assert "[IPC0836]" in said
    assert "0 nodes joined" in said


def test_a_node_without_a_block_leaves_an_older_inventory(home: Home) -> None:
    home.imports(*RUNS, *OTHERS)
    nodes = home.lab / "nodes.yaml"
    nodes.write_text(nodes.read_text() + "- {name: win-1, uid: uid-win-1}\n")
    home.dump(*RUNS, *OTHERS, WINDOWS)
    said = home.refresh()
    assert "1 node left (win-1)" in said
    assert "[IPC0837]" not in said


def test_a_lock_that_cannot_be_read_is_no_leave_to_drop_a_node(home: Home) -> None:
    home.imports(*RUNS, *OTHERS)
    (home.lab / "ipam.lock").write_text("<<<<<<< ours\n")
    home.dump(*RUNS, *OTHERS, WINDOWS)
    assert "ipam.lock" in home.run("import", "lab", "--refresh", "dump.json", code=1)
    home.dump(*RUNS, *OTHERS)
    home.refresh()


def test_a_user_who_disagrees_says_so(home: Home) -> None:
    """`spec.cilium.nodeSelector` alone decides, both ways."""
    home.imports(*RUNS, *OTHERS, node("vk", type="virtual-kubelet"))
    assert "vk" not in home.held
    path = home.lab / "cluster.yaml"
    text = path.read_text()
    path.write_text(
        text.replace("managedBy: helm", "managedBy: helm, nodeSelector: name != 'n3'".replace("name", "role"))
    )
    home.dump(*RUNS, *OTHERS, node("vk", type="virtual-kubelet"), node("n3", role="n3"))
    said = home.refresh()
    assert "1 node joined (vk)" in said
    assert "spec.cilium.nodeSelector does not select it: 1 node (n3)" in said


def test_an_audit_knows_such_nodes(home: Home) -> None:
    """A node that the inventory has is judged as before; one that it does not have is not missed there."""
    home.imports(*RUNS, *OTHERS)
    home.dump(*RUNS, *OTHERS, WINDOWS, node("vk", type="virtual-kubelet"), node("n4"))
    said = home.run("audit", "lab", "dump.json", code=1)
    assert "[IPC0924]: 1 node not in the inventory of lab: n4" in said
    assert "[IPC0836]: 2 nodes without Cilium are left out" in said
