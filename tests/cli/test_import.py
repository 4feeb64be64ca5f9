"""`ipamc import` as a user runs it: files, stdin, zips of a sysdump, and what is no dump."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml

from tests.support import dumps
from tests.support.in_process import ipamc

OPERATOR = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "cilium-operator", "namespace": "kube-system"},
    "spec": {
        "template": {
            "spec": {
                "containers": [
                    {"image": "quay.io/cilium/operator-generic:v1.18.5", "args": ["--ipam=kubernetes"]}
                ]
            }
        }
    },
}
CONFIG = dumps.config_map(
    ipam="cluster-pool",
    enable_ipv4="true",
    enable_ipv6="false",
    cluster_pool_ipv4_cidr="10.0.0.0/16",
    cluster_pool_ipv4_mask_size="24",
)
CONFIG["metadata"]["annotations"] = {"meta.helm.sh/release-name": "cilium"}
OBJECTS = [
    dumps.node("n1", labels={"example.com/rack": "r1", "example.com/owner": "me"}),
    dumps.node("n2", labels={"example.com/rack": "r2"}),
    dumps.cilium_node("n1", "10.0.3.0/24"),
    dumps.cilium_node("n2", "10.0.1.0/24"),
    CONFIG,
    OPERATOR,
]
LOCK = """\
{"lock":1,"cluster":"lab","mode":"cluster-pool","shards":1}
{"block":"10.0.1.0/24","pool":"default","node":"n2"}
{"block":"10.0.3.0/24","pool":"default","node":"n1"}
"""


class Home:
    """A folder in which a user works, with a dump."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.dump("dump.json", *OBJECTS)

    def dump(self, name: str, *objects: dumps.Object) -> None:
        (self.folder / name).write_text(dumps.kubectl(*objects))

    def run(self, *arguments: str, code: int = 0) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_GLOBAL": os.devnull}
        done = ipamc(*arguments, cwd=self.folder, environment=environment, one_stream=True)
        assert done.returncode == code, done.stdout
        return done.stdout

    def git(self, *arguments: str, when: str = "2026-11-22T13:00:00Z") -> None:
        environment = {
            **os.environ,
            "GIT_COMMITTER_DATE": when,
            "GIT_AUTHOR_DATE": when,
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        name = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(
            ["git", *name, *arguments], cwd=self.folder, env=environment, check=True, capture_output=True
        )

    def file(self, name: str) -> str:
        return (self.folder / "clusters" / "lab" / name).read_text()

    def zip(self, name: str, members: Mapping[str, str]) -> None:
        with zipfile.ZipFile(self.folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, text in members.items():
                archive.writestr(member, text)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_running_cluster(home: Home) -> None:
    said = home.run("import", "lab", "dump.json")
    assert home.file("ipam.lock") == LOCK
    assert "2 blocks added (2 adopted), 0 returned, 0 left, 0 renumbered" in said
    assert home.file("cluster.yaml").splitlines()[4:] == [
        "spec:",
        '  cilium: {version: "1.18", managedBy: helm}',
        '  kubernetes: {version: "1.33"}',
        "  ipam: {mode: cluster-pool}",
        "  ipFamilies: [IPv4]",
        "  excludedCIDRs: []  # service range, node networks, other clusters: the dump does not show them",
    ]
    assert home.file("nodes.yaml").splitlines()[5:] == [
        "- {name: n1, uid: uid-n1, labels: {example.com/rack: r1}, maxPods: 110}",
        "- {name: n2, uid: uid-n2, labels: {example.com/rack: r2}, maxPods: 110}",
    ]
    assert "unchanged" in home.run("compile", "--check", code=0) or "up to date" in home.run(
        "compile", "--check"
    )
    assert (home.folder / "clusters" / ".schemas" / "cluster.schema.json").exists()


def test_a_second_import_changes_nothing(home: Home) -> None:
    home.run("import", "lab", "dump.json")
    before = {path: path.stat().st_mtime_ns for path in (home.folder / "clusters").rglob("*")}
    home.run("import", "lab", "dump.json")
    assert {path: path.stat().st_mtime_ns for path in (home.folder / "clusters").rglob("*")} == before


def test_files_of_people_stay(home: Home) -> None:
    home.run("import", "lab", "dump.json")
    path = home.folder / "clusters" / "lab" / "cluster.yaml"
    path.write_text(path.read_text() + "# mine\n")
    assert "IPC0824" in home.run("import", "lab", "dump.json", code=1)
    assert path.read_text().endswith("# mine\n")


def test_labels_that_a_person_wants(home: Home) -> None:
    home.run("import", "lab", "dump.json", "--label", "example.com/*")
    assert "labels: {example.com/owner: me, example.com/rack: r1}" in home.file("nodes.yaml")
    home.run("import", "lab", "--refresh", "dump.json")
    assert "labels: {example.com/owner: me, example.com/rack: r1}" in home.file("nodes.yaml")


def test_stdin(home: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ipamc", "import", "lab"],
        cwd=home.folder,
        input=dumps.kubectl(*OBJECTS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert home.file("ipam.lock") == LOCK


def test_several_files_and_yaml(home: Home) -> None:
    home.dump("nodes.json", *OBJECTS[:2])
    (home.folder / "rest.yaml").write_text(yaml.safe_dump_all(OBJECTS[2:]))
    home.run("import", "lab", "nodes.json", "rest.yaml")
    assert home.file("ipam.lock") == LOCK


def test_the_zip_of_a_sysdump(home: Home) -> None:
    top = "cilium-sysdump-20261122-120000"
    as_list = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}}
    home.zip(
        "sysdump.zip",
        {
            f"{top}/k8s-nodes-20261122.yaml": yaml.safe_dump({**as_list, "items": OBJECTS[:2]}),
            f"{top}/ciliumnodes-20261122.yaml": yaml.safe_dump(
                {"apiVersion": "cilium.io/v2", "kind": "CiliumNodeList", "items": OBJECTS[2:4]}
            ),
            f"{top}/cilium-configmap-20261122.yaml": yaml.safe_dump(CONFIG),
            f"{top}/cilium-operator-deployment-20261122.yaml": yaml.safe_dump(OPERATOR),
            f"{top}/logs-cilium-x.log": "level=info",
            f"{top}/k8s-events-20261122.yaml": "kind: EventList\n: broken: [\n",
        },
    )
    home.run("import", "lab", "sysdump.zip")
    assert home.file("ipam.lock") == LOCK


@pytest.mark.deep
def test_a_sysdump_whose_items_have_no_kind(home: Home) -> None:
    """cilium-cli prints typed lists: the kind is behind all items."""

    def typed(kind: str, items: list[dumps.Object]) -> str:
        bare = [
            {key: value for key, value in item.items() if key not in {"apiVersion", "kind"}} for item in items
        ]
        noise = [
            {**bare[0], "metadata": {**bare[0]["metadata"], "annotations": {"noise": "x" * (2 << 20)}}},
            *bare[1:],
        ]
        return yaml.safe_dump(
            {"apiVersion": items[0]["apiVersion"], "items": noise, "kind": f"{kind}List", "metadata": {}}
        )

    home.zip(
        "sysdump.zip",
        {
            "top/k8s-nodes-20261122.yaml": typed("Node", OBJECTS[:2]),
            "top/ciliumnodes-20261122.yaml": typed("CiliumNode", OBJECTS[2:4]),
            "top/cilium-config-configmap-20261122.yaml": yaml.safe_dump(CONFIG),
            "top/cilium-operator-deployment-20261122.yaml": yaml.safe_dump(OPERATOR),
            **{
                f"top/{kind.lower()}s-20261122.yaml": typed(
                    kind, [{"apiVersion": "cilium.io/v2", "metadata": {"name": "n1"}, "spec": {}}]
                )
                for kind in ("CiliumBGPClusterConfig", "CiliumBGPNodeConfig", "CiliumBGPNodeConfigOverride")
            },
        },
    )
    assert "IPC0835" not in home.run("import", "lab", "sysdump.zip")
    assert home.file("ipam.lock") == LOCK
    assert re.findall("kind: (.*)", home.file("bgp.yaml")) == [
        "CiliumBGPClusterConfig",
        "CiliumBGPNodeConfigOverride",
    ]


@pytest.mark.parametrize(
    "pack", [gzip.compress, lambda data: gzip.compress(data[:99]) + gzip.compress(data[99:])]
)
def test_a_gzip(home: Home, pack: Callable[[bytes], bytes]) -> None:
    for name, text in {
        "dump.json.gz": dumps.kubectl(*OBJECTS),
        "dump.yaml.gz": yaml.safe_dump_all(OBJECTS),
    }.items():
        (home.folder / name).write_bytes(pack(text.encode()))
        home.run("import", "lab", name)
        assert home.file("ipam.lock") == LOCK
    home.run("audit", "lab", "dump.json.gz")


def test_a_gzip_that_is_damaged(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipamc.workspace.dump.LARGEST_DUMP", 1 << 20)
    packed = gzip.compress(dumps.kubectl(*OBJECTS).encode())
    for data, said in {
        packed[: len(packed) // 2]: "dump.json.gz is a truncated gzip: make it again",
        packed[:20] + b"xxxx" + packed[24:]: "dump.json.gz is a damaged gzip",
        gzip.compress(b" " * (4 << 20)): "dump.json.gz unpacks to more than 1,048,576 bytes",
    }.items():
        (home.folder / "dump.json.gz").write_bytes(data)
        assert said in home.run("import", "lab", "dump.json.gz", code=1)
    assert not (home.folder / "clusters").exists()


def test_a_zip_of_a_dump(home: Home) -> None:
    """A zip of any JSON and YAML, also on one line, and with what Finder of macOS adds."""
    members = {
        "__MACOSX/._dump.json": "\0\5\26\7\0\2",
        "dump.json": json.dumps(json.loads(dumps.kubectl(*OBJECTS[:4]))),
        "notes.json": "[1, 2]",
        "rest of it.yaml": yaml.safe_dump_all(OBJECTS[4:]),
    }
    home.zip("dump.zip", members)
    home.run("import", "lab", "dump.zip")
    assert home.file("ipam.lock") == LOCK
    home.zip("empty.zip", {})
    assert "the dump has no Nodes: no objects" in home.run("import", "lab", "empty.zip", code=1)


def test_a_zip_has_every_kind_that_is_read(home: Home) -> None:
    """A Service's address in a zip is reserved: the zip is looked through for the kinds that the reader knows."""
    address = {"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": {"name": "10.0.9.9"}}
    home.zip(
        "dump.zip", {"dump.yaml": yaml.safe_dump_all(OBJECTS), "ipaddresses.yaml": yaml.safe_dump(address)}
    )
    home.run("import", "lab", "dump.zip")
    assert "{cidr: 10.0.9.9/32, reason: Services}" in home.file("ippools.yaml")


def test_packed_stdin(home: Home) -> None:
    data = dumps.kubectl(*OBJECTS).encode()
    home.zip("dump.zip", {"dump.json": data.decode()})
    for packed, code in ((gzip.compress(data), 0), ((home.folder / "dump.zip").read_bytes(), 1)):
        done = subprocess.run(
            [sys.executable, "-m", "ipamc", "import", "lab"],
            cwd=home.folder,
            input=packed,
            capture_output=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
    assert "<stdin> is a zip, which ipamc reads only from a file: name the file" in done.stderr.decode()
    assert home.file("ipam.lock") == LOCK


def test_a_zip_with_a_path_that_climbs(home: Home) -> None:
    for name in ("../../etc/cron.d/nodes.yaml", "/etc/nodes.yaml", "a/../../nodes.yaml", "..\\nodes.yaml"):
        home.zip("evil.zip", {name: yaml.safe_dump(OBJECTS[0])})
        assert "outside its own folder: it is not a sysdump" in home.run("import", "lab", "evil.zip", code=1)
    assert not (home.folder / "clusters").exists()


def test_a_bomb_in_a_zip(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipamc.workspace.dump.LARGEST_DUMP", 1 << 20)
    home.zip("bomb.zip", {"nodes.yaml": "kind: Node\n" + " " * (2 << 20)})
    assert "unpacks to more than 1,048,576 bytes" in home.run("import", "lab", "bomb.zip", code=1)


@pytest.mark.parametrize("kind", ["zip", "gz"])
def test_a_bomb_is_refused_before_it_takes_memory(home: Home, kind: str) -> None:
    """400 KB that unpack to 400 MB of blanks: a zip announces its sizes, those of a gzip are counted."""
    path, blanks = home.folder / f"bomb.{kind}", b" " * (100 << 20)
    archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) if kind == "zip" else None
    with (
        archive or nullcontext(),
        archive.open("a.json", "w") if archive else gzip.open(path, "wb", 1) as file,
    ):
        file.write(b'{"kind": "Node"')
        for _ in range(4):
            file.write(blanks)
    command = "import resource, runpy; resource.setrlimit(resource.RLIMIT_AS, (400 << 20,) * 2); runpy.run_module('ipamc', None, '__main__', True)"
    done = subprocess.run(
        [sys.executable, "-c", command, "import", "lab", path.name],
        cwd=home.folder,
        capture_output=True,
        check=False,
        text=True,
    )
    assert "unpacks to more than " in done.stderr
    assert done.returncode == 1


def test_a_zip_that_lies_about_its_sizes(home: Home) -> None:
    home.zip("lie.zip", {"nodes.yaml": "kind: Node\n" + "# x\n" * (1 << 20)})
    data = (home.folder / "lie.zip").read_bytes()
    size = ((1 << 22) + 11).to_bytes(4, "little")
    (home.folder / "lie.zip").write_bytes(data.replace(size, (5).to_bytes(4, "little")))
    said = home.run("import", "lab", "lie.zip", code=1)
    assert said.count("\n") < 8
    assert "Traceback" not in said


def test_a_damaged_zip(home: Home) -> None:
    home.zip("cut.zip", {"nodes.yaml": "kind: Node\n" * 1000})
    data = (home.folder / "cut.zip").read_bytes()
    (home.folder / "cut.zip").write_bytes(data[: len(data) // 2])
    assert "cut.zip is a damaged zip" in home.run("import", "lab", "cut.zip", code=1)


def test_two_nodes_with_one_block_are_a_decision(home: Home) -> None:
    objects = [*OBJECTS[:3], dumps.cilium_node("n2", "10.0.3.0/24"), *OBJECTS[4:]]
    home.dump("dump.json", *objects)
    said = home.run("import", "lab", "dump.json", code=1)
    assert "next: fix the errors" in said
    assert "clusters/lab/ciliumnodes.yaml:5" in said
    assert "clusters/lab/ciliumnodes.yaml:6" in said
    assert not (home.folder / "clusters" / "lab" / "ipam.lock").exists()
    # The operator gave the second node another block.
    home.dump("dump.json", *OBJECTS)
    home.run("import", "lab", "--refresh", "dump.json")
    home.run("compile", "lab")
    assert home.file("ipam.lock") == LOCK


def test_a_refresh_writes_the_inventory_alone(home: Home) -> None:
    home.run("import", "lab", "dump.json")
    lock = home.file("ipam.lock")
    home.dump("later.json", *OBJECTS, dumps.node("n3"), dumps.cilium_node("n3", "10.0.9.0/24"))
    said = home.run("import", "lab", "--refresh", "later.json")
    assert said == (
        "clusters/lab/ciliumnodes.yaml: written\nclusters/lab/nodes.yaml: written\n"
        "lab: 1 node joined (n3), 0 nodes left, 0 nodes changed\n"
        "next: ipamc compile lab; to see its changes first: ipamc plan lab\n"
    )
    assert home.file("ipam.lock") == lock
    assert "1 block added (1 adopted)" in home.run("compile", "lab")


def test_the_address_of_a_node_that_joins_is_no_block_of_a_pod(home: Home) -> None:
    """Its network lies in the pool: a node that is planned later gets the next block."""
    config = dumps.config_map(
        ipam="cluster-pool", cluster_pool_ipv4_cidr="10.0.0.0/16", cluster_pool_ipv4_mask_size="24"
    )
    before = [dumps.node("n0", ip="10.0.8.1"), dumps.cilium_node("n0", "10.0.0.0/24"), config, OPERATOR]
    later = [*before, dumps.node("n1", ip="10.0.2.9"), dumps.cilium_node("n1", "10.0.1.0/24")]
    home.dump("dump.json", *before)
    home.run("import", "lab", "dump.json")
    home.dump("dump.json", *later)
    home.run("import", "lab", "--refresh", "dump.json")
    assert "name: n1, uid: uid-n1, maxPods: 110, internalIPs: [10.0.2.9]}" in home.file("nodes.yaml")
    planned = home.folder / "clusters/lab/planned.yaml"
    planned.write_text(
        "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes: [{name: n2, planned: true}]\n"
    )
    home.run("compile", "lab")
    assert '{"block":"10.0.3.0/24","pool":"default","node":"n2"}' in home.file("ipam.lock")


def test_planned_nodes_stay_until_they_join(home: Home) -> None:
    home.run("import", "lab", "dump.json")
    path = home.folder / "clusters" / "lab" / "nodes.yaml"
    path.write_text(path.read_text() + "- {name: n0, labels: {a: b}, maxPods: 50, planned: true}\n")
    home.run("import", "lab", "--refresh", "dump.json")
    assert "- {name: n0, labels: {a: b}, maxPods: 50, planned: true}\n" in home.file("nodes.yaml")
    home.dump("later.json", *OBJECTS, dumps.node("n0"))
    home.run("import", "lab", "--refresh", "later.json")
    assert "planned" not in home.file("nodes.yaml").split("nodes:")[1]


def test_a_node_by_hand_that_is_not_planned_leaves_with_a_word(home: Home) -> None:
    home.run("import", "lab", "dump.json")
    path = home.folder / "clusters" / "lab" / "nodes.yaml"
    path.write_text(path.read_text() + "- {name: n0}\n- {name: n00, uid: of-n00}\n")
    said = home.run("import", "lab", "--refresh", "dump.json")
    assert "IPC0828" in said
    assert "1 node leaves the inventory (no uid in nodes.yaml, and not in the dump): n0" in said
    assert "n0" not in home.file("nodes.yaml").split("nodes:")[1]


def test_a_dump_that_is_older_than_the_inventory(home: Home) -> None:
    home.git("init", "-q")
    home.run("import", "lab", "dump.json")
    home.git("add", "clusters")
    home.git("commit", "-qm", "import", when="2026-11-22T12:05:00Z")
    assert "unchanged" in home.run("import", "lab", "--refresh", "dump.json")
    home.git("commit", "-qm", "nothing", "--allow-empty", when="2026-11-22T13:00:00Z")
    assert "unchanged" in home.run("import", "lab", "--refresh", "dump.json")
    (home.folder / "clusters" / "lab" / "nodes.yaml").write_text(home.file("nodes.yaml") + "\n")
    home.git("add", "clusters")
    home.git("commit", "-qm", "a newer inventory", when="2026-11-22T13:00:00Z")
    assert "IPC0822" in home.run("import", "lab", "--refresh", "dump.json", code=1)


@pytest.mark.parametrize(("planned", "code"), [("", 1), (", planned: true", 0)])
def test_a_dump_that_is_older_than_the_inventory_of_a_rack(home: Home, planned: str, code: int) -> None:
    """A rack whose nodes are all still to come tells nothing of what the cluster was."""
    home.git("init", "-q")
    home.run("import", "lab", "dump.json")
    home.git("add", "clusters")
    home.git("commit", "-qm", "import", when="2026-11-22T12:05:00Z")
    rack = f"apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n- {{name: n8, uid: u8{planned}}}\n"
    (home.folder / "clusters" / "lab" / "nodes-rack.yaml").write_text(rack)
    home.git("add", "clusters")
    home.git("commit", "-qm", "a rack", when="2026-11-22T13:00:00Z")
    assert ("IPC0822" in home.run("import", "lab", "--refresh", "dump.json", code=code)) is bool(code)
    assert home.file("nodes-rack.yaml") == rack


def test_mistakes_of_the_command_line(home: Home) -> None:
    assert "there is no file nothing.json" in home.run("import", "lab", "nothing.json", code=1).lower()
    assert "cannot name a cluster" in home.run("import", "Lab_2", "dump.json", code=64)
    assert "there is no cluster 'lab'" in home.run("import", "lab", "--refresh", "dump.json", code=64)
    assert "is not a minor such as 1.18" in home.run(
        "import", "lab", "dump.json", "--cilium-version", "x", code=64
    )
    assert "is a folder: name the files in it" in home.run("import", "lab", ".", code=1)
    assert "is named twice" in home.run("import", "lab", "dump.json", "dump.json", code=1)
    assert json.loads((home.folder / "dump.json").read_text())["kind"] == "List"


def test_a_node_that_waits_as_at_the_import_is_no_problem(home: Home) -> None:
    """A NotReady node without an agent; it is one when it runs, and so is a block that was there and is gone."""
    waiting = dumps.node("n3", ready=False)
    home.dump("dump.json", *OBJECTS, waiting)
    said = home.run("import", "lab", "dump.json")
    assert "note[IPC0818]: 1 node waits for a block: n3" in said
    home.git("init", "--quiet")
    home.git("add", ".")
    home.git("commit", "--quiet", "--message=x", when="2026-11-22T08:00:00Z")
    said = home.run("audit", "lab", "dump.json")
    assert "note[IPC0940]: pending: 1 CiliumNode not applied yet: CiliumNode n3" in said
    assert "found 0 problems" in said
    without_block = dumps.cilium_node("n3")
    home.dump("dump.json", *OBJECTS, waiting, without_block)
    said = home.run("audit", "lab", "dump.json")
    assert "note[IPC0922]: node n3 has no block yet, as at its import" in said
    assert "found 0 problems" in said
    home.dump("dump.json", *OBJECTS, dumps.node("n3"), without_block)
    assert "error[IPC0922]: node n3 has no IPv4 block" in home.run("audit", "lab", "dump.json", code=1)
    gone = [item for item in OBJECTS if item != dumps.cilium_node("n2", "10.0.1.0/24")]
    home.dump("dump.json", *gone, waiting)
    assert "error[IPC0943]: missing: 1 CiliumNode not in the dump: n2" in home.run(
        "audit", "lab", "dump.json", code=1
    )


def test_an_audit_after_an_import_calls_nothing_missing_that_nobody_applied(home: Home) -> None:
    """The CiliumNodeConfig of the pool is in git alone; the cluster has one of somebody else."""
    theirs = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNodeConfig",
        "metadata": {"name": "theirs", "namespace": "kube-system"},
        "spec": {"nodeSelector": {}, "defaults": {"ipam-default-ip-pool": "blue"}},
    }
    blocks = (
        dumps.cilium_node(f"n{number}", allocated={"blue": [f"10.0.{number}.0/24"]}) for number in (1, 2)
    )
    pool = dumps.pool("blue", mask=24, cidrs=["10.0.0.0/16"])
    config = dumps.config_map(ipam="multi-pool", enable_ipv4="true")
    home.dump("dump.json", dumps.node("n1"), dumps.node("n2"), *blocks, pool, config, theirs)
    home.run("import", "lab", "dump.json", "--cilium-version", "1.18")
    home.git("init", "--quiet")
    home.git("add", ".")
    home.git("commit", "--quiet", "--message=x", when="2026-11-22T08:00:00Z")
    said = home.run("audit", "lab", "dump.json", code=1)
    assert "note[IPC0940]: pending: 1 CiliumNodeConfig not applied yet" in said
    assert "IPC0943]" not in said


@pytest.mark.parametrize("mode", ["multi-pool", "crd", "cluster-pool"])
def test_an_audit_takes_no_address_of_eni_mode_for_a_block(home: Home, mode: str) -> None:
    """CiliumNodes of 1.20 have `pools.allocated` in ENI mode, too: `ipam` tells."""
    ips = ["172.31.0.4/32", "172.31.0.16/28"]
    seen = dumps.cilium_node("n1", allocated={"default": ips}, addresses=["172.31.0.4"])
    config = dumps.config_map(ipam="eni", enable_ipv4="true")
    home.dump("dump.json", dumps.node("n1", ip="172.31.0.9"), seen, config)
    assert "IPC0811" in home.run("import", "lab", "dump.json", code=1)
    said = home.run("import", "lab", "dump.json", "--mode", mode, "--cilium-version", "1.20")
    assert "ipamc proposes 10.0.0.0/16" in said
    assert "then run: ipamc compile lab" in said
    assert not (home.folder / "clusters" / "lab" / "ipam.lock").exists()
    home.run("compile", "lab")
    said = home.run("audit", "lab", "dump.json", code=1)
    assert "error[IPC0930]: cilium-config has ipam: eni" in said
    assert not [code for code in ("IPC0911", "IPC0912", "IPC0941", "IPC0943") if f"{code}]" in said]


def test_a_refresh_counts_nodes(home: Home) -> None:
    home.run("import", "lab", "dump.json")
    home.dump(
        "later.json",
        dumps.node("n2", labels={"example.com/rack": "r9"}),
        dumps.node("n4"),
        dumps.cilium_node("n2", "10.0.1.0/24"),
        CONFIG,
        OPERATOR,
    )
    said = home.run("import", "lab", "--refresh", "later.json")
    assert "lab: 1 node joined (n4), 1 node left (n1), 1 node changed (n2)\n" in said
    home.dump(
        "again.json",
        dumps.node("n2", labels={"example.com/rack": "r9"}),
        dumps.node("n4"),
        dumps.cilium_node("n2", "10.0.7.0/24"),
    )
    said = home.run("import", "lab", "--refresh", "again.json")
    assert "lab: 0 nodes joined, 0 nodes left, 1 node changed (n2)\nnext: ipamc compile lab" in said
    said = home.run("import", "lab", "--refresh", "again.json")
    assert said.endswith("lab: 0 nodes joined, 0 nodes left, 0 nodes changed\n")
