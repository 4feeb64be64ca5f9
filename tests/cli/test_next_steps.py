"""What a message says to run is run, as it is printed, and the mistake is gone."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.forking import serve

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
            ["bash", "-c", command],
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": f"{serve()}{os.pathsep}{os.environ['PATH']}",
                "SOURCE_DATE_EPOCH": "1795305600",
            },
            capture_output=True,
            text=True,
            timeout=120,
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
    command = found(
        "help: run (ipamc init lab), which writes only missing files", stand.run("ipamc compile", 1)
    )
    assert "next: " in stand.run(command)
    assert {path.stem for path in stand.lab.iterdir()} - {path.stem for path in was} == written
    assert all(path.read_text() == text for path, text in was.items())
    assert "lock written" in stand.run("ipamc compile lab")
    assert "has a Cluster, pools and nodes " in stand.run("ipamc init lab")


def test_a_node_under_a_new_name_keeps_its_block_by_the_printed_command(stand: Stand) -> None:
    stand.run("ipamc compile")
    block = found(r'("10[^"]+","pool":"p"),"node":"n1"', (stand.lab / "ipam.lock").read_text())
    stand.change("nodes.yaml", "name: n1", "name: n1.example.org")
    assert "under a new name" not in stand.run("ipamc compile")  # the lock is in no commit
    stand.run("rm -r clusters/lab/ipam.lock clusters/lab/rendered")
    stand.change("nodes.yaml", "name: n1.example.org", "name: n1")
    stand.run("ipamc compile")
    stand.commit()
    stand.change("nodes.yaml", "name: n1", "name: n1.example.org")
    said = stand.run("ipamc compile")
    stand.run(found(r"under a new name: (git checkout HEAD -- .*)", said))
    assert f'{block},"node":"n1.example.org"' in (stand.lab / "ipam.lock").read_text()
    assert "0 blocks added" in stand.run("ipamc compile")


@pytest.mark.parametrize("gone", ["cluster.yaml", "ipam.lock", "ipam.lock clusters/lab/rendered"])
def test_what_the_last_commit_has_is_taken_from_there(stand: Stand, gone: str) -> None:
    """Without it every node would be a newcomer."""
    stand.run("ipamc compile")
    lock = (stand.lab / "ipam.lock").read_text()
    stand.commit()
    stand.change("nodes.yaml", "{name: n1, labels: {rack: a}}", "{name: n9}")  # n2 would get its block
    stand.run(f"rm -r clusters/lab/{gone}")
    stand.run(found(r"(git checkout HEAD -- \S+\w)", stand.run("ipamc compile lab", 1)))
    assert "1 block added" in stand.run("ipamc compile lab")
    assert set(re.findall(".*n2.*", lock)) <= set((stand.lab / "ipam.lock").read_text().split("\n"))
    stand.run("git rm -r -q clusters/lab/ipam.lock clusters/lab/rendered -f")
    assert "2 blocks added" in stand.run("ipamc compile lab")


def test_a_cluster_whose_deletion_was_committed_comes_back(stand: Stand) -> None:
    stand.run("ipamc compile")
    stand.commit()
    (stand.lab / "cluster.yaml").unlink()
    stand.commit()
    stand.run(found(r"has one: (git checkout \S+~1 -- .*)", stand.run("ipamc compile lab", 1)))
    stand.run("ipamc compile --check")


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
    assert "clusters/lab/cluster.yaml exists without a Cluster: rename it" in told
    stand.run("mv clusters/lab/cluster.yaml clusters/lab/q.yaml")
    stand.run(found("(ipamc init lab) again", told))
    stand.run("ipamc compile")


@pytest.mark.parametrize(("within", "typed"), [("", "."), ("", "clusters"), ("..", "{name}"), ("..", "")])
def test_a_folder_that_holds_clusters(stand: Stand, within: str, typed: str) -> None:
    name = stand.folder.name
    stand.folder /= within
    told = stand.run(f"ipamc compile {typed.format(name=name)}", 64 if typed else 1)
    if typed:
        cluster = found("contains clusters; name one of them: (.*)", told)
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
    assert "name: Lab_2\n\n" not in told
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


@pytest.mark.deep(part=3)
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
    size = found(r"set (blockSize: \d+) for new nodes", told)
    stand.change("ippools.yaml", "blockSize: 25", size)
    assert "9 nodes, 9 blocks added" in stand.run("ipamc compile")
    (stand.lab / "ipam.lock").unlink()
    stand.run("rm -r clusters/lab/rendered")
    suggested = stand.run(found("(ipamc suggest pool lab --pool p --size 22)", told))
    line = found("(cidrs: .*)", suggested)
    stand.write("ippools.yaml", re.sub(r"cidrs: \[[^]]*\]", line, pools))
    assert "9 nodes, 9 blocks added" in stand.run("ipamc compile")


def test_a_pool_that_is_nearly_full(stand: Stand) -> None:
    stand.change("ippools.yaml", "10.244.0.0/16", "10.244.0.0/23")
    told = stand.run("ipamc compile")
    assert "has 0 % of its IPv4 addresses free" in told
    suggested = stand.run(found("(ipamc suggest pool lab --pool p --size 23)", told))
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
    stand.run(found(r"is the original: (rm clusters/lab/nodes.yaml) \(it has nothing else\)", told))
    assert "lab: 2000 nodes" in stand.run("ipamc compile").replace(",", "")


NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n3, uid: u-3}\n"


@pytest.mark.deep(part=3)
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
    assert f"warning[IPC0108]: '{name}' has a Node, but is ignored" in told
    assert "lab: 2 nodes" in told
    stand.run(found("help: to use it: (mv .*); else", told))
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
    assert "'n3.yaml.gz' is packed, but is ignored" in told
    assert "'more' is a link to secret.yaml, but is ignored" in told
    assert "lab: 2 nodes" in told
    stand.run("gunzip clusters/lab/n3.yaml.gz && rm clusters/lab/more")
    assert "lab: 3 nodes" in stand.run("ipamc compile")
    stand.run("cp clusters/lab/nodes.yaml nodes.yaml && ln -sf ../../nodes.yaml clusters/lab/nodes.yaml")
    assert "'nodes.yaml' is a link that leaves the cluster's folder" in stand.run("ipamc compile", 1)


def test_a_copy_beside_its_original_is_to_be_removed(stand: Stand) -> None:
    stand.run("cp clusters/lab/nodes.yaml clusters/lab/nodes.yaml.orig")
    told = stand.run("ipamc compile")
    assert "'nodes.yaml.orig' has a NodeInventory, but is ignored" in told
    stand.run(found("; or remove it: (rm .*)", told))
    assert "IPC0108" not in stand.run("ipamc compile")


GOOD = """\
apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1, uid: u-1, labels: {rack: a}}
- apiVersion: v1
  kind: Node
  metadata: {name: n2, uid: u-2, labels: {rack: a}}
