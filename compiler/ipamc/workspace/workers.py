"""One task for each cluster, in this process or in several: no task's failure hides the result of another.

The processes are our own, and not those of `concurrent.futures`, for three reasons: one that is killed is
known by its task and breaks no other, none has the working directory on its search path of modules, and all
of them end with this process, however it ends. `worker` is what runs there.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from ipamc.workspace.search_path import search_path
from ipamc.workspace.signals import keep_from_this_thread
from ipamc.workspace.trouble import Trouble
from ipamc.workspace.worker import perform, receive, send

Work = TypeVar("Work")
Result = TypeVar("Result")

PATIENCE = 2.0
"""Seconds that a process has to clean up before it is killed."""
_BEGIN = "import sys; sys.path[:] = sys.argv[1:]; from ipamc.workspace.worker import serve; serve()"
"""The program of a process. Its arguments are the search path of this one."""


def run_all(
    tasks: Sequence[Work],
    processes: int | None,
    run: Callable[[Work], Result],
    failed: Callable[[Work, BaseException], Result],
) -> list[Result]:
    """Run every task; return the results in the order of the tasks.

    A task that raises has the result that `failed` makes of it; only a request to end the process passes
    through. One whose process was killed is run once more when all others are done, alone; if that process is
    killed, too, `failed` gets a Trouble. Several tasks are run by processes, one for each processor by
    default; one task, and `processes` = 1, by this process. `run`, `failed`, tasks and results are pickled.
    """
    do = partial(perform, run, failed)
    if len(tasks) <= 1 or processes == 1:
        return [do(task) for task in tasks]
    crew = _Crew(do=do)
    try:
        results = crew.work(dict(enumerate(tasks)), min(processes or _processors(), len(tasks)))
        lost = {index: task for index, task in enumerate(tasks) if index not in results}
        for index, task in lost.items():  # others may have taken the memory
            results |= crew.work({index: task}, 1)
    finally:
        crew.dismiss()
    return [
        results[index] if index in results else failed(task, Trouble(crew.lost[index]))
        for index, task in enumerate(tasks)
    ]


class _Lost(Exception):  # noqa: N818 - a fact; its text says how
    """A process ended before its task did."""


@dataclass(slots=True)
class _Crew(Generic[Work, Result]):
    """The processes, each with a thread that gives it a task after the other."""

    do: Callable[[Work], Result]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    lost: dict[int, str] = field(default_factory=dict)
    """How the processes of tasks ended that have no result."""
    leaders: list[threading.Thread] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)
    dismissed: bool = False

    def work(self, tasks: dict[int, Work], processes: int) -> dict[int, Result]:
        """Run tasks; return the results, by the number of the task. The others are in `lost`."""
        waiting: queue.SimpleQueue[tuple[int, Work]] = queue.SimpleQueue()
        for task in tasks.items():
            waiting.put(task)
        done: queue.SimpleQueue[tuple[int, Result | BaseException]] = queue.SimpleQueue()
        leaders = [
            threading.Thread(target=self._lead, args=(waiting, done), daemon=True) for _ in range(processes)
        ]
        self.leaders += leaders
        for leader in leaders:
            leader.start()
        results = {}
        for _ in tasks:
            index, result = done.get()  # a signal interrupts this
            if isinstance(result, BaseException):
                self.lost[index] = str(result)
            else:
                results[index] = result
        for leader in leaders:
            leader.join()
        return results

    def _lead(
        self,
        waiting: queue.SimpleQueue[tuple[int, Work]],
        done: queue.SimpleQueue[tuple[int, Result | BaseException]],
    ) -> None:
        keep_from_this_thread()
        process: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(queue.Empty):
            while True:
                index, task = waiting.get_nowait()
                try:
                    process = process or self._start()
                    done.put((index, self._ask(process, task)))
                except Exception as problem:  # noqa: BLE001 - whatever it is, the task has no result
                    _close(process)
                    process = None
                    done.put((index, problem))
        _close(process)

    def _start(self) -> subprocess.Popen[bytes]:
        # -E and -P: nothing of PYTHONPATH, and not the working directory.
        flags = ["-E", "-P", "-X", f"utf8={sys.flags.utf8_mode}"]
        flags += ["-s"] if sys.flags.no_user_site else []
        flags += ["-B"] if sys.dont_write_bytecode else []
        command = [sys.executable, *flags, "-c", _BEGIN, *search_path()]
        with self.guard:
            if self.dismissed:
                raise _Lost("dismissed")
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - no shell
            self.processes.append(process)
        return process

    def _ask(self, process: subprocess.Popen[bytes], task: Work) -> Result:
        """Have a process do a task. Raises _Lost where it ends before that."""
        answer: Any = None
        with contextlib.suppress(BrokenPipeError):
            send(process.stdin, (self.do, task))
            answer = receive(process.stdout)
        if answer is None:
            raise _Lost(_how_it_ended(process.wait()))
        result: Result = pickle.loads(answer)  # noqa: S301 - from our own process
        return result

    def dismiss(self) -> None:
        """End all processes; those that work still clean up first. Returns when they are gone."""
        with self.guard:
            self.dismissed = True
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for leader in filter(threading.Thread.is_alive, self.leaders):
            leader.join(PATIENCE)


def _close(process: subprocess.Popen[bytes] | None) -> None:
    """Close the pipes of a process, which ends it."""
    for stream in (process.stdin, process.stdout) if process else ():
        with contextlib.suppress(OSError):  # it is gone, and did not take what was written last
            if stream:
                stream.close()


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"its process ended with exit code {code}, twice"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    memory = ", perhaps for lack of memory: give it more, or try --jobs 1" if name == "SIGKILL" else ""
    return f"its process was killed by {name}, twice{memory}"


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
