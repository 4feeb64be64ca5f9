"""What agents of each minor do: the cells of the version table that only a running agent decides."""

from __future__ import annotations

import pytest

from ipamc.model.cilium.features import Capability
from ipamc.model.cilium.versions import can
from tests.e2e.agents.clusters import documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import Lab
from tests.e2e.agents.node import PATIENCE
from tests.e2e.agents.router import BGP_CONTROL_PLANE, Router, announce, announce_by_policy, metallb
from tests.e2e.agents.test_pools import BLUE, RACKS, is_of
from tests.e2e.agents.test_pools import documents as two_pools
from tests.e2e.agents.test_router import next_hops
from tests.e2e.operator import Operator
from tests.e2e.processes import until

TUNNEL = {"routing-mode": "tunnel", "tunnel-protocol": "vxlan", "auto-direct-node-routes": "false"}


def all_sessions(lab: Lab, router: Router) -> None:
    """Wait until every node has a session with the router."""
    until(lambda: router.sessions() == len(lab.names), "every node has a session with the router", 300)


def ended(lab: Lab, words: str) -> None:
    """Start the agents; each ends at its start, and says why."""
    lab.sh("ipamc ci apply fleet")
    lab.roll_out()
    lab.agents(lab.names)
    for node in lab.nodes.values():
        agent = node.agent
        assert agent
        agent.process.wait(PATIENCE)
        assert words in agent.said(), agent.tail()


def test_tunnel_routing_in_multi_pool_mode(begin: Begin, operator: Operator) -> None:
    lab = begin(documents("shared"), settings=TUNNEL)
    if not can(operator.version, Capability.MULTI_POOL_TUNNEL):
        ended(lab, "tunnel")
        return
    lab.install()
    lab.start_pods("a1", "b1")
    lab.as_locked()


def test_masquerading_by_iptables_without_interfaces_in_multi_pool_mode(
    begin: Begin, operator: Operator
) -> None:
    lab = begin(documents("shared"), settings={"enable-ipv4-masquerade": "true"})
    if can(operator.version, Capability.EGRESS_INTERFACES):
        ended(lab, "Egress masquerading interfaces cannot be empty")
        return
    lab.install()
    lab.start_pods("a1", "b1")
    lab.as_locked()


def test_pods_of_a_second_pool_are_reached_without_endpoint_routes(begin: Begin, operator: Operator) -> None:
    lab = begin(two_pools("pool"), "ab", labels=RACKS, settings={"enable-endpoint-routes": "false"})
    lab.install()
    lab.start_pods("a1", "b1")
    lab.start_pods("a2", **{"ipam.cilium.io/ip-pool": "blue"})
    assert is_of(lab, "a2", BLUE)
    if can(operator.version, Capability.LOCAL_ROUTES):
        until(lambda: not lab.unreachable(), "all reach all, some time later", 300)
        return
    with pytest.raises(AssertionError, match="not after"):
        until(lambda: not lab.unreachable(), "all reach all", 90)


def test_nobody_announces_the_addresses_of_crd_mode(begin: Begin) -> None:
    lab = begin(documents("crd"), settings=BGP_CONTROL_PLANE)
    announce(lab.api, lab.operator.version)
    with Router(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        all_sessions(lab, router)
        lab.start_pods("a1", "b1")
        assert router.table() == {}


@pytest.mark.parametrize("mode", ["bystander", "pinned"])
def test_a_peering_policy_announces_blocks(begin: Begin, operator: Operator, mode: str) -> None:
    if not can(operator.version, Capability.BGP_PEERING_POLICY):
        pytest.skip("Cilium has CiliumBGPPeeringPolicy up to 1.18")
    lab = begin(documents(mode), settings=BGP_CONTROL_PLANE)
    announce_by_policy(lab.api, multi_pool=mode == "pinned")
    with Router(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        until(lambda: router.table() == next_hops(lab), "the router has the blocks of the lock", 300)


@pytest.mark.parametrize("mode", ["kubernetes", "bystander"])
def test_metallb_announces_nodes_or_ciliumnodes(begin: Begin, operator: Operator, mode: str) -> None:
    if not can(operator.version, Capability.METALLB):
        pytest.skip("Cilium has MetalLB in the agent up to 1.16")
    lab = begin(documents(mode))
    lab.settings |= metallb(lab.folder / "bgp.yaml")
    with Router(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        until(lambda: router.table() == next_hops(lab), "the router has the blocks of the lock", 300)
