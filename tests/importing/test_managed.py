"""Managed Kubernetes: which offering a dump is of, and what an import says and writes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipamc.importing.refresh import Past, refresh
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Refused
from ipamc.read.dump.programs import OFFERINGS, offering_of
from ipamc.read.read import read
from tests.support import dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, compiled, dump_of, held, imported

GKE = {"cloud.google.com/gke-nodepool": "default-pool"}
CONFIG = dumps.config_map(ipam="kubernetes", enable_ipv4="true", enable_ipv6="false")


def node(
    name: str, *cidrs: str, labels: dict[str, str], provider: str = "", kubelet: str = "v1.33.4"
) -> dumps.Object:
    found = dumps.node(name, *cidrs, labels=labels, kubelet=kubelet)
    if provider:
        found["spec"]["providerID"] = provider
    return found


def gke(number: int, *cidrs: str) -> dumps.Object:
    return node(f"gke-{number}", *cidrs, labels=GKE, provider=f"gce://lab/zone-a/gke-{number}")


@pytest.mark.parametrize(
    ("labels", "provider", "kubelet", "name"),
    [
        (GKE, "gce://lab/zone-a/gke-1", "", "GKE"),
        ({}, "gce://lab/zone-a/gke-1", "v1.33.4-gke.1043002", "GKE"),
        ({"eks.amazonaws.com/nodegroup": "a"}, "aws:///eu-central-1a/i-1", "", "EKS"),
        ({}, "aws:///eu-central-1a/i-1", "v1.33.4-eks-ae9a62a", "EKS"),
        ({"alpha.eksctl.io/cluster-name": "lab"}, "", "", "EKS"),
        ({"kubernetes.azure.com/cluster": "MC_a"}, "azure:///subscriptions/1", "", "AKS"),
        ({"doks.digitalocean.com/node-pool": "a"}, "digitalocean://1", "", "DOKS"),
        ({"oke.oraclecloud.com/pool.name": "a"}, "ocid1.instance.oc1.phx.1", "", "OKE"),
        ({"lke.linode.com/pool-id": "1"}, "linode://1", "", "LKE"),
        ({"k8s.scaleway.com/pool-name": "a"}, "scaleway://instance/fr-par-1/1", "", "Scaleway Kapsule"),
        ({"ibm-cloud.kubernetes.io/worker-pool-id": "1"}, "ibm://1", "", "IBM Cloud Kubernetes Service"),
        ({"alibabacloud.com/nodepool-id": "np1"}, "cn-beijing.i-1", "", "Alibaba Cloud ACK"),
        ({"node.k8s.ovh/type": "standard"}, "openstack:///1", "", "OVHcloud MKS"),
        ({"vke.vultr.com/node-pool": "a"}, "vultr://1", "", "Vultr VKE"),
        ({}, "gce://lab/zone-a/vm-1", "", ""),
        ({}, "aws:///eu-central-1a/i-1", "", ""),
        (GKE, "aws:///eu-central-1a/i-1", "", ""),
        ({"topology.kubernetes.io/zone": "a"}, "", "", ""),
    ],
)
def test_the_offerings(labels: dict[str, str], provider: str, kubelet: str, name: str) -> None:
    """`providerID` alone is of any cluster on machines of a cloud, also of one with its own control plane."""
    found = offering_of(dump_of([node("n1", labels=labels, provider=provider, kubelet=kubelet or "v1.33.4")]))
    assert (found.name if found else "") == name


DISTRIBUTIONS = ("kubeadm", "RKE2", "k3s", "Talos", "kOps", "OpenShift", *(each.name for each in OFFERINGS))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_page_by_distribution_has_each(name: str) -> None:
    """Who searches for one finds it as a heading."""
    page = (Path(__file__).parents[2] / "docs/start/distributions.md").read_text(encoding="utf-8")
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert [each for each in headings if name in each.removeprefix("## ").split(", ")] != []


def test_most_nodes_tell() -> None:
    assert offering_of(dump_of([gke(1), gke(2), dumps.node("n3")]))
    assert not offering_of(dump_of([gke(1), dumps.node("n2")]))
    assert len({each.name for each in OFFERINGS}) == len(OFFERINGS)


def test_gke_gives_the_blocks() -> None:
    """Nodes keep what GKE gave, and a node that waits gets nothing of ipamc, today and after a refresh."""
    nodes = [gke(number, f"10.8.{number}.0/24") for number in range(3)]
    came = imported([*nodes, gke(3), CONFIG])
    (found,) = [found for found in came.findings if found.code == "IPC0829"]
    assert found.message == "the control plane of GKE gives Nodes their podCIDRs, so ipamc gives no blocks"
    assert "# GKE gives the blocks of this pool; ipamc gives none" in came.files["ippools.yaml"]
    (waits,) = [found for found in came.findings if found.code == "IPC0818"]
    assert waits.help == "GKE gives the block; refresh afterwards"
    first = compiled(came.files)
    blocks = {f"gke-{number}": [f"10.8.{number}.0/24"] for number in range(3)}
    assert held(first) == blocks
    said = {found.code for found in first.diagnostics}
    assert "IPC0504" not in said, "nobody reaches that flag"
    sources = {f"{FOLDER}/{name}": text.encode() for name, text in came.files.items()}
    cluster, _ = read(NAME, FOLDER, sources, SCHEMAS)
    later = refresh(cluster, FOLDER, dump_of([*nodes, gke(3, "10.8.3.0/24"), CONFIG]), Past())
    assert held(compiled({**came.files, **later}, first)) == blocks | {"gke-3": ["10.8.3.0/24"]}


def test_cilium_of_ones_own_gives_blocks_anywhere() -> None:
    """With cluster-pool mode an offering is no finding, but podCIDRs of its Nodes are not blamed on a flag."""
    config = dumps.config_map(
        ipam="cluster-pool", enable_ipv4="true", enable_ipv6="false", cluster_pool_ipv4_cidr="10.0.0.0/16"
    )
    objects = [gke(1, "10.8.1.0/24"), dumps.cilium_node("gke-1", "10.0.7.0/24"), config]
    came = imported(objects)
    assert {found.code for found in came.findings} == {"IPC0816", "IPC0817"}
    (left,) = [found for found in came.findings if found.code == "IPC0817"]
    assert left.help == "GKE sets them; Cilium does not read them in this mode"
    assert held(compiled(came.files)) == {"gke-1": ["10.0.7.0/24"]}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"ipam": "delegated-plugin"},
            "cilium-config has ipam: 'delegated-plugin': another IPAM plugin gives pods their addresses",
        ),
        (
            {"ipam": "cluster-pool", "cni_chaining_mode": "aws-cni"},
            "cilium-config has cni-chaining-mode: 'aws-cni': another plugin, not Cilium, gives pods their addresses",
        ),
    ],
)
def test_addresses_of_others(config: dict[str, str], message: str) -> None:
    eks = node("n1", labels={"eks.amazonaws.com/nodegroup": "a"})
    with pytest.raises(Refused) as refused:
        imported([eks, dumps.cilium_node("n1", "10.0.0.0/24"), dumps.config_map(**config)])
    (found,) = refused.value.diagnostics
    assert (found.code, found.message) == ("IPC0811", message)
    assert (
        "this is EKS: install Cilium in cluster-pool or multi-pool mode instead of the AWS VPC CNI"
        in found.help
    )


def test_a_chain_behind_cilium() -> None:
    config = dumps.config_map(ipam="cluster-pool", cni_chaining_mode="portmap", enable_ipv4="true")
    came = imported([dumps.node("n1"), dumps.cilium_node("n1", "10.0.0.0/24"), config])
    assert held(compiled(came.files)) == {"n1": ["10.0.0.0/24"]}


@pytest.mark.parametrize("mode", [None, Mode.CLUSTER_POOL, Mode.KUBERNETES])
@pytest.mark.parametrize("alone", [True, False], ids=["Nodes alone", "with cilium-config"])
def test_podcidrs_mean_something_in_kubernetes_mode_alone(mode: Mode | None, *, alone: bool) -> None:
    """kube-controller-manager leaves them on the Nodes of a cluster-pool cluster, too."""
    nodes = [dumps.node(f"n{number}", f"10.50.{number}.0/24") for number in range(3)]
    config = [] if alone else [dumps.config_map(ipam="cluster-pool", enable_ipv4="true")]
    if (mode is None and alone) or (mode is Mode.KUBERNETES and not alone):
        with pytest.raises(Refused) as refused:
            imported([*nodes, *config], mode=mode)
        assert [found.code for found in refused.value.diagnostics] == ["IPC0810" if alone else "IPC0820"]
        return
    came = imported([*nodes, *config], mode=mode)
    given = {block for blocks in came.draft.blocks.values() for block in blocks}
    assert len(given) == (3 if mode is Mode.KUBERNETES else 0)
    assert ("IPC0817" in {found.code for found in came.findings}) == (mode is not Mode.KUBERNETES)
