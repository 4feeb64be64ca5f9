"""A page of the documentation as a story that can be played: its console blocks, in order, in one shell and one folder.

A page is Markdown. Its ```` ```console ```` blocks are what a terminal shows: a line that begins with `$ ` is a command (a line that ends in a backslash or
opens a heredoc goes on), the lines after it are what it prints, stdout and stderr together. `…` alone on a line stands for any lines. A fenced block
with a title, ```` ```yaml title="clusters/lab/ippools.yaml" ````, is that file from then on.

Comments of HTML, alone on their lines, tell what a reader need not see:

    <!-- page: clusters -->       the story begins in a git repository that has a copy of this one's clusters/; else in an empty folder
    <!-- page: skip, REASON -->   the page is not played
    <!-- run: COMMAND -->         runs here, and must succeed
    <!-- if: jq -->               the next block is played where this program is there
    <!-- needs: kubectl -->       the next block needs what a machine that tests may lack (a server, the network): it is not played
    <!-- instead: COMMAND -->     what is played in place of that block
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.forking import serve

ROOT = Path(__file__).parents[2]
HOME = "/home/you/net"
"""How the folder of a story is called in what is printed."""

_STEP = re.compile(
    r"^<!-- (?P<word>page|run|if|needs|instead): (?P<rest>.*?) -->$"
    r"|^(?P<indent> *)```(?P<kind>[a-z]+)(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'title="([^"]+)"')
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)")
_END = "\x1e"
_LONGEST = 120.0
"""Seconds that a command may take."""

ENVIRONMENT = {
    "SOURCE_DATE_EPOCH": "1795348800",  # 2026-11-22
    "NO_COLOR": "1",
    "COLUMNS": "80",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "GIT_PAGER": "cat",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_DATE": "2026-11-22T12:00:00Z",
    "GIT_COMMITTER_DATE": "2026-11-22T12:00:00Z",
}
_GIT = "[user]\n\tname = you\n\temail = you@example.com\n[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n"


@dataclass(frozen=True)
class Command:
    """A command as it is typed, and what the page says that it prints."""

    typed: str
    shown: str

    @property
    def line(self) -> str:
        """Return what bash reads."""
        return self.typed.removeprefix("$ ").replace("\n> ", "\n")


@dataclass
class Shell:
    """A bash in a fresh folder, with `ipamc` on its PATH; it keeps its folder and variables from command to command."""

    place: Path
    """An empty folder; the story plays in `net` below it."""

    _process: subprocess.Popen[bytes] = field(init=False)

    def __enter__(self) -> Self:
        """Start it."""
        self.folder = self.place / "net"
        self.folder.mkdir(parents=True)
        (self.place / "gitconfig").write_text(_GIT)
        kept = {name: os.environ[name] for name in ("HOME", "KUBECONFIG") if name in os.environ}
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=self.folder,
            env={
                **kept,
                **ENVIRONMENT,
                "GIT_CONFIG_GLOBAL": str(self.place / "gitconfig"),
                "PATH": os.pathsep.join([str(serve()), str(Path(sys.executable).parent), os.environ["PATH"]]),
                "REPOSITORY": str(ROOT),
                "TESTS_PYTHON": sys.executable,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def run(self, command: str) -> tuple[str, int]:
        """Run a command; return what it printed and its exit code."""
        assert self._process.stdin
        assert self._process.stdout
        script = self.place / "step.sh"
        script.write_text(command + "\n")
        self._process.stdin.write(f"source '{script}' </dev/null; printf '{_END}%s{_END}' $?\n".encode())
        self._process.stdin.flush()
        printed, end = b"", time.monotonic() + _LONGEST
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            while printed.count(_END.encode()) < 2:
                assert ready.select(max(0.0, end - time.monotonic())), f"{command}: no end in {_LONGEST} s"
                piece = os.read(self._process.stdout.fileno(), 65536)
                assert piece, f"{command}: the shell ended: {printed.decode(errors='replace')}"
                printed += piece
        text, code, _ = printed.decode(errors="replace").replace("\r\n", "\n").split(_END)
        return text.replace(str(self.folder), HOME), int(code)


def pages() -> list[Path]:
    """Return the pages that have console blocks or files, in order of their paths; the README last, which installs ipamc."""
    found = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
    return [page for page in found if "```console" in page.read_text()]


def played(text: str, shell: Shell) -> str:
    """Play a page; return it with what its commands printed."""
    skip, cut, out = False, 0, []
    for step in _STEP.finditer(text):
        word, rest = step["word"], step["rest"]
        if word == "page":
            if rest.startswith("skip,"):
                return text
            assert rest == "clusters", f"<!-- page: {rest} -->"
            _prepare(shell)
        elif word in {"if", "needs"}:
            skip = word == "needs" or shutil.which(rest) is None
        elif word:
            printed, code = shell.run(rest)
            assert code == 0, f"{rest}: exit {code}\n{printed}"
        elif step["kind"] == "console":
            if not skip:
                out.append(text[cut : step.start("body")])
                out.append(_block(step["body"], step["indent"], shell))
                cut = step.end("body")
            skip = False
        elif title := _TITLE.search(step["info"] or ""):
            path = shell.folder / title[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_dedent(step["body"], step["indent"]))
    return "".join([*out, text[cut:]])


def _prepare(shell: Shell) -> None:
    shutil.copytree(ROOT / "clusters", shell.folder / "clusters")
    printed, code = shell.run(
        "git init -q && cp -p $REPOSITORY/.gitignore . && git add -A && git commit -qm 'The clusters'"
    )
    assert code == 0, printed


def _block(body: str, indent: str, shell: Shell) -> str:
    out = []
    for command in commands(_dedent(body, indent)):
        printed, _ = shell.run(command.line)
        if printed and not printed.endswith("\n"):
            printed += "\n"
        shown = command.shown if agrees(command.shown, printed) else printed
        out.append(f"{command.typed}\n{shown}")
    return "".join(f"{indent}{line}\n" if line else "\n" for line in "".join(out).splitlines())


def _dedent(body: str, indent: str) -> str:
    return "".join(line.removeprefix(indent) for line in body.splitlines(keepends=True))


def commands(block: str) -> Iterator[Command]:
    """Return the commands of a block; refuse output before the first of them."""
    lines = block.splitlines()
    assert not lines or lines[0].startswith("$ "), f"output without a command: {lines[0]}"
    at = 0
    while at < len(lines):
        typed = [lines[at]]
        at += 1
        until = _HEREDOC.search(typed[0])
        while at < len(lines) and (typed[-1].endswith("\\") or (until and typed[-1] != until[1])):
            typed.append(lines[at])
            at += 1
        shown = []
        while at < len(lines) and not lines[at].startswith("$ "):
            shown.append(lines[at])
            at += 1
        yield Command("\n".join(typed), "".join(f"{line}\n" for line in shown))


def agrees(shown: str, printed: str) -> bool:
    """Tell whether a page shows what was printed; `…` alone on a line stands for any number of lines."""
    pieces = re.split(r"^ *…\n", shown, flags=re.MULTILINE)
    return bool(re.fullmatch("(?:.*\n)*?".join(map(re.escape, pieces)), printed))
