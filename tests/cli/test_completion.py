"""Completion, in the shells that are there: bash, zsh and fish, each as a person uses it."""

from __future__ import annotations

import contextlib
import os
import pty
import resource
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from ipamc.cli import main
from tests.support.forking import serve
from tests.support.two_nodes import CLUSTER

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def program() -> Path:
    """Return a folder with the command `ipamc`."""
    return serve()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with a cluster, a pending node, a branch and a tag; it is the working directory."""
    folder = tmp_path / "work"
    (folder / "clusters/lab").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795219200")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    (folder / "clusters/lab/cluster.yaml").write_text(
        CLUSTER.replace("NAME", "lab")
        .replace("n1", "worker-1")
        .replace("n2", "worker-2")
        .replace("{name: a}", "{name: rack}")
    )
    assert main(["compile"]) == 0
    assert main(["lock", "lab", "--renumber", "worker-2"]) == 0
    for command in ("init -q -b trunk", "add -A", "commit -q -m lab", "tag v7", "branch feature/x"):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@e", *command.split()], check=True)
    return folder


def offered(program: Path, line: str, shell: str = "bash") -> list[str]:
    """Return what is offered for the end of a line, as ipamc tells the script of a shell."""
    words = line.split(" ")
    environment = {"PATH": f"{program}:{os.environ['PATH']}", "_IPAMC_COMPLETE": f"{shell}_complete"}
    if shell == "fish":
        environment |= {"COMP_WORDS": line, "COMP_CWORD": words[-1]}
    else:
        environment |= {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run([program / "ipamc"], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return [row.partition(",")[2] for row in done.stdout.splitlines() if row.startswith("plain,")]


OFFERED = {
    "ipamc comp": ["compile", "completion"],
    "ipamc compile --ch": ["--check"],
    "ipamc compile ": ["lab"],
    "ipamc ci ap": ["applied"],
    "ipamc apply ": ["lab"],
    "ipamc which wor": ["worker-1", "worker-2"],
    "ipamc why worker-2": ["worker-2"],
    "ipamc show lab --node w": ["worker-1", "worker-2"],
    "ipamc show --pool ": ["rack"],
    "ipamc suggest pool lab --pool ": ["rack"],
    "ipamc lock lab --settle ": ["worker-2"],
    "ipamc lock lab --renumber p": ["pool/"],
    "ipamc lock lab --renumber pool/": ["pool/rack"],
    "ipamc lock --leave a": ["all"],
    "ipamc lock --rename worker-1": ["worker-1="],
    "ipamc runbook lab --node ": ["worker-1", "worker-2"],
    "ipamc plan --base ": ["HEAD", "feature/x", "trunk", "v7"],
    "ipamc show --at v": ["v7"],
    "ipamc compile --format j": ["json", "junit"],
    "ipamc show --output p": ["prometheus"],
    "ipamc compile --report s": ["sarif="],
    "ipamc plan --write h": ["html="],
    "ipamc plan --fail-on renumber,l": ["renumber,leave"],
    "ipamc schema ip": ["ippool"],
    "ipamc explain IPC0207": ["IPC0207"],
    "ipamc explain quar": ["quarantine", "quarantineDays"],
    "ipamc explain IPPool.spec.ov": ["IPPool.spec.overflow"],
    "ipamc aggregates --by topology.kubernetes.io/z": ["topology.kubernetes.io/zone"],
    "ipamc compile --assume 1.2": ["1.20"],
    "ipamc completion z": ["zsh"],
    "ipamc which nobody": [],
    "ipamc nonsense x": [],
    "ipamc compile --nonsense x": [],
}


@pytest.mark.parametrize("line", OFFERED)
def test_what_is_offered(line: str, program: Path, repository: Path) -> None:  # noqa: ARG001
    assert offered(program, line) == OFFERED[line]


def test_files(program: Path, repository: Path) -> None:  # noqa: ARG001
    """The shell completes them itself."""
    for line, kind in (
        ("ipamc import lab d", "file"),
        ("ipamc report --write p", "file"),
        ("ipamc schema --write c", "dir"),
    ):
        environment = {"PATH": os.environ["PATH"], "_IPAMC_COMPLETE": "bash_complete"}
        environment |= {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
        done = subprocess.run(
            [program / "ipamc"], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.split(",")[0] == kind, line


@pytest.mark.deep
@pytest.mark.parametrize("damage", ["no clusters", "no lock", "bytes", "link", "no git", "no access"])
def test_nothing_is_said_when_something_fails(damage: str, program: Path, repository: Path) -> None:
    lock = repository / "clusters/lab/ipam.lock"
    match damage:
        case "no clusters":
            shutil.rmtree(repository / "clusters")
        case "no lock":
            lock.unlink()
        case "bytes":
            lock.write_bytes(b"\xff\x00" * 1000)
        case "link":
            lock.unlink()
            lock.symlink_to("/etc/passwd")
        case "no git":
            shutil.rmtree(repository / ".git")
        case _:
            lock.chmod(0)
    for line in ("ipamc which ", "ipamc show lab --node ", "ipamc plan --base ", "ipamc lock lab --settle "):
        offered(program, line)  # asserts that stderr is empty


HOSTILE = (
    "$(touch${IFS}pwned)",
    "`touch pwned`",
    "a;touch pwned",
    "a'b",
    'a"b',
    "-rf",
    "a b",
    "a\nb",
    "\x1b[2J",
    "a&b",
    "a|b",
)


def test_a_line_without_an_end_costs_no_more_than_its_bytes(program: Path, repository: Path) -> None:
    """Who presses TAB in a stranger's checkout waits for it."""
    (repository / "clusters/lab/ipam.lock").write_text('"node":"a",' * 40_000)
    start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert offered(program, "ipamc lock lab --settle ") == []
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start < 20


