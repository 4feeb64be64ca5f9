"""`ipamc forecast --what-if`: it says what a compile of these nodes then does, and writes nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ipamc.cli import main
from ipamc.workspace.disk import assets
from tests.support.examples import NAMES

SCHEMA = json.loads(assets("schemas")["what_if.output.json"])

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-a}
spec:
  ipv4: {cidrs: [10.0.0.0/24], blockSize: 27}
  nodeSelector: rack == "a"
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-b}
spec:
  ipv4: {cidrs: [10.0.1.0/24], blockSize: 27}
  nodeSelector: rack == "b"
"""
NODES: list[dict[str, Any]] = [
    {"name": f"{rack}{number}", "labels": {"rack": rack}, "uid": f"uid-{rack}{number}"}
    for rack in "ab"
    for number in range(1, 6)
]


@pytest.fixture(autouse=True)
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A cluster of two racks with five nodes and eight places each, as the working directory."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")  # 2026-09-21
    folder = tmp_path / "clusters/lab"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER)
    inventory(folder, NODES)
    monkeypatch.chdir(tmp_path)
    assert main(["compile"]) == 0
    capsys.readouterr()
    return folder


def inventory(folder: Path, nodes: list[dict[str, Any]]) -> None:
    document = {"apiVersion": "ipamc/v1alpha1", "kind": "NodeInventory", "nodes": nodes}
    (folder / "nodes.yaml").write_text(yaml.safe_dump(document))


