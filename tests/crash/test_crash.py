"""A run that is killed, or that the disk refuses, before anything that it does: every file stays whole, and the next run ends where this one would have.

The short form disturbs a few events of each verb; `make crash` (IPAMC_CRASH=all) every one. Each disturbed run is a process of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash import places, runs
from tests.crash.forks import FULL, NEEDS_SPACE
from tests.crash.places import EDGE, LAB, VERBS, Verb
from tests.crash.runs import Forks, Run

ALL = os.environ.get("IPAMC_CRASH") == "all"
MODES = ("cluster-pool", "multi-pool", "kubernetes", "crd")
"""Of the clusters; the short form takes the first."""
FEW = 4
"""Events of a verb that the short form disturbs, from the first to the last."""
REPORTS = ("out/report.sarif", "report.json")
"""Files that say what went wrong, and so are not the same after a run in which something did."""
ERRORS = ("ENOSPC", "EDQUOT", "EROFS", "EACCES", "EIO")
"""The full disk, the quota, the disk that became read-only, no permission, the broken disk."""


@pytest.fixture(scope="module")
def top() -> Iterator[Path]:
    """Return a folder that is quick: in memory, where the system has that."""
    memory = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a folder of our own there
    made = Path(tempfile.mkdtemp(prefix="ipamc-crash-", dir=memory if os.access(memory, os.W_OK) else None))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module", params=MODES if ALL else MODES[:1])
def template(request: pytest.FixtureRequest, top: Path) -> Path:
    mode: str = request.param
    if not (top / mode).exists():  # pytest takes the modes in an order of its own
        places.made(top / mode, mode)
    return top / mode


@pytest.fixture(scope="module")
def forks(top: Path) -> Iterator[Forks]:
    with runs.forks(top / "runs") as found:
        yield found


class Stage:
    """One verb, its work, and what it comes to where nothing disturbs it."""

    def __init__(self, verb: Verb, template: Path, top: Path, forks: Forks) -> None:
        self.verb, self.template, self.forks = verb, template, forks
        self.work = top / "work" / "repository"
        self.environment = places.environment(top)
        self.fresh()
        self.old, self.folders = places.tree(self.work), places.folders(self.work)
        self.head = places.git(self.work, "rev-parse", "HEAD")
        done = self.run()
        assert done.code == 0, done.said
        self.events = done.events
        self.new = places.tree(self.work)
        self.left: list[str] = []
        assert self.new != self.old, "this verb has nothing to do"

    def fresh(self) -> None:
        """Put everything back."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.parent.mkdir(exist_ok=True)
        places.prepared(self.template, self.work, self.verb)

    def run(self, at: int = -1, act: str = "") -> Run:
        return self.forks.run(self.verb.arguments, self.work, self.environment, at=at, act=act)

    def chosen(self) -> list[int]:
        """Return the events to disturb."""
        number = len(self.events)
        return (
            list(range(number))
            if ALL or number <= FEW
            else [each * (number - 1) // (FEW - 1) for each in range(FEW)]
        )

    def files_are_whole(self, at: str) -> None:
        """Every file is the old or the new one; the lock is the new one wherever a rendered file is."""
        now = places.tree(self.work)
        for path in now.keys() | self.old.keys() | self.new.keys():
            text, states = now.get(path), (self.old.get(path), self.new.get(path))
            if path in REPORTS:
                assert text is None or json.loads(text), f"{at}: {path} is cut off"
            elif path == self.verb.merges and text not in states:
                assert text, f"{at}: {path} is empty"
                rows = {row for side in ("ours.lock", "theirs.lock") for row in self.old[side].splitlines()}
                assert rows | {b"<<<<<<< ours", b">>>>>>> theirs"} <= {*text.splitlines()}, f"{at}: {text!r}"
            elif not places.is_unfinished(path):
                assert text in states, f"{at}: {path} is neither the old nor the new one: {text!r}"
        for path, text in now.items():
            folder, rendered, _ = path.partition("/rendered/")
            lock = f"{folder}/ipam.lock"
            if rendered and text != self.old.get(path):
                assert now.get(lock) == self.new.get(lock), f"{at}: {path} is new, and {lock} is not"

    def next_run_completes(self, at: str) -> None:
        """The same command once more comes to the same files."""
        if self.verb.merges:
            (self.work / self.verb.merges).write_bytes(self.old[self.verb.merges])
        again = self.run()
        assert again.code == 0, f"{at}: {again.said}"
        now = places.tree(self.work)
        differ = sorted(path for path in now.keys() | self.new.keys() if now.get(path) != self.new.get(path))
        self.left = [path for path in differ if places.is_unfinished(path)]
        assert differ == self.left, f"{at}, and again: {differ}"
        assert not any(path.startswith((f"{LAB}/", f"{EDGE}/")) for path in self.left), f"{at}: {self.left}"

    def git_can_begin_again(self) -> None:
        """Go back to what is committed, as a checkout of the next job does."""
        places.git(self.work, "reset", "--quiet", "--hard")
        places.git(self.work, "clean", "--quiet", "--force", "-d")


@pytest.fixture(scope="module", params=VERBS, ids=lambda verb: verb.name)
def stage(request: pytest.FixtureRequest, template: Path, top: Path, forks: Forks) -> Stage:
    return Stage(request.param, template, top, forks)


def test_a_killed_run_leaves_whole_files_and_the_next_one_completes(stage: Stage) -> None:
    kinds: Counter[str] = Counter()
    for at in stage.chosen():
        stage.fresh()
        killed = stage.run(at, "kill")
        kind, path = stage.events[at]
        where = f"killed before event {at}, {kind} {path}"
        assert killed.code == runs.KILLED, f"{where}: {killed.code} {killed.said}"
        kinds[kind] += 1
        if stage.verb.by_git:
            (stage.work / ".git" / "index.lock").unlink(missing_ok=True)  # of a git that was killed
            merged = places.git(stage.work, "rev-parse", "HEAD") != stage.head
            stage.git_can_begin_again()
            assert places.tree(stage.work) == (stage.new if merged else stage.old), where
        else:
            stage.files_are_whole(where)
        stage.next_run_completes(where)
    print(f"{stage.verb.name}: {sum(kinds.values())} kills of {len(stage.events)} events: {dict(kinds)}")  # noqa: T201 - what a long run is watched for


@pytest.mark.parametrize(
    "verb", [verb for verb in VERBS if verb.name in ("reports", "init", "gitlab", "github", "merge driver")]
)
def test_the_next_run_removes_what_was_not_finished(
    verb: Verb, template: Path, top: Path, forks: Forks
) -> None:
    stage = Stage(verb, template, top, forks)
    at = max(at for at, (kind, _) in enumerate(stage.events) if kind == "os.rename")
    stage.fresh()
    stage.run(at, "kill")
    stage.next_run_completes("killed before the last rename")
    assert not stage.left


@pytest.mark.parametrize("error", ERRORS)
def test_a_disk_that_refuses_is_one_line_and_leaves_whole_files(error: str, stage: Stage) -> None:
    chosen = stage.chosen() if ALL else stage.chosen()[ERRORS.index(error) % FEW :: FEW]
    for at in chosen:
        kind, path = stage.events[at]
        if kind == "run" or (error in FULL and kind not in NEEDS_SPACE):
            continue  # a program that does not start is another matter; a full disk renames
        stage.fresh()
        done = stage.run(at, error)
        where = f"{error} at event {at}, {kind} {path}"
        if done.code == 0:
            # What it can do without: a folder that is there already, one that stays.
            assert kind in {"os.remove", "os.rmdir", "os.mkdir"}, where
        else:
            assert done.code == 1, f"{where}: {done.code} {done.said}"
            assert "Traceback" not in done.said, f"{where}: {done.said}"
            assert done.said.strip(), f"{where}: nothing said"
        if stage.verb.by_git:
            stage.git_can_begin_again()
        else:
            stage.files_are_whole(where)
        stage.next_run_completes(where)


def test_the_events_are_those_that_change_the_disk(template: Path, top: Path, forks: Forks) -> None:
    """The harness sees what a compile does: else a kill before each event would be a kill before nothing."""
    stage = Stage(VERBS[1], template, top, forks)
    kinds = {kind for kind, _ in stage.events}
    assert {"open", "write", "fsync", "os.rename", "os.remove", "os.rmdir"} <= kinds
    renamed = [path for kind, path in stage.events if kind == "os.rename"]
    changed = [path for path in stage.new if stage.new[path] != stage.old.get(path)]
    assert len(renamed) == len(changed), (renamed, changed)
    assert places.tree(stage.work).keys() == stage.new.keys()
    lock = f"{LAB}/ipam.lock"
    assert places.lines(stage.old[lock]).keys() <= places.lines(stage.new[lock]).keys()


@pytest.fixture
def small_disk(top: Path) -> Iterator[Path]:
    """Mount a file system of 1 MB; skip where that is not allowed."""
    folder = top / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        folder.rmdir()
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
    folder.rmdir()


def test_a_full_disk_of_the_system_itself(small_disk: Path, template: Path, top: Path, forks: Forks) -> None:
    """With less and less room left: done, or one line and the old lock; then, with room, as if nothing had been."""
    stage = Stage(VERBS[0], template, top, forks)
    refused = 0
    room = range(0, 60, 4 if ALL else 20)
    for pages in room:
        stage.work = small_disk / f"work{pages}"
        stage.fresh()
        full = small_disk / "full"
        with full.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        os.truncate(full, max(full.stat().st_size - pages * 4096, 0))
        done = stage.run()
        assert done.code in {0, 1}, done.said
        assert "Traceback" not in done.said
        refused += done.code == 1
        stage.files_are_whole(f"{pages} pages left")
        full.unlink()
        stage.next_run_completes(f"{pages} pages left")
        shutil.rmtree(stage.work)
    assert 0 < refused <= len(room)


def test_a_limit_of_the_size_of_files(template: Path, top: Path, forks: Forks) -> None:
    """RLIMIT_FSIZE, as a quota of the system itself: a process of its own, which the harness does not touch."""
    stage = Stage(VERBS[0], template, top, forks)
    for limit in (0, 100, 300) if ALL else (100,):
        stage.fresh()
        done = subprocess.run(
            [sys.executable, "-P", "-c", _LIMITED, str(limit), *stage.verb.arguments],
            cwd=stage.work,
            env={
                **stage.environment,
                "PYTHONPATH": str(runs.ROOT / "compiler"),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        assert "file too large" in done.stderr
        assert "Traceback" not in done.stderr
        stage.files_are_whole(f"no file over {limit} bytes")
        stage.next_run_completes(f"no file over {limit} bytes")


_LIMITED = """
import resource, signal, sys
from ipamc.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.exit(main(sys.argv[2:]))
"""
