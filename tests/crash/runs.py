"""Asks `tests.crash.forks` for runs, and tells how they ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
KILLED = -9


@dataclass(frozen=True)
class Run:
    """How a process ended, or where it stopped."""

    code: int | None
    """None: it is stopped. -9: it was killed."""
    said: str
    events: tuple[tuple[str, str], ...]
    """What it did to the disk, or was about to do last: (kind, path)."""
    pid: int
    number: int
    """Among all runs."""


@dataclass
class Forks:
    """The program that forks, and a folder for what its runs say."""

    process: subprocess.Popen[str]
    folder: Path
    number: int = field(default=0)

    def run(
        self,
        arguments: tuple[str, ...],
        cwd: Path,
        environment: Mapping[str, str],
        *,
        at: int = -1,
        act: str = "",
        reads: bool = False,
    ) -> Run:
        """Run ipamc; `act` before the event of number `at`: kill, stop, a signal by its name, or fail with the error of that name. `reads` are events, too."""
        self.number += 1
        task = {
            "arguments": arguments,
            "cwd": str(cwd),
            "root": str(cwd),
            "environment": dict(environment),
            "at": at,
            "act": act,
            "reads": reads,
            "log": str(self.folder / f"{self.number}.log"),
            "said": str(self.folder / f"{self.number}.said"),
        }
        return self._ask(task, self.number)

    def resume(self, stopped: Run) -> Run:
        """Let a run that stopped go on to its end."""
        return self._ask({"resume": stopped.pid}, stopped.number)

    def _ask(self, task: Mapping[str, object], number: int) -> Run:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{json.dumps(task)}\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        log, said = self.folder / f"{number}.log", self.folder / f"{number}.said"
        events = (
            tuple(tuple(json.loads(line)) for line in log.read_text().splitlines()) if log.exists() else ()
        )
        return Run(answer.get("code"), said.read_text(errors="replace"), events, answer["pid"], number)


@contextmanager
def forks(folder: Path) -> Iterator[Forks]:
    """Start the program; end it with the block."""
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-P", str(Path(__file__).with_name("forks.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "compiler"), "PYTHONDONTWRITEBYTECODE": "1"},
    ) as process:
        try:
            yield Forks(process, folder)
        finally:
            process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
