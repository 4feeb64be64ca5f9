"""A renumber by its runbook, with pods that run; and what the steps in another order would do."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from tests.e2e.agents.clusters import MODES, documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import lost
from tests.e2e.api import CILIUM_NODES, Object
from tests.e2e.processes import until

OLD, NEW = "10.0.0.32/27", "10.0.0.96/27"
"""The block of node b, and the next one that is free."""


@pytest.mark.deep("annotated", "pinned")
@pytest.mark.parametrize("mode", sorted(MODES))
def test_pods_come_back_in_the_new_block_and_no_other_pod_loses_a_packet(begin: Begin, mode: str) -> None:
    lab = begin(documents(mode))
    lab.install()
    lab.start_pods("a1", "b1", "b2", "c1")
    lab.as_locked()
    assert lab.blocks()["b"] == [OLD]

    with lab.pinging("a1", "c1") as pings:
        lab.play(lab.runbook("--change renumber --node b"))
        assert sorted(lab.pods) == ["a1", "c1"]  # the drain ended the others
        lab.start_pods("b1", "b2")
    assert not lost(pings)
    assert lab.blocks()["b"] == [NEW]
    lab.as_locked()


def test_ci_apply_withholds_the_new_block_from_a_node_with_pods(begin: Begin) -> None:
    lab = begin(documents("bystander"))
    lab.install()
    lab.start_pods("a1", "b1")
    lab.sh("ipamc lock fleet --renumber b && ipamc compile fleet && git add -A && git commit -qm consent")
    lab.sh("ipamc lock fleet --settle b && ipamc compile fleet && git add -A && git commit -qm settled")
    with lab.pinging("a1", "b1") as pings:
        said = lab.sh("! ipamc apply fleet 2>&1")
    assert f"CiliumNode b: not applied: {OLD} would become {NEW}, but 1 pod on node b" in said
    assert lab.blocks()["b"] == [OLD]
    assert not lost(pings)


@pytest.mark.deep(part=0)
def test_podcidrs_that_change_under_a_running_agent_cut_its_pods_off(begin: Begin) -> None:
    """What a drain is for: other nodes route by the new block at once, the agent gives out addresses of the old one until it restarts."""
    lab = begin(documents("bystander"))
    lab.install()
    lab.start_pods("a1", "b1", "c1")
    lab.as_locked()

    def patch(node: Object) -> None:
        node["spec"]["ipam"]["podCIDRs"] = [NEW]

    lab.api.change(f"{CILIUM_NODES}/b", patch)
    cut = {("a1", "b1"), ("b1", "a1"), ("c1", "b1"), ("b1", "c1")}
    until(lambda: lab.unreachable() == cut, "the pod of b is cut off, and no other one")
    lab.start_pods("b2")
    assert ip_address(lab.pods["b2"].address) in ip_network(OLD)
    assert not lab.pods["a1"].reaches(lab.pods["b2"].address)
    assert lab.pods["a1"].reaches(lab.pods["c1"].address)

    for name in ("b1", "b2"):
        lab.end_pod(name)
    lab.agents(["b"])
    lab.ready()
    lab.start_pods("b3")
    assert ip_address(lab.pods["b3"].address) in ip_network(NEW)
    assert not lab.unreachable()