kind: List
metadata: {resourceVersion: ''}
"""
GOOD_JSON = (
    '{"apiVersion": "v1", "kind": "List", "items": [\n'
    '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u-1"}},\n'
    '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2", "uid": "u-2"}}\n]}\n'
)
TABLE = "NAME   STATUS   ROLES    AGE   VERSION\nn1     Ready    <none>   10d   v1.30.1\n"
NOT_YAML = {
    "a table": (TABLE, "this is a table of kubectl, not its objects"),
    "a wide table": (
        "NAME   STATUS   ROLES   AGE   VERSION   INTERNAL-IP\nn1   Ready  <none>  1d  v1.30.1  10.0.0.1\n",
        "this is a table of kubectl, not its objects",
    ),
    "a table without its head": (TABLE.partition("\n")[2], "this is a table of kubectl, not its objects"),
    "names": ("node/n1\nnode/n2\n", "these are only names, as kubectl -o name prints them"),
    "described": (
        "Name:               n1\nRoles:              <none>\nAnnotations:        ttl: 0\n",
        "this is the output of kubectl describe, not objects",
    ),
    "not logged in": (
        "error: You must be logged in to the server (Unauthorized)\n",
        "this is an error of kubectl, not its objects",
    ),
    "forbidden": (
        'Error from server (Forbidden): nodes is forbidden: User "x" cannot list resource "nodes"\n',
        "this is an error of kubectl, not its objects",
    ),
    "no server": (
        "The connection to the server localhost:8080 was refused - did you specify the right host or port?\n",
        "this is an error of kubectl, not its objects",
    ),
    "nothing there": ("No resources found\n", "this is an error of kubectl, not its objects"),
    "a log line alone": (
        'E1122 12:00:00.000000   12345 memcache.go:265] couldn\'t get: Get "https://1.2.3.4:6443": timeout\n',
        "this is an error of kubectl, not its objects",
    ),
    "a warning before it": (
        "Warning: v1 ComponentStatus is deprecated in v1.19+\n" + GOOD,
        "this file begins with a message of kubectl",
    ),
    "a web page": ("<!DOCTYPE html>\n<html><body>Log in</body></html>\n", "this is a web page"),
    "cut off between items": (GOOD.partition("kind: List")[0], "the file ends inside items, after item 2"),
    "cut off in an item": (GOOD[:52], "the file ends inside items, after item 1"),
    "cut off in a bracket": (GOOD.partition("rack: a")[0], "the file ends inside a value"),
}


@pytest.fixture
def kubectl(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubectl that prints two nodes, in the format that is asked for."""
    folder = stand.folder / "bin"
    folder.mkdir()
    (folder / "good.yaml").write_text(GOOD)
    (folder / "good.json").write_text(GOOD_JSON)
    program = folder / "kubectl"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *"-o json"*) cat {folder}/good.json;; *) cat {folder}/good.yaml;; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.mark.deep
