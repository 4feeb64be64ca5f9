"""Processes of ipamc: what they import, how they end, and that one cluster's worst hides no other's result."""

from __future__ import annotations

import html
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_cli import CLUSTER
from tests.e2e.processes import commands, until
from tests.support import depth, in_process
from tests.support.altered import SCRIPT, Installed, install

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

NAMES = ("blue", "green", "red", "white")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a folder with four sound clusters."""
    for name in NAMES:
        folder = tmp_path / "work/clusters" / name
        folder.mkdir(parents=True)
        (folder / "cluster.yaml").write_text(CLUSTER.replace("NAME", name))
    return tmp_path / "work"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("sound"))


@pytest.fixture(scope="module")
def spawning(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An installation whose processes are new interpreters, as on a terminal, where a thread draws progress."""
    installed = install(tmp_path_factory.mktemp("spawning"))
    pool = installed.folder / "ipamc/workspace/workers.py"
    text, copies = pool.read_text(), 'sys.platform == "linux" and threading.active_count() == 1'
    assert text.count(copies) == 1
    pool.write_text(text.replace(copies, "False"))
    return installed


def locks(repository: Path) -> list[str]:
    return sorted(path.parent.name for path in repository.glob("clusters/*/ipam.lock"))


def at_once(repository: Path, words: str) -> subprocess.CompletedProcess[str]:
    """Call ipamc in this process."""
    return in_process.ipamc(*words.split(), cwd=repository, environment={"PATH": os.environ["PATH"]})


# What they import.


def spoil(folder: Path, names: Iterator[str] | list[str]) -> None:
    """Put modules into a folder that leave a mark where they are imported."""
    for name in names:
        (folder / f"{name}.py").write_text(f"open({str(folder / 'IMPORTED')!r}, 'a').write({name!r} + ' ')\n")


def every_module(installed: Installed) -> list[str]:
    """Return the names of all modules that can be imported, those of optional libraries of libraries too."""
    here = [
        path.stem.partition(".")[0]
        for folder in sys.path
        if folder and Path(folder).is_dir()
        for path in Path(folder).iterdir()
    ]
    optional = ["usercustomize", "fqdn", "rfc3339_validator", "webcolors", "isoduration", "idna", "ipamc"]
    assert (installed.folder / "ipamc").is_dir()
    return sorted({name for name in (*sys.stdlib_module_names, *here, *optional) if name.isidentifier()})


VERBS = (
    ("compile", "--jobs", "2"),
    ("plan", "--jobs", "2"),
    ("compile", "--check"),
    ("compile", "red", "--report=junit=out/junit.xml", "--report=sarif=out/sarif.json"),
    ("show", "--output", "json"),
    ("which", "10.0.0.7"),
    ("why", "n1"),
    ("lock", "--check"),
    ("ci", "matrix"),
)


@pytest.mark.deep
@pytest.mark.parametrize("how", ["script", "-P -m"])
def test_no_module_of_the_working_directory_is_imported(sound: Installed, repository: Path, how: str) -> None:
    """As the installed command and by `python -P -m`, nothing at all; and nothing by its workers."""
    spoil(repository, every_module(sound))
    (repository / "pyvenv.cfg").write_text("home = /nowhere\n")
    command = [sys.executable, "-P", "-m", "ipamc"] if how == "-P -m" else None
    for verb in VERBS if depth.ALL else VERBS[::3]:
        done = sound.run(*verb, cwd=repository, command=command)
        assert "Traceback" not in done.stderr, done.stderr
        assert not (repository / "IMPORTED").exists(), (verb, (repository / "IMPORTED").read_text())
    assert locks(repository) == list(NAMES)


LATE = ["yaml", "jinja2", "json", "queue", "pickle", "jsonschema_rs", "multiprocessing", "concurrent", "csv"]
"""Modules that Python itself does not import before it calls us."""


@pytest.mark.deep
@pytest.mark.parametrize("path", ["{}:", ":{}", "{}::", ".:{}", "{}:../work"])
@pytest.mark.parametrize("how", ["script", "-m"])
def test_nor_by_an_entry_of_the_search_path_that_means_it(
    sound: Installed, repository: Path, path: str, how: str
) -> None:
    """`python -m ipamc`, and an empty entry of PYTHONPATH, which images for CI have often."""
    spoil(repository, LATE)
    command = [sys.executable, "-m", "ipamc"] if how == "-m" else None
    done = sound.run(
        "compile", "--jobs", "2", cwd=repository, command=command, PYTHONPATH=path.format(sound.folder)
    )
    assert done.returncode == 0, done.stderr
    assert not (repository / "IMPORTED").exists(), (repository / "IMPORTED").read_text()


