"""Cold processes, measured: seconds on the clock, seconds of a processor, and the peak of memory.

A small process stands between this one and what is measured, because a child's peak of memory begins with its
parent's. It starts what is measured, waits for it, and asks the kernel what it and its own children used. Where
there are several at a time (`--jobs 2`), the peak is that of the largest one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

IPAMC = (str(Path(sys.executable).with_name("ipamc")),)
"""The installed command, as users start it."""
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""An installed ipamc has its bytecode; one that may not write it would read its source in every run."""
_LAUNCH = """
import json, os, resource, subprocess, sys, time
output, errors, seconds, memory, *command = sys.argv[1:]
if int(seconds): resource.setrlimit(resource.RLIMIT_CPU, (int(seconds),) * 2)
if int(memory): resource.setrlimit(resource.RLIMIT_AS, (int(memory),) * 2)
with open(output, "wb") as out, open(errors, "wb") as err:
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
code = os.waitstatus_to_exitcode(status)
print(json.dumps([wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, code]))
"""


class Cost(NamedTuple):
    """What a process took."""

    wall: float
    """Seconds on the clock."""
    seconds: float
    """Of a processor, of the user and of the system, with those of its children."""
    memory: int
    """The peak of resident memory in bytes."""
    code: int = 0
    """The exit code; negative for a signal."""


def run(
    command: Sequence[str],
    folder: Path,
    *,
    codes: Collection[int] | None = (0,),
    output: Path | None = None,
    limits: tuple[int, int] = (0, 0),
) -> Cost:
    """Run a command in a folder. Ends with what it said if it fails.

    `codes` are the exit codes that are no failure; None: all are. `output` keeps what goes to stdout. `limits`
    are seconds of a processor and bytes of address space, after which it ends by a signal or an error; 0 is none.
    """
    with tempfile.TemporaryDirectory() as scratch:
        errors = Path(scratch) / "errors"
        words = [str(output or "/dev/null"), str(errors), *map(str, limits), *command]
        launcher = [sys.executable, "-S", "-c", _LAUNCH, *words]
        done = subprocess.run(launcher, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, check=True)
        cost = Cost(*json.loads(done.stdout))
        if codes is not None and cost.code not in codes:
            sys.exit(
                f"{' '.join(command)} ended with {cost.code}:\n{errors.read_text(errors='replace')[:4000]}"
            )
    return cost


def ipamc(folder: Path, *arguments: str, codes: Collection[int] | None = (0,)) -> Cost:
    """Run ipamc in a folder."""
    return run([*IPAMC, *arguments], folder, codes=codes)


def alternate(contestants: Mapping[str, Callable[[], Cost]], runs: int) -> dict[str, Cost]:
    """Let each run in turn, A B C A B C ...; return the medians of so many runs.

    A first round is not counted. With no runs there is one round, which is.
    """
    rounds = [{name: work() for name, work in contestants.items()} for _ in range(runs + 1)]
    return {name: median([costs[name] for costs in rounds[1:] or rounds]) for name in contestants}


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure, and the largest peak of memory."""
    return Cost(
        wall=statistics.median(cost.wall for cost in costs),
        seconds=statistics.median(cost.seconds for cost in costs),
        memory=max(cost.memory for cost in costs),
    )


def least(costs: Sequence[Cost]) -> Cost:
    """Return the least of each figure: what the machine's other work disturbs least."""
    return Cost(*(min(figures) for figures in zip(*costs, strict=True)))


def git(folder: Path, *arguments: str) -> None:
    """Run git with an identity of its own."""
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)
