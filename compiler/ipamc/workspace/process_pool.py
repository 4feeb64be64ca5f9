"""The processes that run the tasks of `workers`, and the threads that hand them tasks.

The processes are our own, not those of `concurrent.futures`, for three reasons. A killed process is known by
its task and breaks no other; none has the working directory on its module search path; and all of them end
with this process, however it ends. Tasks and results go through pipes, pickled, each after its length. Only
this process has the other end of the pipe that a worker reads: when it closes, or this process is gone, the
worker ends at once.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from typing import IO, Any, Generic, TypeVar, cast

from msgspec import Struct, field

from ipamc.model.progress import track_clusters
from ipamc.workspace.search_path import search_path
from ipamc.workspace.signals import Stopped, keep_from_this_thread, let_into_this_thread, stop_in_order

Work = TypeVar("Work")
Result = TypeVar("Result")

PATIENCE = 2.0  # seconds that a process has to clean up before it is killed
ORPHANED = 1.0  # seconds that a task has to clean up, once the parent process is gone
STOPPED = 128 + signal.SIGTERM
"""The exit code of a worker after SIGTERM. If it sent no result, it had not begun a task."""
_TICK = 0.005  # seconds between two checks of a process that is about to end
_BEGIN = "import sys; sys.path[:] = sys.argv[1:]; from ipamc.workspace.process_pool import serve; serve()"
"""The program of a started worker. Its arguments are the module search path of this process."""
_LENGTH = struct.Struct(">Q")


def can_fork() -> bool:
    """Return whether this process can be forked safely."""
    return sys.platform == "linux" and threading.active_count() == 1


class Forked:
    """A fork of this process that runs the tasks from its stdin; used like a Popen."""

    def __init__(self, prepare: Callable[[], None], others: Iterable[IO[bytes] | None]) -> None:
        """Fork; the child calls `prepare` first. `others` are our ends of the pipes of other processes.
        The child closes them: a worker ends when the last holder of the other end of its pipe closes it.
        """
        (tasks, our_tasks), (our_answers, answers) = os.pipe(), os.pipe()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        keep_from_this_thread()  # the child gets no signal before it has handlers
        try:
            self.pid = os.fork()
            if not self.pid:
                try:
                    os.close(our_tasks)
                    os.close(our_answers)
                    for other in filter(None, others):
                        other.close()
                    for number, pipe in enumerate((tasks, answers)):
                        os.dup2(pipe, number)
                        if pipe > 2:
                            os.close(pipe)
                    prepare()
                    serve()
                finally:
                    os._exit(70)
        except OSError:  # no memory for another process, or too many processes
            os.close(our_tasks)
            os.close(our_answers)
            raise
        finally:
            let_into_this_thread()
            os.close(tasks)
            os.close(answers)
        self.stdin: IO[bytes] = os.fdopen(our_tasks, "wb")
        self.stdout: IO[bytes] = os.fdopen(our_answers, "rb")
        self._code: int | None = None
        self._guard = threading.Lock()

    def wait(self, timeout: float | None = None) -> int:
        """Wait; return its exit code, or the number of the signal, negated. Raises TimeoutExpired."""
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
        """Ask the process to end (SIGTERM)."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process (SIGKILL)."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        if self._ended() is None:  # else the process id may belong to another process by now
            os.kill(self.pid, number)


Process = subprocess.Popen[bytes] | Forked


class Lost(Exception):  # noqa: N818 - a fact; its text says how
    """A process ended before its task did."""


class Dismissed(Exception):  # noqa: N818 - a fact
    """No more tasks may begin."""


