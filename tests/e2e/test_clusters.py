"""Every example, and generated clusters of 500 nodes: accepted by the real servers, and left as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import CILIUM_NODES, NODES, POOLS, Api, Object
from tests.e2e.operator import Operator
from tests.e2e.proof import apply_seeds, holds, prove
from tests.e2e.site import Site
from tests.support.examples import NAMES
from tests.support.fleet import cluster, inventory, pool

REFUSED = {
    ("bgp", (1, 17), (1, 20)): "IPC0541",
    ("multi-pool", (1, 11), (1, 13)): "IPC0521",
    ("pinned", (1, 11), (1, 13)): "IPC0521",
}
"""Examples that Cilium minors, both included, cannot serve; and what we say instead."""

FLEETS: dict[str, tuple[int, dict[str, Any]]] = {
    "kubernetes": (500, {"mode": "kubernetes", "ipFamilies": ["IPv6", "IPv4"]}),
    "cluster-pool, adopt": (
        500,
        {"mode": "cluster-pool", "ipam": {"operator": "adopt"}, "ipFamilies": ["IPv4", "IPv6"]},
    ),
    "cluster-pool, bystander": (50, {"mode": "cluster-pool"}),
    "multi-pool, pinning node": (500, {"mode": "multi-pool", "ipam": {"pinning": "node"}}),
    "multi-pool, pinning pool": (
        50,
        {"mode": "multi-pool", "ipam": {"pinning": "pool"}, "ipFamilies": ["IPv6"]},
    ),
    "multi-pool, pinning none": (
        50,
        {"mode": "multi-pool", "ipam": {"pinning": "none"}, "ipFamilies": ["IPv4", "IPv6"]},
    ),
    "crd": (500, {"mode": "crd"}),
}
"""Generated clusters, and how many nodes each has: 500 in each mode, fewer where a mode comes once more."""


def refusal(name: str, version: tuple[int, int]) -> str:
    """Return the code with which an example is refused for a Cilium minor; nothing if it is not."""
    return next(
        (code for (each, first, last), code in REFUSED.items() if each == name and first <= version <= last),
        "",
    )


@pytest.mark.deep("the operator runs")
@pytest.mark.parametrize("running", [True, False], ids=["the operator runs", "it is started later"])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_rendered_is_accepted_and_stays(
    api: Api, operator: Operator, tmp_path: Path, name: str, *, running: bool
) -> None:
    site = Site.example(api, tmp_path, name, operator.minor)
    site.join()
    if code := refusal(name, operator.version):
        assert code in site.compile("--locked", code=1)
        return
    site.compile("--locked")
    prove(site, operator, running=running)


@pytest.mark.deep("multi-pool, pinning node")
@pytest.mark.parametrize("kind", FLEETS)
def test_so_is_what_is_rendered_for_500_nodes(
    api: Api, operator: Operator, tmp_path: Path, kind: str
) -> None:
    nodes, spec = FLEETS[kind]
    site = Site.made(api, tmp_path, fleet(nodes, **spec), operator.minor)
    if operator.version < (1, 14) and spec["mode"] == "multi-pool":
        assert "IPC0521" in site.compile(code=1)
        return
    site.join()
    site.compile()
    prove(site, operator, running=kind.endswith(("node", "adopt")))
    each_shard_applies_alone(site, operator)


def fleet(number: int, mode: str, **spec: Any) -> list[Object]:
    """Make a cluster of so many nodes, in two racks and two shards."""
    families = spec.get("ipFamilies", ["IPv4"])
    nodes = [{"name": f"node-{index:03}", "labels": {"rack": "ab"[index % 2]}} for index in range(number)]
    pools = [
        pool("default", **ranges(families, "10.0.0.0/17", "fd00::/112"), nodeSelector='rack == "a"'),
        pool("rack-b", **ranges(families, "10.0.128.0/17", "fd00:0:0:1::/112"), nodeSelector='rack == "b"'),
    ]
    if spec.get("ipam", {}).get("operator") == "adopt":
        pools.append(pool("spare", **ranges(families, "10.1.0.0/24", "fd00:0:0:2::/120"), unlisted=True))
    return [
        cluster(mode, cilium={"managedBy": "none"}, output={"shardSize": number // 2}, **spec),
        *pools,
        inventory(nodes),
    ]


def ranges(families: list[str], four: str, six: str) -> dict[str, Any]:
    """Return a pool's ranges: of each family that the cluster has."""
    every = {"ipv4": {"cidrs": [four], "blockSize": 27}, "ipv6": {"cidrs": [six], "blockSize": 123}}
    return {family: every[family] for family in ("ipv4", "ipv6") if family.replace("ip", "IP") in families}


def each_shard_applies_alone(site: Site, operator: Operator) -> None:
    """On a cluster that has nothing yet, each shard applies alone after `cilium/`, in any order; together they are everything."""
    if site.cluster["ipam"]["mode"] == "kubernetes":
        site.api.delete(NODES)
        site.join()  # podCIDRs cannot be taken away from a Node
        site.compile()
    site.api.delete(CILIUM_NODES, POOLS)
    shards = sorted(
        (path.parent.name, path.parent.parent.name)
        for path in site.rendered.glob("*/*/kustomization.yaml")
        if path.parent.name != "component"
    )
    with operator.running(site.config, *site.arguments):
        site.apply("cilium")
        for shard, kind in reversed(shards):
            site.apply(f"{kind}/{shard}")
        apply_seeds(site)
        holds(site, operator)
    assert len({shard for shard, _ in shards}) in {0, 2}
