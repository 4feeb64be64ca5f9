"""A repository that a stranger shaped: nothing in a branch runs a program or changes what a base says.

Every attack is played with the verbs that read git. The fixture has the cluster `zones`, committed twice: its
two nodes have swapped their blocks in the second commit, which a plan must refuse.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ipamc.cli import main
from tests.support import two_nodes

CLUSTER = two_nodes.CLUSTER.replace("NAME", "zones")
FOLDER = Path("clusters/zones")
LOCK = FOLDER / "ipam.lock"

READERS = (
    ("plan", "--base", "HEAD~1"),
    ("show", "--at", "HEAD~1"),
    ("why", "n1", "--at", "HEAD~1"),
    ("which", "n1", "--at", "HEAD~1"),
    ("lock", "--onto", "side"),
    ("ci", "matrix", "--output", "names", "--base", "HEAD~1"),
    ("ci", "merge", "side"),
)
"""Every verb that reads a commit."""


def git(*arguments: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    done = subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(message: str) -> None:
    git("add", "-A", "--force")
    git("commit", "-q", "--allow-empty", "-m", message)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the repository, the working directory: `main` has the swap; `side` has one node more."""
    for name, value in {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "SOURCE_DATE_EPOCH": "1795219200",
        "NO_COLOR": "1",
        "GIT_AUTHOR_NAME": "n",
        "GIT_AUTHOR_EMAIL": "e@x",
        "GIT_COMMITTER_NAME": "n",
        "GIT_COMMITTER_EMAIL": "e@x",
    }.items():
        monkeypatch.setenv(name, value)
    top = tmp_path / "repository"
    (top / FOLDER).mkdir(parents=True)
    monkeypatch.chdir(top)
    (FOLDER / "cluster.yaml").write_text(CLUSTER)
    git("init", "-q", "-b", "main")
    assert main(["compile"]) == 0
    commit("one")
    git("checkout", "-q", "-b", "side")
    (FOLDER / "cluster.yaml").write_text(CLUSTER.replace("{name: n2}", "{name: n2}, {name: n3}"))
    assert main(["compile"]) == 0
    commit("three nodes")
    git("checkout", "-q", "main")
    swapped = LOCK.read_text().replace('"n1"', '"x"').replace('"n2"', '"n1"').replace('"x"', '"n2"')
    LOCK.write_text(swapped)
    assert main(["compile"]) == 0
    commit("swapped")
    return top


def program(repository: Path) -> tuple[Path, Path]:
    """Write a program that leaves a witness; return it, and the witness."""
    witness, found = repository.parent / "witness", repository.parent / "program"
    found.write_text(f'#!/bin/sh\necho "$0 $*" >> {witness}\nexit 0\n')
    found.chmod(0o755)
    return found, witness


def is_refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> bool:
    capsys.readouterr()
    code = main(["plan", "--base", "HEAD~1", *arguments])
    return code == 1 and "2 held blocks changed hands" in capsys.readouterr().err


def bare(folder: Path, config: str) -> None:
    """Make a folder of a cluster look like a bare repository. Empty folders need a file to be committed."""
    for name in ("objects", "refs"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "keep").write_text("")
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(config)


@pytest.mark.parametrize("verb", READERS, ids=lambda verb: " ".join(verb[:2]))
def test_a_bare_repository_in_a_cluster_runs_nothing(repository: Path, verb: tuple[str, ...]) -> None:
    """Its configuration names programs for a fetch of missing objects, for a file system monitor, for a diff."""
    found, witness = program(repository)
    bare(
        FOLDER,
        f"[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tworktree = {repository}\n\tfsmonitor = {found}\n"
        f"\tsshCommand = {found}\n[extensions]\n\tpartialClone = origin\n"
        f'[remote "origin"]\n\turl = file://{repository}\n\tpromisor = true\n\tuploadpack = {found}\n'
        f"[diff]\n\texternal = {found}\n",
    )
    commit("bare")
    assert main([*verb]) in {0, 1}
    assert not witness.exists()


