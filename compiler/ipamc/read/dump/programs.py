"""What runs a cluster, from its dump: Cilium's programs, kube-controller-manager, a managed Kubernetes.

Of programs it finds versions and flags. A label that only an offering sets, or its own build of the kubelet,
identifies a managed Kubernetes, if most nodes have it. `providerID` alone does not: machines of a cloud may
belong to a self-managed cluster. If it names another cloud, the label was copied.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct

from ipamc.model.cilium.flags import HYBRID, arguments, environment, odd_values, operator_keys
from ipamc.model.cilium.operator_list import AGENT, CONFIG, KUBEADM, OPERATOR
from ipamc.model.cluster import Version
from ipamc.model.diagnostics import Diagnostic, note
from ipamc.model.dump import Dump, SeenObject, SeenPod
from ipamc.model.node import Node
from ipamc.model.without_cilium import selectors_of
from ipamc.read import rules
from ipamc.read.dump.kinds import release_of
from ipamc.read.syntax.document import Unreadable, member
from ipamc.read.syntax.yaml import yaml_documents


def containers(workload: Any) -> list[Mapping[str, Any]]:
    """Return the containers of a workload."""
    found = member(workload, "spec", "template", "spec", "containers")
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def words_of(workload: Any, called: str = OPERATOR) -> tuple[str, ...]:
    """Return the words of a program's command line, from its workload, whose shape nobody checked, before
    them variables that set flags. They are of the container `called` so, or of all where none is.
    """
    every = containers(workload)
    some = [container for container in every if container.get("name") == called] or every
    texts = (str(text) for each in some for key in ("command", "args") for text in list_at(each, key))
    variables = (word for container in some for word in environment(container.get("env")))
    return (*variables, *(word for text in texts for word in text.split()))


CONTROLLER = "kube-controller-manager"
ALLOCATE = "allocate-node-cidrs"
_HYBRID = (
    f"routing-mode: {HYBRID}, which ipamc does not support (cilium/cilium#45001): it does not write "
    "routingMode, nor check its rules"
)

_MINOR = re.compile(r":v?(\d{1,3})\.(\d{1,3})(?=[.@-]|$)").search
_KUBELET = re.compile(r"v?(\d{1,3})\.(\d{1,3})").match
_RELEASE = re.compile(r"(?:^|(?:^|-)cilium-)v?(\d{1,3})\.(\d{1,3})(?=[.-]|$)").search


class Program(NamedTuple):
    """A pod of Cilium's agent or operator, or, if the dump has no such pod, the DaemonSet or Deployment."""

    of: SeenPod | SeenObject
    image: str
    version: Version | None
    """From the image's tag, else from labels; None if neither has it."""


def programs_of(dump: Dump) -> Iterator[Program]:
    """Yield the Cilium agents and operators of a dump."""
    pods = [pod for pod in dump.pods if pod.app in {AGENT, OPERATOR} and not pod.has_ended]
    yield from (Program(pod, pod.image, _minor(pod.image, pod.release)) for pod in pods)
    seen = {pod.app for pod in pods}
    for app, kind in ((AGENT, "DaemonSet"), (OPERATOR, "Deployment")):
        workload = dump.other(kind, app)
        if workload and app not in seen:
            image = next((str(each.get("image") or "") for each in containers(workload.value)), "")
            releases = [
                release_of(texts_of(value_at(workload, *keys, "metadata", "labels")))
                for keys in ((), ("spec", "template"))
            ]
            yield Program(workload, image, _minor(image, *releases))


def _minor(image: str, *releases: str) -> Version | None:
    """Return the minor in the tag or in a release of an image: `1.18.5`, `cilium-1.18.5`."""
    return _version(_MINOR(image)) or next(
        (found for text in releases if (found := _version(_RELEASE(text)))), None
    )


def _version(match: re.Match[str] | None) -> Version | None:
    return (int(match[1]), int(match[2])) if match else None


def minor_of_kubelet(text: str) -> Version | None:
    """Return the minor of a kubelet's version in its Node."""
    return _version(_KUBELET(text))


def texts_of(data: Any) -> dict[str, str]:
    """Return the entries of an unchecked mapping as texts: booleans as JSON has them; no nulls."""
    entries = data.items() if isinstance(data, dict) else ()
    texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in entries}
    return {key: str(value) for key, value in texts.items() if value is not None}


def value_at(item: SeenObject | None, *keys: str) -> Any:
    """Return the value at a path in an unchecked object; None if there is none."""
    return member(item.value if item else None, *keys)


def operator_of(dump: Dump, namespace: str = "") -> tuple[SeenPod | SeenObject | None, tuple[str, ...]]:
    """Return the operator's Deployment, or else a Pod of it, and its words; None and () without both."""
    deployment = dump.other("Deployment", OPERATOR, namespace)
    if words := words_of(deployment.value if deployment else None):
        return deployment, words
    pod = next((pod for pod in dump.pods if pod.app == OPERATOR and not pod.has_ended), None)
    return pod or deployment, pod.words if pod else ()


