"""Multi-pool mode: which pool a pod's address comes from, by the node's labels, the pod's annotation, and the fields of pools."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import Lab
from tests.e2e.operator import Operator
from tests.support.fleet import Document, cluster, inventory, pool

RED, BLUE = "10.1.0.0/24", "10.2.0.0/24"
RACKS = {"a": {"rack": "red"}, "b": {"rack": "blue"}}


def documents(pinning: str, **blue: object) -> list[Document]:
    """Make a cluster with a pool for each of two racks; `blue`: more of its fields."""

    def of_rack(name: str, cidr: str, **more: object) -> Document:
        return pool(name, ipv4={"cidrs": [cidr], "blockSize": 27}, nodeSelector=f'rack == "{name}"', **more)

    return [
        cluster("multi-pool", cilium={"managedBy": "helm"}, ipam={"pinning": pinning}),
        of_rack("red", RED),
        of_rack("blue", BLUE, **blue),
        inventory([{"name": name, "labels": labels} for name, labels in RACKS.items()]),
    ]


def started(begin: Begin, pinning: str, **blue: object) -> Lab:
    """Run the cluster, with a pod on each node."""
    lab = begin(documents(pinning, **blue), "ab", labels=RACKS)
    lab.install()
    lab.start_pods("a1", "b1")
    return lab


def is_of(lab: Lab, pod: str, cidr: str) -> bool:
    """Tell whether a pod's address is of a range."""
    return ip_address(lab.pods[pod].address) in ip_network(cidr)


@pytest.mark.parametrize("pinning", ["pool", "node"])
def test_a_nodes_labels_choose_the_pool_of_its_pods(begin: Begin, pinning: str) -> None:
    lab = started(begin, pinning)
    assert is_of(lab, "a1", RED)
    assert is_of(lab, "b1", BLUE)
    lab.as_locked()


def test_a_pods_annotation_chooses_another_pool(begin: Begin) -> None:
    lab = started(begin, "pool")
    lab.start_pods("a2", **{"ipam.cilium.io/ip-pool": "blue"})
    assert is_of(lab, "a2", BLUE)
    assert not lab.unreachable()
    blocks = lab.blocks()
    assert len(blocks["a"]) == 2
    lab.refreshed()
    assert {block for _, block in lab.site.lock()["a"]} == set(blocks["a"])
    lab.as_locked()


def test_a_pools_podselector_chooses_it_for_pods_of_every_node(begin: Begin, operator: Operator) -> None:
    if operator.version < (1, 19):
        pytest.skip("podSelector is of Cilium 1.19")
    lab = started(begin, "pool", podSelector={"matchLabels": {"app": "a2"}})
    lab.start_pods("a2", "a3")
    assert is_of(lab, "a2", BLUE)
    assert is_of(lab, "a3", RED)
    assert not lab.unreachable()


def test_pods_get_the_first_and_the_last_address_where_a_pool_allows_it(
    begin: Begin, operator: Operator
) -> None:
    if operator.version < (1, 20):
        pytest.skip("allowFirstIP and allowLastIP are of Cilium 1.20")
    lab = started(begin, "pool", allowFirstIP=True, allowLastIP=True)
    (block,) = lab.blocks()["b"]
    every = ip_network(block)
    names = [f"b{number}" for number in range(2, every.num_addresses)]
    lab.start_pods(*names)
    used = {ip_address(pod.address) for pod in lab.pods.values() if pod.node.name == "b"}
    assert {every[0], every[-1]} <= used
