"""Runs one task for each cluster, in this process or in several. A failed task hides no other result.

The processes are those of `concurrent.futures`, with what is missing there. There a killed process breaks its
pool, and nobody knows whose task killed it: here the tasks that ran then run again, each alone. There busy
processes outlive a signal and a killed parent: here they clean up and end. There new interpreters import from
the working directory, perhaps of a stranger's branch: here they do not. Most runs need none of it, so it is
imported late.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct, field

from ipamc.model.gc_pause import paused_collector
from ipamc.model.limits import CLEAN_UP_SECONDS, ORPHAN_SECONDS
from ipamc.model.progress import track_clusters
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.signals import ENDS, Stopped, keep_from_this_thread, let_into_this_thread, stop_in_order

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.process import BaseProcess

Work = TypeVar("Work")
Result = TypeVar("Result")

_TICK = 0.1  # seconds between two looks whether the parent process is there


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
    if len(tasks) > 1 and processes != 1 and _can_start():
        pool = _ProcessPool(tasks=tasks, do=do, failed=failed, prepare=prepare)
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


def can_fork() -> bool:
    """Return whether this process can be forked safely."""
    return sys.platform == "linux" and threading.active_count() == 1


def _can_start() -> bool:
    """Return whether there is a way to start processes that import nothing from the working directory."""
    return can_fork() or sys.flags.safe_path or not sys.flags.ignore_environment


class _ProcessPool(Struct, Generic[Work, Result]):
    """Tasks, and what became of them, by index."""

    tasks: Sequence[Work]
    do: Callable[[Work], Result]
    failed: Callable[[Work, BaseException], Result]
    prepare: Callable[[], None]
    results: dict[int, Result] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)
    """How the processes of tasks ended that were killed."""

    def work(self, processes: int) -> list[Result]:
        """Run all tasks; return their results in order. No process is left, also where this raises."""
        count = iter(track_clusters(range(len(self.tasks))))
        next(count)
        waiting = deque(range(len(self.tasks)))
        while waiting:  # once more only after a process was killed
            self._work(waiting, min(processes, len(waiting)), count)
        for index in sorted(self.lost):  # others may have taken the memory
            self._work(deque([index]), 1, count)
            if index not in self.results:
                self.results[index] = self.failed(self.tasks[index], EnvironmentFailure(self.lost[index]))
        return [self.results[index] for index in range(len(self.tasks))]

    def _work(self, waiting: deque[int], processes: int, count: Iterator[int]) -> None:
        """Run tasks, and take them from `waiting`, until all are done or a process was killed."""
        from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import active_children, get_context

        way = "fork" if can_fork() else "spawn"
        running: dict[Future[Result], int] = {}
        killed = False
        with _safe_path() if way == "spawn" else nullcontext():
            pool = ProcessPoolExecutor(processes, get_context(way), _begin, (self.prepare, os.getpid()))
            keep_from_this_thread()  # but in `wait`: it is known what runs, and new processes get no signal
            only = []
            try:
                if processes == 1:  # the process is known before the task that may kill it begins
                    pool.submit(int).result()
                    only = active_children()
                while waiting or running:
                    while waiting and len(running) < processes:
                        task = self.tasks[waiting[0]]
                        running[pool.submit(_serve, self.do, task)] = waiting.popleft()
                    let_into_this_thread()
                    try:
                        wait(running, return_when=FIRST_COMPLETED)
                    finally:
                        keep_from_this_thread()
                    for future in [future for future in running if future.done()]:
                        self._take(future, running[future])
                        del running[future]
                        next(count, None)
            except BrokenProcessPool:
                killed = True
            finally:
                _end(pool)
                let_into_this_thread()
        for future, index in running.items() if killed else ():
            try:
                self._take(future, index)
            except BrokenProcessPool:
                self.lost[index] = _how_it_ended(only[0].exitcode if only else None)

    def _take(self, future: Future[Result], index: int) -> None:
        """Keep the result of a task. Raises BrokenProcessPool if its process was killed, or stopped alone."""
        from concurrent.futures import CancelledError
        from concurrent.futures.process import BrokenProcessPool

        try:
            self.results[index] = future.result()
        except (BrokenProcessPool, CancelledError, Stopped):
            raise BrokenProcessPool from None
        except BaseException as problem:  # noqa: BLE001 - any exception is a failed task
            self.results[index] = self.failed(self.tasks[index], problem)


def _end(pool: ProcessPoolExecutor) -> None:
    """End all processes; busy ones first clean up. Returns when they are gone."""
    from multiprocessing import active_children

    children = active_children()
    for child in children:
        child.terminate()
    late = threading.Timer(CLEAN_UP_SECONDS, _kill, [children])
    late.start()
    pool.shutdown(cancel_futures=True)
    late.cancel()
    late.join()
    for child in active_children():  # the pool waits for none where it could not start all
        child.kill()
        child.join()


def _kill(children: Sequence[BaseProcess]) -> None:
    for child in children:
        child.kill()


def _how_it_ended(code: int | None) -> str:
    if code is None or code >= 0:
        return f"its process ended{'' if code is None else f' with exit code {code}'}, twice"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    memory = ", perhaps for lack of memory: add memory or try --jobs 1" if name == "SIGKILL" else ""
    return f"its process was killed by {name}, twice{memory}"


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep the working directory from new interpreters until they have our module search path."""
    before = os.environ.copy()
    os.environ.pop("PYTHONPATH", None)
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        os.environ.pop("PYTHONSAFEPATH")
        os.environ.update(before)


# In a process of the pool. Outside of a task it gets no signal: half an answer would be unreadable.

_STOPPED: list[Stopped] = []
"""The signal that ended a task here: no other task begins then, though one may be waiting."""


def _begin(prepare: Callable[[], None], parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the parent process, too
    stop_in_order()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    prepare()


def _end_with(parent: int) -> None:
    """If the parent process is gone, end in order, or at once after ORPHAN_SECONDS seconds."""
    while os.getppid() == parent:
        time.sleep(_TICK)
    if hasattr(signal, "pthread_kill"):  # only POSIX systems have it
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        time.sleep(ORPHAN_SECONDS)
    os._exit(1)


def _serve(do: Callable[[Work], Result], task: Work) -> Result:
    """Run a task. Raises Stopped for the signal that ended it or an earlier one."""
    try:
        let_into_this_thread()
        try:
            if _STOPPED:
                raise _STOPPED[0]
            return do(task)
        finally:
            keep_from_this_thread()
    except Stopped as stopped:
        _STOPPED.append(stopped)
        raise
