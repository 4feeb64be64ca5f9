"""What is no fault, however odd it looks; and what a dump cannot tell."""

from __future__ import annotations

from typing import Any

import pytest

from tests.review.audit.test_faults import Plant, config, drop, ipam, made_again, node_cidrs, router, says
from tests.review.audit.worlds import WORLDS, living
from tests.support import dumps
from tests.support.living import Living, controller, endpoint, operator, short

YOUNG = "2026-11-22T11:58:00Z"


def pod(live: Living, name: str, on: str, ip: str, **status: Any) -> Any:
    made = dumps.pod(name, on, ip)
    made["status"].update(status)
    live.add(made)


def deleting(live: Living, name: str) -> Any:
    live[name]["metadata"]["deletionTimestamp"] = "2026-11-22T11:59:00Z"


def calico(live: Living) -> Any:
    """Let node d run Calico yet: no agent wrote its CiliumNode."""
    seen = live["CiliumNode d"]
    seen["metadata"].pop("ownerReferences")
    seen["spec"].pop("addresses")
    drop(live, "Pod kube-system cilium-d", "CiliumEndpoint default web-d", "Pod default web-d")
    made = dumps.pod("calico-node-d", "d", "192.168.0.4", namespace="kube-system", hostNetwork=True)
    made["metadata"]["labels"] = {"k8s-app": "calico-node"}
    live.add(made, dumps.pod("web-d", "d", "172.16.0.9"))


HARMLESS: dict[str, tuple[tuple[str, ...], Plant]] = {
    "iptables masquerading in modes with one range a node": (
        ("kubernetes", "cluster-pool", "cluster-pool adopt"),
        lambda live: config(live, enable_ipv4_masquerade="true"),
    ),
    "iptables masquerading on interfaces": (
        ("multi-pool pool", "crd"),
        lambda live: config(live, enable_ipv4_masquerade="true", egress_masquerade_interfaces="eth+"),
    ),
    "a route to each pod": (
        ("multi-pool old",),
        lambda live: config(live, routing_mode="native", enable_endpoint_routes="true"),
    ),
    "a route to each block, from 1.18 on": (
        ("multi-pool pool", "multi-pool node"),
        lambda live: config(live, routing_mode="native"),
    ),
    "masquerading by eBPF": (
        ("multi-pool pool", "crd"),
        lambda live: config(live, enable_ipv4_masquerade="true", enable_bpf_masquerade="true"),
    ),
    "masquerading of a family that the cluster does not have": (
        ("multi-pool pool", "crd"),
        lambda live: config(live, enable_ipv4_masquerade="false", enable_ipv6_masquerade="true"),
    ),
    "a pod that has ended has an address of before": (
        WORLDS,
        lambda live: pod(live, "job", "a", "10.44.0.1", phase="Succeeded"),
    ),
    "its address was given out again": (
        ("cluster-pool", "kubernetes"),
        lambda live: pod(live, "job", "a", "10.1.0.2", phase="Failed"),
    ),
    "a pod that is being deleted has its address yet": (
        ("cluster-pool",),
        lambda live: (
            pod(live, "old", "a", "10.1.0.2"),
            live.add(endpoint("old", "10.1.0.2")),
            deleting(live, "Pod default old"),
        ),
    ),
    "a pod of the host's network": (
        WORLDS,
        lambda live: live.add(dumps.pod("proxy", "a", "192.168.0.1", hostNetwork=True)),
    ),
    "a pod without a node": (WORLDS, lambda live: live.add(dumps.pod("waits", ""))),
    "a pod that is younger than the list of CiliumEndpoints": (
        WORLDS,
        lambda live: pod(live, "young", "a", "10.1.0.3", startTime=YOUNG),
    ),
    "a pod in a block that is younger than the list of CiliumNodes": (
        ("multi-pool pool",),
        lambda live: pod(live, "young", "a", "10.1.0.200", startTime=YOUNG),
    ),
    "a node of another network": (("cluster-pool", "multi-pool pool"), calico),
    "a router with an address of the user's choice": (
        ("cluster-pool",),
        lambda live: (config(live, local_router_ipv4="172.31.0.1"), router(live, "a", "172.31.0.1")),
    ),
    "an agent that has just started": (
        WORLDS,
        lambda live: (
            made_again(live, "a"),
            live["Pod kube-system cilium-a"]["status"].update(startTime=YOUNG),
        ),
    ),
    "an agent that does not run": (
        ("cluster-pool",),
        lambda live: (
            made_again(live, "a"),
            live["Pod kube-system cilium-a"]["status"].update(phase="Pending"),
        ),
    ),
    "a link-local router": (("cluster-pool",), lambda live: router(live, "a", "169.254.9.9")),
    "a node that is being deleted and not listed": (
        ("cluster-pool",),
        lambda live: (live.add(dumps.node("new")), deleting(live, "Node new")),
    ),
    "a node of the operator that git does not know": (
        ("cluster-pool adopt",),
        lambda live: live.add(dumps.node("new"), dumps.cilium_node("new", "10.9.0.0/26")),
    ),
    "a block of ipamc's that the operator's list does not have": (
        ("cluster-pool adopt",),
        lambda live: says(live, "a", "allocator not configured for the requested CIDR 10.1.0.0/26"),
    ),
    "a node that has all of its own pool": (
        ("multi-pool node",),
        lambda live: says(
            live, "a", 'failed to allocate ipv4 address for node "a" from pool "default.a": pool empty'
        ),
    ),
    "a controller manager that allocates nothing": (
        ("kubernetes",),
        lambda live: live.add(
            controller("--allocate-node-cidrs=false", "--cluster-cidr=10.244.0.0/16"),
            dumps.config_map(
                "kubeadm-config", ClusterConfiguration="networking:\n  podSubnet: 10.244.0.0/16\n"
            ),
        ),
    ),
    "kubeadm that was told not to": (
        ("kubernetes",),
        lambda live: live.add(
            dumps.config_map(
                "kubeadm-config",
                ClusterConfiguration='controllerManager:\n  extraArgs:\n  - name: allocate-node-cidrs\n    value: "false"\nnetworking:\n  podSubnet: 10.244.0.0/16\n',
            )
        ),
    ),
    "a Node with the block of its CiliumNode": (
        ("cluster-pool", "multi-pool pool"),
        lambda live: node_cidrs(live, "a", "10.1.0.0/26"),
    ),
    "podCIDRs of a former mode": (
        ("multi-pool pool", "multi-pool node"),
        lambda live: ipam(live, "a").update(podCIDRs=["10.244.0.0/24"]),
    ),
    "a key of cilium-config that ipamc does not render": (
        ("cluster-pool",),
        lambda live: config(live, routing_mode="native"),
    ),
    "a list in another order": (
        ("cluster-pool dual",),
        lambda live: config(live, cluster_pool_ipv4_cidr=" 10.1.0.0/24  "),
    ),
    "other arguments of the operator": (
        ("multi-pool pool",),
        lambda live: live.add(operator("--nodes-gc-interval=0")),
    ),
    "labels and annotations of others": (
        ("kubernetes", "multi-pool pool"),
        lambda live: [
            item["metadata"].setdefault("labels", {}).update(theirs="yes")
            for item in live.objects.values()
            if item["kind"] in {"Node", "CiliumPodIPPool"}
        ],
    ),
}