@pytest.mark.parametrize("flags", ["", "-P", "-E", "-I"])
def test_nor_by_processes_that_are_new_interpreters(
    spawning: Installed, repository: Path, flags: str
) -> None:
    spoil(repository, [*LATE, "threading", "site", "runpy"])
    script = spawning.folder / "bin/start.py"
    script.write_text(f"import sys; sys.path.insert(0, {str(spawning.folder)!r})\n{SCRIPT}")
    command = [sys.executable, *flags.split(), str(script)]
    done = spawning.run("compile", "--jobs", "2", cwd=repository, command=command, PYTHONPATH="/nowhere:")
    assert done.returncode == 0, done.stderr
    assert locks(repository) == list(NAMES)
    assert not (repository / "IMPORTED").exists(), (repository / "IMPORTED").read_text()


def test_ipamc_runs_in_the_folder_that_it_is_installed_in(sound: Installed, repository: Path) -> None:
    """Whoever works on ipamc itself does that."""
    folders = [str(repository / "clusters" / name) for name in NAMES]
    done = sound.run(
        "compile", *folders, cwd=sound.folder, command=[sys.executable, "-m", "ipamc"], PYTHONPATH=""
    )
    assert done.returncode == 0, done.stderr


# How they end.


def children(process: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True, check=False)
    return [int(text) for text in found.stdout.split()]


def workers(process: subprocess.Popen[str], repository: Path) -> list[int]:
    """Wait until a worker is at work on `red`; return all of them."""
    until(lambda: (repository / "busy").exists() or process.poll() is not None, "red is read", pause=0.02)
    assert process.poll() is None, process.communicate()
    return children(process.pid)


BUSY = {
    "in Python": "open('busy', 'w').close(); [None for one in iter(int, 1) if one]",
    "asleep": "open('busy', 'w').close(); time.sleep(600)",
    "about to rename": "from ipamc.workspace import atomic_write; from pathlib import Path; Path.replace = lambda *_: (open('busy', 'w').close(), time.sleep(600)); atomic_write.put('clusters/red/ipam.lock', b'x')",
}
ENDED = {
    "SIGTERM": (143, "stopped by SIGTERM"),
    "SIGHUP": (129, "stopped by SIGHUP"),
    "SIGINT": (130, "\ninterrupted"),
}


@pytest.mark.deep
@pytest.mark.parametrize("busy", BUSY)
@pytest.mark.parametrize("name", [*ENDED, "SIGKILL"])
def test_workers_end_with_their_parent(tmp_path: Path, repository: Path, name: str, busy: str) -> None:
    installed = install(tmp_path / "installed", red=BUSY[busy])
    process = installed.start("compile", "--jobs", "2", cwd=repository)
    there = workers(process, repository)
    assert len(there) == 2
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=120)  # its workers have the same stderr: this waits for them, too
    until(lambda: commands().keys().isdisjoint(there), "the workers have ended", pause=0.02)
    code, head = ENDED.get(name, (-9, ""))
    assert process.returncode == code
    again = ": every file is whole; run again: ipamc compile --jobs 2\n"
    assert err == (f"{head} while compiling{again}" if head else "")
    assert out == ""
    assert not list(repository.glob("clusters/*/.ipamc-*"))
    assert "red" not in locks(repository)


@pytest.mark.deep
@pytest.mark.parametrize("name", ENDED)
def test_one_process_ends_in_order(tmp_path: Path, repository: Path, name: str) -> None:
    installed = install(tmp_path / "installed", red=BUSY["about to rename"])
    process = installed.start("compile", "red", cwd=repository)
    workers(process, repository)
    assert list(repository.glob("clusters/red/.ipamc-*"))
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=120)
    code, head = ENDED[name]
    assert process.returncode == code
    assert err == f"{head} while compiling red: every file is whole; run again: ipamc compile red\n"
    assert not list(repository.glob("clusters/red/.ipamc-*"))


def test_what_the_parent_process_ignores_stays_ignored(tmp_path: Path, repository: Path) -> None:
    """`nohup ipamc compile` lives on when its terminal is closed."""
    red = "open('busy', 'w').close()\n        while not os.path.exists('go on'): time.sleep(0.02)"
    installed = install(tmp_path / "installed", red=red)
    nohup = ["nohup", *installed.command]
    process = installed.start("compile", "--jobs", "2", cwd=repository, command=nohup)
    for number in (process.pid, *workers(process, repository)):
        os.kill(number, signal.SIGHUP)
    (repository / "go on").touch()
    assert process.communicate(timeout=120)
    assert process.returncode == 0
    assert locks(repository) == list(NAMES)


# One cluster's worst.

