"""`ipamc resize` on the command line: what it writes, prints and refuses. What it decides is in tests/cases/resize."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ipamc.cli import main
from tests.support import dumps

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: MODE}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: a}
spec:
  ipv4: {cidrs: [10.0.0.0/22], blockSize: 28}
  usage: {high: 85, low: 40, maxBlocks: 3}
---
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: [{name: n1, uid: uid-n1}, {name: n2, uid: uid-n2}]
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a folder with a compiled cluster of crd mode, as the working directory."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795262400")  # 2026-11-21
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "clusters/lab"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER.replace("MODE", "crd"))
    assert main(["compile"]) == 0
    capsys.readouterr()
    return tmp_path


def busy(count: int, **more: Any) -> str:
    """Return a dump in which n1 uses so many addresses of its first block."""
    used = [f"10.0.0.{number}" for number in range(1, count + 1)]
    return dumps.kubectl(
        dumps.node("n1", **more),
        dumps.node("n2", **more),
        dumps.cilium_node("n1", "10.0.0.0/28", used=used),
        dumps.cilium_node("n2", "10.0.0.16/28", used=["10.0.0.17"]),
    )


def texts(folder: Path) -> dict[str, str]:
    return {path.as_posix(): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_it_writes_lock_and_manifests_once(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lab / "dump.json").write_text(busy(13))
    before = texts(lab / "clusters")
    assert main(["resize", "lab", "dump.json", "--check"]) == 1
    assert texts(lab / "clusters") == before
    assert "out of date: ipam.lock, rendered/ciliumnodes/000/ciliumnodes.yaml" in capsys.readouterr().err
    assert main(["resize", "lab", "dump.json"]) == 0
    out, err = capsys.readouterr()
    assert "| n1   | a IPv4 |      1 |   13 |     14 | 92.9 % | 1 block more |" in out
    assert "n2" not in out
    assert "1 row more without a change: --all" in out
    assert (
        "1 block added (1 first fit), 0 returned, 0 left, 0 renumbered; lock written, 1 file written" in err
    )
    assert '{"block":"10.0.0.32/28","pool":"a","node":"n1"}' in (lab / "clusters/lab/ipam.lock").read_text()
    after = texts(lab / "clusters")
    for again in (["resize", "lab", "dump.json"], ["resize", "lab", "dump.json", "--check"]):
        assert main(again) == 0
        assert texts(lab / "clusters") == after
        assert "nothing to resize, nothing written" in capsys.readouterr().err
    assert main(["compile", "--locked", "--check"]) == 0


def test_a_run_that_was_ended_before_the_manifests_is_completed(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lock is written first: once it has the new blocks nothing is left to resize, but the manifests are."""
    (lab / "dump.json").write_text(busy(14))
    before = texts(lab / "clusters")
    assert main(["resize", "lab", "dump.json"]) == 0
    after = texts(lab / "clusters")
    for path in before:
        if "/rendered/" in path:
            Path(path).write_text(before[path])
    assert main(["resize", "lab", "dump.json", "--check"]) == 1
    assert main(["resize", "lab", "dump.json"]) == 0
    assert "1 file written" in capsys.readouterr().err
    assert texts(lab / "clusters") == after


