"""`ipamc export tfvars|values|capi`: the shape of the data, and keys that stay when a pool in the middle goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ipamc.cli import main

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
---
"""
POOL = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: NAME}
spec:
  ipv4: {cidrs: [CIDR], blockSize: 26}
  nodeSelector: rack == "NAME"
---
"""
NODES = """\
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes:
"""
SPACE = """\
apiVersion: ipamc/v1alpha1
kind: AddressSpace
metadata: {name: net}
spec:
  ipv4: {cidrs: [10.128.0.0/9], prefixLength: 20}
"""
RACKS = {"a": "10.0.0.0/24", "b": "10.0.1.0/24", "c": "10.0.2.0/23"}


def write(*racks: str, name: str = "lab") -> None:
    folder = Path("clusters", name)
    folder.mkdir(parents=True, exist_ok=True)
    pools = "".join(POOL.replace("NAME", rack).replace("CIDR", RACKS[rack]) for rack in racks)
    (folder / "cluster.yaml").write_text(CLUSTER.replace("NAME", name) + pools)
    rows = [f"- {{name: {rack}-{number}, labels: {{rack: {rack}}}}}\n" for rack in racks for number in (1, 2)]
    (folder / "nodes.yaml").write_text(NODES + "".join(rows))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    write("a", "b", "c")
    assert main(["compile", "lab"]) == 0
    capsys.readouterr()


def exported(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["export", *words]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_the_shape(capsys: pytest.CaptureFixture[str]) -> None:
    data = exported(capsys, "tfvars", "lab")
    assert data.keys() == {"ipamc"}
    lab = data["ipamc"]["lab"]
    assert list(lab) == ["pools", "services", "ranges", "aggregates", "nodes", "blocks"]
    assert lab["pools"]["a"] == {"ipv4": {"cidrs": ["10.0.0.0/24"], "blockSize": 26}}
    assert lab["ranges"]["10.0.2.0/23"] == {"family": "IPv4", "pool": "c", "blockSize": 26}
    assert lab["aggregates"]["10.0.1.0/25"] == {"family": "IPv4", "pool": "b", "longest": 26}
    assert lab["nodes"]["a-2"] == {"ipv4": ["10.0.0.64/26"], "ipv6": []}
    assert lab["blocks"]["10.0.0.64/26"] == {"family": "IPv4", "pool": "a", "node": "a-2", "state": "held"}
    assert exported(capsys, "values", "lab") == {"global": data}


def test_no_other_key_and_value_changes_when_a_pool_in_the_middle_goes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`for_each` of OpenTofu destroys what has another key: with lists it would be all of what comes after."""
    before = exported(capsys, "tfvars", "lab")["ipamc"]["lab"]
    write("a", "c")
    assert main(["compile", "lab"]) == 0
    capsys.readouterr()
    after = exported(capsys, "tfvars", "lab")["ipamc"]["lab"]
    gone = {part: sorted(before[part].keys() - after[part].keys()) for part in before}
    assert gone == {
        "pools": ["b"],
        "services": [],
        "ranges": ["10.0.1.0/24"],
        "aggregates": ["10.0.1.0/25"],
        "nodes": ["b-1", "b-2"],
        "blocks": ["10.0.1.0/26", "10.0.1.64/26"],
    }
    for part, values in after.items():
        assert values == {key: value for key, value in before[part].items() if key not in gone[part]}


def test_ranges_of_a_space_are_by_the_name_that_asks(capsys: pytest.CaptureFixture[str]) -> None:
    Path("clusters/net").mkdir()
    Path("clusters/net/space.yaml").write_text(SPACE)
    pool = POOL.replace("NAME", "pods").replace("cidrs: [CIDR]", "from: net")
    Path("clusters/red").mkdir()
    asks = "  services: {ipv4: {from: net, prefixLength: 22}}\n---\n"
    text = CLUSTER.replace("NAME", "red").replace("---\n", asks)
    Path("clusters/red/cluster.yaml").write_text(text + pool.replace('  nodeSelector: rack == "pods"\n', ""))
    assert main(["compile", "net", "red"]) == 0
    capsys.readouterr()
    data = exported(capsys, "tfvars", "net", "red")["ipamc"]
    services, pods = ({"ipv4": [cidr], "ipv6": []} for cidr in ("10.128.16.0/22", "10.128.0.0/20"))
    assert data["net"]["given"] == {"red/pods": pods, "red/services": services}
    assert data["red"]["services"] == {"ipv4": {"cidrs": services["ipv4"], "blockSize": 32}}
    assert list(data["red"]["ranges"]) == pods["ipv4"], "no pod has an address of a service"
    network = {"pods": {"cidrBlocks": pods["ipv4"]}, "services": {"cidrBlocks": services["ipv4"]}}
    assert exported(capsys, "capi", "red") == {"spec": {"clusterNetwork": network}}
    assert main(["export", "capi", "net"]) == 1
    assert "net is an address space: name a cluster" in capsys.readouterr().err


def test_a_patch_of_cluster_api_has_one_range_of_a_family(capsys: pytest.CaptureFixture[str]) -> None:
    """10.0.0.0/24, 10.0.1.0/24 and 10.0.2.0/23 are 10.0.0.0/22; without the one in the middle they are none."""
    patch = exported(capsys, "capi", "lab")
    assert patch == {"spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/22"]}}}}
    write("a", "c")
    assert main(["export", "capi", "lab"]) == 1
    assert "lab has 2 IPv4 ranges, but clusterNetwork.pods takes one" in capsys.readouterr().err


def test_nothing_is_written_where_a_cluster_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """OpenTofu would destroy what belongs to the cluster that the file lacks."""
    write("a", name="broken")
    Path("clusters/broken/nodes.yaml").write_text("nodes: [")
    assert main(["export", "tfvars", "--write", "ipamc.auto.tfvars.json"]) == 1
    assert not Path("ipamc.auto.tfvars.json").exists()
    Path("clusters/broken/nodes.yaml").unlink()
    assert main(["export", "tfvars", "--write", "ipamc.auto.tfvars.json"]) == 0
    assert json.loads(Path("ipamc.auto.tfvars.json").read_text())["ipamc"].keys() == {"broken", "lab"}
    capsys.readouterr()
    for words in (["tfvars", "--set", "a=b"], ["values", "--status", "held=x"], ["capi", "lab", "broken"]):
        assert main(["export", *words]) == 64
