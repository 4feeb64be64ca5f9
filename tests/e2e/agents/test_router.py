"""What a router learns over BGP: each node's block of the lock, with that node as the next hop."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

import pytest

from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
from tests.e2e.agents.clusters import documents
from tests.e2e.agents.conftest import Begin, needs_ip6tables
from tests.e2e.agents.lab import Lab, lost
from tests.e2e.agents.machine import NETWORK_6
from tests.e2e.agents.router import (
    BGP_CONTROL_PLANE,
    EVERY_POOL,
    NUMBER,
    Bird,
    Frr,
    GoBgp,
    Router,
    announce,
    version_of_kinds,
)
from tests.e2e.agents.test_changes import SHARED, in_mode
from tests.e2e.agents.test_import import give_podcidrs
from tests.e2e.api import CILIUM_NODES, NODES, Object
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.rules import shows
from tests.e2e.site import Site


def next_hops(lab: Lab) -> dict[str, list[str]]:
    """Return the router's table as the lock wants it."""
    return {block: [lab.nodes[name].address] for name, lines in lab.site.lock().items() for _, block in lines}


def all_sessions(lab: Lab, router: Router) -> None:
    """Wait until every node has a session with the router."""
    until(lambda: router.sessions() == len(lab.names), "every node has a session with the router", 300)


