"""What running nodes show, against the lock: what would happen where our rules about it refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.api import CILIUM_NODES, POOLS, Api, Object
from tests.e2e.objects import allocated, asks, cilium_node, ip_pool
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.rules import compile_without, shows
from tests.e2e.site import Site
from tests.support.fleet import cluster, inventory, pool

NONE = {"managedBy": "none"}
CONFIG = {"enable-ipv4": "true", "enable-ipv6": "false"}
CLUSTER_POOL = {
    **CONFIG,
    "ipam": "cluster-pool",
    "cluster-pool-ipv4-cidr": "10.0.0.0/24",
    "cluster-pool-ipv4-mask-size": "26",
}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def pod_cidrs(api: Api, name: str) -> list[str]:
    """Return the podCIDRs of a CiliumNode."""
    return list(api.get(f"{CILIUM_NODES}/{name}")["spec"].get("ipam", {}).get("podCIDRs", ()))


@shows("IPC0434")
def test_a_first_compile_that_knows_no_blocks_changes_those_of_running_nodes(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """The operator gave the second node, which asked first, the lowest block; by name it is the first node's."""
    nodes: Object = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": READY} for name in "ab"
        ],
    }
    documents = [
        cluster("cluster-pool", cilium=NONE),
        pool("all", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 26}),
        nodes,
    ]
    site = Site.made(api, tmp_path, documents, operator.minor)
    with operator.running(CLUSTER_POOL):
        for name in "ba":
            api.create(CILIUM_NODES, cilium_node(name))
            until(lambda name=name: pod_cidrs(api, name), f"{name} has a block")  # type: ignore[misc]
    before = {name: pod_cidrs(api, name) for name in "ab"}
    compile_without(site, "IPC0434")
    rendered = {
        each["metadata"]["name"]: each["spec"]["ipam"]["podCIDRs"]
        for each in site.rendering("ciliumnodes/*/ciliumnodes.yaml")
    }
    assert before["b"] == rendered["a"] == ["10.0.0.0/26"]
    assert before["a"] == rendered["b"]


@shows("IPC0435")
def test_a_settled_block_of_a_shared_pool_is_the_operators_all_the_same(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    if operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    documents = [
        cluster("multi-pool", cilium=NONE),
        pool("default", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 27}),
        inventory([{"name": "a"}]),
    ]
    site = Site.made(api, tmp_path, documents, operator.minor)
    site.compile()
    site.run("lock", site.name, "--renumber", "a")
    with operator.running({**CONFIG, "ipam": "multi-pool"}):
        api.create(POOLS, ip_pool("default", "10.0.0.0/24", size=27))
        api.create(CILIUM_NODES, cilium_node("a", pools=asks("default", 8)))
        until(lambda: allocated(api.get(f"{CILIUM_NODES}/a")), "the operator gives a block")
    live = api.get(f"{CILIUM_NODES}/a")
    assert allocated(live) == ["10.0.0.0/27"]  # not the pending one
    site.write("ciliumnodes.yaml", {key: live[key] for key in ("apiVersion", "kind", "metadata", "spec")})
    site.run("lock", site.name, "--settle", "a", code=1)
    assert "IPC0435" in site.said


def test_the_lock_follows_what_the_operator_gave(api: Api, operator: Operator, tmp_path: Path) -> None:
    """A node asks for more, another one is created again: their lines are what they have, and whoever has other blocks now is counted."""
    if operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    documents = [
        cluster("multi-pool", cilium=NONE),
        pool("default", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 27}),
        inventory([{"name": name} for name in "abc"]),
    ]
    site = Site.made(api, tmp_path, documents, operator.minor)
    site.compile()
    with operator.running({**CONFIG, "ipam": "multi-pool"}):
        api.create(POOLS, ip_pool("default", "10.0.0.0/24", size=27))
        for name in "cba":  # not in the order of the lock
            api.create(CILIUM_NODES, cilium_node(name, pools=asks("default", 40 if name == "b" else 8)))
            until(lambda name=name: allocated(api.get(f"{CILIUM_NODES}/{name}")), f"{name} has blocks")  # type: ignore[misc]
    live = api.items(CILIUM_NODES)
    site.write(
        "ciliumnodes.yaml",
        *({key: node[key] for key in ("apiVersion", "kind", "metadata", "spec")} for node in live.values()),
    )
    before = site.lock()
    site.compile()
    others = sum(not {*before[name]} <= {*blocks} for name, blocks in site.lock().items())
    assert f"{others} renumbered" in site.said
    assert {name: [block for _, block in blocks] for name, blocks in site.lock().items()} == {
        name: allocated(node) for name, node in live.items()
    }
    site.compile("--locked", "--check")


@shows("IPC0438")
def test_without_seeds_the_operator_gives_other_blocks(api: Api, operator: Operator, tmp_path: Path) -> None:
    if operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    documents = [
        cluster("multi-pool", cilium=NONE),
        pool("default", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 27}),
        inventory([{"name": name} for name in "abcdef"]),
    ]
    site = Site.made(api, tmp_path, documents, operator.minor)
    site.compile()
    with operator.running({**CONFIG, "ipam": "multi-pool"}):
        api.create(POOLS, ip_pool("default", "10.0.0.0/24", size=27))
        for name in "fedcba":
            api.create(CILIUM_NODES, cilium_node(name, pools=asks("default", 8)))
            until(lambda name=name: allocated(api.get(f"{CILIUM_NODES}/{name}")), f"{name} has blocks")  # type: ignore[misc]
    live = api.items(CILIUM_NODES)
    site.write(
        "ciliumnodes.yaml",
        *({key: node[key] for key in ("apiVersion", "kind", "metadata", "spec")} for node in live.values()),
    )
    site.compile(code=1)
    assert "IPC0438" in site.said
    assert "6 of 6 nodes" in site.said
    site.run("lock", site.name, "--follow")
    site.compile("--locked")
    assert {name: [block for _, block in blocks] for name, blocks in site.lock().items()} == {
        name: allocated(node) for name, node in live.items()
    }
