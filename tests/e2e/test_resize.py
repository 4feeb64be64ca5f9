"""`ipamc resize`, and fields of pools that concern pods, on a live cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.e2e.api import CILIUM_NODES, POOLS, Api, Object
from tests.e2e.objects import allocated, asks, cilium_node, verdict
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.proof import applying_again_changes_nothing, at_rest
from tests.e2e.rules import compile_without, shows
from tests.e2e.site import Site
from tests.e2e.test_ci_apply import PODS
from tests.e2e.test_ci_apply import apply as ci_apply
from tests.e2e.test_ci_apply import pod as running_pod
from tests.e2e.test_pipelines import Pipeline
from tests.support import dumps
from tests.support.fleet import cluster, inventory, pool

NONE = {"managedBy": "none"}


def site_of(api: Api, operator: Operator, work: Path, mode: str, *pools: Object, **ipam: str) -> Site:
    """Make a cluster of two nodes, let them join, compile it and apply it."""
    documents = [
        cluster(mode, ipam=dict(ipam), cilium=NONE),
        *pools,
        inventory([{"name": "a"}, {"name": "b"}]),
    ]
    site = Site.made(api, work, documents, operator.minor)
    site.join()
    return site


def dumped_with(site: Site, pods: Iterable[str], on: str = "a") -> list[str]:
    """Write a dump of the live cluster, and one of pods with these addresses; return the files."""
    live = site.api.kubectl("get", "nodes,ciliumnodes", "-o", "json")
    assert live.returncode == 0, live.stderr
    (site.work / "live.json").write_text(live.stdout)
    some = [dumps.pod(f"p-{address}", on, address) for address in pods]
    (site.work / "pods.json").write_text(dumps.kubectl(dumps.pod("host", on, hostNetwork=True), *some))
    return ["live.json", "pods.json"]


def uses(api: Api, node: str, addresses: Iterable[str]) -> None:
    """Do what an agent of crd mode does: tell which addresses are in use."""
    used = {address: {"owner": "d/p"} for address in addresses}
    live = api.get(f"{CILIUM_NODES}/{node}")
    live["status"] = {**live.get("status", {}), "ipam": {"used": used}}
    answer = api.ask("PUT", f"{CILIUM_NODES}/{node}/status", live)
    if answer.code == 404:  # before 1.16 status is no subresource everywhere
        answer = api.ask("PUT", f"{CILIUM_NODES}/{node}", live)
    assert answer.code == 200, answer.message


def addresses(api: Api, node: str) -> set[str]:
    """Return the addresses that a node may give to pods."""
    return set(api.get(f"{CILIUM_NODES}/{node}")["spec"]["ipam"]["pool"])


def of(block: int, *numbers: int) -> set[str]:
    """Return addresses of 10.0.0.0/24: of a block by its first number, by their numbers within."""
    return {f"10.0.0.{block + number}" for number in numbers}


def test_single_addresses_grow_and_a_block_is_given_back(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """Crd mode: no operator plays a part; what we apply is what agents read, and no other manager has a share in it."""
    some = pool(
        "default",
        ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 28},
        usage={"high": 80, "low": 40, "maxBlocks": 3, "addresses": 3},
    )
    site = site_of(api, operator, tmp_path, "crd", some)
    site.compile()
    site.apply()
    assert addresses(api, "a") == of(0, 1, 2, 3)
    assert addresses(api, "b") == of(16, 1, 2, 3)

    uses(api, "a", sorted(of(0, 1, 2, 3)))
    uses(api, "b", sorted(of(16, 1)))
    site.run("resize", site.name, *dumped_with(site, []))
    site.apply()
    assert addresses(api, "a") == of(0, 1, 2, 3, 4)

    uses(api, "a", sorted(of(0, *range(1, 15))))
    site.run("resize", site.name, *dumped_with(site, []))
    site.apply()
    assert addresses(api, "a") == of(0, *range(1, 15)) | of(32, 1, 2, 3, 4)
    assert addresses(api, "b") == of(16, 1, 2, 3)
    assert "nothing to resize" in site.run("resize", site.name, *dumped_with(site, []))
    applying_again_changes_nothing(site)

    # A pod that only the kubelet knows keeps the block, whatever the agent says.
    uses(api, "a", sorted(of(0, 1)))
    assert "nothing to resize" in site.run("resize", site.name, *dumped_with(site, of(32, 4)))
    site.run("resize", site.name, *dumped_with(site, []))
    site.apply()
    assert addresses(api, "a") == of(0, *range(1, 15))
    assert api.get(f"{CILIUM_NODES}/a")["spec"]["ipam"]["podCIDRs"] == ["10.0.0.0/28"]
    assert site.lock("quarantined") == {"a": [("default", "10.0.0.32/28")]}
    assert "nothing to resize" in site.run("resize", site.name, *dumped_with(site, []))
    applying_again_changes_nothing(site)


def test_the_operator_gives_the_block_that_was_appended(api: Api, operator: Operator, tmp_path: Path) -> None:
    """Multi-pool mode with `pinning: node`: nobody else gets it. From 1.19 on it leaves the pool again, once the agent has dropped it."""
    if operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    some = pool(
        "default",
        ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 28},
        usage={"high": 80, "low": 40, "maxBlocks": 2},
    )
    site = site_of(api, operator, tmp_path, "multi-pool", some, pinning="node")
    site.compile()
    with operator.running(site.config):
        site.apply()
        for name in "ab":
            api.create(CILIUM_NODES, cilium_node(name, pools=asks(f"default.{name}", 8)))
        live = at_rest(api, operator, site.config, handled=True)
        assert {name: allocated(live[name]) for name in "ab"} == {
            "a": ["10.0.0.0/28"],
            "b": ["10.0.0.16/28"],
        }
        api.change(
            f"{CILIUM_NODES}/a",
            lambda whole: whole["spec"]["ipam"]["pools"].update(asks("default.a", 24)),
        )
        at_rest(api, operator, site.config, handled=True)  # the operator has nothing to give

        site.run("resize", site.name, *dumped_with(site, of(0, *range(1, 14))))
        assert site.lock()["a"] == [("default", "10.0.0.0/28"), ("default", "10.0.0.32/28")]
        site.apply()
        both = ["10.0.0.0/28", "10.0.0.32/28"]
        # It tries again by itself: after one, two, four seconds and so on.
        until(lambda: allocated(api.get(f"{CILIUM_NODES}/a")) == both, "the operator gives the block", 60)
        live = at_rest(api, operator, site.config, handled=True)
        assert allocated(live["a"]) == both
        assert allocated(live["b"]) == ["10.0.0.16/28"]
        applying_again_changes_nothing(site)
        assert "nothing to resize" in site.run("resize", site.name, *dumped_with(site, of(0, *range(1, 14))))

        # The agent still has both blocks: neither is taken.
        assert "nothing to resize" in site.run("resize", site.name, *dumped_with(site, of(0, 1)))

        def drops(whole: Object) -> None:
            whole["spec"]["ipam"]["pools"] = {
                "allocated": [{"pool": "default.a", "cidrs": ["10.0.0.0/28"]}],
                **asks("default.a", 8),
            }

        api.change(f"{CILIUM_NODES}/a", drops)
        at_rest(api, operator, site.config, handled=True)
        said = site.run("resize", site.name, "--all", *dumped_with(site, of(0, 1)))
        if operator.version < (1, 19):
            assert "removing a CIDR from a pool is untested with Cilium" in said
            assert len(site.lock()["a"]) == 2
            return
        assert site.lock()["a"] == [("default", "10.0.0.0/28")]
        site.apply()
        live = at_rest(api, operator, site.config, handled=True)
        assert allocated(live["a"]) == ["10.0.0.0/28"]
        assert api.get(f"{POOLS}/default.a")["spec"]["ipv4"]["cidrs"] == ["10.0.0.0/28"]
        assert not verdict(live["a"])
        applying_again_changes_nothing(site)
    with operator.running(site.config):
        assert allocated(at_rest(api, operator, site.config, handled=True)["a"]) == ["10.0.0.0/28"]


@shows("IPC0562")
def test_pools_select_pods_from_1_19_on(api: Api, operator: Operator, tmp_path: Path) -> None:
    """Before, the apiserver refuses the fields; it names one of them, and not always the same one."""
    if operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    selectors = {
        "podSelector": {"matchLabels": {"app": "ceph"}},
        "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]},
    }
    pools = [
        pool("default", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 28}),
        pool("storage", ipv4={"cidrs": ["10.1.0.0/24"], "blockSize": 28}, priority=-1, **selectors),
    ]
    site = site_of(api, operator, tmp_path, "multi-pool", *pools)
    if operator.version < (1, 19):
        compile_without(site, "IPC0562")
        done = api.apply(site.build())
        assert done.returncode != 0
        assert re.search(r"\.spec\.(pod|namespace)Selector: field not declared in schema", done.stderr)
        return
    site.compile()
    site.apply()
    spec = api.get(f"{POOLS}/storage")["spec"]
    assert {name: spec[name] for name in selectors} == selectors
    assert json.dumps(api.get(f"{POOLS}/default")).count("Selector") == 0
    applying_again_changes_nothing(site)


def test_a_pod_that_came_after_the_dump_keeps_the_block(api: Api, operator: Operator, tmp_path: Path) -> None:
    """`ipamc apply` looks at the pods again before it takes a block away."""
    some = pool(
        "default",
        ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 28},
        blocksPerNode=2,
        usage={"high": 80, "low": 40, "minBlocks": 1, "maxBlocks": 2},
    )
    site = site_of(api, operator, tmp_path / "work", "crd", some)
    site.compile()
    pipeline = Pipeline(site, tmp_path)
    ci_apply(pipeline, target=site.name)
    uses(api, "a", sorted(of(0, 1)))
    uses(api, "b", sorted(of(32, 1)))
    site.run("resize", site.name, *dumped_with(site, []))
    assert site.lock("quarantined") == {
        "a": [("default", "10.0.0.16/28")],
        "b": [("default", "10.0.0.48/28")],
    }
    running_pod(api, "late", "a", "10.0.0.20")
    said = ci_apply(pipeline, code=1, target=site.name)
    assert "CiliumNode a: not applied: " in said
    assert "1 pod on node a" in said
    assert addresses(api, "a") == of(0, *range(1, 15)) | of(16, *range(1, 15))
    assert addresses(api, "b") == of(32, *range(1, 15))
    api.delete(f"{PODS}?gracePeriodSeconds=0")
    ci_apply(pipeline, target=site.name)
    assert addresses(api, "a") == of(0, *range(1, 15))