ALL = tuple(f"--report={name}=out/{name}" for name in ("json", "gitlab", "sarif", "junit", "full"))
REST = ["blue", "green", "white"]
WORST = {
    "a bug": ("raise KeyError('node-7')", 70, "a bug in ipamc: KeyError: 'node-7' (pipeline.py:"),
    "a panic": (
        "raise type('PanicException', (BaseException,), {})('index out of bounds')",
        70,
        "PanicException",
    ),
    "a recursion": ("(lambda f: f(f))(lambda f: f(f))", 70, "RecursionError"),
    "no memory": ("raise MemoryError", 1, "out of memory"),
    "no space": ("raise OSError(28, 'No space left on device')", 1, "no space left on device"),
}
KILLED = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", "its process was killed by SIGKILL, twice, perhaps for lack of memory"),
    "segfault": ("os.kill(os.getpid(), signal.SIGSEGV)", "its process was killed by SIGSEGV, twice"),
    "gone": ("os._exit(3)", "its process ended with exit code 3, twice"),
}  # fmt: skip


def reported(repository: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (repository / "out").iterdir()}


@pytest.mark.deep
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("worst", WORST)
def test_the_worst_of_a_cluster_hides_no_other(
    tmp_path: Path, repository: Path, worst: str, jobs: str
) -> None:
    red, code, said = WORST[worst]
    done = install(tmp_path / "installed", red).run("compile", "--jobs", jobs, *ALL, cwd=repository)
    assert done.returncode == code, done.stderr
    assert locks(repository) == REST
    for name in REST:
        assert f"\n{name}: 2 nodes, 2 blocks added" in f"\n{done.stderr}"
    assert f"error: clusters/red: {said}" in done.stderr or said in done.stderr
    for text in reported(repository).values():
        assert said.partition(":")[0].split("'")[0] in text or "bug in ipamc" in text
    assert (done.stderr.count("Traceback (most recent call last)") > 0) is (code == 70)
    assert ("failed on red: this is a bug in ipamc, not in your input" in done.stderr) is (code == 70)


@pytest.mark.deep
@pytest.mark.parametrize("worst", KILLED)
def test_nor_does_a_process_that_is_killed(tmp_path: Path, repository: Path, worst: str) -> None:
    red, said = KILLED[worst]
    done = install(tmp_path / "installed", red).run("compile", "--jobs", "2", *ALL, cwd=repository)
    assert done.returncode == 1, done.stderr
    assert locks(repository) == REST
    assert f"error: clusters/red: {said}" in done.stderr
    assert "Traceback" not in done.stderr
    assert all(said in text for text in reported(repository).values())


def test_a_cluster_whose_process_was_killed_is_run_once_more(tmp_path: Path, repository: Path) -> None:
    """The kernel may have killed the wrong one."""
    red = "os.path.exists('once') or (open('once', 'w').close(), os.kill(os.getpid(), signal.SIGKILL))"
    done = install(tmp_path / "installed", red).run("compile", "--jobs", "2", cwd=repository)
    assert done.returncode == 0, done.stderr
    assert locks(repository) == list(NAMES)


@pytest.mark.deep
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_plan_shows_the_others_and_the_failure(tmp_path: Path, repository: Path, jobs: str) -> None:
    installed = install(tmp_path / "installed", red=WORST["a bug"][0])
    for style in ("json", "markdown", "text"):
        done = installed.run("plan", "--jobs", jobs, "--output", style, *ALL, cwd=repository)
        assert done.returncode == 70
        assert all(name in done.stdout for name in REST)
        assert "a bug in ipamc: KeyError: 'node-7'" in html.unescape(done.stdout)
        assert "failed on red: this is a bug in ipamc" in done.stderr
        assert all("KeyError" in text for text in reported(repository).values())
        if style == "json":
            statuses = {each["cluster"]: each["status"] for each in json.loads(done.stdout)["clusters"]}
            assert statuses == {"blue": "planned", "green": "planned", "red": "failed", "white": "planned"}


@pytest.mark.deep
@pytest.mark.parametrize("verb", ["show", "which 10.0.0.7", "why n1"])
def test_questions_are_answered_for_the_others(tmp_path: Path, repository: Path, verb: str) -> None:
    installed = install(tmp_path / "installed", red=WORST["a bug"][0])
    done = installed.run(*verb.split(), *ALL, cwd=repository)
    assert done.returncode == 70
    assert all(name in done.stdout for name in REST)
    assert done.stderr.count("Traceback (most recent call last)") == 1
    assert "failed on red: this is a bug in ipamc" in done.stderr
    assert all("KeyError" in text for text in reported(repository).values())
    done = installed.run(*verb.split(), "--format", "json", cwd=repository)
    assert done.returncode == 70
    assert "KeyError" in json.dumps(json.loads(done.stderr))


