"""Rules that keep from the cilium-operator what it would refuse: at its start, or in a CiliumNode's `operator-status`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.api import CILIUM_NODES, Api
from tests.e2e.objects import asks, cilium_node, verdict
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.proof import at_rest, with_operator
from tests.e2e.rules import compile_without, shows
from tests.e2e.site import Site
from tests.support.fleet import cluster, inventory, pool

NONE = {"managedBy": "none"}
ADOPT = {"operator": "adopt"}
CLUSTER_POOL = {
    "ipam": "cluster-pool",
    "enable-ipv4": "true",
    "enable-ipv6": "false",
    "cluster-pool-ipv4-cidr": "10.0.0.0/24",
}
CLUSTER_POOL_26 = {**CLUSTER_POOL, "cluster-pool-ipv4-mask-size": "26"}
MULTI_POOL = {"ipam": "multi-pool", "enable-ipv4": "true", "enable-ipv6": "false"}


def serves(api: Api, stranger: str) -> list[str]:
    """Let a node join that nobody listed; give the blocks that the operator gives it."""
    api.create(CILIUM_NODES, {**cilium_node(stranger), "spec": {}})
    until(
        lambda: api.get(f"{CILIUM_NODES}/{stranger}")["spec"].get("ipam", {}).get("podCIDRs"),
        f"{stranger} is served",
    )
    return list(api.get(f"{CILIUM_NODES}/{stranger}")["spec"]["ipam"]["podCIDRs"])


def does_not_start(operator: Operator, config: dict[str, str]) -> str:
    """Start an operator that ends; give its last words."""
    with operator.start(config) as program:
        program.process.wait(60)
    assert program.process.returncode
    return program.said()


# At its start.


@shows("IPC0207")
def test_ranges_of_one_list_that_overlap(api: Api, operator: Operator, tmp_path: Path) -> None:
    pools = [
        pool("a", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 26}),
        pool("b", ipv4={"cidrs": ["10.0.0.128/25"], "blockSize": 26}),
    ]
    site = Site.made(
        api, tmp_path, [cluster(cilium=NONE), *pools, inventory([{"name": "n"}])], operator.minor
    )
    compile_without(site, "IPC0207")
    assert site.config["cluster-pool-ipv4-cidr"] == "10.0.0.0/24 10.0.0.128/25"
    assert re.search("coll?ides with clusterCIDR", does_not_start(operator, site.config))


@shows("IPC0211")
def test_an_ipv6_range_of_more_than_65536_blocks(api: Api, operator: Operator, tmp_path: Path) -> None:
    pools = [pool("a", ipv6={"cidrs": ["fd00::/96"], "blockSize": 120})]
    site = Site.made(
        api,
        tmp_path,
        [cluster(cilium=NONE, ipFamilies=["IPv6"]), *pools, inventory([{"name": "n"}])],
        operator.minor,
    )
    compile_without(site, "IPC0211")
    assert "too big" in does_not_start(operator, site.config)


@shows("IPC0511")
@pytest.mark.usefixtures("api")
def test_a_family_without_a_range(operator: Operator) -> None:
    assert "must be provided" in does_not_start(operator, {**CLUSTER_POOL_26, "enable-ipv6": "true"})


@pytest.mark.usefixtures("api")
def test_a_range_of_a_family_that_is_off(operator: Operator) -> None:
    """Why keys of a family that is off are left out."""
    assert "must not be set" in does_not_start(
        operator, {**CLUSTER_POOL_26, "cluster-pool-ipv6-cidr": "fd00::/112"}
    )


# In cluster-pool mode.


@shows("IPC0210")
def test_a_range_shorter_than_a_block_is_full_for_ever(api: Api, operator: Operator) -> None:
    config = {**CLUSTER_POOL, "cluster-pool-ipv4-mask-size": "23"}
    with operator.running(config) as program:
        api.create(CILIUM_NODES, {**cilium_node("a"), "spec": {}})
        program.until(lambda: verdict(api.get(f"{CILIUM_NODES}/a")), "the operator says what is wrong")
        live = at_rest(api, operator, config, handled=False)["a"]
    assert "full" in verdict(live)
    assert "podCIDRs" not in live["spec"].get("ipam", {})


@shows("IPC0407", "IPC0423", "IPC0426")
def test_one_block_on_two_nodes(api: Api, operator: Operator) -> None:
    live = with_operator(
        api, operator, CLUSTER_POOL_26, cilium_node("a", "10.0.0.64/26"), cilium_node("b", "10.0.0.64/26")
    )
    if operator.version < (1, 19):
        assert "already allocated" in verdict(live["b"])
        assert live["b"]["spec"]["ipam"]["podCIDRs"] == ["10.0.0.64/26"]  # and both agents use it
    else:
        assert live["b"]["spec"]["ipam"].get("podCIDRs") != ["10.0.0.64/26"]


@shows("IPC0407")
def test_blocks_that_overlap_in_part_are_accepted_silently(api: Api, operator: Operator) -> None:
    live = with_operator(
        api,
        operator,
        {**CLUSTER_POOL, "cluster-pool-ipv4-mask-size": "27"},
        cilium_node("a", "10.0.0.0/27"),
        cilium_node("b", "10.0.0.0/26"),
    )
    assert [(verdict(node), node["spec"]["ipam"]["podCIDRs"]) for node in live.values()] == [
        ("", ["10.0.0.0/27"]),
        ("", ["10.0.0.0/26"]),
    ]


@shows("IPC0410", "IPC0417")
def test_a_block_in_no_range(api: Api, operator: Operator) -> None:
    live = with_operator(api, operator, CLUSTER_POOL_26, cilium_node("a", "172.20.0.0/26"))
    assert "allocator not configured for the requested CIDR 172.20.0.0/26" in verdict(live["a"])


@shows("IPC0412")
def test_a_block_of_a_family_that_is_off(api: Api, operator: Operator) -> None:
    live = with_operator(api, operator, CLUSTER_POOL_26, cilium_node("a", "10.0.0.0/26", "fd00::/120"))
    assert "allocator for IPv6 addresses does not exist" in verdict(live["a"])


@shows("IPC0502", "IPC0408", "IPC0425")
def test_two_blocks_of_a_family_are_adopted_and_the_agent_uses_the_first(
    api: Api, operator: Operator
) -> None:
    live = with_operator(api, operator, CLUSTER_POOL_26, cilium_node("a", "10.0.0.0/26", "10.0.0.64/26"))
    assert (verdict(live["a"]), live["a"]["spec"]["ipam"]["podCIDRs"]) == (
        "",
        ["10.0.0.0/26", "10.0.0.64/26"],
    )


@shows("IPC0513", "IPC0911", "IPC0912", "IPC0970")
def test_another_block_for_a_running_node(api: Api, operator: Operator) -> None:
    with operator.running(CLUSTER_POOL_26):
        api.create(CILIUM_NODES, cilium_node("a", "10.0.0.0/26"))
        at_rest(api, operator, CLUSTER_POOL_26, handled=True)
        api.change(f"{CILIUM_NODES}/a", lambda whole: whole["spec"]["ipam"].update(podCIDRs=["10.0.0.64/26"]))
        live = at_rest(api, operator, CLUSTER_POOL_26, handled=True)["a"]
    if operator.version < (1, 19):
        assert "conflict" in verdict(live)
    else:
        assert live["spec"]["ipam"]["podCIDRs"] == ["10.0.0.0/26"]  # undone


@shows("IPC0512", "IPC0221")
def test_adopt_without_a_pool_of_its_own_keeps_the_operator_from_starting(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    documents = [
        cluster(ipam=ADOPT, cilium=NONE),
        pool("a", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 26}),
        inventory([{"name": "n"}]),
    ]
    site = Site.made(api, tmp_path, documents, operator.minor)
    compile_without(site, "IPC0512")
    assert "cluster-pool-ipv4-cidr must be provided" in does_not_start(operator, site.config)
    with operator.running({**CLUSTER_POOL_26, "cluster-pool-ipv4-cidr": "10.0.0.0/24"}):  # ours instead
        site.apply()
        # What the next newcomer of the inventory would get
        assert serves(api, "stranger") == ["10.0.0.64/26"]


@shows("IPC0222")
def test_the_operator_gives_a_pinned_block_of_the_unlisted_pool_to_a_stranger(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    spare = pool(
        "spare",
        ipv4={"cidrs": ["10.9.0.0/24"], "blockSize": 26},
        unlisted=True,
        pins={"later": ["10.9.0.0/26"]},
    )
    documents = [
        cluster(ipam=ADOPT, cilium=NONE),
        pool("a", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 26}),
        spare,
        inventory([{"name": "n"}]),
    ]
    site = Site.made(api, tmp_path, documents, operator.minor)
    compile_without(site, "IPC0222")
    with operator.running(site.config):
        site.apply()
        assert serves(api, "stranger") == ["10.9.0.0/26"]


@shows("IPC0553", "IPC0424")
def test_a_planned_node_with_adopt_before_1_18_joins_with_a_block_of_the_operator(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    if operator.version >= (1, 18):
        pytest.skip("its CiliumNode is kept from 1.18 on")
    spare = pool("spare", ipv4={"cidrs": ["10.9.0.0/26"], "blockSize": 26}, unlisted=True)
    nodes = inventory([{"name": "n", "planned": True}])
    documents = [
        cluster(ipam=ADOPT, cilium=NONE),
        pool("a", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 26}),
        spare,
        nodes,
    ]
    site = Site.made(api, tmp_path, documents, operator.minor)
    compile_without(site, "IPC0553")
    with operator.running(site.config):
        site.apply()
        assert site.lock()["n"] == [("a", "10.0.0.0/26")]
        assert serves(api, "n") == ["10.9.0.0/26"]  # it joins, and its agent creates its CiliumNode


@shows("IPC0515")
def test_the_flag_beats_the_config_map(api: Api, operator: Operator) -> None:
    with operator.running(CLUSTER_POOL_26, "--ipam=kubernetes"):
        api.create(CILIUM_NODES, {**cilium_node("a"), "spec": {}})
        at_rest(api, operator, CLUSTER_POOL_26, handled=False)
        assert "podCIDRs" not in at_rest(api, operator, CLUSTER_POOL_26, handled=False)["a"]["spec"].get(
            "ipam", {}
        )
    with operator.running(CLUSTER_POOL_26):
        assert at_rest(api, operator, CLUSTER_POOL_26, handled=True)["a"]["spec"]["ipam"]["podCIDRs"]


@shows("IPC0521")
def test_multi_pool_mode_of_an_operator_that_has_none(api: Api, operator: Operator) -> None:
    if operator.version >= (1, 14):
        pytest.skip("it has")
    with operator.start(MULTI_POOL):
        api.create(CILIUM_NODES, cilium_node("a", pools=asks("default", 8)))
        # Its CRD does not know the field
        assert "pools" not in at_rest(api, operator, MULTI_POOL, handled=False)["a"]["spec"]["ipam"]
