"""The first apply on a cluster that runs: who wrote the blocks owns the fields, and the values are the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.api import CILIUM_NODES, NODES, POOLS, Api, Object, versions
from tests.e2e.objects import allocated, asks, cilium_node, ip_pool
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.site import Site
from tests.support.fleet import cluster, pool

RANGE = "10.0.0.0/24"
CONFIG = {"enable-ipv4": "true", "enable-ipv6": "false"}
LIST = {"cluster-pool-ipv4-cidr": RANGE, "cluster-pool-ipv4-mask-size": "27"}
NAMES = ("b", "c", "a")
READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is ready"}


def addresses(first: int) -> Object:
    """Make a `spec.ipam.pool` of ten addresses."""
    return {f"10.0.0.{number}": {} for number in range(first, first + 10)}


def given(node: Object) -> list[str]:
    """Return the blocks or addresses that a CiliumNode shows."""
    ipam = node["spec"].get("ipam", {})
    return [*ipam.get("podCIDRs", ()), *allocated(node), *ipam.get("pool", ())]


def live(api: Api, mode: str) -> None:
    """Let nodes join that somebody else than ipamc gives blocks, not in the order of their names."""
    if mode == "multi-pool":
        api.create(POOLS, ip_pool("default", RANGE))
    for index, name in enumerate(NAMES):
        block = f"10.0.0.{32 * (5 - index)}/27"
        spec = {"podCIDR": block, "podCIDRs": [block]} if mode == "kubernetes" else {}
        api.create(NODES, {"metadata": {"name": name}, "spec": spec})
        status = {"status": {"conditions": [READY]}}
        api.sure("PATCH", f"{NODES}/{name}/status", status, content="application/merge-patch+json")
        node = {
            "cluster-pool": cilium_node(name),
            "multi-pool": cilium_node(name, pools=asks("default", 16)),
            "crd": cilium_node(name, pool=addresses(32 * (5 - index) + 3)),
            "kubernetes": cilium_node(name, block),
        }[mode]
        api.create(CILIUM_NODES, node)
        until(lambda name=name: given(api.get(f"{CILIUM_NODES}/{name}")), f"{name} has a block")  # type: ignore[misc]


def dump(api: Api, site: Site, kinds: str) -> None:
    done = api.kubectl("get", kinds, "-o", "json")
    assert done.returncode == 0, done.stderr
    site.write("live.json", json.loads(done.stdout))


@pytest.mark.parametrize("mode", ["cluster-pool", "multi-pool", "crd", "kubernetes"])
def test_it_conflicts_with_nobody_and_changes_no_block(
    api: Api, operator: Operator, tmp_path: Path, mode: str
) -> None:
    if mode == "multi-pool" and operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    documents = [
        cluster(mode, cilium={"managedBy": "helm"}),
        pool("default", ipv4={"cidrs": [RANGE], "blockSize": 27}),
    ]
    site = Site.made(api, tmp_path, documents, operator.minor)
    with operator.running({**CONFIG, "ipam": mode, **(LIST if mode == "cluster-pool" else {})}):
        live(api, mode)
        before = {name: given(node) for name, node in api.items(CILIUM_NODES).items()}
        if mode != "kubernetes":
            dump(api, site, "nodes")
            assert "error[IPC0434]" in site.compile(code=1)
        dump(api, site, "nodes,ciliumnodes")
        assert "(3 adopted), 0 returned, 0 left, 0 renumbered" in site.compile()
        site.apply()
        after = {name: given(node) for name, node in api.items(CILIUM_NODES).items()}
        assert {name: blocks for name, blocks in after.items() if not set(before[name]) <= set(blocks)} == {}
        assert mode == "crd" or after == before
        settled = {**versions(api.items(CILIUM_NODES)), **versions(api.items(POOLS))}
        nodes = versions(api.items(NODES))
        site.apply()
        assert {**versions(api.items(CILIUM_NODES)), **versions(api.items(POOLS))} == settled
        assert versions(api.items(NODES)) == nodes
        dump(api, site, "nodes,ciliumnodes")
        assert "0 blocks added, 0 returned, 0 left, 0 renumbered; unchanged" in site.compile()
