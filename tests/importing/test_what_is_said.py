"""What an import and a refresh say: what a dump does not tell, and what a person must decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ipamc.catalogue import catalogue
from ipamc.importing.refresh import Past, refresh
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Diagnostic, Refused
from ipamc.read.read import read
from ipamc.workspace.disk import assets
from tests.support import dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, dump_of, imported

Objects = Sequence[dumps.Object]

NODES = [dumps.node("n1", uid="u1"), dumps.node("n2", uid="u2")]
BLOCKS = [dumps.cilium_node("n1", "10.0.0.0/24"), dumps.cilium_node("n2", "10.0.1.0/24")]
ON = {"enable_ipv4": "true", "enable_ipv6": "false"}
RANGES = {"cluster_pool_ipv4_cidr": "10.0.0.0/16", "cluster_pool_ipv4_mask_size": "24"}
BYSTANDER = dumps.pod("operator", "n1", namespace="kube-system", hostNetwork=True)
BYSTANDER["metadata"]["labels"] = {"name": "cilium-operator"}
BYSTANDER["spec"]["containers"] = [
    {"image": "quay.io/cilium/operator-generic:v1.15.19@sha256:00", "args": ["--ipam=kubernetes"]}
]
POOL = [*NODES, *BLOCKS, dumps.config_map(ipam="cluster-pool", **ON, **RANGES)]


def said(objects: Objects, **options: Any) -> list[Diagnostic]:
    """Import objects; return what is said, refused or not."""
    try:
        return list(imported(objects, **options).findings)
    except Refused as refused:
        return list(refused.diagnostics)


def balancer(cidr: str) -> dumps.Object:
    return {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumLoadBalancerIPPool",
        "metadata": {"name": "public"},
        "spec": {"blocks": [{"cidr": cidr}]},
    }


IMPORTS: dict[str, tuple[Callable[[], list[Diagnostic]], str]] = {
    "IPC0810": (
        lambda: said([*NODES, *BLOCKS]),
        "the dump has CiliumNodes, but no ConfigMap cilium-config, so the IPAM mode is unknown",
    ),
    "IPC0811": (
        lambda: said([*NODES, dumps.config_map(ipam="eni")]),
        "cilium-config has ipam: 'eni': AWS gives pods addresses from VPC subnets",
    ),
    "IPC0830": (
        lambda: said(
            [
                NODES[0],
                dumps.cilium_node("n1", allocated={"default": ["10.0.0.0/24"], "blue": ["10.1.0.0/24"]}),
                dumps.config_map(ipam="multi-pool", **ON),
            ]
        ),
        "the dump has no CiliumPodIPPool, but nodes hold blocks of 2 pools: blue, default",
    ),
    "IPC0812": (
        lambda: said([*NODES], cilium=None, mode=Mode.CRD)[-1:],
        "the dump does not show the Cilium version: it has no Cilium pods",
    ),
    "IPC0813": (
        lambda: said([*POOL, BYSTANDER], managed_by=None),
        "the dump does not show who manages cilium-config, so cluster.yaml gets managedBy: helm",
    ),
    "IPC0814": (
        lambda: said([*POOL, BYSTANDER, dumps.node("n3"), dumps.cilium_node("n3", "172.16.0.0/24")]),
        "1 node has blocks outside the configured ranges: 172.16.0.0/24",
    ),
    "IPC0815": (
        lambda: said([*NODES, *BLOCKS, BYSTANDER, dumps.config_map(ipam="cluster-pool", **ON)]),
        "no flag and no pool lists the ranges; derived from the blocks in use: 10.0.0.0/23",
    ),
    "IPC0816": (
        lambda: said(POOL),
        "the operator gives nodes their blocks; with operator: bystander it must stop before the next node joins",
    ),
    "IPC0817": (
        lambda: said(
            [*POOL, BYSTANDER, dumps.node("n3", "10.9.0.0/24"), dumps.cilium_node("n3", "10.0.2.0/24")]
        ),
        "1 node has spec.podCIDRs that do not match the blocks of its pods: n3",
    ),
    "IPC0818": (
        lambda: said([*POOL, BYSTANDER, dumps.node("n3", ready=False)]),
        "1 node waits for a block: n3",
    ),
    "IPC0819": (
        lambda: said([*POOL, BYSTANDER, balancer("10.0.200.0/24")]),
        "range 10.0.0.0/16 of pool default contains addresses of load balancers (public): 10.0.200.0/24",
    ),
    "IPC0820": (
        lambda: said([*POOL, BYSTANDER], mode=Mode.CRD),
        "the cluster runs with ipam: cluster-pool, and --mode is crd",
    ),
}


def refreshed(
    objects: Objects, *, past: Past | None = None, more: str = "", rebuilt: bool = False
) -> list[Diagnostic]:
    """Refresh what was imported from POOL; return what is refused. `more` is another file of the folder."""
    files = {**imported(POOL).files, **({"more.yaml": more} if more else {})}
    sources = {f"{FOLDER}/{name}": text.encode() for name, text in files.items()}
    cluster, _ = read(NAME, FOLDER, sources, SCHEMAS)
    try:
        refresh(cluster, FOLDER, dump_of(objects), past or Past(), sources=sources, rebuilt=rebuilt)
    except Refused as refused:
        return list(refused.diagnostics)
    return []


OLD = Past(committed="2026-11-22T13:00:00Z", limit="2026-11-22T12:50:00Z")
STRANGERS = [dumps.node("n1", uid="other"), *BLOCKS]
REFRESHES: dict[str, tuple[Callable[[], list[Diagnostic]], str]] = {
    "IPC0821": (
        lambda: refreshed(STRANGERS),
        "the dump does not match lab: it contains n1 other, but none of n1, n2",
    ),
    "IPC0822": (
        lambda: refreshed(POOL, past=OLD),
        "the dump is older than the inventory: its newest timestamp is 2026-11-22T12:00:00Z, and nodes.yaml was committed 2026-11-22T13:00:00Z",
    ),
    "IPC0823": (
        lambda: refreshed(
            POOL, more="{apiVersion: ipamc/v1alpha1, kind: NodeInventory, nodes: [{name: n7}]}\n"
        ),
        "nodes in a file that a refresh does not write",
    ),
    "IPC0825": (lambda: refreshed(NODES), "the dump has no CiliumNodes, but ciliumnodes.yaml has 2"),
}


def test_both_are_asked_for_in_one_run() -> None:
    assert [found.message for found in said([dumps.node("n1", "10.0.0.0/24")], cilium=None)] == [
        "the dump has neither CiliumNodes nor ConfigMap cilium-config, so the IPAM mode is unknown",
        "the dump does not show the Cilium version: it has no Cilium pods",
    ]


@pytest.mark.parametrize(("code", "case"), [*IMPORTS.items(), *REFRESHES.items()], ids=[*IMPORTS, *REFRESHES])
def test_what_is_said(code: str, case: tuple[Callable[[], list[Diagnostic]], str]) -> None:
    say, message = case
    assert [(found.code, found.message) for found in say()] == [(code, message)]


def image(text: str, **labels: str) -> dumps.Object:
    """Return a pod of an agent."""
    agent = dumps.pod("cilium-1", "n1", namespace="kube-system", hostNetwork=True)
    agent["metadata"]["labels"] = {"k8s-app": "cilium", **labels}
    agent["spec"]["containers"] = [{"image": text}]
    return agent


def workload(kind: str, name: str, text: str, **labels: str) -> dumps.Object:
    """Return the DaemonSet of agents, or the operator's Deployment."""
    template = {"spec": {"containers": [{"image": text}, {"image": "istio/proxyv2:1.2.3"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
        "spec": {"template": template},
    }


DIGEST = "quay.io/cilium/cilium@sha256:0123"
CHART = "helm.sh/chart"
RELEASE = "app.kubernetes.io/version"


@pytest.mark.parametrize(
    ("objects", "version"),
    [
        ([image("quay.io/cilium/cilium:v1.18.5@sha256:0123")], "1.18"),
        ([image(DIGEST, **{CHART: "cilium-1.18.5"})], "1.18"),
        ([image(DIGEST, **{CHART: "rke2-cilium-1.17.100"})], "1.17"),
        ([image(DIGEST, **{RELEASE: "1.16.3", CHART: "cilium-1.18.5"})], "1.16"),
        ([image("quay.io/cilium/cilium:v1.18.5", **{RELEASE: "1.16.3"})], "1.18"),
        ([workload("DaemonSet", "cilium", "quay.io/cilium/cilium:v1.17.9")], "1.17"),
        ([workload("DaemonSet", "cilium", DIGEST, **{RELEASE: "v1.17.9"})], "1.17"),
        ([workload("Deployment", "cilium-operator", "quay.io/cilium/operator:v1.15.1")], "1.15"),
        ([image("cilium:v1.19.0"), BYSTANDER], "1.15"),
        ([image("cilium:v1.19.0"), workload("DaemonSet", "cilium", "cilium:v1.18.0")], "1.19"),
        ([image(DIGEST)], "the images of its pods have only a digest: quay.io/cilium/cilium"),
        ([image("cilium:latest")], "its images name no version: cilium:latest"),
        ([workload("DaemonSet", "cilium", "", **{CHART: "nginx-1.2.3"})], "it has no Cilium pods"),
    ],
)
def test_the_version(objects: Objects, version: str) -> None:
    """The lowest minor counts; a workload tells it where the dump has no pod of it."""
    if version[0].isdigit():
        text = imported([*POOL, *objects], cilium=None).files["cluster.yaml"]
        assert f'cilium: {{version: "{version}",' in text
    else:
        *_, found = said([*POOL, *objects], cilium=None)
        assert (found.code, found.message) == (
            "IPC0812",
            f"the dump does not show the Cilium version: {version}",
        )


def test_every_code_is_shown() -> None:
    """IPC0824 is about files on a disk: tests/cli/test_import.py."""
    ours = {code for code in catalogue(assets("rules")) if "IPC0810" <= code <= "IPC0825"}
    assert {*IMPORTS, *REFRESHES, "IPC0824"} == {*ours, "IPC0830"}


def test_a_sound_cluster_has_nothing_to_say() -> None:
    assert said([*POOL, BYSTANDER]) == []
    assert refreshed(POOL) == []


def test_a_cluster_that_was_built_again() -> None:
    assert refreshed(STRANGERS, rebuilt=True) == []


def test_planned_nodes_may_be_in_any_file() -> None:
    more = "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes: [{name: n7, planned: true}]\n"
    assert refreshed(POOL, more=more) == []


def test_planned_nodes_that_have_joined_leave_a_file_that_is_no_inventory_alone() -> None:
    """The refresh would lose the pool, and nodes.yaml must not have a node that another file has."""
    more = "nodes: [{name: n7, planned: true}, {name: n8, planned: true}, {name: n9, planned: true}]\n"
    pool = "---\napiVersion: ipamc/v1alpha1\nkind: IPPool\nmetadata: {name: x}\nspec: {ipv4: {cidrs: [10.9.0.0/24], blockSize: 26}}\n"
    [found] = refreshed(
        [*POOL, dumps.node("n7"), dumps.node("n9")],
        more=f"apiVersion: ipamc/v1alpha1\nkind: NodeInventory\n{more}{pool}",
    )
    assert (found.code, found.message, found.help) == (
        "IPC0823",
        "2 planned nodes that have joined (n7, n9) in a file that a refresh does not write",
        f"remove nodes that exist from {FOLDER}/more.yaml: the refresh writes them into nodes.yaml",
    )
