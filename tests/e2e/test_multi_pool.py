"""Multi-pool mode: who owns `pools.allocated`, and what the operator does with what our rules keep from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.api import CILIUM_NODES, POOLS, Api, Object
from tests.e2e.objects import allocated, asks, cilium_node, ip_pool, verdict
from tests.e2e.operator import Operator
from tests.e2e.proof import (
    agents_start,
    apply_seeds,
    applying_again_changes_nothing,
    at_rest,
    holds,
    with_operator,
)
from tests.e2e.rules import compile_without, shows
from tests.e2e.site import Site, dumped
from tests.support.fleet import cluster, inventory, pool

NONE = {"managedBy": "none"}
CONFIG = {"ipam": "multi-pool", "enable-ipv4": "true", "enable-ipv6": "false"}
DEFAULT = {"cidrs": ["10.0.0.0/24"], "blockSize": 27}


@pytest.fixture(autouse=True)
def _since_1_15(operator: Operator) -> None:
    if operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")


def site_of(
    api: Api, operator: Operator, work: Path, *pools: Object, pinning: str = "pool", nodes: str = "ab"
) -> Site:
    """Make a multi-pool cluster."""
    documents = [
        cluster("multi-pool", ipam={"pinning": pinning}, cilium=NONE),
        *pools,
        inventory([{"name": name} for name in nodes]),
    ]
    return Site.made(api, work, documents, operator.minor)


def compiled(
    api: Api, operator: Operator, work: Path, *pools: Object, pinning: str = "pool", nodes: str = "ab"
) -> Site:
    """Make it, let the nodes join, and compile."""
    site = site_of(
        api, operator, work, *(pools or [pool("default", ipv4=DEFAULT)]), pinning=pinning, nodes=nodes
    )
    site.join()
    site.compile()
    return site


def seed(name: str, pool: str, *cidrs: str) -> Object:
    """Make a CiliumNode that holds blocks of a pool."""
    return cilium_node(name, pools={"allocated": [{"pool": pool, "cidrs": list(cidrs)}]})


# The list belongs to the operator and the agent.


@pytest.mark.parametrize("pinning", ["none", "pool"])
def test_what_an_agent_takes_and_drops_stays_as_it_likes(
    api: Api, operator: Operator, tmp_path: Path, pinning: str
) -> None:
    site = compiled(api, operator, tmp_path, pinning=pinning)
    with operator.running(site.config):
        site.apply()
        apply_seeds(site)
        agents_start(site)
        holds(site, operator)
        api.change(
            f"{CILIUM_NODES}/a",
            lambda whole: whole["spec"]["ipam"].update(
                pools={**whole["spec"]["ipam"]["pools"], **asks("default", 70)}
            ),
        )
        more = allocated(at_rest(api, operator, site.config, handled=True)["a"])
        assert more == ["10.0.0.0/27", "10.0.0.64/27", "10.0.0.96/27"]
        applying_again_changes_nothing(site)

        def drops(whole: Object) -> None:
            whole["spec"]["ipam"]["pools"] = {
                "allocated": [{"pool": "default", "cidrs": ["10.0.0.96/27"]}],
                **asks("default", 16),
            }

        api.change(f"{CILIUM_NODES}/a", drops)
        assert allocated(at_rest(api, operator, site.config, handled=True)["a"]) == ["10.0.0.96/27"]
        applying_again_changes_nothing(site)


def test_a_seed_that_is_forced_again_takes_blocks_away_from_running_pods(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """Why seeds are in no kustomization: GitOps tools apply with force."""
    site = compiled(api, operator, tmp_path)
    with operator.running(site.config):
        site.apply()
        apply_seeds(site)
        at_rest(api, operator, site.config, handled=True)
        api.change(
            f"{CILIUM_NODES}/a", lambda whole: whole["spec"]["ipam"]["pools"].update(asks("default", 70))
        )
        before = allocated(at_rest(api, operator, site.config, handled=True)["a"])
        seeds = dumped(site.rendering("seeds/*.yaml"))
        assert "conflict" in api.apply(seeds).stderr
        api.applied(seeds, "--force-conflicts")
        after = allocated(at_rest(api, operator, site.config, handled=True)["a"])
    assert len(before) == len(after) == 3
    assert set(before) - set(after)


def test_seeds_before_their_pools_are_emptied_silently(api: Api, operator: Operator, tmp_path: Path) -> None:
    """Why order matters: kustomize's own would put CiliumNodes first. From 1.19 the operator keeps them, and says so."""
    site = compiled(api, operator, tmp_path)
    with operator.running(site.config):
        apply_seeds(site)
        at_rest(api, operator, site.config, handled=True)
        site.apply()
        live = at_rest(api, operator, site.config, handled=True)["a"]
    assert allocated(live) == ([] if operator.version < (1, 19) else ["10.0.0.0/27"])


