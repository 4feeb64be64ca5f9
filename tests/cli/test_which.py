"""`ipamc which`: who holds an address, over the locks of several clusters; and what bad questions get."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ipamc.cli import main

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: multi-pool, pinning: none}
  ipFamilies: [IPv4, IPv6]
  excludedCIDRs: [172.16.0.0/12, 10.0.3.0/24]
"""
POOLS = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: default}
spec:
  ipv4: {cidrs: [10.0.0.0/24, 10.0.2.0/23], blockSize: 27}
  ipv6: {cidrs: ["fd00::/112"], blockSize: 120}
  reserved: [10.0.2.0/28, 10.0.3.0/24]
  pins: {later: [10.0.2.64/27]}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: old}
spec:
  ipv4: {cidrs: [10.0.8.0/24], blockSize: 27}
  disabled: true
"""
SEEN = """\
apiVersion: cilium.io/v2
kind: CiliumNode
metadata: {name: ghost}
spec: {ipam: {pools: {allocated: [{pool: default, cidrs: [10.0.2.96/27]}]}}}
"""
BLUE = """\
{"lock":1,"cluster":"blue","mode":"multi-pool","shards":1}
{"block":"10.0.0.0/27","pool":"default","node":"n1"}
{"block":"10.0.0.32/27","pool":"default","node":"n1","pending":true}
{"block":"10.0.0.64/27","pool":"default","node":"n2","quarantined":"2026-11-20"}
{"block":"10.0.0.96/27","pool":"default","node":"n2","quarantined":"2026-11-20","moved":true}
{"block":"10.0.0.128/27","pool":"default","node":"n3","released":true}
{"block":"10.0.0.160/27","pool":"default","node":"10.0.0.200"}
{"block":"fd00::/120","pool":"default","node":"n1"}
"""
RED = """\
{"lock":1,"cluster":"red","mode":"multi-pool","shards":1}
{"block":"10.0.0.0/26","pool":"default","node":"r1"}
"""


ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two clusters that use one range, and a third without a lock, as the working directory."""
    for name, lock in {"blue": BLUE, "red": RED, "new": ""}.items():
        folder = tmp_path / "clusters" / name
        folder.mkdir(parents=True)
        (folder / "cluster.yaml").write_text(CLUSTER.replace("NAME", name))
        if lock:
            (folder / "ipam.lock").write_text(lock)
    (tmp_path / "clusters/blue/ippools.yaml").write_text(POOLS)
    (tmp_path / "clusters/blue/seen.yaml").write_text(SEEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    return tmp_path


def which(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    """Return the exit code, the rows of the table without its frame, and what was said."""
    code = main(["which", *arguments])
    captured = capsys.readouterr()
    rows = [
        " ".join(line.replace("|", " ").split()) for line in captured.out.splitlines() if line.startswith("|")
    ]
    return code, rows[1:], captured.err


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["which", "10.0.0.7"]) == 0
    assert capsys.readouterr() == (
        """\
+---------+-------------+---------+------+-------+---------------------------+
| CLUSTER | BLOCK       | POOL    | NODE | STATE | WHERE                     |
+---------+-------------+---------+------+-------+---------------------------+
| blue    | 10.0.0.0/27 | default | n1   | held  | clusters/blue/ipam.lock:2 |
+---------+-------------+---------+------+-------+---------------------------+
| red     | 10.0.0.0/26 | default | r1   | held  | clusters/red/ipam.lock:2  |
+---------+-------------+---------+------+-------+---------------------------+
""",
        "",
    )


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ("10.0.0.40", ["blue 10.0.0.32/27 default n1 pending clusters/blue/ipam.lock:3"]),
        ("10.0.0.64", ["blue 10.0.0.64/27 default n2 quarantined 2026-11-20 clusters/blue/ipam.lock:4"]),
        (
            "10.0.0.96/28",
            ["blue 10.0.0.96/27 default n2 quarantined 2026-11-20, moved clusters/blue/ipam.lock:5"],
        ),
        ("fd00::7", ["blue fd00::/120 default n1 held clusters/blue/ipam.lock:8"]),
        ("FD00:0::/64", ["blue fd00::/120 default n1 held clusters/blue/ipam.lock:8"]),
        (
            "n1",
            [
                "blue 10.0.0.0/27 default n1 held clusters/blue/ipam.lock:2",
                "blue 10.0.0.32/27 default n1 pending clusters/blue/ipam.lock:3",
                "blue fd00::/120 default n1 held clusters/blue/ipam.lock:8",
            ],
        ),
    ],
)
def test_lines_of_one_cluster(asked: str, rows: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert which(capsys, asked, "blue") == (0, rows, "")


def test_several_at_once_and_each_that_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    both = [
        "blue 10.0.0.32/27 default n1 pending clusters/blue/ipam.lock:3",
        "blue fd00::/120 default n1 held clusters/blue/ipam.lock:8",
    ]
    assert which(capsys, "10.0.0.40,fd00::7,10.0.0.41", "blue") == (0, both, "")
    code, rows, said = which(capsys, "10.0.0.40,192.0.2.1,fd00::7,n9", "blue")
    assert (code, rows) == (1, both)
    assert "no node has 192.0.2.1" in said
    assert "has a line of n9" in said
    assert main(["which", "10.0.0.40,", "blue"]) == 64


def test_a_cidr_gives_every_line_over_it_released_ones_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, rows, said = which(capsys, "10.0.0.0/24")
    assert (code, said) == (0, "")
    assert [row.split()[1] for row in rows] == [
        *(f"10.0.0.{first}/27" for first in range(0, 192, 32)),
        "10.0.0.0/26",
    ]


def test_a_node_that_is_named_like_an_address_is_found_as_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert which(capsys, "10.0.0.200") == (
        0,
        ["blue 10.0.0.160/27 default 10.0.0.200 held clusters/blue/ipam.lock:7"],
        "",
    )
    assert which(capsys, "10.0.0.161")[:2] == (
        0,
        ["blue 10.0.0.160/27 default 10.0.0.200 held clusters/blue/ipam.lock:7"],
    )


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ("10.0.0.128", ["blue 10.0.0.128/27 default n3 released clusters/blue/ipam.lock:6"]),
        ("10.0.2.17", ["blue 10.0.2.17/32 default free clusters/blue/ippools.yaml:5"]),
        ("10.0.2.3", ["blue 10.0.2.0/28 default reserved clusters/blue/ippools.yaml:7"]),
        ("10.0.2.65", ["blue 10.0.2.64/27 default later pinned clusters/blue/ippools.yaml:8"]),
        (
            "10.0.2.97",
            [
                "blue 10.0.2.96/27 default ghost in use by a CiliumNode but not in the lock clusters/blue/seen.yaml:1"
            ],
        ),
        ("10.0.8.1", ["blue 10.0.8.1/32 old free, but the pool is disabled clusters/blue/ippools.yaml:14"]),
        ("172.20.0.1", ["blue 172.16.0.0/12 excluded clusters/blue/cluster.yaml:8"]),
        (
            "10.0.2.0/25",
            [
                "blue 10.0.2.0/25 default free clusters/blue/ippools.yaml:5",
                "blue 10.0.2.0/28 default reserved clusters/blue/ippools.yaml:7",
                "blue 10.0.2.64/27 default later pinned clusters/blue/ippools.yaml:8",
                "blue 10.0.2.96/27 default ghost in use by a CiliumNode but not in the lock clusters/blue/seen.yaml:1",
            ],
        ),
        (
            "10.0.2.96/28",
            [
                "blue 10.0.2.96/27 default ghost in use by a CiliumNode but not in the lock clusters/blue/seen.yaml:1"
            ],
        ),
        ("fd00::ff00", ["blue fd00::ff00/128 default free clusters/blue/ippools.yaml:6"]),
    ],
)
def test_what_nobody_holds_is_said_and_exits_1(
    asked: str, rows: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert which(capsys, asked, "blue") == (1, rows, f"no node has {asked}\n")


def test_what_is_in_no_pool(capsys: pytest.CaptureFixture[str], fleet: Path) -> None:
    for name in ("red", "new"):
        (fleet / f"clusters/{name}/ippools.yaml").write_text(POOLS)
    assert which(capsys, "8.8.8.8") == (1, [], "no node has 8.8.8.8, and no pool of 3 clusters has it\n")


def test_a_node_without_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert which(capsys, "n9") == (
        1,
        [],
        "no lock of 3 clusters has a line of n9; to see what it would get: ipamc why n9\n",
    )


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["which", "10.0.0.70", "--output", "json"]) == 0
    line = {
        "cluster": "blue",
        "block": "10.0.0.64/27",
        "pool": "default",
        "node": "n2",
        "state": "quarantined",
        "since": "2026-11-20",
    }
    line |= {"file": "clusters/blue/ipam.lock", "line": 4}  # type: ignore[dict-item]  # a number among texts
    assert json.loads(capsys.readouterr().out) == {
        "version": 1,
        "asked": "10.0.0.70",
        "held": True,
        "lines": [line],
        "vacant": [],
    }
    assert main(["which", "10.0.2.65", "blue", "--output", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["held"], found["lines"]) == (False, [])
    assert [(each["state"], each["node"], each["file"]) for each in found["vacant"]] == [
        ("pinned", "later", "clusters/blue/ippools.yaml")
    ]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("10.0.0.5/24", "'10.0.0.5/24' has host bits set; write 10.0.0.0/24 or 10.0.0.5"),
        ("fd00::1/64", "'fd00::1/64' has host bits set; write fd00::/64 or fd00::1"),
        ("::ffff:10.0.0.1", "'::ffff:10.0.0.1' is an IPv4-mapped IPv6 address; write 10.0.0.1"),
        ("::ffff:10.0.0.0/120", "'::ffff:10.0.0.0/120' is an IPv4-mapped IPv6 address; write 10.0.0.0/24"),
        ("010.0.0.1", "'010.0.0.1' is not an address; write 10.0.0.1"),
        ("10.0.0.256", "'10.0.0.256' is not an address"),
        ("10.0.0.0/33", "'10.0.0.0/33' needs a prefix length of 0 to 32"),
        ("fe80::1%eth0", "'fe80::1%eth0' has a zone"),
        ("fd00::g", "'fd00::g' is not an address"),
        ("n1/", "is not a CIDR"),
        (
            "Node_7",
            "'Node_7' is not an address, a CIDR or a node's name: it must contain only lower-case letters",
        ),
        ("", "'' is not an address, a CIDR"),
        ("n\x1b[31m", "a node's name"),
        ("n" * 300, "a node's name"),
    ],
)
def test_a_bad_question_is_a_usage_error(asked: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, rows, printed = which(capsys, "--", asked)
    assert (code, rows) == (64, [])
    assert said in " ".join(printed.split())


def test_an_unsound_lock_keeps_no_other_from_answering(
    capsys: pytest.CaptureFixture[str], fleet: Path
) -> None:
    (fleet / "clusters/blue/ipam.lock").write_text(
        BLUE.replace('{"block":"10.0.0.32', '<<<<<<< ours\n{"block":"10.0.0.32')
    )
    code, rows, said = which(capsys, "10.0.0.7")
    assert (code, rows) == (1, ["red 10.0.0.0/26 default r1 held clusters/red/ipam.lock:2"])
    assert "error[IPC0403]: line 3 is a conflict marker" in said


def test_an_unsound_lock_is_reported_once(capsys: pytest.CaptureFixture[str], fleet: Path) -> None:
    """It is read for its lines, and again with the pools when no line answers."""
    (fleet / "clusters/blue/ipam.lock").write_bytes(b"")
    assert main(["which", "10.0.3.1", "blue"]) == 1
    assert capsys.readouterr().err.count("IPC0402]") == 1


def test_a_copied_lock_is_nobodys(capsys: pytest.CaptureFixture[str], fleet: Path) -> None:
    (fleet / "clusters/new/ipam.lock").write_text(RED)
    code, rows, said = which(capsys, "10.0.0.7")
    assert code == 1
    assert [row.split()[0] for row in rows] == ["blue", "red"]
    assert (
        said
        == "error: clusters/new/ipam.lock belongs to cluster 'red', not to 'new': restore this cluster's, or delete the copied one\n"
    )


def test_pools_that_cannot_be_read_are_told(capsys: pytest.CaptureFixture[str], fleet: Path) -> None:
    (fleet / "clusters/new/cluster.yaml").write_text("kind: [")
    code, rows, said = which(capsys, "10.0.2.17", "blue", "new")
    assert (code, rows) == (1, ["blue 10.0.2.17/32 default free clusters/blue/ippools.yaml:5"])
    assert said.startswith("no node has 10.0.2.17\n")
    assert "clusters/new/cluster.yaml" in said


def test_where_a_line_answers_no_other_file_is_read(capsys: pytest.CaptureFixture[str], fleet: Path) -> None:
    for path in fleet.rglob("*.yaml"):
        path.write_text("kind: [")
    assert which(capsys, "10.0.0.40")[0] == 0


def test_why_a_name_that_is_none_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "Node_7"]) == 64
    assert "'Node_7' is not a node's name: it must contain only" in " ".join(capsys.readouterr().err.split())