@pytest.mark.deep(part=3)
@pytest.mark.parametrize(
    ("world", "plant"),
    [
        pytest.param(world, plant, id=f"{name} - {world}")
        for name, (worlds, plant) in HARMLESS.items()
        for world in worlds
    ],
)
def test_no_false_alarm(world: str, plant: Plant) -> None:
    live = living(world)
    plant(live)
    assert short(live.audit()) == []


@pytest.mark.deep(part=3)
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(
    "kinds",
    [("Pod",), ("CiliumEndpoint",), ("Pod", "CiliumEndpoint"), ("ConfigMap", "Deployment", "Pod")],
    ids="-".join,
)
def test_what_a_dump_lacks_is_said_and_no_problem(world: str, kinds: tuple[str, ...]) -> None:
    live = living(world)
    live.without(*kinds)
    (found,) = live.audit()
    assert (found.severity.word, found.code) == ("note", "IPC0904")
    for kind in {"Pod", "CiliumEndpoint"} & {*kinds}:
        assert kind in found.message


@pytest.mark.deep(part=3)
@pytest.mark.parametrize("world", WORLDS)
def test_a_dump_of_nodes_alone_has_no_problems_of_theirs(world: str) -> None:
    live = living(world)
    live.without(*{item["kind"] for item in live.objects.values()} - {"Node"})
    found = live.audit()
    assert {each.code for each in found if each.severity.word != "note"} <= {"IPC0943"}
    assert all("has no " in each.message for each in found if each.code == "IPC0943")
