"""What a message says to run is run, as it is printed, and the mistake is gone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SHELL = f'ipamc() {{ "{sys.executable}" -m ipamc "$@"; }}\n'

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
"""
POOLS = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: p}
spec:
  ipv4: {cidrs: [10.244.0.0/16], blockSize: 24}
"""
NODES = """\
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes:
- {name: n1, labels: {rack: a}}
- {name: n2, labels: {rack: a}}
"""


class Stand:
    """A repository with the cluster lab, and a shell in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lab = folder / "clusters/lab"
        self.lab.mkdir(parents=True)
        for name, text in {"cluster": CLUSTER, "ippools": POOLS, "nodes": NODES}.items():
            (self.lab / f"{name}.yaml").write_text(text)
        self.run("git init -q -b main && git config user.name a && git config user.email a@b.c")

    def run(self, command: str, code: int = 0) -> str:
        """Run a command as it is typed; return what it prints."""
        done = subprocess.run(
            ["bash", "-c", SHELL + command],
            cwd=self.folder,
            env={**os.environ, "SOURCE_DATE_EPOCH": "1795305600"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def commit(self) -> None:
        self.run("git add -A && git commit -qm x")

    def write(self, name: str, text: str) -> None:
        (self.lab / name).write_text(text)

    def change(self, name: str, old: str, new: str) -> None:
        text = (self.lab / name).read_text()
        assert old in text
        (self.lab / name).write_text(text.replace(old, new))


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path / "repository")


def found(pattern: str, text: str) -> str:
    """Return the part of a message that a person would type."""
    match = re.search(pattern, text)
    assert match, text
    return match[1]


@pytest.mark.parametrize(
    ("gone", "written"),
    [
        (("cluster",), {"cluster"}),
        (("cluster", "ippools"), {"cluster", "ippools"}),
        (("cluster", "nodes"), {"cluster", "nodes"}),
    ],
)
def test_no_cluster_beside_inputs(stand: Stand, gone: tuple[str, ...], written: set[str]) -> None:
    for name in gone:
        (stand.lab / f"{name}.yaml").unlink()
    was = {path: path.read_text() for path in stand.lab.iterdir()}
    command = found("help: run (ipamc init lab), which writes what is missing", stand.run("ipamc compile", 1))
    assert "next: " in stand.run(command)
    assert {path.stem for path in stand.lab.iterdir()} - {path.stem for path in was} == written
    assert all(path.read_text() == text for path, text in was.items())
    assert "lock written" in stand.run("ipamc compile lab")
    assert "has a Cluster, pools and nodes already, which stay as they are" in stand.run("ipamc init lab")


def test_no_cluster_beside_a_dump_and_a_lock_of_another_mode(stand: Stand) -> None:
    """Nodes of a dump are nodes, pools of IPv6 alone make a cluster of IPv6, and a lock knows its mode."""
    stand.change("cluster.yaml", "mode: cluster-pool}", "mode: multi-pool}\n  ipFamilies: [IPv6]")
    stand.change(
        "ippools.yaml",
        "ipv4: {cidrs: [10.244.0.0/16], blockSize: 24}",
        "ipv6: {cidrs: ['fd00::/104'], blockSize: 120}",
    )
    stand.change("ippools.yaml", "name: p", "name: default")
    stand.run("ipamc compile")
    lock = (stand.lab / "ipam.lock").read_bytes()
    (stand.lab / "cluster.yaml").unlink()
    (stand.lab / "nodes.yaml").unlink()
    stand.write(
        "dump.json",
        '{"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}}]}',
    )
    stand.run("ipamc init lab")
    assert "mode: multi-pool" in (stand.lab / "cluster.yaml").read_text()
    assert "ipFamilies: [IPv6]" in (stand.lab / "cluster.yaml").read_text()
    assert not (stand.lab / "nodes.yaml").exists()
    stand.run("ipamc compile lab")
    assert (stand.lab / "ipam.lock").read_bytes() == lock


def test_init_writes_no_cluster_over_another_file(stand: Stand) -> None:
    stand.write("cluster.yaml", POOLS.replace("name: p", "name: q").replace("10.244", "10.245"))
    stand.run("ipamc compile", 1)
    told = stand.run("ipamc init lab", 1)
    assert "clusters/lab/cluster.yaml is there, and has no Cluster: rename it" in told
    stand.run("mv clusters/lab/cluster.yaml clusters/lab/q.yaml")
    stand.run(found("(ipamc init lab) again", told))
    stand.run("ipamc compile")


@pytest.mark.parametrize(("within", "typed"), [("", "."), ("", "clusters"), ("..", "{name}"), ("..", "")])
def test_a_folder_that_holds_clusters(stand: Stand, within: str, typed: str) -> None:
    name = stand.folder.name
    stand.folder /= within
    told = stand.run(f"ipamc compile {typed.format(name=name)}", 64 if typed else 1)
    if typed:
        cluster = found("has clusters in it: name one of them: (.*)", told)
        assert "lock written" in stand.run(f"ipamc compile {cluster}")
    else:
        command = found(f"but in {name}/: (cd .*)", told)
        assert "lock written" in stand.run(f"{command} && ipamc compile")


def test_a_cluster_in_a_subfolder_of_its_folder_stays_one(stand: Stand) -> None:
    """File names carry no meaning, and folders below a cluster's do not either."""
    stand.run("mkdir clusters/lab/config && mv clusters/lab/*.yaml clusters/lab/config")
    assert "lock written" in stand.run("ipamc compile lab")
    assert "unchanged" in stand.run("ipamc compile clusters/lab")


@pytest.mark.parametrize("name", ["Lab_2", "lab-2", ""])
def test_a_folder_whose_name_no_cluster_can_have(stand: Stand, name: str) -> None:
    stand.run("mv clusters/lab clusters/Lab_2")
    stand.lab = stand.folder / "clusters/Lab_2"
    if name:
        stand.change("cluster.yaml", "name: lab", f"name: {name}")
    else:
        (stand.lab / "cluster.yaml").unlink()
    stand.commit()
    told = stand.run("ipamc compile", 1)
    assert "name: Lab_2\n =" not in told
    stand.run(found("help: (git mv clusters/Lab_2 clusters/lab-2)", told))
    stand.lab = stand.folder / "clusters/lab-2"
    if name:
        assert found("and write name: (.*)", told) == "lab-2"
        stand.change("cluster.yaml", f"name: {name}", "name: lab-2")
    else:
        stand.run(found("then run (ipamc init lab-2)", told))
    assert "lab-2: 2 nodes, 2 blocks added" in stand.run("ipamc compile")


def test_init_with_a_name_that_no_cluster_can_have(stand: Stand) -> None:
    stand.run(found("; run: (ipamc init .*)", stand.run("ipamc init Rack_B.1", 64)))
    assert (stand.folder / "clusters/rack-b.1/cluster.yaml").exists()


def test_a_cluster_in_a_folder_of_another_name(stand: Stand) -> None:
    stand.run("mv clusters/lab clusters/west")
    stand.lab = stand.folder / "clusters/west"
    stand.commit()
    command = found(
        "help: write name: west, or (git mv clusters/west clusters/lab)", stand.run("ipamc compile", 1)
    )
    assert "lab: 2 nodes" in stand.run(f"{command} && ipamc compile")


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("cidrs: [10.244.0.0/16]", "10.244.0.0"),
        ("cidrs: [10.244.0.0/16, 10.99.7.64/26]", "10.99.7.64"),
        ("reserved: [10.244.9.0/24]", "10.244.9.0"),
        ("pins: {n1: [10.244.3.0/24]}", "10.244.3.0"),
        ("excludedCIDRs: [10.96.0.0/16]", "10.96.0.0"),
        ("nativeRoutingCIDR: 10.0.0.0/8", "10.0.0.0"),
    ],
)
def test_a_cidr_without_its_length(stand: Stand, field: str, text: str) -> None:
    written = re.sub(f"{re.escape(text)}/[0-9]+", text, field)
    name = field.partition(":")[0]
    if name in {"reserved", "pins"}:
        stand.write("ippools.yaml", f"{POOLS}  {written}\n")
    elif name == "cidrs":
        stand.change("ippools.yaml", "cidrs: [10.244.0.0/16]", written)
    elif name == "excludedCIDRs":
        stand.write("cluster.yaml", f"{CLUSTER}  {written}\n")
    else:
        stand.change("cluster.yaml", "managedBy: helm", f"managedBy: helm, {written}")
    better = found("help: write ([0-9./]+)", stand.run("ipamc compile", 1))
    for path in stand.lab.iterdir():
        path.write_text(re.sub(f"{re.escape(text)}(?!/)", better, path.read_text()))
    assert "lock written" in stand.run("ipamc compile")


