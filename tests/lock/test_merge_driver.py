"""The merge driver that cannot do its work, through real git: the conflict shows both sides, whatever became of ipamc."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ipamc.cli.init import DRIVERS
from tests.lock.test_merge import lock
from tests.lock.test_merge_git import Repository
from tests.support.altered import install

LOCK = "clusters/lab/ipam.lock"
OURS, THEIRS = b'"node":"ours"', b'"node":"theirs"'
BEFORE = (
    "command -v ipamc >/dev/null && exec ipamc merge-driver %O %A %B %P; "
    "git merge-file -L ours -L base -L theirs %A %O %B; echo ipamc is not on the PATH, so this was merged as text: %P >&2; exit 1"
)
"""The driver that earlier versions set, in clones where nobody ran `ipamc init` again."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two branches, each with a newcomer at the same place of the lock, and drivers set."""
    folder = tmp_path_factory.mktemp("made")
    repository = Repository(folder)
    repository.git("init", "-q", "-b", "main")
    repository.ipamc("init")
    path = repository.folder / LOCK
    path.parent.mkdir(parents=True)
    for branch, start, text in (
        ("base", "main", "0/28 m"),
        ("two", "base", "0/28 m, 16/28 theirs"),
        ("one", "base", "0/28 m, 16/28 ours"),
    ):
        repository.git("checkout", "-q", "-b", branch, *([start] if branch != "base" else []))
        path.write_bytes(lock(text))
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", branch)
    return folder


@pytest.fixture
def repository(made: Path, tmp_path: Path) -> Repository:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return Repository(tmp_path)


def program(text: str) -> Callable[[Repository], None]:
    """Return what puts another `ipamc` on the PATH."""

    def put(repository: Repository) -> None:
        (repository.folder.parent / "bin/ipamc").write_text(text)

    return put


def absent(repository: Repository) -> None:
    folders = os.environ["PATH"].split(os.pathsep)
    repository.environment["PATH"] = os.pathsep.join(
        each for each in folders if not Path(each, "ipamc").exists()
    )


def altered(code: str) -> Callable[[Repository], None]:
    """Return what puts an ipamc on the PATH that runs this where the texts are merged."""

    def put(repository: Repository) -> None:
        installed = install(repository.folder.parent / "installed")
        merge = installed.folder / "ipamc/lock/merge.py"
        begin = "    try:\n        before = _read("
        text = merge.read_text()
        assert text.count(begin) == 1
        merge.write_text(text.replace(begin, f"    import os, signal\n    {code}\n{begin}"))
        program(f'#!/bin/sh\nexec {shlex.join(installed.command)} "$@"\n')(repository)
        repository.environment["PYTHONPATH"] = str(installed.folder)

    return put


NOT_STARTED = {
    "not on the PATH": absent,
    "no interpreter": program("#!/no/such/python\n"),
    "no package": program("#!/bin/sh\necho Traceback: no module named ipamc >&2; exit 1\n"),
    "killed at once": program("#!/bin/sh\nkill -9 $$\n"),
    "out of memory": program("#!/bin/sh\nexit 137\n"),
    "a bug": program("#!/bin/sh\nexit 70\n"),
    "usage": program("#!/bin/sh\nexit 64\n"),
}
BROKEN_OFF = {
    "a bug in the merge": altered("raise KeyError('x')"),
    "killed in the merge": altered("os.kill(os.getpid(), signal.SIGKILL)"),
    "no memory": altered("raise MemoryError"),
    "no space for the result": altered(
        "from ipamc.workspace import atomic_write; atomic_write.put = lambda *_: os.open('/dev/full/x', os.O_WRONLY)"
    ),
    "terminated": altered("os.kill(os.getpid(), signal.SIGTERM)"),
}


def stages(repository: Repository) -> list[bytes]:
    """Return ours and theirs of the lock as the index has them, and nothing where it is not unmerged."""
    listed = repository.git("ls-files", "--unmerged", LOCK).stdout.split("\n")[:-1]
    objects = {row.split()[2]: row.split()[1] for row in listed}
    return [
        repository.git("cat-file", "blob", objects[side]).stdout.encode() for side in "23" if side in objects
    ]