def test_a_bare_repository_in_a_cluster_is_no_base(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has a history of its own, in which nothing was swapped."""
    forged = repository.parent / "forged"
    git("clone", "-q", "--bare", ".", str(forged))
    git("--git-dir", str(forged), "update-ref", "refs/heads/base", "HEAD")
    for name in ("HEAD", "config", "objects", "refs", "packed-refs"):
        (shutil.copytree if (forged / name).is_dir() else shutil.copy)(forged / name, FOLDER / name)
    (FOLDER / "refs/keep").write_text("")
    (FOLDER / "objects/keep").write_text("")
    (FOLDER / "config").write_text(f"[core]\n\tbare = false\n\tworktree = {repository}\n")
    commit("forged")
    capsys.readouterr()
    assert main(["plan", "zones", "--base", "HEAD~2"]) == 1
    assert "2 held blocks changed hands" in capsys.readouterr().err
    assert main(["plan", "zones", "--base", "base"]) == 1
    assert "git knows no revision 'base' here" in capsys.readouterr().err


@pytest.mark.parametrize("verb", READERS, ids=lambda verb: " ".join(verb[:2]))
def test_programs_of_the_configuration_do_not_run(repository: Path, verb: tuple[str, ...]) -> None:
    """Hooks, filters, merge drivers, monitors, external diffs: no branch can set them, and no one is needed."""
    found, witness = program(repository)
    hooks = repository / ".git/hooks"
    for name in (
        "pre-commit",
        "pre-merge-commit",
        "post-merge",
        "post-checkout",
        "post-index-change",
        "commit-msg",
    ):
        shutil.copy(found, hooks / name)
    for key in (
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "diff.external",
        "diff.x.command",
        "diff.x.textconv",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.x.process",
        "merge.x.driver",
        "merge.ipamc.driver",
        "gpg.program",
    ):
        git("config", key, str(found))
    git("config", "commit.gpgSign", "false")
    Path(".git/info/attributes").write_text("* filter=x diff=x merge=x\n")
    witness.unlink(missing_ok=True)
    assert main([*verb]) in {0, 1}
    assert not witness.exists()


@pytest.mark.parametrize("linked", [False, True])
def test_a_hook_of_git_changes_no_path(
    repository: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    linked: bool,  # noqa: FBT001
) -> None:
    """In a hook, git sets GIT_DIR, and then the work tree is where git is called: every cluster looks new."""
    if linked:
        git("worktree", "add", "-q", "--detach", str(repository.parent / "linked"), "main")
        monkeypatch.chdir(repository.parent / "linked")
    monkeypatch.setenv("GIT_DIR", git("rev-parse", "--absolute-git-dir"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(repository / "no-index"))
    assert is_refused(capsys)


def test_a_path_with_the_working_directory_finds_no_git_there(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, witness = program(repository)
    shutil.copy(found, repository / "git")
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}:")
    assert is_refused(capsys)
    assert not witness.exists()


@pytest.mark.parametrize(
    ("base", "said"),
    [
        ("^HEAD", "error: git knows no revision '^HEAD' here"),
        ("HEAD~1..HEAD", "error: git knows no revision"),
        ("HEAD~1:clusters", "error: git knows no revision"),
        ("--all", "error: git knows no revision '--all' here"),
        ("", "error: the revision is empty: name one, or omit --base"),
        (" ", "error: the revision is empty: name one, or omit --base"),
    ],
)
@pytest.mark.usefixtures("repository")
def test_a_base_that_cannot_be_read_is_an_error(
    base: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["plan", "--base", base]) in {1, 64}
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


@pytest.mark.usefixtures("repository")
def test_a_tag_that_is_called_like_the_trunk_is_no_base(capsys: pytest.CaptureFixture[str]) -> None:
    """The tag comes before the branch of the remote: who may push tags would choose the base."""
    git("update-ref", "refs/remotes/origin/main", "HEAD~1")
    assert main(["plan", "--base", "origin/main"]) == 1
    git("tag", "origin/main", "HEAD")
    capsys.readouterr()
    assert main(["plan", "--base", "origin/main"]) == 1
    assert "'origin/main' is ambiguous here" in capsys.readouterr().err
    assert main(["plan", "--base", "refs/remotes/origin/main"]) == 1


@pytest.mark.usefixtures("repository")
def test_a_replaced_object_is_not_followed(capsys: pytest.CaptureFixture[str]) -> None:
    git("replace", "HEAD~1", "HEAD")
    assert is_refused(capsys)


def test_a_shallow_clone_says_so(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = repository.parent / "clone"
    git("clone", "-q", "--depth=1", f"file://{repository}", str(clone))
    monkeypatch.chdir(clone)
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD~1"]) == 1
    assert (
        "error: this clone is shallow and has no 'HEAD~1': git fetch --unshallow" in capsys.readouterr().err
    )


def test_without_git(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(repository.parent))
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD~1"]) == 1
    said = (
        f"error: {repository} is a git repository, and there is no git on the PATH to read it: install git\n"
    )
    assert capsys.readouterr().err == said
    assert main(["plan"]) == 0


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_another_user(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (repository, repository / ".git"):
        os.chown(path, 12345, 12345)
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD~1"]) == 1
    assert capsys.readouterr().err == (
        f"error: git does not trust the repository {repository}, because another user owns it:"
        f" git config --global --add safe.directory {repository}\n"
    )


def test_a_damaged_repository(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty `.git` is not a reason to look for a repository further up."""
    shutil.move(repository / ".git", repository.parent / ".git")
    (repository / ".git").mkdir()
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD~1"]) == 1
    assert (
        f"error: git cannot read the repository {repository}: not a git repository" in capsys.readouterr().err
    )


def test_a_base_behind_a_link_is_an_error(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A base in which clusters/ was a link has no clusters for git: all of them would look new."""
    git("mv", "clusters", "elsewhere")
    (repository / "clusters").symlink_to("elsewhere")
    commit("a link")
    (repository / "clusters").unlink()
    git("mv", "elsewhere", "clusters")
    commit("no link")
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD~1"]) == 1
    assert "clusters is a link, and no folder of clusters can be there" in capsys.readouterr().err
