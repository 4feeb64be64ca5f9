"""Objects that somebody deletes or edits under running agents: who is cut off, and that the audit says what mends it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
from tests.e2e.agents.clusters import documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import ENDPOINTS, Lab
from tests.e2e.agents.node import AGENT_PODS
from tests.e2e.agents.pod import Pod
from tests.e2e.api import CILIUM_NODES, MERGE, NODES, POOLS, Object
from tests.e2e.objects import cilium_node
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.rules import shows
from tests.support.fleet import pool

CUT_OFF = {("a1", "b1"), ("b1", "a1")}


def mended(lab: Lab, code: str) -> None:
    """Do what the audit says about a finding; a kubelet starts the agent whose Pod is deleted."""
    long_ago = {"status": {"startTime": "2026-01-01T00:00:00Z"}}  # Pods of the last five minutes do not count
    for node in lab.nodes.values():
        lab.api.sure("PATCH", f"{AGENT_PODS}/{node.pod}/status", long_ago, MERGE)
    said = lab.audit(problems=True)
    restart = r"= help: (kubectl -n kube-system delete pod -l k8s-app=cilium \S+ spec.nodeName=a)"
    found = re.search(rf"\[{code}\].*?{restart}", said, re.DOTALL)
    assert found, said
    lab.sh(found[1].replace("kubectl", f"kubectl --context={lab.site.name}"))


@pytest.mark.deep("pinned")
@pytest.mark.parametrize("mode", ["kubernetes", "bystander", "pinned", "crd"])
def test_a_node_is_cut_off_until_its_agent_restarts_if_its_ciliumnode_is_deleted(
    begin: Begin, mode: str
) -> None:
    lab = begin(documents(mode, "ab"), "ab")
    lab.install()
    lab.start_pods("a1", "b1")
    lab.refreshed()

    lab.api.delete(f"{CILIUM_NODES}/a")

    def cut_off() -> bool:
        if lab.unreachable() == CUT_OFF:
            return True
        if mode == "pinned" and lab.blocks().get("a"):  # its agent was about to write it, and asked again
            lab.api.delete(f"{CILIUM_NODES}/a")
        return False

    until(cut_off, "the pod of a is cut off")
    lab.sh("ipamc apply fleet --repair")
    assert lab.unreachable() == CUT_OFF

    mended(lab, "IPC0922" if mode == "pinned" else "IPC0952")
    until(lambda: not lab.unreachable(), "the pod of a is reached again", 300)
    lab.ready()
    lab.start_pods("a2")
    lab.as_locked()


@shows("IPC0910")
@pytest.mark.deep(part=0)
@pytest.mark.parametrize("mode", ["bystander", "kubernetes"])
def test_the_node_that_keeps_a_block_of_two_is_reached_again_some_time_after_the_other_one_has_its_own(
    begin: Begin, mode: str
) -> None:
    """The route to the block goes with the other node's CiliumNode; the agents' next round brings it back."""
    lab = begin(documents(mode))
    lab.install()
    lab.start_pods("a1", "c1")
    right = lab.blocks()

    def joins_again(**spec: Any) -> None:
        lab.nodes["b"].stop_agent()
        lab.api.delete(f"{NODES}/b", f"{CILIUM_NODES}/b")
        lab.nodes["b"].register(**spec)

    (block,) = right["a"]
    if mode == "kubernetes":
        joins_again(podCIDR=block, podCIDRs=[block])
    else:
        lab.api.change(f"{CILIUM_NODES}/b", lambda node: node["spec"]["ipam"].update(podCIDRs=[block]))
    lab.agents(["b"])
    lab.ready()
    lab.start_pods("b1")
    assert lab.blocks()["b"] == [block]
    said = lab.audit(problems=True)
    assert f"error[IPC0910]: nodes a and b both have {block}" in said
    assert "a keeps the block: drain b" in said

    lab.end_pod("b1")
    if mode == "kubernetes":
        joins_again()
        lab.refreshed()
        lab.sh("ipamc apply fleet")
    else:
        lab.api.delete(f"{CILIUM_NODES}/b")
        lab.sh("ipamc apply fleet --repair")
    lab.agents(["b"])
    lab.ready()
    lab.start_pods("b2")
    until(lambda: not lab.unreachable(), "all reach all again", 300)
    assert lab.blocks() == right
    lab.as_locked()


@pytest.mark.deep(part=0)
def test_no_pod_starts_or_a_node_loses_its_block_where_its_pool_is_deleted(
    begin: Begin, operator: Operator
) -> None:
    """By minor; either is over once the pool is there again."""
    lab = begin(documents("pinned", "ab"), "ab")
    lab.install()
    lab.start_pods("a1", "b1")
    before = lab.blocks()
    lab.api.delete(f"{POOLS}/default.a")
    if can(operator.version, Capability.ORPHAN_BLOCKS):
        with Pod("a2", lab.nodes["a"]) as pod:
            assert pod.cni("ADD").returncode
        assert lab.blocks() == before
        assert not lab.unreachable()
    else:
        lab.agents("a")
        until(lambda: not lab.blocks()["a"], "the operator has emptied the CiliumNode", 300)
    lab.sh("ipamc apply fleet --repair --wait 5")  # an operator that has no time corrects its error later
    lab.agents("a")
    lab.ready()
    lab.start_pods("a3")
    lab.as_locked()


def with_endpoints(begin: Begin) -> tuple[Lab, Callable[[], bool]]:
    """Run a cluster with two pods; return it, and what tells whether their endpoints have their addresses, as they do now."""
    lab = begin(documents("bystander", "ab"), "ab")
    lab.install()
    lab.start_pods("a1", "b1")
    right = lab.addresses()

    def are_right() -> bool:
        return lab.addresses_of_endpoints() == right

    until(are_right, "the agents have written the endpoints")
    return lab, are_right


@pytest.mark.deep(part=0)
def test_an_endpoint_that_is_deleted_is_written_anew_at_once_or_once_its_agent_restarts(
    begin: Begin, operator: Operator
) -> None:
    lab, are_right = with_endpoints(begin)
    lab.api.delete(f"{ENDPOINTS}/a1")
    with nullcontext() if operator.version >= (1, 18) else pytest.raises(AssertionError, match="not after"):
        until(are_right, "the endpoint is there again", 60)
    lab.agents("a")
    lab.ready()
    until(are_right, "the endpoint is there again", 300)


@pytest.mark.deep(part=0)
def test_an_endpoint_with_another_address_is_right_once_its_agent_restarts(begin: Begin) -> None:
    lab, are_right = with_endpoints(begin)
    used = lab.addresses().values()

    def patch(endpoint: Object) -> None:
        other = next(address for address in ("10.0.0.29", "10.0.0.30") if address not in used)
        endpoint["status"]["networking"]["addressing"][0]["ipv4"] = other

    lab.api.change(f"{ENDPOINTS}/a1", patch)
    with pytest.raises(AssertionError, match="not after"):
        until(are_right, "the agent has seen it", 15)
    mended(lab, "IPC0963")
    until(are_right, "the endpoint has the address of its pod", 300)


@pytest.mark.deep(part=0)
def test_an_agent_that_runs_writes_its_block_into_the_ciliumnode_whatever_its_new_node_says(
    begin: Begin,
) -> None:
    lab = begin(documents("kubernetes", "ab"), "ab")
    lab.install()
    (old,), other = lab.blocks()["b"], "10.0.0.96/27"
    lab.api.delete(f"{NODES}/b", f"{CILIUM_NODES}/b")
    lab.nodes["b"].register(podCIDR=other, podCIDRs=[other])
    until(lambda: lab.blocks()["b"] == [old], "the CiliumNode is there, with the block of before", 300)
    lab.agents("b")
    lab.ready()
    assert lab.blocks()["b"] == [other]


@pytest.mark.deep(part=0)
def test_an_agent_keeps_the_first_block_of_its_pool_and_gives_back_another_one(
    begin: Begin, operator: Operator
) -> None:
    lab = begin(documents("shared", "a"), "a")
    lab.apply()
    lab.roll_out()
    blocks = ["10.0.0.64/27", "10.0.0.96/27"]
    lab.api.delete(f"{CILIUM_NODES}/a")
    seeded(lab, {"default": blocks})
    assert lab.blocks()["a"] == blocks
    lab.agents("a")
    lab.ready()
    given_back(lab, operator, blocks[:1])


def seeded(lab: Lab, blocks: Mapping[str, Sequence[str]]) -> None:
    """Apply a CiliumNode for a that has these blocks, by pool."""
    seeds = [{"pool": pool, "cidrs": some} for pool, some in blocks.items()]
    lab.api.applied(json.dumps(cilium_node("a", pools={"allocated": seeds})), "--field-manager=ipamc-seeds")


def given_back(lab: Lab, operator: Operator, left: list[str]) -> None:
    """Say that an agent gives back what is not left, from 1.17 on."""
    gives_back = operator.version >= (1, 17)
    with nullcontext() if gives_back else pytest.raises(AssertionError, match="not after"):
        until(lambda: lab.blocks()["a"] == left, "a block is given back", 300 if gives_back else 90)


@pytest.mark.deep(part=0)
def test_an_agent_gives_back_the_block_of_a_second_pool_that_no_pod_uses(
    begin: Begin, operator: Operator
) -> None:
    """Within a minute, from 1.17 on; the block of the pool that the agent asks for stays."""
    second = pool("second", ipv4={"cidrs": ["10.1.0.0/24"], "blockSize": 27}, podsOnly=True)
    lab = begin([*documents("pinned", "ab"), second], "ab")
    lab.apply()
    lab.roll_out()
    own, more = "10.0.0.0/27", "10.1.0.0/27"
    seeded(lab, {"default.a": [own], "second": [more]})
    assert sorted(lab.blocks()["a"]) == [own, more]
    lab.agents(lab.names)
    lab.ready()
    given_back(lab, operator, [own])
