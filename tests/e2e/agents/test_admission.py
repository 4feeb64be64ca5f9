"""Real kubelets and agents join a cluster whose kube-apiserver gives nodes their blocks by admission policies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import deepcopy
from ipaddress import ip_address, ip_network

import pytest

from tests.e2e.agents.clusters import documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.kubelet import LabWithKubelets
from tests.e2e.agents.lab import Lab, lost
from tests.e2e.agents.machine import NETWORK
from tests.e2e.api import CILIUM_NODES, NODES, Object
from tests.e2e.joins import POLICIES
from tests.e2e.objects import cilium_node
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.support.fleet import pool

MODES = ["bystander", "kubernetes", "pinned", "shared", "adopt"]
ADMITTED: Object = {
    "kubernetes": {"version": "1.35"},
    "admission": {"assign": True, "assignBeta": True, "enforce": "deny"},
}
PLANNED, STRANGER = "c", "d"
SOON = 5.0
"""Seconds within which the blocks of a node that joined are there."""


@pytest.fixture(autouse=True)
def nothing_stays(operator: Operator) -> Iterator[None]:
    """Delete the policies, and wait until kube-apiserver does without them: it looks once a second, when it has time."""
    yield
    api = operator.api
    api.delete(NODES, CILIUM_NODES, *POLICIES)
    until(lambda: not any(api.items(each) for each in POLICIES), "the policies are gone")
    block = "10.99.0.0/27"
    node = {"metadata": {"name": "a"}, "spec": {"podCIDR": block, "podCIDRs": [block]}}
    strange = {NODES: node, CILIUM_NODES: cilium_node("a", block)}
    until(
        lambda: all(
            api.ask("POST", f"{path}?dryRun=All", each).code == 201 for path, each in strange.items()
        ),
        "nobody refuses a strange block",
    )


def joined(lab: Lab, name: str) -> float:
    """Let a node join: its kubelet, then its agent; return the seconds from its object to its blocks."""
    lab.kubelets([name])
    lab.agents([name])
    until(lambda: name in lab.api.items(CILIUM_NODES), "its agent has made its CiliumNode")
    start = time.monotonic()
    until(lambda: lab.blocks().get(name), f"{name} has a block")
    return time.monotonic() - start


@pytest.mark.deep("pinned")
@pytest.mark.parametrize("mode", MODES)
def test_a_node_that_joins_has_its_block(begin: Begin, mode: str) -> None:
    """A planned one, also when it is created again; one that nobody planned gets what the operator may give, or waits."""
    every = documents(mode, "abc")
    every[0]["spec"] |= deepcopy(ADMITTED)
    every[-1]["nodes"][-1]["planned"] = True
    lab = begin(every, nodes="ab", spare=[PLANNED, STRANGER], kind=LabWithKubelets)
    lab.install()
    lab.start_pods("a1", "b1")

    with lab.pinging("a1", "b1") as pings:
        assert joined(lab, PLANNED) < SOON
        lab.nodes[PLANNED].wait()
        lab.start_pods(f"{PLANNED}1")
        lab.as_locked()

        lab.end_pod(f"{PLANNED}1")
        lab.nodes[PLANNED].stop_agent()
        lab.api.delete(f"{NODES}/{PLANNED}", f"{CILIUM_NODES}/{PLANNED}")
        until(lambda: PLANNED not in lab.blocks(), "it is gone")
        lab.nodes[PLANNED].install_again()
        assert joined(lab, PLANNED) < SOON
        lab.nodes[PLANNED].wait()
        lab.start_pods(f"{PLANNED}1")
        lab.as_locked()

        lab.kubelets([STRANGER])
        lab.agents([STRANGER])
        held = {block for blocks in lab.site.lock().values() for _, block in blocks}
        if mode in {"adopt", "shared"}:
            lab.nodes[STRANGER].wait()
            assert not held & set(lab.blocks()[STRANGER])
        else:
            until(lambda: STRANGER in lab.api.items(CILIUM_NODES) or mode == "kubernetes", "its agent waits")
            assert not lab.blocks().get(STRANGER)
    assert not lost(pings)


@pytest.mark.parametrize("mode", ["bystander", pytest.param("kubernetes", marks=pytest.mark.deep)])
def test_nodes_that_nobody_listed_have_the_blocks_of_their_addresses(begin: Begin, mode: str) -> None:
    every = documents(mode, "a")
    every[0]["spec"] |= ADMITTED
    network = ip_network(f"{NETWORK}.0/24")
    part = {"cidrs": ["10.8.0.0/19"], "blockSize": 27, "follows": str(network)}
    every.insert(1, pool("by-address", ipv4=part))
    lab = begin(every, nodes="a", spare="bcd", kind=LabWithKubelets)
    lab.install()
    for name in "bcd":
        assert joined(lab, name) < SOON
    for name in "bcd":
        lab.nodes[name].wait()
        place = int(ip_address(lab.nodes[name].address)) - int(network.network_address)
        assert lab.blocks()[name] == [str(list(ip_network("10.8.0.0/19").subnets(new_prefix=27))[place])]
    lab.start_pods("a1", "b1", "c1", "d1")
    assert not lab.unreachable()
