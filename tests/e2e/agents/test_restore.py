"""What was in etcd is gone, or as old as a backup: the runbooks, with real kubelets, which follow the kube-apiserver."""

from __future__ import annotations

import time
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from tests.e2e.agents.clusters import MODES, documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.kubelet import LabWithKubelets
from tests.e2e.agents.lab import lost
from tests.e2e.agents.router import BGP_CONTROL_PLANE
from tests.e2e.api import CRDS, NODES, Object
from tests.e2e.processes import until


@pytest.fixture
def cluster(begin: Begin, mode: str) -> LabWithKubelets:
    """Start a cluster with pods, and a machine that joins later."""
    lab = begin(documents(mode), settings=BGP_CONTROL_PLANE, kind=LabWithKubelets, spare="d")
    assert isinstance(lab, LabWithKubelets)
    lab.install()
    lab.start_pods("a1", "b1", "b2", "c1")
    lab.as_locked()
    lab.edits = {key: lambda _: None for key in ("pause", "resume")}
    return lab


@pytest.mark.deep("kubernetes")
@pytest.mark.parametrize("mode", MODES)
def test_etcd_is_lost_and_git_is_there(cluster: LabWithKubelets) -> None:
    """Pods go on until their kubelets start, which end them; each node has the block that it had."""
    lab = cluster
    blocks, kinds = lab.blocks(), lab.api.items(CRDS).keys()

    def stop_all(_: object) -> None:
        for node in lab.nodes.values():
            node.switch_off()

    def lose_etcd(_: object) -> None:
        lab.stop_operator()
        lab.operator.registered = False
        lab.api.lose_etcd()
        assert not lab.unreachable()

    lab.by_hand = {"stop-kubelet": stop_all, "control-plane": lose_etcd}
    try:
        lab.play(lab.runbook("--change restore-git"))
    finally:
        until(lambda: lab.api.items(CRDS).keys() == kinds, "the operator has registered all CRDs")
        lab.operator.registered = True
    until(lambda: lab.blocks() == blocks, "agents tell their blocks", 300)
    assert len(lab.unreachable()) == len(lab.pods) * (len(lab.pods) - 1)
    lab.pods.clear()
    lab.start_pods("a1", "b1", "c1")
    lab.as_locked()


@pytest.mark.deep(part=0)
def test_agents_that_run_before_an_empty_apiserver_do_not_see_what_it_has(begin: Begin) -> None:
    """They wait for revisions above those of before: why the runbook stops them first."""
    lab = begin(documents("bystander", "ab"), "ab", settings=BGP_CONTROL_PLANE, spare="c")
    lab.install()
    lab.start_pods("a1", "b1")
    kinds = lab.api.items(CRDS).keys()
    lab.stop_operator()
    lab.operator.registered = False
    lab.api.lose_etcd()
    try:
        lab.roll_out()
        until(lambda: lab.api.items(CRDS).keys() == kinds, "the operator has registered all CRDs")
        lab.nodes["c"].register()
        time.sleep(60)
        assert not lab.unreachable()
        assert not lab.blocks().keys() & {"a", "b"}
    finally:
        until(lambda: lab.api.items(CRDS).keys() == kinds, "the operator has registered all CRDs")
        lab.operator.registered = True


@pytest.mark.deep("pinned")
@pytest.mark.parametrize("mode", MODES)
def test_etcd_comes_back_from_a_backup(cluster: LabWithKubelets, mode: str) -> None:
    """Since the backup c was renumbered, d joined and got c's former block, nodes got labels, and a pod started and one ended.

    Pods of both ages go on, where they may.
    """
    lab = cluster
    snapshot = lab.folder / "snapshot.db"
    lab.api.snapshot(snapshot)
    former = lab.blocks()["c"]
    lab.play(lab.runbook("--change renumber --node c"))

    def pin(document: Object) -> None:
        if document["kind"] == "IPPool" and document["metadata"]["name"] == "default":
            document["spec"]["pins"] = {"d": former}

    (block,) = map(ip_network, former)
    until(
        lambda: not any(ip_address(each) in block for each in lab.used("c")),
        "the agent of c tells that it uses nothing of its former block (crd mode)",
        300,
    )
    lab.refresh()
    lab.site.edit(pin)
    lab.sh(f"ipamc lock fleet --release {former[0]}")
    lab.kubelets(["d"])
    lab.sh("kubectl --context=fleet label nodes --all rack=one")
    lab.refreshed()
    lab.sh("ipamc apply fleet")
    lab.seed()
    lab.agents(["d"])
    lab.ready()
    lab.start_pods("a2", "c2", "d1")
    lab.end_pod("b1")
    lab.as_locked()
    blocks = lab.blocks()
    assert blocks["d"] == former

    def restore(step: Mapping[str, Any]) -> None:
        (command,) = step["commands"]
        words = command.removeprefix("sudo ").replace(snapshot.name, str(snapshot)).split()
        lab.api.lose_etcd(*(each for each in words if "data-dir" not in each))
        until(
            lambda: not lab.pods["a1"].reaches(lab.pods["a2"].address),
            "the kubelet of a ends the younger pod",
        )
        assert not lab.pods["c2"].reaches(lab.pods["a2"].address)

    def follow_advice(step: Mapping[str, Any], node: str = "c") -> None:
        for command in step["edit"].splitlines():
            lab.sh(command.replace("NODE", node))

    def again_and_again(_: object) -> None:
        """The first apply withholds d's block while the Node of c has it; by then c has its own."""
        lab.sh("! ipamc apply fleet 2>&1")
        lab.sh("ipamc apply fleet")

    again = ["c", "d"] if mode == "kubernetes" else ["d"]
    lab.by_hand = {
        "stop-kubelet": lambda _: lab.machine("c").stop_kubelet(),
        "restore": restore,
        "stale": follow_advice,
        "pods": follow_advice,
        "restart-kubelet": lambda _: lab.kubelets(again),
        "restart-agent": lambda step: follow_advice(step, "d"),
        "start-kubelet": lambda _: lab.kubelets(["c"]),
        "agent-ready": lambda _: until(
            lambda: all(lab.machine(name).ready() for name in "cd"), "agents are ready", 300
        ),
        **({"ghosts": follow_advice} if mode == "kubernetes" else {}),
        **({"apply": again_and_again} if mode == "annotated" else {}),
    }
    with lab.pinging("a1", "b2") as pings:
        lab.play(lab.runbook("--change restore-etcd"))
    assert not lost(pings)
    assert lab.blocks() == blocks
    assert {node["metadata"]["labels"]["rack"] for node in lab.api.items(NODES).values()} == {"one"}
    for name in ("a2", "c2", "d1"):
        lab.pods.pop(name)
    lab.start_pods("a3", "c3", "d3")
    lab.as_locked()
