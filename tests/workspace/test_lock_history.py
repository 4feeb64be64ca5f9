"""The versions of a lock that git has."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ipamc.workspace.revision import lock_history, texts

FOLDER = "clusters/lab"
LOCK = f"{FOLDER}/ipam.lock"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    git("init", "--quiet", "--initial-branch=main")
    (tmp_path / FOLDER).mkdir(parents=True)
    return tmp_path


def git(*arguments: str, second: int = 0) -> None:
    """Run git. Commits are of this second."""
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a"}
    dates = {"GIT_COMMITTER_DATE": f"@{second} +0000", "GIT_COMMITTER_EMAIL": "a@b"}
    subprocess.run(["git", *arguments], check=True, env=os.environ | who | dates)


def commit(text: str, subject: str, second: int, path: str = LOCK) -> None:
    Path(path).write_text(text)
    git("add", "--all")
    git("commit", "--quiet", "--message", subject, second=second)


def seen() -> list[tuple[int, str, bytes]]:
    history = lock_history(FOLDER)
    return [(version.second, version.subject, text) for version, text in texts(history, history.versions)]


def test_the_commits_that_changed_the_lock(repository: Path) -> None:  # noqa: ARG001
    commit("one", "begin", 100)
    commit("else", "another file", 200, f"{FOLDER}/nodes.yaml")
    commit("two", "grow: more nodes\u2028:100644 x\n\nbody", 300)
    assert seen() == [(100, "begin", b"one"), (300, "grow: more nodes\u2028:100644 x", b"two")]


def test_what_a_branch_did_is_one_merge(repository: Path) -> None:  # noqa: ARG001
    commit("one", "begin", 100)
    git("switch", "--quiet", "--create", "side")
    commit("two", "step", 200)
    commit("three", "step", 300)
    git("switch", "--quiet", "main")
    git("merge", "--quiet", "--no-ff", "--message", "merge side", "side", second=400)
    assert seen() == [(100, "begin", b"one"), (400, "merge side", b"three")]


def test_no_version_where_the_lock_was_gone_or_a_link(repository: Path) -> None:
    commit("one", "begin", 100)
    git("rm", "--quiet", LOCK)
    git("commit", "--quiet", "--message", "gone", second=200)
    (repository / FOLDER).mkdir(parents=True)
    (repository / LOCK).symlink_to("/etc/passwd")
    git("add", "--all")
    git("commit", "--quiet", "--message", "link", second=300)
    (repository / LOCK).unlink()
    commit("two", "back", 400)
    assert seen() == [(100, "begin", b"one"), (400, "back", b"two")]


def test_configuration_of_the_user_changes_nothing(repository: Path) -> None:  # noqa: ARG001
    for key, value in {
        "log.follow": "true",
        "log.showSignature": "true",
        "log.showRoot": "false",
        "log.diffMerges": "off",
        "color.ui": "always",
        "diff.renames": "copies",
        "format.pretty": "oneline",
        "log.date": "raw",
    }.items():
        git("config", key, value)
    commit("one", "begin", 100)
    commit("two", "grow", 200)
    assert seen() == [(100, "begin", b"one"), (200, "grow", b"two")]


def test_nothing_is_committed_yet(repository: Path) -> None:
    assert lock_history(FOLDER).versions == ()
    (repository / LOCK).write_text("one")
    assert lock_history(FOLDER).versions == ()


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    history = lock_history(FOLDER)
    assert not history.top
    assert history.versions == ()


def test_a_shallow_clone_says_so(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit("one", "begin", 100)
    commit("two", "grow", 200)
    git("clone", "--quiet", "--depth=1", f"file://{repository}", "copy")
    monkeypatch.chdir(repository / "copy")
    history = lock_history(FOLDER)
    assert history.shallow
    assert [version.subject for version in history.versions] == ["grow"]


def written(subject: bytes, date: bytes, lock: bytes) -> None:
    """Commit a lock by an object that git writes as it is told: any date, any bytes."""
    Path(LOCK).write_bytes(lock)
    git("add", "--all")
    tree = _said("write-tree")
    parent = _said("rev-parse", "--quiet", "--verify", "HEAD")
    above = b"parent %s\n" % parent if parent else b""
    who = b"a <a@b> " + date
    text = b"tree %s\n%sauthor %s\ncommitter %s\n\n%s\n" % (tree, above, who, who, subject)
    name = _said("hash-object", "-t", "commit", "-w", "--literally", "--stdin", given=text)
    git("reset", "--quiet", "--hard", name.decode())


def _said(*arguments: str, given: bytes = b"") -> bytes:
    return subprocess.run(
        ["git", *arguments], input=given, stdout=subprocess.PIPE, check=False
    ).stdout.strip()


@pytest.mark.parametrize(
    "date", [b"", b"-5 +0000", b"9" * 5000 + b" +0000", b"99999999999999 +0000", b"1_0 +0000"]
)
def test_a_date_of_no_calendar_is_that_of_the_version_before(repository: Path, date: bytes) -> None:  # noqa: ARG001
    written(b"one", date, b"one")
    written(b"two", b"300 +0000", b"two")
    written(b"three", date, b"three")
    assert [second for second, _, _ in seen()] == [0, 300, 300]


def test_a_subject_is_short_text(repository: Path) -> None:  # noqa: ARG001
    written(b"\xff\xfe" + b"x" * 100_000, b"100 +0000", b"one")
    assert seen() == [(100, f"\ufffd\ufffd{'x' * 198}…", b"one")]


def test_a_lock_that_is_too_large_is_passed_over(
    repository: Path,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ipamc.workspace.revision.LARGEST_FILE", 1000)
    for second, text in enumerate(("one", "x" * 1001, "two")):
        commit(text, "c", second)
    assert [text for _, _, text in seen()] == [b"one", b"", b"two"]


def test_versions_beyond_a_budget_are_passed_over(repository: Path) -> None:  # noqa: ARG001
    for second in range(4):
        commit("x" * 100 + str(second), "c", second)
    history = lock_history(FOLDER)
    assert [len(text) for _, text in texts(history, history.versions, 250)] == [101, 101, 0, 0]
