"""One task for each cluster, in this process or in a pool of processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from ipamc.model.gc_pause import paused_collector
from ipamc.workspace.trouble import Trouble

Work = TypeVar("Work")
Result = TypeVar("Result")


def run_all(tasks: Sequence[Work], processes: int | None, run: Callable[[Work], Result]) -> list[Result]:
    """Run every task; return the results in the order of the tasks.

    By default, there is one process for each processor, but no more than tasks. `run`, tasks and results are
    pickled where there are several processes. Raises Trouble if a process was killed.
    """
    processes = min(processes or _processors(), len(tasks))
    do = partial(_run, run)
    return [do(task) for task in tasks] if processes <= 1 else _in_pool(tasks, processes, do)


def _run(run: Callable[[Work], Result], task: Work) -> Result:
    with paused_collector():
        return run(task)


def _in_pool(tasks: Sequence[Work], processes: int, do: Callable[[Work], Result]) -> list[Result]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))
    # Workers inherit this: an interrupt is for the parent process alone.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        results = pool.map(do, tasks)
        signal.signal(signal.SIGINT, handler)
        return list(results)
    except BrokenProcessPool:
        raise Trouble("a worker process was killed, perhaps for lack of memory: try --jobs 1") from None
    finally:
        signal.signal(signal.SIGINT, handler)
        pool.shutdown(cancel_futures=True)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
