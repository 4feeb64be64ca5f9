"""What agents wait for: what rules keep from them, sent all the same, and blocks that come later or are full."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
from tests.e2e.agents.clusters import MODES, documents
from tests.e2e.agents.conftest import Begin, needs_ip6tables
from tests.e2e.agents.lab import HEALTH, Lab, lost
from tests.e2e.agents.node import PATIENCE
from tests.e2e.agents.pod import Pod
from tests.e2e.agents.test_pools import RACKS, requested
from tests.e2e.api import CILIUM_NODES
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.rules import shows
from tests.support.fleet import Document, cluster, inventory, pool

BOTH = ["IPv4", "IPv6"]


def of_rack(name: str, number: int, *, both: bool) -> Document:
    """Make a pool for the nodes of a rack, of both families or of IPv4 alone."""
    ranges: Document = {"ipv4": {"cidrs": [f"10.{number}.0.0/24"], "blockSize": 27}}
    if both:
        ranges["ipv6"] = {"cidrs": [f"fd00:{number}::/112"], "blockSize": 122}
    return pool(name, nodeSelector=f'rack == "{name}"', **ranges)


def started(lab: Lab, *waiting: str) -> None:
    """Apply, and start operator and agents: all become ready but those of nodes that wait."""
    lab.apply()
    lab.roll_out()
    lab.agents(lab.names)
    for name, node in lab.nodes.items():
        if name not in waiting:
            node.wait()


def waits(lab: Lab, node: str, words: str) -> None:
    """Say that an agent waits, and for what: it does not become ready in a time that others need ten times over."""
    agent = lab.nodes[node].agent
    assert agent
    agent.until(lambda: words in agent.said(), f"the agent of {node} says what it waits for", PATIENCE)
    with pytest.raises(AssertionError, match="not after 30 seconds"):
        agent.until(lab.nodes[node].ready, "ready", 30)


@shows("IPC0307")
@pytest.mark.deep(part=0)
@pytest.mark.parametrize("mode", ["bystander", "annotated"])
def test_an_agent_waits_for_a_family_that_no_pool_gives_its_node(
    begin: Begin, operator: Operator, mode: str
) -> None:
    needs_ip6tables(operator.version)
    nodes = inventory([{"name": name, "labels": labels} for name, labels in RACKS.items()])
    some = [of_rack("red", 1, both=True), of_rack("blue", 2, both=False)]
    ours = cluster(ipFamilies=BOTH, **MODES[mode])
    lab = begin([ours, *some, nodes], "ab", labels=RACKS, without=["IPC0307"])
    started(lab, "b")
    waits(lab, "b", "required IPv6 PodCIDR not available")
    lab.start_pods("a1")
    assert len(lab.pods["a1"].addresses) == 2


@shows("IPC0526")
@pytest.mark.deep(part=0)
def test_an_agent_waits_for_a_family_that_its_default_pool_lacks(begin: Begin, operator: Operator) -> None:
    needs_ip6tables(operator.version)
    some = [
        pool("default", ipv4={"cidrs": ["10.1.0.0/24"], "blockSize": 27}),
        pool("more", ipv6={"cidrs": ["fd00:1::/112"], "blockSize": 122}),
    ]
    nodes = inventory([{"name": "a"}])
    lab = begin([cluster("multi-pool", ipFamilies=BOTH), *some, nodes], "a", without=["IPC0526"])
    started(lab, "a")
    waits(lab, "a", "to become available")


@pytest.mark.deep("kubernetes")
@shows("IPC0568")
@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("kubernetes", "required IPv4 PodCIDR not available"),
        ("bystander", "required IPv4 PodCIDR not available"),
        ("crd", "Waiting for IPs to become available in CRD-backed allocation pool"),
    ],
)
def test_a_planned_node_has_its_block_once_it_joined(
    begin: Begin, operator: Operator, mode: str, words: str
) -> None:
    """Its agent waits for the first apply; from 1.18 on the CiliumNode was there before, and the agent takes the annotation away that kept it."""
    some = documents(mode, "ab")
    some[-1]["nodes"].append({"name": "c", "planned": True})
    lab = begin(some, "ab", spare="c")
    lab.install()
    before = mode != "kubernetes" and can(operator.version, Capability.DO_NOT_GC)
    assert ("c" in lab.blocks()) == before
    lab.nodes["c"].register()
    lab.agents("c")
    if not before:
        waits(lab, "c", words)
        lab.refreshed()
        lab.sh("ipamc apply fleet")
    lab.ready()
    assert "cilium.io/do-not-gc" not in lab.api.get(f"{CILIUM_NODES}/c")["metadata"].get("annotations", {})
    lab.start_pods("a1", "c1")
    lab.as_locked()


@shows("IPC0805")
@pytest.mark.deep(part=0)
def test_an_agent_has_no_block_where_its_ciliumnode_has_another_text(begin: Begin) -> None:
    lab = begin(documents("bystander", "a"), "a")
    lab.apply()
    lab.api.change(f"{CILIUM_NODES}/a", lambda node: node["spec"]["ipam"].update(podCIDRs=["nonsense"]))
    lab.roll_out()
    lab.agents("a")
    agent = lab.nodes["a"].agent
    assert agent
    with pytest.raises(AssertionError, match=r"not after|ended"):
        agent.until(lab.nodes["a"].ready, "ready", 30)


@pytest.mark.deep(part=0)
@shows("IPC0525")
def test_an_agent_waits_for_the_pool_default(begin: Begin) -> None:
    other = pool("other", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 27})
    some = [cluster("multi-pool", ipam={"pinning": "none"}), other, inventory([{"name": "a"}])]
    lab = begin(some, "a", without=["IPC0525"])
    started(lab, "a")
    waits(lab, "a", "to become available")


@pytest.mark.deep(part=0)
def test_a_node_that_joins_waits_for_the_pool_default_until_its_agent_starts_again(begin: Begin) -> None:
    """Its CiliumNodeConfig comes after its agent."""
    lab = begin(documents("pinned", "ab"), "ab", spare="c")
    lab.install()
    lab.nodes["c"].register()
    lab.agents("c")
    waits(lab, "c", "to become available")
    lab.refreshed()
    assert "restart its agent" in lab.sh("! ipamc apply fleet 2>&1")
    assert requested(lab, "c").keys() == {"default"}
    waits(lab, "c", "to become available")
    lab.agents("c")
    lab.ready()
    assert requested(lab, "c").keys() == {"default.c"}
    lab.start_pods("a1", "c1")
    lab.as_locked()


@pytest.mark.deep(part=0)
@shows("IPC0511")
def test_an_agent_ends_in_crd_mode_without_addresses_of_a_family(begin: Begin, operator: Operator) -> None:
    """Where it has those of another one: it counts both together, and takes one of each for itself."""
    needs_ip6tables(operator.version)
    four = pool("default", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 27})
    lab = begin([cluster("crd", ipFamilies=BOTH), four, inventory([{"name": "a"}])], "a", without=["IPC0511"])
    started(lab, "a")
    agent = lab.nodes["a"].agent
    assert agent
    assert agent.process.wait(PATIENCE)


@pytest.mark.deep(part=0)
@shows("IPC0527")
@pytest.mark.parametrize("settings", [{}, HEALTH], ids=["false", "true"])
def test_agents_are_ready_in_a_block_that_has_no_address_for_pods(
    begin: Begin, settings: Mapping[str, str]
) -> None:
    """A /30 has two: the agent takes one for itself, and one for its health endpoint.

    With a pre-allocation of 1 it asks for one more than are used, which the operator does not have.
    """
    tiny = pool("default", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 30})
    some = [cluster("multi-pool", ipam={"pinning": "node"}), tiny, inventory([{"name": "a"}])]
    lab = begin(some, "a", settings=settings, without=["IPC0527"])
    lab.apply()
    one = json.dumps({"spec": {"defaults": {"ipam-multi-pool-pre-allocation": "default.a=1"}}})
    kubectl = "kubectl --context=fleet --namespace=kube-system"
    configs = lab.sh(f"{kubectl} get ciliumnodeconfigs --output=name").split()
    lab.sh(f"{kubectl} patch {' '.join(configs)} --type=merge --patch='{one}'")
    lab.roll_out()
    lab.agents("a")
    lab.ready()
    names = ["a1", "a2"]
    if not settings:
        lab.start_pods(names.pop(0))
    with Pod(names[0], lab.nodes["a"]) as pod:
        assert pod.cni("ADD").returncode
    if not settings:  # else agents up to 1.15 ask for no more, until a pod starts
        until(lambda: requested(lab, "a") == {"default.a": 3}, "the agent asks for one more", 60)
        until(lambda: "pool empty" in lab.error("a"), "the operator says so", 60)


@pytest.mark.deep(part=0)
@shows("IPC0551")
def test_a_pod_above_what_a_block_has_gets_no_address(begin: Begin) -> None:
    """A /28 has 14 addresses, and the agent takes one for itself; the kubelet counts to maxPods."""
    small = pool("default", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 28})
    lab = begin([cluster(), small, inventory([{"name": "a", "maxPods": 110}])], "a")
    lab.install()
    lab.start_pods(*(f"a{number}" for number in range(1, 14)))
    with lab.pinging("a1", "a2") as pings, Pod("a14", lab.nodes["a"]) as pod:
        done = pod.cni("ADD")
        assert done.returncode
        assert "range is full" in done.stdout + done.stderr
    assert not lost(pings)
    lab.end_pod("a1")
    lab.start_pods("a15")
    lab.in_their_blocks()