@pytest.mark.usefixtures("kubectl")
@pytest.mark.parametrize(("text", "message"), NOT_YAML.values(), ids=NOT_YAML)
@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_what_kubectl_did_not_print_as_yaml(stand: Stand, text: str, message: str, suffix: str) -> None:
    (stand.lab / "nodes.yaml").unlink()
    if "ends inside" in message and suffix == "json":
        text, message = GOOD_JSON[:150], "the file ends inside a value: it was cut off"
    stand.write(f"nodes.{suffix}", text)
    told = stand.run("ipamc compile", 1)
    assert message in told
    assert told.count("error[") == 1
    if message == "the file ends inside a value":
        return
    stand.run(found(f"(kubectl get nodes,ciliumnodes -o {suffix} > clusters/lab/nodes.{suffix})", told))
    assert "lab: 2 nodes, 2 blocks added" in stand.run("ipamc compile")


@pytest.mark.deep(part=3)
@pytest.mark.usefixtures("kubectl")
@pytest.mark.parametrize(("text", "message"), NOT_YAML.values(), ids=NOT_YAML)
def test_a_dump_that_is_none(stand: Stand, text: str, message: str) -> None:
    (stand.folder / "nodes.txt").write_text(text)
    told = stand.run(
        "ipamc import new --mode kubernetes --cilium-version 1.18 --managed-by helm nodes.txt", 1
    )
    assert message.partition(" items,")[0] in told
    assert told.count("error[") == 1
    assert re.search(r"--> nodes.txt:\d+:\d+", told)


def test_a_merge_that_was_not_finished(stand: Stand) -> None:
    stand.commit()
    stand.run("git switch -q -c other")
    stand.change("cluster.yaml", '"1.18"', '"1.17"')
    stand.change("nodes.yaml", "n2,", "n3,")
    stand.commit()
    stand.run("git switch -q main")
    stand.change("cluster.yaml", '"1.18"', '"1.19"')
    stand.change("nodes.yaml", "n2,", "n4,")
    stand.commit()
    stand.run("git merge -q other", 1)
    told = stand.run("ipamc compile", 1)
    assert told.count("error[IPC0001]") == 2
    assert "line 5 is a conflict marker of git" in told
    assert "--> clusters/lab/cluster.yaml:5:1" in told
    stand.run("sed -i '/^<<<<<<< /d; /^=======$/,/^>>>>>>> /d' clusters/lab/*.yaml")
    stand.run(" && ".join(re.findall("then run: (git add .*)", told)))
    assert "lab: 2 nodes" in stand.run("ipamc compile")
    stand.change("cluster.yaml", "spec:", "=======\nspec:")
    assert "line 4 is a conflict marker of git" in stand.run("ipamc compile", 1)


def test_a_dump_in_another_encoding_and_a_packed_one(stand: Stand) -> None:
    (stand.lab / "nodes.yaml").write_bytes(GOOD.encode("utf-16"))
    told = stand.run("ipamc compile", 1)
    assert "the file is UTF-16, as > in Windows PowerShell writes it" in told
    stand.run(found("(iconv .*); in PowerShell", told))
    assert "lab: 2 nodes" in stand.run("ipamc compile")
    (stand.lab / "nodes.yaml").write_bytes(GOOD.encode("utf-16-le"))
    assert "the file is UTF-16" in stand.run("ipamc compile", 1)
    stand.write("nodes.yaml", GOOD)
    stand.run("gzip clusters/lab/nodes.yaml && mv clusters/lab/nodes.yaml.gz clusters/lab/nodes.yaml")
    told = stand.run("ipamc compile", 1)
    assert "the file is compressed by gzip" in told
    stand.run(found("help: unpack it: (.*)", told))
    assert "lab: 2 nodes" in stand.run("ipamc compile")


