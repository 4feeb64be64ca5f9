"""How git is run, so that no branch, environment or configuration of a repository decides what it does.

A branch may contain a folder with HEAD, config, objects/ and refs/. git, searching for a repository from
there, would take it for a bare one, whose configuration names programs. So git does not search: it runs at
the top of the work tree, with --git-dir and --work-tree. It runs no hook, no file system monitor, no external
diff and, except in `transport`, no transport. It fetches no missing object, and replaces none.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import Thread
from typing import IO

from msgspec import Struct

from ipamc.model.limits import GIT_SECONDS, LARGEST_FILE
from ipamc.workspace.clusters import top_of
from ipamc.workspace.environment import program
from ipamc.workspace.failure import EnvironmentFailure

_OURS = re.compile(r"GIT_(?:CONFIG_.*|AUTHOR_.*|COMMITTER_.*|EXEC_PATH)").fullmatch
"""The variables of git that are kept: the user, and the user's configuration. A hook sets more of them."""
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_EDITOR": "false",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",  # git 2.39.4, 2.45.1
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_SETTINGS = {
    "core.alternateRefsCommand": "",
    "core.fsmonitor": "false",
    "core.gitProxy": "",
    "core.hooksPath": os.devnull,
    "core.sshCommand": "false",
    "core.warnAmbiguousRefs": "true",
    "credential.helper": "",
    "diff.external": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",  # git 2.38
    "submodule.recurse": "false",
}
_NEUTRAL: tuple[tuple[re.Pattern[str], Mapping[str, str]], ...] = (
    (
        re.compile(r"(filter\..+)\.(?:clean|smudge|process|required)", re.DOTALL | re.IGNORECASE),
        {"clean": "", "smudge": "", "process": "", "required": "false"},
    ),
    # A driver that fails leaves the file unmerged, and no side is taken.
    (re.compile(r"(merge\..+)\.driver", re.DOTALL | re.IGNORECASE), {"driver": "false"}),
    (re.compile(r"(gpg)\.(?:.+\.)?program", re.DOTALL | re.IGNORECASE), {"program": "false"}),
)
"""Programs in git's configuration that could run when it writes a work tree, and values that disable them."""


class Done(Struct, frozen=True):
    """The result of a git command."""

    code: int
    output: bytes
    complaint: str

    @property
    def text(self) -> str:
        """The output as text; bytes that are not UTF-8 become surrogates, as in paths."""
        return text(self.output)

    @property
    def reason(self) -> str:
        """The first line of stderr that reports an error, else the last line."""
        lines = list(filter(None, map(str.strip, self.complaint.splitlines())))
        said = next((line for line in lines if line.startswith(("fatal:", "error:"))), "".join(lines[-1:]))
        return said.partition(": ")[2] if said.startswith(("fatal: ", "error: ")) else said


class Running(Struct, frozen=True):
    """A running git command."""

    process: subprocess.Popen[bytes]
    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]  # a file

    def done(self, output: bytes) -> Done:
        """Return the result, with up to 1 MiB of stderr, once the command has ended."""
        code = self.process.wait()
        self.stderr.seek(0)
        return Done(code, output, text(self.stderr.read(1 << 20)))


def text(output: bytes) -> str:
    """Return what git prints as text."""
    return output.decode("utf-8", "surrogateescape")


def run(folder: str, command: str, *arguments: str, options: Sequence[str] = (), stdin: bytes = b"") -> Done:
    """Run a command of git at the top of a work tree.
    Raises EnvironmentFailure, also above LARGEST_FILE bytes of output.
    """
    with started(folder, *options, command, *arguments) as git:
        # In a thread: git answers before it has read all input, and a pipe holds 64 KiB.
        def ask() -> None:
            with suppress(BrokenPipeError), git.stdin:
                git.stdin.write(stdin)

        asking = Thread(target=ask, daemon=True)
        asking.start()
        output = git.stdout.read(LARGEST_FILE + 1)
        if len(output) > LARGEST_FILE:
            more = f"more than {LARGEST_FILE:,} bytes"
            raise EnvironmentFailure(f"git {command} prints {more}: is this a repository of clusters?")
        asking.join()
        return git.done(output)


