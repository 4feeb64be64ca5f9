"""Signals that end this process, after it removed unfinished files, and its workers; its streams."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

# Windows has no SIGHUP.
SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stopped(BaseException):
    """A signal asks this process to end. Like KeyboardInterrupt, no handler of errors catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def __str__(self) -> str:
        return f"stopped by {signal.Signals(self.number).name}"


ENDS = (Stopped, KeyboardInterrupt, SystemExit, GeneratorExit)
"""Exceptions that are no failure: somebody asks the process, or a generator, to end."""


def stop_in_order() -> None:
    """From now on raise Stopped in the main thread for a signal, and KeyboardInterrupt for an interrupt.
    Only the first signal counts: a second one must not interrupt the cleaning up. A signal that the parent
    process ignores stays ignored, as `nohup` wants it.
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
    """Undo `keep_from_this_thread`, as far as this thread is concerned."""
    _mask("SIG_UNBLOCK")


def _mask(how: str) -> None:
    if hasattr(signal, "pthread_sigmask"):  # only POSIX systems have it
        signal.pthread_sigmask(getattr(signal, how), {signal.SIGINT, *SIGNALS})


def open_closed() -> None:
    """Open stdout and stderr on the null device where the parent process has closed them."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it stays open as long as the process lives
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - as above


def discard_stdout() -> None:
    """Send the rest of stdout to the null device: its reader is gone, and the interpreter flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
