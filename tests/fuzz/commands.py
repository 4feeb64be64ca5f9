"""Command lines that nobody would type: every verb and every option, with right values and odd ones, in a repository of two clusters."""

from __future__ import annotations

import atexit
import functools
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import click

from ipamc.cli import VERBS, ipamc
from ipamc.cli.ci import STEPS
from ipamc.review import GATES
from tests.fuzz.subjects import Subject
from tests.support import casefile, in_process

ARGUMENTS = "arguments"
"""The file of a subject: an argument a line, as JSON."""
CODES = {0: "done", 1: "refused", 2: "changed", 64: "usage"}
"""What ipamc may return."""
ROOT = Path(__file__).parents[2]
CLUSTERS = ("bgp", "multi-pool")
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
WORKFLOW_COMMAND = re.compile(
    r"^\s*::(?:error|warning|notice|debug|group|endgroup|add-mask|stop-commands|set-\w+|save-state|add-\w+|echo)\b|##\[",
    re.MULTILINE,
)
"""What GitHub's runner takes for a command: after blanks too, and in its old form anywhere in a line."""

FOLDERS = (
    *CLUSTERS,
    "clusters/bgp",
    "clusters/bgp/",
    "./clusters/bgp",
    "new",
    "a/new",
    "none",
    ".",
    "..",
    "clusters",
    "clusters/bgp/nodes.yaml",
)
REVISIONS = (
    "HEAD",
    "HEAD~1",
    "main",
    "other",
    "other~0",
    "HEAD^{tree}",
    "HEAD:clusters",
    "@{u}",
    "^HEAD",
    "HEAD..other",
    ":/x",
    "last-success",
)
DAYS = (
    "2026-11-21",
    "2020-13-45",
    "2026-11-21T09:30",
    "1000-01-01",
    "9999-12-31",
    "2026-11-21T25:00",
    "now",
    "0",
)
FILES = (
    "out.yaml",
    "deep/er/out.yaml",
    "clusters/bgp/ipam.lock",
    "clusters",
    "none/",
    ".git/config",
    "link",
    "pipe/x",
    "out.json",
)
NODES = (
    "worker-1",
    "bgp-worker",
    "all",
    "pool/default",
    "pool/",
    "10.0.0.7",
    "10.0.0.0/8",
    "10.0.0.1/8",
    "fd00::/64",
    "::",
    "a=b",
    "a=",
    "=",
    "a=b=c",
)
WORDS = (
    "full",
    "json=out.json",
    "sarif=clusters",
    "junit=link",
    "json=out.json",
    "=x",
    "x=",
    "text",
    "markdown",
    "table",
    "IPC0207",
    "IPC9999",
    "bash",
    "zsh",
    "cluster",
    "ippool",
    "renumber",
    "renumber,leave",
    "zzz",
)
ODD = (
    "",
    "-",
    "--",
    "---",
    "-x",
    "--x",
    "--base",
    "--base=",
    "0",
    "-1",
    "1",
    "9" * 40,
    "1e3",
    "a\nb",
    "\x1b[2J",
    "\u202e",
    "é",
    "\udcff",
    "x" * 3000,
    "%s",
    "{{ 7*7 }}",
    "${HOME}",
    "$(id)",
    "::error::x",
    "##[error]x",
    "x\n ::error::x",
    "../../x",
    "*",
    "~",
    "a b",
    "'",
    '"',
    "\\",
)
VALUES = (FOLDERS, FOLDERS, REVISIONS, DAYS, FILES, NODES, WORDS, ODD)
REPORTS = tuple(
    f"{name}=r.{name}" for name in ("json", "sarif", "junit", "gitlab", "full", "github", "concise")
)


def made(chance: random.Random) -> Subject:
    """Return a command line."""
    words, command = _command(chance)
    arguments: list[str] = []
    for parameter in command.params if command else ():
        arguments += _given(parameter, chance)
    for _ in range(chance.choice((0,) * 8 + (1, 2))):
        arguments.insert(chance.randrange(len(arguments) + 1), _value(chance))
    if chance.random() < 0.05:
        words.insert(0, _value(chance))
    lines = "".join(f"{json.dumps(word)}\n" for word in (*words, *arguments))
    return Subject("commands", casefile.Case("", {}), {ARGUMENTS: lines.encode()})


def _command(chance: random.Random) -> tuple[list[str], click.Command | None]:
    verb = chance.choice(tuple(VERBS))
    context = click.Context(ipamc)
    command = ipamc.get_command(context, verb)
    if verb != "ci" or not isinstance(command, click.Group):
        return [verb], command
    step = chance.choice(tuple(STEPS))
    return [verb, step], command.get_command(context, step)


def _given(parameter: click.Parameter, chance: random.Random) -> list[str]:
    """Return a parameter as it may be given: not at all, once, several times."""
    if isinstance(parameter, click.Argument):
        few = (1,) * 20 + (0,) if parameter.required else (0, 1, 1, 2)
        return [_value(chance, parameter) for _ in range(chance.choice(few))]
    given: list[str] = []
    often = (1,) * 20 + (0, 2) if parameter.required or parameter.name == "jobs" else (0, 0, 0, 1, 1, 2)
    for _ in range(chance.choice(often)):
        name = chance.choice(parameter.opts)
        if isinstance(parameter, click.Option) and parameter.is_flag:
            given.append(name)
        elif chance.random() < 0.5:
            given += [name, _value(chance, parameter)]
        else:
            given.append(f"{name}={_value(chance, parameter)}")
    return given


