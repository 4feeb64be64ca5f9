"""Runbooks on real servers, as written: their JSON is read, and every command of theirs is run (`played`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ipamc.model.cilium.support import LAST
from tests.e2e import test_import_calico as calico_cluster
from tests.e2e.api import (
    CILIUM_NODES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODE_CONFIGS,
    NODES,
    POOLS,
    Api,
    Object,
)
from tests.e2e.objects import allocated
from tests.e2e.operator import Operator
from tests.e2e.played import Edit, Player
from tests.e2e.proof import at_rest, handled_by_operator
from tests.e2e.site import Site, second_family
from tests.e2e.test_import_calico import with_calico  # noqa: F401 - a fixture
from tests.support.fleet import cluster, inventory, pool

EIGHT = {"cidrs": ["10.0.0.0/24"], "blockSize": 27}
NODES_OF = {"a": "r1", "b": "r1", "c": "r2", "d": "r2"}
"""The nodes and their racks."""
MODES: dict[str, Object] = {
    "kubernetes": {"mode": "kubernetes"},
    "annotations": {"mode": "kubernetes", "patchNodes": "annotations"},
    "bystander": {"mode": "cluster-pool"},
    "adopt": {"mode": "cluster-pool", "ipam": {"operator": "adopt"}},
    "crd": {"mode": "crd"},
    "pinned": {"mode": "multi-pool", "ipam": {"pinning": "node"}},
    "shared": {"mode": "multi-pool", "ipam": {"pinning": "pool"}},
}
OF_OPERATORS = {"adopt", "pinned", "shared"}
ALL = sorted(MODES)


def blocks(api: Api, mode: str) -> dict[str, list[str]]:
    """Return what the agent of each node reads."""
    if mode == "kubernetes":
        return {name: list(node["spec"].get("podCIDRs", ())) for name, node in api.items(NODES).items()}
    if mode == "annotations":
        return {
            name: [
                value
                for key, value in sorted(node["metadata"].get("annotations", {}).items())
                if key.endswith("pod-cidr")
            ]
            for name, node in api.items(NODES).items()
        }
    live = api.items(CILIUM_NODES)
    return {
        name: allocated(node)
        if mode in {"pinned", "shared"}
        else list(node["spec"]["ipam"].get("podCIDRs", ()))
        for name, node in live.items()
    }


def disjoint(api: Api, mode: str) -> None:
    """Fail if two nodes have one address."""
    every = [(name, ip_network(block)) for name, some in blocks(api, mode).items() for block in some]
    for (one, block), (other, another) in combinations(every, 2):
        assert one == other or not block.overlaps(another), f"{one} has {block}, {other} has {another}"


@pytest.fixture
def begin(api: Api, operator: Operator, tmp_path: Path) -> Iterator[Any]:
    """Return what makes a cluster of four nodes that run with the blocks of their lock."""
    players: list[Player] = []

    def made(mode: str, *, runs: bool = True, **more: Any) -> Player:
        if mode in {"pinned", "shared"} and operator.version < (1, 15):
            pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
        spare = pool("spare", ipv4={"cidrs": ["10.9.0.0/24"], "blockSize": 27}, unlisted=True)
        documents = [
            cluster(cilium={"managedBy": "helm"}, **MODES[mode], **more),
            pool("default", ipv4=EIGHT),
            *([spare] if mode == "adopt" else []),
            inventory([{"name": name, "labels": {"rack": rack}} for name, rack in NODES_OF.items()]),
        ]
        site = Site.made(api, tmp_path / "work", documents, operator.minor)
        last = max(site.folder.glob("*-nodeinventory.yaml"))
        last.rename(site.folder / "nodes.yaml")  # where a refresh writes it
        site.join()
        site.compile()
        player = Player(site, operator, tmp_path)
        players.append(player)
        player.after = lambda: disjoint(api, mode)
        if not runs:
            return player
        site.apply()
        player.roll_out()
        player.seed()
        player.agents(player.names)
        rest(player)
        player.refreshed()
        rest(player)
        assert blocks(api, mode) == locked(player)
        return player

    yield made
    for player in players:
        player.stop_operator()


def rest(player: Player) -> None:
    """Wait until nobody writes."""
    handled = handled_by_operator(player.site) and player.program is not None
    at_rest(player.api, player.operator, player.site.config, handled=handled)


def locked(player: Player) -> dict[str, list[str]]:
    """Return the blocks that nodes hold in the lock."""
    return {name: [block for _, block in some] for name, some in sorted(player.site.lock().items())}


def ends(player: Player, mode: str, expected: Mapping[str, list[str]]) -> None:
    """The nodes have these blocks, in the lock and in the cluster, and applying again changes nothing."""
    rest(player)
    assert locked(player) == expected
    assert blocks(player.api, mode) == expected
    before = {path: player.api.items(path) for path in (NODES, CILIUM_NODES, POOLS)}
    player.sh("ipamc apply fleet")
    rest(player)
    after = {path: player.api.items(path) for path in (NODES, CILIUM_NODES, POOLS)}
    assert _versions(after) == _versions(before)
    assert all(not node["spec"].get("unschedulable") for node in player.api.items(NODES).values())


def _versions(found: Mapping[str, Mapping[str, Object]]) -> dict[str, str]:
    return {
        f"{path}/{name}": each["metadata"]["resourceVersion"]
        for path, some in found.items()
        for name, each in some.items()
    }


BEFORE = {"a": ["10.0.0.0/27"], "b": ["10.0.0.32/27"], "c": ["10.0.0.64/27"], "d": ["10.0.0.96/27"]}
MOVED = {"a": ["10.0.0.128/27"], "b": BEFORE["b"], "c": ["10.0.0.160/27"], "d": BEFORE["d"]}


@pytest.mark.deep("kubernetes")
@pytest.mark.parametrize("mode", ALL)
def test_a_renumber_in_two_waves(begin: Any, mode: str) -> None:
    """Of two racks, one node each: both are reserved first, then each moves; the others keep theirs."""
    player = begin(mode)
    runbook = player.runbook("--change renumber --node a --node c --by rack")
    waves = runbook["phases"][1]["waves"]
    assert [(wave["name"], wave["nodes"]) for wave in waves] == [("r1", ["a"]), ("r2", ["c"])]
    player.play(runbook)
    ends(player, mode, MOVED)
    assert "IPC0513" not in player.sh("ipamc compile fleet 2>&1")
    assert player.runbooks() == []


@pytest.mark.deep("bystander")
@pytest.mark.parametrize("mode", ["kubernetes", "annotations", "bystander", "crd", "pinned"])
def test_nodes_that_somebody_settled_already(begin: Any, mode: str) -> None:
    """The lock was settled and merged, and nothing was done with the nodes: what is under way says what is left."""
    player = begin(mode)
    for consent in ("--renumber a --renumber c", "--settle a --settle c"):
        options = consent.split()
        player.sh(f"ipamc lock fleet {' '.join(options)} && ipamc compile fleet && git add clusters")
        player.sh("git commit --quiet -m settled && git push --quiet origin main")
    player.play(player.runbook("--base HEAD~1 --wave-size 1"))
    ends(player, mode, MOVED)


@pytest.mark.deep("shared")
@pytest.mark.parametrize("mode", ALL)
def test_a_machine_is_replaced_under_the_same_name(begin: Any, mode: str) -> None:
    player = begin(mode)
    player.conditions = {"cordon", "drain"}
    player.play(player.runbook("--change replace-node --node b"))
    ends(player, mode, BEFORE)


@pytest.mark.deep("annotations")
@pytest.mark.parametrize("mode", ALL)
def test_a_machine_is_replaced_under_another_name(begin: Any, mode: str) -> None:
    player = begin(mode)
    player.edits = {"edit-inventory": planned("e", rack="r1")}
    runbook = player.runbook("--change replace-node --node b --to e")
    player.play(runbook)
    ends(player, mode, {"a": BEFORE["a"], "c": BEFORE["c"], "d": BEFORE["d"], "e": BEFORE["b"]})


def planned(name: str, **labels: str) -> Edit:
    """Return the edit that plans a node."""

    def change(document: Object) -> None:
        if document["kind"] == "NodeInventory":
            document["nodes"].append({"name": name, "labels": labels, "planned": True})

    return lambda site: site.edit(change)


NEW = "10.7.0.0/24"


def in_front(site: Site) -> None:
    """Write the new range in front of the old one."""

    def change(document: Object) -> None:
        if document["kind"] == "IPPool" and document["metadata"]["name"] == "default":
            document["spec"]["ipv4"]["cidrs"].insert(0, NEW)

    site.edit(change)


@pytest.mark.deep("pinned")
@pytest.mark.parametrize("mode", ALL)
def test_a_pool_moves_to_a_new_range(begin: Any, mode: str) -> None:
    """All nodes, in waves of two; the old range stays until its quarantine is over."""
    player = begin(mode)
    player.edits = {"edit-pool": in_front, "network": lambda _: None}
    runbook = player.runbook(f"--change new-range --pool default --to {NEW} --wave-size 2")
    player.play(runbook, phases=slice(0, -1))
    ends(
        player,
        mode,
        {"a": ["10.7.0.0/27"], "b": ["10.7.0.32/27"], "c": ["10.7.0.64/27"], "d": ["10.7.0.96/27"]},
    )
    assert {block for some in player.site.lock("quarantined").values() for _, block in some} == {
        block for some in BEFORE.values() for block in some
    }


@pytest.mark.deep("crd")
@pytest.mark.parametrize("mode", ALL)
def test_a_rack_is_decommissioned(begin: Any, mode: str) -> None:
    player = begin(mode)
    player.play(player.runbook("""--change decommission --selector 'rack == "r2"'"""))
    ends(player, mode, {"a": BEFORE["a"], "b": BEFORE["b"]})
    assert sorted(player.site.lock("quarantined")) == ["c", "d"]


@pytest.mark.deep("adopt")
@pytest.mark.parametrize("mode", ALL)
def test_etcd_is_lost_and_git_is_there(begin: Any, mode: str) -> None:
    """All objects go, and every Node comes back with another uid: each has the block that it had."""
    player = begin(mode)
    runbook = player.runbook("--change restore-git")
    player.stop_operator()
    player.api.delete(
        NODES,
        CILIUM_NODES,
        POOLS,
        *NODE_CONFIGS,
        f"{CONFIG_MAPS}/cilium-config",
        f"{DEPLOYMENTS}/cilium-operator",
    )
    player.edits = {key: lambda _: None for key in ("pause", "resume")}
    player.play(runbook)
    ends(player, mode, BEFORE)


@pytest.mark.deep("bystander-multi-pool", "crd-kubernetes")
@pytest.mark.parametrize(
    ("old", "mode"),
    [
        ("kubernetes", "cluster-pool"),
        ("bystander", "kubernetes"),
        ("bystander", "multi-pool"),
        ("adopt", "kubernetes"),
        ("crd", "cluster-pool"),
        ("crd", "kubernetes"),
        ("crd", "multi-pool"),
    ],
)
def test_another_mode(begin: Any, operator: Operator, old: str, mode: str) -> None:
    """Every node keeps its block, and agents of both modes read the same one at every step."""
    if mode == "multi-pool" and operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    player = begin(old)

    def set_mode(site: Site) -> None:
        ipam = {"mode": mode, **({"pinning": "none"} if mode == "multi-pool" else {})}
        site.edit(
            lambda document: document["spec"].update(ipam=ipam) if document["kind"] == "Cluster" else None
        )
        for file in site.folder.glob("*.yaml"):
            if "unlisted" in file.read_text():
                file.unlink()

    player.edits = {"edit-mode": set_mode, "list-strangers": lambda _: None}
    player.play(player.runbook(f"--change mode --to {mode}"))
    new = {"cluster-pool": "bystander", "kubernetes": "kubernetes", "multi-pool": "shared"}[mode]
    ends(player, new, BEFORE)


def test_another_mode_node_by_node(begin: Any, operator: Operator) -> None:
    """To pools of each node's own, where agents start without pods, in two waves: found by what is under way."""
    if operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    player = begin("bystander")
    ipam = {"mode": "multi-pool", "pinning": "node"}
    player.site.edit(
        lambda document: document["spec"].update(ipam=ipam) if document["kind"] == "Cluster" else None
    )
    player.sh("ipamc lock fleet --mode && ipamc compile fleet && git add clusters")
    player.sh("git commit --quiet -m mode && git push --quiet origin main")
    runbook = player.runbook("--base HEAD~1 --by rack")
    assert [wave["nodes"] for wave in runbook["phases"][1]["waves"]] == [["a", "b"], ["c", "d"]]
    player.play(runbook)
    ends(player, "pinned", BEFORE)


