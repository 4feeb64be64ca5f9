"""Reading the past: what a revision holds, without touching the work tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ipamc.workspace import git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in {"a/x.yaml": "x\n", "a/ä b.yaml": "ä", "a/deep/y.json": "", "ab/z.yaml": "z"}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "a/link.yaml").symlink_to("x.yaml")
    (tmp_path / "a/nothing.yaml").symlink_to("gone.yaml")
    (tmp_path / "a/out.yaml").symlink_to("/etc/hostname")
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], [*identity, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    (tmp_path / "a/x.yaml").write_text("not committed")
    return tmp_path


def test_files_of_a_revision(repository: Path) -> None:
    found = git.files(str(repository), "HEAD", "a")
    assert found == {
        "a/deep/y.json": b"",
        "a/link.yaml": b"x\n",
        "a/x.yaml": b"x\n",
        "a/ä b.yaml": "ä".encode(),
    }


def test_all_files(repository: Path) -> None:
    assert git.files(str(repository), "HEAD", "")["ab/z.yaml"] == b"z"


def test_no_files(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert git.files(str(repository), "HEAD", "nowhere") == {}
    assert git.files(str(repository), "nothing", "a") == {}
    assert git.files(str(tmp_path_factory.mktemp("elsewhere")), "HEAD", "") == {}


def test_folders_of_a_revision(repository: Path) -> None:
    assert git.folders(str(repository), "HEAD", "") == ["a", "ab"]
    assert git.folders(str(repository), "HEAD", "a") == ["deep"]
    assert git.folders(str(repository), "HEAD", "nowhere") == []
    assert git.folders(str(repository), "nothing", "") == []


def test_a_clone_may_be_shallow(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert not git.is_shallow(str(repository))
    subprocess.run(
        ["git", "-C", str(repository), "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qam", "two"],
        check=True,
    )
    clone = tmp_path_factory.mktemp("clone")
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{repository}", str(clone)], check=True)
    assert git.is_shallow(str(clone))