@pytest.mark.deep("pinned")
@pytest.mark.parametrize("mode", ["kubernetes", "bystander", "annotated", "pinned", "adopt"])
def test_a_router_learns_the_locks_blocks_and_nothing_else(begin: Begin, mode: str) -> None:
    lab = begin(documents(mode), settings=BGP_CONTROL_PLANE)
    announce(lab.api, lab.operator.version, multi_pool=mode == "pinned")
    with GoBgp(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        until(lambda: router.table() == next_hops(lab), "the router has the blocks of the lock", 120)

        lab.nodes["b"].stop_agent()
        expected = next_hops(lab)
        del expected["10.0.0.32/27"]
        until(lambda: router.table() == expected, "the block of a node without an agent is withdrawn", 120)
        lab.agents(["b"])
        lab.ready()
        until(lambda: router.table() == next_hops(lab), "it is announced again", 120)


@pytest.mark.deep("Bird")
@pytest.mark.parametrize("kind", [Bird, Frr])
def test_a_router_learns_the_locks_blocks_whatever_nodes_show_and_reaches_pods(
    begin: Begin, kind: type[Router]
) -> None:
    """The article in cluster-pool mode, before other routers: Nodes have blocks of each other, of kube-controller-manager, and CiliumNodes those of the lock."""
    lab = begin(documents("bystander", "abcd"), "abcd", settings=BGP_CONTROL_PLANE)
    blocks = [block for lines in lab.site.lock().values() for _, block in lines]
    give_podcidrs(lab, dict(zip("abcd", reversed(blocks), strict=True)))
    announce(lab.api, lab.operator.version)
    with kind(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        lab.start_pods("a1", "b1", "c1", "d1")
        until(lambda: router.table() == next_hops(lab), "the router has the blocks of the lock", 300)
        assert router.sessions() == len(lab.names)
        assert router.reaches(*lab.addresses().values())
        lab.as_locked()
        assert "found 0 problems" in lab.audit(routes=router.printed())

        with lab.pinging("a1", "b1") as pings:
            lab.conditions = {"cordon", "drain"}
            lab.play(lab.runbook("--change renumber --node c"))
            until(lambda: router.table() == next_hops(lab), "the router has the new block of c", 300)
        assert not lost(pings)
        lab.start_pods("c2")
        assert router.reaches(*lab.addresses().values())

        lab.nodes["d"].stop_agent()
        expected = next_hops(lab)
        del expected[blocks[3]]
        until(lambda: router.table() == expected, "the block of a node without an agent is withdrawn", 300)
        said = lab.audit(problems=True, routes=router.printed())
        assert said.count("[IPC0955]") == len(router.PRINTS)
        assert said.count("error[IPC0955]") == 2  # BGP's own tables; the kernel's have a default route
        assert f"no route to {blocks[3]} of node d" in said


@pytest.mark.deep(part=0)
def test_a_block_that_changes_is_announced_before_its_agent_uses_it(begin: Begin) -> None:
    """The control plane reads the CiliumNode as it is, so a former block is announced by nobody."""
    lab = begin(documents("bystander", "ab"), "ab", settings=BGP_CONTROL_PLANE)
    announce(lab.api, lab.operator.version)
    with GoBgp(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        before = next_hops(lab)
        until(lambda: router.table() == before, "the router has the blocks of the lock", 300)
        other = "10.0.0.96/27"
        lab.api.change(f"{CILIUM_NODES}/b", lambda node: node["spec"]["ipam"].update(podCIDRs=[other]))
        after = {other if prefix == "10.0.0.32/27" else prefix: hops for prefix, hops in before.items()}
        until(lambda: router.table() == after, "the router has the other block", 300)


ADVERTISEMENTS, PEERS, CLUSTERS = "ciliumbgpadvertisements", "ciliumbgppeerconfigs", "ciliumbgpclusterconfigs"


@pytest.mark.deep(part=0)
@pytest.mark.parametrize("over", [4, 6])
def test_ipv6_needs_a_session_of_ipv6(begin: Begin, operator: Operator, over: int) -> None:
    """Over one of IPv4 the next hop is the node's IPv4 address, mapped. BGP has the route, and no packet goes there."""
    needs_ip6tables(operator.version)
    if not can(operator.version, Capability.BGP_ADVERTISEMENT):
        pytest.skip("agents read advertisements from 1.16 on")
    some = documents("bystander", "ab")
    some[0]["spec"]["ipFamilies"] = ["IPv4", "IPv6"]
    some[1]["spec"]["ipv6"] = {"cidrs": ["fd00::/116"], "blockSize": 122}
    lab = begin(some, "ab", settings=BGP_CONTROL_PLANE)
    announce(lab.api, operator.version)
    kinds = f"/apis/{version_of_kinds(operator.version)}"

    def both(config: Object) -> None:
        (four,) = config["spec"]["families"]
        config["spec"]["families"].append({**four, "afi": "ipv6"})

    def six(config: Object) -> None:
        (peer,) = config["spec"]["bgpInstances"][0]["peers"]
        peer["peerAddress"] = f"{NETWORK_6}:{NUMBER}"

    lab.api.change(f"{kinds}/{PEERS}/router", both)
    if over == 6:
        lab.api.change(f"{kinds}/{CLUSTERS}/fabric", six)
    nodes = {name: node.address if over == 4 else node.address_6 for name, node in lab.nodes.items()}
    with Frr(lab.folder, nodes.values()) as router:
        lab.install()
        lab.start_pods("a1", "b1")
        lab.refreshed()
        mapped = "::ffff:" if over == 4 else ""
        hops = {name: [str(ip_address(f"{mapped}{address}"))] for name, address in nodes.items()}
        expected = {block: hops[name] for name, lines in lab.site.lock().items() for _, block in lines}
        expected = {block: hop for block, hop in expected.items() if ":" in block}

        def table() -> dict[str, list[str]]:
            return {block: [str(ip_address(each)) for each in hop] for block, hop in router.table(6).items()}

        until(lambda: table() == expected, "the router has the blocks of IPv6", 300)
        assert "found 0 problems" in lab.audit(routes=router.printed(router.BGP_6))
        pods = [address for pod in lab.pods.values() for address in pod.addresses if ":" in address]
        if over == 6:
            until(lambda: router.reaches(*pods), "the router reaches the pods", 60)
            assert "found 0 problems" in lab.audit(routes=router.printed(router.ROUTES_6))
            return
        assert not any(router.reaches(each) for each in pods)
        said = lab.audit(problems=True, routes=router.printed(router.ROUTES_6))
        assert said.count("error[IPC0956]") == len(router.ROUTES_6)


def test_a_router_keeps_all_blocks_through_a_change_of_mode(begin: Begin, operator: Operator) -> None:
    """Where both are announced, blocks of nodes and blocks of pools, and sessions restart gracefully."""
    if not can(operator.version, Capability.BGP_ADVERTISEMENT):
        pytest.skip("agents read advertisements from 1.16 on")
    some = documents("bystander")
    some[0]["spec"]["bgp"] = "control-plane"
    lab = begin(some, settings=BGP_CONTROL_PLANE)
    announce(lab.api, operator.version)
    kinds = f"/apis/{version_of_kinds(operator.version)}"
    lab.api.change(
        f"{kinds}/{PEERS}/router", lambda each: each["spec"].update(gracefulRestart={"enabled": True})
    )
    seen: list[dict[str, list[str]]] = []

    def pools_too(_: Site) -> None:
        blocks = f"{kinds}/{ADVERTISEMENTS}/blocks"
        lab.api.change(blocks, lambda each: each["spec"]["advertisements"].append(EVERY_POOL))

    lab.edits = {"edit-mode": lambda site: in_mode(site, SHARED), "announce": pools_too}
    with GoBgp(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        right = next_hops(lab)
        until(lambda: router.table() == right, "the router has the blocks of the lock", 300)
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.2):
                seen.append(router.table())

        with ThreadPoolExecutor(1) as worker:
            watched = worker.submit(watch)
            lab.play(lab.runbook("--change mode --to multi-pool"))
            time.sleep(10)
            ended.set()
            watched.result()
    assert len(seen) > 20
    assert all(table == right for table in seen)


@pytest.mark.deep(part=0)
@pytest.mark.parametrize("restart", ["graceful", "abrupt"])
def test_a_router_that_restarts_gracefully_keeps_a_block_while_its_agent_restarts(
    begin: Begin, operator: Operator, restart: str
) -> None:
    if not can(operator.version, Capability.BGP_ADVERTISEMENT):
        pytest.skip("agents read advertisements from 1.16 on")
    lab = begin(documents("bystander", "ab"), "ab", settings=BGP_CONTROL_PLANE)
    announce(lab.api, operator.version)
    config, graceful = f"/apis/{version_of_kinds(operator.version)}/{PEERS}/router", restart == "graceful"
    lab.api.change(config, lambda each: each["spec"].update(gracefulRestart={"enabled": graceful}))
    with GoBgp(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        right = next_hops(lab)
        until(lambda: router.table() == right, "the router has the blocks of the lock", 300)
        lab.nodes["a"].stop_agent()
        time.sleep(5)
        assert router.table() == right if graceful else "10.0.0.0/27" not in router.table()
        lab.agents(["a"])
        lab.ready()
        until(lambda: router.table() == right, "the router has the blocks of the lock again", 300)


@pytest.mark.deep("pinned-ciliumbgpadvertisements-spec0")
@shows("IPC0586", "IPC0588")
@pytest.mark.parametrize(
    ("mode", "kind", "spec"),
    [
        ("pinned", ADVERTISEMENTS, {"advertisements": [{"advertisementType": "PodCIDR"}]}),
        ("pinned", ADVERTISEMENTS, {"advertisements": [{"advertisementType": "CiliumPodIPPool"}]}),
        ("bystander", ADVERTISEMENTS, {"advertisements": [EVERY_POOL]}),
        ("bystander", PEERS, {"families": [{"afi": "ipv4", "safi": "unicast"}]}),
        ("bystander", PEERS, {"families": []}),
    ],
)
def test_a_session_without_a_route(
    begin: Begin, operator: Operator, mode: str, kind: str, spec: Object
) -> None:
    if not can(operator.version, Capability.BGP_ADVERTISEMENT):
        pytest.skip("agents read advertisements from 1.16 on")
    lab = begin(documents(mode, "ab"), "ab", settings=BGP_CONTROL_PLANE)
    announce(lab.api, operator.version, multi_pool=mode == "pinned")
    name = "blocks" if kind == ADVERTISEMENTS else "router"
    group = version_of_kinds(operator.version)
    lab.api.change(f"/apis/{group}/{kind}/{name}", lambda each: each["spec"].update(spec))
    with GoBgp(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        all_sessions(lab, router)
        lab.start_pods("a1")
        time.sleep(5)  # others have their routes in less
        assert router.table() == {}


SWAPPED = {"c": "10.0.0.96/27", "d": "10.0.0.64/27"}
"""The blocks of each other, which somebody gives these nodes."""


@pytest.mark.deep(part=0)
@shows("IPC0953")
def test_two_nodes_that_were_registered_with_each_others_blocks(begin: Begin) -> None:
    """The article: the block that a Node shows is not the one that its pods have addresses of, and routes lead astray.

    The BGP control plane announces CiliumNodes, so nothing happens before an agent starts again. The audit knows earlier,
    and says what mends it.
    """
    lab = begin(documents("kubernetes", "abcd"), "abcd", settings=BGP_CONTROL_PLANE)
    announce(lab.api, lab.operator.version)
    with GoBgp(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        lab.start_pods("a1", "c1", "d1")
        lab.refreshed()
        right = next_hops(lab)
        until(lambda: router.table() == right, "the router has the blocks of the lock", 300)
        assert "found 0 problems" in lab.audit(routes=router.printed())

        for name, block in SWAPPED.items():
            lab.api.delete(f"{NODES}/{name}")
            lab.nodes[name].register(podCIDR=block, podCIDRs=[block])
        said = lab.audit(problems=True)
        assert "node c has 10.0.0.96/27, but the lock has it for d; 2 nodes: c, d" in said
        assert "IPC0950" in said
        assert (
            "pods get the Node's at the agent's next start, and other nodes route by the CiliumNode" in said
        )
        assert router.table() == right
        assert not lab.unreachable()

        lab.agents(SWAPPED)
        lab.ready()
        wrong = right | {block: [lab.nodes[name].address] for name, block in SWAPPED.items()}
        until(
            lambda: router.table() == wrong, "the router sends the traffic of c to d, and that of d to c", 300
        )
        assert {("c1", "d1"), ("d1", "c1")} <= lab.unreachable()
        said = lab.audit(problems=True, routes=router.printed())
        assert said.count("error[IPC0953]") == len(router.PRINTS)
        assert said.count("10.0.0.64/27 leads to node d, but c holds it; 2 routes to wrong nodes") == 2
        assert said.count("10.0.0.96/27 leads to c") == len(router.PRINTS)
        assert said.count("the lock has 10.0.0.96/27 for it") == len(router.PRINTS)

        # Both at once: each has the block that the other one needs.
        lab.conditions = {"cordon", "drain"}
        lab.play(lab.runbook("--change replace-node --node c --node d"))
        lab.ready()
        until(lambda: router.table() == right, "the router has the blocks of the lock again", 300)
        lab.start_pods("c2", "d2")
        lab.as_locked()
        assert "found 0 problems" in lab.audit(routes=router.printed())