SIXES = {"a": "fd00::/122", "b": "fd00::40/122", "c": "fd00::80/122", "d": "fd00::c0/122"}


@pytest.mark.deep("annotations")
@pytest.mark.parametrize("mode", ["annotations", "bystander", "crd"])
def test_a_second_family(begin: Any, mode: str) -> None:
    player = begin(mode)
    player.edits = {"edit-families": second_family}
    player.play(player.runbook("--change dual-stack"), phases=slice(0, 1))
    player.play(player.runbook("--base HEAD~1"))
    ends(player, mode, {name: [*some, SIXES[name]] for name, some in BEFORE.items()})


@pytest.mark.deep("pinned")
@pytest.mark.parametrize("mode", ["kubernetes", "bystander", "crd", "pinned"])
def test_etcd_comes_back_from_a_backup(begin: Any, api: Api, mode: str) -> None:
    """Since the backup a was renumbered, and e joined: a's objects are older than the lock, and e is not there."""
    player = begin(mode)
    old = player.api.items(CILIUM_NODES)["a"]
    player.api.create(NODES, {"metadata": {"name": "e", "labels": {"rack": "r1"}}})
    player.refreshed()
    player.sh("ipamc apply fleet")
    player.agents(["e"])
    expected = {**BEFORE, "e": ["10.0.0.128/27"]}
    if mode != "kubernetes":  # a Node with other podCIDRs would come back with another uid
        player.play(player.runbook("--change renumber --node a"))
        expected["a"] = ["10.0.0.160/27"]
        if mode != "pinned":
            ipam = {
                key: old["spec"]["ipam"][key] for key in ("podCIDRs", "pool") if old["spec"]["ipam"].get(key)
            }
            older = {
                "apiVersion": "cilium.io/v2",
                "kind": "CiliumNode",
                "metadata": {"name": "a"},
                "spec": {"ipam": ipam},
            }
            api.applied(json.dumps(older))
    api.delete(f"{NODES}/e", f"{CILIUM_NODES}/e")
    player.edits = {key: lambda _: None for key in ("pause", "resume")}
    player.conditions = {"restart-kubelet"}
    player.absent = ["e"]
    player.play(player.runbook("--change restore-etcd"))
    ends(player, mode, expected)


