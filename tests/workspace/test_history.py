"""`--at REV|DATE`: the past as which, why and show tell it, from real repositories; and what is said where there is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

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
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: pods}
spec:
  ipv4: {cidrs: [10.0.0.0/24], blockSize: 27}
"""
DAYS = {
    "one": "2026-11-19T23:30:00+00:00",
    "two": "2026-11-20T12:00:00+00:00",
    "three": "2026-11-21T08:00:00+02:00",
}
"""When each commit was made."""


class Repository:
    """A git repository whose commits have known dates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, date: str = DAYS["three"]) -> str:
        environment = {
            **os.environ,
            "GIT_COMMITTER_DATE": date,
            "GIT_AUTHOR_DATE": "2000-01-01T00:00:00Z",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        command = [
            "git",
            "-C",
            str(self.folder),
            "-c",
            "user.name=n",
            "-c",
            "user.email=e@example.org",
            *arguments,
        ]
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()

    def cluster(self, name: str, *nodes: str) -> None:
        """Write a cluster whose nodes hold the first blocks, in this order."""
        folder = self.folder / "clusters" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cluster.yaml").write_text(CLUSTER.replace("NAME", name))
        items = ", ".join(f"{{name: {node}}}" for node in nodes)
        (folder / "nodes.yaml").write_text(
            f"apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes: [{items}]\n"
        )
        rows = [
            f'{{"block":"10.0.0.{index * 32}/27","pool":"pods","node":"{node}"}}'
            for index, node in enumerate(nodes)
        ]
        (folder / "ipam.lock").write_text(
            "\n".join([f'{{"lock":1,"cluster":"{name}","mode":"cluster-pool","shards":1}}', *rows, ""])
        )

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message, date=DAYS[message])
        return self.git("rev-parse", "HEAD")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three commits: blue alone; red beside it; blue's node replaced, and red gone. The work tree has a cluster that was never committed."""
    made = Repository(tmp_path_factory.mktemp("made"))
    made.cluster("blue", "n1")
    made.commit("one")
    made.cluster("red", "r1", "r2")
    made.commit("two")
    made.cluster("blue", "n2")
    made.git("rm", "-rq", "clusters/red")
    made.commit("three")
    made.cluster("green", "g1")
    return made.folder


