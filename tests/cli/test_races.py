"""Somebody changes a cluster's folder while ipamc is at work in it: nothing that was read before is written after."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ipamc.pipeline
from ipamc.pipeline import Compilation, Inputs
from ipamc.workspace.locked_folder import LockedFolder
from tests.cli.test_cli import CLUSTER
from tests.support.in_process import ipamc as call

ROUNDS = int(os.environ.get("IPAMC_CHECKOUTS", "8"))
LAB = Path("clusters/lab")
LOCK = LAB / "ipam.lock"
FLAGS = LAB / "rendered/cilium/configmap.yaml"
ENVIRONMENT = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "SOURCE_DATE_EPOCH": "1795219200"}


def git(*words: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *identity, *words], check=True, capture_output=True, text=True, env=ENVIRONMENT
    ).stdout


def compiled(*words: str) -> tuple[int, str]:
    done = call("compile", *words, cwd=Path.cwd(), environment=ENVIRONMENT)
    return done.returncode, done.stderr


def inputs(prefix: str, nodes: int) -> str:
    listed = ", ".join(f"{{name: {prefix}{number:03}}}" for number in range(nodes))
    text = CLUSTER.replace("NAME", "lab").replace("{name: n1}, {name: n2}", listed)
    return text.replace("10.0.0.0/24", "10.0.0.0/16")


@pytest.fixture
def branches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Make a repository with branches `a` and `b`, each with compiled nodes and some that are not; `a` is checked out.

    Return the locks that each may have: the one that is committed, and the one that its compile writes.
    """
    monkeypatch.chdir(tmp_path)
    git("init", "-q", "-b", "a")
    LAB.mkdir(parents=True)
    git("commit", "-q", "--allow-empty", "-m", "begin")
    locks: dict[str, set[str]] = {}
    for name in ("b", "a"):
        git("checkout", "-q", "-B", name, "a")
        LAB.mkdir(parents=True, exist_ok=True)
        (LAB / "cluster.yaml").write_text(inputs(name, 100))
        assert compiled()[0] == 0
        committed = LOCK.read_text()
        (LAB / "cluster.yaml").write_text(inputs(name, 200))
        git("add", "-A")
        git("commit", "-q", "-m", name)
        assert compiled()[0] == 0
        locks[name] = {committed, LOCK.read_text()}
        git("reset", "-q", "--hard")
    return locks


def work_tree() -> dict[str, bytes | str]:
    """Return every file and the target of every link."""
    return {
        path.as_posix(): path.readlink().as_posix() if path.is_symlink() else path.read_bytes()
        for path in Path().rglob("*")
        if path.parts[0] != ".git" and (path.is_symlink() or path.is_file())
    }


def between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something after a run has read its inputs, and before it writes."""
    compile_cluster = ipamc.pipeline.compile_cluster

    def compile_then_act(given: Inputs) -> Compilation:
        result = compile_cluster(given)
        act()
        return result

    monkeypatch.setattr(ipamc.pipeline, "compile_cluster", compile_then_act)


def remove() -> None:
    shutil.rmtree(LAB)


def remove_rendered() -> None:
    shutil.rmtree(LAB / "rendered")


def move_and_copy() -> None:
    LAB.rename("away")
    shutil.copytree("away", LAB)


def link_elsewhere() -> None:
    LAB.rename("away")
    LAB.symlink_to("../away")


def link_lock() -> None:
    LOCK.rename("away")
    LOCK.symlink_to("../../away")


@pytest.mark.deep(part=3)
@pytest.mark.parametrize(
    ("act", "path"),
    [
        (lambda: git("checkout", "-q", "b"), LAB / "cluster.yaml"),
        (lambda: (LAB / "cluster.yaml").write_text(inputs("c", 200)), LAB / "cluster.yaml"),
        ((LAB / "cluster.yaml").unlink, LAB / "cluster.yaml"),
        ((LAB / "more.yaml").touch, LAB / "more.yaml"),
        (lambda: LOCK.write_text(LOCK.read_text()[:-1]), LOCK),
        (LOCK.unlink, LOCK),
        (link_lock, LOCK),
        (lambda: FLAGS.write_text(""), FLAGS),
        (FLAGS.unlink, FLAGS),
        (remove_rendered, LAB / "rendered"),
        (remove, LAB),
        (lambda: LAB.rename("away"), LAB),
        (move_and_copy, LAB),
        (link_elsewhere, LAB),
    ],
)
@pytest.mark.usefixtures("branches")
def test_a_change_between_reading_and_writing(
    act: Callable[[], object], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, bytes | str] = {}

    def change() -> None:
        act()
        found.update(work_tree())

    between(monkeypatch, change)
    assert compiled() == (1, f"error: lab changed while it was compiled: {path.as_posix()}; run it again\n")
    assert work_tree() == found


@pytest.mark.parametrize("words", [("--locked",), ("--check",)])
@pytest.mark.usefixtures("branches")
def test_a_folder_that_was_removed_stays_away(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where only the rendered files are written."""
    assert compiled()[0] == 0
    FLAGS.unlink()
    between(monkeypatch, remove)
    assert compiled(*words)[0] == 1
    assert not LAB.exists()


@pytest.mark.usefixtures("branches")
def test_the_lock_verb_compares_too(monkeypatch: pytest.MonkeyPatch) -> None:
    between(monkeypatch, lambda: git("checkout", "-q", "b"))
    done = call("lock", cwd=Path.cwd(), environment=ENVIRONMENT)
    assert done.returncode == 1
    assert git("status", "--porcelain") == ""


@pytest.mark.usefixtures("branches")
def test_a_checkout_after_the_lock_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock has its name already; what was rendered for it does not follow into the other branch."""
    move = LockedFolder.move

    def move_then_act(self: LockedFolder, name: str, path: str) -> None:
        move(self, name, path)
        if path == "ipam.lock":
            git("checkout", "-q", "--force", "b")

    monkeypatch.setattr(LockedFolder, "move", move_then_act)
    code, said = compiled()
    assert (code, said) == (1, f"error: lab changed while it was compiled: {LOCK}; run it again\n")
    assert git("status", "--porcelain") == ""


@pytest.mark.usefixtures("branches")
def test_a_file_that_is_only_touched_did_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def touch() -> None:
        for path in (LOCK, FLAGS, LAB / "cluster.yaml"):
            os.utime(path, (1, 1))

    between(monkeypatch, touch)
    assert compiled()[0] == 0


SWITCH = """
import pathlib, subprocess, time
branch = "b"
while not pathlib.Path(".git/stop").exists():
    # Without --force: once a compile has written, git stays on the branch, and what was written stays to be seen.
    subprocess.run(["git", "checkout", "-q", branch], stderr=subprocess.DEVNULL, check=False)
    branch = "a" if branch == "b" else "b"
    time.sleep(0.03)
"""


@pytest.mark.deep
def test_checkouts_in_a_loop(branches: dict[str, set[str]]) -> None:
    """For hours: IPAMC_CHECKOUTS=100000."""
    for _ in range(ROUNDS):
        git("checkout", "-q", "--force", "a")
        git("clean", "-fdq")
        Path(".git/stop").unlink(missing_ok=True)
        with subprocess.Popen([sys.executable, "-c", SWITCH]) as switching:
            command = [sys.executable, "-m", "ipamc", "compile"]
            code = subprocess.run(command, check=False, env=ENVIRONMENT, capture_output=True).returncode
            Path(".git/stop").touch()
            switching.wait()
        assert code in {0, 1}
        assert LOCK.read_text() in branches[git("rev-parse", "--abbrev-ref", "HEAD").strip()]