@contextmanager
def started(folder: str, *arguments: str) -> Iterator[Running]:
    """Start git as `run` does, for a dialogue; end it with the block."""
    top = top_of(folder)
    if top is None:
        raise EnvironmentFailure(f"{folder} is not in a git repository")
    _check(top)
    with _start(top, (f"--git-dir={top}/.git", f"--work-tree={top}", *arguments)) as git:
        yield git


def transport(bare: str, objects: str, url: str, header: str, command: str, *arguments: str) -> Done:
    """Run a git command in a bare repository of our own, with one URL, by HTTP or on the disk.
    `objects` is a folder of more objects. `header` is sent to that URL alone. It is not an argument, because
    other users of the machine can read arguments. Raises EnvironmentFailure if the command does not end
    within GIT_SECONDS.
    """
    given = os.environ.get("GIT_CONFIG_COUNT", "")
    number = int(given) if given.isdecimal() else 0
    more = {"GIT_ALLOW_PROTOCOL": "file:http:https", "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects}
    if header:
        more |= {
            "GIT_CONFIG_COUNT": str(number + 1),
            f"GIT_CONFIG_KEY_{number}": f"http.{url}.extraHeader",
            f"GIT_CONFIG_VALUE_{number}": header,
        }
    options = ("-c", "http.followRedirects=false", f"--git-dir={bare}")
    with _start(bare, (*options, command, *arguments), more) as git:
        try:
            output, _ = git.process.communicate(timeout=GIT_SECONDS)
        except subprocess.TimeoutExpired:
            late = f"did not finish within {GIT_SECONDS} seconds"
            raise EnvironmentFailure(f"git {command} {url}: {late}") from None
        return git.done(output)


def must(folder: str, command: str, *arguments: str, options: Sequence[str] = (), stdin: bytes = b"") -> Done:
    """Run a command of git. Raises EnvironmentFailure with git's reason where it fails."""
    done = run(folder, command, *arguments, options=options, stdin=stdin)
    if done.code:
        raise EnvironmentFailure(f"git {command} in {top_of(folder)}: {done.reason}")
    return done


def neutral(folder: str) -> list[str]:
    """Return options that keep git from running programs of its configuration when it writes files."""
    rows = must(folder, "config", "--list", "--show-scope", "--name-only", "-z").text.split("\0")
    options = []
    for scope, key in zip(rows[::2], rows[1::2], strict=False):
        for pattern, values in _NEUTRAL if scope in {"local", "worktree"} else ():
            if found := pattern.fullmatch(key):
                options += [f"{found[1]}.{name}={value}" for name, value in values.items()]
    return [part for option in dict.fromkeys(options) for part in ("-c", option)]


@lru_cache(maxsize=64)
def _check(top: str) -> None:
    """Make git find the repository itself, once: with --git-dir it does not check the owner."""
    above = {"GIT_CEILING_DIRECTORIES": str(Path(top).parent)}
    with _start(top, ("rev-parse", "--is-inside-work-tree"), above) as git:
        done = git.done(git.process.communicate()[0])
    if "dubious ownership" in done.complaint:
        trust = f"git config --global --add safe.directory {top}"
        raise EnvironmentFailure(
            f"git does not trust the repository {top}, because another user owns it: {trust}"
        )
    if done.code:
        raise EnvironmentFailure(f"git cannot read the repository {top}: {done.reason}")


@contextmanager
def _start(top: str, arguments: Iterable[str], more: Mapping[str, str] | None = None) -> Iterator[Running]:
    git = program("git")
    if git is None:
        raise EnvironmentFailure(f"{top} is a git repository, but git is not on the PATH: install git")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or _OURS(name)}
    settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
    with (
        tempfile.TemporaryFile() as complaint,
        subprocess.Popen(  # noqa: S603 - no shell
            [git, "--no-pager", *settings, *arguments],
            cwd=top,
            env={**kept, **_ENVIRONMENT, **(more or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaint,
        ) as process,
    ):
        if process.stdin is None or process.stdout is None:
            raise AssertionError
        try:
            yield Running(process, process.stdin, process.stdout, complaint)
        finally:
            process.terminate()  # so that git removes the locks of its own files