def test_with_a_pool_a_node_nobody_can_have_anything_else(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """Without any seed, in the wrong order, and with agents that ask for more than there is."""
    site = compiled(api, operator, tmp_path, pinning="node")
    with operator.running(site.config):
        site.apply()
        for name in "ba":
            api.create(CILIUM_NODES, cilium_node(name, pools=asks(f"default.{name}", 100)))
        live = at_rest(api, operator, site.config, handled=True)
    assert {name: allocated(node) for name, node in live.items()} == {
        "a": ["10.0.0.0/27"],
        "b": ["10.0.0.32/27"],
    }
    assert all("pool empty" in verdict(node) for node in live.values())


def test_the_operator_s_flag_makes_the_pools_that_manifests_would(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    found = []
    for create in ([], ["default", "dual"]):
        api.delete(POOLS)
        families = {
            "ipv4": {"cidrs": ["10.1.0.0/24", "10.2.0.0/24"], "blockSize": 26},
            "ipv6": {"cidrs": ["fd00::/112"], "blockSize": 120},
        }
        documents = [
            cluster(
                "multi-pool",
                ipam={"pinning": "none", "autoCreate": create},
                cilium=NONE,
                ipFamilies=["IPv4", "IPv6"],
            ),
            pool(
                "default",
                ipv4=DEFAULT,
                ipv6={"cidrs": ["fd00:1::/112"], "blockSize": 120},
                reserved=["10.0.0.0/26"],
            ),
            pool("dual", **families),
        ]
        site = Site.made(api, tmp_path / str(len(create)), documents, operator.minor)
        site.compile()
        with operator.running(site.config):
            site.apply()
            at_rest(api, operator, site.config, handled=True)
            found.append({name: each["spec"] for name, each in api.items(POOLS).items()})
    assert found[0] == found[1]
    assert found[0].keys() == {"default", "dual"}


def test_the_operator_s_own_order_of_blocks(api: Api, operator: Operator) -> None:
    """By pool, then by address from 1.20 on, before as text: seeds are written in the order of the version, or each apply of one would be a change."""
    api.create(POOLS, ip_pool("b", "10.0.0.0/24"), ip_pool("a", "10.1.0.0/24"))
    blocks = {"b": ["10.0.0.96/27", "10.0.0.128/27"], "a": ["10.1.0.0/27"]}
    live = with_operator(
        api,
        operator,
        CONFIG,
        cilium_node(
            "n", pools={"allocated": [{"pool": pool, "cidrs": some} for pool, some in blocks.items()]}
        ),
    )
    text = ["10.0.0.128/27", "10.0.0.96/27"]
    assert live["n"]["spec"]["ipam"]["pools"]["allocated"] == [
        {"pool": "a", "cidrs": ["10.1.0.0/27"]},
        {"pool": "b", "cidrs": text if operator.version < (1, 20) else text[::-1]},
    ]


# What our rules keep from it.


@shows("IPC0207", "IPC0533")
def test_pools_that_overlap_give_one_block_to_two_nodes(api: Api, operator: Operator) -> None:
    api.create(POOLS, ip_pool("one", "10.0.0.0/24"), ip_pool("two", "10.0.0.0/25"))
    live = with_operator(
        api, operator, CONFIG, cilium_node("a", pools=asks("one", 8)), cilium_node("b", pools=asks("two", 8))
    )
    assert allocated(live["a"]) == allocated(live["b"]) == ["10.0.0.0/27"]
    assert [verdict(node) for node in live.values()] == ["", ""]


@shows("IPC0536")
def test_so_do_a_shared_pool_and_the_pool_of_a_node(api: Api, operator: Operator) -> None:
    api.create(POOLS, ip_pool("default.a", "10.0.0.0/27"), ip_pool("default", "10.0.0.0/24"))
    live = with_operator(
        api,
        operator,
        CONFIG,
        seed("a", "default.a", "10.0.0.0/27"),
        cilium_node("b", pools=asks("default", 8)),
    )
    assert allocated(live["a"]) == allocated(live["b"]) == ["10.0.0.0/27"]


@shows("IPC0414", "IPC0525")
def test_a_pool_that_is_not_there(api: Api, operator: Operator) -> None:
    live = with_operator(api, operator, CONFIG, seed("a", "gone", "10.0.0.0/27"))
    if operator.version < (1, 19):
        assert (allocated(live["a"]), verdict(live["a"])) == ([], "")
    else:
        assert (allocated(live["a"]), "orphan" in verdict(live["a"])) == (["10.0.0.0/27"], True)


@shows("IPC0407", "IPC0426")
def test_one_block_on_two_nodes(api: Api, operator: Operator) -> None:
    api.create(POOLS, ip_pool("default", "10.0.0.0/27"))
    live = with_operator(
        api, operator, CONFIG, seed("a", "default", "10.0.0.0/27"), seed("b", "default", "10.0.0.0/27")
    )
    assert (allocated(live["a"]), allocated(live["b"])) == (["10.0.0.0/27"], [])


@shows("IPC0410", "IPC0913")
def test_a_block_in_no_range(api: Api, operator: Operator) -> None:
    api.create(POOLS, ip_pool("default", "10.0.0.0/24"))
    assert allocated(with_operator(api, operator, CONFIG, seed("a", "default", "10.9.0.0/27"))["a"]) == []


@shows("IPC0524")
def test_another_mask_size(api: Api, operator: Operator) -> None:
    api.create(POOLS, ip_pool("default", "10.0.0.0/24"))
    with operator.running(CONFIG) as program:
        api.create(CILIUM_NODES, cilium_node("a", pools=asks("default", 8)))
        at_rest(api, operator, CONFIG, handled=True)
        changed = api.apply(dumped([ip_pool("default", "10.0.0.0/24", size=26)]), "--force-conflicts")
        if operator.version < (1, 20):
            assert changed.returncode == 0
            program.until(
                lambda: "cannot change IPv4 mask size in existing pool" in program.said(),
                "the operator refuses it",
            )
        else:
            assert "immutable" in changed.stderr


@shows("IPC0527")
def test_a_pool_of_a_node_that_is_too_small_for_its_agent(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """An idle agent uses 3 addresses itself, and with a pre-allocation of 1 asks for 4: a /30 has 2."""
    site = site_of(
        api,
        operator,
        tmp_path,
        pool("default", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 30}),
        pinning="node",
        nodes="a",
    )
    compile_without(site, "IPC0527")
    with operator.running(site.config):
        site.apply()
        api.create(CILIUM_NODES, cilium_node("a", pools=asks("default.a", 4)))
        live = at_rest(api, operator, site.config, handled=True)["a"]
    assert (allocated(live), "pool empty" in verdict(live)) == (["10.0.0.0/30"], True)


@shows("IPC0224", "IPC0528")
def test_the_operator_gives_as_many_blocks_as_an_agent_asks_for_all_of_one_size(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    large = pool("default", ipv4=DEFAULT, blockSizes=[{"nodeSelector": 'size == "large"', "ipv4": 26}])
    site = site_of(api, operator, tmp_path, large, nodes="a")
    site.edit(
        lambda each: (
            each["nodes"][0].update(labels={"size": "large"}) if each["kind"] == "NodeInventory" else None
        )
    )
    compile_without(site, "IPC0528")
    assert site.lock()["a"] == [("default", "10.0.0.0/26")]
    with operator.running(site.config):
        site.apply()
        api.create(CILIUM_NODES, cilium_node("a", pools=asks("default", 40)))
        assert allocated(at_rest(api, operator, site.config, handled=True)["a"]) == [
            "10.0.0.0/27",
            "10.0.0.32/27",
        ]


@pytest.mark.parametrize("allowed", [True, False])
def test_the_first_and_the_last_address_count_where_a_pool_allows_them(
    api: Api, operator: Operator, *, allowed: bool
) -> None:
    if operator.version < (1, 20):
        pytest.skip("a CiliumPodIPPool of this version has no such fields")
    made = ip_pool("default", "10.0.0.0/24")
    made["spec"] |= {"allowFirstIP": allowed, "allowLastIP": allowed}
    api.create(POOLS, made)
    live = with_operator(api, operator, CONFIG, cilium_node("a", pools=asks("default", 32)))["a"]
    assert allocated(live) == (["10.0.0.0/27"] if allowed else ["10.0.0.0/27", "10.0.0.32/27"])


def test_the_operator_keeps_what_a_seed_says_of_the_first_and_the_last_address(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    if operator.version < (1, 20):
        pytest.skip("a CiliumPodIPPool of this version has no such fields")
    tiny = pool(
        "default", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 29}, allowFirstIP=True, allowLastIP=True
    )
    site = compiled(api, operator, tmp_path, tiny, pinning="node")
    site.apply()
    apply_seeds(site)
    seeds = {
        each["metadata"]["name"]: each["spec"]["ipam"]["pools"] for each in site.rendering("seeds/*.yaml")
    }
    assert all(
        each["allowFirstIP"] and each["allowLastIP"] for some in seeds.values() for each in some["allocated"]
    )
    with operator.running(site.config):
        live = at_rest(api, operator, site.config, handled=True)
        agents_start(site)
        applying_again_changes_nothing(site)
        after = at_rest(api, operator, site.config, handled=True)
    for found in (live, after):
        assert {name: node["spec"]["ipam"]["pools"]["allocated"] for name, node in found.items()} == {
            name: some["allocated"] for name, some in seeds.items()
        }


@shows("IPC0552")
def test_blocks_of_one_address_hold_nothing_before_1_17(api: Api, operator: Operator) -> None:
    api.create(POOLS, ip_pool("default", "10.0.0.0/29", size=32))
    live = with_operator(api, operator, CONFIG, cilium_node("a", pools=asks("default", 1)))["a"]
    if operator.version < (1, 17):
        assert (len(allocated(live)), "pool empty" in verdict(live)) == (8, True)  # and still not one address
    else:
        assert (len(allocated(live)), verdict(live)) == (1, "")


@shows("IPC0201", "IPC0205")
def test_host_bits_are_masked_for_nodes_and_stay_in_the_pool(api: Api, operator: Operator) -> None:
    api.create(POOLS, ip_pool("default", "10.0.0.5/24"))
    live = with_operator(api, operator, CONFIG, cilium_node("a", pools=asks("default", 8)))["a"]
    assert allocated(live) == ["10.0.0.0/27"]
    assert api.get(f"{POOLS}/default")["spec"]["ipv4"]["cidrs"] == ["10.0.0.5/24"]
