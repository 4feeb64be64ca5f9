"""Another `ipam.mode` on a running cluster: in the order that the plan gives, every node keeps its block; where no order helps, we refuse it.

No agent runs here. That an agent keeps the addresses of running pods was read (1.15.19, 1.18.5): `allocateIPsLocked` in daemon/cmd/state.go asks the pool that the
endpoint was in, which is `default` outside multi-pool mode; the allocator of kubernetes and cluster-pool mode (pkg/ipam/hostscope.go) ignores the pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.e2e.api import CILIUM_NODES, NODES, POOLS, Api, Object
from tests.e2e.objects import allocated, asks, cilium_node, verdict
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.proof import apply_seeds, at_rest, handled_by_operator
from tests.e2e.rules import compile_without, shows
from tests.e2e.site import Site, dumped
from tests.support.fleet import cluster, inventory, pool

BLOCKS = {"a": "10.0.0.0/27", "b": "10.0.0.32/27", "c": "10.0.0.64/27"}


@dataclass(frozen=True)
class Way:
    """The fields of `spec.ipam` before and after, and the name of the pool."""

    old: Object
    new: Object
    pool: str = "default"

    def __str__(self) -> str:
        return f"{'-'.join(map(str, self.old.values()))} to {'-'.join(map(str, self.new.values()))}"


KUBERNETES = {"mode": "kubernetes"}
BYSTANDER = {"mode": "cluster-pool"}
ADOPT = {"mode": "cluster-pool", "operator": "adopt"}
MULTI_POOL = {"mode": "multi-pool", "pinning": "none"}
CRD = {"mode": "crd"}
WAYS = (
    Way(KUBERNETES, BYSTANDER),
    Way(KUBERNETES, ADOPT),
    Way(BYSTANDER, KUBERNETES),
    Way(ADOPT, KUBERNETES),
    Way(BYSTANDER, ADOPT),
    Way(ADOPT, BYSTANDER),
    Way(KUBERNETES, MULTI_POOL),
    Way(BYSTANDER, MULTI_POOL),
    Way(ADOPT, MULTI_POOL),
    Way(BYSTANDER, {**MULTI_POOL, "autoCreate": ["default"]}),
    Way(BYSTANDER, {"mode": "multi-pool", "pinning": "pool"}, "rack"),
    Way(BYSTANDER, {"mode": "multi-pool", "pinning": "node"}, "rack"),
    Way(CRD, KUBERNETES),
    Way(CRD, BYSTANDER),
    Way(CRD, ADOPT),
    Way(CRD, MULTI_POOL),
    Way(CRD, {"mode": "multi-pool", "pinning": "node"}, "rack"),
)


def site_of(api: Api, operator: Operator, work: Path, ipam: Object, name: str = "default") -> Site:
    """Make a cluster of three nodes, let them join, and compile it."""
    documents = [
        cluster(ipam["mode"], cilium={"managedBy": "none"}, ipam=ipam),
        pool(name, ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 27}),
        inventory([{"name": node} for node in BLOCKS]),
    ]
    site = Site.made(api, work, documents, operator.minor)
    spare(site, ipam)
    site.join()
    site.compile()
    return site


def spare(site: Site, ipam: Object) -> None:
    """Write the pool out of which an operator that adopts serves strangers, or remove it."""
    file = site.folder / "spare.yaml"
    if ipam.get("operator") == "adopt":
        site.write(file.name, pool("spare", ipv4={"cidrs": ["10.9.0.0/24"], "blockSize": 27}, unlisted=True))
    else:
        file.unlink(missing_ok=True)


def changed(site: Site, ipam: Object) -> None:
    """Change `spec.ipam` with consent, and compile."""
    site.edit(lambda document: document["spec"].update(ipam=ipam) if document["kind"] == "Cluster" else None)
    spare(site, ipam)
    site.run("lock", site.name, "--mode")
    site.compile()


def agents_start(site: Site, mode: str) -> None:
    """Let every node's agent start: in kubernetes mode it copies the Node's podCIDRs, in multi-pool mode it asks its pool for 16 addresses."""
    for name, node in site.api.items(NODES).items():
        if name not in site.api.items(CILIUM_NODES):
            site.api.create(CILIUM_NODES, {**cilium_node(name), "spec": {}})
        site.api.change(f"{CILIUM_NODES}/{name}", partial(_start, node=node, mode=mode))


def _start(whole: Object, node: Object, mode: str) -> None:
    named = {"name": node["metadata"]["name"], "uid": node["metadata"]["uid"]}
    whole["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", **named}]
    ipam = whole["spec"].setdefault("ipam", {})
    if mode == "kubernetes":
        ipam["podCIDRs"] = node["spec"]["podCIDRs"]
    if mode == "multi-pool":
        ipam["pools"]["requested"] = asks(ipam["pools"]["allocated"][0]["pool"], 16)["requested"]


def blocks(site: Site, mode: str) -> dict[str, list[str]]:
    """Return the blocks of each node of ours, as an agent of this mode reads them."""
    if mode == "kubernetes":
        return {name: node["spec"].get("podCIDRs", []) for name, node in site.api.items(NODES).items()}
    live = {name: node for name, node in site.api.items(CILIUM_NODES).items() if name in BLOCKS}
    if mode == "multi-pool":
        return {name: allocated(node) for name, node in live.items()}
    return {name: node["spec"]["ipam"].get("podCIDRs", []) for name, node in live.items()}


EXPECTED = ("pool empty", "allocator not configured for the requested CIDR")
"""What the operator says where it gives out no more than a node's own pool, or with adopt does not know the ranges of our pools."""


