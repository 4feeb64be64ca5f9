"""Inventories of kubespray as machines: which hosts are nodes, with which labels, and what cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipamc.cli import main
from ipamc.importing.machines import of_inventory
from ipamc.model.diagnostics import Refused, Span
from ipamc.read.ansible import IS_INVENTORY
from tests.cli.test_import_machines import CLUSTER

YAML = """\
all:
  vars: {ansible_user: root, node_labels: {of: all}}
  hosts:
    node1: {ansible_host: 192.0.2.1, ip: 192.0.2.1, access_ip: 192.0.2.1, ip6: "fd00::1", node_labels: {rack: a}}
    node2: {ansible_host: 192.0.2.2}
    other:
  children:
    kube_control_plane: {hosts: {node1: }}
    kube_node:
      hosts: {node2: , "node[03:04]": }
      vars: {node_labels: {rack: b, size: 4}}
    etcd: {hosts: {node1: , e1: }}
    k8s_cluster:
      vars: {node_labels: {of: k8s_cluster}}
      children: {kube_control_plane: , kube_node: , gpu: , calico_rr: }
    gpu: {hosts: {g1: }}
    calico_rr: {hosts: {rr1: , node2: }}
    bastion: {hosts: {jump: {ansible_host: "{{ jump }}"}}}
"""
INI = """\
# the sample of kubespray
jump ansible_host=192.0.2.9
[all]
node1 ansible_host=192.0.2.1 ip=192.0.2.1 etcd_member_name=etcd1 node_labels='{"rack": "a"}'  # first
node2 ansible_host=192.0.2.2 # ip=10.3.0.2
 other
