"""A run that is killed, or that the disk refuses, before anything that it does: every file stays whole, and the next run ends where this one would have.

The short form disturbs a few events of each verb; `make crash` (IPAMC_CRASH=all) every one, CRASH_PART=k/N one of N pieces of them. Each
disturbed run is a process of its own.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_ci_refresh import Forge
from tests.crash import places, runs
from tests.crash.forks import FULL, NEEDS_SPACE
from tests.crash.pieces import ALL, FIGURES, mine
from tests.crash.places import CLUSTERS, EDGE, LAB, VERBS, Verb
from tests.crash.runs import Forks, Run
from tests.support import depth

MODES = ("cluster-pool", "multi-pool", "kubernetes", "crd")
"""Of the clusters; the short form takes the first."""
FEW = 4 if depth.ALL else 2
"""Events of a verb that the short form disturbs, from the first to the last."""
REPORTS = ("out/report.sarif", "report.json")
"""Files that say what went wrong, and so are not the same after a run in which something did."""
OUTSIDE = "outside/"
"""Before the names of what a verb leaves outside of the repository."""
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


@functools.cache
def forge() -> tuple[Any, dict[str, str]]:
    """Start a forge that answers as GitHub does, until the tests end; return what it knows, and the variables that name it."""
    handler: Any = type("OneForge", (Forge,), {"strangers": [], "refuses": "", "tip": ""})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    named = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": url,
        "GITHUB_REPOSITORY": "o/r",
        "IPAMC_TOKEN": "t0ken",
    }
    return handler, named


class Stage:
    """One verb, its work, and what it comes to where nothing disturbs it."""

    def __init__(self, verb: Verb, template: Path, top: Path, forks: Forks) -> None:
        self.verb, self.template, self.forks = verb, template, forks
        self.work = top / "work" / "repository"
        self.arguments = tuple(word.format(above=self.work.parent) for word in verb.arguments)
        self.environment = places.environment(top)
        if verb.applies:
            self.environment |= places.programs(self.work.parent)
        if verb.pushes:
            self.environment |= forge()[1]
        self.fresh()
        self.old, self.folders = self.tree(), places.folders(self.work)
        self.head = places.git(self.work, "rev-parse", "HEAD")
        done = self.run()
        assert done.code == 0, done.said
        self.events = done.events
        self.new = self.tree()
        self.left: list[str] = []
        assert self.new != self.old, "this verb has nothing to do"

    def fresh(self) -> None:
        """Put everything back."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.parent.mkdir(exist_ok=True)
        places.prepared(self.template, self.work, self.verb)
        if self.verb.pushes:
            handler, _ = forge()
            handler.asked, handler.open, handler.closed = [], {}, []

    def tree(self) -> dict[str, bytes]:
        """Return every file, and what is left outside of the repository: branches, requests, objects."""
        found = places.tree(self.work) | {
            f"{OUTSIDE}{name}": text for name, text in places.outside(self.work, self.verb).items()
        }
        if self.verb.pushes:
            for request in forge()[0].open.values():
                told = [request[name] for name in ("title", "head", "base", "labels", "auto_merge")]
                found[f"{OUTSIDE}request"] = f"{[*told[:1], told[-2], bool(told[-1])]}".encode()
        return found

    def run(self, at: int = -1, act: str = "") -> Run:
        return self.forks.run(self.arguments, self.work, self.environment, at=at, act=act)

    def chosen(self, number: int = 0) -> list[int]:
        """Return which to disturb of so many, or of the events."""
        number = number or len(self.events)
        if ALL:
            return mine(range(number))
        return (
            list(range(number))
            if number <= FEW
            else [each * (number - 1) // (FEW - 1) for each in range(FEW)]
        )

    def files_are_whole(self, at: str) -> None:
        """Every file is the old or the new one; the lock is the new one wherever a rendered file is."""
        now = self.tree()
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
        now = self.tree()
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
    verb: Verb = request.param
    if not verb.modes or template.name in verb.modes:
        return Stage(verb, template, top, forks)
    if ALL:
        pytest.skip("nothing to do in this mode")
    if not (top / verb.modes[0]).exists():
        places.made(top / verb.modes[0], verb.modes[0])
    return Stage(verb, top / verb.modes[0], top, forks)


def test_a_killed_run_leaves_whole_files_and_the_next_one_completes(stage: Stage) -> None:
    kinds: Counter[str] = Counter()
    for at in stage.chosen():
        stage.fresh()
        killed = stage.run(at, "kill")
        kind, path = stage.events[at]
        where = f"killed before event {at}, {kind} {path}"
        assert killed.code == runs.KILLED, f"{where}: {killed.code} {killed.said}"
        kinds[kind] += 1
        FIGURES["kills"] += 1
        if stage.verb.by_git:
            (stage.work / ".git" / "index.lock").unlink(missing_ok=True)  # of a git that was killed
            merged = places.git(stage.work, "rev-parse", "HEAD") != stage.head
            stage.git_can_begin_again()
            whole, now = stage.new if merged else stage.old, stage.tree()
            assert {path for path in now.keys() | whole.keys() if now.get(path) != whole.get(path)} <= {
                f"{OUTSIDE}request",  # a forge is asked for one thing after the other
                *(
                    path
                    for path, text in now.items()
                    if path.startswith(OUTSIDE) and stage.new.get(path) == text
                ),
            }, where
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


@pytest.mark.deep(part=4)
@pytest.mark.parametrize("error", ERRORS)
def test_a_disk_that_refuses_is_one_line_and_leaves_whole_files(error: str, stage: Stage) -> None:
    chosen = stage.chosen() if ALL else stage.chosen()[ERRORS.index(error) % FEW :: FEW]
    for at in chosen:
        kind, path = stage.events[at]
        if kind in {"run", "connect"} or (error in FULL and kind not in NEEDS_SPACE):
            continue  # a program that does not start is another matter; a full disk renames
        stage.fresh()
        done = stage.run(at, error)
        FIGURES["refusals of the disk"] += 1
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


def test_a_kubectl_that_is_killed_is_one_line_and_the_next_apply_completes(
    template: Path, top: Path, forks: Forks
) -> None:
    """At each of its calls, an apply after a half of its objects: exit 1, nothing that the lock does not give, and then all of it."""
    stage = Stage(next(verb for verb in VERBS if verb.applies), template, top, forks)
    calls, watches = sum("kubectl.py" in what for _, what in stage.events), 0
    for at in stage.chosen(calls):
        stage.fresh()
        (stage.work.parent / CLUSTERS / "dies").write_text(str(at))
        done = stage.run()
        FIGURES["kills"] += 1
        where = f"kubectl is killed in its call {at}: {done.said}"
        now = stage.tree()
        assert "Traceback" not in done.said, where
        if done.code == 0:  # a watch, and the version that it begins at: it can do without them
            assert now == stage.new, where
            watches += 1
            continue
        assert done.code == 1, where
        assert done.said.strip(), where
        assert not {path for path in now if stage.new.get(path) != now[path]}, f"{where}: {now.keys()}"
        assert now != stage.new, where
        stage.next_run_completes(where)
    assert calls > 2, stage.events
    assert watches <= 2


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


@pytest.mark.deep(part=0)
def test_a_limit_of_the_size_of_files(template: Path, top: Path, forks: Forks) -> None:
    """RLIMIT_FSIZE, as a quota of the system itself: a process of its own, which the harness does not touch."""
    stage = Stage(VERBS[0], template, top, forks)
    for limit in (0, 100, 300) if ALL else (100,):
        stage.fresh()
        done = subprocess.run(
            [sys.executable, "-P", "-c", _LIMITED, str(limit), *stage.arguments],
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
