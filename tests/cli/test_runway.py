"""`ipamc forecast` on real repositories."""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ipamc.cli import main
from ipamc.model.cidr import Block
from ipamc.workspace.disk import assets

SCHEMA = json.loads(assets("schemas")["runway.output.json"])

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
  ipv4: {cidrs: [10.0.0.0/20], blockSize: 27}
  nodeSelector: rack == "a"
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-b}
spec:
  ipv4: {cidrs: [10.0.16.0/24], blockSize: 27}
  nodeSelector: rack == "b"
"""
TODAY = 1790000000  # 2026-09-21
WEEK = 7 * 86400
ROOT = Path(__file__).parents[2]


def git(*arguments: str, second: int = 0) -> str:
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a"}
    dates = {"GIT_COMMITTER_DATE": f"@{second} +0000", "GIT_COMMITTER_EMAIL": "a@b"}
    done = subprocess.run(
        ["git", *arguments], check=True, env=os.environ | who | dates, capture_output=True, text=True
    )
    return done.stdout.strip()


def compiled(racks: dict[str, int], second: int) -> None:
    """Compile the cluster with so many nodes of each rack, and commit everything."""
    nodes = [
        {"name": f"{rack}{number:03}", "labels": {"rack": rack}}
        for rack, count in racks.items()
        for number in range(count)
    ]
    document = {"apiVersion": "ipamc/v1alpha1", "kind": "NodeInventory", "nodes": nodes}
    Path("clusters/lab/nodes.yaml").write_text(yaml.safe_dump(document))
    assert main(["compile"]) == 0
    git("add", "--all")
    git("commit", "--quiet", "--message", "grow", second=second)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the history of `repository` once."""
    folder = tmp_path_factory.mktemp("runway") / "work"
    (folder / "clusters/lab").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", str(TODAY))
        patch.chdir(folder)
        make_history()
    return folder


