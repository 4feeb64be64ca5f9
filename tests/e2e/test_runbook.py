"""Runbooks on real servers, as written: their JSON is read, and every command of theirs is run (`played`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

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
from tests.e2e.played import Player
from tests.e2e.proof import at_rest, handled_by_operator
from tests.e2e.site import Site
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

    def made(mode: str, **more: Any) -> Player:
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
        site.apply()
        player = Player(site, operator, tmp_path)
        players.append(player)
        player.roll_out()
        if mode in {"pinned", "shared"}:
            player.sh(
                f"kubectl --context=fleet apply --server-side --field-manager=ipamc-seeds -f {site.rendered}/seeds"
            )
        player.agents(player.names)
        rest(player)
        player.refreshed()
        player.after = lambda: disjoint(api, mode)
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
    player.sh("ipamc ci apply fleet")
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


@pytest.mark.parametrize("mode", ALL)
def test_a_renumber_in_two_waves(begin: Any, mode: str) -> None:
    """Of two racks, one node each: both are reserved first, then each moves; the others keep theirs."""
    player = begin(mode)
    runbook = player.runbook("--change renumber --node a --node c --by rack")
    waves = runbook["phases"][-1]["waves"]
    assert [(wave["name"], wave["nodes"]) for wave in waves] == [("r1", ["a"]), ("r2", ["c"])]
    player.play(runbook)
    ends(player, mode, MOVED)
    assert player.runbooks() == []


@pytest.mark.parametrize("mode", ALL)
def test_a_machine_is_replaced_under_the_same_name(begin: Any, mode: str) -> None:
    player = begin(mode)
    player.conditions = {"cordon", "drain"}
    player.play(player.runbook("--change replace-node --node b"))
    ends(player, mode, BEFORE)


@pytest.mark.parametrize("mode", ALL)
def test_a_machine_is_replaced_under_another_name(begin: Any, mode: str) -> None:
    player = begin(mode)
    player.edits = {"edit-inventory": plan_e}
    runbook = player.runbook("--change replace-node --node b --to e")
    player.play(runbook)
    ends(player, mode, {"a": BEFORE["a"], "c": BEFORE["c"], "d": BEFORE["d"], "e": BEFORE["b"]})


def plan_e(site: Site) -> None:
    """Plan node e, with the labels of b."""

    def change(document: Object) -> None:
        if document["kind"] == "NodeInventory":
            document["nodes"].append({"name": "e", "labels": {"rack": "r1"}, "planned": True})

    site.edit(change)


NEW = "10.7.0.0/24"


def in_front(site: Site) -> None:
    """Write the new range in front of the old one."""

    def change(document: Object) -> None:
        if document["kind"] == "IPPool" and document["metadata"]["name"] == "default":
            document["spec"]["ipv4"]["cidrs"].insert(0, NEW)

    site.edit(change)


@pytest.mark.parametrize("mode", ALL)
def test_a_pool_moves_to_a_new_range(begin: Any, mode: str) -> None:
    """All nodes, in waves of two; the old range stays until its quarantine is over."""
    player = begin(mode)
    player.edits = {"edit-pool": in_front, "network": lambda _: None}
    runbook = player.runbook(f"--change new-range --pool default --to {NEW} --wave-size 2")
    player.play(runbook, phases=slice(0, 3))
    ends(
        player,
        mode,
        {"a": ["10.7.0.0/27"], "b": ["10.7.0.32/27"], "c": ["10.7.0.64/27"], "d": ["10.7.0.96/27"]},
    )
    assert {block for some in player.site.lock("quarantined").values() for _, block in some} == {
        block for some in BEFORE.values() for block in some
    }


@pytest.mark.parametrize("mode", ALL)
def test_a_rack_is_decommissioned(begin: Any, mode: str) -> None:
    player = begin(mode)
    player.play(player.runbook("""--change decommission --selector 'rack == "r2"'"""))
    ends(player, mode, {"a": BEFORE["a"], "b": BEFORE["b"]})
    assert sorted(player.site.lock("quarantined")) == ["c", "d"]


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
