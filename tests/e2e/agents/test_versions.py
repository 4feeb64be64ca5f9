"""What agents of each minor do: the cells of the version table that only a running agent decides."""

from __future__ import annotations

import time

import pytest

from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
from tests.e2e.agents.clusters import documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import TUNNEL, Lab
from tests.e2e.agents.node import PATIENCE, RUN
from tests.e2e.agents.pod import Pod
from tests.e2e.agents.router import BGP_CONTROL_PLANE, GoBgp, announce, announce_by_policy, metallb
from tests.e2e.agents.test_pools import BLUE, RACKS, is_of
from tests.e2e.agents.test_pools import documents as two_pools
from tests.e2e.agents.test_router import all_sessions, next_hops
from tests.e2e.api import CRDS, NODES
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.rules import shows

METALLB_UNTIL = "Cilium has MetalLB in the agent up to 1.16"
OTHER = "10.0.0.96/27"
"""A block that the lock gives to nobody."""


def ended(lab: Lab, words: str) -> None:
    """Install Cilium; each agent ends at its start, and says why."""
    lab.apply()
    lab.roll_out()
    lab.agents(lab.names)
    all_ended(lab, words)


def all_ended(lab: Lab, words: str) -> None:
    """Say that each agent ends at its start, and why."""
    for node in lab.nodes.values():
        agent = node.agent
        assert agent
        agent.process.wait(PATIENCE)
        assert words in agent.said(), agent.tail()


@shows("IPC0522")
def test_tunnel_routing_in_multi_pool_mode(begin: Begin, operator: Operator) -> None:
    some = documents("shared", "ab")
    some[0]["spec"]["cilium"]["routingMode"] = "tunnel"
    if not can(operator.version, Capability.MULTI_POOL_TUNNEL):
        lab = begin(some, "ab", settings=TUNNEL, without=["IPC0522"])
        ended(lab, "Cannot specify IPAM mode multi-pool in tunnel mode")
        return
    lab = begin(some, "ab", settings=TUNNEL)
    lab.install()
    lab.start_pods("a1", "b1")
    lab.as_locked()


@pytest.mark.deep(part=0)
@pytest.mark.parametrize("mode", ["shared", "crd"])
def test_masquerading_by_iptables_without_interfaces(begin: Begin, operator: Operator, mode: str) -> None:
    """Pods that run go on where agents end."""
    lab = begin(documents(mode, "ab"), "ab")
    lab.install()
    lab.start_pods("a1", "b1")
    lab.roll_out({**lab.config, "enable-ipv4-masquerade": "true"})
    lab.agents(lab.names)
    if can(operator.version, Capability.EGRESS_INTERFACES):
        all_ended(lab, "Egress masquerading interfaces cannot be empty")
        with Pod("a2", lab.nodes["a"]) as pod:
            assert pod.cni("ADD").returncode
    else:
        lab.ready()
        lab.start_pods("a2")
    lab.as_locked()


@pytest.mark.deep(part=0)
def test_the_operator_says_that_cilium_is_up_on_a_node(begin: Begin) -> None:
    """In the condition by which ipamc knows that an agent ran."""
    lab = begin(documents("bystander", "a"), "a")

    def up() -> bool:
        conditions = lab.api.get(f"{NODES}/a")["status"]["conditions"]
        return any(each.get("reason") == "CiliumIsUp" for each in conditions)

    lab.apply()
    lab.roll_out()
    lab.stop_operator()
    lab.agents("a")
    lab.ready()
    time.sleep(5)
    assert not up()
    lab.start_operator()
    until(up, "the operator has written the condition", 300)


@pytest.mark.deep(part=0)
def test_an_ip_masq_agent_without_masquerading_by_bpf(begin: Begin) -> None:
    settings = {
        "enable-ipv4-masquerade": "true",
        "enable-ip-masq-agent": "true",
        "ip-masq-agent-config-path": f"{RUN}/ip-masq-agent",  # agents watch its folder
    }
    ended(begin(documents("bystander", "ab"), "ab", settings=settings), "BPF ip-masq-agent requires")


