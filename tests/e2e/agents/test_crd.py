"""Crd mode: a node has single addresses, and gets more of its block, and then another block, while its pods run."""

from __future__ import annotations

import pytest

from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
from tests.e2e.agents import clusters
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import TUNNEL, Lab, lost
from tests.e2e.agents.pod import Pod
from tests.e2e.agents.test_changes import in_mode, merge_mode
from tests.e2e.api import CILIUM_NODES, Object
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.rules import shows
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


DUMPED = "kubectl --context=fleet get nodes,ciliumnodes,pods --all-namespaces -o json > ../dump.json"


def resize(lab: Lab) -> None:
    """Do what the scheduled job does: dump, resize, merge, apply."""
    lab.sh(f"{DUMPED} && ipamc resize fleet ../dump.json")
    lab.sh("git add . && git commit --quiet -m resized && ipamc apply fleet")


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


@pytest.mark.deep(part=0)
def test_a_node_of_multi_pool_mode_gets_more_blocks_while_its_pods_run_and_gives_them_back(
    begin: Begin, operator: Operator
) -> None:
    some = clusters.documents("pinned", "ab")
    some[1]["spec"] |= {"usage": {"high": 70, "low": 40, "maxBlocks": 3}}
    some[1]["spec"]["ipv4"]["blockSize"] = 29
    lab = begin(some, "ab")
    lab.install()
    lab.start_pods("a1", "a2", "a3", "a4", "a5", "b1")
    before = lab.blocks()["a"]
    with lab.pinging("a1", "b1") as pings:
        resize(lab)
        assert len(lab.site.lock()["a"]) == 2
        lab.start_pods("a6", "a7", "a8")
        lab.as_locked()
        for name in ("a3", "a4", "a5", "a6", "a7", "a8"):
            lab.end_pod(name)
        if can(operator.version, Capability.EDITED_RANGES):
            until(lambda: lab.blocks()["a"] == before, "the agent gives the second block back", 300)
            resize(lab)
            assert [block for _, block in lab.site.lock()["a"]] == before
    assert not lost(pings)
    lab.as_locked()


@pytest.mark.deep(part=0)
def test_a_block_that_pods_use_meanwhile_is_not_taken_back(begin: Begin) -> None:
    """Pods start after the dump: the apply withholds the change, and who reverts it has all as before."""
    some = documents()
    some[1]["spec"] |= {"usage": {"high": 60, "low": 40, "maxBlocks": 3}}
    some[1]["spec"]["ipv4"]["blockSize"] = 29
    lab = begin(some, "ab")
    lab.install()
    lab.start_pods("a1", "a2", "a3", "a4", "b1")
    until(lambda: len(lab.used("a")) == 5, "the agent tells which addresses are in use")
    resize(lab)
    both, second = given(lab, "a"), "10.0.0.16/29"
    assert [block for _, block in lab.site.lock()["a"]] == ["10.0.0.0/29", second]

    for name in ("a2", "a3", "a4"):
        lab.end_pod(name)
    until(lambda: len(lab.used("a")) == 2, "the agent tells which addresses are in use")
    lab.sh(DUMPED)
    lab.start_pods("a5", "a6", "a7", "a8", "a9")  # the first block has four free addresses
    lab.sh("ipamc resize fleet ../dump.json && git add . && git commit --quiet -m resized")
    assert lab.site.lock("quarantined") == {"a": [("default", second)]}
    said = lab.sh("! ipamc apply fleet 2>&1")
    assert "CiliumNode a: not applied" in said
    assert given(lab, "a") == both
    lab.sh("git revert --no-edit HEAD && ipamc compile --check fleet && ipamc apply fleet")
    assert not lab.site.lock("quarantined")
    assert given(lab, "a") == both
    lab.as_locked()


@pytest.mark.deep(part=0)
def test_an_address_with_an_owner_is_kept_for_its_pod(begin: Begin) -> None:
    """Somebody writes the owner; ipamc writes none, and leaves it."""
    lab = begin(documents(), "ab")
    lab.install()
    lab.start_pods("a1")
    (kept, *_) = sorted(given(lab, "a") - {lab.pods["a1"].address} - set(lab.used("a")))

    def own(node: Object) -> None:
        node["spec"]["ipam"]["pool"][kept] = {"owner": "default/a9"}

    lab.api.change(f"{CILIUM_NODES}/a", own)
    lab.sh("ipamc apply fleet")
    lab.start_pods("a2")
    lab.start_pods("a9")
    assert lab.pods["a2"].address != kept
    assert lab.pods["a9"].address == kept


def test_until_the_flags_the_way_out_can_be_reverted(begin: Begin) -> None:
    """No pod starts once the addresses were taken away, and those that run go on."""
    lab = begin(clusters.documents("crd", "ab"), "ab")
    lab.install()
    lab.start_pods("a1", "b1")
    before = given(lab, "a")
    merge_mode(lab, {"mode": "cluster-pool"})
    lab.sh("ipamc apply fleet --before-flags")
    with Pod("a2", lab.nodes["a"]) as pod:
        until(lambda: pod.cni("ADD").returncode, "no pod starts", 60)
    assert not lab.unreachable()
    lab.sh("git revert --no-edit HEAD && ipamc apply fleet")
    assert given(lab, "a") == before
    lab.start_pods("a3")
    lab.as_locked()


@pytest.mark.deep(part=0)
@shows("IPC0543")
def test_an_agent_that_starts_in_crd_mode_cuts_off_a_pod_whose_address_is_not_listed(begin: Begin) -> None:
    lab = begin(clusters.documents("bystander", "ab"), "ab")
    lab.install()
    lab.start_pods("a1", "b1")
    in_mode(lab.site, {"mode": "crd"})
    lab.sh(
        "git rm -qr clusters/fleet/ipam.lock clusters/fleet/rendered && ipamc compile fleet"
    )  # no consent helps
    lab.sh("git add . && git commit --quiet -m mode && ipamc apply fleet --before-flags")

    def take(node: Object) -> None:
        del node["spec"]["ipam"]["pool"][lab.pods["a1"].address]

    lab.api.change(f"{CILIUM_NODES}/a", take)
    lab.roll_out()
    lab.agents(lab.names)
    lab.ready()
    until(lambda: lab.unreachable() == {("a1", "b1"), ("b1", "a1")}, "the pod of a is cut off", 60)


@pytest.mark.deep(part=0)
@shows("IPC0532")
def test_what_cilium_does_not_list_works_pods_and_nodes_reach_pods_through_tunnels(begin: Begin) -> None:
    some = documents()
    some[0]["spec"]["cilium"]["routingMode"] = "tunnel"
    lab = begin(some, "ab", settings=TUNNEL, without=["IPC0532"])
    lab.install()
    lab.start_pods("a1", "b1")
    lab.as_locked()
    lab.agents(lab.names)
    lab.ready()
    lab.as_locked()
    assert lab.nodes["a"].reaches(lab.pods["b1"].address)
    assert lab.nodes["b"].reaches(lab.pods["a1"].address)