def test_hostile_names_are_not_offered(program: Path, repository: Path) -> None:
    """Of branches, folders and nodes: a line that is completed is run by a shell."""
    for name in HOSTILE:
        subprocess.run(["git", "branch", "--", f"x{name}"], check=False, capture_output=True)
        with contextlib.suppress(OSError):
            (repository / "clusters" / f"x{name}").mkdir()
    lock = repository / "clusters/lab/ipam.lock"
    with lock.open("a") as file:
        file.writelines(f'{{"block":"10.0.9.0/24","pool":"x{name}","node":"x{name}"}}\n' for name in HOSTILE)
    for line in (
        "ipamc which ",
        "ipamc show --pool ",
        "ipamc plan --base ",
        "ipamc compile ",
        "ipamc show --node ",
    ):
        # Of what is cut out of broken lines, only what has the characters of a name.
        assert {each for each in offered(program, line) if each.startswith("x")} <= {"x-rf", "xa"}, line


def typed(shell: str, program: Path, setup: list[str], line: str, expected: str) -> str:
    """Type a line and TAB in a shell on a terminal; return what it shows until the expected text, or for two minutes."""
    options = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}[shell]
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(
            PATH=f"{program}:{os.environ['PATH']}",
            TERM="dumb" if shell == "bash" else "vt100",
            PS1="> ",
            HISTFILE="",
        )
        os.execlp(shell, shell, *options)  # noqa: S606 - it is the shell that is tried
    shown = ""
    try:
        for words in (*setup, "echo re''ady"):
            os.write(terminal, f"{words}\n".encode())
        end = time.monotonic() + 120
        sent = False
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    shown += os.read(terminal, 65536).decode(errors="replace")
            if "ready" in shown and not sent:
                shown, sent = "", True
                os.write(terminal, f"{line}\t".encode())
            if sent and expected in shown:
                break
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
        os.close(terminal)
    return shown


LINES = {
    "ipamc compl": "ipamc completion",
    "ipamc compile --ch": "ipamc compile --check",
    "ipamc show l": "ipamc show lab",
    "ipamc why worker-": "worker-2",
    "ipamc plan --base fea": "ipamc plan --base feature/x",
    "ipamc explain IPC090": "IPC0904",
}


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_on_a_terminal(shell: str, program: Path, repository: Path) -> None:  # noqa: ARG001
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed: .ci/shells")
    before = (
        ["autoload -U compinit; compinit -u -D"]
        if shell == "zsh"
        else ["bind 'set show-all-if-ambiguous on'"]
    )
    for line, expected in LINES.items():
        shown = typed(shell, program, [*before, f'eval "$(ipamc completion {shell})"'], line, expected)
        assert expected in shown, (line, shown)


def test_in_fish(program: Path, repository: Path) -> None:  # noqa: ARG001
    if not shutil.which("fish"):
        pytest.skip("fish is not installed: .ci/shells")
    for line, expected in LINES.items():
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"ipamc completion fish | source; complete -C '{line}'"],
            env={**os.environ, "PATH": f"{program}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        assert expected.split()[-1] in [row.split("\t")[0] for row in done.stdout.splitlines()], (
            line,
            done.stdout,
        )
