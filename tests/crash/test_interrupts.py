"""A run that is interrupted before anything that it does to the disk: every file is whole, and the same command completes it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ipamc.cli.runner
import ipamc.workspace.locked_folder
import ipamc.workspace.output
import ipamc.workspace.workers
from tests.cli.test_import import OBJECTS
from tests.crash import places, runs
from tests.crash.pieces import ALL, PART, PARTS
from tests.crash.places import VERBS
from tests.crash.runs import Forks
from tests.crash.test_crash import Stage
from tests.support import dumps, in_process

SIGNALS = {"SIGINT": (130, "interrupted"), "SIGTERM": (143, "stopped by SIGTERM")}
FEW = 12


@pytest.fixture(autouse=True)
def whole(request: pytest.FixtureRequest) -> None:
    """What a test here has seen is judged at its end: each is played by one piece, whole."""
    if zlib.crc32(request.node.nodeid.encode()) % PARTS != PART - 1:
        pytest.skip("of another piece")


@pytest.fixture(scope="module")
def top() -> Iterator[Path]:
    """Return a folder that is quick: in memory, where the system has that."""
    memory = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a folder of our own there
    made = Path(tempfile.mkdtemp(prefix="ipamc-ended-", dir=memory if os.access(memory, os.W_OK) else None))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def template(top: Path) -> Path:
    places.made(top / "template", "cluster-pool")
    return top / "template"


@pytest.fixture(scope="module")
def forks(top: Path) -> Iterator[Forks]:
    with runs.forks(top / "runs") as found:
        yield found


def chosen(number: int) -> list[int]:
    few = sorted({each * (number - 1) // (FEW - 1) for each in range(FEW)})
    return list(range(number)) if ALL or number <= FEW else few


def whole_files(
    line: str, old: Mapping[str, bytes], new: Mapping[str, bytes], now: Mapping[str, bytes]
) -> int:
    """Return how many files are as they are to be; each other one is as it was, or the test fails."""
    changed = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
    there = {path for path in changed if now.get(path) == new.get(path)}
    assert {path for path in changed - there if now.get(path) != old.get(path)} == set(), line
    assert not any(map(places.is_unfinished, now)), line
    return len(there)


def line_of(said: str, head: str, *command: str) -> str:
    """Return the line of an interrupt; it names the same command."""
    (line,) = (row for row in said.splitlines() if row.startswith(head))
    assert line.endswith(f": every file is whole; run again: ipamc {' '.join(command)}"), line
    return line


@pytest.mark.deep
@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("verb", ["compile", "lock", "compile of two"])
def test_the_same_command_completes_it(
    verb: str, signal: str, template: Path, top: Path, forks: Forks
) -> None:
    stage = Stage(next(known for known in VERBS if known.name == verb), template, top, forks)
    code, head = SIGNALS[signal]
    seen = set()
    for at in chosen(len(stage.events)):
        stage.fresh()
        done = stage.run(at, signal)
        assert done.code == code, f"{signal} before event {at}, {stage.events[at]}: {done.said}"
        line = line_of(done.said, head, *stage.arguments)
        seen.add(whole_files(line, stage.old, stage.new, places.tree(stage.work)))
        again = in_process.ipamc(*stage.arguments, cwd=stage.work, environment=stage.environment)
        assert again.returncode == 0, f"{line}: {again.stderr}"
        assert places.tree(stage.work) == stage.new, line
    assert 0 in seen
    assert len(seen) > (1 if verb == "lock" else 2)


WATCHED = {
    module.__file__
    for module in (
        ipamc.cli.runner,
        ipamc.workspace.locked_folder,
        ipamc.workspace.output,
        ipamc.workspace.workers,
    )
}


class Interrupt:
    """Raises KeyboardInterrupt before one line of the modules that write, as the handler of a signal does."""

    def __init__(self, at: int) -> None:
        self.at, self.number = at, 0
        self.where = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in WATCHED:
            return None
        if event == "line":
            self.number += 1
            if self.number - 1 == self.at:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file that was just opened
def test_between_two_operations_files_are_whole_as_well(template: Path, top: Path, forks: Forks) -> None:
    """Wherever a signal comes: between a rename and what follows it, too."""
    stage = Stage(next(known for known in VERBS if known.name == "compile of two"), template, top, forks)

    def run(at: int) -> Interrupt:
        stage.fresh()
        interrupt = Interrupt(at)
        sys.settrace(interrupt)
        try:
            in_process.ipamc("compile", "--jobs", "1", cwd=stage.work, environment=stage.environment)
        finally:
            sys.settrace(None)
        return interrupt

    whole = run(-1)
    step = 1 if ALL else max(whole.number // 150, 1)
    seen = set()
    for at in range(0, whole.number, step):
        interrupt = run(at)
        seen.add(whole_files(interrupt.where, stage.old, stage.new, places.tree(stage.work)))
    assert {0, max(seen)} < seen


@pytest.mark.parametrize("verb", [("import", "lab", "dump.json"), ("import", "lab", "--refresh", "new.json")])
def test_the_same_import_completes_it(verb: tuple[str, ...], top: Path, forks: Forks) -> None:
    work, environment = top / "import", places.environment(top)

    def fresh() -> None:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        (work / "dump.json").write_text(dumps.kubectl(*OBJECTS))
        if "--refresh" in verb:
            more = (dumps.node("n3"), dumps.cilium_node("n3", "10.0.7.0/24"))
            (work / "new.json").write_text(dumps.kubectl(*OBJECTS, *more))
            done = in_process.ipamc("import", "lab", "dump.json", cwd=work, environment=environment)
            assert done.returncode == 0, done.stderr

    fresh()
    old = places.tree(work)
    whole = forks.run(verb, work, environment)
    assert whole.code == 0, whole.said
    new, seen = places.tree(work), set()
    for at in chosen(len(whole.events)):
        fresh()
        done = forks.run(verb, work, environment, at=at, act="SIGINT")
        assert done.code == 130, done.said
        line = line_of(done.said, "interrupted", *verb)
        seen.add(whole_files(line, old, new, places.tree(work)))
        again = in_process.ipamc(*verb, cwd=work, environment=environment)
        assert again.returncode == 0, f"{line}: {again.stderr}"
        assert places.tree(work) == new, line
    assert len(seen) > 1
