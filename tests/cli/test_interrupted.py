"""Processes that are sent a signal at any moment: what they say is on the disk, or in the cluster."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ipamc.cli import main
from ipamc.cli.interrupted import Account, accounted
from ipamc.model.progress import Progress, watched
from ipamc.workspace import dump
from tests.cli.test_ci_apply import Cluster
from tests.cli.test_cli import CLUSTER
from tests.e2e.processes import until
from tests.support import in_process, told
from tests.support.altered import install

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sends signals")

NAMES = ("blue", "green", "red", "white")
FOLDERS = tuple(f"clusters/{name}" for name in NAMES)
NODES = """\
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: [NODES]
"""
PATIENCE = "PATIENCE = 2.0"
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
def test_the_line_tells_of_each_cluster(tmp_path: Path, jobs: str, how: str) -> None:
    """Each process waits before one of its files here, so that a signal finds clusters that are half written, in two processes at once."""
    installed = install(tmp_path / "installed")
    pool = installed.folder / "ipamc/workspace/process_pool.py"
    assert pool.read_text().count(PATIENCE) == 1
    pool.write_text(pool.read_text().replace(PATIENCE, "PATIENCE = 60.0"))  # a busy machine cleans up late
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
        line = told.line_of(err)
        seen.add(told.check_several(line, FOLDERS, old, new, now))
        command = shlex.split(told.command_of(line))[1:]
        again = in_process.ipamc(*command, cwd=work, environment=environment)
        assert again.returncode == 0, again.stderr
        assert tree(work) == new
    assert any("some" in each for each in seen), seen


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
    assert err == "\ninterrupted while compiling red: nothing was written; run again: ipamc compile\n"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("ConfigMap", "red/cilium: some of its objects may be applied"),
        ("CiliumNode", "sent: red/cilium; red/ciliumnodes/000: some of its objects may be applied"),
        ("crds", "nothing was applied"),
    ],
)
def test_an_apply_says_what_was_sent(tmp_path: Path, part: str, said: str) -> None:
    cluster = Cluster(tmp_path)
    cluster.reset()
    cluster.flags("--ipam=kubernetes")
    variables = cluster.serve()
    apply = cluster.state / "apply"
    if part == "crds":
        apply = Path(cluster.program)
        slow, before = f'"get crds") touch {cluster.state}/busy; exec sleep 600 ;;\n', '"get crds")'
    else:
        slow = f"if {part!r} in text:\n    (state / 'busy').touch()\n    import time\n    time.sleep(600)\n"
        before = "with (state"
    apply.write_text(apply.read_text().replace(before, slow + before, 1))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "ipamc", "ci", "apply", "red"],
        cwd=cluster.repository.folder,
        env={**os.environ, **variables},
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(cluster.state / "busy", process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    line = told.line_of(err)
    assert line.partition(": ")[2] == f"{said}; run again: ipamc ci apply red", line


def test_a_verb_that_calls_another_one_tells_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ci refresh` takes back what its import wrote: the line of the import alone would be untrue then."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dump, "load_dump", interrupted)
    outer = Account("the work tree is as it was")
    with watched(Progress()), pytest.raises(KeyboardInterrupt) as caught, accounted(lambda: outer):
        main(["import", "lab", "dump.json"])
    assert caught.value.__notes__ == [outer.said, ""]