@pytest.mark.parametrize(
    ("name", "old", "new", "column", "blanks"),
    [
        ("cluster.yaml", "  ipam:", "\tipam:", 1, "  "),
        ("ippools.yaml", "  ipv4:", "  \tipv4:", 3, ""),
        ("nodes.yaml", "- {name: n2", "-\t{name: n2", 2, " "),
        ("nodes.yaml", "- {name: n2", "\t- {name: n2", 1, ""),
        ("nodes.yaml", "- {name: n2, labels: {rack: a}}", "- name: n2\n\tlabels: {rack: a}", 1, "  "),
    ],
)
def test_a_tab(stand: Stand, name: str, old: str, new: str, column: int, blanks: str) -> None:
    stand.change(name, old, new)
    told = stand.run("ipamc compile", 1)
    assert "error[IPC0001]: a tab" in told
    assert re.search(f"{name}:\\d+:{column}\\n", told)
    assert "help: write spaces instead" in told
    path = stand.lab / name
    path.write_text(path.read_text().replace("\t", blanks))
    assert "lock written" in stand.run("ipamc compile")


@pytest.mark.deep
@pytest.mark.parametrize(
    "written",
    [
        "{rack: a}",
        "{matchLabels: {rack: a}, zone: z}",
        "{rack: [a, b]}",
        "{nodeSelectorTerms: [{matchLabels: {rack: a}}]}",
        "{matchLabels: [rack, a]}",
        "[rack, a]",
        "true",
        "5",
        "rack=a",
        "rack = a",
        "rack == a",
        "rack: a",
        "rack in (a, b)",
        "rack=a,zone!=y",
        "rack",
        '"!gpu"',
        "rack == 'a' and zone == z",
    ],
)
def test_a_selector_in_another_language(stand: Stand, written: str) -> None:
    stand.write("nodes.yaml", NODES.replace("{rack: a}", "{rack: a, zone: z}"))
    stand.write("ippools.yaml", f"{POOLS}  nodeSelector: {written}\n")
    told = stand.run("ipamc compile", 1)
    assert told.count("error[") == 1
    better = found("help: .*write (?:for example )?(.*)", told).partition(", or {")[0]
    if better.startswith("matchExpressions"):
        better = f"{{nodeSelectorTerms: [{{{better}}}]}}"
    elif better.startswith("matchLabels"):
        better = f"{{{better}}}"
    stand.write("ippools.yaml", f"{POOLS}  nodeSelector: {better.removeprefix('nodeSelector: ')}\n")
    assert "2 nodes, 2 blocks added" in stand.run("ipamc compile")


def test_what_to_run_after_a_renumber(stand: Stand) -> None:
    stand.run("ipamc compile")
    stand.commit()
    told = stand.run("ipamc lock lab --renumber n1,n2")
    assert "2 renumbered" in told
    assert "then for each of n1, n2:" in told
    assert "# Renumber 2 nodes of lab" in stand.run(found("(ipamc runbook lab) prints all steps", told))
    stand.run(found("to cancel: (ipamc lock lab --release NODE)", told).replace("NODE", "n2"))
    told = stand.run("ipamc lock lab --renumber n1")
    assert "1. kubectl --context=lab drain n1 " in told
    told = stand.run(found(r"2\. (ipamc lock lab --settle n1)", told))
    assert "1 renumbered" in told
    assert "ipamc runbook lab prints all steps" in told


def test_a_rack_is_renumbered_by_its_label(stand: Stand) -> None:
    """A plan names more nodes than a line has by a selector, and what it prints can be typed."""
    racks = "".join(f"- {{name: w-{i:02}, labels: {{rack: r{i % 2}, row: x}}}}\n" for i in range(48))
    stand.write("nodes.yaml", NODES.split("- ", maxsplit=1)[0] + racks)
    stand.run("ipamc compile")
    stand.commit()
    pool = POOLS.replace("name: p", "name: r1").replace("10.244", "10.245")
    spec = pool.replace("spec:", "spec:\n  priority: 5\n  nodeSelector: {matchLabels: {rack: r1}}")
    stand.write("ippools.yaml", f"{POOLS}---\n{spec}")
    stand.run("ipamc compile")
    said = stand.run("ipamc plan --output markdown")
    assert "**24 misplaced**" in said
    command = found(r"to move them: (ipamc lock lab --renumber \"[^\"]+\")", stand.run("ipamc plan"))
    assert command == "ipamc lock lab --renumber \"rack == 'r1'\""
    assert "24 renumbered" in stand.run(command)
    refused = stand.run("ipamc lock lab --renumber \"rack = 'r1'\"", 64)
    assert 'write rack == "r1"' in refused
    assert "has(rok) matches no block held by a node" in stand.run("ipamc lock lab --renumber 'has(rok)'", 1)


