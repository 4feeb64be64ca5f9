"""`ipamc import --machines`: planned nodes from Cluster API, metal3 and tables; what is there stays byte by byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ipamc.cli import main
from ipamc.read import csv_table
from ipamc.read.dump import machines as reader

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: lab}
spec: {cilium: {version: "1.18", managedBy: helm}, ipam: {mode: cluster-pool}}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: all}
spec: {ipv4: {cidrs: [10.0.0.0/16], blockSize: 26}}
"""
HEAD = """\
# Planned nodes. 'ipamc import --machines' adds nodes and changes no other line
# yaml-language-server: $schema=../.schemas/nodeinventory.schema.json
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes:
"""
FILE = Path("clusters/lab/machines.yaml")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FILE.parent.mkdir(parents=True)
    Path("clusters/lab/cluster.yaml").write_text(CLUSTER)


def machine(name: str, *, infrastructure: str = "", node: str = "", **more: Any) -> dict[str, Any]:
    labels, cluster, version = (
        more.get("labels", {}),
        more.get("cluster", "lab"),
        more.get("version", "v1beta2"),
    )
    metadata = {"name": name, "namespace": "capi", "labels": labels, **more.get("metadata", {})}
    kind, _, called = infrastructure.partition("/")
    spec = {
        "clusterName": cluster,
        "infrastructureRef": {"kind": kind or "VSphereMachine", "name": called or name},
    }
    status = {"status": {"nodeRef": {"name": node}}} if node else {}
    return {
        "apiVersion": f"cluster.x-k8s.io/{version}",
        "kind": "Machine",
        "metadata": metadata,
        "spec": spec,
        **status,
    }


def host(name: str, consumer: str = "", labels: dict[str, str] | None = None) -> dict[str, Any]:
    kind, _, called = consumer.partition("/")
    used = {"consumerRef": {"kind": kind, "name": called, "namespace": "capi"}} if consumer else {}
    metadata = {"name": name, "namespace": "capi", "labels": labels or {}}
    return {"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": metadata, "spec": used}


def bring(capsys: pytest.CaptureFixture[str], *arguments: str | dict[str, Any] | Path, code: int = 0) -> str:
    """Import files, or objects in one, and return what is said."""
    objects = [each for each in arguments if isinstance(each, dict)]
    if objects:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=4)
        Path("m.json").write_text(text)
    words = [str(each) for each in arguments if not isinstance(each, dict)]
    assert (
        main(["import", "lab", "--machines", *words, *(["m.json"] if objects else []), "--format", "concise"])
        == code
    )
    return capsys.readouterr().err


def lines() -> list[str]:
    text = FILE.read_text()
    assert text.startswith(HEAD)
    return text.removeprefix(HEAD).splitlines()


PROPAGATED = (
    "node-restriction.kubernetes.io/rack: a",
    'node-role.kubernetes.io/worker: ""',
    "node.cluster.x-k8s.io/tier: db",
    'x.node-restriction.kubernetes.io/row: "1"',
)


def test_machines_are_planned_with_the_labels_that_their_nodes_get(
    capsys: pytest.CaptureFixture[str],
) -> None:
    labels = {
        "node-role.kubernetes.io/worker": "",
        "node-restriction.kubernetes.io/rack": "a",
        "x.node-restriction.kubernetes.io/row": "1",
        "node.cluster.x-k8s.io/tier": "db",
        "cluster.x-k8s.io/deployment-name": "md-0",
        "example.com/room": "7",
    }
    said = bring(capsys, machine("md-0-b", labels=labels), machine("md-0-a", version="v1beta1"))
    assert lines() == [
        "- {name: md-0-a, planned: true}",
        f"- {{name: md-0-b, labels: {{{', '.join(PROPAGATED)}}}, planned: true}}",
    ]
    assert said.splitlines() == [
        "clusters/lab/machines.yaml: written",
        "lab: 2 planned nodes added (md-0-a, md-0-b), 0 exist already",
        "next: ipamc compile lab; to see its changes first: ipamc plan lab",
    ]
    bring(capsys, "--label", "example.com/*", machine("md-0-c", labels=labels))
    assert 'example.com/room: "7"' in lines()[2]
    assert main(["compile", "lab"]) == 0


