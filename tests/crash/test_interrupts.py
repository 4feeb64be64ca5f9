"""A run that is interrupted before anything that it does to the disk: its line says what is there, and the command that it names completes it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ipamc.cli.runner
import ipamc.workspace.cluster_lock
import ipamc.workspace.output
import ipamc.workspace.workers
from tests.cli.test_import import OBJECTS
from tests.crash import places, runs
from tests.crash.pieces import ALL, PART, PARTS
from tests.crash.places import EDGE, LAB, VERBS
from tests.crash.runs import Forks
from tests.crash.test_crash import Stage
from tests.support import dumps, in_process, told

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


@pytest.mark.deep
@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("verb", ["compile", "lock"])
def test_what_is_said_of_one_cluster_is_on_the_disk(
    verb: str, signal: str, template: Path, top: Path, forks: Forks
) -> None:
    stage = Stage(next(known for known in VERBS if known.name == verb), template, top, forks)
    code, head = SIGNALS[signal]
    seen = set()
    for at in chosen(len(stage.events)):
        stage.fresh()
        done = stage.run(at, signal)
        where = f"{signal} before event {at}, {stage.events[at]}: {done.said}"
        assert done.code == code, where
        line = told.line_of(done.said)
        said = line.removeprefix(head).partition(": ")[2].rpartition("; run")[0]
        now = places.tree(stage.work)
        seen.add(told.check_one(said, LAB, stage.old, stage.new, now))
        assert not any(map(places.is_unfinished, now)), where
        _run(told.command_of(line), stage)
        then = places.tree(stage.work)
        if verb == "compile":
            assert then == stage.new, where
        else:  # a compile renders what was consented to, too
            assert then[f"{LAB}/ipam.lock"] == stage.new[f"{LAB}/ipam.lock"], where
    assert seen >= ({"nothing", "some"} if verb == "compile" else {"nothing"})


def test_what_is_said_of_several_is_on_the_disk(template: Path, top: Path, forks: Forks) -> None:
    stage = Stage(next(known for known in VERBS if known.name == "compile of two"), template, top, forks)
    seen = set()
    for at in chosen(len(stage.events)):
        stage.fresh()
        done = stage.run(at, "SIGINT")
        assert done.code == 130, done.said
        line = told.line_of(done.said)
        seen.add(told.check_several(line, (EDGE, LAB), stage.old, stage.new, places.tree(stage.work)))
        _run(told.command_of(line), stage)
        assert places.tree(stage.work) == stage.new, line
    assert {("before", "before"), ("some", "before"), ("done", "some")} <= seen


def _run(command: str, stage: Stage) -> None:
    _, *arguments = shlex.split(command)
    done = in_process.ipamc(*arguments, cwd=stage.work, environment=stage.environment)
    assert done.returncode == 0, f"{command}: {done.stderr}"


WATCHED = {
    module.__file__
    for module in (
        ipamc.cli.runner,
        ipamc.workspace.cluster_lock,
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
def test_between_two_operations_it_is_true_as_well(template: Path, top: Path, forks: Forks) -> None:
    """Wherever a signal comes: between a rename and what follows it, too."""
    stage = Stage(next(known for known in VERBS if known.name == "compile of two"), template, top, forks)

    def run(at: int) -> tuple[Interrupt, str]:
        stage.fresh()
        interrupt = Interrupt(at)
        sys.settrace(interrupt)
        try:
            done = in_process.ipamc("compile", "--jobs", "1", cwd=stage.work, environment=stage.environment)
        finally:
            sys.settrace(None)
        return interrupt, done.stderr

    whole, _ = run(-1)
    step = 1 if ALL else max(whole.number // 150, 1)
    seen = set()
    for at in range(0, whole.number, step):
        interrupt, said = run(at)
        line = told.line_of(said)
        if ": " in line:  # where nothing has begun yet, or all is done, it is the head alone
            try:
                seen.add(told.check_several(line, (EDGE, LAB), stage.old, stage.new, places.tree(stage.work)))
            except (AssertionError, ValueError, KeyError) as problem:
                raise AssertionError(f"{interrupt.where}: {line}: {problem}") from problem
    assert {("before", "before"), ("some", "before"), ("done", "before"), ("done", "some")} <= seen


def test_what_is_said_of_an_import_is_on_the_disk(top: Path, forks: Forks) -> None:
    work, environment = top / "import", places.environment(top)
    arguments = ("import", "lab", "dump.json")

    def fresh() -> None:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        (work / "dump.json").write_text(dumps.kubectl(*OBJECTS))

    fresh()
    whole = forks.run(arguments, work, environment)
    assert whole.code == 0, whole.said
    new = places.tree(work)
    inputs = {path for path in new if path.startswith(f"{LAB}/") and "rendered" not in path} - {
        f"{LAB}/ipam.lock"
    }
    seen = set()
    for at in chosen(len(whole.events)):
        fresh()
        done = forks.run(arguments, work, environment, at=at, act="SIGINT")
        assert done.code == 130, done.said
        line, now = told.line_of(done.said), places.tree(work)
        there = inputs & now.keys()
        said = line.partition(": ")[2]
        if not there:
            assert said == "nothing was written; run again: ipamc import lab dump.json"
        elif there < inputs:
            wanted = f"{LAB}/ has {len(there)} of {len(inputs)} input files, from this dump: give it again"
            assert said == f"{wanted}; run again: ipamc import lab dump.json"
        else:
            rest = said.removeprefix(f"{LAB}/ has all input files, ").rpartition("; run: ")[0]
            rest = rest.replace("ipam.lock and rendered/ are as they were", "nothing was written")
            old = {path: text for path, text in new.items() if path in inputs}
            told.check_one(rest, LAB, old, new, now)
        seen.add((len(there), f"{LAB}/ipam.lock" in now))
        for command in told.command_of(line).split(" && "):
            again = in_process.ipamc(*shlex.split(command)[1:], cwd=work, environment=environment)
            assert again.returncode == 0, again.stderr
        then = {path: text for path, text in places.tree(work).items() if "schemas" not in path}
        assert then == {path: text for path, text in new.items() if "schemas" not in path}, line
    assert {(0, False), (len(inputs), False), (len(inputs), True)} <= seen


def test_a_refresh_says_which_file_it_has_written(top: Path, forks: Forks) -> None:
    work, environment = top / "refresh", places.environment(top)
    arguments = ("import", "lab", "--refresh", "new.json")

    def fresh() -> None:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        (work / "dump.json").write_text(dumps.kubectl(*OBJECTS))
        more = (dumps.node("n3"), dumps.cilium_node("n3", "10.0.7.0/24"))
        (work / "new.json").write_text(dumps.kubectl(*OBJECTS, *more))
        done = in_process.ipamc("import", "lab", "dump.json", cwd=work, environment=environment)
        assert done.returncode == 0, done.stderr

    fresh()
    old = places.tree(work)
    whole = forks.run(arguments, work, environment)
    new = places.tree(work)
    files = ["ciliumnodes.yaml", "nodes.yaml"]
    assert sorted(path for path in new if new[path] != old.get(path)) == [f"{LAB}/{file}" for file in files]
    for at in range(len(whole.events)):
        fresh()
        line = told.line_of(forks.run(arguments, work, environment, at=at, act="SIGINT").said)
        now = places.tree(work)
        parts = [
            f"{file} is {'as it is to be' if now[f'{LAB}/{file}'] == new[f'{LAB}/{file}'] else 'as it was'}"
            for file in files
        ]
        assert f": in {LAB}/ {', '.join(parts)}; run again: ipamc import lab --refresh new.json" in line


@pytest.mark.deep
def test_a_plan_says_that_it_writes_nothing(template: Path, top: Path, forks: Forks) -> None:
    stage = Stage(VERBS[0], template, top, forks)
    stage.fresh()
    arguments = ("plan", "--jobs", "1")
    whole = forks.run(arguments, stage.work, stage.environment, reads=True)
    said = []
    for at in chosen(len(whole.events)):
        done = forks.run(arguments, stage.work, stage.environment, at=at, act="SIGINT", reads=True)
        assert done.code == 130, done.said
        said.append(told.line_of(done.said))
        assert places.tree(stage.work) == stage.old
    full = [line for line in said if ": " in line]
    assert len(full) > len(said) // 2
    assert all(line.endswith(": nothing was written; run again: ipamc plan --jobs 1") for line in full)
