"""`Disk` and `Commit` answer alike, and read no more than they are asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from ipamc.cli import main
from ipamc.workspace import disk, git_tree
from ipamc.workspace.failure import EnvironmentFailure, Misnamed
from ipamc.workspace.revision import look_back
from ipamc.workspace.source import Commit, Disk, Source
from tests.support.two_nodes import CLUSTER

BLUE, RED = "clusters/blue", "clusters/red"


@pytest.fixture
def commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commit:
    """Commit two compiled clusters in a new repository, the working directory, and return the commit."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795219200")
    monkeypatch.chdir(tmp_path)
    for folder in (BLUE, RED):
        Path(folder).mkdir(parents=True)
        Path(folder, "cluster.yaml").write_text(CLUSTER.replace("NAME", Path(folder).name))
    assert main(["compile"]) == 0
    Path(BLUE, ".hidden.yaml").write_text("not an input")
    Path(BLUE, "notes.txt").write_text("not an input")
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "both"]):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@example.org", *arguments], check=True)
    return look_back("HEAD", [])


def below(folder: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {path.removeprefix(f"{folder}/"): data for path, data in files.items()}


def everything(source: Source, folder: str) -> tuple[object, ...]:
    inputs = source.inputs(folder)
    lock = source.lock(folder)
    assert (inputs.lock_path, inputs.lock) == (lock.path, lock.text)
    return (
        source.folders,
        source.has(folder),
        inputs.name,
        below(inputs.folder, inputs.sources),
        lock.text,
        inputs.rendered,
        inputs.published,
        source.rendered(folder),
    )


@pytest.mark.parametrize("folder", [BLUE, RED])
def test_a_commit_that_is_checked_out_is_read_as_the_disk(commit: Commit, folder: str) -> None:
    assert everything(commit, folder) == everything(Disk((BLUE, RED)), folder)


def test_a_rendered_tree_that_was_deleted_counts_as_committed(commit: Commit) -> None:
    """The cluster still runs with it: only a commit without it says that it was never applied."""
    shutil.rmtree(Path(BLUE, disk.RENDERED))
    found = Disk().inputs(BLUE)
    assert not found.rendered
    assert found.published == {path: commit.rendered(BLUE)[path] for path in found.published}
    assert set(found.published) >= {"cilium/configmap.yaml", "kustomization.yaml"}
    Path(BLUE, disk.LOCK).unlink()
    assert Disk().inputs(BLUE).published == {}


def test_a_commit_does_not_see_the_work_tree(commit: Commit) -> None:
    before = everything(commit, BLUE)
    Path(BLUE, "cluster.yaml").write_text("")
    Path(BLUE, disk.LOCK).unlink()
    assert everything(commit, BLUE) == before
    assert Disk().lock(BLUE).text is None


def test_a_cluster_that_a_commit_does_not_have(commit: Commit) -> None:
    Path("clusters/green").mkdir()
    assert Disk().has("clusters/green")
    assert not commit.has("clusters/green")
    assert commit.lock("clusters/green").text is None
    with pytest.raises(EnvironmentFailure, match="HEAD has no files of clusters/green"):
        commit.inputs("clusters/green")
    assert look_back("HEAD", ["green"]).notes == ("green: not in HEAD, left out",)
    with pytest.raises(Misnamed, match="there is no cluster 'white'"):
        look_back("HEAD", ["white"])


def test_locks_are_read_at_once_and_without_any_other_file(
    commit: Commit, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    blobs = git_tree.blobs

    def counted(folder: str, revision: str, paths: list[str]) -> dict[str, bytes]:
        asked.append(paths)
        return blobs(folder, revision, paths)

    monkeypatch.setattr(git_tree, "blobs", counted)
    monkeypatch.setattr(git_tree, "files", None)
    assert [bool(commit.lock(folder).text) for folder in commit.folders] == [True, True]
    assert asked == [[f"{folder}/{disk.LOCK}" for folder in (BLUE, RED)]]
    monkeypatch.setattr("ipamc.workspace.source.read_sources", None)
    assert Disk().lock(BLUE).text == commit.lock(BLUE).text