[kube_control_plane]
node1
[etcd]
node1
e1
[kube_node]
node2:2222
node[03:04]
; nothing
[kube_node:vars]
node_labels={'rack': 'b', 'size': 4}
[calico_rr]
rr1
[gpu]
g1
[bastion]
jump
[all:vars]
node_labels = {"of": "all"}
[k8s_cluster:children]
kube_control_plane
kube_node
gpu   # a comment
calico_rr
[k8s_cluster:vars]
node_labels='{"of": "k8s_cluster"}'
"""
NODES = {
    "node1": {"rack": "a"},
    "node2": {"rack": "b", "size": "4"},
    "node03": {"rack": "b", "size": "4"},
    "node04": {"rack": "b", "size": "4"},
    "g1": {"of": "k8s_cluster"},
}


def planned(text: str, path: str = "hosts") -> dict[str, dict[str, str]]:
    assert IS_INVENTORY(text.encode())
    return {node.name: dict(node.labels) for node in of_inventory(path, text.encode()).planned}


@pytest.mark.parametrize("text", [YAML, INI, INI.replace("\n", "\r\n"), f"\ufeff{INI}"])
def test_nodes_and_their_labels(text: str) -> None:
    assert planned(text) == NODES


@pytest.mark.parametrize("text", [YAML, INI])
def test_names_before_version_2_16(text: str) -> None:
    old = text.replace("kube_control_plane", "kube-master").replace("kube_node", "kube-node")
    assert planned(old.replace("k8s_cluster", "k8s-cluster").replace("calico_rr", "calico-rr")) == {
        **NODES,
        "g1": {"of": "k8s-cluster"},
    }


def test_a_group_further_inside_counts_whatever_its_name() -> None:
    text = "[zone]\na\n[zone:vars]\nnode_labels={'of': 'zone'}\n[kube_node]\na\n[k8s_cluster:children]\nkube_node\n"
    assert planned(f"{text}[kube_node:vars]\nnode_labels={{'of': 'kube_node'}}\n") == {
        "a": {"of": "kube_node"}
    }


@pytest.mark.parametrize(
    ("pattern", "hosts"),
    [
        ("n[1:3]", ["n1", "n2", "n3"]),
        ("n[08:10].example.com", ["n08.example.com", "n09.example.com", "n10.example.com"]),
        ("r[a:b]-n[1:2]", ["ra-n1", "ra-n2", "rb-n1", "rb-n2"]),
    ],
)
def test_ranges_of_hosts(pattern: str, hosts: list[str]) -> None:
    assert list(planned(f"[kube_node]\n{pattern} ansible_user=x\n")) == hosts
    assert list(planned(f'all: {{children: {{kube_node: {{hosts: {{"{pattern}": }}}}}}}}\n')) == hosts


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("[kube_node]\nnode1 foo\n", ["2:1 IPC0007"]),
        ("[kube_node]\nnode1 a='x\n", ["2:1 IPC0007"]),
        ("[kube_node]\n{{ nodes }}\n", ["2:1 IPC0007"]),
        ("[kube_node]\nnode[1:10:2]\n", ["2:1 IPC0007"]),
        ("[kube_node]\nnode[9:1]\n", ["2:1 IPC0007"]),
        ("[kube_node]\nnode[1:999999999]\n", ["2:1 IPC0007"]),
        ("[kube_node:hostvars]\na\n", ["2:1 IPC0007"]),
        ("[kube_node]\na\n[kube_node:vars]\nnode_labels\n", ["4:1 IPC0007"]),
        ("[k8s_cluster:children]\nkube_node b=c\n", ["2:1 IPC0007"]),
        ("[k8s_cluster:children]\nkube_node\nkube_nodes\n[kube_node]\na\n", ["3:1 IPC0007"]),
        ("[k8s_cluster:children]\nkube_node\n[kube_node:children]\nk8s_cluster\n", ["2:1 IPC0007", "4:1 IPC0007"]),
        ("[etcd]\na\n[calico_rr]\nb\n[k8s_cluster:children]\ncalico_rr\netcd\n", ["0:0 IPC0831"]),
        ("all: 5\n", ["1:6 IPC0007"]),
        ("all:\n  hosts: [a]\n", ["2:10 IPC0007"]),
        ("all:\n  hosts: {a: [b]}\n", ["2:14 IPC0007"]),
        ("all:\n  children:\n    kube_node:\n      host: {a: }\n", ["4:14 IPC0007"]),
        ("all:\n  children: [kube_node]\n", ["2:13 IPC0007"]),
        ("all: &a\n  children: *a\n", ["2:13 IPC0004"]),
        ("kube_node:\n  hosts: {a: , a: }\n", ["2:16 IPC0003"]),
        ("all:\n  hosts: {{ x }}\n", ["2:11 IPC0007"]),
    ],
)  # fmt: skip
def test_what_ansible_would_not_read_is_refused_at_its_place(text: str, places: list[str]) -> None:
    with pytest.raises(Refused) as refused:
        planned(text)
    found = [(each.at, each.code) for each in refused.value.diagnostics]
    assert [f"{at.line}:{at.column} {code}" for at, code in found if isinstance(at, Span)] == places


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[kube_node]\na node_labels='{\"x\": \"{{ y }}\", \"rack\": \"a\"}'\n", ["hosts:2:1: warning[IPC0805] node_labels has x '{{ y }}', which is a template"]),
        ("[kube_node]\na\n[kube_node:vars]\nnode_labels={{ of_rack }}\n", ["hosts:4:1: warning[IPC0805] node_labels has '{{ of_rack }}', which is a template"]),
        ("kube_node:\n  hosts:\n    a: {node_labels: {rack: a, b: true, c: [d]}}\n", [
            "hosts:3:35: warning[IPC0805] node_labels has b 'True', which is not text",
            "hosts:3:44: warning[IPC0805] node_labels has c \"['d']\", which is not text",
        ]),
        ("kube_node:\n  hosts: {a: }\n  vars: {node_labels: rack=a}\n", ["hosts:3:23: warning[IPC0805] node_labels has 'rack=a', which is not text"]),
    ],
)  # fmt: skip
def test_labels_that_nodes_do_not_get_are_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    said: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clusters/lab").mkdir(parents=True)
    Path("clusters/lab/cluster.yaml").write_text(CLUSTER)
    Path("hosts").write_text(text)
    assert main(["import", "lab", "--machines", "hosts", "--format", "concise"]) == 0
    assert [line for line in capsys.readouterr().err.splitlines() if "IPC" in line] == said
    rack = (
        "{name: a, labels: {rack: a}, planned: true}"
        if "rack: a" in text or '"rack"' in text
        else "{name: a, planned: true}"
    )
    assert Path("clusters/lab/machines.yaml").read_text().endswith(f"- {rack}\n")


def test_beside_tables_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clusters/lab").mkdir(parents=True)
    Path("clusters/lab/cluster.yaml").write_text(CLUSTER)
    Path("hosts.ini").write_text(INI)
    Path("hosts.yaml").write_text(
        YAML.replace("node", "second").replace("kube_second", "kube_node").replace("g1", "g2")
    )
    Path("order.csv").write_text("name,rack\nw-1,c\n")
    files = ["order.csv", "hosts.ini", "hosts.yaml"]
    assert main(["import", "lab", "--machines", *files]) == 0
    assert "lab: 11 planned nodes added" in capsys.readouterr().err
    assert main(["compile", "lab"]) == 0
    before = Path("clusters/lab/machines.yaml").read_bytes()
    assert main(["import", "lab", "--machines", *files]) == 0
    assert "lab: 0 planned nodes added, 11 exist already" in capsys.readouterr().err
    assert Path("clusters/lab/machines.yaml").read_bytes() == before


def test_many_groups_that_share_groups_take_no_time() -> None:
    pairs = "".join(
        f"[a{n}:children]\na{n + 1}\nb{n + 1}\n[b{n}:children]\na{n + 1}\nb{n + 1}\n" for n in range(60)
    )
    text = f"[kube_node:children]\na0\nb0\n{pairs}[a60]\nx\n[b60]\ny\n"
    assert planned(text) == {"x": {}, "y": {}}


@pytest.mark.parametrize(
    "text",
    [
        '{\n    "apiVersion": "v1",\n    "items": [\n        {"kind": "Machine"}\n    ]\n}\n',
        "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Machine\nmetadata:\n  name: a\n",
        "w-1\nw-2\n",
    ],
)
def test_other_files_of_machines_are_no_inventories(text: str) -> None:
    assert not IS_INVENTORY(text.encode())