def test_a_pool_that_is_full_on_a_first_compile(stand: Stand) -> None:
    stand.change("ippools.yaml", "10.244.0.0/16], blockSize: 24", "10.244.0.0/24], blockSize: 25")
    stand.write("nodes.yaml", NODES + "".join(f"- {{name: n{number}}}\n" for number in range(3, 10)))
    told = stand.run("ipamc compile", 1)
    assert "pool p has no room for 7 nodes" in told
    assert "7 more are needed (896 addresses)" in told
    pools = (stand.lab / "ippools.yaml").read_text()
    size = found(r"smaller blocks \((blockSize: \d+)\)", told)
    stand.change("ippools.yaml", "blockSize: 25", size)
    assert "9 nodes, 9 blocks added" in stand.run("ipamc compile")
    (stand.lab / "ipam.lock").unlink()
    stand.run("rm -r clusters/lab/rendered")
    suggested = stand.run(found("(ipamc suggest pool lab --pool p --size 22) finds a free one", told))
    line = found("(cidrs: .*)", suggested)
    stand.write("ippools.yaml", re.sub(r"cidrs: \[[^]]*\]", line, pools))
    assert "9 nodes, 9 blocks added" in stand.run("ipamc compile")


def test_a_pool_that_is_nearly_full(stand: Stand) -> None:
    stand.change("ippools.yaml", "10.244.0.0/16", "10.244.0.0/23")
    told = stand.run("ipamc compile")
    assert "has 0 % of its IPv4 addresses free" in told
    suggested = stand.run(found("(ipamc suggest pool lab --pool p --size 23) finds a free one", told))
    stand.change("ippools.yaml", "cidrs: [10.244.0.0/23]", found("(cidrs: .*)", suggested))
    assert "IPC0215" not in stand.run("ipamc compile")