def test_again_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    bring(capsys, machine("a"))
    before = FILE.read_bytes()
    said = bring(capsys, machine("a", labels={"node.cluster.x-k8s.io/new": "x"}))
    assert said == "clusters/lab/machines.yaml: unchanged\nlab: 0 planned nodes added, 1 exist already\n"
    assert FILE.read_bytes() == before


def test_a_machine_that_joined_is_no_planned_node(capsys: pytest.CaptureFixture[str]) -> None:
    Path("clusters/lab/nodes.yaml").write_text(
        'apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n- {name: node-1, uid: u}\n- {names: "p-{1..9}", planned: true}\n'
    )
    said = bring(
        capsys,
        machine("m-1", node="node-1"),
        machine("m-2", node="node-2"),
        machine("m-3"),
        machine("p-5"),
        machine("gone", metadata={"deletionTimestamp": "2026-11-22T08:00:00Z"}),
    )
    assert lines() == ["- {name: m-3, planned: true}"]
    assert "m.json:" in said
    assert "warning[IPC0832]" in said
    assert "node-2" in said
    assert "lab: 1 planned node added (m-3), 2 exist already" in said


def test_a_host_is_called_as_its_machine(capsys: pytest.CaptureFixture[str]) -> None:
    said = bring(
        capsys, "--label", "rack",
        machine("m-1", infrastructure="Metal3Machine/m3-1"),
        machine("other", infrastructure="Metal3Machine/m3-2", cluster="prod"),
        host("h-1", "Metal3Machine/m3-1", {"rack": "a", "x": "y"}),
        host("h-2", "Metal3Machine/m3-2"),
        host("h-3", "Metal3Machine/m3-3"),
        host("h-4", labels={"rack": "b"}),
    )  # fmt: skip
    assert lines() == [
        "- {name: h-4, labels: {rack: b}, planned: true}",
        "- {name: m-1, labels: {rack: a}, planned: true}",
    ]
    assert said.count("IPC0833") == 2
    assert "h-3" in said


def test_aws_names_nodes_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert "warning[IPC0833]" in bring(capsys, machine("a", infrastructure="AWSMachine/a"))


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        ("order.csv", "Name,rack,zone\nw-1,a,\nw-2,b,z\n", ["- {name: w-1, labels: {rack: a}, planned: true}", "- {name: w-2, labels: {rack: b, zone: z}, planned: true}"]),
        ("order.tsv", "rack\tHost Name\na\tw-1\n", ["- {name: w-1, labels: {rack: a}, planned: true}"]),
        ("order.txt", "w-1\n\nw-2\n", ["- {name: w-1, planned: true}", "- {name: w-2, planned: true}"]),
        ("order.txt", "name\nw-1\n", ["- {name: w-1, planned: true}"]),
    ],
)  # fmt: skip
def test_tables(capsys: pytest.CaptureFixture[str], name: str, text: str, rows: list[str]) -> None:
    Path(name).write_text(text)
    bring(capsys, name)
    assert lines() == rows


