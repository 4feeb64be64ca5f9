"""A process that does tasks for another one, and ends with it.

Tasks and results go through pipes, pickled, each with its length before it. Only the parent process has the
other end of the first pipe: when it closes, or the parent is gone in any way, the worker ends at once.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import struct
import sys
import threading
import time
import traceback
from typing import IO, Any

from msgspec import Struct

from ipamc.workspace.signals import (
    Stopped,
    ignore_interrupts,
    keep_from_this_thread,
    let_into_this_thread,
    stop_in_order,
)

PATIENCE = 1.0
"""Seconds that a task has to clean up, once the parent process is gone."""
STOPPED = 128 + signal.SIGTERM
"""The exit code of a process that was asked to end. Without an answer, it had not begun a task."""
_LENGTH = struct.Struct(">Q")


def send(stream: IO[bytes] | None, value: object) -> None:
    """Write a value to a pipe. Raises BrokenPipeError where its reader is gone."""
    assert stream is not None  # noqa: S101 - it was opened as a pipe
    data = value if isinstance(value, bytes) else pickle.dumps(value)
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes] | None) -> bytes | None:
    """Read a value from a pipe, still pickled; None where its writer is gone."""
    assert stream is not None  # noqa: S101 - it was opened as a pipe
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


class Ended(Struct, frozen=True):
    """The answer of a process that was asked to end, in the middle of its task."""

    result: Any
    """What `failed` makes of that."""


def serve() -> None:
    """Do the tasks that come on stdin, until it is closed; never returns."""
    code = 0
    try:
        _serve()
    except Stopped as stopped:
        code = 128 + stopped.number
    except BaseException:  # noqa: BLE001 - the parent process sees the exit code
        traceback.print_exc()
        code = 70
    finally:
        sys.stderr.flush()
        os._exit(code)


def _serve() -> None:
    asked, answers = (os.fdopen(os.dup(number), mode) for number, mode in ((0, "rb"), (1, "wb")))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a library prints is no answer
    ignore_interrupts()
    stop_in_order()
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(asked, inbox), daemon=True).start()
    let_into_this_thread()
    while True:
        do, task = pickle.loads(inbox.get())  # noqa: S301 - from our own process
        try:
            answer = _picklable(do(task), do, task)
            keep_from_this_thread()  # half an answer would be none
        except Stopped as stopped:
            with contextlib.suppress(OSError):  # the parent process is gone
                send(answers, pickle.dumps(Ended(do.args[1](task, stopped))))
            raise
        send(answers, answer)
        let_into_this_thread()


def _picklable(result: object, do: Any, task: object) -> bytes:
    try:
        return pickle.dumps(result)
    except Exception as problem:  # noqa: BLE001 - whatever it is, the task failed
        return pickle.dumps(do.args[1](task, problem))


def _listen(asked: IO[bytes], inbox: queue.SimpleQueue[bytes]) -> None:
    """Pass tasks on. Where the parent process is gone, end this one: in order, or after PATIENCE at once."""
    keep_from_this_thread()
    while (data := receive(asked)) is not None:
        inbox.put(data)
    if hasattr(signal, "pthread_kill"):  # only POSIX systems have it
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        time.sleep(PATIENCE)
    os._exit(1)
