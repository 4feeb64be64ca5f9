"""A process that is a copy of this one: it starts with everything that was imported here, and at once.

A new process takes a tenth of a second to get as far, which is as long as ten small clusters. A copy is made only on Linux and only while this process has one thread: a lock that another thread holds would
stay locked in the copy for ever, and the libraries of other systems do not promise to survive a fork.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import IO, NoReturn

from ipamc.workspace.signals import keep_from_this_thread, let_into_this_thread
from ipamc.workspace.worker import serve

_TICK = 0.005
"""Seconds between two looks at a process that is about to end."""


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