def all_keep(site: Site, *modes: str) -> None:
    """Every node has exactly its block for agents of each of these modes, and the operator complains of nothing unexpected."""
    for mode in modes:
        assert blocks(site, mode) == {name: [block] for name, block in BLOCKS.items()}, mode
    said = [verdict(node) for name, node in site.api.items(CILIUM_NODES).items() if name in BLOCKS]
    assert [each for each in said if each and not any(known in each for known in EXPECTED)] == []


@pytest.mark.deep(part=5)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_in_this_order_every_node_keeps_its_block(
    api: Api, operator: Operator, tmp_path: Path, way: Way
) -> None:
    old, new = way.old["mode"], way.new["mode"]
    if operator.version < (1, 15) and new == "multi-pool":
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    site = site_of(api, operator, tmp_path, way.old, way.pool)
    with operator.running(site.config, *site.arguments):
        site.apply()
        agents_start(site, old)
        at_rest(api, operator, site.config, handled=handled_by_operator(site))
        all_keep(site, old)
        before, handled = site.config, handled_by_operator(site)
        changed(site, way.new)
        # The objects, while the old operator and the old agents run
        site.apply()
        if seeds := site.rendering("seeds/*.yaml"):
            done = api.kubectl(
                "apply", "--server-side", "--field-manager=ipamc-seeds", "-f", "-", text=dumped(seeds)
            )
            assert done.returncode == 0, done.stderr
        at_rest(api, operator, before, handled=handled)
        all_keep(site, old, new)
    # The flags
    with operator.running(site.config, *site.arguments):
        at_rest(api, operator, site.config, handled=handled_by_operator(site))
        all_keep(site, old, new)
        # The agents
        agents_start(site, new)
        at_rest(api, operator, site.config, handled=handled_by_operator(site))
        all_keep(site, new)
        newcomer_gets_a_block_of_its_own(site, way)
        site.apply()
        all_keep(site, new)
    with operator.running(site.config, *site.arguments):
        at_rest(api, operator, site.config, handled=handled_by_operator(site))
        all_keep(site, new)


def newcomer_gets_a_block_of_its_own(site: Site, way: Way) -> None:
    """Where the operator gives out blocks, a newcomer gets none that a node has."""
    if way.new.get("pinning") == "node" or not handled_by_operator(site):
        return
    pools = {"pools": asks(way.pool, 8)} if way.new["mode"] == "multi-pool" else {}
    site.api.create(CILIUM_NODES, cilium_node("stranger", **pools))

    def given() -> list[str]:
        live = site.api.get(f"{CILIUM_NODES}/stranger")
        return list(live["spec"]["ipam"].get("podCIDRs", ())) + allocated(live)

    until(given, "the newcomer is served")
    taken = [ip_network(block) for block in BLOCKS.values()]
    assert not any(ip_network(block).overlaps(other) for block in given() for other in taken)


