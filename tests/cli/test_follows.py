"""Verbs and pools whose blocks follow the addresses of nodes: nodes that nobody listed come in by a refresh, and are asked about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_import import CONFIG, Home
from tests.support import dumps

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
  addressSpace: fabric
"""
POOLS = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: auto}
spec:
  ipv4: {cidrs: [10.64.0.0/18], blockSize: 26, follows: 172.30.0.0/24}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: racks}
spec:
  ipv4: {cidrs: [172.20.0.0/20], blockSize: 26}
  nodeSelector: has(rack)
"""
FIRST = """\
{"lock":1,"cluster":"lab","mode":"cluster-pool","shards":1}
{"block":"10.64.2.64/26","pool":"auto","node":"auto-1"}
{"block":"10.64.20.64/26","pool":"auto","node":"auto-2"}
{"block":"172.20.0.0/26","pool":"racks","node":"r1"}
"""
LATER = """\
{"lock":1,"cluster":"lab","mode":"cluster-pool","shards":1}
{"block":"10.64.2.64/26","pool":"auto","node":"auto-3"}
{"block":"10.64.2.128/26","pool":"auto","node":"auto-1"}
{"block":"10.64.20.64/26","pool":"auto","node":"auto-2","released":true}
{"block":"172.20.0.0/26","pool":"racks","node":"r1"}
"""


def joined(name: str, ip: str, block: str, **fields: dict[str, str]) -> list[dumps.Object]:
    """Return the objects of a node that joined, and has its block by the policy."""
    return [dumps.node(name, ip=ip, **fields), dumps.cilium_node(name, block)]  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a folder with two dumps: auto-2 left, auto-1 joined again with another address, and auto-3 has its old one."""
    home = Home(tmp_path)
    folder = tmp_path / "clusters" / "lab"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER)
    (folder / "ippools.yaml").write_text(POOLS)
    rack = joined("r1", "192.168.1.1", "172.20.0.0/26", labels={"rack": "1"})
    one, two = (
        joined("auto-1", "172.30.0.9", "10.64.2.64/26"),
        joined("auto-2", "172.30.0.81", "10.64.20.64/26"),
    )
    home.dump("first.json", *rack, *one, *two, CONFIG)
    again, three = (
        joined("auto-1", "172.30.0.10", "10.64.2.128/26"),
        joined("auto-3", "172.30.0.9", "10.64.2.64/26"),
    )
    home.dump("later.json", *rack, *again, *three, CONFIG)
    return home


def test_nodes_that_nobody_listed(home: Home) -> None:
    assert "3 nodes joined" in home.run("import", "lab", "--refresh", "first.json")
    nodes = home.file("nodes.yaml")
    assert "- {name: auto-1, uid: uid-auto-1, maxPods: 110, internalIPs: [172.30.0.9]}\n" in nodes
    assert "internalIPs: [192.168.1.1]" in nodes  # a pool that overlaps this network gives nobody the block
    home.run("compile", "lab")
    assert home.file("ipam.lock") == FIRST
    assert "0 nodes changed" in home.run("import", "lab", "--refresh", "first.json")
    said = home.run("import", "lab", "--refresh", "later.json")
    assert "1 node joined (auto-3), 1 node left (auto-2), 1 node changed (auto-1)" in said
    home.run("compile", "lab")
    assert home.file("ipam.lock") == LATER
    home.run("compile", "lab", "--check")


def test_an_audit_follows_them(home: Home) -> None:
    home.run("import", "lab", "--refresh", "first.json")
    home.run("compile", "lab")
    said = home.run("audit", "lab", "later.json", code=1)
    assert "error" not in said
    assert "IPC0924" in said  # auto-3 is not in the inventory


def test_the_node_of_an_address(home: Home) -> None:
    found = json.loads(home.run("which", "10.64.20.105", "--output", "json", code=1).split("\nno node")[0])
    (vacant,) = found["vacant"]
    assert (vacant["block"], vacant["address"]) == ("10.64.20.64/26", "172.30.0.81")
    assert "the node with 172.30.0.81" in home.run("which", "10.64.20.105", code=1)
    assert "free, but the pool follows 172.30.0.0/24" in home.run("which", "10.64.0.0/20", code=1)
    assert "outside" not in home.run("which", "10.64.63.255", code=1)


def test_a_pool_that_is_never_full(home: Home) -> None:
    (home.folder / "clusters" / "lab" / "ippools.yaml").write_text(
        POOLS.replace("172.30.0.0/24", "172.30.0.0/31").replace("/18", "/25")
    )
    (home.folder / "clusters" / "lab" / "nodes.yaml").write_text(
        "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n"
        "- {name: a, internalIPs: [172.30.0.0]}\n- {name: b, internalIPs: [172.30.0.1]}\n- {name: c}\n"
    )
    assert "IPC0215" not in home.run("compile", "lab", code=1)
    text = home.run("show", "lab")
    assert "follows 172.30.0.0/31" in text
    assert "disabled" not in text
    (auto, _) = json.loads(home.run("show", "lab", "--output", "json"))["clusters"][0]["pools"]
    assert auto["follows"] == "172.30.0.0/31"
    assert "follows" in home.run("forecast", "lab")
    said = home.run("forecast", "lab", "--what-if", "+2", code=1)
    assert "add its InternalIP" in said
    assert "auto has room" not in said


def test_what_else_reads_pools(home: Home) -> None:
    home.run("import", "lab", "--refresh", "first.json")
    assert "follows 172.30.0.81 of auto-2" in home.run("export", "netbox", "lab")
    said = home.run("suggest", "pool", "lab", "--size", "24", "--from", "172.30.0.0/23")
    assert "1. 172.30.1.0/24" in said
    assert "172.30.0.0/24" not in said
    said = home.run("why", "auto-2")
    assert "follows 172.30.0.0/24, which contains the node's address" in said
