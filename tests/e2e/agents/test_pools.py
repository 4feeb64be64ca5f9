"""Multi-pool mode: which pool a pod's address comes from, by the node's labels, the pod's annotation, and the fields of pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address, ip_network

import pytest

from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import PRE_ALLOCATION, can, needed_addresses
from tests.e2e.agents import clusters
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import HEALTH, Lab, lost
from tests.e2e.agents.node import RUN
from tests.e2e.agents.pod import Pod
from tests.e2e.api import CILIUM_NODES, MERGE, NODES
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.rules import shows
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


def unknown(lab: Lab) -> None:
    """Say that the apiserver refuses a field of a CiliumPodIPPool, which the CRD of this minor does not have."""
    with pytest.raises(AssertionError, match="field not declared in schema"):
        lab.apply()


def is_of(lab: Lab, pod: str, cidr: str) -> bool:
    """Tell whether a pod's address is of a range."""
    return ip_address(lab.pods[pod].address) in ip_network(cidr)


@pytest.mark.deep("node")
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


@pytest.mark.deep(part=0)
def test_a_namespaces_annotation_chooses_another_pool(begin: Begin) -> None:
    lab = started(begin, "pool")
    with in_namespace(lab, annotations={"ipam.cilium.io/ip-pool": "blue"}):
        lab.start_pods("a2")
    assert is_of(lab, "a2", BLUE)
    assert not lab.unreachable()


@contextmanager
def in_namespace(lab: Lab, **metadata: Mapping[str, str]) -> Iterator[None]:
    """Give the namespace of all pods annotations or labels, and take them away."""
    path = "/api/v1/namespaces/default"
    lab.api.sure("PATCH", path, {"metadata": metadata}, MERGE)
    yield
    gone = {field: dict.fromkeys(values) for field, values in metadata.items()}
    lab.api.sure("PATCH", path, {"metadata": gone}, MERGE)


def test_running_pods_keep_their_addresses_where_a_nodes_label_chooses_another_pool(begin: Begin) -> None:
    """New ones get them of the other pool once the agent starts again."""
    lab = started(begin, "pool")
    lab.api.change(f"{NODES}/a", lambda node: node["metadata"]["labels"].update(rack="blue"))
    lab.start_pods("a2")
    assert is_of(lab, "a2", RED)
    addresses = lab.addresses_of_endpoints()
    with lab.pinging("a1", "b1") as pings:
        lab.agents("a")
        lab.ready()
        lab.start_pods("a3")
    assert not lost(pings)
    assert is_of(lab, "a3", BLUE)
    assert addresses.items() <= lab.addresses_of_endpoints().items()
    lab.refreshed()
    lab.as_locked()


def requested(lab: Lab, node: str) -> dict[str, int]:
    """Return how many addresses of IPv4 an agent asks for, by pool."""
    some = lab.api.get(f"{CILIUM_NODES}/{node}")["spec"]["ipam"]["pools"]["requested"]
    return {each["pool"]: each["needed"]["ipv4-addrs"] for each in some}


@pytest.mark.deep(part=0)
def test_an_agent_asks_for_the_second_next_multiple_of_its_pre_allocation(begin: Begin) -> None:
    lab = begin(clusters.documents("shared", "a"), "a")
    lab.install()
    lab.agents("a")
    lab.ready()

    def asks(in_use: int) -> None:
        wanted = {"default": needed_addresses(in_use, PRE_ALLOCATION)}
        until(lambda: requested(lab, "a") == wanted, f"the agent, which uses {in_use}, asks for {wanted}", 60)

    lab.start_pods("a1")  # one address is the agent's; up to 1.15 it does not ask anew for that alone
    asks(2)
    lab.start_pods(*(f"a{number}" for number in range(2, 9)))
    asks(9)


def test_a_pools_podselector_chooses_it_for_pods_of_every_node(begin: Begin, operator: Operator) -> None:
    blue = {"podSelector": {"matchLabels": {"app": "a2"}}}
    if not can(operator.version, Capability.POD_SELECTORS):
        unknown(begin(documents("pool", **blue), "ab", labels=RACKS, without=["IPC0562"]))
        return
    lab = started(begin, "pool", **blue)
    lab.start_pods("a2", "a3")
    assert is_of(lab, "a2", BLUE)
    assert is_of(lab, "a3", RED)
    assert not lab.unreachable()


@pytest.mark.deep(part=0)
def test_a_pools_namespaceselector_chooses_it_for_pods_of_a_namespace(
    begin: Begin, operator: Operator
) -> None:
    if not can(operator.version, Capability.POD_SELECTORS):
        pytest.skip("namespaceSelector is of Cilium 1.19")
    lab = started(begin, "pool", namespaceSelector={"matchLabels": {"tenant": "blue"}})
    assert is_of(lab, "a1", RED)
    with in_namespace(lab, labels={"tenant": "blue"}):
        lab.start_pods("a2")
    assert is_of(lab, "a2", BLUE)
    assert not lab.unreachable()


def test_a_pod_that_two_pools_select_gets_no_address(begin: Begin, operator: Operator) -> None:
    if not can(operator.version, Capability.POD_SELECTORS):
        pytest.skip("podSelector is of Cilium 1.19")
    both = {"podSelector": {"matchLabels": {"app": "a2"}}}
    some = documents("pool", **both)
    some[1]["spec"].update(both)
    lab = begin(some, "ab", labels=RACKS, without=["IPC0565"])
    lab.install()
    lab.start_pods("a1", "b1")
    with Pod("a2", lab.nodes["a"]) as pod:
        until(
            lambda: "multiple CiliumPodIPPools match pod" in pod.cni("ADD").stdout,
            "the CNI plugin says why",
            pause=1,
        )
    lab.start_pods("a2", **{"ipam.cilium.io/ip-pool": "blue"})  # the annotation decides
    assert is_of(lab, "a2", BLUE)