def test_seeds_of_the_field_manager_of_the_tree_take_pod_cidrs_away(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """Why the plan names another field manager for them: server-side apply removes what its manager no longer names."""
    if operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    site = site_of(api, operator, tmp_path, BYSTANDER)
    with operator.running(site.config, *site.arguments):
        site.apply()
        agents_start(site, "cluster-pool")
        changed(site, MULTI_POOL)
        site.apply()
        apply_seeds(site)
        assert blocks(site, "cluster-pool") == {name: [] for name in BLOCKS}
        assert blocks(site, "multi-pool") == {name: [block] for name, block in BLOCKS.items()}


MIGRATES = {"enable-cluster-pool-to-multi-pool-migration": "true"}
"""The option with which an operator from 1.20 on copies podCIDRs into the default pool, when it starts (cilium/cilium#46104)."""


@pytest.mark.parametrize("old", [BYSTANDER, ADOPT], ids=["bystander", "adopt"])
def test_cilium_s_own_way_to_multi_pool_gives_the_blocks_of_the_lock(
    api: Api, operator: Operator, tmp_path: Path, old: Object
) -> None:
    if operator.version < (1, 20):
        pytest.skip("this version has no such option")
    site = site_of(api, operator, tmp_path, old)
    with operator.running(site.config, *site.arguments):
        site.apply()
        agents_start(site, "cluster-pool")
        at_rest(api, operator, site.config, handled=handled_by_operator(site))
        changed(site, MULTI_POOL)
        site.apply()  # the pool; no seeds
    with operator.running({**site.config, **MIGRATES}):
        at_rest(api, operator, site.config, handled=True)
        all_keep(site, "multi-pool")
        assert blocks(site, "cluster-pool") == {name: [] for name in BLOCKS}
        agents_start(site, "multi-pool")
        at_rest(api, operator, site.config, handled=True)
        all_keep(site, "multi-pool")
    with operator.running(site.config):
        site.apply()
        at_rest(api, operator, site.config, handled=True)
        all_keep(site, "multi-pool")


def test_cilium_s_own_way_knows_the_default_pool_alone_and_undoes_ours(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """Why it is one of the two, not both: a node's blocks of the pool rack become such of a pool that nobody has."""
    if operator.version < (1, 20):
        pytest.skip("this version has no such option")
    site = site_of(api, operator, tmp_path, BYSTANDER, "rack")
    with operator.running(site.config, *site.arguments):
        site.apply()
        agents_start(site, "cluster-pool")
        changed(site, {"mode": "multi-pool", "pinning": "pool"})
        site.apply()
        seeds = dumped(site.rendering("seeds/*.yaml"))
        done = api.kubectl("apply", "--server-side", "--field-manager=ipamc-seeds", "-f", "-", text=seeds)
        assert done.returncode == 0, done.stderr
    all_keep(site, "cluster-pool", "multi-pool")
    with operator.running({**site.config, **MIGRATES}) as program:
        program.until(
            lambda: not any(blocks(site, "cluster-pool").values()), "the operator takes podCIDRs away"
        )
        live = api.items(CILIUM_NODES)
        assert {
            each["pool"] for name in BLOCKS for each in live[name]["spec"]["ipam"]["pools"]["allocated"]
        } == {"default"}


def refused(site: Site, ipam: Object) -> None:
    """Change the mode in the lock by hand, and compile with the rule taken away."""
    site.edit(lambda document: document["spec"].update(ipam=ipam) if document["kind"] == "Cluster" else None)
    lock = site.folder / "ipam.lock"
    old = site.config["ipam"]
    lock.write_text(lock.read_text().replace(f'"mode":"{old}"', f'"mode":"{ipam["mode"]}"', 1))
    compile_without(site, "IPC0543")


@shows("IPC0543")
def test_out_of_multi_pool_mode_the_operator_gives_a_block_in_use_away(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    if operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    site = site_of(api, operator, tmp_path, MULTI_POOL)
    config = site.config
    with operator.running(config):
        site.apply()
        apply_seeds(site)
        agents_start(site, "multi-pool")
        at_rest(api, operator, config, handled=True)
        api.delete(f"{CILIUM_NODES}/a")  # its block is free, and lower than those of the others
        at_rest(api, operator, config, handled=True)
        refused(site, BYSTANDER)
        site.apply()
        at_rest(api, operator, config, handled=True)
        now = blocks(site, "multi-pool")
        assert (now["b"], now["c"]) != ([BLOCKS["b"]], [BLOCKS["c"]])  # which their pods still use


@shows("IPC0545")
def test_a_stranger_of_cluster_pool_mode_shares_its_block_in_multi_pool_mode(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    if operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    site = site_of(api, operator, tmp_path, BYSTANDER)
    site.apply()
    api.create(CILIUM_NODES, cilium_node("stranger", "10.0.0.96/27"))
    stranger = site.folder / "stranger.yaml"
    site.write(stranger.name, api.get(f"{CILIUM_NODES}/stranger"))
    site.edit(
        lambda document: document["spec"].update(ipam=MULTI_POOL) if document["kind"] == "Cluster" else None
    )
    assert "IPC0545" in site.run("lock", site.name, "--mode", code=1)
    stranger.unlink()
    changed(site, MULTI_POOL)
    with operator.running(site.config):
        site.apply()
        apply_seeds(site)
        at_rest(api, operator, site.config, handled=True)
        api.create(CILIUM_NODES, cilium_node("newcomer", pools=asks("default", 8)))
        until(lambda: allocated(api.get(f"{CILIUM_NODES}/newcomer")), "the newcomer is served")
        assert allocated(api.get(f"{CILIUM_NODES}/newcomer")) == ["10.0.0.96/27"]
    assert api.items(POOLS)
