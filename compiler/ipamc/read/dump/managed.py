"""Managed Kubernetes: recognizes the offering of a dump, and what ipamc can do there.

A label that only an offering sets, or its own build of the kubelet, identifies it, if most nodes have it.
`providerID` alone does not: machines of a cloud may belong to a self-managed cluster. If it names another
cloud, the label was copied.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from msgspec import Struct

from ipamc.model.dump import Dump
from ipamc.model.node import Node

_INSTALL = "install Cilium in cluster-pool or multi-pool mode"


class Offering(Struct, frozen=True, kw_only=True):
    """A managed Kubernetes, whose control plane only its provider can configure."""

    name: str
    provider: str = ""
    """The prefix of `providerID`; "": unknown."""
    labels: tuple[str, ...]
    """Prefixes of the keys of its labels."""
    kubelet: str = ""
    """A text that only versions of its kubelets contain."""
    sets_pod_cidrs: bool = True
    """Its control plane sets the podCIDRs of Nodes."""
    way: str = f"{_INSTALL} where the offering lets you, else show and audit alone"
    """How ipamc can be used there."""


_TUNNEL = "with a tunnel, because the VPC does not route these blocks"
OFFERINGS = (
    Offering(
        name="GKE",
        provider="gce://",
        labels=("cloud.google.com/gke-",),
        kubelet="-gke.",
        way="show, which and audit work; another range is a node pool's: gcloud container node-pools create "
        "--pod-ipv4-range. The Cilium of Dataplane V2 is Google's",
    ),
    Offering(
        name="EKS",
        provider="aws://",
        labels=("eks.amazonaws.com/", "alpha.eksctl.io/cluster-name"),
        kubelet="-eks-",
        sets_pod_cidrs=False,
        way=f"instead of the AWS VPC CNI or ipam: eni {_INSTALL}, {_TUNNEL}",
    ),
    Offering(
        name="AKS",
        provider="azure://",
        labels=("kubernetes.azure.com/cluster", "kubernetes.azure.com/agentpool"),
        way=f"with az aks create --network-plugin none {_INSTALL}; the Cilium of Azure CNI is Microsoft's",
    ),
    Offering(name="DOKS", provider="digitalocean://", labels=("doks.digitalocean.com/",)),
    Offering(name="OKE", provider="oci", labels=("oke.oraclecloud.com/",)),
    Offering(name="LKE", provider="linode://", labels=("lke.linode.com/",)),
    Offering(name="Scaleway Kapsule", provider="scaleway://", labels=("k8s.scaleway.com/",)),
    Offering(name="IBM Cloud Kubernetes Service", provider="ibm://", labels=("ibm-cloud.kubernetes.io/",)),
    Offering(
        name="Alibaba Cloud ACK",
        labels=("alibabacloud.com/nodepool-id", "ack.aliyun.com"),
        kubelet="-aliyun.",
    ),
    Offering(name="OVHcloud MKS", provider="openstack://", labels=("node.k8s.ovh/",)),
    Offering(name="Vultr VKE", provider="vultr://", labels=("vke.vultr.com/",)),
)


def offering_of(dump: Dump) -> Offering | None:
    """Return the managed Kubernetes of most nodes; None if there is none. O(labels)."""
    found = Counter(each for node in dump.nodes if (each := _offering(node)))
    each, number = max(found.items(), key=lambda entry: entry[1], default=(None, 0))
    return each if 2 * number > len(dump.nodes) else None


def _offering(node: Node) -> Offering | None:
    for each in (_of_kubelet(node.kubelet), *map(_of_label, node.labels)):
        if each and (not node.provider_id or node.provider_id.startswith(each.provider)):
            return each
    return None


@lru_cache(maxsize=4096)
def _of_label(key: str) -> Offering | None:
    return next((each for each in OFFERINGS if key.startswith(each.labels)), None)


@lru_cache(maxsize=256)
def _of_kubelet(version: str) -> Offering | None:
    return next((each for each in OFFERINGS if each.kubelet and each.kubelet in version), None)