def ask(capsys: pytest.CaptureFixture[str], *changes: str) -> tuple[int, dict[str, Any]]:
    options = [option for change in changes for option in ("--what-if", change)]
    code = main(["forecast", "lab", *options, "--output", "json"])
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    return code, found


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    "mode", ["cluster-pool", "kubernetes", "crd", "multi-pool, pinning: pool", "multi-pool, pinning: node"]
)
def test_it_says_what_a_compile_does_then(mode: str, lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(lab / "rendered")
    (lab / "ipam.lock").unlink()
    text = CLUSTER.replace("cluster-pool}", f"{mode}}}")
    (lab / "cluster.yaml").write_text(
        text.replace("nodeSelector: rack", "blocksPerNode: 2\n  nodeSelector: rack")
        if mode.endswith("node")
        else text
    )
    inventory(lab, NODES if "multi" not in mode else [node for node in NODES if node["name"][1] in "12"])
    assert main(["compile"]) == 0
    capsys.readouterr()
    before = files(lab)
    code, found = ask(capsys, "+2 rack=b", "-node a2", "+1 like a1")
    assert files(lab) == before
    assert (code, found["fits"], found["freeOn"]) == (0, True, "2026-09-28")
    coming = {entry["node"]: entry["blocks"] for entry in found["added"]}
    labels = {"what-if-1": "b", "what-if-2": "b", "what-if-3": "a"}
    assert coming.keys() == labels.keys()
    kept = [
        node for node in yaml.safe_load((lab / "nodes.yaml").read_text())["nodes"] if node["name"] != "a2"
    ]
    new = [{"name": name, "labels": {"rack": rack}, "uid": name} for name, rack in labels.items()]
    inventory(lab, [*kept, *new])
    assert main(["compile"]) == 0
    lines = [json.loads(line) for line in (lab / "ipam.lock").read_text().splitlines()[1:]]
    assert {name: [block["block"] for block in blocks] for name, blocks in coming.items()} == {
        name: [line["block"] for line in lines if line["node"] == name] for name in labels
    }
    assert [line["block"] for line in found["quarantined"]] == [
        line["block"] for line in lines if line.get("quarantined") == "2026-09-21"
    ]
    capsys.readouterr()
    assert main(["show", "lab", "--output", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)["clusters"][0]["pools"]
    assert [(pool["pool"], pool["after"]["held"], pool["after"]["free"]) for pool in found["pools"]] == [
        (pool["pool"], pool["blocks"]["held"], pool["blocks"]["free"]) for pool in shown
    ]


def test_what_is_full_and_what_would_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forecast", "lab", "--what-if", "+7 rack=b", "--what-if", "-rack a"]) == 1
    assert (
        capsys.readouterr().out
        == """\
lab, what if +7 rack=b, -rack a: compile refuses it
+------------+--------+------+------+------+------+-----------------+
| POOL       | BLOCKS | HELD | THEN | FREE | THEN | LATER           |
+------------+--------+------+------+------+------+-----------------+
| rack-a /27 |      8 |    5 |    0 |    3 |    3 | 8 on 2026-09-28 |
| rack-b /27 |      8 |    5 |    8 |    3 |    0 |                 |
+------------+--------+------+------+------+------+-----------------+
+7 rack=b: 3 of 7 nodes served, with 3 blocks of rack-b
  what-if-1: 10.0.1.160/27
  what-if-2: 10.0.1.192/27
  what-if-3: 10.0.1.224/27
-rack a: 5 nodes leave, 5 blocks in quarantine, free on 2026-09-28
4 nodes without a block; the first is what-if-4 [IPC0303]
  pool rack-b has no room for 4 nodes: what-if-4, what-if-5, what-if-6, what-if-7; IPv4 /27: 8 blocks, 8 held
  - helps some: pool rack-a has room for 3 nodes: add rack-a to the overflow of pool rack-b
  - set blockSize: 29 for new nodes of pool rack-b (8 addresses; 12 free, 7 needed)
  - add a range of /25 to pool rack-b: ipamc suggest pool lab --pool rack-b --size 25
so many nodes can leave only with your consent (IPC0418, IPC0419): ipamc lock lab --leave NODE, or --leave all
"""
    )


def test_each_way_out_helps(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is said to be enough is enough: each way is taken, and the nodes asked for again."""
    inventory(lab, [node for node in NODES if node["name"] not in {"b1", "b2"}])
    assert main(["compile"]) == 0
    capsys.readouterr()
    code, found = ask(capsys, "+5 rack=b")
    (without,) = found["without"]
    assert (code, without["nodes"], without["pool"]) == (1, ["what-if-4", "what-if-5"], "rack-b")
    assert without["ways"] == [
        {
            "text": "pool rack-a has room for 3 nodes: add rack-a to the overflow of pool rack-b",
            "enough": True,
        },
        {
            "text": "wait until 2026-09-28: then the quarantine of 2 blocks of pool rack-b is over",
            "enough": True,
        },
        {
            "text": "set blockSize: 28 for new nodes of pool rack-b (16 addresses; 6 free, 5 needed)",
            "enough": True,
        },
        {
            "text": "add a range of /26 to pool rack-b: ipamc suggest pool lab --pool rack-b --size 26",
            "enough": True,
        },
    ]
    command = without["ways"][-1]["text"].partition("ipamc ")[2]
    assert main([*command.split(), "--output", "json"]) == 0
    (place, *_) = json.loads(capsys.readouterr().out)["suggestions"]
    overflow = CLUSTER.replace('"b"\n', '"b"\n  overflow: [rack-a]\n')
    larger = CLUSTER.replace("10.0.1.0/24", f"10.0.1.0/24, {place['cidr']}")
    for text in (overflow, larger):
        (lab / "cluster.yaml").write_text(text)
        assert ask(capsys, "+5 rack=b")[0] == 0
    (lab / "cluster.yaml").write_text(CLUSTER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", str(1790000000 + 7 * 86400))
        assert ask(capsys, "+5 rack=b")[0] == 0


def test_a_smaller_block_makes_room(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three places of /27 are six of /28; the five nodes that have a /27 keep it."""
    _, found = ask(capsys, "+5 rack=b")
    assert {
        "text": "set blockSize: 28 for new nodes of pool rack-b (16 addresses; 6 free, 5 needed)",
        "enough": True,
    } in found["without"][0]["ways"]
    (lab / "cluster.yaml").write_text(
        CLUSTER.replace('27}\n  nodeSelector: rack == "b"', '28}\n  nodeSelector: rack == "b"')
    )
    assert ask(capsys, "+6 rack=b")[0] == 0
    assert ask(capsys, "+7 rack=b")[0] == 1


def test_many_reasons_are_shown_in_part(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    racks = [f"r{number}" for number in range(25)]
    pools = "".join(
        f"---\napiVersion: ipamc/v1alpha1\nkind: IPPool\nmetadata: {{name: {rack}}}\nspec:\n"
        f'  ipv4: {{cidrs: [10.1.{number}.0/27], blockSize: 27}}\n  nodeSelector: rack == "{rack}"\n'
        for number, rack in enumerate(racks)
    )
    (lab / "cluster.yaml").write_text(CLUSTER + pools)
    changes = [option for rack in racks for option in ("--what-if", f"+2 rack={rack}")]
    assert main(["forecast", "lab", *changes]) == 1
    out = capsys.readouterr().out
    assert out.count("1 node without a block") == 20
    assert "5 more reasons: --output json lists all" in out
    _, found = ask(capsys, *(f"+2 rack={rack}" for rack in racks))
    assert len(found["without"]) == 25


def test_nodes_that_no_pool_selects(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = ask(capsys, "+3 rack=c")
    (without,) = found["without"]
    assert (code, without["code"], without["pool"], len(without["nodes"])) == (1, "IPC0302", None, 3)
    (lab / "cluster.yaml").write_text(
        CLUSTER.replace("cluster-pool}", "cluster-pool}\n  unmatchedNodes: skip")
    )
    code, found = ask(capsys, "+3 rack=c")
    assert (code, found["without"], [entry["blocks"] for entry in found["added"]]) == (0, [], [[], [], []])


def test_an_inventory_that_is_not_compiled_counts_as_if_it_were(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inventory(lab, [*NODES, {"name": "z1", "labels": {"rack": "b"}}])
    code, found = ask(capsys, "+2 rack=b")
    assert (code, found["notCompiled"]) == (0, 1)
    rack_b = found["pools"][1]
    assert (rack_b["before"], rack_b["after"]) == ({"held": 6, "free": 2}, {"held": 8, "free": 0})


@pytest.mark.parametrize("name", NAMES)
def test_a_node_like_one_that_is_there_is_refused_for_want_of_room_alone(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every mode: what a made-up node has not, such as the uid of a Node, is no reason."""
    monkeypatch.chdir(Path(__file__).parents[2])
    header, first, *_ = Path(f"clusters/{name}/ipam.lock").read_text().splitlines()
    node = json.loads(first)["node"]
    for change in (f"+1 like {node}", f"-node {node}"):
        code = main(["forecast", name, "--what-if", change, "--output", "json"])
        found = json.loads(capsys.readouterr().out)
        jsonschema.validate(found, SCHEMA)
        assert found["refused"] == []
        assert {without["code"] for without in found["without"]} <= {"IPC0303"}
        assert code == (1 if found["without"] else 0)
        assert json.loads(header)["cluster"] == found["cluster"]


def test_everybody_leaves(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = ask(capsys, "-rack=a", "-rack=b")
    assert (code, found["needsConsent"], len(found["quarantined"])) == (0, ["IPC0420"], 10)
    cluster = (lab / "cluster.yaml").read_text()
    (lab / "cluster.yaml").write_text(
        cluster.replace("cluster-pool}", "cluster-pool}\n  quarantineDays: never")
    )
    assert ask(capsys, "-rack=a")[1]["freeOn"] == ""
    assert main(["forecast", "lab", "--what-if", "-node a1"]) == 0
    assert (
        "-node a1: 1 node leaves, 1 block in quarantine, forever (quarantineDays)" in capsys.readouterr().out
    )


def test_where_the_operator_decides_it_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    assert main(["forecast", "multi-pool", "--what-if", "+1"]) == 0
    assert (
        "Cilium's operator gives out blocks of default, podippool-2: nodes start with these blocks"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lab", "--what-if", "+x"], "--what-if '+x' is not a change of nodes"),
        (["lab", "--what-if", "-rack=c"], "no node of lab has rack=c"),
        (["lab", "lab2", "--what-if", "+1"], "--what-if is for one cluster: name one cluster"),
    ],
)
def test_usage(lab: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    (lab.parent / "lab2").mkdir()
    assert main(["forecast", *arguments]) == 64
    assert said in capsys.readouterr().err


def test_a_cluster_that_is_refused(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lab / "cluster.yaml").write_text(CLUSTER.replace("10.0.1.0/24", "10.0.0.0/25"))
    assert main(["forecast", "lab", "--what-if", "+1 rack=a"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "IPC0207" in captured.err
    inventory(lab, [])
    (lab / "cluster.yaml").write_text(CLUSTER)
    assert main(["forecast", "lab", "--what-if", "+1 rack=a"]) == 1
    assert "IPC0420" in capsys.readouterr().err