def agent_flags(dump: Dump) -> dict[str, str]:
    """Return the arguments of the agents, which override keys of cilium-config."""
    agents = dump.other("DaemonSet", AGENT)
    return arguments(words_of(agents.value, "cilium-agent")) if agents else {}


def odd_flags(dump: Dump) -> Iterator[Diagnostic]:
    """Yield the flags of Cilium and of kube-controller-manager that are not what Go reads. O(pods)."""
    config, (operator, words) = dump.other("ConfigMap", CONFIG), operator_of(dump)
    second = (each for each in dump.of_kind("ConfigMap") if each.name == CONFIG and each is not config)
    for each in second:
        yield rules.unreadable(each.at, f"namespace {each.namespace}", [f"a second {CONFIG}"])
    agents = dump.other("DaemonSet", AGENT)
    if agents and (odd := selectors_of(agents)[1]):
        yield rules.unreadable(agents.at, f"DaemonSet {AGENT}", odd)
    kubeadm = dump.other("ConfigMap", KUBEADM, "kube-system")
    pod = next((pod for pod in dump.pods if pod.app == CONTROLLER), None)
    for source, whose, flags in (
        (config, CONFIG, texts_of(value_at(config, "data"))),
        (operator, f"the command line of {OPERATOR}", operator_keys(words)),
        (agents, "the command line of the agents", agent_flags(dump)),
        *((each, f"CiliumNodeConfig {each.name}", each.defaults) for each in dump.node_configs),
        (pod or kubeadm, CONTROLLER, controller_flags(dump)),
    ):
        for name, problem in odd_values(flags):
            at = source.at if source else dump.at
            yield rules.unreadable(at, whose, [f"{name}: {problem}"], f"correct {name} there")
        if source and flags.get("routing-mode") == HYBRID:
            yield rules.unreadable(source.at, whose, [_HYBRID], make=note)


def controller_flags(dump: Dump) -> dict[str, str]:
    """Return flags of kube-controller-manager from its pods, else from kubeadm's configuration.
    A pod wins, even without a flag: the manifest may have been changed after kubeadm wrote it.
    """
    found = dict(_kubeadm_arguments(dump))
    pods = [pod for pod in dump.pods if pod.app in {CONTROLLER, "kube-apiserver"}]
    if any(pod.app == CONTROLLER for pod in pods):
        found = {key: value for key, value in found.items() if key not in {ALLOCATE, "cluster-cidr"}}
    for pod in pods:
        found |= arguments(pod.words)
    return found


def _kubeadm_arguments(dump: Dump) -> Iterator[tuple[str, str]]:
    """Yield the flags that kubeadm derives from its ClusterConfiguration (v1beta2 to v1beta4)."""
    config = dump.other("ConfigMap", KUBEADM, "kube-system")
    text = texts_of(config.value.get("data")).get("ClusterConfiguration", "") if config else ""
    try:
        value: Any = next((document.value for document in yaml_documents("kubeadm", text)), None)
    except Unreadable:
        yield "cluster-cidr", "ClusterConfiguration:no-YAML"
        return
    for key, flag in (("podSubnet", "cluster-cidr"), ("serviceSubnet", "service-cluster-ip-range")):
        if (subnet := member(value, "networking", key)) is not None:
            yield flag, str(subnet)
    if member(value, "networking", "podSubnet"):
        yield ALLOCATE, "true"  # kubeadm, controlplane/manifests.go
    arguments = member(value, "controllerManager", "extraArgs")
    if isinstance(arguments, dict):
        yield from ((str(key), str(item)) for key, item in arguments.items())
    elif isinstance(arguments, list):  # v1beta4
        for item in arguments:
            if isinstance(item, dict):
                yield str(item.get("name")), str(item.get("value"))


def list_at(value: Any, *keys: str) -> list[Any]:
    """Return the list at a path in an unchecked value; another value there as the only entry, [] for none."""
    found = member(value, *keys)
    return found if isinstance(found, list) else [] if found is None else [found]


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
    way: str = f"{_INSTALL} if the offering allows it; else use only show and audit"
    """How ipamc can be used there."""


_TUNNEL = "with a tunnel, because the VPC does not route these blocks"
OFFERINGS = (
    Offering(
        name="GKE",
        provider="gce://",
        labels=("cloud.google.com/gke-",),
        kubelet="-gke.",
        way="show, which and audit work; for another range, add a node pool: gcloud container node-pools "
        "create --pod-ipv4-range; Google manages the Cilium of Dataplane V2",
    ),
    Offering(
        name="EKS",
        provider="aws://",
        labels=("eks.amazonaws.com/", "alpha.eksctl.io/cluster-name"),
        kubelet="-eks-",
        sets_pod_cidrs=False,
        way=f"{_INSTALL} instead of the AWS VPC CNI or ipam: eni, {_TUNNEL}",
    ),
    Offering(
        name="AKS",
        provider="azure://",
        labels=("kubernetes.azure.com/cluster", "kubernetes.azure.com/agentpool"),
        way=f"create it with az aks create --network-plugin none and {_INSTALL}; Microsoft manages the "
        "Cilium of Azure CNI",
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
