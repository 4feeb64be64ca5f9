"""Running clusters of each kind as kubectl prints them, with the truth about them: which blocks the pods of each node use.

    python -m tests.support.live_clusters cluster-pool --nodes 300 --pods 6 > dump.json

Every node runs: it is Ready, its agent wrote its own addresses, and pods of the pod network run on it beside pods of the host's.
One node, `joining`, has only just registered: it has nothing yet, and may get any block that is free.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from itertools import islice
from typing import Any, NamedTuple

from tests.support import calico, dumps, living
from tests.support.dumps import Object

Blocks = Mapping[str, tuple[str, ...]]
JOINING = "joining"
LEFT_OVER = "10.244.0.0/14"
"""The range of a kube-controller-manager of which nobody uses a block."""


class Live(NamedTuple):
    """A running cluster, and what is true of it."""

    objects: list[Object]
    truth: Blocks
    """The blocks that the pods of each node use; a node without any is not here."""
    mode: str
    """What a person answers who is asked for the mode; "": there is no right answer."""

    @property
    def pods(self) -> Iterator[tuple[str, str]]:
        """Yield (address, node) of all pods of the pod network."""
        for item in self.objects:
            if item["kind"] == "Pod" and not item["spec"].get("hostNetwork"):
                yield from ((each["ip"], item["spec"]["nodeName"]) for each in item["status"]["podIPs"])


def names(number: int) -> list[str]:
    """Return names of nodes in three racks."""
    return [f"node-{'abc'[at % 3]}-{at // 3 + 1:03}" for at in range(number)]


def nth(blocks: str, prefix: int, number: int) -> list[str]:
    """Return blocks of a range that are some way apart: neither the first ones, nor in the order of names."""
    every = list(map(str, islice(ip_network(blocks).subnets(new_prefix=prefix), 4, 4 + 2 * number)))
    return (every[1::2] + every[::2])[:number]


def host(block: str, number: int) -> str:
    """Return an address of a block."""
    return str(ip_address(int(ip_network(block).network_address) + number))


def node_ip(at: int) -> str:
    return f"192.168.{at // 200}.{at % 200 + 10}"


def node(
    at: int,
    name: str,
    *pod_cidrs: str,
    cilium: bool = True,
    provider: str = "",
    labels: Mapping[str, str] = {},
) -> Object:
    """Return a Node on which pods run."""
    made = dumps.node(
        name,
        *pod_cidrs,
        ip=node_ip(at),
        labels={"rack": name.split("-")[1], "topology.kubernetes.io/zone": f"z{at % 2}", **labels},
    )
    made["metadata"]["annotations"] = {"node.alpha.kubernetes.io/ttl": "0"}
    if cilium:
        made["status"]["conditions"].append(
            {"type": "NetworkUnavailable", "status": "False", "reason": "CiliumIsUp"}
        )
    if provider:
        made["spec"]["providerID"] = f"{provider}/{name}"
    return made


def cilium_node(
    at: int, name: str, blocks: Sequence[str], pod_cidrs: Sequence[str] = (), **more: Any
) -> Object:
    """Return the CiliumNode that an agent wrote, with its own addresses of the node's blocks."""
    first = {ip_network(block).version: block for block in reversed(blocks)}
    made = dumps.cilium_node(name, *pod_cidrs, router=[host(block, 1) for block in first.values()], **more)
    made["spec"]["addresses"].insert(0, {"type": "InternalIP", "ip": node_ip(at)})
    for key, number in (("health", 2), ("ingress", 3)):
        made["spec"][key] = {
            "ipv4" if family == 4 else "ipv6": host(block, number) for family, block in first.items()
        }
    return made


def workload(
    at: int, name: str, blocks: Sequence[str], pods: int, *, endpoints: bool = True
) -> Iterator[Object]:
    """Yield pods of a node, in all its blocks, with their CiliumEndpoints, and a pod of the host's network."""
    first = {ip_network(block).version: block for block in reversed(blocks)}
    for number in range(pods):
        own = [*first.values()] if number else [blocks[-1]]
        ips = [host(block, 7 + number) for block in own]
        yield dumps.pod(f"web-{name}-{number}", name, *ips, namespace="shop")
        if endpoints:
            yield living.endpoint(f"web-{name}-{number}", *ips, node=node_ip(at), namespace="shop")
    if at < 2:
        ips = [host(block, 6) for block in first.values()]
        yield dumps.pod(f"coredns-{at}", name, *ips, namespace="kube-system")
        if endpoints:
            yield living.endpoint(f"coredns-{at}", *ips, node=node_ip(at), namespace="kube-system")
    yield dumps.pod(f"kube-proxy-{name}", name, node_ip(at), namespace="kube-system", hostNetwork=True)