@pytest.mark.deep(part=0)
def test_pods_of_a_second_pool_are_reached_without_endpoint_routes(begin: Begin, operator: Operator) -> None:
    lab = begin(two_pools("pool"), "ab", labels=RACKS, settings={"enable-endpoint-routes": "false"})
    lab.install()
    lab.start_pods("a1", "b1")
    assert bool(lab.unreachable()) == (operator.version < (1, 17))  # the agent's route is of another range
    lab.start_pods("a2", **{"ipam.cilium.io/ip-pool": "blue"})
    assert is_of(lab, "a2", BLUE)
    if can(operator.version, Capability.LOCAL_ROUTES):
        until(lambda: not lab.unreachable(), "all reach all, some time later", 300)
        return
    with pytest.raises(AssertionError, match="not after"):
        until(lambda: not lab.unreachable(), "all reach all", 90)
    lab.agents("a")
    lab.ready()
    assert bool(lab.unreachable()) == (operator.version < (1, 17))


@pytest.mark.deep(part=0)
@shows("IPC0542")
def test_nobody_announces_the_addresses_of_crd_mode(begin: Begin) -> None:
    some = documents("crd", "ab")
    some[0]["spec"]["bgp"] = "control-plane"
    lab = begin(some, "ab", settings=BGP_CONTROL_PLANE, without=["IPC0542"])
    announce(lab.api, lab.operator.version)
    with GoBgp(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        all_sessions(lab, router)
        lab.start_pods("a1", "b1")
        assert router.table() == {}


@pytest.mark.deep(part=0)
@pytest.mark.parametrize("mode", ["bystander", "pinned"])
def test_a_peering_policy_announces_blocks(begin: Begin, operator: Operator, mode: str) -> None:
    lab = begin(documents(mode, "ab"), "ab", settings=BGP_CONTROL_PLANE)
    if not can(operator.version, Capability.BGP_PEERING_POLICY):
        assert "ciliumbgppeeringpolicies.cilium.io" not in lab.api.items(CRDS)
        return
    announce_by_policy(lab.api, multi_pool=mode == "pinned")
    with GoBgp(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        until(lambda: router.table() == next_hops(lab), "the router has the blocks of the lock", 300)


@pytest.mark.deep(part=0)
@pytest.mark.parametrize("mode", ["kubernetes", "annotated", "bystander"])
def test_metallb_announces_nodes_or_ciliumnodes(begin: Begin, operator: Operator, mode: str) -> None:
    """Of Nodes their podCIDRs, and no annotations."""
    lab = begin(documents(mode, "ab"), "ab")
    lab.settings |= metallb(lab.folder / "bgp.yaml")
    with GoBgp(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        if can(operator.version, Capability.METALLB):
            wanted = {} if mode == "annotated" else next_hops(lab)
            all_sessions(lab, router)
            until(lambda: router.table() == wanted, "the router has the blocks of the lock", 300)
            return
        time.sleep(10)  # with it they have sessions in less
        assert router.sessions() == 0


@pytest.mark.deep(part=0)
def test_metallb_of_a_node_that_is_created_again_is_silent_until_its_agent_starts_again(
    begin: Begin, operator: Operator
) -> None:
    """It withdraws what it announced when its Node goes, and ends; so the other block that a new Node shows is announced by the next agent."""
    if not can(operator.version, Capability.METALLB):
        pytest.skip(METALLB_UNTIL)
    lab = begin(documents("kubernetes", "ab"), "ab")
    lab.settings |= metallb(lab.folder / "bgp.yaml")
    with GoBgp(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        until(lambda: router.table() == next_hops(lab), "the router has the blocks of the lock", 300)
        others = {prefix: hops for prefix, hops in next_hops(lab).items() if hops != [lab.nodes["b"].address]}
        lab.api.delete(f"{NODES}/b")
        until(lambda: router.table() == others, "the block of b is withdrawn", 300)
        lab.nodes["b"].register(podCIDR=OTHER, podCIDRs=[OTHER])
        time.sleep(10)
        assert router.table() == others
        lab.agents(["b"])
        lab.ready()
        wrong = others | {OTHER: [lab.nodes["b"].address]}
        until(lambda: router.table() == wrong, "the router has what the new Node shows", 300)


@pytest.mark.deep(part=0)
@shows("IPC0541")
@pytest.mark.parametrize("mode", ["shared", "crd"])
def test_agents_end_with_metallb_in_other_modes(begin: Begin, operator: Operator, mode: str) -> None:
    if not can(operator.version, Capability.METALLB):
        pytest.skip(METALLB_UNTIL)
    some = documents(mode, "ab")
    some[0]["spec"]["bgp"] = "metallb"
    lab = begin(some, "ab", without=["IPC0541"])
    lab.settings |= metallb(lab.folder / "bgp.yaml")
    ended(lab, "BGP announcements for pod CIDRs is not supported with IPAM mode")
