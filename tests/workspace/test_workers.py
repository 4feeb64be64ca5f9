"""Processes that are copies of this one, and those that are not, do the same: results, deaths, and no process left."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ipamc.workspace import workers
from tests.e2e.processes import commands, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux")

TASKS = """\
import os, signal, sys

def run(task):
    if task == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "fail":
        raise ValueError("not this one")
    return [task, "json" in sys.modules, os.getpid()]

def failed(task, problem):
    return f"{task}: {problem}"

def prepare():
    import json
"""
MAIN = """\
import os, sys, threading
sys.path.insert(0, {folder!r})
import tasks
from ipamc.workspace import workers
if not {copies}:
    workers.can_fork = lambda: False
found = workers.run_all({work!r}, 2, tasks.run, tasks.failed, tasks.prepare)
import json, pathlib
left = pathlib.Path(f"/proc/self/task/{{os.getpid()}}/children").read_text().split()
print(json.dumps([found, left, os.getpid()]))
"""


def done(tmp_path: Path, work: list[str], *, copies: bool) -> tuple[list[Any], int]:
    (tmp_path / "tasks.py").write_text(TASKS)
    code = MAIN.format(folder=str(tmp_path), copies=copies, work=work)
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    found, left, here = json.loads(ran.stdout)
    # New interpreters share a process that removes their semaphores: it ends with this one.
    assert len(left) == (0 if copies else 1)
    until(lambda: commands().keys().isdisjoint(map(int, left)), "it has ended", pause=0.02)
    assert ran.stderr == ""
    return found, here


@pytest.mark.parametrize("copies", [True, False])
def test_results_are_in_the_order_of_the_tasks(tmp_path: Path, copies: bool) -> None:  # noqa: FBT001 - a parameter
    found, here = done(tmp_path, ["a", "b", "fail", "c"], copies=copies)
    assert [each if isinstance(each, str) else each[0] for each in found] == [
        "a",
        "b",
        "fail: not this one",
        "c",
    ]
    workers = {each[2] for each in found if isinstance(each, list)}
    assert here not in workers
    assert len(workers) <= 2
    assert {each[1] for each in found if isinstance(each, list)} == {True}  # each has prepared itself


@pytest.mark.parametrize("copies", [True, False])
def test_a_process_that_is_killed_takes_no_other_with_it(tmp_path: Path, copies: bool) -> None:  # noqa: FBT001 - as above
    found, _ = done(tmp_path, ["a", "die", "b", "c"], copies=copies)
    assert [each[0] for each in found if isinstance(each, list)] == ["a", "b", "c"]
    assert (
        found[1]
        == "die: its process was killed by SIGKILL, twice, perhaps for lack of memory: add memory or try --jobs 1"
    )


def test_a_process_with_two_threads_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert not workers.can_fork()