def test_what_is_given_back_is_no_renumber(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan shows it as what it is, and a pipeline that fails on renumbers does not."""
    (lab / "grow.json").write_text(busy(13))
    (lab / "shrink.json").write_text(busy(3))
    assert main(["resize", "lab", "grow.json"]) == 0
    for command in ("init -q", "add .", "-c user.name=t -c user.email=t@t commit -qm grown"):
        subprocess.run(["git", *command.split()], check=True)
    capsys.readouterr()
    assert main(["resize", "lab", "shrink.json"]) == 0
    assert "0 renumbered" in capsys.readouterr().err
    now = (lab / "clusters/lab/ipam.lock").read_text()
    assert '"10.0.0.32/28","pool":"a","node":"n1","quarantined":"2026-11-21","moved":true' in now
    assert main(["plan", "--base", "HEAD", "--fail-on", "renumber,release,leave"]) == 0
    plan = capsys.readouterr().out
    assert "0 renumbered · +0 · −0 · 2 unchanged" in plan  # noqa: RUF001 - a minus is as wide as a plus
    assert "given back, in quarantine" in plan


def test_json_has_every_node(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lab / "dump.json").write_text(busy(13))
    assert main(["resize", "lab", "dump.json", "--output", "json", "--check"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["version"], document["cluster"]) == (1, "lab")
    assert document["sources"] == ["CiliumNodes (status.ipam.used)"]
    n1, n2 = document["nodes"]
    assert n1 == {
        "node": "n1",
        "pool": "a",
        "family": 4,
        "blocks": ["10.0.0.0/28"],
        "used": 13,
        "usable": 14,
        "percent": 92.9,
        "decision": "grows",
        "why": "",
        "grow": {"blocks": 1, "addresses": 0},
        "addresses": {},
        "reclaim": [],
        "blockSize": None,
    }
    assert (n2["node"], n2["decision"]) == ("n2", "kept")


def test_a_dump_may_come_from_a_pipe(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(busy(13).encode())))
    assert main(["resize", "lab", "-", "--check"]) == 1
    assert lab.exists()


@pytest.mark.parametrize(
    ("dump", "said"),
    [
        ("", "IPC0801"),
        (busy(13)[:-40], "IPC0801"),
        ('{"apiVersion": "v1", "kind": "List", "items": 3}', "IPC0804"),
        (busy(13).replace('"used": {', '"used": 7, "x": {'), "IPC0804"),
        (busy(13, heartbeat="2026-10-01T00:00:00Z"), "IPC0613"),
        (dumps.kubectl(dumps.node("n1"), dumps.cilium_node("n1", "10.0.0.0/28")), "IPC0610"),
        (dumps.kubectl(dumps.node("x1"), dumps.pod("p", "x1", "10.0.0.1")), "IPC0611"),
        (
            dumps.kubectl(dumps.cilium_node("n1", "10.0.9.0/28"), dumps.pod("p", "n1", "10.0.9.1")),
            "IPC0612",
        ),
    ],
)
def test_bad_dumps_are_said_and_write_nothing(
    lab: Path, capsys: pytest.CaptureFixture[str], dump: str, said: str
) -> None:
    (lab / "dump.json").write_text(dump)
    before = texts(lab / "clusters")
    assert main(["resize", "lab", "dump.json"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f"error[{said}]" in err
    assert "refused, nothing written" in err
    assert texts(lab / "clusters") == before


def test_findings_are_one_document(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lab / "dump.json").write_text(busy(13, heartbeat="2026-10-01T00:00:00Z"))
    assert main(["resize", "lab", "dump.json", "--format", "json", "--report", "sarif=out.sarif"]) == 1
    assert [each["code"] for each in json.loads(capsys.readouterr().err)["findings"]] == ["IPC0613"]
    assert json.loads((lab / "out.sarif").read_text())["runs"]


def test_usage_errors(lab: Path) -> None:
    assert main(["resize", "lab"]) == 64
    assert main(["resize", "nobody", "dump.json"]) == 64
    assert main(["resize", "lab", "missing.json"]) == 1
    assert lab.exists()


def test_where_the_operator_decides_nothing_is_written(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = lab / "clusters/pools"
    folder.mkdir()
    text = (
        CLUSTER.replace("MODE", "multi-pool")
        .replace("name: lab", "name: pools")
        .replace(", maxBlocks: 3", "")
    )
    (folder / "cluster.yaml").write_text(text)
    assert main(["compile", "pools"]) == 0
    (lab / "dump.json").write_text(
        dumps.kubectl(
            dumps.node("n1"),
            dumps.cilium_node("n1", allocated={"a": ["10.0.0.0/28", "10.0.0.32/28"]}),
            dumps.pod("p", "n1", "10.0.0.33"),
        )
    )
    before = texts(folder)
    assert main(["resize", "pools", "dump.json"]) == 0
    assert capsys.readouterr().out == "2 rows more without a change: --all\n"
    assert main(["resize", "pools", "dump.json", "--all"]) == 0
    out = capsys.readouterr().out
    assert "|      2 |    1 |     28 |  3.6 % | reported: Cilium's operator gives out its blocks" in out
    assert texts(folder) == before
