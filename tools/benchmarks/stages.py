"""Show where the time of a run goes: the processor's seconds of each stage, and the functions that take most.

    python tools/benchmarks/stages.py [--nodes N] [--inventory KIND] [--run RUN] [--runs N] [--top N]
    python tools/benchmarks/stages.py --folder REPOSITORY compile --check NAME      a repository and a command of yours

A stage is a function that `pipeline.py` imports, or one that reads or writes files. Its seconds are its own: those
of a stage inside of it are not in them. Each run is a process of its own; the least of so many runs counts. Then one
run under cProfile, which makes calls of Python functions slower than they are, and C code not.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib
import json
import os
import pstats
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

from inputs import KINDS
from scene import RUNS, Scene
from tables import table

FILES = (
    ("ipamc.workspace.source", "Disk", ("inputs", "changed")),
    ("ipamc.workspace.output", "", ("compare", "write")),
)
"""Module, class and names of the functions that read and write."""
IMPORTS, OTHER, ALL = "(imports)", "(not in a stage)", "(all)"


class Clock:
    """Sums up the processor's seconds of functions, each without those that it calls."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._name, self._since = OTHER, time.process_time()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what follows for a name, and nothing for the one around it."""
        before = self._switch(name)
        try:
            yield
        finally:
            self._switch(before)

    def _switch(self, name: str) -> str:
        now, before = time.process_time(), self._name
        self.spent[before] = self.spent.get(before, 0) + now - self._since
        self._name, self._since = name, now
        return before

    def wrap(self, owner: Any, name: str, label: str) -> None:
        """Measure a function wherever `owner` is asked for it. What a generator yields is taken at once."""
        function: Callable[..., Any] = getattr(owner, name)

        def measured(*args: Any, **kwargs: Any) -> Any:
            with self.stage(label):
                result = function(*args, **kwargs)
                return list(result) if isinstance(result, Iterator) else result

        setattr(owner, name, measured)


def timed(arguments: Sequence[str]) -> dict[str, float]:
    """Run ipamc in this process; return the seconds of each stage."""
    clock = Clock()
    with clock.stage(IMPORTS):
        from ipamc.cli import main  # noqa: PLC0415 - measured

        importlib.import_module("ipamc.cli.runner")
        pipeline = importlib.import_module("ipamc.pipeline")
        stages = [name for name, value in vars(pipeline).items() if _is_stage(value, pipeline.__name__)]
        for name in stages:
            clock.wrap(pipeline, name, name)
        for module, owner, names in FILES:
            found = importlib.import_module(module)
            for name in names:
                clock.wrap(getattr(found, owner) if owner else found, name, f"{owner or 'output'}.{name}")
    sys.argv = ["ipamc", *arguments]
    main()
    with clock.stage(OTHER):
        return clock.spent


def _is_stage(value: object, pipeline: str) -> bool:
    """Tell whether a name of the pipeline is a function of another module of ours."""
    return (
        isinstance(value, FunctionType)
        and value.__module__.startswith("ipamc.")
        and value.__module__ != pipeline
    )


def profiled(arguments: Sequence[str]) -> list[list[Any]]:
    """Run ipamc in this process; return a row for each function: its own seconds, all of them, calls, its name."""
    from ipamc.cli import main  # noqa: PLC0415 - in the child alone

    sys.argv = ["ipamc", *arguments]
    profile = cProfile.Profile()
    profile.runcall(main)
    stats: Any = pstats.Stats(profile)
    return sorted(
        ([own, whole, calls, _place(*where)] for where, (_, calls, own, whole, _) in stats.stats.items()),
        reverse=True,
    )


def _place(path: str, line: int, name: str) -> str:
    parts = Path(path).parts
    if "ipamc" in parts:
        last = len(parts) - 1 - parts[::-1].index("ipamc")
        return f"{'/'.join(parts[last + 1 :])}:{line} {name}"
    return name if path == "~" else f"{parts[-1]}:{line} {name}"


def in_child(work: Callable[[Sequence[str]], Any], folder: Path, arguments: Sequence[str]) -> Any:
    """Do something in a process of its own, where ipamc is not imported yet; what it prints is not shown."""
    with tempfile.TemporaryFile("w+") as result, tempfile.TemporaryFile("w+") as printed:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.chdir(folder)
                os.dup2(printed.fileno(), 1)
                os.dup2(printed.fileno(), 2)
                json.dump(work(arguments), result)
                result.flush()
                code = 0
            except BaseException:  # noqa: BLE001 - whatever it is, the parent's code must not go on in the child
                traceback.print_exc()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        for file in (result, printed):
            file.seek(0)
        if status:
            sys.exit(f"ipamc {' '.join(arguments)} did not end:\n{printed.read()[-4000:]}")
        return json.load(result)


def stage_rows(runs: Sequence[dict[str, float]]) -> list[list[str]]:
    """Return a row for each stage that takes a millisecond, the longest first, and one for all."""
    totals = [sum(run.values()) for run in runs]
    best = {name: min(run.get(name, 0) for run in runs) for run in runs for name in run}
    rows = sorted(best.items(), key=lambda item: -item[1])
    return [
        [name, f"{1000 * seconds:.0f}", f"{seconds / min(totals):.0%}"]
        for name, seconds in (*rows, (ALL, min(totals)))
        if seconds >= 0.001
    ]


def function_rows(found: Sequence[Sequence[Any]], top: int) -> list[list[str]]:
    """Return a row for each of the functions that take most time of their own."""
    return [
        [name, f"{calls:,}", f"{1000 * own:.0f}", f"{1000 * whole:.0f}"]
        for own, whole, calls, name in found[:top]
    ]


def show(folder: Path, set_up: Callable[[], Sequence[str]], runs: int, top: int) -> None:
    """Print both tables. `set_up` makes what a run starts from, and returns its arguments."""
    measured = [in_child(timed, folder, set_up()) for _ in range(max(runs, 1))]
    print(table(("stage", "ms of a processor", "share"), stage_rows(measured)), end="\n\n", flush=True)
    found = in_child(profiled, folder, set_up())
    print(table(("function", "calls", "own ms", "with what it calls"), function_rows(found, top)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="with --folder: the arguments of ipamc")
    parser.add_argument("--folder", type=Path, help="a repository, instead of a cluster that is made")
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--inventory", choices=KINDS, default=KINDS[0])
    parser.add_argument("--run", choices=RUNS, default="full", help="what runs: see scene.py")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--top", type=int, default=25, help="functions to show")
    asked = parser.parse_args()
    if asked.folder:
        show(asked.folder, lambda: asked.arguments or ["compile", "--check"], asked.runs, asked.top)
        return
    with tempfile.TemporaryDirectory() as scratch:
        scene = Scene(Path(scratch), asked.inventory, asked.nodes, {asked.run})
        if asked.run not in {"first", "full"}:
            scene.run("full")
        print(f"{asked.run}, {asked.inventory}, {asked.nodes:,} nodes\n", flush=True)
        show(scene.top, lambda: scene.set_up(asked.run), asked.runs, asked.top)


if __name__ == "__main__":
    main()
