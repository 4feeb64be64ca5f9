"""What becomes of nodes: they join unlisted, are planned, are re-created, never existed, and are renumbered."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tests.e2e.api import CILIUM_NODES, NODES, Api, Object
from tests.e2e.objects import verdict
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.proof import (
    agents_start,
    apply_seeds,
    applying_again_changes_nothing,
    at_rest,
    holds,
    node_blocks,
)
from tests.e2e.rules import shows
from tests.e2e.site import Site
from tests.support.fleet import cluster, inventory, pool

NONE = {"managedBy": "none"}
NAMES = ["a", "b", "c"]
FOUR = {"cidrs": ["10.0.0.0/24"], "blockSize": 26}


def site_of(
    api: Api, operator: Operator, work: Path, *documents: Object, nodes: list[Object] | None = None
) -> Site:
    """Make a cluster of documents and nodes, let the nodes join, and compile."""
    site = Site.made(
        api, work, [*documents, inventory(nodes or [{"name": name} for name in NAMES])], operator.minor
    )
    site.join()
    site.compile()
    return site


def listed(api: Api, operator: Operator, work: Path, **spec: Any) -> Site:
    """Make a kubernetes-mode cluster whose inventory is what kubectl exports."""
    documents = [
        cluster("kubernetes", cilium=NONE, **spec),
        pool("pods", ipv4=FOUR),
        {"apiVersion": "v1", "kind": "List", "items": []},
    ]
    site = Site.made(api, work, documents, operator.minor)
    api.create(NODES, *({"metadata": {"name": name}} for name in NAMES))
    site.export()
    site.compile()
    site.apply()
    return site


def stranger(api: Api, *names: str) -> None:
    """Let nodes join that are in nobody's inventory: their agents make CiliumNodes without blocks."""
    for name in names:
        api.create(NODES, {"metadata": {"name": name}})
        api.create(
            CILIUM_NODES,
            {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": name}, "spec": {}},
        )


def blocks(api: Api) -> dict[str, list[str]]:
    """Return the podCIDRs of each CiliumNode."""
    return {
        name: list(node["spec"].get("ipam", {}).get("podCIDRs", ()))
        for name, node in api.items(CILIUM_NODES).items()
    }


# Nobody listed them.


def test_a_bystander_leaves_an_unlisted_node_empty(api: Api, operator: Operator, tmp_path: Path) -> None:
    site = site_of(api, operator, tmp_path, cluster(cilium={"managedBy": "helm"}), pool("pods", ipv4=FOUR))
    assert site.arguments == ["--ipam=kubernetes"]
    with operator.running(site.config, *site.arguments):
        site.apply()
        stranger(api, "stranger")
        time.sleep(3)  # an operator with an allocator takes well below a second
        assert blocks(api) == {
            "a": ["10.0.0.0/26"],
            "b": ["10.0.0.64/26"],
            "c": ["10.0.0.128/26"],
            "stranger": [],
        }
    with operator.running(site.config):  # without the flag it would have
        until(lambda: blocks(api)["stranger"] == ["10.0.0.192/26"], "an operator with an allocator serves it")


def test_adopt_serves_unlisted_nodes_from_their_pool_while_it_has_room_and_from_no_other(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    spare = pool("spare", ipv4={"cidrs": ["10.9.0.0/25"], "blockSize": 26}, unlisted=True)
    site = site_of(
        api,
        operator,
        tmp_path,
        cluster(ipam={"operator": "adopt"}, cilium=NONE),
        pool("pods", ipv4=FOUR),
        spare,
    )
    assert "note[IPC0516]" in site.said
    with operator.running(site.config):
        site.apply()
        holds(site, operator)
        served: list[str] = []
        for name in ("s1", "s2"):
            stranger(api, name)
            until(lambda name=name: blocks(api)[name], f"{name} is served")  # type: ignore[misc]
            served += blocks(api)[name]
        assert sorted(served) == ["10.9.0.0/26", "10.9.0.64/26"]
        stranger(api, "s3")
        until(lambda: verdict(api.items(CILIUM_NODES)["s3"]), "s3 is answered")
        assert "full" in verdict(api.items(CILIUM_NODES)["s3"])  # why every run says how much room is left
        assert not blocks(api)["s3"]
        applying_again_changes_nothing(site)


# Planned, and gone.


def test_a_planned_node_has_its_block_before_it_joins(api: Api, operator: Operator, tmp_path: Path) -> None:
    nodes: list[Object] = [{"name": "a"}, {"name": "b", "planned": True}]
    site = site_of(api, operator, tmp_path, cluster(cilium=NONE), pool("pods", ipv4=FOUR), nodes=nodes)
    with operator.running({**site.config, "nodes-gc-interval": "2s"}, *site.arguments):
        site.apply()
        time.sleep(7)  # marked in one pass, collected in a later one
        kept = operator.version >= (1, 18)
        assert blocks(api) == {"a": ["10.0.0.0/26"], **({"b": ["10.0.0.64/26"]} if kept else {})}
        assert "b" not in api.items(NODES)
        applying_again_changes_nothing(site)


def test_it_would_be_collected_without_the_annotation(api: Api, operator: Operator, tmp_path: Path) -> None:
    """What `cilium.io/do-not-gc` is for, and why a planned node's CiliumNode is held back before 1.18."""
    site = site_of(api, operator, tmp_path, cluster(cilium=NONE), pool("pods", ipv4=FOUR))
    api.delete(f"{NODES}/c")
    do_not = {"metadata": {"name": "d", "annotations": {"cilium.io/do-not-gc": "true"}}}
    api.create(CILIUM_NODES, {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "spec": {}, **do_not})
    with operator.running({**site.config, "nodes-gc-interval": "2s"}, *site.arguments):
        site.apply()
        until(lambda: "c" not in blocks(api), "the CiliumNode without a Node is collected")
        time.sleep(3)
        assert blocks(api).keys() == ({"a", "b", "d"} if operator.version >= (1, 18) else {"a", "b"})


def test_a_ghost_is_not_created(api: Api, operator: Operator, tmp_path: Path) -> None:
    site = listed(api, operator, tmp_path)
    api.delete(f"{NODES}/c")
    done = api.apply(site.build())
    assert done.returncode == 1
    assert "uid mismatch" in done.stderr
    assert api.items(NODES).keys() == {"a", "b"}


def test_unless_nodes_are_created_on_purpose(api: Api, operator: Operator, tmp_path: Path) -> None:
    nodes = [{"name": "a"}, {"name": "ghost"}]
    create = cluster("kubernetes", cilium=NONE, output={"nodeObjects": "create"})
    site = Site.made(api, tmp_path, [create, pool("pods", ipv4=FOUR), inventory(nodes)], operator.minor)
    site.compile()
    site.apply()
    assert node_blocks(site) == {
        "a": ("10.0.0.0/26", "10.0.0.0/26"),
        "ghost": ("10.0.0.64/26", "10.0.0.64/26"),
    }


# Re-created.


@shows("IPC0921")
def test_a_node_that_is_re_created_gets_its_block_back(api: Api, operator: Operator, tmp_path: Path) -> None:
    site = listed(api, operator, tmp_path)
    before = node_blocks(site)
    api.delete(f"{NODES}/b")
    api.create(NODES, {"metadata": {"name": "b"}})
    done = api.apply(site.build())
    assert done.returncode == 1
    assert "metadata.uid" in done.stderr  # what was meant for the old machine does not touch the new one
    assert "podCIDR" not in api.get(f"{NODES}/b")["spec"]
    site.export()
    assert "0 renumbered" in site.compile()
    site.apply()
    assert node_blocks(site) == before
    applying_again_changes_nothing(site)


def test_so_does_a_cilium_node(api: Api, operator: Operator, tmp_path: Path) -> None:
    site = site_of(
        api,
        operator,
        tmp_path,
        cluster(ipam={"operator": "adopt"}, cilium=NONE),
        pool("pods", ipv4=FOUR),
        pool("spare", **SPARE),
    )
    with operator.running(site.config):
        site.apply()
        agents_start(site)
        before = at_rest(api, operator, site.config, handled=True)["b"]["spec"]["ipam"]["podCIDRs"]
        api.delete(f"{CILIUM_NODES}/b", f"{NODES}/b")
        site.apply()
        api.create(NODES, {"metadata": {"name": "b"}})
        agents_start(site)
        assert at_rest(api, operator, site.config, handled=True)["b"]["spec"]["ipam"]["podCIDRs"] == before
        holds(site, operator)


SPARE = {"ipv4": {"cidrs": ["10.9.0.0/24"], "blockSize": 26}, "unlisted": True}


def test_a_dump_of_the_live_cluster_agrees_with_the_lock(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """Evidence that comes back as input changes no byte, in any mode."""
    for number, mode in enumerate(("cluster-pool", "multi-pool", "crd")):
        if mode == "multi-pool" and operator.version < (1, 14):
            continue
        pools = [pool("default", ipv4=FOUR)]
        site = site_of(api, operator, tmp_path / str(number), cluster(mode, cilium=NONE, ipam={}), *pools)
        with operator.running(site.config, *site.arguments):
            site.apply()
            apply_seeds(site)
            agents_start(site)
            holds(site, operator)
        lock = (site.folder / "ipam.lock").read_text()
        site.write("live.yaml", json.loads(api.kubectl("get", "ciliumnodes", "-o", "json").stdout))
        site.compile("--locked")
        assert (site.folder / "ipam.lock").read_text() == lock
        api.delete(CILIUM_NODES, NODES, "/apis/cilium.io/v2alpha1/ciliumpodippools")
