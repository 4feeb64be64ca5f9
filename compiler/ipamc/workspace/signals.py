"""Signals: the process removes unfinished files and ends its workers before it ends. Its output streams."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

# Windows has no SIGHUP.
SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stopped(BaseException):
    """A signal that asks this process to end. Like KeyboardInterrupt, it is not caught as an error."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def __str__(self) -> str:
        return f"stopped by {signal.Signals(self.number).name}"


ENDS = (Stopped, KeyboardInterrupt, SystemExit, GeneratorExit)
"""Exceptions that are not failures: the process, or a generator, is asked to end."""


def stop_in_order() -> None:
    """Raise Stopped in the main thread at a signal from now on, and KeyboardInterrupt at an interrupt.
    Only the first signal counts: a second one must not interrupt the cleanup. A signal that the parent
    process ignores stays ignored, as `nohup` needs it.
    """
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def _stop(number: int, _: FrameType | None) -> None:
    for each in (signal.SIGINT, *SIGNALS):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt if number == signal.SIGINT else Stopped(number)


def keep_from_this_thread() -> None:
    """Block these signals and the interrupt in this thread, and in the processes that it starts."""
    _mask("SIG_BLOCK")


def let_into_this_thread() -> None:
    """Undo `keep_from_this_thread` for this thread."""
    _mask("SIG_UNBLOCK")


def _mask(how: str) -> None:
    if hasattr(signal, "pthread_sigmask"):  # only POSIX systems have it
        signal.pthread_sigmask(getattr(signal, how), {signal.SIGINT, *SIGNALS})


def open_closed() -> None:
    """Open stdout and stderr on the null device if the parent process has closed them."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it stays open as long as the process lives
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - as above


def discard_stdout() -> None:
    """Send the rest of stdout to the null device: the reader is gone, and the interpreter flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