NAMED = {"ipam.cilium.io/ip-pool": "one"}
ONE = "10.3.0.7"


def with_one(begin: Begin, operator: Operator, pinning: str) -> Lab:
    """Run the cluster with a pool of one address for pods alone; no line is of it, and the audit is quiet."""
    if not can(operator.version, Capability.TINY_BLOCKS):
        pytest.skip("up to 1.16 no pod gets the address of a /32")
    one = pool("one", ipv4={"cidrs": [f"{ONE}/32"], "blockSize": 32}, podsOnly=True)
    lab = begin([*documents(pinning), one], "ab", labels=RACKS)
    lab.install()
    lab.start_pods("a1", "b1")
    assert "one" not in {pool for lines in lab.site.lock().values() for pool, _ in lines}
    assert "found 0 problems" in lab.audit()
    return lab


def holder(lab: Lab) -> list[str]:
    """Return the nodes that have the block of one address."""
    return [node for node, blocks in lab.blocks().items() if f"{ONE}/32" in blocks]


@pytest.mark.deep("pool")
@pytest.mark.parametrize("pinning", ["pool", "node"])
def test_the_address_of_a_pod_goes_with_it_to_another_node(
    begin: Begin, operator: Operator, pinning: str
) -> None:
    lab = with_one(begin, operator, pinning)
    for name in ("a2", "b2", "a3"):
        lab.start_pods(name, **NAMED)
        assert lab.pods[name].address == ONE
        assert holder(lab) == [name[0]]
        until(lambda: not lab.unreachable(), "all reach all", 300)
        assert "found 0 problems" in lab.audit()
        lab.refreshed()
        assert ("one", f"{ONE}/32") in lab.site.lock()[name[0]]
        lab.as_locked()
        lab.end_pod(name)


@pytest.mark.deep(part=0)
def test_the_address_stays_with_a_node_that_is_down_until_it_is_gone(
    begin: Begin, operator: Operator
) -> None:
    lab = with_one(begin, operator, "pool")
    lab.start_pods("a2", **NAMED)
    lab.nodes["a"].stop_agent()
    with Pod("b2", lab.nodes["b"], NAMED) as pod:
        # The agent may not know the Pod yet: a container runtime asks again, too.
        until(lambda: "pool not (yet) available" in pod.cni("ADD").stdout, "the pool has nothing for b")
        assert holder(lab) == ["a"]
        lab.api.delete(f"{CILIUM_NODES}/a")
        pod.connect()
        assert pod.address == ONE


@pytest.mark.deep(part=0)
@shows("IPC0534")
def test_two_nodes_of_one_hostname_take_addresses_of_one_pool(begin: Begin) -> None:
    """Each reads both CiliumNodeConfigs, and the last name wins."""
    same = {"kubernetes.io/hostname": "same"}
    some = [
        cluster("multi-pool", ipam={"pinning": "node"}),
        pool("default", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 27}),
        inventory([{"name": name, "labels": same} for name in "ab"]),
    ]
    lab = begin(some, "ab", labels=dict.fromkeys("ab", same), without=["IPC0534"])
    lab.apply()
    lab.roll_out()
    lab.agents("ab")
    read = [lab.nodes[name].run("cat", f"{RUN}/config/ipam-default-ip-pool") for name in "ab"]
    assert read == ["default.b", "default.b"]


@pytest.mark.deep("29")
@pytest.mark.parametrize("size", [29, 28, 27])
def test_an_idle_agent_asks_for_no_more_than_the_block_that_its_node_is_pinned_to(
    begin: Begin, size: int
) -> None:
    """What ipamc sets the pre-allocation for: the agent's own addresses are among them, those of health endpoints, too."""
    some = [
        cluster("multi-pool", ipam={"pinning": "node"}),
        pool("default", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": size}),
        inventory([{"name": "a"}, {"name": "b"}]),
    ]
    lab = begin(some, "ab", settings=HEALTH)
    lab.install()
    lab.agents(lab.names)  # the first time they ask before they know what they need for themselves
    lab.ready()
    for node in "ab":
        (asked,) = requested(lab, node).values()
        assert 0 < asked <= 2 ** (32 - size) - 2
        assert not lab.error(node)
    lab.start_pods("a1", "b1")
    lab.as_locked()


@pytest.mark.deep(part=0)
def test_pods_get_the_first_and_the_last_address_where_a_pool_allows_it(
    begin: Begin, operator: Operator
) -> None:
    blue = {"allowFirstIP": True, "allowLastIP": True}
    if not can(operator.version, Capability.ALLOW_ENDS):
        unknown(begin(documents("pool", **blue), "ab", labels=RACKS, without=["IPC0562"]))
        return
    lab = started(begin, "pool", **blue)
    (block,) = lab.blocks()["b"]
    every = ip_network(block)
    names = [f"b{number}" for number in range(2, every.num_addresses)]
    lab.start_pods(*names)  # one address is the agent's
    used = {ip_address(pod.address) for pod in lab.pods.values() if pod.node.name == "b"}
    assert {every[0], every[-1]} & used