def check_conflict(repository: Repository, done: subprocess.CompletedProcess[str]) -> None:
    text = (repository.folder / LOCK).read_bytes()
    assert done.returncode != 0, done.stdout
    assert {OURS, THEIRS} == {name for name in (OURS, THEIRS) for side in stages(repository) if name in side}
    assert all(
        row in text for row in (b"<<<<<<< ours\n", b"\n=======\n", b"\n>>>>>>> theirs\n", OURS, THEIRS)
    )


COMMANDS = {
    "merge": [("checkout", "-q", "one"), ("merge", "two")],
    "rebase": [("checkout", "-q", "one"), ("rebase", "two")],
    "cherry-pick": [("checkout", "-q", "one"), ("cherry-pick", "two")],
    "stash pop": [
        ("checkout", "-q", "base"),
        ("checkout", "two", "--", LOCK),
        ("stash", "-q"),
        ("checkout", "-q", "one"),
        ("stash", "pop"),
    ],
}


@pytest.mark.deep
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("why", NOT_STARTED)
def test_a_driver_that_does_not_run(repository: Repository, why: str, command: str) -> None:
    NOT_STARTED[why](repository)
    *before, last = COMMANDS[command]
    for each in before:
        repository.git(*each)
    done = repository.git(*last, fine=False)
    check_conflict(repository, done)
    assert f"ipamc did not run, so this was merged as text: {LOCK}\n" in done.stdout + done.stderr


@pytest.mark.deep
@pytest.mark.parametrize("driver", [DRIVERS["merge.ipamc.driver"], BEFORE], ids=["now", "before"])
@pytest.mark.parametrize("why", BROKEN_OFF)
def test_a_driver_that_is_broken_off(repository: Repository, why: str, driver: str) -> None:
    """The marks are there before the merge begins, also in clones with the driver of earlier versions."""
    repository.git("config", "merge.ipamc.driver", driver)
    BROKEN_OFF[why](repository)
    repository.git("checkout", "-q", "one")
    done = repository.git("merge", "two", fine=False)
    check_conflict(repository, done)
    assert f"merged as text: {LOCK}\n" not in done.stdout + done.stderr


def test_init_replaces_the_driver_of_earlier_versions(repository: Repository) -> None:
    repository.git("config", "merge.ipamc.driver", BEFORE)
    assert "merge drivers set" in repository.ipamc("init").stderr
    assert repository.git("config", "merge.ipamc.driver").stdout == DRIVERS["merge.ipamc.driver"] + "\n"
    assert "git config: unchanged" in repository.ipamc("init").stderr


HOSTILE = {
    "marks already": b"<<<<<<< ours\n" + lock("16/28 x") + b"=======\n" + lock("16/28 theirs") + b">>>>>>> theirs\n",
    "not UTF-8": lock("16/28 theirs").replace(b'"lab"', b'"l\xffb"'),
    "NUL": lock("16/28 theirs") + b"\0\n",
    "empty": b"",
    "cut off": lock("16/28 theirs")[:-1],
    "carriage returns": lock("16/28 theirs").replace(b"p", b"\r"),
    "large": lock("16/28 theirs") + b"x" * 30_000_000 + b"\n",
    "deep": b'{"lock":' + b"[" * 1_000_000,
}  # fmt: skip


@pytest.mark.deep
@pytest.mark.parametrize("side", ["one", "two"])
@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_lock_is_a_conflict_with_both_sides(repository: Repository, name: str, side: str) -> None:
    repository.git("checkout", "-q", "two")
    (repository.folder / LOCK).write_bytes(HOSTILE[name])
    repository.git("commit", "-q", "-a", "-m", name)
    here, there = ("one", "two") if side == "one" else ("two", "one")
    repository.git("checkout", "-q", here)
    done = repository.git("merge", there, fine=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    text = (repository.folder / LOCK).read_bytes()
    assert text.startswith(b"<<<<<<< ours\n")
    assert text.endswith(b"\n>>>>>>> theirs\n")
    assert all(row in text for row in HOSTILE[name].split(b"\n"))
    assert OURS in text
