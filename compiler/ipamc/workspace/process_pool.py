"""The processes that do the tasks of `workers`, and the threads that lead them.

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
import time
from collections.abc import Callable, Iterable
from typing import IO, Any, Generic, NoReturn, TypeVar, cast

from msgspec import Struct, field

from ipamc.model.progress import track_clusters
from ipamc.workspace.search_path import search_path
from ipamc.workspace.signals import keep_from_this_thread, let_into_this_thread
from ipamc.workspace.worker import STOPPED, Ended, receive, send, serve

Work = TypeVar("Work")
Result = TypeVar("Result")

PATIENCE = 2.0
"""Seconds that a process has to clean up before it is killed."""
_TICK = 0.005
"""Seconds between two looks at a process that is about to end."""
_BEGIN = "import sys; sys.path[:] = sys.argv[1:]; from ipamc.workspace.worker import serve; serve()"
"""The program of a process. Its arguments are the search path of this one."""


def can_fork() -> bool:
    """Tell whether a copy of this process is safe."""
    return sys.platform == "linux" and threading.active_count() == 1


class Forked:
    """A copy that does the tasks that come on its stdin, as `worker` says; used like a Popen."""

    def __init__(self, prepare: Callable[[], None], others: Iterable[IO[bytes] | None]) -> None:
        """`prepare` is what the copy does first. `others` are our ends of the pipes of other processes.

        The copy closes them: a process ends when the last one who could give it a task has closed its pipe.
        """
        ours: list[int] = []
        theirs: list[int] = []
        for first, second in ((theirs, ours), (ours, theirs)):
            read, write = os.pipe()
            first.append(read)
            second.append(write)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        keep_from_this_thread()  # until the copy knows what to do with a signal, it is not to have one
        try:
            self.pid = os.fork()
            if not self.pid:
                _begin(prepare, theirs, ours, others)
        except OSError:  # no memory for another process, or too many of them
            for number in ours:
                os.close(number)
            raise
        finally:
            let_into_this_thread()
            for number in theirs:
                os.close(number)
        self.stdin: IO[bytes] = os.fdopen(ours[0], "wb")
        self.stdout: IO[bytes] = os.fdopen(ours[1], "rb")
        self._code: int | None = None
        self._guard = threading.Lock()

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; return its exit code, or the number of the signal, negated.

        Raises TimeoutExpired.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self._ended()) is None:
            if end is not None and time.monotonic() >= end:
                raise subprocess.TimeoutExpired("a copy of this process", timeout or 0)
            time.sleep(_TICK)
        return code

    def _ended(self) -> int | None:
        with self._guard:
            if self._code is None:
                found, status = os.waitpid(self.pid, os.WNOHANG)
                self._code = os.waitstatus_to_exitcode(status) if found else None
            return self._code

    def terminate(self) -> None:
        """Ask it to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        if self._ended() is None:  # else the number may be that of another process by now
            os.kill(self.pid, number)


def _begin(
    prepare: Callable[[], None], pipes: list[int], ours: list[int], others: Iterable[IO[bytes] | None]
) -> NoReturn:
    """Be the copy: take tasks from one pipe, and answer to the other."""
    try:
        for number in ours:
            os.close(number)
        for stream in filter(None, others):
            stream.close()
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
            if pipe > 2:
                os.close(pipe)
        prepare()
        serve()
    finally:
        os._exit(70)


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

    def _lead(self, waiting: queue.SimpleQueue[tuple[int, Work]], done: queue.SimpleQueue[int]) -> None:
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