def _value(chance: random.Random, parameter: click.Parameter | None = None) -> str:
    """Return a value, mostly one that the parameter is for."""
    name = parameter.name if parameter else ""
    if name == "jobs":
        return chance.choice(("1",) * 30 + ("0", "-1", "x", "1.5", ""))  # others start processes
    if parameter and chance.random() < 0.9:
        if isinstance(parameter.type, click.Choice):
            return str(chance.choice(tuple(parameter.type.choices)))
        for names, values in (
            ({"clusters"}, (*CLUSTERS * 6, *FOLDERS)),
            ({"cluster"}, FOLDERS),
            ({"fail_on"}, GATES),
            ({"base", "rev", "onto", "branch", "revision"}, REVISIONS),
            ({"at"}, (*REVISIONS, *DAYS)),
            ({"output", "file", "ours", "theirs", "path"}, FILES),
            (
                {
                    "node",
                    "target",
                    "leave",
                    "no_pods",
                    "adopt",
                    "renumber",
                    "settle",
                    "release",
                    "rename",
                },
                NODES,
            ),
            ({"report"}, REPORTS),
        ):
            if name in names:
                return chance.choice(tuple(values))
    return chance.choice(chance.choice(VALUES))


@functools.cache
def _template() -> Path:
    """Return a repository of two clusters, with two branches, that was made once: no run changes it."""
    memory = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a folder of our own there
    above = Path(tempfile.mkdtemp(prefix="ipamc-fuzz-", dir=memory if os.access(memory, os.W_OK) else None))
    atexit.register(shutil.rmtree, above, ignore_errors=True)
    top = above / "made"
    work = top / "work"
    for name in CLUSTERS:
        shutil.copytree(ROOT / "clusters" / name, work / "clusters" / name)
    (work / "link").symlink_to("out.yaml")
    (top / "bin").mkdir()
    git = shutil.which("git")
    assert git
    (top / "bin" / "git").symlink_to(git)
    lock = work / "clusters" / "bgp" / "ipam.lock"
    whole = lock.read_text()

    def run(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=work, env=_environment(top), check=True, capture_output=True)

    run("init", "--quiet", "--template=", "--initial-branch", "main")
    run("add", ".")
    run("commit", "--quiet", "--message", "first")
    lock.write_text(whole.replace("}\n", "}\n", 1))
    (work / "clusters" / "bgp" / "note.txt").write_text("main\n")
    run("add", ".")
    run("commit", "--quiet", "--message", "second")
    run("switch", "--quiet", "--create", "other", "HEAD~1")
    (work / "clusters" / "bgp" / "other.txt").write_text("other\n")
    run("add", ".")
    run("commit", "--quiet", "--message", "other")
    run("switch", "--quiet", "main")
    run("gc", "--quiet")
    return top


def _environment(top: Path) -> dict[str, str]:
    """Return an environment without tokens, and with no program but git."""
    author = {
        f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return {
        **author,
        "PATH": str(top / "bin"),
        "HOME": str(top),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(top),
        "SOURCE_DATE_EPOCH": "1795000000",
    }


class _Place:
    """A copy of the repository, in which one run follows the other for as long as they change nothing."""

    def __init__(self) -> None:
        self._top: Path | None = None
        self._before: dict[str, tuple[int, int]] = {}

    def fresh(self) -> Path:
        """Return the folder above a work tree that is as it was made."""
        if self._top is None or _files(self._top) != self._before:
            template = _template()
            if self._top:
                shutil.rmtree(self._top)
            self._top = template.parent / f"{template.name}-in"
            shutil.copytree(template, self._top, symlinks=True)
            self._before = _files(self._top)
        return self._top


def _files(top: Path) -> dict[str, tuple[int, int]]:
    found = (Path(folder, name) for folder, _, names in os.walk(top) for name in names)
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in found}


_PLACE = _Place()


def examine(subject: Subject) -> str:
    """Run it; tell what it returned."""
    arguments = [json.loads(line) for line in subject.files[ARGUMENTS].splitlines() if line]
    top = _PLACE.fresh()
    done = in_process.ipamc(*arguments, cwd=top / "work", environment=_environment(top))
    said = done.stderr[-2000:]
    assert done.returncode in CODES, f"exit {done.returncode}: {said}"
    assert "Traceback" not in done.stderr, said
    assert not UNPRINTABLE.search(done.stderr), repr(UNPRINTABLE.findall(done.stderr))
    annotated = "github" in " ".join(arguments)
    assert annotated or not WORKFLOW_COMMAND.search(done.stderr), said
    if done.returncode == 1:
        assert done.stderr.strip() or done.stdout.strip(), "refused, and nothing said"
    return CODES[done.returncode]
