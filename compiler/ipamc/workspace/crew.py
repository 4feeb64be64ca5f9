"""The processes that do the tasks of `workers`, and the threads that lead them.

The processes are our own, and not those of `concurrent.futures`, for three reasons: one that is killed is
known by its task and breaks no other, none has the working directory on its search path of modules, and all
of them end with this process, however it ends. `worker` is what runs there.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct, field

from ipamc.model.progress import track_clusters
from ipamc.workspace.forked import Forked
from ipamc.workspace.search_path import search_path
from ipamc.workspace.signals import keep_from_this_thread
from ipamc.workspace.worker import STOPPED, Ended, receive, send

Work = TypeVar("Work")
Result = TypeVar("Result")

PATIENCE = 2.0
"""Seconds that a process has to clean up before it is killed."""
_BEGIN = "import sys; sys.path[:] = sys.argv[1:]; from ipamc.workspace.worker import serve; serve()"
"""The program of a process. Its arguments are the search path of this one."""


Process = subprocess.Popen[bytes] | Forked


class Lost(Exception):  # noqa: N818 - a fact; its text says how
    """A process ended before its task did."""


class Dismissed(Exception):  # noqa: N818 - a fact
    """No further task may begin."""


class Crew(Struct, Generic[Work, Result]):
    """The processes, each with a thread that gives it a task after the other."""

    do: Callable[[Work], Result]
    results: dict[int, Result]
    """By the number of the task. A thread fills it, so that a signal takes none away."""
    processes: list[Process] = field(default_factory=list)
    idle: list[Process] = field(default_factory=list)
    """Those that were started, and that no thread leads yet."""
    lost: dict[int, str] = field(default_factory=dict)
    """How the processes of tasks ended that have no result."""
    leaders: list[threading.Thread] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)
    dismissed: bool = False

    def copy(self, processes: int, prepare: Callable[[], None]) -> None:
        """Start processes as copies of this one. Where that fails, `work` starts others."""
        with contextlib.suppress(OSError):
            for _ in range(processes):
                others = [stream for process in self.processes for stream in (process.stdin, process.stdout)]
                process = Forked(prepare, others)
                self.processes.append(process)
                self.idle.append(process)

    def work(self, tasks: dict[int, Work], processes: int) -> None:
        """Run tasks, by their numbers: each then has its place in `results` or in `lost`."""
        waiting: queue.SimpleQueue[tuple[int, Work]] = queue.SimpleQueue()
        for task in tasks.items():
            waiting.put(task)
        done: queue.SimpleQueue[int] = queue.SimpleQueue()
        leaders = [
            threading.Thread(target=self._lead, args=(waiting, done), daemon=True) for _ in range(processes)
        ]
        self.leaders += leaders
        for leader in leaders:
            leader.start()
        for _ in track_clusters(tasks):
            done.get()  # a signal interrupts this
        for leader in leaders:
            leader.join()

    def _lead(
        self,
        waiting: queue.SimpleQueue[tuple[int, Work]],
        done: queue.SimpleQueue[int],
    ) -> None:
        keep_from_this_thread()
        process: Process | None = None
        with contextlib.suppress(queue.Empty):
            while not self.dismissed:
                index, task = waiting.get_nowait()
                try:
                    process = process or self._start()
                    self.results[index] = self._ask(process, task)
                except Dismissed:  # the task was not begun
                    break
                except Exception as problem:  # noqa: BLE001 - whatever it is, the task has no result
                    _close(process)
                    process = None
                    self.lost[index] = str(problem)
                done.put(index)
        _close(process)

    def _start(self) -> Process:
        with self.guard:
            if self.idle and not self.dismissed:
                return self.idle.pop()
        # -E and -P: nothing of PYTHONPATH, and not the working directory.
        flags = ["-E", "-P", "-X", f"utf8={sys.flags.utf8_mode}"]
        flags += ["-s"] if sys.flags.no_user_site else []
        flags += ["-B"] if sys.dont_write_bytecode else []
        command = [sys.executable, *flags, "-c", _BEGIN, *search_path()]
        with self.guard:
            if self.dismissed:
                raise Dismissed
            process: Process = subprocess.Popen(  # noqa: S603 - no shell
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            self.processes.append(process)
        return process

    def _ask(self, process: Process, task: Work) -> Result:
        """Have a process do a task. Raises Lost where it ends before that."""
        answer: Any = None
        with contextlib.suppress(BrokenPipeError):
            send(process.stdin, (self.do, task))
            answer = receive(process.stdout)
        if answer is None:
            code = process.wait()
            if self.dismissed and code == STOPPED:
                raise Dismissed
            raise Lost(_how_it_ended(code))
        result: Any = pickle.loads(answer)  # noqa: S301 - from our own process
        if not isinstance(result, Ended):
            return cast("Result", result)
        if not self.dismissed:  # somebody else ended it
            raise Lost(_how_it_ended(process.wait()))
        return cast("Result", result.result)

    def dismiss(self) -> None:
        """End all processes; those that work still clean up first. Returns when they are gone."""
        with self.guard:
            self.dismissed = True
        for process in self.processes:
            process.terminate()
        for process in self.idle:  # no thread leads it: the others had done all tasks before its thread began
            _close(process)
        for process in self.processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for leader in filter(threading.Thread.is_alive, self.leaders):
            leader.join(PATIENCE)


def _close(process: Process | None) -> None:
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
