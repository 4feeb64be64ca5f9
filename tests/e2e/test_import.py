"""A cluster that runs already: its operator gave out the blocks, then `ipamc import` takes it over from a dump of the real kubectl."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.e2e.api import CILIUM_NODES, CONFIG_MAPS, CRDS, DEPLOYMENTS, NODES, POOLS, Api, Object, versions
from tests.e2e.objects import asks, cilium_node, ip_pool
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.rules import shows
from tests.e2e.site import Site
from tests.e2e.test_ci_apply import apply
from tests.e2e.test_pipelines import Pipeline

NUMBER = 200
KINDS = "nodes,ciliumnodes,pods,cm,deployments"
BLOCKS4 = {"enable-ipv4": "true", "enable-ipv6": "false"}
CONFIGS: dict[str, dict[str, str]] = {
    "kubernetes": {"ipam": "kubernetes", **BLOCKS4},
    "cluster-pool": {
        "ipam": "cluster-pool",
        **BLOCKS4,
        "cluster-pool-ipv4-cidr": "10.7.0.0/26 10.8.0.0/18",
        "cluster-pool-ipv4-mask-size": "26",
    },
    "dual-stack": {
        "ipam": "cluster-pool",
        "enable-ipv4": "true",
        "enable-ipv6": "true",
        "cluster-pool-ipv4-cidr": "10.8.0.0/17",
        "cluster-pool-ipv4-mask-size": "25",
        "cluster-pool-ipv6-cidr": "fd00::/104",
        "cluster-pool-ipv6-mask-size": "120",
    },
    "multi-pool": {"ipam": "multi-pool", **BLOCKS4},
    "crd": {"ipam": "crd", **BLOCKS4},
}
NAMES = [f"node-{index:03}" for index in range(NUMBER)]


def number(name: str) -> int:
    return int(name.rpartition("-")[2])


def nodes(mode: str) -> list[Object]:
    """Return Nodes as kubelets register them; in kubernetes mode with what kube-controller-manager set."""
    found = []
    for name in NAMES:
        block = f"10.9.{number(name)}.0/24"
        spec = {"podCIDR": block, "podCIDRs": [block]} if mode == "kubernetes" else {}
        labels = {"topology.kubernetes.io/zone": "abc"[number(name) % 3], "beta.kubernetes.io/os": "linux"}
        found.append({"metadata": {"name": name, "labels": labels}, "spec": spec})
    return found


def running(api: Api, config: dict[str, str], image: str) -> None:
    """Write cilium-config and the operator's Deployment as Helm does."""
    helm = {"meta.helm.sh/release-name": "cilium", "meta.helm.sh/release-namespace": "kube-system"}
    metadata = {"name": "cilium-config", "namespace": "kube-system", "annotations": helm}
    api.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": config})
    labels = {"io.cilium/app": "operator", "name": "cilium-operator"}
    container = {"name": "cilium-operator", "image": image, "command": ["cilium-operator-generic"]}
    spec = {
        "replicas": 0,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    metadata = {"name": "cilium-operator", "namespace": "kube-system"}
    api.create(
        DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    )


def given(api: Api) -> dict[str, list[str]]:
    """Return the blocks of each node: those of its CiliumNode, else of its Node, sorted as text."""
    found = {name: list(node["spec"].get("podCIDRs", ())) for name, node in api.items(NODES).items()}
    for name, node in api.items(CILIUM_NODES).items():
        ipam = node["spec"].get("ipam", {})
        pools = ipam.get("pools", {}).get("allocated", ())
        blocks = [cidr for pool in pools for cidr in pool["cidrs"]] or list(ipam.get("podCIDRs", ()))
        if blocks:
            found[name] = blocks
    return {name: sorted(blocks) for name, blocks in found.items()}


def join(api: Api, operator: Operator, mode: str) -> None:
    """Let 200 nodes join, and the operator give them their blocks."""
    config = CONFIGS[mode]
    api.create(NODES, *nodes(mode))
    if mode == "kubernetes":
        return
    made = [cilium_node(name) for name in NAMES]
    if mode == "multi-pool":
        api.create(POOLS, ip_pool("default", "10.20.0.0/18"), ip_pool("mars", "10.30.0.0/24"))
        made = [cilium_node(name, pools=asks("default", 40)) for name in NAMES]
    if mode == "crd":
        made = [
            cilium_node(
                name,
                f"10.40.{number(name)}.0/27",
                pool={f"10.40.{number(name)}.{host}": {} for host in range(1, 31)},
            )
            for name in NAMES
        ]
    with operator.running(config):
        api.create(CILIUM_NODES, *made)
        if mode != "crd":
            until(lambda: all(given(api).get(name) for name in NAMES), "every node has its blocks")


def dump(api: Api, file: Path) -> str:
    """Write what kubectl prints of a running cluster, without the kinds that it does not have: kubectl refuses them."""
    others = [
        kind for kind in ("ciliumpodippools", "ciliumnodeconfigs") if f"{kind}.cilium.io" in api.items(CRDS)
    ]
    done = api.kubectl("get", ",".join([KINDS, *others]), "-A", "-o", "json")
    assert done.returncode == 0, done.stderr
    file.write_text(done.stdout)
    return file.name


def held(site: Site) -> dict[str, list[str]]:
    """Return the blocks of each node in the lock, sorted as text."""
    return {name: sorted(block for _, block in lines) for name, lines in site.lock().items()}


def live(
    api: Api, paths: Iterable[str] = (NODES, CILIUM_NODES, POOLS, CONFIG_MAPS)
) -> dict[str, dict[str, str]]:
    """Return the resource version of every object that ipamc may write."""
    return {path: versions(api.items(path)) for path in paths}


def specs(api: Api) -> dict[str, Object]:
    """Return the spec of every object that ipamc may write."""
    return {
        path + name: item.get("spec") or item["data"]
        for path in (NODES, CILIUM_NODES, POOLS, CONFIG_MAPS)
        for name, item in api.items(path).items()
    }


@pytest.fixture
def site(api: Api, operator: Operator, tmp_path: Path) -> Site:
    return Site(api, tmp_path, "lab", operator.minor)


@pytest.mark.deep("dual-stack", "multi-pool")
@pytest.mark.parametrize("mode", CONFIGS)
def test_a_running_cluster_is_taken_over(api: Api, operator: Operator, site: Site, mode: str) -> None:
    if mode == "multi-pool" and operator.version < (1, 14):
        pytest.skip("no multi-pool mode")
    join(api, operator, mode)
    running(api, CONFIGS[mode], f"quay.io/cilium/operator-generic:v{operator.minor}.1")
    before, blocks = specs(api), given(api)
    file = dump(api, site.work / "dump.json")
    site.run("import", "lab", file)
    if mode != "crd":
        assert held(site) == blocks
    assert "unchanged" in site.run("import", "lab", file)
    assert "0 renumbered; unchanged" in site.compile("--locked")
    with operator.running(CONFIGS[mode]):
        # As it is imported, nothing is to be repaired, and no object is written; Nodes get the guards of Argo CD and Flux.
        paths = (
            (CILIUM_NODES, POOLS, CONFIG_MAPS)
            if mode == "kubernetes"
            else (NODES, CILIUM_NODES, POOLS, CONFIG_MAPS)
        )
        untouched = live(api, paths)
        pipeline = Pipeline(site, site.work / "pipeline")
        apply(pipeline, "--repair", "--before-flags", target="lab")
        assert live(api, paths) == untouched
        # The first apply makes ipamc an owner of fields, and changes none of them; the second one changes no object.
        site.apply()
        assert specs(api) == before
        first = live(api)
        site.apply()
        assert live(api) == first
        assert given(api) == blocks
        file = dump(api, site.work / "after.json")
        assert "found 0 problems" in site.run("audit", "lab", file)


@pytest.mark.deep("kubernetes")
@shows("IPC0816", "IPC0825")
@pytest.mark.parametrize("mode", ["cluster-pool", "kubernetes"])
def test_a_refresh_brings_what_joined_since(api: Api, operator: Operator, site: Site, mode: str) -> None:
    join(api, operator, mode)
    running(api, CONFIGS[mode], f"quay.io/cilium/operator-generic:v{operator.minor}.1")
    site.run("import", "lab", dump(api, site.work / "dump.json"))
    before = held(site)
    spec = {"podCIDR": "10.9.200.0/24", "podCIDRs": ["10.9.200.0/24"]} if mode == "kubernetes" else {}
    api.create(NODES, {"metadata": {"name": "late"}, "spec": spec})
    if mode == "cluster-pool":
        with operator.running(CONFIGS[mode]):
            api.create(CILIUM_NODES, cilium_node("late"))
            until(lambda: bool(given(api)["late"]), "the late node has its block")
    site.run("import", "lab", "--refresh", dump(api, site.work / "later.json"))
    site.compile()
    assert held(site) == {**before, "late": given(api)["late"]}


def test_what_no_dump_is(api: Api, operator: Operator, site: Site) -> None:
    join(api, operator, "cluster-pool")
    running(api, CONFIGS["cluster-pool"], f"quay.io/cilium/operator-generic:v{operator.minor}.1")
    file = site.work / dump(api, site.work / "dump.json")
    site.run("import", "lab", file.name)
    text = file.read_text()
    (site.work / "cut.json").write_text(text[: len(text) // 2])
    assert "IPC0801" in site.run("import", "lab", "--refresh", "cut.json", code=1)
    table = api.kubectl("get", "nodes").stdout
    (site.work / "table").write_text(table)
    assert "IPC0801" in site.run("import", "lab", "--refresh", "table", code=1)
    raw = api.kubectl("get", "--raw", "/api/v1/nodes?limit=10").stdout
    (site.work / "page.json").write_text(raw)
    assert "IPC0802" in site.run("import", "lab", "--refresh", "page.json", code=1)
    whole = api.kubectl("get", "--raw", "/api/v1/nodes").stdout
    (site.work / "whole.json").write_text(whole)
    rest = api.kubectl("get", "--raw", f"{CILIUM_NODES}").stdout
    (site.work / "rest.json").write_text(rest)
    assert "unchanged" in site.run("import", "lab", "--refresh", "whole.json", "rest.json")
    another = json.loads(text)
    for item in another["items"]:
        item["metadata"]["uid"] = "another"
    (site.work / "another.json").write_text(json.dumps(another))
    assert "IPC0821" in site.run("import", "lab", "--refresh", "another.json", code=1)