def test_tables_and_objects_together(capsys: pytest.CaptureFixture[str]) -> None:
    Path("order.txt").write_text("w-1\n")
    bring(capsys, "order.txt", machine("a"))
    assert lines() == ["- {name: a, planned: true}", "- {name: w-1, planned: true}"]


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("order.csv", "name,rack\n=cmd(),a\n", "IPC0101"),
        ("order.csv", "name,rack\nw-1,=1+1\n", "IPC0102"),
        ("order.csv", "name,Primary IP\nw-1,x\n", "IPC0102"),
        ("order.csv", "name,rack\n,x\n", "IPC0101"),
        ("order.csv", "name\nw-1\nw-1\n", "IPC0103"),
        ("order.csv", "name,rack,rack\nw-1,a,b\n", "IPC0872"),
        ("order.csv", "rack,row\na,b\n", "IPC0871"),
        ("order.csv", "", "IPC0010"),
        ("order.csv", "name,rack\nw-1\n", "IPC0870"),
        ("order.csv", f"name{',x' * 300}\n", "IPC0870"),
        ("order.txt", "w-1\nW 2\n", "IPC0101"),
        ("m.yaml", "", "IPC0801"),
        ("m.yaml", "apiVersion: v1\nkind: List\nitems: []\n", "IPC0831"),
        ("m.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", "IPC0831"),
        ("m.yaml", "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Machine\nmetadata: {name: A_}\n", "IPC0101"),
        ("m.yaml", "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Machine\nmetadata: {name: [a]}\n", "IPC0804"),
        ("m.yaml", "apiVersion: cluster.x-k8s.io/v1beta2\nkind: MachineList\nmetadata: {continue: x}\nitems: []\n", "IPC0802"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_files_is_refused(
    capsys: pytest.CaptureFixture[str], name: str, text: str, code: str
) -> None:
    Path(name).write_text(text)
    said = bring(capsys, name, code=1)
    assert f"error[{code}]" in said
    assert "kubectl get nodes" not in said, "the command is that of machines"
    assert not FILE.exists()


def test_what_is_too_much_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MOST_NODES", 2)
    assert "more than 2 machines" in bring(capsys, machine("a"), machine("b"), machine("c"), code=1)
    monkeypatch.setattr(csv_table, "MOST_ROWS_OF_TABLE", 1)
    Path("order.txt").write_text("name\na\nb\n")
    assert "IPC0870" in bring(capsys, "order.txt", code=1)


@pytest.mark.parametrize(
    "text",
    [
        "# mine\napiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n  # rack a\n  - name: x\n    labels:\n      rack: a  # here\n    planned: true\n",
        "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes: []  # none yet\n",
        "kind: NodeInventory\napiVersion: ipamc/v1alpha1\nnodes:  # all\n- {name: x, uid: u, podCIDRs: [10.0.0.0/26]}",
        "kind: NodeInventory\r\napiVersion: ipamc/v1alpha1\r\nnodes:\r\n- {name: x}\r\n",
    ],
)
def test_what_is_there_stays_byte_by_byte(capsys: pytest.CaptureFixture[str], text: str) -> None:
    FILE.write_bytes(text.encode())
    bring(capsys, machine("a"))
    found = FILE.read_bytes().decode()
    indent = "  " if "\n  - " in text else ""
    assert found == f"{text.replace(' []', '').removesuffix(chr(10))}\n{indent}- {{name: a, planned: true}}\n"


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes: [{name: x}]\n",
        "apiVersion: ipamc/v1alpha1\nnodes:\n- {name: x}\nkind: NodeInventory\n",
        "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n- {name: x}\n---\napiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n- {name: y}\n",
        '{"apiVersion": "ipamc/v1alpha1", "kind": "NodeInventory", "nodes": [{"name": "x"}]}\n',
    ],
)
def test_a_file_that_cannot_get_more_lines_is_named(capsys: pytest.CaptureFixture[str], text: str) -> None:
    FILE.write_text(text)
    assert "clusters/lab/machines.yaml is not a plain list of nodes" in bring(capsys, machine("a"), code=1)
    assert FILE.read_text() == text


def test_what_left_the_files_is_told_and_stays(capsys: pytest.CaptureFixture[str]) -> None:
    bring(capsys, machine("a"), machine("b"))
    said = bring(capsys, machine("b"), machine("c"))
    assert "clusters/lab/machines.yaml:6:4: note[IPC0834]" in said
    assert lines() == [f"- {{name: {name}, planned: true}}" for name in "abc"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--machines", "m.json", "--mode", "crd"],
        ["--machines", "m.json", "--refresh"],
        ["--machines", "m.json", "--block-size", "26"],
        ["--machines", "m.json", "--rebuilt"],
        ["--machines", "--prefixes", "plan.csv"],
    ],
)
def test_options_of_dumps_are_refused(arguments: list[str]) -> None:
    assert main(["import", "lab", *arguments]) == 64


def test_files_that_are_not_there() -> None:
    assert main(["import", "lab", "--machines", "m.json"]) == 1
    assert main(["import", "lab", "--machines", "m.csv"]) == 1
    assert main(["import", "nowhere", "--machines", "m.csv"]) != 0