def test_from_calico_to_cilium(with_calico: Api, operator: Operator, tmp_path: Path) -> None:  # noqa: F811 - a fixture
    """What a real apiserver has of Calico is imported, and 24 nodes move in waves of eight.

    Nothing of Calico runs: its rules are played in tests/review/test_runbook_calico.py.
    """
    if operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    api = with_calico
    site = Site(api, tmp_path / "work", "lab", operator.minor)
    site.work.mkdir()
    calico_cluster.running(api)
    options = ("--cilium-version", operator.minor, "--managed-by", "helm")
    site.run("import", "lab", calico_cluster.dump(site, "dump.json"), *options)
    player = Player(site, operator, tmp_path)
    player.daemon_set("calico-node")
    player.edits = {"remove-calico": lambda _: None}
    player.after = lambda: disjoint(api, "pinned")
    try:
        player.play(player.runbook("--change calico --wave-size 8"))
        rest(player)
        assert calico_cluster.held(site) == calico_cluster.given()
        assert {name: sorted(some) for name, some in blocks(api, "pinned").items()} == calico_cluster.given()
        reserved = api.items("/apis/crd.projectcalico.org/v1/ipreservations")
        reserved.pop("routers")
        assert {
            name: sorted(each["spec"]["reservedCIDRs"]) for name, each in reserved.items()
        } == calico_cluster.given()
    finally:
        player.stop_operator()


def test_an_upgrade_changes_no_block(begin: Any, operator: Operator) -> None:
    """Programs stay what they are here: git and the objects go through two minors."""
    _, minor = operator.version
    if minor + 2 > LAST[1]:
        pytest.skip("the second minor is one that nobody knows yet")
    player = begin("bystander")
    numbers = iter((minor + 1, minor + 2))

    def next_version(site: Site) -> None:
        version = f"1.{next(numbers)}"
        site.edit(
            lambda document: (
                document["spec"]["cilium"].update(version=version) if document["kind"] == "Cluster" else None
            )
        )

    player.edits = {"edit-version": next_version}
    player.play(player.runbook(f"--change upgrade --to 1.{minor + 2}"))
    ends(player, "bystander", BEFORE)