@pytest.fixture(autouse=True)
def repository(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Return a repository of one's own, as copied from one that was made once; it is the working directory."""
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return Repository(tmp_path / "here")


def nodes(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[str], list[str]]:
    """Ask who holds the first address; give cluster/node of each answer, and the lines that were said."""
    main(["which", "10.0.0.1", "--output", "json", *arguments])
    captured = capsys.readouterr()
    return [
        f"{each['cluster']}/{each['node']}" for each in json.loads(captured.out)["lines"]
    ], captured.err.splitlines()


LATER = "green: not in {}, left out"


@pytest.mark.parametrize(
    ("at", "held"), [("HEAD", ["blue/n2"]), ("HEAD~1", ["blue/n1", "red/r1"]), ("main~2", ["blue/n1"])]
)
def test_a_revision(at: str, held: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert nodes(capsys, "--at", at) == (held, [LATER.format(at)])
    assert nodes(capsys) == (["blue/n2", "green/g1"], [])


@pytest.mark.parametrize(
    ("at", "found"),
    [
        ("2026-11-19", "one"),  # a day counts to its end
        ("2026-11-19T23:30", "one"),
        ("2026-11-20T11:59:59", "one"),
        ("2026-11-20 12:00", "two"),
        ("2026-11-20T12:59:59+01:00", "one"),
        ("2026-11-20T13:00+01:00", "two"),
        ("2026-11-20", "two"),
        ("2026-11-21T05:59:59Z", "two"),
        ("2026-11-21T06:00:00Z", "three"),
        ("2026-11-21", "three"),
        ("2100-01-01", "three"),
    ],
)
def test_a_date_is_utc_and_leads_to_the_last_commit_until_then(
    repository: Repository, at: str, found: str, capsys: pytest.CaptureFixture[str]
) -> None:
    held, said = nodes(capsys, "--at", at)
    assert held == {"one": ["blue/n1"], "two": ["blue/n1", "red/r1"], "three": ["blue/n2"]}[found]
    commit = repository.git("rev-parse", {"one": "HEAD~2", "two": "HEAD~1", "three": "HEAD"}[found])
    day = {"one": "2026-11-19 23:30:00", "two": "2026-11-20 12:00:00", "three": "2026-11-21 06:00:00"}[found]
    assert said == [f"{at}: commit {commit[:12]} of {day} UTC", LATER.format(commit[:12])]


def test_a_date_goes_by_first_parents_when_what_was_merged_later_was_not_there(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.git("checkout", "-q", "-b", "side", "HEAD~2")
    repository.cluster("blue", "side")
    repository.git("add", "clusters/blue")
    repository.git("commit", "-q", "-m", "side", date="2026-11-20T20:00:00Z")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "-s", "ours", "-m", "merged", "side", date="2026-11-23T00:00:00Z")
    assert nodes(capsys, "--at", "2026-11-20T21:00")[0] == ["blue/n1", "red/r1"]


def test_clusters_that_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert nodes(capsys, "red", "--at", "HEAD~1") == (["red/r1"], [])  # which is gone today
    assert nodes(capsys, "clusters/blue", "./clusters/green", "--at", "HEAD~1") == (
        ["blue/n1"],
        [LATER.format("HEAD~1")],
    )
    assert main(["which", "10.0.0.1", "yellow", "--at", "HEAD~1"]) == 64
    assert "there is no cluster 'yellow'" in capsys.readouterr().err


def test_from_within_the_repository(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository.folder / "clusters/blue")
    assert nodes(capsys, ".", "--at", "HEAD~1") == (["blue/n1"], [])


def test_places_are_what_git_understands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["which", "r2", "--at", "HEAD~1"]) == 0
    assert "  where    HEAD~1:clusters/red/ipam.lock:3\n" in capsys.readouterr().out
    assert main(["which", "10.0.0.200", "--at", "HEAD~2", "blue"]) == 1
    assert "  where    HEAD~2:clusters/blue/cluster.yaml:12\n" in capsys.readouterr().out


def test_programs_are_told_the_commit(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    commit = repository.git("rev-parse", "HEAD~1")
    for verb in (["which", "r1"], ["why", "r1"], ["show"]):
        assert main([*verb, "--at", "2026-11-20", "--output", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["at"] == {"revision": commit[:12], "commit": commit}


def test_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "n1", "blue", "--at", "HEAD~1"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("n1 of blue: held\n")
    assert "HEAD~1:clusters/blue/nodes.yaml:3\n" in printed
    assert main(["why", "n1", "blue"]) == 1


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--at", "HEAD~1"]) == 0
    captured = capsys.readouterr()
    assert [line for line in captured.out.splitlines() if ":" in line] == [
        "blue: 1 node with 1 block",
        "red: 2 nodes with 2 blocks",
    ]
    assert captured.err == "green: not in HEAD~1, left out\n"


@pytest.mark.parametrize("verb", [["which", "10.0.0.1"], ["why", "n1"], ["show"]])
@pytest.mark.parametrize(
    ("at", "code", "said"),
    [
        (
            "nonsense",
            1,
            "error: git does not know revision 'nonsense' here: fetch it, or check its name: git branch --all lists the branches (a date is written as 2026-11-21)\n",
        ),
        ("HEAD~9", 1, "error: git does not know revision 'HEAD~9' here"),
        ("--help", 1, "error: git does not know revision '--help' here"),
        ("HEAD:clusters", 1, "error: git does not know revision"),
        (
            "2026-11-18",
            1,
            "error: 2026-11-18 is before the first commit, which is from 2026-11-19 23:30:00 UTC: name a later date\n",
        ),
        (
            "2026-11-31",
            64,
            "--at 2026-11-31: there is no such date; write it as 2026-11-21 or 2026-11-21T09:30",
        ),
        ("2026-11-21T25:00", 64, "no such date"),
    ],
)
def test_what_git_cannot_tell(
    verb: list[str], at: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*verb, f"--at={at}"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


def test_a_shallow_clone_says_where_it_ends(
    repository: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    repository.git("clone", "-q", "--depth=1", f"file://{repository.folder}", str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    assert nodes(capsys, "--at", "2026-11-21")[0] == ["blue/n2"]
    assert main(["which", "10.0.0.1", "--at", "2026-11-20"]) == 1
    begins = "error: 2026-11-20 is before the history of this shallow clone, which begins at 2026-11-21 06:00:00 UTC: git fetch --unshallow\n"
    assert capsys.readouterr().err == begins
    assert main(["which", "10.0.0.1", "--at", "HEAD~1"]) == 1
    assert capsys.readouterr().err.endswith(
        "; this clone is shallow and may end before it: git fetch --unshallow\n"
    )


def test_outside_of_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert main(["show", "--at", "HEAD"]) == 1
    assert (
        capsys.readouterr().err
        == "error: this folder is not in a git repository: --at needs one, and git; omit --at for the disk, or start a repository: git init && git add --all && git commit --message start\n"
    )


def test_a_repository_without_commits_or_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Repository(tmp_path / "empty")
    monkeypatch.chdir(made.folder)
    assert main(["show", "--at", "2026-11-21"]) == 1
    assert capsys.readouterr().err == "error: nothing is committed here yet: --at needs a commit\n"
    (made.folder / "a").write_text("a")
    made.commit("one")
    assert main(["show", "--at", "HEAD"]) == 1
    assert (
        capsys.readouterr().err
        == "error: HEAD has no cluster below clusters/: name a later revision, or a cluster's folder\n"
    )


def test_a_cluster_of_another_repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = Repository(tmp_path / "there")
    other.cluster("blue", "b9")
    other.commit("one")
    folder = str(other.folder / "clusters/blue")
    assert nodes(capsys, folder, "--at", "HEAD") == (["blue/b9"], [])
    assert main(["which", "10.0.0.1", folder, "clusters/blue", "--at", "HEAD"]) == 1
    assert "clusters/blue is not in the git repository" in capsys.readouterr().err