@pytest.mark.parametrize("dump", [False, True])
def test_the_same_nodes_in_two_files(stand: Stand, dump: bool) -> None:  # noqa: FBT001 - a parameter of the table
    names = [f"n{number}" for number in range(1, 2001)]
    stand.change("ippools.yaml", "blockSize: 24", "blockSize: 28")
    stand.write("nodes.yaml", "\n".join((NODES, *(f"- {{name: {name}}}" for name in names[2:]))))
    if dump:
        nodes = ", ".join(f'{{"metadata": {{"name": "{name}"}}}}' for name in names)
        stand.write("dump.json", f'{{"apiVersion": "v1", "kind": "NodeList", "items": [{nodes}]}}')
    else:
        stand.run("cp clusters/lab/nodes.yaml clusters/lab/copy.yaml")
    stand.commit()
    told = stand.run("ipamc compile", 1)
    assert "2,000 nodes are defined twice: n1, n2, n3, n4, n5 and 1,995 more" in told
    assert told.count("error[") == 1
    stand.run(found(": (git rm clusters/lab/nodes.yaml), or remove them from", told))
    assert "lab: 2000 nodes" in stand.run("ipamc compile").replace(",", "")


NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n3, uid: u-3}\n"


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("n3.txt", "n3.yaml"),
        ("n3", "n3.yaml"),
        ("n3.YAML", "n3.yaml"),
        ("n3.yml.bak", "n3.yml"),
        ("n3.yaml~", "n3.yaml"),
        ("n3.json.tmpl", "n3.json"),
        ("with space;.txt", "with space;.yaml"),
    ],
)
def test_a_node_in_a_file_of_another_name(stand: Stand, name: str, better: str) -> None:
    text = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n3"}}' if "json" in name else NODE
    stand.write(name, text)
    stand.commit()
    told = stand.run("ipamc compile")
    assert f"warning[IPC0108]: '{name}' has a Node, and is passed over" in told
    assert "lab: 2 nodes" in told
    stand.run(found("help: (git mv .*) if it counts", told))
    assert (stand.lab / better).exists()
    told = stand.run("ipamc compile")
    assert "lab: 3 nodes" in told
    assert "IPC0108" not in told


def test_what_is_beside_inputs_and_no_object_is_not_told_of(stand: Stand) -> None:
    stand.write("README.md", f"# lab\n\n```yaml\n{NODE}```\n")
    stand.write("notes.txt", "apiVersion and kind are to be looked at\nkind: Node\n")
    stand.write("values.tmpl", "apiVersion: apps/v1\nkind: Deployment\n")
    stand.write("make.sh", "#!/bin/sh\nkubectl get nodes\n")
    stand.write("empty", "")
    stand.write(".nodes.txt", NODE)
    stand.run(
        "mkfifo clusters/lab/pipe.txt && ln -s notes.txt clusters/lab/link && ln -s gone clusters/lab/other"
    )
    assert "IPC0108" not in stand.run("ipamc compile && ipamc compile --check")


def test_packed_files_and_links_of_other_names_are_told_of_and_not_read(stand: Stand) -> None:
    stand.write("n3.yaml", NODE)
    stand.run(
        "gzip clusters/lab/n3.yaml && echo secret > secret.yaml && ln -s ../../secret.yaml clusters/lab/more"
    )
    told = stand.run("ipamc compile")
    assert "'n3.yaml.gz' is packed, and is passed over" in told
    assert "'more' is a link to secret.yaml, and is passed over" in told
    assert "lab: 2 nodes" in told
    stand.run("gunzip clusters/lab/n3.yaml.gz && rm clusters/lab/more")
    assert "lab: 3 nodes" in stand.run("ipamc compile")
    stand.run("cp clusters/lab/nodes.yaml nodes.yaml && ln -sf ../../nodes.yaml clusters/lab/nodes.yaml")
    assert "'nodes.yaml' is a link that leaves the cluster's folder" in stand.run("ipamc compile", 1)


def test_a_copy_beside_its_original_is_to_be_removed(stand: Stand) -> None:
    stand.run("cp clusters/lab/nodes.yaml clusters/lab/nodes.yaml.orig")
    told = stand.run("ipamc compile")
    assert "'nodes.yaml.orig' has a NodeInventory, and is passed over" in told
    stand.run(found("; or remove it: (rm .*)", told))
    assert "IPC0108" not in stand.run("ipamc compile")
