"""Crd mode: a node has single addresses, and gets more of its block, and then another block, while its pods run."""

from __future__ import annotations

from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import Lab, lost
from tests.e2e.api import CILIUM_NODES
from tests.e2e.processes import until
from tests.support.fleet import Document, cluster, inventory, pool


def documents() -> list[Document]:
    """Make a cluster whose nodes start with four addresses of their block."""
    usage = {"high": 70, "low": 40, "maxBlocks": 3, "addresses": 4}
    return [
        cluster("crd", cilium={"managedBy": "helm"}),
        pool("default", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 28}, usage=usage),
        inventory([{"name": "a"}, {"name": "b"}]),
    ]


def given(lab: Lab, node: str) -> set[str]:
    """Return the addresses that a node may give to pods."""
    return set(lab.api.get(f"{CILIUM_NODES}/{node}")["spec"]["ipam"]["pool"])


def resize(lab: Lab) -> None:
    """Do what the scheduled job does: dump, resize, merge, apply."""
    everything = "nodes,ciliumnodes,pods --all-namespaces"
    lab.sh(
        f"kubectl --context=fleet get {everything} -o json > ../dump.json && ipamc resize fleet ../dump.json"
    )
    lab.sh("git add . && git commit --quiet -m resized && ipamc ci apply fleet")


def test_a_node_gets_more_addresses_while_its_pods_run(begin: Begin) -> None:
    lab = begin(documents(), "ab")
    lab.install()
    lab.start_pods("a1", "a2", "b1")  # the router has the fourth address of a, or is to have it
    lab.as_locked()
    first = given(lab, "a")
    assert {pod.address for pod in lab.pods.values() if pod.node.name == "a"} <= first

    with lab.pinging("a1", "b1") as pings:
        until(lambda: len(lab.used("a")) >= 3, "the agent tells which addresses are in use")
        resize(lab)
        assert first < given(lab, "a")
        lab.start_pods("a3", "a4")
    assert not lost(pings)
    assert {pod.address for pod in lab.pods.values() if pod.node.name == "a"} <= given(lab, "a")
    lab.as_locked()
