"""Runs one task for each cluster, in this process or in several. A failed task hides no other result."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from ipamc.model.gc_pause import paused_collector
from ipamc.model.progress import track_clusters
from ipamc.workspace.signals import ENDS

Work = TypeVar("Work")
Result = TypeVar("Result")


def run_all(
    tasks: Sequence[Work],
    processes: int | None,
    run: Callable[[Work], Result],
    failed: Callable[[Work, BaseException], Result],
    prepare: Callable[[], None],
) -> list[Result]:
    """Run every task; return the results in the order of the tasks.
    The result of a task that raises is made by `failed`. Only a request to end the process passes through.
    A task whose process was killed runs once more, alone, after all others; if that process is killed,
    too, `failed` gets a EnvironmentFailure. Several tasks run in processes, by default one for each
    processor; one task, or `processes` = 1, runs in this process. `run`, `failed`, tasks and results are
    pickled. `prepare` imports the modules of a task, in each process at once.
    """
    do = partial(perform, run, failed)
    if len(tasks) > 1 and processes != 1:
        from ipamc.workspace.process_pool import ProcessPool, can_start

        if can_start():
            pool = ProcessPool(tasks=tasks, do=do, failed=failed, prepare=prepare)
            return pool.work(min(processes or _processors(), len(tasks)))
    return [do(tasks[index]) for index in track_clusters(range(len(tasks)))]


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def perform(
    run: Callable[[Work], Result], failed: Callable[[Work, BaseException], Result], task: Work
) -> Result:
    """Run a task; return its result, or the result that `failed` makes of its exception."""
    try:
        with paused_collector():
            return run(task)
    except ENDS:
        raise
    except BaseException as problem:  # noqa: BLE001 - a panic of a library in Rust is no Exception
        return failed(task, problem)