@pytest.fixture
def repository(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Path:
    """Twenty weeks in which rack a grew by two nodes a week, and in the tenth by sixty more; rack b did not."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(TODAY))
    shutil.copytree(made, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    capsys.readouterr()
    return Path.cwd()


def make_history() -> None:
    git("init", "--quiet", "--initial-branch=main")
    Path("clusters/lab/cluster.yaml").write_text(CLUSTER)
    for week in range(20):
        compiled({"a": 3 + 2 * week + (60 if week > 9 else 0), "b": 4}, TODAY - WEEK * (19 - week))


COME = (2, 0, 1, 3, 0, 2, 1, 0, 4, 1, 2, 0, 0, 3, 1, 60, 2, 0, 1, 2, 0, 3, 1, 0, 2, 2, 0, 1, 3, 1)
"""How many nodes came to rack a in each week of the history on the page."""


def test_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What docs/forecast.md shows is printed, but for the names of commits."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(TODAY))
    folder = tmp_path / "clusters/lab"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    git("init", "--quiet", "--initial-branch=main")
    (folder / "cluster.yaml").write_text(CLUSTER)
    held = {"rack-a": 20, "rack-b": 3}
    for week, come in enumerate((0, *COME)):
        held["rack-a"] += come
        held["rack-b"] += week in {24, 29}
        lines = [
            f'{{"block":"{block}","pool":"{rack}","node":"{rack}-{number}"}}\n'
            for rack, third in (("rack-a", 0), ("rack-b", 16))
            for number in range(held[rack])
            for block in [Block(4, (10 << 24) + (third << 8) + 32 * number, 27)]
        ]
        header = '{"lock":1,"cluster":"lab","mode":"cluster-pool","shards":1}\n'
        (folder / "ipam.lock").write_text(header + "".join(lines))
        git("add", "--all")
        git(
            "commit",
            "--quiet",
            "--allow-empty",
            "--message",
            "grow",
            second=TODAY - WEEK * (len(COME) - week),
        )
    assert main(["forecast", "lab"]) == 0
    *shown, history = capsys.readouterr().out.splitlines(keepends=True)
    page = (ROOT / "docs/forecast.md").read_text()
    assert "".join(shown) in page
    assert re.sub("[0-9a-f]{12}", "…", history) in re.sub("[0-9a-f]{12}", "…", page)


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["forecast", "--output", "json", *arguments])
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    return code, found


def test_the_table(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001
    first, last = git("rev-list", "--max-parents=0", "HEAD"), git("rev-parse", "HEAD")
    assert main(["forecast"]) == 0
    assert capsys.readouterr() == (
        f"""\
lab: the growth of the last 19 weeks, from 2026-05-11 to 2026-09-21
+------------+----------+---------------+-------------+
| POOL       | ROOM FOR | BLOCKS A WEEK | LASTS       |
+------------+----------+---------------+-------------+
| rack-a /27 | 27 nodes | 2             | 13 weeks    |
| rack-b /27 |  4 nodes | 0             | not filling |
+------------+----------+---------------+-------------+
rack-a /27: +62 in the week to 2026-07-20 is 63 % of the growth: no trend
rack-a /27: fastest stretch, 2 a week: 27 / 2 = 13 weeks, until 2026-12-21
            middle stretch, 2 a week: 27 / 2 = 13 weeks, until 2026-12-21
            slowest stretch, 2 a week: 27 / 2 = 13 weeks, until 2026-12-21
            of 105 stretches of 5 to 18 weeks; 18 of 18 weeks had changes
rack-b /27: no change in 19 weeks
history: 20 commits among the first parents changed the lock, {first[:12]} to {last[:12]} (2026-09-21); 20 read, at most one a week
""",
        "",
    )


def test_json_has_the_points_and_the_method(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001
    code, found = asked(capsys, "lab")
    a, b = found["clusters"][0]["pools"]
    assert (code, found["version"], found["today"]) == (0, 1, "2026-09-21")
    assert a["lasts"] == {"soonest": 13, "middle": 13, "latest": 13, "reach": 36}
    assert a["growth"] == {"unit": "blocks of /27 a week", "slowest": 2.0, "middle": 2.0, "fastest": 2.0}
    assert a["method"] == {
        "name": "stretches",
        "weeks": 18,
        "changed": 18,
        "shortestStretch": 5,
        "stretches": 105,
        "jumps": [{"weekTo": "2026-07-20", "addresses": 62 * 32, "share": 0.6327}],
    }
    assert a["weeks"][:2] == [
        {"to": "2026-05-11", "addresses": 3 * 32, "own": 0, "moved": 0},
        {"to": "2026-05-18", "addresses": 5 * 32, "own": 2 * 32, "moved": 0},
    ]
    assert (a["verdict"], b["verdict"], len(b["weeks"])) == ("filling", "not filling", 20)
    shown = main(["show", "lab", "--output", "json"]), json.loads(capsys.readouterr().out)
    assert shown[1]["clusters"][0]["pools"][0]["blocks"]["free"] == a["room"]["blocks"]


def test_a_lock_that_is_not_committed_counts_for_the_room_alone(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = asked(capsys)[1]["clusters"][0]
    nodes = yaml.safe_load((repository / "clusters/lab/nodes.yaml").read_text())
    nodes["nodes"].append({"name": "z", "labels": {"rack": "b"}})
    (repository / "clusters/lab/nodes.yaml").write_text(yaml.safe_dump(nodes))
    assert main(["compile"]) == 0
    after = asked(capsys)[1]["clusters"][0]
    assert (before["history"]["uncommitted"], after["history"]["uncommitted"]) == (False, True)
    assert after["pools"][1]["room"]["nodes"] == before["pools"][1]["room"]["nodes"] - 1
    assert [pool["weeks"] for pool in after["pools"]] == [pool["weeks"] for pool in before["pools"]]


def test_a_shallow_clone_says_where_its_history_begins(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    git("clone", "--quiet", "--depth=5", f"file://{repository}", str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    assert main(["forecast"]) == 0
    out = capsys.readouterr().out
    assert "rack-a /27: unknown: the history has 4 weeks, but a forecast needs 12" in out
    assert "this clone is shallow and lacks older history: git fetch --unshallow" in out


@pytest.mark.parametrize("second", [0, 4102444800, 999_999_999_999])
def test_a_clock_that_was_wrong(repository: Path, capsys: pytest.CaptureFixture[str], second: int) -> None:  # noqa: ARG001
    """The last commit is of 1970, of 2100, or of a year that no calendar has: the others agree about the time."""
    compiled({"a": 103, "b": 4}, second)
    code, found = asked(capsys)
    a = found["clusters"][0]["pools"][0]
    assert (code, a["growth"]["middle"], len(a["weeks"])) == (0, 2.0, 20)
    assert main(["forecast"]) == 0


def test_without_a_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "clusters/lab"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert main(["forecast", "lab"]) == 0
        assert (
            "git has less than a week of history of its lock: no forecast of growth"
            in capsys.readouterr().out
        )
        git("init", "--quiet")


def test_days_pass_without_a_commit(
    repository: Path,  # noqa: ARG001
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What did not change until today did not grow: the history does not end with its last commit."""
    day = datetime.datetime.fromtimestamp(TODAY + 20 * WEEK, datetime.UTC).date().isoformat()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(TODAY + 20 * WEEK))
    a = asked(capsys)[1]["clusters"][0]["pools"][0]
    assert (a["weeks"][-1]["to"], a["growth"]["slowest"]) == (day, 0.0)


def test_what_it_would_have_said(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001
    """With --at the history ends with that commit, on its day, and the room is that of its lock."""
    code, then = asked(capsys, "--at", "HEAD~5")
    now = asked(capsys)[1]
    assert (code, then["today"], then["at"]["revision"]) == (0, "2026-08-17", "HEAD~5")
    before, after = (found["clusters"][0]["pools"][0] for found in (then, now))
    assert before["room"]["nodes"] == after["room"]["nodes"] + 10
    assert before["weeks"] == after["weeks"][:-5]
    assert then["clusters"][0]["history"]["uncommitted"] is False


def test_pools_are_chosen(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001
    assert [pool["pool"] for pool in asked(capsys, "--pool", "*-b")[1]["clusters"][0]["pools"]] == ["rack-b"]
    code = main(["forecast", "--pool", "rack-c"])
    assert (code, "no pool of 1 cluster is named rack-c" in capsys.readouterr().err) == (1, True)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--what-if", "+1", "--pool", "rack-b"], "--what-if takes no --pool"),
        (["--node", "a001"], "--node is not an option of ipamc forecast"),
        (["--output", "csv"], "'csv' is not a value of --output: use text or json"),
    ],
)
def test_usage(more: list[str], said: str, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001
    assert main(["forecast", *more]) == 64
    assert said in capsys.readouterr().err