def test_why_looks_into_every_cluster_that_knows_the_node(
    capsys: pytest.CaptureFixture[str], fleet: Path
) -> None:
    (fleet / "clusters/new/cluster.yaml").write_text("kind: [")  # which does not: it is not read any further
    assert main(["why", "n1"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("n1 of blue: leaving\n")
    assert captured.err == ""
    assert main(["why", "nobody", "red", "blue"]) == 1
    assert capsys.readouterr() == (
        "",
        "no node nobody in 2 clusters: not in an inventory, not in a lock, and not pinned\n",
    )


def test_why_tells_what_keeps_it_from_reading(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "r1"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "error[IPC0525]" in captured.err
    assert "none knows" not in captured.err


def test_why_for_programs(capsys: pytest.CaptureFixture[str], fleet: Path) -> None:
    nodes = "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes: [{name: n1}]\n"
    (fleet / "clusters/blue/nodes.yaml").write_text(nodes)
    assert main(["why", "n1", "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["version"], found["asked"]) == (1, "n1")
    (blue,) = found["clusters"]
    assert (blue["cluster"], blue["status"]) == ("blue", "pending")
    assert blue["node"] == {"file": "clusters/blue/nodes.yaml", "line": 3, "labels": {}}
    assert [(each["pool"], each["verdict"], each["file"], each["key"]) for each in blue["pools"]] == [
        ("default", "first", "clusters/blue/ippools.yaml", [0, 0, 0, 0, "default"]),
        ("old", "passed over", "clusters/blue/ippools.yaml", [0, 0, 0, 0, "old"]),
    ]
    assert [(each["block"], each["state"], each["line"]) for each in blue["blocks"]] == [
        ("10.0.0.0/27", "held", 2),
        ("10.0.0.32/27", "pending", 3),
        ("fd00::/120", "held", 8),
    ]


def test_the_reason_of_a_reservation(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pools = fleet / "clusters/blue/ippools.yaml"
    reserved = '[{cidr: 10.0.2.0/28, reason: "gateways \\e[31m"}, 10.0.3.0/24]'
    pools.write_text(POOLS.replace("[10.0.2.0/28, 10.0.3.0/24]", reserved))
    code, rows, _ = which(capsys, "10.0.2.3", "blue")
    assert code == 1
    assert r" reserved: gateways \x1b[31m " in rows[0]
    assert main(["which", "10.0.2.3", "blue", "--output", "json"]) == 1
    (vacant,) = json.loads(capsys.readouterr().out)["vacant"]
    assert (vacant["state"], vacant["reason"]) == ("reserved", "gateways \x1b[31m")


LONG = "ip-10-0-12-34.eu-west-1.compute.internal"


def test_host_names_of_a_cloud_fit_on_a_terminal(
    fleet: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lock = fleet / "clusters/blue/ipam.lock"
    lock.write_text(BLUE.replace('"n1"', f'"{LONG}"'))
    assert main(["which", LONG, "blue"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(
        f"10.0.0.0/27  held\n  cluster  blue\n  pool     default\n  node     {LONG}\n  where    clusters/blue/ipam.lock:2\n\n10.0.0.32/27  pending\n"
    )
    assert max(map(len, text.splitlines())) <= 80
    assert main(["which", "10.0.2.97", "blue"]) == 1
    assert "  node     ghost\n" in capsys.readouterr().out


def test_no_column_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["which", "172.16.0.0/12", "blue"]) == 1
    head = capsys.readouterr().out.splitlines()[1]
    assert "POOL" not in head
    assert "NODE" not in head


def test_a_disputed_node_is_named(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It shows another block than its line: git is asked what was there, and the cluster is right or not."""
    seen = SEEN.replace("ghost", "n3").replace("10.0.2.96", "10.0.2.128")
    (fleet / "clusters/blue/seen.yaml").write_text(seen)
    nodes = "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes: [{name: n1}, {name: n3}]\n"
    (fleet / "clusters/blue/nodes.yaml").write_text(nodes)
    cluster = (fleet / "clusters/blue/cluster.yaml").read_text()
    (fleet / "clusters/blue/cluster.yaml").write_text(cluster.replace("pinning: none", "pinning: node"))
    lock = BLUE.replace('"n3","released":true', '"n3"')
    (fleet / "clusters/blue/ipam.lock").write_text(lock)
    what = "blue: 1 node disputed: n3; for fixes: ipamc compile blue --check"
    assert what in which(capsys, "10.0.0.128")[2]
    assert what not in which(capsys, "10.0.0.1")[2]
    assert main(["show", "blue"]) == 0
    assert what in capsys.readouterr().err