@pytest.mark.parametrize("first", [b'{"lock":1,"cluster":"r\xffed"', b"\xff\xfe", b'{"lo\xffck":1}'])
def test_a_lock_that_is_not_utf_8_is_a_finding(repository: Path, first: bytes) -> None:
    """It was a traceback, and with several clusters nothing else."""
    at_once(repository, "compile --jobs 1")
    path = repository / "clusters/red/ipam.lock"
    text = path.read_bytes()
    for bad in (first + text[text.index(b"\n") :], text.replace(b'"node":"n1"', b'"node":"n\xff1"')):
        path.write_bytes(bad)
        for verb in ("compile --jobs 1", "plan --jobs 1", "show", "which 10.0.0.7", "why n1"):
            done = at_once(repository, verb)
            assert done.returncode == 1, done.stderr
            assert "Traceback" not in done.stderr
            assert "error[IPC0403]" in done.stderr or "restore this cluster's" in done.stderr
            assert all(name in done.stdout + done.stderr for name in REST)
        assert path.read_bytes() == bad


def test_a_member_with_a_bug_hides_no_cluster(tmp_path: Path, repository: Path) -> None:
    """The address space is refused, as the addresses of a member are not known; the others are written."""
    text = "{apiVersion: ipamc/v1alpha1, kind: AddressSpace, metadata: {name: one}, spec: {}}"
    (repository / "clusters/one").mkdir()
    (repository / "clusters/one/space.yaml").write_text(text)
    for name in ("red", "green"):
        path = repository / f"clusters/{name}/cluster.yaml"
        path.write_text(path.read_text().replace("spec:\n", "spec:\n  addressSpace: one\n", 1))
    installed = install(tmp_path / "installed", red=WORST["a bug"][0])
    space = installed.folder / "ipamc/workspace/survey.py"
    begin = "    wanted = {path: data"
    space.write_text(
        space.read_text().replace(begin, f"    if inputs.name == 'red': raise KeyError\n{begin}")
    )
    done = installed.run("compile", "--jobs", "2", cwd=repository)
    assert done.returncode == 70
    assert "cluster red cannot be read, and may have the same addresses: ipamc failed" in done.stderr
    assert locks(repository) == ["blue", "green", "white"]


def test_an_apply_goes_on_with_the_next_cluster(tmp_path: Path, repository: Path) -> None:
    installed = install(tmp_path / "installed")
    installed.run("compile", cwd=repository)
    module = installed.folder / "ipamc/cli/ci/apply_cluster.py"
    begin = '    folder = f"{disk.CLUSTERS}/{name}"\n'
    text = module.read_text()
    assert begin in text
    wrong = f"{begin}    if name == 'red': raise KeyError('node-7')\n    raise EnvironmentFailure(f'{{name}} is here')\n"
    module.write_text(text.replace(begin, wrong, 1))
    done = installed.run("apply", *NAMES, cwd=repository)
    assert done.returncode == 70
    assert all(f"error: {name}: {name} is here" in done.stderr for name in REST)
    assert "error: red: a bug in ipamc: KeyError: 'node-7'" in done.stderr
    assert "failed on red: this is a bug in ipamc" in done.stderr


# A merge that is not completed.


def git(repository: Path, *arguments: str) -> str:
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    return subprocess.run(words, cwd=repository, capture_output=True, text=True, check=True).stdout


@pytest.mark.deep
@pytest.mark.parametrize("how", ["a bug", "SIGTERM", "SIGINT", "killed"])
def test_a_merge_that_fails_is_undone(tmp_path: Path, repository: Path, how: str) -> None:
    at_once(repository, "compile --jobs 1")
    git(repository, "init", "-q", "-b", "main")
    for branch, name in (("main", "blue"), ("feature", "blue"), ("main", "green")):
        git(repository, "checkout", "-q", *([] if branch == "main" and name == "green" else ["-B"]), branch)
        path = repository / f"clusters/{name}/cluster.yaml"
        path.write_text(path.read_text().replace("{name: n2}", f"{{name: n2}}, {{name: n-{branch}}}", 1))
        at_once(repository, f"compile {name}")
        git(repository, "add", "-A")
        git(repository, "commit", "-q", "-m", f"{branch} {name}")
    git(repository, "checkout", "-q", "feature")
    busy = tmp_path / "busy"
    wait = f"open({str(busy)!r}, 'w').close(); time.sleep(600)"
    red = {"a bug": "raise KeyError", "killed": "os.kill(os.getpid(), signal.SIGKILL)"}.get(how, wait)
    head = git(repository, "rev-parse", "HEAD")
    process = install(tmp_path / "installed", red=red).start("ci", "merge", "main", cwd=repository)
    if how in ENDED:
        until(lambda: busy.exists() or process.poll() is not None, "red is read", pause=0.02)
        process.send_signal(getattr(signal, how))
    _, err = process.communicate(timeout=120)
    assert process.returncode == {"a bug": 70, "killed": 1, "SIGTERM": 143, "SIGINT": 130}[how], err
    assert "the merge was undone" in err
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "rev-parse", "HEAD") == head
    assert not (repository / ".git/MERGE_HEAD").exists()
