"""Every verb works in every folder of a repository, as it does at the top."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ipamc.cli import main
from ipamc.workspace.clusters import clusters_folder
from tests.support.two_nodes import CLUSTER

ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "SOURCE_DATE_EPOCH": "1795219200", "NO_COLOR": "1"}


def git(*arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@example.org", *arguments], check=True)


def run(capfd: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    capfd.readouterr()
    assert main(words) == code, capfd.readouterr()
    return "".join(capfd.readouterr())


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with two compiled clusters, and a folder docs/ade; it is the working directory."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    top = tmp_path / "top"
    for name in ("lab", "west"):
        folder = top / "clusters" / name
        folder.mkdir(parents=True)
        (folder / "cluster.yaml").write_text(CLUSTER.replace("NAME", name))
    (top / "docs/ade").mkdir(parents=True)
    monkeypatch.chdir(top)
    git("init", "-q", "-b", "main")
    assert main(["compile"]) == 0
    git("add", "-A")
    git("commit", "-q", "-m", "two clusters")
    return top


PLACES = ("docs", "docs/ade", "clusters", "clusters/lab", "clusters/lab/rendered/cilium")
VERBS = (
    "compile --check",
    "compile lab --check",
    "lock --check west",
    "plan",
    "plan --base main",
    "plan west --base HEAD",
    "test lab",
    "show",
    "show lab --at HEAD",
    "which 10.0.0.7 lab --output json",
    "which n1 --at HEAD --output json",
    "report --write -",
    "export netbox lab",
    "why n1 lab",
)


@pytest.mark.deep
@pytest.mark.parametrize("place", PLACES)
def test_the_same_everywhere(
    place: str, top: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A name means a cluster of the repository, and no name all of them; paths are those from here."""
    expected = {verb: run(capfd, *verb.split()) for verb in VERBS}
    monkeypatch.chdir(top / place)
    way = clusters_folder()
    for verb in VERBS:
        found = run(capfd, *verb.split())
        if way != ".":
            assert found.replace(f"{way}/", "clusters/") == expected[verb], verb
        else:
            assert found.replace("clusters/", "") == expected[verb].replace("clusters/", ""), verb


def test_in_a_cluster_itself(
    top: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """No name means all clusters there, too; `.` is the one that we are in."""
    monkeypatch.chdir(top / "clusters/lab")
    assert run(capfd, "compile", "--check").splitlines()[0].startswith("lab: ")
    assert "west: " in run(capfd, "compile", "--check")
    assert "west: " not in run(capfd, "compile", ".", "--check")


def test_what_is_wrong_is_named_as_it_is_reached_from_here(
    top: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(top / "docs/ade")
    path = Path("../../clusters/lab/cluster.yaml")
    path.write_text(path.read_text().replace("blockSize: 27", "blockSize: 270"))
    assert "--> ../../clusters/lab/cluster.yaml:12:" in run(capfd, "compile", "lab", code=1)
    assert '"clusters/lab/cluster.yaml"' in run(capfd, "compile", "lab", "--format", "sarif", code=1)


def test_new_clusters_go_beside_the_others(
    top: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(top / "docs")
    run(capfd, "init", "new")
    assert (top / "clusters/new/cluster.yaml").exists()
    assert (top / "clusters/.schemas").is_dir()
    assert not (top / "docs/clusters").exists()


def test_in_a_worktree(top: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """`.git` is a file there; the clusters are those of the worktree, not of the repository beside it."""
    git("worktree", "add", "-q", "-b", "other", "../other")
    monkeypatch.chdir(top / "../other/clusters/lab/rendered")
    assert clusters_folder() == "../.."
    Path("../cluster.yaml").write_text(CLUSTER.replace("NAME", "lab").replace("n2", "n3"))
    assert run(capfd, "compile", "lab").startswith("lab: 2 nodes, 1 block added")
    assert '"n3"' not in (top / "clusters/lab/ipam.lock").read_text()


def test_a_repository_in_a_repository_is_not_left(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (top / "vendored").mkdir()
    monkeypatch.chdir(top / "vendored")
    assert clusters_folder() == "../clusters"
    git("init", "-q")
    assert clusters_folder() == "clusters"


def test_outside_of_git(
    tmp_path: Path, top: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A folder clusters/ that we are in; not one beside the folders above, which anybody may have made."""
    (top / ".git").rename(tmp_path / "away")
    monkeypatch.chdir(top / "clusters/lab")
    assert run(capfd, "compile", "west", "--check").startswith("west: ")
    monkeypatch.chdir(top / "docs")
    assert "there is no folder clusters/ here" in run(capfd, "compile", code=1)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder away")
def test_a_strangers_folder_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where everybody may write, somebody makes a .git and clusters/ above the folders of others."""
    for name in (".git", "clusters/lab", "mine"):
        (tmp_path / name).mkdir(parents=True)
    os.chown(tmp_path / "clusters", 12345, 12345)
    monkeypatch.chdir(tmp_path / "mine")
    assert clusters_folder() == "clusters"
    os.chown(tmp_path / "clusters", os.geteuid(), -1)
    assert clusters_folder() == "../clusters"


def test_pipelines_are_written_at_the_top(
    top: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The paths in them begin there."""
    monkeypatch.chdir(top / "docs")
    for words in (["flux", "lab"], ["rbac", "lab"], ["apply", "lab"], ["matrix", "--output", "names"]):
        assert f"run this at the top of the repository: cd {top}" in run(capfd, "ci", *words, code=1)