def cilium(every: Sequence[str], version: str = "v1.18.3", **config: str) -> Iterator[Object]:
    """Yield what Cilium consists of: agents, operator, DaemonSet, Deployment, cilium-config."""
    for at, name in enumerate(every):
        agent = living.agent(name, version)
        agent["status"].update(podIP=node_ip(at), podIPs=[{"ip": node_ip(at)}])
        yield agent
    operator = living.operator()
    container = operator["spec"]["template"]["spec"]["containers"][0]
    container["image"] = f"quay.io/cilium/operator-generic:{version}"
    yield operator
    yield {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "cilium", "namespace": "kube-system", "labels": {"k8s-app": "cilium"}},
        "spec": {
            "template": {
                "spec": {
                    "containers": [{"name": "cilium-agent", "image": f"quay.io/cilium/cilium:{version}"}]
                }
            }
        },
    }
    made = dumps.config_map(enable_ipv4="true", **{"enable_ipv6": "false", **config})
    made["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
    made["metadata"]["annotations"] = {"meta.helm.sh/release-name": "cilium"}
    yield made


def manager(cidr: str, first: str, *more: str) -> Object:
    """Return kube-controller-manager, which gives Nodes podCIDRs."""
    return living.controller("--allocate-node-cidrs=true", f"--cluster-cidr={cidr}", *more, node=first)


def cluster_pool(number: int, pods: int, *, left_over: bool = False, provider: str = "") -> Live:
    """Blocks of Cilium's operator. `left_over`: kube-controller-manager gave each Node podCIDRs that nobody uses."""
    every = names(number)
    truth = dict(zip(every, ((block,) for block in nth("10.128.0.0/15", 24, number)), strict=True))
    unused = nth(LEFT_OVER, 24, number) if left_over else []
    objects = [node(at, name, *unused[at : at + 1], provider=provider) for at, name in enumerate(every)]
    objects.append(dumps.node(JOINING, ip="192.168.99.1", labels={"rack": "a"}, ready=False))
    objects += [cilium_node(at, name, truth[name], truth[name]) for at, name in enumerate(every)]
    for at, name in enumerate(every):
        objects += workload(at, name, truth[name], pods)
    objects += cilium(
        every,
        ipam="cluster-pool",
        cluster_pool_ipv4_cidr="10.128.0.0/15",
        cluster_pool_ipv4_mask_size="24",
    )
    if left_over:
        objects.append(manager(LEFT_OVER, every[0]))
    return Live(objects, truth, "cluster-pool")


def kubernetes(number: int, pods: int, *, provider: str = "") -> Live:
    """Dual-stack blocks of kube-controller-manager, which agents copy. `provider`: a managed cluster such as GKE's."""
    every = names(number)
    four = nth("10.64.0.0/14", 24, number)
    six = [] if provider else nth("fd00:10:64::/48", 64, number)
    truth = {name: (four[at], *six[at : at + 1]) for at, name in enumerate(every)}
    labels = {"cloud.google.com/gke-nodepool": "default-pool"} if provider else {}
    objects = [
        node(at, name, *truth[name], provider=provider, labels=labels) for at, name in enumerate(every)
    ]
    objects += [cilium_node(at, name, truth[name], truth[name]) for at, name in enumerate(every)]
    for at, name in enumerate(every):
        objects += workload(at, name, truth[name], pods)
    on = "false" if provider else "true"
    objects += cilium(every, ipam="kubernetes", enable_ipv6=on, k8s_require_ipv4_pod_cidr="true")
    if not provider:
        words = ("--node-cidr-mask-size-ipv4=24", "--node-cidr-mask-size-ipv6=64")
        objects.append(manager("10.64.0.0/14,fd00:10:64::/48", every[0], *words))
    return Live(objects, truth, "kubernetes")


def multi_pool(number: int, pods: int, *, left_over: bool = False) -> Live:
    """Blocks of CiliumPodIPPools: rack b starts in pool mars, and every fourth node has a second block.

    `left_over`: Nodes and CiliumNodes have podCIDRs of a former mode, which nobody uses.
    """
    every = names(number)
    default, mars = nth("10.10.0.0/16", 27, 2 * number), nth("10.20.0.0/16", 27, number)
    unused = nth(LEFT_OVER, 24, number) if left_over else []
    objects: list[Object] = []
    seen: list[Object] = []
    truth: dict[str, tuple[str, ...]] = {}
    for at, name in enumerate(every):
        given = {"mars": mars[at : at + 1]} if at % 3 == 1 else {"default": default[at : at + 1]}
        if at % 4 == 3:
            given = {**given, "default": [*given.get("default", ()), default[number + at]]}
        truth[name] = tuple(block for blocks in given.values() for block in blocks)
        left = unused[at : at + 1]
        objects.append(node(at, name, *left))
        made = cilium_node(at, name, truth[name], allocated=given)
        if left:
            made["spec"]["ipam"]["podCIDRs"] = left
        made["spec"]["ipam"]["pools"]["requested"] = [
            {"pool": pool, "needed": {"ipv4-addrs": 8}} for pool in given
        ]
        seen.append(made)
    objects += [dumps.node(JOINING, ip="192.168.99.1", labels={"rack": "a"}, ready=False), *seen]
    for at, name in enumerate(every):
        objects += workload(at, name, truth[name], pods)
    objects += [
        dumps.pool("default", mask=27, cidrs=["10.10.0.0/16"]),
        dumps.pool("mars", mask=27, cidrs=["10.20.0.0/16"]),
        {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumNodeConfig",
            "metadata": {"name": "mars", "namespace": "kube-system"},
            "spec": {
                "nodeSelector": {"matchLabels": {"rack": "b"}},
                "defaults": {"ipam-default-ip-pool": "mars"},
            },
        },
        *cilium(every, ipam="multi-pool", routing_mode="native", ipv4_native_routing_cidr="10.0.0.0/8"),
    ]
    if left_over:
        objects.append(manager(LEFT_OVER, every[0]))
    return Live(objects, truth, "multi-pool")


def of_calico(number: int, pods: int) -> Live:
    """Blocks of Calico, some nodes with two, and podCIDRs of kube-controller-manager, which nobody uses."""
    every = names(number)
    blocks, unused = nth("10.200.0.0/14", 26, 2 * number), nth(LEFT_OVER, 24, number)
    objects: list[Object] = []
    truth: dict[str, tuple[str, ...]] = {}
    for at, name in enumerate(every):
        truth[name] = (blocks[at], *([blocks[number + at]] if at % 4 == 3 else []))
        made = node(at, name, unused[at], cilium=False)
        made["metadata"]["annotations"]["projectcalico.org/IPv4Address"] = f"{node_ip(at)}/16"
        objects.append(made)
    objects.append(calico.pool("default-ipv4-ippool", "10.200.0.0/14"))
    for at, name in enumerate(every):
        work = list(workload(at, name, truth[name], pods, endpoints=False))
        agent = dumps.pod(f"calico-node-{name}", name, node_ip(at), namespace="kube-system", hostNetwork=True)
        agent["metadata"]["labels"] = {"k8s-app": "calico-node"}
        agent["spec"]["containers"] = [{"name": "calico-node", "image": "docker.io/calico/node:v3.29.1"}]
        objects += [*work, agent]
        for block in truth[name]:
            inside = ip_network(block)
            uses = [
                (int(ip_address(item["status"]["podIP"])) - int(inside.network_address), name, _user(item))
                for item in work
                if not item["spec"].get("hostNetwork") and ip_address(item["status"]["podIP"]) in inside
            ]
            objects += calico.affine(block, name, uses)
    objects += [calico.config(), manager(LEFT_OVER, every[0])]
    return Live(objects, truth, "multi-pool")


def _user(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def eks(number: int, pods: int, *, eni: bool = False) -> Live:
    """No blocks: pods have single addresses of the subnets of their nodes, by AWS's plugin or by Cilium with `eni`."""
    every = names(number)
    objects = [node(at, name, cilium=eni, provider="aws:///eu-central-1a") for at, name in enumerate(every)]
    for at, name in enumerate(every):
        own = [
            f"172.16.{(at + number * each) // 250}.{(at + number * each) % 250 + 2}"
            for each in range(pods + 2)
        ]
        if eni:
            made = dumps.cilium_node(name, addresses=own, used=own, router=own[:1])
            made["spec"]["eni"] = {"vpc-id": "vpc-1", "instance-type": "m5.large"}
            objects.append(made)
        objects += [
            dumps.pod(f"web-{name}-{each}", name, ip, namespace="shop") for each, ip in enumerate(own[2:])
        ]
        if eni:
            objects += [
                living.endpoint(f"web-{name}-{each}", ip, node=node_ip(at), namespace="shop")
                for each, ip in enumerate(own[2:])
            ]
        else:
            agent = dumps.pod(
                f"aws-node-{name}", name, node_ip(at), namespace="kube-system", hostNetwork=True
            )
            agent["metadata"]["labels"] = {"k8s-app": "aws-node"}
            objects.append(agent)
    if eni:
        objects += cilium(every, ipam="eni", routing_mode="native")
    return Live(objects, {}, "")


CLUSTERS: Mapping[str, Callable[[int, int], Live]] = {
    "cluster-pool": cluster_pool,
    "cluster-pool-left-over": lambda number, pods: cluster_pool(number, pods, left_over=True),
    "kubernetes-dual": kubernetes,
    "multi-pool": multi_pool,
    "multi-pool-left-over": lambda number, pods: multi_pool(number, pods, left_over=True),
    "calico": of_calico,
    "gke": lambda number, pods: kubernetes(number, pods, provider="gce://project/europe-west3-a"),
    "eks-cluster-pool": lambda number, pods: cluster_pool(number, pods, provider="aws:///eu-central-1a"),
    "eks-vpc-cni": eks,
    "eks-eni": lambda number, pods: eks(number, pods, eni=True),
}


def main() -> None:
    """Print the dump of a cluster."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cluster", choices=CLUSTERS)
    options.add_argument("--nodes", type=int, default=300)
    options.add_argument("--pods", type=int, default=6, help="pods of the pod network on each node")
    given = options.parse_args()
    sys.stdout.write(dumps.kubectl(*CLUSTERS[given.cluster](given.nodes, given.pods).objects))


if __name__ == "__main__":
    main()