def test_what_to_run_is_for_the_nodes_that_were_named(stand: Stand) -> None:
    with (stand.lab / "nodes.yaml").open("a") as file:
        file.write("- {name: n3, planned: true}\n")
    stand.run("ipamc compile")
    stand.run("ipamc lock lab --renumber n1")
    said = stand.run("ipamc lock lab --renumber n2")
    assert "then for n2:" in said
    assert "n1" not in said
    said = stand.run("ipamc lock lab --renumber n3")
    assert "nothing to settle: n3 (10.244." in said
    assert "drain" not in said
    stand.run(found("next: (ipamc compile lab)", said))


@pytest.mark.parametrize("folder", ["clusters/lab", "else/lab"])
def test_what_to_run_after_a_check_that_failed(stand: Stand, folder: str) -> None:
    stand.run(f"mkdir -p else; mv clusters/lab {folder}" if folder != "clusters/lab" else "true")
    stand.run(f"ipamc compile {folder}")
    stand.commit()
    with (stand.folder / folder / "nodes.yaml").open("a") as file:
        file.write("- {name: n3, labels: {rack: a}}\n")
    told = stand.run(f"ipamc compile {folder} --check", 1)
    stand.run(found("next: (ipamc compile .*)", told))
    assert "up to date" in stand.run(f"ipamc compile {folder} --check")
    assert "rendered" in stand.run("git diff --cached --name-only")


def test_warnings_about_held_blocks_name_the_renumber(stand: Stand) -> None:
    stand.run("ipamc compile")
    other = POOLS.replace("name: p", "name: q").replace("10.244", "10.245")
    stand.write(
        "ippools.yaml", f'{POOLS}  nodeSelector: rack == "b"\n---\n{other}  nodeSelector: rack == "a"\n'
    )
    told = stand.run("ipamc compile")
    assert "IPC0304" in told
    assert "2 renumbered" in stand.run(
        found("to a pool that selects them: (ipamc lock lab --renumber n1,n2)", told)
    )
    stand.run("ipamc lock lab --settle n1,n2")
    assert "IPC0304" not in stand.run("ipamc compile")
    stand.change("ippools.yaml", "blockSize: 24", "blockSize: 26")
    told = stand.run("ipamc compile")
    assert "IPC0415" in told
    stand.run(found("to blocks of /26: (ipamc lock lab --renumber n1,n2)", told))
    stand.run("ipamc lock lab --settle n1 --settle n2")
    assert "IPC0415" not in stand.run("ipamc compile")


def test_nobody_is_told_to_disable_a_disabled_pool(stand: Stand) -> None:
    impossible = POOLS.replace("name: p", "name: q").replace("10.244", "10.245")
    impossible += '  nodeSelector: rack == "a" && rack == "b"\n'
    stand.write("ippools.yaml", f"{POOLS}---\n{impossible}")
    assert "IPC0214" in stand.run("ipamc compile")
    stand.write("ippools.yaml", f"{POOLS}---\n{impossible}  disabled: true\n")
    assert "IPC0214" not in stand.run("ipamc compile")


def test_nodes_that_are_patched_are_those_of_kube_controller_manager_too(stand: Stand) -> None:
    stand.write("nodes.yaml", GOOD)
    assert "IPC0504" not in stand.run("ipamc compile")
    stand.write("cluster.yaml", f"{CLUSTER}  patchNodes: annotations\n")
    assert "IPC0504" not in stand.run("ipamc compile")
    stand.write("cluster.yaml", f"{CLUSTER}  patchNodes: podCIDRs\n")
    told = stand.run("ipamc compile")
    assert "note[IPC0504]: kube-controller-manager must run with --allocate-node-cidrs=false" in told
    assert "--> clusters/lab/cluster.yaml:7:15" in told


def test_a_renumber_where_the_operator_decides_names_the_file_of_the_cilium_node(stand: Stand) -> None:
    stand.change("cluster.yaml", "mode: cluster-pool", "mode: multi-pool, pinning: none")
    stand.change("ippools.yaml", "name: p", "name: default")
    shown = "spec: {ipam: {pools: {allocated: [{pool: default, cidrs: [10.244.0.0/24]}]}}}\n"
    seen = f"apiVersion: cilium.io/v2\nkind: CiliumNode\nmetadata: {{name: n1}}\n{shown}"
    stand.write("ciliumnodes.yaml", seen)
    stand.run("ipamc compile")
    told = stand.run("ipamc lock lab --renumber n1")
    file, settle = re.findall(r"remove the CiliumNode from (\S+), then (ipamc lock lab --settle n1):", told)[
        0
    ]
    assert "IPC0435" in stand.run(settle, 1)
    stand.run(f"rm {file}")
    stand.run(settle)