class ProcessPool(Struct, Generic[Work, Result]):
    """The processes, each with a thread that gives it one task after the other."""

    do: Callable[[Work], Result]
    results: dict[int, Result]
    """Results by index of the task. A thread stores them, so that a signal loses none."""
    processes: list[Process] = field(default_factory=list)
    idle: list[Process] = field(default_factory=list)  # started processes without a thread yet
    lost: dict[int, str] = field(default_factory=dict)  # exit codes of processes whose task has no result
    leaders: list[threading.Thread] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)
    dismissed: bool = False

    def copy(self, processes: int, prepare: Callable[[], None]) -> None:
        """Fork processes. If that fails, `work` starts others."""
        with contextlib.suppress(OSError):
            for _ in range(processes):
                others = [stream for process in self.processes for stream in (process.stdin, process.stdout)]
                process = Forked(prepare, others)
                self.processes.append(process)
                self.idle.append(process)

    def work(self, tasks: dict[int, Work], processes: int) -> None:
        """Run tasks, by index: each then has an entry in `results` or in `lost`."""
        waiting: queue.SimpleQueue[tuple[int, Work]] = queue.SimpleQueue()
        for task in tasks.items():
            waiting.put(task)
        done: queue.SimpleQueue[int] = queue.SimpleQueue()
        queues = (waiting, done)
        leaders = [threading.Thread(target=self._lead, args=queues, daemon=True) for _ in range(processes)]
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
        # -E and -P: nothing of PYTHONPATH, and not the working directory.
        flags = ["-E", "-P", "-X", f"utf8={sys.flags.utf8_mode}"]
        flags += ["-s"] if sys.flags.no_user_site else []
        flags += ["-B"] if sys.dont_write_bytecode else []
        command = [sys.executable, *flags, "-c", _BEGIN, *search_path()]
        with self.guard:
            if self.dismissed:
                raise Dismissed
            if self.idle:
                return self.idle.pop()
            pipe = subprocess.PIPE
            process: Process = subprocess.Popen(command, stdin=pipe, stdout=pipe)  # noqa: S603 - no shell
            self.processes.append(process)
        return process

    def _ask(self, process: Process, task: Work) -> Result:
        """Run a task in a process; return its result. Raises Lost if the process ends before that."""
        answer: Any = None
        with contextlib.suppress(BrokenPipeError):
            send(process.stdin, (self.do, task))
            answer = receive(process.stdout)
        if answer is None:
            code = process.wait()
            if self.dismissed and code == STOPPED:
                raise Dismissed
            raise Lost(_how_it_ended(code))
        return cast("Result", pickle.loads(answer))  # noqa: S301 - from our own process

    def dismiss(self) -> None:
        """End all processes; busy ones first clean up. Returns when they are gone."""
        with self.guard:
            self.dismissed = True
        for process in self.processes:
            process.terminate()
        for process in self.idle:  # it has no thread: the others had done all tasks before that began
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
        with contextlib.suppress(OSError):  # the process is gone, and did not read the last data
            if stream:
                stream.close()


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"its process ended with exit code {code}, twice"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    memory = ", perhaps for lack of memory: give it more, or try --jobs 1" if name == "SIGKILL" else ""
    return f"its process was killed by {name}, twice{memory}"


def send(stream: IO[bytes] | None, value: object) -> None:
    """Write a value to a pipe. Raises BrokenPipeError if its reader is gone."""
    assert stream is not None  # noqa: S101 - it was opened as a pipe
    data = value if isinstance(value, bytes) else pickle.dumps(value)
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes] | None) -> bytes | None:
    """Read a pickled value from a pipe; None if its writer is gone."""
    assert stream is not None  # noqa: S101 - it was opened as a pipe
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


def serve() -> None:
    """Run the tasks from stdin until it is closed; never returns."""
    code = 0
    try:
        tasks, answers = (os.fdopen(os.dup(number), mode) for number, mode in ((0, "rb"), (1, "wb")))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)  # output of a library must not mix with answers
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the parent process, too
        stop_in_order()
        inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(tasks, inbox), daemon=True).start()
        let_into_this_thread()
        while True:
            do, task = pickle.loads(inbox.get())  # noqa: S301 - from our own process
            result = do(task)
            try:
                answer = pickle.dumps(result)
            except Exception as problem:  # noqa: BLE001 - any exception is a failed task
                answer = pickle.dumps(do.args[1](task, problem))
            keep_from_this_thread()  # half an answer would be unreadable
            send(answers, answer)
            let_into_this_thread()
    except Stopped as stopped:
        code = 128 + stopped.number
    except BaseException:  # noqa: BLE001 - the parent process sees the exit code
        traceback.print_exc()
        code = 70
    finally:
        sys.stderr.flush()
        os._exit(code)


def _listen(tasks: IO[bytes], inbox: queue.SimpleQueue[bytes]) -> None:
    """Pass tasks on. If the parent process is gone, end in order, or at once after ORPHANED seconds."""
    keep_from_this_thread()
    while (data := receive(tasks)) is not None:
        inbox.put(data)
    if hasattr(signal, "pthread_kill"):  # only POSIX systems have it
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        time.sleep(ORPHANED)
    os._exit(1)
