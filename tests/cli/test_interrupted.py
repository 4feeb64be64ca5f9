"""Processes that are sent a signal at any moment: every file is whole, and the command that they name completes the work."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import CLUSTER
from tests.e2e.processes import until
from tests.support import in_process
from tests.support.altered import install

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sends signals")

NAMES = ("blue", "green", "red", "white")
NODES = """\
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: [NODES]
"""
PATIENCE = "CLEAN_UP_SECONDS = 2.0"
MOVE = "            held.move(staged[path], path)\n"
"""Where each file gets its name, but the lock."""


def tree(top: Path) -> dict[str, bytes]:
    return {
        path.relative_to(top).as_posix(): path.read_bytes()
        for path in sorted(top.rglob("*"))
        if path.is_file() and path.name not in {"busy", "moved"}
    }


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a process has made a file, or has ended."""
    until(lambda: path.exists() or process.poll() is not None, f"{path.name} is there", pause=0.02)


@pytest.mark.deep(part=0)
@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupted_compile_is_completed_by_the_same_one(tmp_path: Path, jobs: str, how: str) -> None:
    """Each process waits before one of its files here, so that a signal finds clusters that are half written, in two processes at once."""
    installed = install(tmp_path / "installed")
    limits = installed.folder / "ipamc/model/limits.py"
    assert limits.read_text().count(PATIENCE) == 1
    limits.write_text(
        limits.read_text().replace(PATIENCE, "CLEAN_UP_SECONDS = 60.0")
    )  # a busy machine cleans up late
    output = installed.folder / "ipamc/workspace/output.py"
    text = output.read_text()
    assert text.count(MOVE) == 1
    stops = f"""\
            import os, time
            with open('moved', 'ab') as moves:
                moves.write(b'.')
                if moves.tell() > int(os.environ['BEFORE']):
                    open('busy', 'w').close()
                    time.sleep(600)
{MOVE}"""
    output.write_text(text.replace(MOVE, stops))
    inputs = tmp_path / "inputs"
    for name in NAMES:
        folder = inputs / "clusters" / name
        folder.mkdir(parents=True)
        cluster = CLUSTER.replace("NAME", name).replace("spec:\n", "spec:\n  output: {shardSize: 1}\n", 1)
        (folder / "cluster.yaml").write_text(cluster)
        nodes = ", ".join(f"{{name: node-{number}}}" for number in range(6))
        (folder / "nodes.yaml").write_text(NODES.replace("NODES", nodes))
    old, work = tree(inputs), tmp_path / "work"
    shutil.copytree(inputs, work)
    environment = {"PATH": os.environ["PATH"]}
    done = in_process.ipamc("compile", cwd=work, environment=environment)
    assert done.returncode == 0, done.stderr
    new = tree(work)
    seen = set()
    for moved in (0, 3, 10, 17, 24):
        shutil.rmtree(work)
        shutil.copytree(inputs, work)
        process = installed.start("compile", "--jobs", jobs, cwd=work, BEFORE=str(moved))
        wait_for(work / "busy", process)
        process.send_signal(getattr(signal, how))
        _, err = process.communicate(timeout=120)
        now = tree(work)
        assert process.returncode == {"SIGINT": 130, "SIGTERM": 143}[how], err
        assert err.rstrip().endswith(f": every file is whole; run again: ipamc compile --jobs {jobs}"), err
        assert all(text in {old.get(path), new.get(path)} for path, text in now.items()), sorted(now)
        seen.add(len([path for path, text in now.items() if text == new[path] != old.get(path)]))
        again = in_process.ipamc("compile", "--jobs", jobs, cwd=work, environment=environment)
        assert again.returncode == 0, again.stderr
        assert tree(work) == new
    assert len(seen) > 2, seen


def test_the_second_press_does_not_take_the_line_away(tmp_path: Path) -> None:
    """Who is impatient presses twice."""
    installed = install(tmp_path / "installed", red="open('busy', 'w').close(); time.sleep(600)")
    folder = tmp_path / "work/clusters/red"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER.replace("NAME", "red"))
    process = installed.start("compile", cwd=tmp_path / "work")
    wait_for(tmp_path / "work/busy", process)
    for _ in range(20):
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err == "\ninterrupted while compiling red: every file is whole; run again: ipamc compile\n"
